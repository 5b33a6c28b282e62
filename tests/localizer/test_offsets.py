"""Offsets of a device: short sums whatever was taught, in whole numbers, and the offset that was there."""

from __future__ import annotations

from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.releases import rows
from tytoalba.learning.sums import gaussian_labels
from tytoalba.localizer.offsets import (
    A_TABLE,
    BOUND,
    COUNT,
    MEAN,
    N_SUMS,
    REACH,
    STEPS,
    V_TABLE,
    Offsets,
    Tally,
    clipped,
    moved,
    offset_curve,
    offsets_of,
)

few = settings(max_examples=60, deadline=None)


def norm(sums: NDArray[np.int64]) -> int:
    square = sum(int(v) ** 2 for v in sums)
    return isqrt(square - 1) + 1 if square else 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(["noise", "peaks", "ones", "taught"]))
@few
def test_no_lesson_adds_more_than_the_bound(seed: int, n: int, kind: str) -> None:
    """Whatever its rows are: labels and scores of any values, as a file or an attacker may give them."""
    rng = np.random.default_rng(seed)
    if kind == "noise":
        Y = rng.integers(0, 128, (n, 720)).astype(np.int8)
    elif kind == "ones":
        Y = np.full((n, 720), 127, np.int8)
    elif kind == "peaks":
        Y = np.where(rng.random((n, 720)) < 0.02, 127, 0).astype(np.int8)
    else:
        degree = rng.uniform(0, 360, (n, 1)) + np.array([0, 180])
        Y = rows(degree, degree + REACH * rng.choice([-1, 1]))
    own = offsets_of(Y)
    assert norm(own.lessons) <= BOUND
    for k in range(n):
        assert norm(offsets_of(Y[k : k + 1]).frames) <= BOUND


@pytest.mark.parametrize("degree", range(0, 360, 15))
@pytest.mark.parametrize("off", [-REACH, REACH])
def test_the_worst_lessons_come_close_to_the_bound(degree: int, off: int) -> None:
    """So that it is not larger, and the noise with it, than it must be."""
    own = offsets_of(rows(np.full((3, 1), degree), np.full((3, 1), degree + off)))
    assert 0.95 * BOUND < norm(own.lessons) <= BOUND


def test_the_bound_is_that_of_its_formula() -> None:
    longest = max(
        REACH**2 * int((v**2).sum()) + COUNT**2 * int((a**2).sum())
        for v, a in zip(V_TABLE, A_TABLE, strict=True)
    )
    assert MEAN * longest**0.5 + N_SUMS**0.5 <= BOUND <= MEAN * longest**0.5 + N_SUMS**0.5 + 2
    assert abs(A_TABLE).max() == STEPS


def test_blocks_of_a_lesson_add_up_to_the_lesson() -> None:
    Y = rows(np.linspace(0, 350, 36)[:, None], np.linspace(3, 353, 36)[:, None])
    tally = Tally()
    for start in (0, 5, 6, 30):
        tally.add(Y[start : {0: 5, 5: 6, 6: 30, 30: 36}[start]])
    assert all(np.array_equal(a, b) for a, b in zip(tally.offsets(), offsets_of(Y), strict=True))


def test_a_lesson_counts_once_however_long_and_a_frame_each_time() -> None:
    Y = rows(np.array([[40.0]]), np.array([[43.0]]))
    once, often = offsets_of(Y), offsets_of(Y.repeat(50, axis=0))
    assert np.array_equal(once.lessons, often.lessons)
    assert np.array_equal(50 * once.frames, often.frames)


def test_frames_that_show_no_offset_add_nothing() -> None:
    nothing = Offsets.none()
    unheard = rows(np.array([[40.0]]), np.array([[200.0]]))
    too_near = rows(np.array([[40.0, 60.0]]), np.array([[40.0, 60.0]]))
    for Y in (unheard, too_near, unheard[:0], np.zeros((2, 360), np.int8)):
        assert all(np.array_equal(a, b) for a, b in zip(offsets_of(Y), nothing, strict=True))


def test_two_sources_count_as_two_places_of_one_frame() -> None:
    Y = rows(np.array([[40.0, 200.0]]), np.array([[42.0, 202.0]]))
    v0 = offsets_of(Y).frames[0]
    assert v0 == MEAN * STEPS * 2


@given(st.lists(st.integers(-(2**40), 2**40), min_size=N_SUMS, max_size=N_SUMS), st.integers(1, 10**6))
@few
def test_clipping_bounds_the_length_and_keeps_what_is_short(values: list[int], most: int) -> None:
    sums = np.array(values, np.int64)
    short = clipped(sums, most)
    assert sum(int(v) ** 2 for v in short) <= most**2
    if sum(v * v for v in values) <= most**2:
        assert np.array_equal(short, sums)
    assert all(int(a) * int(b) >= 0 for a, b in zip(short, sums, strict=True))


def test_maps_are_moved_to_where_the_sound_is() -> None:
    curve = offset_curve(np.array([2.0, -1.0, 3.0]))
    true = np.arange(0, 360, 10)
    heard = true + curve[true]
    maps = gaussian_labels(heard[:, None], 8.0, 360).astype(np.float32)
    assert np.abs(moved(maps, curve).argmax(axis=1) - true).max() <= 1
    assert np.array_equal(moved(maps, np.zeros(360)), maps)
