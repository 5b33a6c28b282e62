"""How near ONNX files come to tytoalba, how fast and how large they are: the numbers of docs/onnx.md.

    python tools/measure_onnx.py respeaker-usb-4 --frames 100000 --fast 10000 --phases 20000 --results FILE
    python tools/measure_onnx.py respeaker-usb-4 --seconds 20 --sizes --results FILE

Frames are random plane waves in noise (`tytoalba.bench.onnx.random_frames`). 100 000 of them take half an
hour on one core, and longer beside others; what was counted so far is in the file all the time.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tytoalba.bench.onnx import compared, phases_moved, timed
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.onnx.builder import PRECISIONS
from tytoalba.localizer.onnx.graph import Known, onnx_bytes
from tytoalba.signal.array import load_array

EXACT = ("respeaker-usb-4", "pepper")
"""Arrays whose localizers, with the usual number of features, are written too."""


def main() -> None:
    """Measure what is asked for, and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("array")
    parser.add_argument("--frames", type=int, default=0, help="whose scores are compared, precision same")
    parser.add_argument("--fast", type=int, default=0, help="frames whose scores are compared, fast")
    parser.add_argument("--phases", type=int, default=0, help="frames whose phases are compared")
    parser.add_argument("--seconds", type=float, default=0.0, help="for which time is taken")
    parser.add_argument("--sizes", action="store_true", help="of the files of all arrays with a prior")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args()
    array = load_array(asked.array)
    known, finder = Known.of_array(array), MapFinder(array, "prior")
    result: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]),
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

    if asked.sizes:
        arrays = [Known.of_array(load_array(name)) for name in shipped_priors()]
        keep(megabytes={one.array.name: {p: _size(one, p) for p in PRECISIONS} for one in arrays})
        exact = {name: Known.of_model(Localizer.new(name, seed=0).model) for name in EXACT}
        keep(exact_megabytes={name: {p: _size(one, p) for p in PRECISIONS} for name, one in exact.items()})
    if asked.seconds:
        keep(milliseconds=timed(known, finder, asked.seconds))
    if asked.phases:
        keep(phases=phases_moved(array, known.prior.gcc, asked.phases, asked.seed))
    if asked.fast:
        keep(fast=compared(known, finder, "fast", asked.fast, asked.seed))
    if asked.frames:
        keep(same=compared(known, finder, "same", asked.frames, asked.seed, lambda found: keep(same=found)))
    print(json.dumps(result, indent=1))


def _size(known: Known, precision: Any) -> float:
    return round(len(onnx_bytes(known, precision)) / 1e6, 2)


if __name__ == "__main__":
    main()
