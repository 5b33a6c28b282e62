"""Programs that stand in for ODAS's `odaslive`."""

from __future__ import annotations

import sys
from pathlib import Path

FAKE = """
import re
text = open("odas.cfg").read()
hop = int(re.search(r"hopSize = (\\d+)", text)[1])
n_mics = int(re.search(r"nChannels = (\\d+)", text)[1])
n_hops = len(open("sound.raw", "rb").read()) // (2 * n_mics * hop)
with open("tracks.json", "w") as out:
    for k in range(1, n_hops + 2):
        activity = 0.9 if k % 2 else 0.2
        out.write('{\\n    "timeStamp": %d,\\n    "src": [\\n' % k)
        out.write('        { "id": 7, "tag": "dynamic", "x": 0.000, "y": -1.000, "z": 0.1, "activity": ')
        out.write('%.3f },\\n        { "id": 0, "x": 0, "y": 0, "z": 0, "activity": 0 }\\n' % activity)
        out.write('    ]\\n}\\n')
"""
"""Somebody at 270 degrees, number 7, in every hop, with an activity of 0.9 and 0.2 in turn."""


def program(folder: Path, text: str, name: str = "odaslive") -> Path:
    """A program that runs some Python."""
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\n{text}", "utf-8")
    path.chmod(0o755)
    return path
