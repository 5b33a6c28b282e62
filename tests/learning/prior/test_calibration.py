"""Probabilities that come true: where the truth is known, by hand, and by the properties they must have."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.maps import scores_of
from tytoalba.bench.plots import plot_reliability, save_figure
from tytoalba.errors import DataError
from tytoalba.learning.prior import calibration as calibration
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.signal import angles as angles

NAN = math.nan
Numbers = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)
finite = st.floats(-1e300, 1e300)
light = settings(max_examples=40, deadline=None)
RISING = Calibration((0.0, 2.0), (0.1, 0.9), 50)

TRUE: dict[str, Callable[[Numbers], Numbers]] = {
    "logistic": lambda x: 1 / (1 + np.exp(-2 * x)),
    "step": lambda x: np.where(x < 0.5, 0.2, 0.9),
    "square": lambda x: np.clip(x, 0, 1) ** 2,
    "always right": lambda x: np.ones_like(x),
    "flat": lambda x: np.full_like(x, 0.3),
}


def decisions(rng: np.random.Generator, n: int, true: Callable[[Numbers], Numbers]) -> tuple[Numbers, Any]:
    """Evidence and whether each decision was right, with the given probability."""
    x = rng.normal(size=n)
    return x, rng.random(n) < true(x)


# ------------------------------------------------------------------------------------ the calibration


@pytest.mark.parametrize("name", TRUE)
def test_claimed_probabilities_come_true(name: str) -> None:
    rng = np.random.default_rng(7)
    fitted = Calibration.fit(*decisions(rng, 20_000, TRUE[name]))
    x, right = decisions(rng, 20_000, TRUE[name])  # decisions it has not seen
    claimed = fitted.probability(x)
    assert calibration.expected_calibration_error(claimed, right) < 0.02
    assert np.abs(claimed - TRUE[name](x)).mean() < 0.02
    assert brier_score(claimed, right) <= brier_score(TRUE[name](x), right) + 0.002
    assert len(fitted.knots) <= 64
    assert fitted.n == 20_000


def brier_score(p: NDArray[Any], right: NDArray[Any]) -> float:
    """Mean squared distance of a probability from what came: 0.25 knows nothing."""
    return float(np.mean((p - right) ** 2))


def test_what_was_not_calibrated_is_found_out() -> None:
    x, right = decisions(np.random.default_rng(0), 20_000, TRUE["logistic"])
    too_sure = 1 / (1 + np.exp(-8 * x))
    fitted = Calibration.fit(x, right).probability(x)
    assert calibration.expected_calibration_error(too_sure, right) > 0.1
    assert brier_score(too_sure, right) > brier_score(fitted, right) + 0.01


samples = st.lists(st.tuples(finite | st.integers(-3, 3).map(float), st.booleans()), min_size=1, max_size=60)


@light
@given(samples, st.lists(st.floats(allow_nan=False), min_size=2, max_size=20))
def test_probability_never_falls_and_is_never_certain(
    seen: list[tuple[float, bool]], asked: list[float]
) -> None:
    x, right = zip(*seen, strict=True)
    fitted = Calibration.fit(x, right)
    claimed = fitted.probability(np.sort(asked + list(x)))
    assert (np.diff(claimed) >= 0).all()
    least = 1 / (len(x) + 2)
    assert claimed.min() >= least - 1e-12
    assert claimed.max() <= 1 - least + 1e-12
    assert np.isfinite(claimed).all()


@light
@given(samples, seeds)
def test_the_order_of_decisions_does_not_matter(seen: list[tuple[float, bool]], seed: int) -> None:
    x, right = np.array([each[0] for each in seen]), np.array([each[1] for each in seen])
    order = np.random.default_rng(seed).permutation(len(x))
    assert Calibration.fit(x[order], right[order]) == Calibration.fit(x, right)


@light
@given(seeds, st.integers(-20, 20), st.integers(-100, 100))
def test_the_scale_of_evidence_does_not_matter(seed: int, power: int, shift: int) -> None:
    x, right = decisions(np.random.default_rng(seed), 200, TRUE["logistic"])
    x = np.round(x * 1024) / 1024  # exact in binary
    moved = (x + shift) * 2.0**power
    here, there = Calibration.fit(x, right), Calibration.fit(moved, right)
    np.testing.assert_allclose(there.probability(moved), here.probability(x), rtol=1e-12)


def test_few_decisions_are_enough() -> None:
    x = np.arange(10.0)
    fitted = Calibration.fit(x, x >= 5)
    low, high = fitted.probability([0.0, 9.0])
    assert 1 / 12 <= low < 0.4
    assert 0.6 < high <= 11 / 12
    for right, expected in ((False, 1 / 12), (True, 11 / 12)):
        alike = Calibration.fit(x, [right] * 10)
        np.testing.assert_allclose(alike.probability([-5.0, 4.5, 99.0]), expected)
    assert Calibration.fit([3.0], [True]).probability([1.0, 3.0, 9.0]) == pytest.approx([2 / 3] * 3)


def test_evidence_that_misleads_is_the_share_of_right_decisions() -> None:
    x = np.arange(100.0)
    assert Calibration.fit(-x, x >= 60).probability(x) == pytest.approx(np.full(100, 41 / 102))


def test_equal_evidence_is_one_level() -> None:
    x, right = np.repeat([0.0, 1.0], 50), np.tile([True, False, False, False, False], 20)
    right[50:] = ~right[50:]
    fitted = Calibration.fit(x, right)
    assert fitted.knots == (0.0, 1.0)
    assert fitted.values == pytest.approx((11 / 52, 41 / 52))
    assert fitted.probability(0.25) == pytest.approx(11 / 52 + 0.25 * 30 / 52)


def test_probability_keeps_shapes_and_holes() -> None:
    np.testing.assert_array_equal(
        RISING.probability([[NAN, -9.0], [np.inf, -np.inf]]), [[NAN, 0.1], [0.9, 0.1]]
    )
    assert RISING.probability(1.0).shape == ()
    assert RISING.probability(np.empty((0, 2))).shape == (0, 2)
    assert RISING.probability(np.float32(1.0)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("evidence", "right", "message"),
    [
        ([], [], "no decision"),
        ([1.0, NAN], [True, False], r"NaN \(no source\) in 1 of 2"),
        ([1.0, np.inf], [True, False], "must be finite"),
        ([1.0, 2.0], [True], "same shape"),
        ([1.0, 2.0], [3.5, 1.0], "errors in degrees"),
        ([1.0, 2.0], [NAN, 1.0], "True or False"),
    ],
)
def test_what_teaches_nothing_is_refused(evidence: list[float], right: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Calibration.fit(evidence, right)


# ------------------------------------------------------------------------------------------- as a file


@light
@given(samples)
def test_json_gives_back_every_bit(seen: list[tuple[float, bool]]) -> None:
    fitted = Calibration.fit(*zip(*seen, strict=True))
    assert Calibration.from_dict(json.loads(json.dumps(fitted.to_dict(), allow_nan=False))) == fitted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "tytoalba-results"}, "tytoalba-calibration of version 1"),
        ({"version": 2}, "version 1"),
        ({"n": 0}, "n must be"),
        ({"n": 2.5}, "n must be"),
        ({"n": True}, "n must be"),
        ({"knots": "0, 2"}, "knots must be a list"),
        ({"values": None}, "values must be a list"),
        ({"knots": [0.0]}, "as many of both"),
        ({"knots": [], "values": []}, "1 to 64"),
        ({"knots": list(range(65)), "values": [0.5] * 65}, "1 to 64"),
        ({"knots": [0.0, "2"]}, "finite numbers"),
        ({"knots": [0.0, NAN]}, "finite numbers"),
        ({"knots": [0.0, True]}, "finite numbers"),
        ({"knots": [0.0, np.inf]}, "finite numbers"),
        ({"values": [0.1, NAN]}, "finite numbers"),
        ({"knots": [2.0, 0.0]}, "knots must rise"),
        ({"knots": [1.0, 1.0]}, "knots must rise"),
        ({"values": [0.9, 0.1]}, "must not fall"),
        ({"values": [0.0, 0.9]}, "above 0 and below 1"),
        ({"values": [0.1, 1.0]}, "above 0 and below 1"),
    ],
)
def test_damaged_files_are_refused(change: dict[str, Any], message: str) -> None:
    document = RISING.to_dict()
    assert Calibration.from_dict(document) == RISING
    with pytest.raises(DataError, match=message):
        Calibration.from_dict(document | change)


def test_files_of_another_kind_are_refused() -> None:
    for name in RISING.to_dict():
        with pytest.raises(DataError, match=f"needs '{name}'"):
            Calibration.from_dict({key: value for key, value in RISING.to_dict().items() if key != name})
    others: list[object] = [None, [], "x", 3]
    for wrong in others:
        with pytest.raises(DataError, match="must be an object"):
            Calibration.from_dict(wrong)
    with pytest.raises(DataError, match="tytoalba-calibration"):
        Calibration.from_dict(RISING.to_dict() | {"format": "tytoalba-blend"})


# -------------------------------------------------------------------------------------------- evidence


def slow_evidence(row: Numbers, found: list[float]) -> list[float]:
    """The definition, one direction at a time."""
    step = 360 / len(row)
    real = [a for a in found if not math.isnan(a)]
    rivals = [y for c, y in enumerate(row) if all(angles.distance(c * step, a) > 15 for a in real)]
    rival = max(rivals, default=min(row))
    heights = [NAN if math.isnan(a) else row[round(a / step) % len(row)] for a in found]
    return [2 * height - rival for height in heights]


@light
@given(seeds, st.sampled_from([12, 36, 360]), st.integers(0, 3))
def test_evidence_is_its_definition(seed: int, n_directions: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = scores_of(seed, n_directions=n_directions)
    azimuth = np.where(
        rng.random((4, n)) < 0.3, NAN, rng.integers(0, n_directions, (4, n)) * 360 / n_directions
    )
    expected = np.reshape(
        [slow_evidence(row, list(found)) for row, found in zip(scores, azimuth, strict=True)], (4, n)
    )
    np.testing.assert_allclose(calibration.evidence(scores, azimuth), expected, atol=1e-12)


@light
@given(seeds, st.integers(0, 359))
def test_turning_the_maps_keeps_the_evidence(seed: int, k: int) -> None:
    scores = scores_of(seed)
    turned = np.roll(scores, k, axis=1)
    azimuth = angles.decode_two(scores)
    np.testing.assert_array_equal(
        calibration.evidence(turned, angles.wrap(azimuth + k)), calibration.evidence(scores, azimuth)
    )


@light
@given(seeds, st.floats(0.01, 1.0))
def test_evidence_grows_with_the_peak_and_falls_with_its_rival(seed: int, more: float) -> None:
    scores = scores_of(seed)
    azimuth = angles.decode(scores)
    before = calibration.evidence(scores, azimuth)
    higher, rival = scores.copy(), scores.copy()
    np.put_along_axis(higher, angles.to_class(azimuth)[:, None], scores.max(axis=1)[:, None] + more, axis=1)
    far = angles.to_class(azimuth + 180.0)[:, None]
    np.put_along_axis(rival, far, scores.max(axis=1)[:, None] + more, axis=1)
    assert (calibration.evidence(higher, azimuth) > before).all()
    assert (calibration.evidence(rival, azimuth) < before).all()


def test_evidence_by_hand() -> None:
    scores = np.zeros((1, 360))
    scores[0, [0, 15, 344, 200]] = [1.0, 0.9, 0.3, 0.25]
    assert calibration.evidence(scores, [0.0]) == pytest.approx(np.array([[1.7]]))  # 344 is 16 away
    assert calibration.evidence(scores, [359.7]) == pytest.approx(
        np.array([[1.1]])
    )  # and 15 is now 15.3 away
    half = np.where(np.arange(360) < 180, scores, -np.inf)  # an array on a line: its images are ruled out
    assert calibration.evidence(half, [[0.0, 200.0]]) == pytest.approx(np.array([[2.0, 0.0]]))
    assert calibration.evidence(scores[:0], np.empty((0, 2))).shape == (0, 2)
    assert np.isnan(calibration.evidence(scores, [[NAN, NAN]])).all()


def test_evidence_tells_right_from_wrong() -> None:
    rng = np.random.default_rng(3)
    true = rng.uniform(0, 360, 4000)
    loud = rng.uniform(0, 1.5, (4000, 1))
    scores = loud * angles.encode(true) + rng.normal(0, 0.2, (4000, 360))  # noise alone peaks at about 0.6
    found = angles.decode(scores)
    right = angles.distance(found, true) <= 5
    x = calibration.evidence(scores, found)[:, 0]
    fitted = Calibration.fit(x[:2000], right[:2000])
    claimed = fitted.probability(x[2000:])
    share = right[:2000].mean()
    assert 0.4 < share < 0.9
    share_alone = np.full(2000, share)
    assert brier_score(claimed, right[2000:]) < 0.7 * brier_score(share_alone, right[2000:])
    assert right[2000:][claimed > 0.9].mean() > 0.85


def test_evidence_refuses_what_are_no_maps() -> None:
    with pytest.raises(ValueError, match="azimuth has 2 frames and scores 1"):
        calibration.evidence(np.zeros((1, 360)), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"\(n_frames, n_directions\)"):
        calibration.evidence(np.zeros(360), [1.0])
    for damaged in (NAN, np.inf, -np.inf):
        with pytest.raises(ValueError, match="silent or damaged"):
            calibration.evidence(np.full((1, 360), damaged), [1.0])


# ----------------------------------------------------------------------------------- how well it is known


@light
@given(seeds, st.integers(1, 20), st.integers(1, 200))
def test_reliability_is_its_definition(seed: int, n_bins: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    p, right = rng.integers(0, 65, n) / 64, rng.random(n) < 0.5
    bins = calibration.reliability(p, right, n_bins)
    expected = 0.0
    for b in range(n_bins):
        inside = [
            i for i in range(n) if b / n_bins <= p[i] < (b + 1) / n_bins or (p[i] == 1 and b == n_bins - 1)
        ]
        assume(
            all(
                abs(p[i] * n_bins - round(p[i] * n_bins)) > 1e-9 or n_bins in (1, 2, 4, 8, 16) for i in inside
            )
        )
        assert bins.count[b] == len(inside)
        if inside:
            assert bins.probability[b] == pytest.approx(np.mean(p[inside]))
            assert bins.accuracy[b] == pytest.approx(np.mean(right[inside]))
            expected += len(inside) / n * float(abs(np.mean(p[inside]) - np.mean(right[inside])))
        else:
            assert np.isnan([bins.probability[b], bins.accuracy[b]]).all()
    assert calibration.expected_calibration_error(p, right, n_bins) == pytest.approx(expected)


@pytest.mark.parametrize(
    "measure",
    [
        calibration.expected_calibration_error,
        calibration.reliability,
        plot_reliability,
    ],
)
def test_measures_refuse_what_is_no_probability(measure: Callable[..., Any]) -> None:
    rest = ("title",) if measure is plot_reliability else ()
    for claimed, message in (([90.0], "percent"), ([-0.1], "percent"), ([NAN], "NaN"), ([], "no decision")):
        with pytest.raises(ValueError, match=message):
            measure(claimed, [True] * len(claimed), *rest)
    with pytest.raises(ValueError, match="n_bins"):
        measure([0.5], [True], *rest, n_bins=0)


def test_the_diagram_shows_the_error(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    p, right = np.array([[0.1, 0.3], [0.8, 0.9]]), np.array([[False, True], [True, True]])
    figure = plot_reliability(p, right, "toy", n_bins=2)
    assert figure.axes[0].get_title() == "toy (ECE 0.225)"
    found = figure.axes[0].get_lines()[1]
    np.testing.assert_allclose(np.asarray(found.get_xydata(), np.float64), [[0.2, 0.5], [0.85, 1.0]])
    assert [bar.get_height() for bar in figure.axes[1].patches] == [2, 2]  # type: ignore[attr-defined]
    save_figure(figure, tmp_path / "toy.png")
    assert (tmp_path / "toy.png").stat().st_size > 1000
    plot_reliability([0.5], [True], "one decision")
