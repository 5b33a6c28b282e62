"""Run the commands of a page as a user would, and keep the pictures that they draw.

`python tools/run_page.py docs/teach.md docs/images` renews the pictures of that page.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.helpers.snippets import blocks


def run_page(page: Path, pictures: Path) -> None:
    """Run every `sh` block of a page in a new folder; copy the pictures from there."""
    with TemporaryDirectory() as folder:
        home = {name: str(Path(folder) / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        for block in blocks(page):
            for line in block.text.splitlines() if block.language == "sh" and not block.not_run else ():
                command = [sys.executable, "-m", "tytoalba", *shlex.split(line, comments=True)[1:]]
                subprocess.run(command, cwd=folder, env={**os.environ, **home}, check=True)
        for path in Path(folder).glob("*.png"):
            shutil.copy(path, pictures / path.name)


if __name__ == "__main__":
    run_page(Path(sys.argv[1]), Path(sys.argv[2]).resolve())
