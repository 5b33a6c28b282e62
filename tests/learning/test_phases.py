"""Phases: every direction and every frame in one of them, however they are ordered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.learning.phases import ORDERS, Order, Phase, generalised, groups, phase_of, split
from tytoalba.signal.angles import to_class

orders = st.sampled_from(ORDERS)
seeds = st.integers(0, 5)


def stream(n: int = 4000, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Frames that can be told apart, with none, one or two sources; X holds the frame's number."""
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(0, 360, (n, 2))
    azimuth[rng.random(n) < 0.6, 1] = np.nan
    azimuth[rng.random(n) < 0.1] = np.nan
    return np.arange(n, dtype=np.float32)[:, None], azimuth


def numbers(phase: Phase) -> list[int]:
    """Which frames of the stream a phase has."""
    return [int(x) for x in phase.X[:, 0]]


# ---- directions ----


@given(st.integers(1, 360), orders, seeds)
def test_every_direction_is_in_exactly_one_group(n_phases: int, order: Order, seed: int) -> None:
    made = groups(n_phases, order, seed)
    assert len(made) == n_phases
    assert sorted(np.concatenate(made).tolist()) == list(range(360))
    sizes = [len(group) for group in made]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(group) > 0).all() for group in made)


@given(st.integers(1, 72), orders)
def test_any_number_of_directions(n_phases: int, order: Order) -> None:
    made = groups(n_phases, order, n_directions=72)
    assert sorted(np.concatenate(made).tolist()) == list(range(72))


def test_what_the_orders_mean() -> None:
    assert [group.tolist() for group in groups(10)] == [list(range(k, k + 36)) for k in range(0, 360, 36)]
    assert [group.tolist() for group in groups(3, "interleaved", n_directions=7)] == [
        [0, 3, 6],
        [1, 4],
        [2, 5],
    ]
    first, again, other = (np.concatenate(groups(10, "shuffled", seed)).tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first != sorted(first)
    assert np.concatenate(groups(10, "contiguous", 1)).tolist() == np.concatenate(groups(10)).tolist()


@pytest.mark.parametrize("n_phases", [0, -1, 361])
def test_a_number_of_phases_that_cannot_be(n_phases: int) -> None:
    with pytest.raises(ValueError, match=f"n_phases must be between 1 and 360, got {n_phases}"):
        groups(n_phases)


def test_an_order_that_nobody_knows() -> None:
    order: Any = "backwards"
    with pytest.raises(ValueError, match="contiguous, shuffled, interleaved, got 'backwards'"):
        groups(10, order)


# ---- frames ----


@given(st.integers(1, 40), orders, seeds)
def test_every_frame_with_a_source_is_in_exactly_one_phase(n_phases: int, order: Order, seed: int) -> None:
    X, azimuth = stream(300, seed)
    directions = groups(n_phases, order, seed)
    phases = split(X, azimuth, directions)
    heard = np.flatnonzero(np.isfinite(azimuth).any(axis=1))
    assert sorted(n for phase in phases for n in numbers(phase)) == heard.tolist()
    for phase, classes in zip(phases, directions, strict=True):
        assert len(phase) == len(phase.azimuth)
        np.testing.assert_array_equal(phase.directions, classes)
        np.testing.assert_array_equal(phase.azimuth, azimuth[numbers(phase)])


@given(st.integers(1, 40), orders, seeds)
def test_the_phase_of_a_frame_is_the_latest_of_its_sources(n_phases: int, order: Order, seed: int) -> None:
    _, azimuth = stream(100, seed)
    directions = groups(n_phases, order, seed)
    home = {int(c): k for k, classes in enumerate(directions) for c in classes}
    expected = [
        max((home[int(to_class(a))] for a in row if np.isfinite(a)), default=-1)  # one source at a time
        for row in azimuth
    ]
    assert phase_of(azimuth, directions).tolist() == expected


def test_edges() -> None:
    azimuth = np.array(
        [[0.0, np.nan], [359.7, np.nan], [35.4, np.nan], [35.6, np.nan], [350.0, 10.0], [10.0, 350.0],
         [np.nan, 40.0], [np.nan, np.nan], [-1.0, np.nan]]
    )  # fmt: skip
    assert phase_of(azimuth, groups(10)).tolist() == [0, 0, 0, 1, 9, 9, 1, -1, 9]
    assert phase_of(azimuth[:0], groups(10)).tolist() == []
    assert phase_of(azimuth[:2], groups(10)[1:]).tolist() == [-1, -1]  # a direction of no phase


# ---- a stream that is less tidy ----


def untidy(seed: int = 0, overlap: float = 0.0, imbalance: float = 1.0, n: int = 40000) -> list[Phase]:
    rng = np.random.default_rng(seed)
    return generalised(*stream(n), groups(5), rng, overlap=overlap, imbalance=imbalance)


def test_without_overlap_and_imbalance_it_is_the_tidy_one() -> None:
    for tidy, other in zip(split(*stream(), groups(5)), untidy(n=4000), strict=True):
        np.testing.assert_array_equal(tidy.X, other.X)
        np.testing.assert_array_equal(tidy.azimuth, other.azimuth)
        np.testing.assert_array_equal(other.directions, np.union1d(tidy.directions, to_class(visited(tidy))))


def visited(phase: Phase) -> NDArray[np.float64]:
    """All azimuths of a phase."""
    found: NDArray[np.float64] = phase.azimuth[np.isfinite(phase.azimuth)].astype(np.float64)
    return found


@pytest.mark.parametrize("overlap", [0.1, 0.5, 0.9])
def test_overlap_is_the_share_of_visitors(overlap: float) -> None:
    _, azimuth = stream(40000)
    belongs = phase_of(azimuth, groups(5))
    phases = untidy(overlap=overlap)
    assert sum(map(len, phases)) == np.count_nonzero(belongs >= 0)
    strangers = sum(np.count_nonzero(belongs[numbers(phase)] != k) for k, phase in enumerate(phases))
    assert strangers / np.count_nonzero(belongs >= 0) == pytest.approx(overlap, abs=0.01)


def test_imbalance_is_the_largest_phase_over_the_smallest() -> None:
    azimuth = np.random.default_rng(1).uniform(0, 360, (400_000, 1))
    X = np.zeros((len(azimuth), 1), np.float32)
    for overlap in (0.0, 0.3):
        rng = np.random.default_rng(2)
        phases = generalised(X, azimuth, groups(5), rng, overlap=overlap, imbalance=16.0)
        sizes = np.array(sorted(map(len, phases), reverse=True))
        np.testing.assert_allclose(sizes / sizes[0], [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16], rtol=0.06)
    one = generalised(X, azimuth, groups(1), np.random.default_rng(0), overlap=0.5, imbalance=4.0)
    assert [len(phase) for phase in one] == [len(X)]


@given(st.floats(0, 0.99), st.floats(1, 50), seeds)
def test_every_frame_at_most_once_and_the_same_from_the_seed(
    overlap: float, imbalance: float, seed: int
) -> None:
    _, azimuth = stream(300)
    first, again = (untidy(seed, overlap, imbalance, n=300) for _ in range(2))
    used = [n for phase in first for n in numbers(phase)]
    assert len(set(used)) == len(used)
    assert np.isfinite(azimuth[used]).any(axis=1).all()
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.X, two.X)
        np.testing.assert_array_equal(one.directions, two.directions)
        assert set(to_class(visited(one)).tolist()) <= set(one.directions.tolist())


def test_other_seeds_give_other_streams() -> None:
    assert numbers(untidy(0, overlap=0.5, n=300)[0]) != numbers(untidy(1, overlap=0.5, n=300)[0])


@pytest.mark.parametrize(("overlap", "imbalance"), [(1.0, 1.0), (-0.1, 1.0), (0.0, 0.5), (np.nan, 1.0)])
def test_shares_that_cannot_be(overlap: float, imbalance: float) -> None:
    with pytest.raises(ValueError, match="overlap must be in"):
        untidy(overlap=overlap, imbalance=imbalance, n=10)
