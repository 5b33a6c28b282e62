"""Deciding, counting and keeping silent: where the truth is known, by hand, and by properties."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.maps import scores_of
from tytoalba.learning.prior import calibration as calibration
from tytoalba.learning.prior import decisions as decisions
from tytoalba.learning.prior.confidence import Confidence, Law
from tytoalba.learning.prior.decisions import Decision
from tytoalba.signal import angles as angles

NAN = math.nan
Numbers = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)
light = settings(max_examples=40, deadline=None)
RISING = Law((-2.0, 0.5, 3.0, 2.0, 1.0))
SURE = Confidence((RISING,) * 3, (RISING,) * 3, (0.3,) * 3)


def test_opinions_that_do_not_fit_are_refused() -> None:
    one, two = np.full((1, 1), 0.5), np.full((1, 2), 0.5)
    with pytest.raises(ValueError, match="same shape"):
        Decision(one, two)
    with pytest.raises(ValueError, match="same places"):
        Decision(np.array([[NAN, 1.0]]), two)
    with pytest.raises(ValueError, match="percent"):
        Decision(one, np.array([[50.0]]))
    for n in (0, 4):
        with pytest.raises(ValueError, match="n_sources must be 1, 2 or 3"):
            decisions.decide(np.zeros((1, 360)), SURE, n)


@light
@given(seeds, st.sampled_from([1, 2, 3]))
def test_each_number_of_sources_has_its_law(seed: int, n: int) -> None:
    scores = scores_of(seed)
    laws = tuple(Law((-1.0 - k, 0.5, 3.0, 2.0, 1.0)) for k in range(3))
    found = decisions.decide(scores, replace(SURE, asked=laws), n, [1, 3, 9, 17])
    assert found.azimuth.shape == (4, n)
    expected = laws[n - 1].probability(calibration.evidence(scores, found.azimuth), [1, 3, 9, 17])
    np.testing.assert_array_equal(found.probability, expected)
    if n < 3:
        decoded = angles.decode(scores)[:, None] if n == 1 else angles.decode_two(scores)
        np.testing.assert_array_equal(found.azimuth, decoded)
    else:
        np.testing.assert_array_equal(found.azimuth, decisions.candidates(scores))


@light
@given(seeds, st.integers(0, 359))
def test_turning_the_maps_turns_everything(seed: int, k: int) -> None:
    scores = scores_of(seed)
    turned = np.roll(scores, k, axis=1)
    azimuth = angles.decode_two(scores)
    for n in (1, 2, 3):
        here, there = (decisions.decide(each, SURE, n) for each in (scores, turned))
        np.testing.assert_array_equal(there.azimuth, angles.wrap(here.azimuth + k))
        np.testing.assert_array_equal(there.probability, here.probability)
    here, there = (decisions.count_sources(each, SURE) for each in (scores, turned))
    np.testing.assert_array_equal(there.azimuth, angles.wrap(here.azimuth + k))
    counts = np.random.default_rng(seed).binomial(1, 0.02, 360)
    np.testing.assert_array_equal(
        decisions.known(azimuth, counts), decisions.known(azimuth + k, np.roll(counts, k))
    )


# ------------------------------------------------------------------------------- how many, and whether


@light
@given(seeds, st.integers(1, 4))
def test_candidates_are_peaks_apart_and_strongest_first(seed: int, most: int) -> None:
    scores = scores_of(seed)
    scores[0, [50, 60]] = 9.0  # as high as each other and too near to be two
    found = decisions.candidates(scores, most)
    assert found.shape == (4, most)
    assert (found[0] == 50.0).sum() == 1
    for row, directions in zip(scores, found, strict=True):
        there = directions[np.isfinite(directions)]
        assert np.isnan(directions[len(there) :]).all()
        assert there[0] == row.argmax()
        assert all(a >= b for a, b in pairwise(row[there.astype(int)]))
        assert all(angles.distance(a, b) > 15 for i, a in enumerate(there) for b in there[:i])


def test_sources_are_counted() -> None:
    rng = np.random.default_rng(5)

    def heard(n: int) -> tuple[Numbers, NDArray[np.intp], Numbers]:
        number = rng.integers(0, 4, n)
        azimuth = rng.uniform(0, 360, (n, 1)) + np.array([0.0, 120.0, 240.0]) + rng.uniform(-20, 20, (n, 3))
        azimuth[np.arange(3) >= number[:, None]] = NAN
        scores = 0.6 * angles.encode(azimuth) + rng.normal(0, 0.08, (n, 360))
        return scores, number, azimuth

    def right(found: angles.Float, azimuth: Numbers) -> NDArray[np.bool_]:
        return np.asarray((angles.distance(found[:, :, None], azimuth[:, None, :]) <= 5).any(axis=2))

    scores, _, azimuth = heard(1500)
    found = decisions.candidates(scores)
    x, hit = calibration.evidence(scores, found), right(found, azimuth)
    there = np.isfinite(found)
    laws = [Law.fit(x[t, k], np.ones(t.sum()), hit[t, k]) for k, t in enumerate(there.T)]
    scores, number, azimuth = heard(500)
    decision = decisions.count_sources(scores, Confidence(SURE.asked, tuple(laws), (0.5,) * 3))
    counted = np.isfinite(decision.azimuth).sum(axis=1)
    assert (counted == number).mean() > 0.9
    claimed = decision.probability[np.isfinite(decision.azimuth)]
    assert claimed.min() >= 0.5
    was_right = right(decision.azimuth, azimuth)[np.isfinite(decision.azimuth)]
    assert abs(claimed.mean() - was_right.mean()) < 0.05


@light
@given(seeds)
def test_a_higher_threshold_hears_less(seed: int) -> None:
    scores = scores_of(seed)
    counts = [
        np.isfinite(decisions.count_sources(scores, replace(SURE, least=(least,) * 3)).azimuth).sum(axis=1)
        for least in (0.0, 0.2, 0.5, 0.8, 1.0)
    ]
    assert all((more >= fewer).all() for more, fewer in pairwise(counts))
    assert not counts[-1].any()
    assert counts[0].all()


def test_a_peak_counts_only_if_the_higher_ones_do() -> None:
    scores = angles.encode([[30.0, 120.0]]) * np.where(np.arange(360) < 75, 1.0, 0.9)
    for least, told in (((0.0, 0.0, 1.0), 2), ((0.0, 1.0, 0.0), 1), ((1.0, 0.0, 0.0), 0)):
        heard = decisions.count_sources(scores, replace(SURE, least=least))
        assert np.isfinite(heard.azimuth[0]).tolist() == [k < told for k in range(3)]
        assert (np.isnan(heard.azimuth) == np.isnan(heard.probability)).all()
    nothing = decisions.count_sources(np.ones((1, 360)), SURE)  # no peak at all
    assert np.isnan(nothing.azimuth).all()


def test_the_unsure_are_rejected() -> None:
    kept = decisions.reject([[10.0, 20.0], [30.0, NAN]], [[0.5, 0.49], [1.0, NAN]], 0.5)
    np.testing.assert_array_equal(kept, [[10.0, NAN], [30.0, NAN]])
    with pytest.raises(ValueError, match="percent"):
        decisions.reject([1.0], [0.5], 50.0)
    with pytest.raises(ValueError, match="same shape"):
        decisions.reject([1.0, 2.0], [0.5], 0.5)


@light
@given(seeds, st.sampled_from([4, 72, 360]), st.integers(0, 180), st.floats(0.0, 0.3))
def test_known_is_its_definition(seed: int, n: int, reach: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.binomial(3, share, n)
    azimuth = np.where(rng.random((5, 2)) < 0.2, NAN, rng.integers(-400, 800, (5, 2)))
    expected = [
        [bool((angles.distance(angles.grid(n)[counts > 0], a) <= reach).any()) for a in row]
        for row in azimuth
    ]
    assert decisions.known(azimuth, counts, reach).tolist() == expected


def test_known_refuses_what_are_no_counts() -> None:
    for bad in (np.zeros(360), np.zeros((2, 360), dtype=int), np.full(360, -1), np.zeros(0, dtype=int)):
        with pytest.raises(ValueError, match="counts must be"):
            decisions.known([0.0], bad)
    for reach in (-1.0, NAN, 200.0):
        with pytest.raises(ValueError, match="reach"):
            decisions.known([0.0], np.ones(360, dtype=int), reach)
    with pytest.raises(ValueError, match="infinite"):
        decisions.known([np.inf], np.ones(360, dtype=int))
