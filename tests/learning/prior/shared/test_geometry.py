"""What the network is told of an array."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.waves import plane_waves
from tests.learning.prior.shared.helpers import geometry
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.errors import PriorError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared.exact import steered
from tytoalba.learning.prior.shared.geometry import CELLS, N_BANDS, Geometry
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, builtin_arrays

ARRAYS = [*builtin_arrays().values(), *(random_array(7, k) for k in range(6))]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.name)
def test_maps_over_all_pairs_are_highest_where_a_wave_comes_from(array: MicArray) -> None:
    gcc, told = prior_gcc(array), geometry(array)
    azimuth = np.arange(0.0, 360.0, 7.0)
    X = np.asarray(gcc(plane_waves(array, azimuth)), np.float32)
    codes = np.rint(X * 128).reshape(len(X), -1, told.n_bands, told.n_pairs, gcc.n_lags)
    pairs, together = steered(codes, told, told.steering)
    assert np.abs(pairs).max() <= 127
    assert np.abs(together).max() <= 511
    maps = together[:, 0].reshape(len(X), CELLS, N_BANDS, 3).sum(axis=2).reshape(len(X), 360)
    found = np.asarray(array.fold(maps.argmax(axis=1).astype(float)))
    apart = distance(found, array.fold(azimuth))
    assert np.median(apart) <= 2
    assert np.mean(apart <= 5) > (0.85 if array.mirror_axis is not None else 0.95)


def test_bands_that_a_rate_cannot_hold_are_told_as_missing() -> None:
    array = builtin_arrays()["respeaker-usb-4"]
    low = geometry(replace(array, sample_rate=8000))
    assert low.n_bands == 3
    assert (low.known[..., N_BANDS + 3] > 0).all()
    assert (geometry(array).known[..., N_BANDS : 2 * N_BANDS] == 0).all()


def changed(told: Geometry, **arrays: Any) -> Geometry:
    return replace(told, **arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: {"delays": told.delays[:, :-1]},
        lambda told: {"delays": told.delays.astype(np.int32)},
        lambda told: {"delays": told.delays + np.int16(10_000)},
        lambda told: {"table": told.table[:, :, :-1]},
        lambda told: {"table": told.table[:, :1]},
        lambda told: {"scale": told.scale[:-1]},
        lambda told: {"scale": told.scale + np.int8(100)},
        lambda told: {"scale": np.full_like(told.scale, -128)},  # made scores that are no numbers
        lambda told: {"known": told.known[:-1]},
        lambda told: {"known": told.known.astype(np.float32)},
    ],
)
def test_an_altered_geometry_is_refused(change: Any) -> None:
    told = geometry(builtin_arrays()["respeaker-usb-4"])
    with pytest.raises(PriorError, match="altered"):
        changed(told, **change(told))


def test_sums_over_all_pairs_stay_exact_for_every_array_that_is_let_in() -> None:
    """The largest there may be, and the widest."""
    places = [(0.3 * np.cos(a), 0.3 * np.sin(a), 0.01 * k) for k, a in enumerate(np.linspace(0, 6, 16))]
    large = MicArray("large", tuple(tuple(map(float, place)) for place in places), 48000)  # type: ignore[misc]
    for array in (large, random_array(2, 1)):
        told = geometry(array)
        assert np.abs(told.steering).sum(axis=(1, 2)).max() * 127 < 2**24
        assert np.abs(told.table.astype(int)).max() >= 16  # not coarser than need be
