"""Two decisions as one, counting and keeping silent: where the truth is known, by hand, and by properties."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.maps import scores_of
from tytoalba.errors import DataError
from tytoalba.learning.prior import calibration as calibration
from tytoalba.learning.prior import decisions as decisions
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.learning.prior.decisions import Blend, Decision
from tytoalba.signal import angles as angles

NAN = math.nan
Numbers = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)
light = settings(max_examples=40, deadline=None)
RISING = Calibration((0.0, 2.0), (0.1, 0.9), 50)


# ------------------------------------------------------------------------------------------ two decisions


def two_methods(rng: np.random.Generator, n: int, skill: tuple[float, float]) -> list[tuple[Decision, Any]]:
    """Opinions whose probabilities are true, and where they are right: (n, 1) each."""
    made = []
    for strength in skill:
        p = rng.beta(2 * strength, 2 * (1 - strength), (n, 1))
        made.append((Decision(rng.uniform(0, 360, (n, 1)), p), rng.random((n, 1)) < p))
    return made


@settings(max_examples=30, deadline=None)
@given(seeds, st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_the_blend_is_at_least_as_good_as_the_better(seed: int, first: float, second: float) -> None:
    n = 4000
    (learned, a), (fallback, b) = two_methods(np.random.default_rng(seed), n, (first, second))
    taken = decisions.blend(learned, fallback)
    right = np.where(taken.learned[:, None], a, b)
    noise = 5 * math.sqrt(0.5 / n)
    assert right.mean() >= max(a.mean(), b.mean()) - noise
    surest = np.maximum(learned.probability, fallback.probability).mean()
    assert abs(right.mean() - surest) <= noise  # and is as good as it claims


def test_blending_maps_beats_both_methods() -> None:
    rng = np.random.default_rng(11)
    true = rng.uniform(0, 360, (6000, 1))
    wrong = rng.uniform(0, 360, (6000, 2))
    hears = rng.random((6000, 2)) < (0.6, 0.5)  # each method hears the source in frames of its own
    maps = [
        np.where(hears[:, [m]], rng.uniform(0.4, 1, (6000, 1)), rng.uniform(0, 0.7, (6000, 1)))
        * angles.encode(np.where(hears[:, [m]], true, wrong[:, [m]]))
        + scale * 0.02 * rng.random((6000, 360))
        for m, scale in enumerate((1.0, 3.0))
    ]
    fit, test = slice(0, 3000), slice(3000, 6000)
    fitted, share = [], []
    for scores in maps:
        found = angles.decode(scores)[:, None]
        right = angles.distance(found, true) <= 5
        fitted.append(Calibration.fit(calibration.evidence(scores, found)[fit], right[fit]))
        share.append(right[test].mean())
    taken = Blend(fitted[0], fitted[1])(maps[0][test], maps[1][test])
    right = angles.distance(taken.azimuth, true[test]) <= 5
    assert right.mean() > max(share) + 0.05
    assert calibration.expected_calibration_error(taken.probability, right) < 0.05
    assert 0.2 < taken.learned.mean() < 0.9


def test_two_sources_are_taken_together() -> None:
    learned = 0.6 * angles.encode([[30.0, 120.0], [30.0, 120.0]])
    fallback = angles.encode([[200.0, 300.0], [200.0, NAN]])  # sure of both, then of one only
    taken = Blend(RISING, RISING)(learned, fallback, 2)
    assert taken.learned.tolist() == [False, True]
    assert sorted(taken.azimuth[0]) == [200.0, 300.0]
    assert sorted(taken.azimuth[1]) == [30.0, 120.0]
    assert taken.probability.shape == (2, 2)


def test_ties_and_silence_go_to_the_fallback() -> None:
    same = np.array([[0.5, 0.7], [0.7, 0.5], [0.6, 0.6]])
    taken = decisions.blend(Decision(np.full((3, 2), 1.0), same), Decision(np.full((3, 2), 2.0), same))
    assert not taken.learned.any()
    assert (taken.azimuth == 2.0).all()
    none, half = [[NAN, NAN]], [[NAN, 8.0]]
    empty = Decision(np.array(none), np.array(none))
    sure = Decision(np.array(half), np.array([[NAN, 0.2]]))
    assert sure.certainty.tolist() == [0.2]
    assert not decisions.blend(empty, empty).learned.any()
    np.testing.assert_array_equal(decisions.blend(sure, empty).azimuth, half)
    np.testing.assert_array_equal(decisions.blend(empty, sure).azimuth, half)


def test_opinions_that_do_not_fit_are_refused() -> None:
    one, two = np.full((1, 1), 0.5), np.full((1, 2), 0.5)
    with pytest.raises(ValueError, match="same \\(n_frames, n\\)"):
        decisions.blend(Decision(one, one), Decision(two, two))
    with pytest.raises(ValueError, match="same shape"):
        Decision(one, two)
    with pytest.raises(ValueError, match="same places"):
        Decision(np.array([[NAN, 1.0]]), two)
    with pytest.raises(ValueError, match="percent"):
        Decision(one, np.array([[50.0]]))
    for n in (0, 3):
        with pytest.raises(ValueError, match="n_sources must be 1 or 2"):
            decisions.decide(np.zeros((1, 360)), RISING, n)


# ------------------------------------------------------------------------------------- one map of two


@light
@given(seeds, st.sampled_from([0.0, 0.25, 2.0]), st.sampled_from([1, 2]))
def test_the_fallback_is_added_with_its_weight(seed: int, weight: float, n: int) -> None:
    learned, fallback = scores_of(seed), 0.3 * scores_of(seed + 1)
    both = Blend(RISING, RISING, weight=weight)
    mixed = learned + weight * fallback
    np.testing.assert_array_equal(both.mixed(learned, fallback), mixed)
    taken = both(learned, fallback, n)
    expected = decisions.blend(decisions.decide(mixed, RISING, n), decisions.decide(fallback, RISING, n))
    np.testing.assert_array_equal(taken.azimuth, expected.azimuth)
    np.testing.assert_array_equal(taken.probability, expected.probability)
    np.testing.assert_array_equal(taken.learned, expected.learned)


def test_where_one_map_does_not_tell_the_other_does() -> None:
    front_or_back = angles.encode([[30.0, 210.0]])  # the learned one hears both alike
    side = 0.3 * angles.encode([[45.0]], sigma=40.0)  # the other only roughly from where
    sharp = Blend(RISING, RISING, margin=1.0, weight=1.0)
    for turn in (0, 180):
        taken = sharp(front_or_back, np.roll(side, turn, axis=1))
        assert taken.learned.all()
        assert angles.distance(taken.azimuth, 30.0 + turn).max() <= 5
    alone = Blend(RISING, RISING, margin=1.0)
    assert len({float(alone(front_or_back, np.roll(side, t, axis=1)).azimuth[0, 0]) for t in (0, 180)}) == 1


def test_maps_of_lists_and_of_single_precision_are_added() -> None:
    both = Blend(RISING, RISING, weight=0.5)
    assert both.mixed([[1.0, 2.0]], [[4.0, 8.0]]).tolist() == [[3.0, 6.0]]
    maps = scores_of(3).astype(np.float32)
    assert both.mixed(maps, maps).dtype == np.float32
    np.testing.assert_array_equal(Blend(RISING, RISING).mixed(maps, maps), maps)
    ruled_out = np.where(np.arange(maps.shape[1]) < 3, -np.inf, maps)
    np.testing.assert_array_equal(Blend(RISING, RISING).mixed(ruled_out, ruled_out), ruled_out)


@pytest.mark.parametrize("wrong", [-0.1, 100.1, NAN, math.inf, "1", None, [0.5]])
def test_weights_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(DataError, match="weight in a blend must be a number from 0 to 100"):
        Blend(RISING, RISING, weight=wrong)
    with pytest.raises(DataError, match="weight in a blend"):
        Blend.from_dict(Blend(RISING, RISING).to_dict() | {"weight": wrong})


def test_a_document_without_a_weight_adds_nothing() -> None:
    told = Blend(RISING, RISING, 0.3, 2.0).to_dict()
    assert Blend.from_dict(told).weight == 2.0
    del told["weight"]
    assert Blend.from_dict(told) == Blend(RISING, RISING, 0.3)
    assert Blend.from_dict(told).weight == 0.0


@light
@given(seeds, st.floats(0, 1), st.floats(0, 100))
def test_json_gives_back_every_bit(seed: int, margin: float, weight: float) -> None:
    rng = np.random.default_rng(seed)
    fitted = Calibration.fit(rng.normal(size=40), rng.random(40) < 0.5)
    both = Blend(fitted, RISING, margin, weight)
    assert Blend.from_dict(json.loads(json.dumps(both.to_dict(), allow_nan=False))) == both


def test_damaged_files_are_refused() -> None:
    both = Blend(RISING, RISING)
    for part in ("learned", "fallback"):
        with pytest.raises(DataError, match="knots must rise"):
            Blend.from_dict(both.to_dict() | {part: RISING.to_dict() | {"knots": [2.0, 0.0]}})
        with pytest.raises(DataError, match=f"needs '{part}'"):
            Blend.from_dict({key: value for key, value in both.to_dict().items() if key != part})
    others: list[object] = [None, [], "x", 3]
    for wrong in others:
        with pytest.raises(DataError, match="must be an object"):
            Blend.from_dict(wrong)
    with pytest.raises(DataError, match="tytoalba-blend"):
        Blend.from_dict(RISING.to_dict())


@light
@given(seeds, st.integers(0, 359))
def test_turning_the_maps_turns_everything(seed: int, k: int) -> None:
    scores = scores_of(seed)
    turned = np.roll(scores, k, axis=1)
    azimuth = angles.decode_two(scores)
    for n in (1, 2):
        here, there = (decisions.decide(each, RISING, n) for each in (scores, turned))
        np.testing.assert_array_equal(there.azimuth, angles.wrap(here.azimuth + k))
        np.testing.assert_array_equal(there.probability, here.probability)
    here, there = (decisions.count_sources(each, RISING, threshold=0.3) for each in (scores, turned))
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
    for one_or_each in (
        Calibration.fit(x[there], hit[there]),
        [Calibration.fit(x[there[:, i], i], hit[there[:, i], i]) for i in range(3)],
    ):
        scores, number, azimuth = heard(500)
        decision = decisions.count_sources(scores, one_or_each)
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
        np.isfinite(decisions.count_sources(scores, RISING, 4, threshold).azimuth).sum(axis=1)
        for threshold in (0.0, 0.2, 0.5, 0.8, 1.0)
    ]
    assert all((more >= fewer).all() for more, fewer in pairwise(counts))
    assert not counts[-1].any()
    assert counts[0].all()


def test_refused_peaks_leave_no_gap() -> None:
    scores = angles.encode([[30.0, 120.0]]) * np.where(np.arange(360) < 75, 1.0, 0.9)
    deaf, keen = Calibration((0.0,), (0.2,), 3), Calibration((0.0,), (0.8,), 3)
    heard = decisions.count_sources(scores, [deaf, keen], 2)
    np.testing.assert_array_equal(heard.azimuth, [[120.0, NAN]])
    np.testing.assert_array_equal(heard.probability, [[0.8, NAN]])
    assert np.isnan(decisions.count_sources(np.ones((1, 360)), keen).azimuth).all()  # no peak at all
    with pytest.raises(ValueError, match="2 calibrations for at most 3"):
        decisions.count_sources(scores, [deaf, keen])
    with pytest.raises(ValueError, match="max_sources"):
        decisions.count_sources(scores, keen, 0)
    with pytest.raises(ValueError, match="threshold"):
        decisions.count_sources(scores, keen, threshold=50.0)


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
