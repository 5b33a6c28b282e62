"""Symmetries: what a mirrored or turned world sounds like is what the physics says, for every array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.waves import plane_waves
from tytoalba.signal.angles import distance, encode, wrap
from tytoalba.signal.array import MicArray, builtin_arrays, load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.symmetry import Symmetry, symmetries

SOME = ["pepper", "respeaker-usb-4", "respeaker-6mic", "linear-4"]


@pytest.mark.parametrize("name", SOME)
def test_a_moved_frame_is_the_frame_of_a_moved_source(name: str) -> None:
    array = load_array(name)
    gcc = GccPhat.for_array(array, array.frame_length, ((100.0, 3000.0), (3000.0, 7000.0)))
    for symmetry in symmetries(array):
        for azimuth in (0.0, 33.0, 118.0, 251.5):
            moved = gcc(plane_waves(array, azimuth)).reshape(1, -1)[:, symmetry.order(gcc)]
            there = gcc(plane_waves(array, float(symmetry.azimuth(np.array(azimuth))))).reshape(1, -1)
            assert np.allclose(moved, there, atol=0.02), (symmetry, azimuth)


@pytest.mark.parametrize("name", [*SOME, "minidsp-uma8"])
def test_swapped_channels_are_the_reordered_values_of_every_look(name: str) -> None:
    array = load_array(name)
    gcc = GccPhat.for_array(array, 1024, ((100.0, 3000.0), (3000.0, 7000.0)), parts=4)
    rng = np.random.default_rng(1)
    frames = rng.standard_normal((2, 1, 1024)) + rng.standard_normal((2, array.n_mics, 1024))
    values = gcc(frames).reshape(2, -1)
    assert np.abs(values).max() > 0.3
    for symmetry in symmetries(array):
        came_from = [symmetry.partner.index(place) for place in range(array.n_mics)]
        order = symmetry.order(gcc)
        assert sorted(order) == list(range(gcc.n_features))
        swapped = gcc(frames[:, came_from]).reshape(2, -1)
        np.testing.assert_allclose(swapped, values[:, order], rtol=0, atol=1e-12)
        n = gcc.whole.n_features
        assert np.array_equal(order[:n], symmetry.order(gcc.whole))  # looks do not mix
        assert np.array_equal(order.reshape(-1, n) % n, np.tile(order[:n], (1 + gcc.n_windows, 1)))
        assert np.array_equal(order // n, np.repeat(np.arange(1 + gcc.n_windows), n))


@pytest.mark.parametrize("name", builtin_arrays())
def test_symmetries_are_a_group_with_the_plain_view_first(name: str) -> None:
    found = symmetries(load_array(name))
    assert (found[0].mirrored, found[0].turn) == (False, 0)
    assert found[0].partner == tuple(range(len(found[0].partner)))
    known = {(s.mirrored, s.partner) for s in found}
    assert len(known) == len(found)
    for a in found:
        assert sorted(a.partner) == list(range(len(a.partner)))
    if name != "matrix-voice":  # sevenths of a circle are no whole degrees
        both = {
            (a.mirrored ^ b.mirrored, tuple(a.partner[k] for k in b.partner)) for a in found for b in found
        }
        assert both == known


@pytest.mark.parametrize("name", SOME)
def test_labels_move_with_their_sources_and_scores_come_back(name: str) -> None:
    azimuth = np.array([[10.0, 200.0], [359.0, np.nan]])
    several = np.random.default_rng(0).uniform(0, 360, (20, 2))
    for symmetry in symmetries(load_array(name)):
        moved = encode(several)[:, symmetry.columns]
        assert np.allclose(moved, encode(symmetry.azimuth(several)), atol=1e-9)
        assert np.allclose(symmetry.back(encode(symmetry.azimuth(azimuth))), encode(azimuth), atol=1e-6)
        assert np.isnan(symmetry.azimuth(azimuth)[1, 1])


def test_directional_microphones_must_face_alike() -> None:
    square = replace(load_array("respeaker-usb-4"), pattern=0.7)
    assert {(s.mirrored, s.turn) for s in symmetries(square)} == {(False, 0), (True, 0)}
    outward = np.rad2deg(np.arctan2(square.coordinates[:, 1], square.coordinates[:, 0]))
    assert len(symmetries(replace(square, facing=tuple(outward)))) == 8


def test_yaw_turns_the_mirror() -> None:
    turned = replace(load_array("pepper"), yaw=30.0)
    (_, mirror) = symmetries(turned)
    assert (mirror.mirrored, mirror.turn) == (True, 60)
    assert distance(mirror.azimuth(np.array(30.0)), 30.0) < 1e-9


def test_an_array_without_symmetry_has_one_view() -> None:
    crooked = MicArray("crooked", ((0.0, 0.0, 0.0), (0.05, 0.0, 0.0), (0.01, 0.07, 0.0)), 16000)
    assert symmetries(crooked) == (Symmetry((0, 1, 2), False, 0),)
    assert wrap(symmetries(crooked)[0].azimuth(np.array(5.0))) == 5.0
