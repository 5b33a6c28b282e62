"""Measures of the accuracy matrix by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.bench import continual as continual
from tytoalba.signal import metrics as metrics

NAN = math.nan
A = [[0.9, NAN, NAN], [0.5, 0.8, NAN], [0.6, 0.9, 0.7]]
MEASURES: list[Callable[..., Any]] = [
    continual.seen_accuracy,
    continual.average_incremental_accuracy,
    continual.last_accuracy,
    continual.forgetting,
    continual.backward_transfer,
]


# ---- the accuracy matrix ----


def test_matrix_by_hand() -> None:
    np.testing.assert_allclose(continual.seen_accuracy(A), [0.9, 0.65, 2.2 / 3])
    np.testing.assert_allclose(continual.seen_accuracy(A, [10, 30, 60]), [0.9, 0.725, 0.75])
    assert continual.average_incremental_accuracy(A) == pytest.approx((0.9 + 0.65 + 2.2 / 3) / 3)
    assert continual.average_incremental_accuracy(A, [10, 30, 60]) == pytest.approx((0.9 + 0.725 + 0.75) / 3)
    assert continual.last_accuracy(A) == pytest.approx(2.2 / 3)
    assert continual.last_accuracy(A, [10, 30, 60]) == pytest.approx(0.75)
    assert continual.forgetting(A) == pytest.approx(((0.9 - 0.6) + (0.8 - 0.9)) / 2)
    assert continual.forgetting(A, include_last=True) == pytest.approx((0.9 - 0.6) / 2)
    assert continual.backward_transfer(A) == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)


def test_the_future_is_never_read_nor_written() -> None:
    past = np.array(A)
    future = np.where(np.isnan(past), 123.0, past)
    for measure in MEASURES:
        np.testing.assert_array_equal(measure(future), measure(past))
    assert future[0, 2] == 123.0


def test_a_phase_without_test_frames_is_left_out() -> None:
    with_hole = [[0.9, NAN, NAN], [0.5, NAN, NAN], [0.6, NAN, 0.7]]
    np.testing.assert_allclose(continual.seen_accuracy(with_hole), [0.9, 0.5, 0.65])
    np.testing.assert_allclose(continual.seen_accuracy(with_hole, [10, 0, 30]), [0.9, 0.5, 0.675])
    assert continual.forgetting(with_hole) == pytest.approx(0.3)
    assert continual.backward_transfer(with_hole) == pytest.approx(-0.3)
    late = [[NAN, NAN], [NAN, 0.8]]
    np.testing.assert_array_equal(continual.seen_accuracy(late), [NAN, 0.8])
    assert continual.average_incremental_accuracy(late, [0, 5]) == 0.8


def test_counts_make_it_the_accuracy_over_all_frames_seen() -> None:
    rng = np.random.default_rng(1)
    reference = [rng.uniform(0, 360, n) for n in (5, 40, 17)]
    estimate = [azimuth + rng.normal(0, 6, len(azimuth)) for azimuth in reference]
    row = [metrics.accuracy(a, b) for a, b in zip(reference, estimate, strict=True)]
    matrix = [row, row, row]  # the upper half is not read
    overall = metrics.accuracy(np.concatenate(reference), np.concatenate(estimate))
    assert continual.last_accuracy(matrix, counts=[5, 40, 17]) == pytest.approx(overall)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(0, 1000))
def test_measures_agree_with_each_other(n_phases: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, counts = rng.uniform(0, 1, (n_phases, n_phases)), rng.integers(1, 50, n_phases)
    seen = continual.seen_accuracy(matrix, counts)
    assert ((seen >= 0) & (seen <= 1)).all()
    np.testing.assert_allclose(
        continual.seen_accuracy(matrix, np.full(n_phases, 7)), continual.seen_accuracy(matrix)
    )
    np.testing.assert_allclose(continual.seen_accuracy(100 * matrix, counts), 100 * seen)
    assert continual.forgetting(matrix) >= -continual.backward_transfer(matrix) - 1e-12
    assert continual.forgetting(matrix, include_last=True) >= max(0.0, continual.forgetting(matrix)) - 1e-12
    constant = np.tile(rng.uniform(0, 1, n_phases), (n_phases, 1))  # never changes: nothing is forgotten
    assert continual.forgetting(constant) == continual.backward_transfer(constant) == 0


@pytest.mark.parametrize("measure", MEASURES)
def test_bad_matrices_are_refused(measure: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"\(n_phases, n_phases\), got shape \(2, 3\)"):
        measure(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"got shape \(0, 0\)"):
        measure(np.empty((0, 0)))
    with pytest.raises(ValueError, match="transposed"):
        measure(np.transpose(A))
    with pytest.raises(ValueError, match="infinite"):
        measure([[1.0, NAN], [math.inf, 1.0]])
    with pytest.raises(ValueError, match="no number"):
        measure([[NAN, 1.0], [NAN, NAN]])


def test_bad_counts_are_refused() -> None:
    for measure in MEASURES[:3]:
        with pytest.raises(ValueError, match=r"counts must be \(3,\)"):
            measure(A, [1, 2])
        for counts in ([1, -1, 1], [0, 0, 0], [1, NAN, 1]):
            with pytest.raises(ValueError, match="zero or more"):
                measure(A, counts)
        with pytest.raises(ValueError, match="only NaN"):
            measure([[0.9, NAN], [0.8, NAN]], [1, 1])


def test_one_phase_forgets_nothing_that_could_be_measured() -> None:
    assert continual.average_incremental_accuracy([[0.5]]) == 0.5
    for measure in (continual.forgetting, continual.backward_transfer):
        with pytest.raises(ValueError, match="at least two"):
            measure([[0.5]])


def test_newest_beside_older_phases() -> None:
    """A method that keeps its old phases and does not learn the new one is found out."""
    stuck = [[0.9, np.nan, np.nan], [0.9, 0.2, np.nan], [0.9, 0.8, 0.1]]
    assert continual.newest_accuracy(stuck) == pytest.approx(0.15)
    assert continual.older_accuracy(stuck) == pytest.approx((0.9 + 0.85) / 2)
    hole = [[np.nan] * 3, [np.nan, 0.5, np.nan], [np.nan, 0.4, 0.7]]
    assert continual.newest_accuracy(hole) == pytest.approx(0.7)  # nothing is older than phase 1
    assert continual.older_accuracy(hole) == pytest.approx(0.4)
    for alone in ([[0.5]], [[0.5, np.nan], [0.5, np.nan]]):
        for measure in (continual.newest_accuracy, continual.older_accuracy):
            with pytest.raises(ValueError, match=r"one phase with test frames|nothing to forget"):
                measure(alone)
