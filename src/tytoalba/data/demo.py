"""The recording that ships with tytoalba: simulated, two talkers, made by tools/make_demo.py."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import NamedTuple

RESOURCES = Path(str(resources.files("tytoalba") / "resources"))

DEMO_ARRAY = "respeaker-usb-4"


class Segment(NamedTuple):
    """Somebody talks from `start` to `end` (seconds) at an azimuth (degrees)."""

    start: float
    end: float
    azimuth: float


def demo_recording() -> tuple[Path, list[Segment]]:
    """The demo recording (FLAC, 4 channels, 16 kHz, array `DEMO_ARRAY`), and who talks when and where.

    >>> path, truth = demo_recording()
    >>> path.name, truth[0]
    ('demo.flac', Segment(start=0.3, end=2.5, azimuth=40.0))
    """
    about = json.loads((RESOURCES / "demo.json").read_text(encoding="utf-8"))
    return RESOURCES / "demo.flac", [Segment(**segment) for segment in about["segments"]]
