"""A localizer for an array that has no prior of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.waves import plane_waves
from tytoalba import Localizer
from tytoalba.learning.prior.shared import prior as shared
from tytoalba.localizer.state import State
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, load_array

MINE = replace(
    load_array("respeaker-usb-4"),
    name="mine",
    sample_rate=24000,
    yaw=20.0,
    positions=((0.05, 0.0, 0.0), (0.0, 0.04, 0.01), (-0.06, 0.0, 0.0), (0.0, -0.07, 0.0)),
)


@pytest.fixture(autouse=True)
def few_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "N_SCENES", 3)


def sound(array: MicArray, azimuth: float, seed: int = 0) -> np.ndarray:
    """Two seconds from a direction, (n_mics, n_samples)."""
    waves = plane_waves(array, np.full(12, azimuth), noise=0.3, seed=seed)
    return np.asarray(np.concatenate(list(waves), axis=1), np.float32)


def test_it_is_taught_and_forgets_exactly() -> None:
    localizer = Localizer.new(MINE, n_features=60, seed=1)
    before = localizer.state.to_bytes()
    localizer.teach(sound(MINE, 100.0), 90.0)
    first = localizer.state.to_bytes()
    localizer.teach(sound(MINE, 200.0, 1), 210.0)
    localizer.forget(sound(MINE, 200.0, 1), 210.0)
    assert localizer.state.to_bytes() == first
    localizer.forget(sound(MINE, 100.0), 90.0)
    assert localizer.state.to_bytes() == before


def test_a_file_gives_it_back_and_it_is_merged() -> None:
    one = Localizer.new(MINE, n_features=60, seed=1)
    other = Localizer.like(one)
    one.teach(sound(MINE, 100.0), 90.0)
    other.teach(sound(MINE, 200.0, 1), 210.0)
    both = State.from_bytes(one.state.to_bytes())
    both.merge(State.from_bytes(other.state.to_bytes()))
    one.merge(other)
    assert one.state.to_bytes() == both.to_bytes()
    assert np.array_equal(both.prior.digest, one.state.prior.digest)


def test_what_it_is_taught_beats_what_it_knew() -> None:
    """The array is mounted 15 degrees beside what its file says: it learns that."""
    localizer = Localizer.new(MINE, n_features=200, seed=1)
    for azimuth in range(0, 360, 30):
        localizer.teach(sound(MINE, azimuth - 15.0, seed=azimuth), float(azimuth))
    apart = [
        float(distance(found.azimuth[0], azimuth))
        for azimuth in (30.0, 120.0, 270.0)
        for found in localizer.locate(sound(MINE, azimuth - 15.0, seed=7 + int(azimuth)))
    ]
    assert len(apart) > 10
    assert np.median(apart) <= 5
