"""Write the golden files and values anew: python -m tests.golden.make [FOLDER].

Without a folder it replaces those in tests/golden. That is allowed only in a commit that changes numbers or a
format on purpose and says why; never to make a failing test pass. Files that were written before must still
open: where a format changes, keep the old file beside the new one.

With a folder the stored ones stay as they are and all is written there. So a change that shall change
nothing can be shown to change nothing on one machine, to the bit; but for the two sealed files, *.age, which
are drawn anew each time:

    python -m tests.golden.make BEFORE
    ... change the program ...
    python -m tests.golden.make AFTER
    diff --recursive --brief BEFORE AFTER

The test keys (test-*) are never written: they are as public as the rest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from safetensors.numpy import save_file

from tests.golden import contents


def main(folder: Path) -> None:
    """Write everything into a folder; inputs of values are read from tests/golden."""
    folder.mkdir(parents=True, exist_ok=True)
    contents.write_files(folder)
    text = json.dumps(contents.exact(), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / "values.json").write_text(text + "\n", encoding="utf-8")
    save_file(contents.close(), folder / "close.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else contents.GOLDEN)
