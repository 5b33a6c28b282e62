"""Random arrays: as many kinds as there are, none of them built in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.arrays import moved
from tytoalba.data.simulation import random_arrays as module
from tytoalba.data.simulation.random_arrays import APART, APERTURE, N_MICS, random_array
from tytoalba.signal.alignment import fit
from tytoalba.signal.array import MicArray, builtin_arrays

ARRAYS = [random_array(0, number) for number in range(150)]


def test_a_number_gives_the_same_array_and_another_another() -> None:
    assert random_array(3, 5) == random_array(3, 5)
    assert random_array(3, 5) != random_array(3, 6)
    assert random_array(3, 5).positions != random_array(4, 5).positions


def test_they_are_of_all_kinds() -> None:
    assert {array.n_mics for array in ARRAYS} == set(range(N_MICS[0], N_MICS[1] + 1))
    assert {array.sample_rate for array in ARRAYS} == set(module.RATES)
    aperture = np.array([array.aperture for array in ARRAYS])
    assert APERTURE[0] - 1e-4 <= aperture.min() < 0.04 < 0.25 < aperture.max() <= APERTURE[1] + 1e-4
    lines = sum(array.mirror_axis is not None for array in ARRAYS)
    solid = sum(bool(np.ptp(array.coordinates[:, 2]) > 0.01) for array in ARRAYS)
    directional = sum(array.pattern < 1 for array in ARRAYS)
    assert min(lines, solid, directional) >= 10


@pytest.mark.parametrize("built", builtin_arrays().values(), ids=lambda array: array.name)
def test_none_is_built_in(built: MicArray) -> None:
    for array in ARRAYS:
        assert fit(replace(built, sample_rate=array.sample_rate, yaw=0.0), array, APART) is None


def test_a_built_in_array_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its order, turn, mirror image and rate."""
    built = builtin_arrays()["respeaker-usb-4"]
    copy = moved(built, range(built.n_mics)[::-1], 33.0, 0.2)
    mirrored = tuple((x, -y, z) for x, y, z in copy.positions)
    copy = replace(copy, positions=mirrored, sample_rate=48000)
    other = random_array(0, 0)
    drawn = iter([None, copy, built, other])
    monkeypatch.setattr(module, "_drawn", lambda *_: next(drawn))
    assert random_array(0, 1) is other
