"""The demo recording: small, as its truth says, and located by every method that needs no teaching."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.localizer.locate import locate
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import read_audio

ROOT = Path(__file__).parents[2]


def test_is_small_and_fits_its_array() -> None:
    path, truth = demo_recording()
    sound = read_audio(path, load_array(DEMO_ARRAY))
    assert path.stat().st_size <= 300_000
    assert sound.samples.shape == (4, 7 * 16000)
    assert len({segment.azimuth for segment in truth}) == 2
    assert all(0 <= segment.start < segment.end <= 7 for segment in truth)


@pytest.mark.parametrize("method", ["srp", "prior"])
def test_methods_find_who_talks_alone(method: str) -> None:
    path, truth = demo_recording()
    found = [frame for frame in locate(path, load_array(DEMO_ARRAY), method) if frame.azimuth]
    errors = []
    for frame in found:
        talking = [s.azimuth for s in truth if s.start <= frame.time < s.end]
        if len(talking) == 1:
            errors.append(float(distance(frame.azimuth[0], talking[0])))
    assert len(errors) > 35
    assert np.mean(np.array(errors) <= 10) > 0.9


def test_pause_is_silent() -> None:
    path, _ = demo_recording()
    pause = [frame for frame in locate(path, load_array(DEMO_ARRAY)) if 2.7 < frame.time < 3.1]
    assert pause
    assert not any(frame.azimuth for frame in pause)


def test_is_what_its_script_makes() -> None:
    path, truth = demo_recording()
    module = runpy.run_path(str(ROOT / "tools" / "make_demo.py"))
    assert list(module["SEGMENTS"]) == truth
    # machines add in different orders: a sample may fall on the next of its 4096 steps
    assert np.abs(module["make"]() - read_audio(path).samples).max() <= 2 / 2048
