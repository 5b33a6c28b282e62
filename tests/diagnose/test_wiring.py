"""Wirings: what they predict is what the array built that way hears, and which of them are one thing."""

from __future__ import annotations

from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.diagnose.search import between_lags, places_of
from tytoalba.diagnose.wiring import (
    ELEVATIONS,
    Wiring,
    all_orders,
    congruences,
    hypotheses,
    plainness,
    predicted,
    representatives,
    same_file,
    slightly_turned,
)
from tytoalba.signal.array import MicArray, builtin_arrays, load_array

CROOKED = MicArray(
    "crooked", ((0.0, 0.01, 0.02), (0.05, 0.0, 0.0), (0.01, 0.07, -0.03)), 16000, yaw=20.0, facing=(0, 30, 60)
)
ARRAYS = [*builtin_arrays().values(), CROOKED]
SIZES = {
    "linear-4": 1,
    "matrix-voice": 14,
    "minidsp-uma8": 12,
    "pepper": 8,  # a rectangle that is nearly a square
    "respeaker-4mic-hat": 8,
    "respeaker-6mic": 12,
    "respeaker-core-v2": 12,
    "respeaker-usb-4": 8,
}


@given(data=st.data())
@settings(max_examples=40)
def test_what_is_predicted_is_what_the_applied_array_hears(data: Any) -> None:
    array = data.draw(st.sampled_from(ARRAYS))
    order = data.draw(st.permutations(range(array.n_mics)))
    wiring = Wiring(tuple(order), data.draw(st.booleans()), data.draw(st.sampled_from([0.0, 35.0, 190.0])))
    azimuth = np.array([data.draw(st.floats(0, 360)), 77.0])
    delays = predicted(array, wiring.mirrored, wiring.turn, azimuth)  # (A, M, M, E)
    built = wiring.applied(array)
    for e, elevation in enumerate(ELEVATIONS):
        heard = built.pair_delays(azimuth, elevation) * array.sample_rate
        for p, (a, b) in enumerate(array.pairs):
            assert np.allclose(delays[:, order[a], order[b], e], heard[:, p], atol=1e-9)


def test_applying_moves_positions_facing_and_yaw() -> None:
    assert Wiring((0, 1, 2)).applied(CROOKED) == CROOKED
    moved = Wiring((2, 0, 1), True, 350.0).applied(CROOKED)
    assert moved.positions[0] == (0.01, -0.07, 0.03)
    assert moved.facing == (-60.0, 0.0, -30.0)
    assert moved.yaw == pytest.approx(10.0)
    assert moved.channels == CROOKED.channels
    assert Wiring((0, 1, 2), mirrored=True).applied(Wiring((0, 1, 2), True).applied(CROOKED)) == CROOKED
    one_facing = replace(CROOKED, facing=(30.0,))
    assert Wiring((2, 0, 1), True).applied(one_facing).facing == (-30.0,)


@pytest.mark.parametrize("name", builtin_arrays())
def test_congruences_are_a_group_and_representatives_its_cosets(name: str) -> None:
    array = load_array(name)
    group = {tuple(row) for row in congruences(array).tolist()}
    assert len(group) == SIZES[name]
    assert {tuple(a[k] for k in b) for a in group for b in group} == group
    some = representatives(array)
    assert some[0].tolist() == list(range(array.n_mics))
    assert len(some) * len(group) == factorial(array.n_mics)
    covered = {tuple(g[k] for k in row) for row in some[:50].tolist() for g in group}
    assert len(covered) == len(some[:50]) * len(group)


def test_every_order_is_tried_or_of_many_microphones_swaps_and_shifts() -> None:
    assert len(all_orders(5)) == 120
    many = {tuple(row) for row in all_orders(9).tolist()}
    plain = tuple(range(9))
    assert len(many) == 1 + 36 + 8 + 9
    assert {plain, plain[1:] + plain[:1], plain[::-1], (1, 0, *plain[2:]), (8, *plain[1:8], 0)} <= many


def test_two_names_of_one_thing() -> None:
    pepper, plain = load_array("pepper"), Wiring((0, 1, 2, 3))
    every = range(4)
    assert same_file(pepper, Wiring((1, 0, 3, 2)), replace(plain, mirrored=True), every)
    assert same_file(pepper, Wiring((3, 2, 1, 0)), replace(plain, turn=180.0), every)  # but for a shift
    assert not same_file(pepper, plain, replace(plain, turn=180.0), every)
    assert not same_file(pepper, plain, Wiring((0, 1, 3, 2)), every)
    assert same_file(pepper, plain, Wiring((0, 1, 3, 2)), (0, 1))  # where only these two are used
    square = load_array("respeaker-usb-4")
    assert same_file(square, Wiring((1, 2, 3, 0)), replace(plain, turn=90.0), every)


def test_a_slight_turn_is_the_same_wiring() -> None:
    square, plain = load_array("respeaker-usb-4"), Wiring((0, 1, 2, 3))
    assert slightly_turned(square, plain, replace(plain, turn=20.0))
    assert slightly_turned(square, Wiring((1, 2, 3, 0)), replace(plain, turn=75.0))
    assert not slightly_turned(square, plain, replace(plain, turn=25.0))
    assert not slightly_turned(square, plain, Wiring((1, 0, 2, 3)))


def test_the_plainest_wiring_comes_first() -> None:
    wirings = [Wiring((1, 0, 2), True), Wiring((1, 2, 0)), Wiring((1, 0, 2)), Wiring((0, 1, 2), turn=90.0)]
    wirings += [Wiring((0, 1, 2), True), Wiring((0, 1, 2))]
    found = sorted(wirings, key=plainness)
    assert found[0] == Wiring((0, 1, 2))
    assert found[1].order == found[2].order == (0, 1, 2)
    assert found[3:] == [Wiring((1, 0, 2)), Wiring((1, 2, 0)), Wiring((1, 0, 2), True)]


def test_hypotheses_hold_every_order_once_as_filed_and_every_turn() -> None:
    square = load_array("respeaker-usb-4")
    tried = hypotheses(square, turned=False)
    assert tried[0][0] == (False, 0.0)
    assert len(tried[0][1]) == 24
    assert len(tried) == 72
    assert len(tried[1][1]) == 1  # mirrored, a square is one of the orders
    assert len(hypotheses(load_array("linear-4"), turned=False)[1][1]) == 24  # its mirror image is not
    assert {len(orders) for _, orders in hypotheses(square, turned=True)[2:]} == {3}


def test_lags_are_read_between_samples() -> None:
    lags = np.arange(-30, 31)
    wave = between_lags(np.sinc(0.8 * (lags - 3.3)))  # band-limited to 0.8 of Nyquist, peak at 3.3
    delays = np.linspace(-10, 10, 81)
    k, share = places_of(delays, len(wave))
    read = wave[k] * (1 - share) + wave[k + 1] * share
    assert np.allclose(read, np.sinc(0.8 * (delays - 3.3)), atol=0.03)
    assert int(wave.argmax()) == round((30 + 3.3) * 16)
    k, share = places_of(np.array([-1e9, 1e9]), len(wave))  # beyond the lags: the last of them
    assert k.tolist() == [0, len(wave) - 2]
