"""From sound in the air to degrees: every built-in array, every whole degree, as audio samples."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import tytoalba
from tests.helpers.waves import plane_waves
from tytoalba.localizer.locate import MapFinder
from tytoalba.signal.angles import decode, distance

ARRAYS = tytoalba.builtin_arrays()
ALL_ROUND = np.arange(360.0)
PLANAR = sorted(set(ARRAYS) - {"linear-4"})


def heard(
    array: tytoalba.MicArray, azimuth: NDArray[np.float64], n_samples: int = 2048, elevation: float = 0.0
) -> NDArray[np.float32]:
    """What the microphones record of a noise from each azimuth, 30 dB above their own."""
    return plane_waves(array, azimuth, n_samples, elevation, noise=10 ** (-30 / 20)).astype(np.float32)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_every_degree_is_found_by_every_array(array: tytoalba.MicArray) -> None:
    maps = tytoalba.srp_phat(heard(array, ALL_ROUND), array)
    found = decode(maps)
    assert distance(array.fold(found), array.fold(ALL_ROUND)).max() <= 2.0
    if array.mirror_axis is None:
        assert distance(found, ALL_ROUND).max() <= 2.0  # nothing was folded away
    assert maps.max(axis=1).min() > 0.9


@pytest.mark.parametrize("name", ["pepper", "linear-4", "respeaker-usb-4"])
def test_every_degree_is_found_by_an_array_that_is_mounted_turned(name: str) -> None:
    array = ARRAYS[name].rotated(143.0)
    frames = heard(array, ALL_ROUND)
    found = decode(tytoalba.srp_phat(frames, array))
    assert distance(array.fold(found), array.fold(ALL_ROUND)).max() <= 2.0
    # the same sound, taken for that of the array as built, is found turned back by the yaw
    own = ARRAYS[name]
    found = decode(tytoalba.srp_phat(frames, own))
    assert distance(own.fold(found), own.fold(ALL_ROUND - 143.0)).max() <= 2.0


def test_array_on_a_line_hears_front_and_back_alike() -> None:
    array = ARRAYS["linear-4"]
    front = np.arange(-80.0, 81.0, 10.0)
    ahead, behind = (tytoalba.srp_phat(heard(array, a), array) for a in (front, 180.0 - front))
    # the sound is the same, and so is the map; it is its own mirror image at the line 90-270
    np.testing.assert_allclose(ahead, behind, atol=1e-5)
    np.testing.assert_allclose(ahead, ahead[:, (180 - np.arange(360)) % 360], atol=1e-5)
    assert distance(array.fold(decode(behind)), front).max() <= 2.0


@pytest.mark.parametrize("name", PLANAR)
def test_planar_array_hears_above_and_below_alike(name: str) -> None:
    array = ARRAYS[name]
    azimuth = np.arange(0.0, 360.0, 10.0)
    above, below = (heard(array, azimuth, elevation=e) for e in (35.0, -35.0))
    np.testing.assert_allclose(above, below, atol=1e-5)
    srp = tytoalba.SrpPhat(array, 2048, elevation=35.0)
    maps = srp(above)
    np.testing.assert_allclose(maps, srp(below), atol=1e-4)
    assert distance(decode(maps), azimuth).max() <= 2.0
    # the azimuth holds even when the elevation is not known
    assert distance(decode(tytoalba.srp_phat(above, array)), azimuth).max() <= 2.0


def test_solid_array_hears_above_and_below_apart() -> None:
    array = tytoalba.MicArray(
        "solid", ((0.05, 0.0, 0.0), (-0.03, 0.04, 0.0), (-0.03, -0.04, 0.0), (0.0, 0.0, 0.06))
    )
    assert array.ambiguities == ()
    azimuth = np.arange(0.0, 360.0, 10.0)
    below = heard(array, azimuth, elevation=-35.0)
    right, wrong = (tytoalba.SrpPhat(array, 2048, elevation=e)(below) for e in (-35.0, 35.0))
    assert distance(decode(right), azimuth).max() <= 2.0
    assert (right.max(axis=1) > wrong.max(axis=1) + 0.2).all()


@pytest.mark.parametrize("method", ["srp", "music"])
def test_every_direction_is_located_frame_by_frame(method: str) -> None:
    array = ARRAYS["respeaker-4mic-hat"].rotated(30.0)
    azimuth = ALL_ROUND if method == "srp" else ALL_ROUND[::12]
    frames = 0.1 * heard(array, azimuth, array.frame_length)
    finder = MapFinder(array, method)
    found = finder.decide(finder.maps(frames.astype(np.float32)))
    assert found.azimuth.shape == found.score.shape == (len(azimuth), 1)
    assert distance(found.azimuth[:, 0], azimuth).max() <= 2.0
    assert found.score.min() > 0.6
    assert found.probability is None


def test_located_directions_of_a_line_are_folded_to_its_front() -> None:
    array = ARRAYS["linear-4"]
    azimuth = ALL_ROUND[::4]
    finder = MapFinder(array)
    found = finder.decide(finder.maps(heard(array, azimuth, array.frame_length))).azimuth[:, 0]
    assert distance(found, array.fold(azimuth)).max() <= 2.0
    assert distance(found, 0.0).max() <= 90.0


def test_swapped_channels_are_not_found_where_they_are() -> None:
    """The commonest mistake of all: the test above would notice it."""
    array = ARRAYS["pepper"]
    swapped = heard(array, ALL_ROUND)[:, [1, 0, 2, 3]]
    off = distance(decode(tytoalba.srp_phat(swapped, array)), ALL_ROUND)
    assert np.mean(off > 2.0) > 0.8
