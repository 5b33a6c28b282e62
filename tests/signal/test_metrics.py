"""Direction metrics: by hand, against slow brute force, and by the properties they must have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.signal import metrics as metrics
from tytoalba.signal.metrics import Rule

NAN = math.nan
Directions = NDArray[np.float64]
Frame = list[float]
Pairs = list[tuple[int, int]]

# Eighths of a degree are exact in binary, so that turning them round the circle changes no last bit.
azimuths = st.integers(0, 8 * 360 - 1).map(lambda eighth: eighth / 8)
tolerances = st.integers(0, 8 * 180).map(lambda eighth: eighth / 8)
light = settings(max_examples=40, deadline=None)


def table(n_frames: int, n_sources: int, elements: st.SearchStrategy[float]) -> st.SearchStrategy[Directions]:
    rows = st.lists(elements, min_size=n_sources, max_size=n_sources)
    frames = st.lists(rows, min_size=n_frames, max_size=n_frames)
    return frames.map(lambda each: np.array(each, dtype=np.float64).reshape(n_frames, n_sources))


@st.composite
def known(draw: st.DrawFn, max_sources: int = 3) -> tuple[Directions, Directions]:
    n_frames, n_sources = draw(st.integers(1, 4)), draw(st.integers(1, max_sources))
    return draw(table(n_frames, n_sources, azimuths)), draw(table(n_frames, n_sources, azimuths))


@st.composite
def unknown(draw: st.DrawFn, n_sets: int = 2) -> list[Directions]:
    """Directions of the same frames, of different widths, with holes anywhere."""
    n_frames, maybe = draw(st.integers(1, 3)), azimuths | st.just(NAN)
    return [draw(table(n_frames, draw(st.integers(0, 3)), maybe)) for _ in range(n_sets)]


def floats(result: Any) -> list[float]:
    """Every number of a result, whatever it is wrapped in."""
    if isinstance(result, dict):
        return list(result.values())
    if isinstance(result, metrics.Gospa):
        parts = (result.distance, result.localisation, result.missed, result.false)
        return [float(x) for part in parts for x in part]
    return [float(result)] if isinstance(result, float) else list(astuple(result))


KNOWN = ["mae", "median_error", "accuracy", "accuracies", "front_back_confusion"]
UNKNOWN = ["detection", "locata", "dcase", "gospa"]
EVERY: dict[str, Callable[..., Any]] = {name: getattr(metrics, name) for name in KNOWN + UNKNOWN}


# ---- an independent implementation: one frame at a time, every assignment tried ----


def apart(a: float, b: float) -> float:
    return abs((a - b + 180.0) % 360.0 - 180.0)


def sources(frame: Directions) -> Frame:
    return [float(x) for x in frame if not math.isnan(x)]


def pairings(n: int, m: int) -> Iterator[Pairs]:
    """All ways of pairing some of n with some of m, one to one."""
    if n == 0:
        yield []
        return
    for rest in pairings(n - 1, m):
        yield rest
        taken = {j for _, j in rest}
        yield from ([*rest, (n - 1, j)] for j in range(m) if j not in taken)


def slow_least_total(reference: Frame, estimate: Frame) -> float:
    orders = permutations(estimate)
    return min(sum(apart(a, b) for a, b in zip(reference, order, strict=True)) for order in orders)


def slow_found(reference: Frame, estimate: Frame, tolerance: float) -> int:
    near = [
        pairs
        for pairs in pairings(len(reference), len(estimate))
        if all(apart(reference[i], estimate[j]) <= tolerance for i, j in pairs)
    ]
    return max(len(pairs) for pairs in near)


def slow_gospa(reference: Frame, estimate: Frame, cutoff: float, order: float) -> float:
    def cost(pairs: Pairs) -> float:
        alone = len(reference) + len(estimate) - 2 * len(pairs)
        errors = [apart(reference[i], estimate[j]) for i, j in pairs]
        return float(sum(error**order for error in errors) + cutoff**order / 2 * alone)

    return float(min(cost(pairs) for pairs in pairings(len(reference), len(estimate))) ** (1 / order))


# ---- the number of sources is known ----


def test_errors_go_round_the_circle() -> None:
    errors = metrics.match([359.0, 1.0, 180.0, 0.0], [1.0, 359.0, -180.0, 720.0])
    assert errors.tolist() == [[2], [2], [0], [0]]
    assert metrics.mae([350.0, 20.0], [10.0, 20.0]) == 10.0


def test_one_source_by_hand() -> None:
    reference, estimate = [0.0, 10.0, 350.0, 180.0], [5.0, 350.0, 350.0, 60.0]  # errors 5, 20, 0, 120
    assert metrics.mae(reference, estimate) == 36.25
    assert metrics.median_error(reference, estimate) == 12.5
    assert metrics.accuracy(reference, estimate) == 0.5
    assert metrics.accuracy(reference, estimate, tolerance=4.9) == 0.25
    assert metrics.accuracies(reference, estimate) == {5: 0.5, 10: 0.5, 15: 0.5, 20: 0.75, 30: 0.75}


def test_an_error_equal_to_the_tolerance_counts_whatever_its_last_bit() -> None:
    tenths = np.arange(0, 360, 0.1)
    assert metrics.accuracy(tenths, (tenths + 5.0) % 360) == 1.0
    assert metrics.hits([8.3, 3.3, 8.3], [3.3, 8.3, 3.2]).tolist() == [[True], [True], [False]]


def test_both_rules_by_hand() -> None:
    reference, estimate = [[0.0, 100.0]], [[60.0, 200.0]]
    assert metrics.align(reference, estimate, "best").tolist() == [[60.0, 200.0]]
    assert metrics.align(reference, estimate, "greedy").tolist() == [[200.0, 60.0]]
    assert metrics.mae(reference, estimate, rule="best") == 80.0
    assert metrics.mae(reference, estimate, rule="greedy") == 100.0
    assert metrics.accuracy(reference, estimate, tolerance=45.0, rule="greedy") == 0.5


def test_equal_totals_keep_the_nearest_pair_in_any_order() -> None:
    for reference in ([0.0, 10.0], [10.0, 0.0]):
        for estimate in ([20.0, 30.0], [30.0, 20.0]):  # 10 + 30 or 20 + 20
            assert sorted(metrics.match([reference], [estimate])[0]) == [10.0, 30.0]


@light
@given(known())
def test_best_is_the_least_total_error(pair: tuple[Directions, Directions]) -> None:
    reference, estimate = pair
    slow = [slow_least_total(*map(sources, frame)) for frame in zip(reference, estimate, strict=True)]
    best = metrics.match(reference, estimate)
    np.testing.assert_allclose(best.sum(axis=1), slow, atol=1e-9)
    greedy = metrics.match(reference, estimate, rule="greedy")
    assert (best.sum(axis=1) <= greedy.sum(axis=1) + 1e-9).all()
    assert (greedy.min(axis=1) <= best.min(axis=1)).all()


@pytest.mark.parametrize(("n_sources", "n_frames"), [(2, 1000), (3, 300), (4, 40), (5, 10)])
def test_best_of_random_directions(n_sources: int, n_frames: int) -> None:
    reference, estimate = np.random.default_rng(3).uniform(0, 360, (2, n_frames, n_sources))
    slow = [slow_least_total(*map(sources, frame)) for frame in zip(reference, estimate, strict=True)]
    hair = 1e-9 if n_sources <= 4 else 1e-4  # beyond four, equal totals are told apart by tilting them
    np.testing.assert_allclose(metrics.match(reference, estimate).sum(axis=1), slow, atol=hair)


@light
@given(known())
def test_align_only_reorders(pair: tuple[Directions, Directions]) -> None:
    rules: tuple[Rule, ...] = ("best", "greedy")
    for rule in rules:
        aligned = metrics.align(*pair, rule)
        np.testing.assert_array_equal(np.sort(aligned, axis=1), np.sort(pair[1], axis=1))


@light
@given(known(), st.randoms(use_true_random=False))
def test_greedy_does_not_depend_on_the_order_of_sources(
    pair: tuple[Directions, Directions], random: Any
) -> None:
    reference, estimate = pair
    for frame in zip(reference, estimate, strict=True):
        between = [apart(a, b) for a in frame[0] for b in frame[1]]
        assume(len(set(between)) == len(between))  # among equals the first is taken, as He does
    order = random.sample(range(reference.shape[1]), reference.shape[1])
    expected = metrics.match(reference, estimate, "greedy")
    np.testing.assert_array_equal(metrics.match(reference, estimate[:, order], "greedy"), expected)
    np.testing.assert_array_equal(metrics.match(reference[:, order], estimate, "greedy"), expected[:, order])


def test_front_back_confusion_by_hand() -> None:
    #            confused, right, wrong but in front, on the axis, confused across 0/360
    reference = [30.0, 30.0, 0.0, 95.0, 350.0]
    estimate = [145.0, 33.0, 60.0, 275.0, 190.0]
    assert metrics.front_back_confusion(reference, estimate) == 2 / 4
    # Mirrored at front-back instead, 95 -> 275 is confused; 30 (twice), 0 and 350 lie too near to tell.
    assert metrics.front_back_confusion(reference, estimate, axis=0.0, margin=35.0) == 1.0
    assert math.isnan(metrics.front_back_confusion([90.0], [270.0]))
    # 20 and its image 160 are 140 apart, but within the tolerance nothing is confused.
    assert metrics.front_back_confusion([20.0], [160.0], tolerance=140.0) == 0.0
    assert metrics.front_back_confusion([[10.0, 200.0]], [[198.0, 168.0]]) == 0.5


@light
@given(known(max_sources=1))
def test_every_source_heard_at_its_image_is_confused(pair: tuple[Directions, Directions]) -> None:
    reference, _ = pair
    assume((np.abs(np.cos(np.deg2rad(reference))) > np.sin(np.deg2rad(11))).any())
    assert metrics.front_back_confusion(reference, 180.0 - reference) == 1.0
    assert metrics.front_back_confusion(reference, reference) == 0.0


# ---- the number of sources is unknown ----


def test_detection_by_hand() -> None:
    reference = [[0.0, 90.0], [10.0, NAN], [NAN, NAN]]
    estimate = [[358.0, NAN, 200.0], [14.0, 12.0, NAN], [NAN, NAN, 50.0]]
    assert metrics.count(reference, estimate).tolist() == [[1, 2, 2], [1, 1, 2], [0, 0, 1]]
    assert metrics.detection(reference, estimate) == metrics.Detection(2 / 5, 2 / 3, 4 / 8)


def test_detection_pairs_as_many_as_possible() -> None:
    # The nearest pair (4, 5) would leave 0 and 9 alone; 0-4 and 5-9 finds both.
    assert metrics.count([[0.0, 5.0]], [[4.0, 9.0]], tolerance=4.0).tolist() == [[2, 2, 2]]
    # Even where that costs a perfect pair (100, 100) and two errors as large as the tolerance.
    assert metrics.count([[0.0, 100.0]], [[100.0, 200.0]], tolerance=100.0).tolist() == [[2, 2, 2]]


def test_nothing_to_find_and_nothing_found() -> None:
    nothing = np.full((2, 1), NAN)
    assert all(math.isnan(x) for x in astuple(metrics.detection(nothing, nothing)))
    assert metrics.detection([0.0, 1.0], nothing).f1 == 0.0
    assert math.isnan(metrics.detection([0.0, 1.0], nothing).precision)
    assert metrics.dcase([0.0, 1.0], nothing) == metrics.Dcase(180.0, 0.0, 0.0)
    assert metrics.locata(nothing, [0.0, 1.0]).false_alarms_per_frame == 1.0
    assert math.isnan(metrics.locata(nothing, [0.0, 1.0]).mdr)
    assert metrics.gospa(nothing, np.empty((2, 0))).distance.tolist() == [0.0, 0.0]


def test_locata_by_hand() -> None:
    reference = [[0.0, 90.0], [10.0, NAN]]
    estimate = [[30.0, 121.0], [10.0, 200.0]]  # found at the gate itself, missed, found; two false alarms
    assert metrics.locata(reference, estimate) == metrics.Locata(1 / 3, 2 / 3, 1.0, 15.0)
    assert metrics.locata(reference, estimate, gate=5.0) == metrics.Locata(2 / 3, 1.0, 1.5, 0.0)


def test_dcase_by_hand() -> None:
    reference = [[0.0, 90.0], [10.0, NAN], [50.0, NAN]]
    estimate = [[340.0, 150.0], [NAN, NAN], [60.0, 200.0]]  # pairs off by 20, 60 and 10
    assert metrics.dcase(reference, estimate) == metrics.Dcase(30.0, 3 / 4, 4 / 8)


def test_dcase_pairs_before_it_looks_at_the_tolerance() -> None:
    reference, estimate = [[0.0, 16.0]], [[18.0, 36.0]]  # 18 + 20 or 36 + 2: equal, so 16-18 stays
    assert metrics.dcase(reference, estimate).f_score == 0.5
    assert metrics.detection(reference, estimate, tolerance=20.0).f1 == 1.0


def test_gospa_by_hand() -> None:
    result = metrics.gospa([[0.0, 90.0], [10.0, NAN]], [[350.0, 150.0], [NAN, 13.0]], cutoff=20.0)
    assert result.localisation.tolist() == [pytest.approx(100.0), pytest.approx(9.0)]
    assert result.missed.tolist() == [200.0, 0.0]
    assert result.false.tolist() == [200.0, 0.0]
    assert result.distance.tolist() == [pytest.approx(math.sqrt(500.0)), pytest.approx(3.0)]
    assert metrics.gospa([0.0], [4.0], cutoff=20.0, order=1.0).distance.tolist() == [pytest.approx(4.0)]


@light
@given(unknown(), tolerances)
def test_count_is_what_brute_force_finds(sets: list[Directions], tolerance: float) -> None:
    frames = [tuple(map(sources, frame)) for frame in zip(*sets, strict=True)]
    expected = [[slow_found(a, b, tolerance), len(a), len(b)] for a, b in frames]
    assert metrics.count(sets[0], sets[1], tolerance).tolist() == expected


@light
@given(unknown(), st.sampled_from([5.0, 30.0, 180.0, 360.0]), st.sampled_from([1.0, 1.5, 2.0, 5.0]))
def test_gospa_is_what_brute_force_finds(sets: list[Directions], cutoff: float, order: float) -> None:
    frames = [tuple(map(sources, frame)) for frame in zip(*sets, strict=True)]
    result = metrics.gospa(sets[0], sets[1], cutoff, order)
    np.testing.assert_allclose(
        result.distance, [slow_gospa(a, b, cutoff, order) for a, b in frames], atol=1e-9
    )
    parts = result.localisation + result.missed + result.false
    np.testing.assert_allclose(parts, result.distance**order, atol=1e-6)


@light
@given(unknown(n_sets=3), st.sampled_from([10.0, 60.0, 180.0]), st.sampled_from([1.0, 2.0, 3.0]))
def test_gospa_is_a_metric(sets: list[Directions], cutoff: float, order: float) -> None:
    def between(i: int, j: int) -> NDArray[Any]:
        return metrics.gospa(sets[i], sets[j], cutoff, order).distance

    assert (between(0, 0) == 0).all()
    np.testing.assert_allclose(between(0, 1), between(1, 0), atol=1e-9)
    assert (between(0, 2) <= between(0, 1) + between(1, 2) + 1e-9).all()
    for a, b, gap in zip(sets[0], sets[1], between(0, 1), strict=True):
        assert (gap == 0) == (sorted(sources(a)) == sorted(sources(b)))


def test_more_sources_than_fit_in_one_table() -> None:
    rng = np.random.default_rng(5)
    reference, estimate = rng.uniform(0, 360, (8, 3)), rng.uniform(0, 360, (8, 5))
    frames = [tuple(map(sources, frame)) for frame in zip(reference, estimate, strict=True)]
    assert metrics.count(reference, estimate, 25.0)[:, 0].tolist() == [
        slow_found(a, b, 25.0) for a, b in frames
    ]
    slow = [slow_gospa(a, b, 40.0, 2.0) for a, b in frames]
    np.testing.assert_allclose(metrics.gospa(reference, estimate, 40.0).distance, slow, rtol=1e-6)


# ---- what every metric must do ----


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), turn=st.integers(-8 * 720, 8 * 720).map(lambda eighth: eighth / 8))
def test_turning_the_room_changes_nothing(name: str, data: st.DataObject, turn: float) -> None:
    reference, estimate = data.draw(known() if name in KNOWN else unknown())
    before, after = {}, {}
    if name == "front_back_confusion":
        before, after = {"axis": 90.0}, {"axis": 90.0 + turn}
    expected = floats(EVERY[name](reference, estimate, **before))
    np.testing.assert_allclose(floats(EVERY[name](reference + turn, estimate + turn, **after)), expected)


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_order_of_sources_and_frames_means_nothing(name: str, data: st.DataObject) -> None:
    reference, estimate = data.draw(known() if name in KNOWN else unknown())
    seed = data.draw(st.integers(0, 99))
    expected = floats(EVERY[name](reference, estimate))
    shuffled = np.random.default_rng(seed).permuted(reference, axis=1)
    np.testing.assert_allclose(floats(EVERY[name](shuffled, estimate)), expected, atol=1e-9)
    shuffled = np.random.default_rng(seed).permuted(estimate, axis=1)
    np.testing.assert_allclose(floats(EVERY[name](reference, shuffled)), expected, atol=1e-9)
    if name != "gospa":  # which answers frame by frame
        backwards = EVERY[name](reference[::-1], estimate[::-1])
        np.testing.assert_allclose(floats(backwards), expected, atol=1e-9)


@light
@given(known(), tolerances)
def test_bounds_with_a_known_number(pair: tuple[Directions, Directions], tolerance: float) -> None:
    errors = metrics.match(*pair)
    assert errors.min() <= metrics.median_error(*pair) <= errors.max() <= 180
    assert 0 <= metrics.mae(*pair) <= 180
    assert 0 <= metrics.accuracy(*pair, tolerance) <= 1
    assert metrics.accuracy(*pair, 180.0) == 1
    at = list(metrics.accuracies(*pair).values())
    assert at == sorted(at)
    assert metrics.mae(pair[0], pair[0]) == 0
    assert metrics.accuracy(pair[0], pair[0], 0.0) == 1


@light
@given(unknown(), tolerances)
def test_bounds_with_an_unknown_number(sets: list[Directions], tolerance: float) -> None:
    reference, estimate = sets
    there, back = (
        metrics.detection(reference, estimate, tolerance),
        metrics.detection(estimate, reference, tolerance),
    )
    np.testing.assert_equal((there.precision, there.f1), (back.recall, back.f1))
    gated = metrics.locata(reference, estimate, tolerance)
    np.testing.assert_allclose(gated.mdr, 1 - there.recall)
    overall = metrics.dcase(reference, estimate, tolerance)
    assert 0 <= overall.error <= 180
    assert not overall.f_score > there.f1 + 1e-12  # pairing within the tolerance finds at least as many
    assert not there.recall > overall.recall + 1e-12
    for rate in (there.precision, there.recall, there.f1, gated.mdr, overall.recall, overall.f_score):
        assert math.isnan(rate) or 0 <= rate <= 1


@light
@given(known(max_sources=1))
def test_with_one_source_a_frame_detection_is_accuracy(pair: tuple[Directions, Directions]) -> None:
    correct = metrics.accuracy(*pair)
    assert metrics.detection(*pair) == metrics.Detection(correct, correct, correct)
    assert metrics.dcase(*pair).error == pytest.approx(metrics.mae(*pair))


# ---- what is refused ----

OFF = (-1.0, 181.0, NAN, math.inf)


@pytest.mark.parametrize(
    ("names", "reference", "estimate", "why"),
    [
        (EVERY, [], [], "no frame"),
        (EVERY, [1.0, 2.0, 3.0], [1.0, 2.0], r"3 frames and estimate 2; .* transposed"),
        (EVERY, [1.0], [math.inf], "infinite"),
        (EVERY, [[[1.0]]], [1.0], r"\(n_frames, n_sources\), got shape \(1, 1, 1\)"),
        (KNOWN, [1.0, NAN, 3.0], [1.0, 2.0, 3.0], r"reference is NaN .* in 1 of 3 frames, first in frame 1"),
        (KNOWN, [1.0], [NAN], r"estimate is NaN \(no source\) .* use detection"),
        (KNOWN, [[1.0, 2.0]], [1.0], "reference holds 2 and estimate 1 sources a frame"),
        (KNOWN, np.empty((2, 0)), np.empty((2, 0)), "at least one"),
    ],
)
def test_bad_directions_are_refused(names: Iterable[str], reference: Any, estimate: Any, why: str) -> None:
    for name in names:
        with pytest.raises(ValueError, match=why):
            EVERY[name](reference, estimate)


@pytest.mark.parametrize(
    ("names", "option", "values", "why"),
    [
        ("accuracy count detection dcase", "tolerance", OFF, r"tolerance must be degrees in \[0, 180\]"),
        ("front_back_confusion", "tolerance", OFF, r"tolerance must be degrees in \[0, 180\]"),
        ("front_back_confusion", "margin", (100.0,), r"margin must be degrees in \[0, 90\]"),
        ("front_back_confusion", "axis", (NAN,), "axis"),
        ("locata", "gate", OFF, r"gate must be degrees in \[0, 180\]"),
        ("accuracies", "tolerances", ((5.0, -5.0),), "tolerance"),
        ("match", "rule", ("nearest",), "'best' or 'greedy', got 'nearest'"),
        ("gospa", "cutoff", (0.0, -1.0, NAN, math.inf), "cutoff"),
        ("gospa", "order", (0.5, NAN, math.inf), "order"),
    ],
)
def test_bad_options_are_refused(names: str, option: str, values: Iterable[Any], why: str) -> None:
    for name in names.split():
        for value in values:
            with pytest.raises(ValueError, match=why):
                getattr(metrics, name)([1.0], [1.0], **{option: value})


def test_inputs_are_left_alone() -> None:
    reference, estimate = np.array([[1.0, 200.0]]), np.array([[198.0, 3.0]])
    for metric in EVERY.values():
        metric(reference, estimate)
    metrics.match(reference, estimate, rule="greedy")
    assert (reference.tolist(), estimate.tolist()) == ([[1.0, 200.0]], [[198.0, 3.0]])


# ---- the bootstrap ----


def recordings(rng: np.random.Generator, n: int = 30, n_frames: int = 8) -> tuple[NDArray[Any], NDArray[Any]]:
    """Errors around 10 degrees, alike within a recording, and the recording of each frame."""
    own = rng.normal(10.0, 2.0, n)
    return np.repeat(own, n_frames) + rng.normal(0, 0.5, n * n_frames), np.repeat(np.arange(n), n_frames)


def test_the_mean_is_the_slow_way_made_fast() -> None:
    values, groups = recordings(np.random.default_rng(2))
    groups[:3] = groups[-1]  # recordings of different length, not in order
    fast = metrics.bootstrap(values, groups, rng=np.random.default_rng(7))
    slow = metrics.bootstrap(values, groups, lambda rows: rows.mean(), rng=np.random.default_rng(7))
    assert (fast.value, fast.low, fast.high) == pytest.approx((slow.value, slow.low, slow.high))
    assert fast.value == pytest.approx(values.mean())
    assert fast.low < fast.value < fast.high


def test_interval_of_three_recordings_by_hand() -> None:
    # 1 in 27 draws takes the same recording three times: the ends of 95 % are the extreme recordings.
    result = metrics.bootstrap([1.0, 1.0, 5.0, 6.0], ["a", "a", "b", "c"], rng=np.random.default_rng(0))
    assert result == metrics.Interval(3.25, 1.0, 6.0)


def test_alike_frames_promise_less_than_independent_ones() -> None:
    values, groups = recordings(np.random.default_rng(4), n_frames=20)
    whole = metrics.bootstrap(values, groups, rng=np.random.default_rng(0))
    single = metrics.bootstrap(values, np.arange(len(values)), rng=np.random.default_rng(0))
    assert whole.high - whole.low > 3 * (single.high - single.low)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(200):
        result = metrics.bootstrap(*recordings(rng), n_resamples=200, level=0.9, rng=rng)
        hits += result.low <= 10.0 <= result.high
    assert 0.83 <= hits / 200 <= 0.95


def test_a_higher_level_is_wider() -> None:
    values, groups = recordings(np.random.default_rng(8))
    narrow = metrics.bootstrap(values, groups, level=0.5, rng=np.random.default_rng(0))
    wide = metrics.bootstrap(values, groups, level=0.99, rng=np.random.default_rng(0))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_only_the_given_generator_decides() -> None:
    values, groups = recordings(np.random.default_rng(8))
    one = metrics.bootstrap(values, groups, rng=np.random.default_rng(3))
    order = np.random.default_rng(9).permutation(len(values))
    again = metrics.bootstrap(values[order], groups[order], rng=np.random.default_rng(3))
    other = metrics.bootstrap(values, groups, rng=np.random.default_rng(4))
    assert (one.low, one.high) == pytest.approx((again.low, again.high))
    assert (one.low, one.high) != (other.low, other.high)


def test_sources_and_counts_come_as_columns() -> None:
    rng = np.random.default_rng(5)
    reference = rng.uniform(0, 360, (40, 2))
    estimate = reference + rng.normal(0, 5, (40, 2))
    groups = np.repeat(np.arange(8), 5)
    errors = metrics.match(reference, estimate)
    assert metrics.bootstrap(errors, groups, rng=rng).value == pytest.approx(metrics.mae(reference, estimate))

    def f1(rows: NDArray[Any]) -> float:
        found, n_reference, n_estimate = rows.sum(axis=0)
        return float(2 * found / (n_reference + n_estimate))

    result = metrics.bootstrap(metrics.count(reference, estimate), groups, f1, n_resamples=100, rng=rng)
    assert result.value == pytest.approx(metrics.detection(reference, estimate).f1)
    assert 0 <= result.low <= result.value <= result.high <= 1
    middle = metrics.bootstrap(errors, groups, np.median, n_resamples=100, rng=rng)
    assert middle.value == metrics.median_error(reference, estimate)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"values": [], "groups": []}, r"values must be .* got shape \(0,\)"),
        ({"groups": ["a"]}, r"groups must be \(2,\)"),
        ({"groups": ["a", "a"]}, "one recording"),
        ({"values": [1.0, NAN]}, "NaN or infinity"),
        ({"n_resamples": 0}, "n_resamples"),
        *(({"level": bad}, r"level must be a fraction .* such as 0.95") for bad in (0.0, 1.0, 95.0, NAN)),
        ({"rng": 0}, "numpy Generator"),
    ],
)
def test_bad_bootstraps_are_refused(change: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"values": [1.0, 2.0], "groups": ["a", "b"], "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=why):
        metrics.bootstrap(**given | change)
