"""Unequal directions: weights and factors keep their promises, and lift the rare classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.balance import count_directions, frame_weights, integer_weights, prior_correction
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.sums import quantize_labels

quick = settings(max_examples=60, deadline=None)
reaches = st.sampled_from([0.0, 12.0, 45.0])
sigmas = st.sampled_from([0.5, 14.0, 60.0])
counts_of_36 = arrays(np.int64, 36, elements=st.integers(0, 2000))


@st.composite
def directions_of_frames(draw: st.DrawFn) -> NDArray[np.float64]:
    """Up to 30 frames of up to two sources."""
    n = draw(st.integers(0, 30))
    degrees = st.one_of(st.just(np.nan), st.floats(0, 360, exclude_max=True))
    return draw(arrays(np.float64, (n, 2), elements=degrees))


# ---- counts


@given(directions_of_frames(), st.integers(0, 30))
@quick
def test_counts_add_and_subtract(azimuth: NDArray[np.float64], cut: int) -> None:
    whole = count_directions(azimuth, 36)
    assert whole.sum() == np.isfinite(azimuth).sum()
    assert whole.shape == (36,)
    assert np.array_equal(count_directions(azimuth[:cut], 36) + count_directions(azimuth[cut:], 36), whole)
    assert np.array_equal(whole - count_directions(azimuth[cut:], 36), count_directions(azimuth[:cut], 36))


# ---- weights


@given(counts_of_36, st.integers(1, 12), reaches)
@quick
def test_weights_are_whole_numbers_in_range(counts: NDArray[np.int64], cap: int, reach: float) -> None:
    weights = integer_weights(counts, cap, reach)
    assert weights.dtype == np.int64
    assert weights.min() >= 1
    assert weights.max() <= cap
    assert (weights[counts == 0] == 1).all()


@given(counts_of_36, st.permutations(range(36)))
@quick
def test_weights_follow_their_classes(counts: NDArray[np.int64], order: list[int]) -> None:
    weights = integer_weights(counts)
    assert np.array_equal(integer_weights(counts[order]), weights[order])
    seen = counts > 0
    expected = np.floor(counts.max() / counts[seen] + 0.5).clip(1, 8)
    assert np.array_equal(weights[seen], expected)
    assert (weights[counts == counts.max()] == 1).all()


@given(counts_of_36, st.integers(-40, 40), reaches)
@quick
def test_weights_turn_with_the_array(counts: NDArray[np.int64], turn: int, reach: float) -> None:
    turned = integer_weights(np.roll(counts, turn), reach=reach)
    assert np.array_equal(turned, np.roll(integer_weights(counts, reach=reach), turn))


@given(arrays(np.bool_, 36), st.integers(1, 10**9), reaches, sigmas)
@quick
def test_balanced_directions_are_left_alone(
    taught: NDArray[np.bool_], count: int, reach: float, sigma: float
) -> None:
    """Also where only a sector, or every other class, was taught."""
    counts = taught * count
    assert (integer_weights(counts, reach=reach) == 1).all()
    assert prior_correction(counts, sigma) == pytest.approx(np.ones(36))


def test_reach_looks_beyond_chance() -> None:
    counts = np.where(np.arange(360) < 180, 40, 10)
    counts[5] = 8  # by chance: its neighbours have been seen often
    assert integer_weights(counts)[[5, 90, 270]].tolist() == [5, 1, 4]
    assert integer_weights(counts, reach=10.0)[[5, 90, 270]].tolist() == [1, 1, 4]


def test_a_frame_weighs_as_its_rarest_source() -> None:
    azimuth = np.array([[0.0, np.nan]] * 9 + [[0.0, 90.0]] * 3 + [[np.nan, np.nan]])
    counts = count_directions(azimuth, 4)
    assert counts.tolist() == [12, 3, 0, 0]
    assert frame_weights(azimuth, counts).tolist() == [1] * 9 + [4] * 3 + [1]
    assert frame_weights(azimuth[:, ::-1], counts, cap=3).tolist() == [1] * 9 + [3] * 3 + [1]
    assert frame_weights(np.empty((0, 2)), counts).tolist() == []


@given(directions_of_frames(), st.integers(0, 2**32))
@quick
def test_weighted_sums_are_those_of_repeated_frames(azimuth: NDArray[np.float64], seed: int) -> None:
    rng, n = np.random.default_rng(seed), len(azimuth)
    H, Y = rng.integers(-127, 128, (n, 5), dtype=np.int8), rng.integers(0, 128, (n, 3), dtype=np.int8)
    weights = frame_weights(azimuth, count_directions(azimuth, 12))
    assert weights.shape == (n,)
    head = AnalyticHead(5, 3, exact=True)
    for times in np.unique(weights):
        head.learn(H[weights == times], Y[weights == times], times)
    again = AnalyticHead(5, 3, exact=True).learn(np.repeat(H, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert all(np.array_equal(array, again.memory()[name]) for name, array in head.memory().items())


# ---- factors


@given(counts_of_36, sigmas, st.floats(0, 3), st.floats(1, 20))
@quick
def test_factors_are_in_range(counts: NDArray[np.int64], sigma: float, strength: float, limit: float) -> None:
    factors = prior_correction(counts, sigma, strength, limit)
    assert factors.min() >= 1 / limit
    assert factors.max() <= limit
    assert (prior_correction(counts, sigma, strength=0.0) == 1).all()


@given(counts_of_36, sigmas, st.integers(-40, 40), st.integers(1, 1000))
@quick
def test_factors_turn_with_the_array_and_ignore_the_total(
    counts: NDArray[np.int64], sigma: float, turn: int, more: int
) -> None:
    factors = prior_correction(counts, sigma)
    assert prior_correction(np.roll(counts, turn), sigma) == pytest.approx(np.roll(factors, turn))
    assert prior_correction(counts * more, sigma) == pytest.approx(factors)


def test_factors_undo_frequencies() -> None:
    counts = np.array([40, 10, 20, 10])
    assert prior_correction(counts, 10.0) * counts == pytest.approx(np.full(4, 20.0))
    assert prior_correction(counts, 10.0, strength=0.5) ** 2 * counts == pytest.approx(np.full(4, 20.0))
    assert prior_correction(counts, 10.0, limit=1.5) == pytest.approx([1 / 1.5, 1.5, 1.0, 1.5])


def test_classes_never_taught_keep_their_scores() -> None:
    counts = np.zeros(360, np.int64)
    assert (prior_correction(counts, 14.0) == 1).all()
    counts[:100:5], counts[200:300:5] = 40, 10  # a grid of 5 degrees, two sectors
    factors = prior_correction(counts, 14.0)
    assert factors[:96] == pytest.approx(np.full(96, 0.625))  # between the grid's directions as on them
    assert factors[200:296] == pytest.approx(np.full(96, 2.5))
    assert (factors[[110, 150, 185, 310, 345]] == 1).all()


# ---- refusals


def test_what_is_no_count_is_refused() -> None:
    wrong: list[Any] = [[1.0, 2.0], [[1, 2]], [], 3, [True, False]]
    for counts in wrong:
        for use in (integer_weights, lambda c: prior_correction(c, 8.0)):
            with pytest.raises(TytoError, match=r"integers \(n_directions,\)"):
                use(counts)
    with pytest.raises(TytoError, match=r"got -1; was more forgotten than learned"):
        integer_weights([3, -1])
    settings_refused: list[Any] = [0, -1, 2.0, True]
    for cap in settings_refused:
        with pytest.raises(TytoError, match="cap must be a whole number"):
            integer_weights([1, 2], cap)
    for reach in (-1.0, 180.0, np.nan):
        with pytest.raises(TytoError, match="reach must be degrees"):
            integer_weights([1, 2], reach=reach)
    for sigma in (0.0, -8.0, np.nan, np.inf):
        with pytest.raises(TytoError, match="sigma must be positive degrees"):
            prior_correction([1, 2], sigma)
    for strength, limit in ((-1.0, 8.0), (np.nan, 8.0), (1.0, 0.5), (1.0, np.nan)):
        with pytest.raises(TytoError, match="strength must be from 0 up and limit from 1 up"):
            prior_correction([1, 2], 8.0, strength, limit)


def test_frames_that_were_not_counted_are_refused() -> None:
    with pytest.raises(TytoError, match=r"classes \[2\], which have no counts"):
        frame_weights([[0.0], [180.0]], [5, 1, 0, 0])


# ---- does it help?


def imbalanced(seed: int, n_directions: int = 12) -> tuple[Any, Any, Any, Any]:
    """Noisy features about a prototype a class, int8: most classes with 8 frames, every third with 120.

    Returns H, azimuth (n_frames, 1) to learn, and as many fresh frames of every class to test.
    """
    rng = np.random.default_rng(seed)
    prototypes = rng.standard_normal((n_directions, 40))
    prototypes += 2.0 * prototypes.mean(axis=0)  # they resemble each other
    theta = np.arange(n_directions) * 360.0 / n_directions

    def drawn(classes: NDArray[np.intp]) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        noisy = prototypes[classes] + 1.8 * rng.standard_normal((len(classes), 40))
        return np.rint(127 * np.tanh(noisy / 3)).astype(np.int8), theta[classes][:, None]

    classes = np.arange(n_directions)
    learned = drawn(np.repeat(classes, np.where(classes % 3 == 0, 120, 8)))
    return *learned, *drawn(np.repeat(classes, 60))


def mean_class_accuracy(scores: NDArray[np.float64], classes: NDArray[np.intp]) -> float:
    right = scores.argmax(axis=1) == classes
    return float(np.mean([right[classes == c].mean() for c in np.unique(classes)]))


def test_either_correction_lifts_the_mean_class_accuracy() -> None:
    plain, weighted, corrected = [], [], []
    for seed in range(5):
        H, azimuth, H_test, azimuth_test = imbalanced(seed)
        Y = quantize_labels(np.eye(12)[(azimuth[:, 0] / 30).astype(int)])
        truth = (azimuth_test[:, 0] / 30).astype(np.intp)
        counts = count_directions(azimuth, 12)
        head = AnalyticHead(40, 12, ridge=10.0, exact=True).learn(H, Y)
        plain.append(mean_class_accuracy(head.scores(H_test), truth))
        factors = prior_correction(counts, sigma=5.0)
        corrected.append(mean_class_accuracy(head.scores(H_test) * factors, truth))
        balanced, weights = AnalyticHead(40, 12, ridge=10.0, exact=True), frame_weights(azimuth, counts)
        for times in np.unique(weights):
            balanced.learn(H[weights == times], Y[weights == times], times)
        weighted.append(mean_class_accuracy(balanced.scores(H_test), truth))
    assert np.mean(weighted) > np.mean(plain) + 0.05
    assert np.mean(corrected) > np.mean(plain) + 0.05
    assert (np.array(weighted) > plain).all()
    assert (np.array(corrected) > plain).all()
