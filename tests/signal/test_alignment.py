"""Whether two arrays are the same microphones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.arrays import moved
from tytoalba.signal.alignment import fit, same_places
from tytoalba.signal.array import MicArray, builtin_arrays, load_array
from tytoalba.signal.symmetry import symmetries

MINE = replace(load_array("respeaker-usb-4"), name="mine", yaw=7.0)


@pytest.mark.parametrize("name", sorted(builtin_arrays()))
def test_microphones_may_be_a_millimetre_beside_their_places_and_not_two(name: str) -> None:
    built = load_array(name)
    for beside, fits in ((0.0009, True), (0.002, False)):
        places = built.coordinates.copy()
        centred = places[-1] - places.mean(axis=0)
        places[-1] += beside * built.n_mics / (built.n_mics - 1) * centred / np.linalg.norm(centred)
        mine = moved(replace(built, positions=tuple(map(tuple, places))), range(built.n_mics)[::-1], 33.0)
        how = fit(built, mine)
        assert (how is not None) == fits
        if how:
            assert how.order == tuple(range(built.n_mics))[::-1] or len(symmetries(built)) > 1


def test_a_mirrored_array_is_another_one_unless_it_is_symmetric() -> None:
    bent = MicArray("bent", ((0.05, 0.01, 0.0), (0.0, 0.04, 0.0), (-0.03, -0.02, 0.0), (0.0, -0.05, 0.0)))
    for array, fits in ((bent, False), (load_array("pepper"), True), (load_array("respeaker-6mic"), True)):
        mirrored = replace(array, positions=tuple((x, -y, z) for x, y, z in array.positions))
        assert (fit(array, mirrored) is not None) == fits
        how = fit(array, moved(array, range(array.n_mics), 360.0 - 77.0))
        assert how is not None
        assert how.order == tuple(range(array.n_mics))
        assert how.turn == pytest.approx(283.0)
    above = replace(MINE, positions=tuple((x, y, 0.002 * k) for k, (x, y, _) in enumerate(MINE.positions)))
    assert fit(MINE, above) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"name": "other", "description": "painted blue", "channels": (5, 4, 2, 0)}, True),
        ({"yaw": 367.0}, True),
        ({"yaw": 10.0}, False),
        ({"sample_rate": 48000}, False),
        ({"positions": MINE.positions[:3], "channels": ()}, False),
        ({"positions": MINE.positions[::-1]}, False),
        ({"positions": tuple((x + 1e-4, y, z) for x, y, z in MINE.positions)}, True),
        ({"positions": tuple((x + 2e-3, y, z) for x, y, z in MINE.positions)}, False),
    ],
)
def test_the_same_places(changes: dict[str, Any], same: bool) -> None:
    other = replace(MINE, **changes)
    assert same_places(MINE, other) is same
    assert same_places(other, MINE) is same
