"""How near ONNX files come to tytoalba: the numbers of docs/onnx.md.

    python tools/measure_onnx.py respeaker-usb-4 --frames 100000 --results results/onnx/respeaker-usb-4.json

Frames are random plane waves in noise (`tytoalba.bench.onnx.random_frames`). 100 000 of them take an hour on
one core; what was counted so far is in the file all the time.
"""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tytoalba.bench.onnx import compared, phases_moved, timed
from tytoalba.learning.prior.registry import PriorMaps
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.onnx.builder import PRECISIONS
from tytoalba.localizer.onnx.graph import Known, onnx_bytes
from tytoalba.signal.array import load_array


def main() -> None:
    """Compare, and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("array")
    parser.add_argument("--frames", type=int, default=1000, help="for the precision same")
    parser.add_argument("--fast", type=int, default=1000, help="frames for the precision fast")
    parser.add_argument("--phases", type=int, default=1000, help="frames whose phases are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args()
    array = load_array(asked.array)
    known, finder = Known.of_array(array), MapFinder(array, "prior")
    result: dict[str, Any] = {
        "command": f"python tools/measure_onnx.py {array.name} --frames {asked.frames} --fast {asked.fast} "
        f"--phases {asked.phases} --seed {asked.seed}",
        "array": array.name,
        "seed": asked.seed,
        "versions": {name: version(name) for name in ("numpy", "scipy", "onnx", "onnxruntime")},
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }

    def keep(**found: Any) -> None:
        result.update(found)
        if asked.results:
            asked.results.parent.mkdir(parents=True, exist_ok=True)
            asked.results.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    keep(megabytes={name: round(len(onnx_bytes(known, name)) / 1e6, 2) for name in PRECISIONS})
    keep(milliseconds=timed(known, finder))
    keep(phases=phases_moved(array, PriorMaps(array, array.frame_length).prior.gcc, asked.phases, asked.seed))
    keep(fast=compared(known, finder, "fast", asked.fast, asked.seed))
    keep(same=compared(known, finder, "same", asked.frames, asked.seed, lambda found: keep(same=found)))
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
