"""From evidence and the number of averaged frames to chances, where the truth is known and by properties."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import expected_calibration_error
from tytoalba.learning.prior.confidence import KNEE, Confidence, Law, usual_confidence

weights = st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
LAW = Law((-2.0, 0.5, 4.0, 3.0, 1.0))
SURE = Confidence((LAW,) * 3, (LAW,) * 3, (0.3, 0.4, 0.5))


def test_a_law_is_its_formula() -> None:
    for e, n in ((0.1, 1), (KNEE, 4), (1.3, 9)):
        s = 1 - 1 / math.sqrt(n)
        z = -2 + 0.5 * s + 4 * min(e, KNEE) + 3 * max(e - KNEE, 0) + s * e
        assert LAW.probability(e, n) == pytest.approx(1 / (1 + math.exp(-z)))


@settings(max_examples=60, deadline=None)
@given(weights, st.floats(0, 2), st.floats(0, 2), st.integers(1, 41))
def test_chances_never_fall_with_evidence(given_weights: Any, low: float, more: float, n: int) -> None:
    below, above = Law(given_weights).probability([low, low + more], n)
    assert 0 < below <= above < 1


def test_holes_stay_holes_and_each_frame_has_its_own_number() -> None:
    e = np.array([[0.5, math.nan], [0.5, 0.2]])
    found = LAW.probability(e, [1, 9])
    assert np.isnan(found[0, 1])
    assert found[1, 0] == LAW.probability(0.5, 9) > found[0, 0] == LAW.probability(0.5, 1)
    assert LAW.probability(e).shape == (2, 2)


def test_what_a_law_says_comes_true_with_any_number_of_frames() -> None:
    rng, true = np.random.default_rng(2), Law((-2.5, 1.0, 3.0, 2.5, 1.5))
    n = rng.choice([1, 3, 5, 9, 17], 40_000)
    e = rng.gamma(2.0, 0.4, len(n))
    right = rng.random(len(n)) < true.probability(e, n)
    fitted = Law.fit(e[::2], n[::2], right[::2])
    for frames in np.unique(n):
        rows = np.flatnonzero(n == frames)[1::2]
        assert expected_calibration_error(fitted.probability(e[rows], n[rows]), right[rows]) < 0.03
    flat = Law.fit(e, n, np.arange(len(e)) % 4 == 0)  # which nothing tells
    assert abs(flat.probability(0.5, 3) - 0.25) < 0.03
    assert all(len(str(abs(w)).partition(".")[2]) <= 3 for w in fitted.weights)


@pytest.mark.parametrize(
    ("e", "n", "right"), [([], [], []), ([0.1, math.nan], [1, 1], [0, 1]), ([0.1], [1, 1], [0])]
)
def test_what_teaches_nothing_is_refused(e: Any, n: Any, right: Any) -> None:
    with pytest.raises(ValueError, match="a law is fitted on finite evidence"):
        Law.fit(e, n, right)


def test_json_gives_back_every_bit() -> None:
    assert Confidence.from_dict(json.loads(json.dumps(SURE.to_dict(), allow_nan=False))) == SURE
    assert Confidence.from_dict(usual_confidence().to_dict()) == usual_confidence()


WRONG: list[Any] = [None, [0.0] * 4, [0.0] * 6, [0, 0, -0.1, 0, 0], [0, 0, 0, 0, math.nan], [99, 0, 0, 0, 0]]


@pytest.mark.parametrize("law", [*WRONG, [True, 0, 0, 0, 0], "12345", [0, 0, 0, 0, "1"]])
def test_laws_that_are_none_are_refused(law: Any) -> None:
    with pytest.raises(DataError, match="not a law of confidence"):
        Confidence.from_dict(SURE.to_dict() | {"asked": [law, *SURE.to_dict()["asked"][1:]]})


@pytest.mark.parametrize(
    "change",
    [
        {"asked": [list(LAW.weights)] * 2},
        {"counted": []},
        {"least": [0.5, 0.5]},
        {"least": [0.5, 0.5, 1.5]},
        {"least": [0.5, 0.5, None]},
        {"least": 0.5},
        {"asked": {}},
        {"version": 2},
        {"format": "tytoalba-calibration"},
    ],
)
def test_altered_documents_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Confidence.from_dict(SURE.to_dict() | change)


def test_the_usual_one_is_surer_of_higher_peaks_and_of_more_frames() -> None:
    known = usual_confidence()
    for law in (*known.asked, *known.counted):
        low, high = law.probability([0.2, 1.5])
        assert low < 0.5 < high
        assert law.probability(0.6, 9) > law.probability(0.6, 1)
    assert 0 < known.least[0] < 0.5
