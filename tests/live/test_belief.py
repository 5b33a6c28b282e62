"""The circular filter of one talker: it stays a distribution, turns with its input, follows what it sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tytoalba.live.belief import REACH, agreement, centre, predicted, seen, updated
from tytoalba.signal.angles import distance, encode

WHOLE = st.integers(0, 359)


@given(WHOLE, st.floats(0.5, 60.0), st.floats(-40.0, 40.0))
def test_a_prediction_is_a_distribution_around_where_one_walks(
    start: int, drift: float, moved: float
) -> None:
    later = predicted(np.eye(360)[start], drift, moved)
    assert later.min() >= 0
    assert later.sum() == pytest.approx(1.0)
    assert distance(centre(later), start + moved) < 0.6


@given(WHOLE, WHOLE, st.integers(0, 2**32))
def test_turning_everything_turns_the_belief_to_the_bit(azimuth: int, turn: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    belief, scores = rng.dirichlet(np.ones(360)), rng.random(360)

    def after(belief: np.ndarray, scores: np.ndarray, azimuth: int) -> np.ndarray:
        return updated(predicted(belief, 3.0, 2.5), seen(scores, azimuth, 1.5), 0.8)

    straight = after(belief, scores, azimuth)
    turned = after(np.roll(belief, turn), np.roll(scores, turn), (azimuth + turn) % 360)
    assert np.allclose(np.roll(straight, turn), turned, rtol=1e-12, atol=0)


@given(WHOLE)
def test_what_a_peak_says_has_mean_one_and_ends_near_it(azimuth: int) -> None:
    likelihood = seen(encode([float(azimuth)])[0], azimuth)
    assert likelihood.mean() == pytest.approx(1.0)
    assert likelihood.argmax() == azimuth
    assert not likelihood[distance(np.arange(360.0), azimuth) > REACH].any()


def test_a_flat_map_or_a_ruled_out_side_is_no_trouble() -> None:
    assert seen(np.ones(360), 10.0).max() == pytest.approx(360 / 31)
    one_side = np.where(np.arange(360) > 180, -np.inf, encode([5.0])[0])
    assert np.isfinite(seen(one_side, 5.0)).all()
    assert not seen(one_side, 5.0)[355:].any()


def test_a_peak_that_is_surely_wrong_changes_nothing_and_a_sure_one_moves() -> None:
    belief = predicted(np.eye(360)[100], 5.0)
    there = seen(encode([108.0])[0], 108.0)
    assert np.allclose(updated(belief, there, 0.0), belief)
    assert centre(belief) < centre(updated(belief, there, 0.5)) <= centre(updated(belief, there, 1.0)) < 108
    far = seen(encode([300.0])[0], 300.0)
    assert np.array_equal(updated(np.eye(360)[100], far, 1.0), np.eye(360)[100])  # nothing agrees: it stays


def test_agreement_says_whose_a_peak_is() -> None:
    belief = predicted(np.eye(360)[100], 3.0)
    assert agreement(belief, seen(encode([101.0])[0], 101.0)) > 5
    assert agreement(belief, seen(encode([200.0])[0], 200.0)) < 1e-6
    assert agreement(np.full(360, 1 / 360), seen(encode([200.0])[0], 200.0)) == pytest.approx(1.0)
