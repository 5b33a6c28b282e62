"""Degrees: by hand, against slow loops, and by the symmetries of the circle."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.signal import angles as angles

NAN = math.nan
Scores = NDArray[np.float64]

# Eighths of a degree are exact in binary, so that turning them round the circle changes no last bit.
eighths = st.integers(-8 * 1000, 8 * 1000).map(lambda eighth: eighth / 8)
degrees = st.floats(-1e6, 1e6)
whole = st.integers(0, 359)
turns = st.integers(-5, 5)
seeds = st.integers(0, 2**32 - 1)
grids = st.sampled_from([8, 12, 36, 72, 360])
light = settings(max_examples=60, deadline=None)


@st.composite
def apart(draw: st.DrawFn, at_least: int) -> tuple[int, int]:
    """Two whole degrees at least so far apart on the circle."""
    first = draw(whole)
    return first, (first + draw(st.integers(at_least, 360 - at_least))) % 360


def distinct_scores(seed: int, n_frames: int = 3, n_directions: int = 360) -> Scores:
    """Scores without ties: what a rule says about them cannot depend on the order of directions."""
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n_directions) / n_directions for _ in range(n_frames)])


def tied_scores(seed: int, n_directions: int, n_frames: int = 3) -> Scores:
    """Scores of few values: flat tops and equal peaks everywhere."""
    return np.random.default_rng(seed).integers(0, 4, (n_frames, n_directions)).astype(float)


# ------------------------------------------------------------------------------------------ the circle


@light
@given(degrees)
def test_wrap_stays_on_the_circle_and_keeps_the_direction(azimuth: float) -> None:
    wrapped = float(angles.wrap(azimuth))
    assert 0.0 <= wrapped < 360.0
    assert float(angles.wrap(wrapped)) == wrapped
    there, here = np.exp(1j * np.deg2rad([azimuth, wrapped]))
    assert abs(there - here) < 1e-8


@light
@given(eighths, turns)
def test_wrap_forgets_whole_turns_and_never_gives_360(azimuth: float, k: int) -> None:
    assert angles.wrap(azimuth + 360 * k) == angles.wrap(azimuth)
    assert angles.wrap([-1e-300, -1e-20, -1e-15]).max() < 360.0


@light
@given(degrees, degrees)
def test_distance_is_the_angle_between_unit_vectors(a: float, b: float) -> None:
    apart = float(angles.distance(a, b))
    assert 0.0 <= apart <= 180.0
    assert apart == angles.distance(b, a)
    assert -180.0 <= float(angles.signed_difference(a, b)) < 180.0
    turned = np.exp(1j * np.deg2rad(a)) * np.exp(-1j * np.deg2rad(b))
    assert apart == pytest.approx(abs(np.rad2deg(np.angle(turned))), abs=1e-6)


@light
@given(eighths, eighths, eighths, turns)
def test_distance_is_a_metric_of_the_circle(a: float, b: float, c: float, k: int) -> None:
    assert angles.distance(a + c, b + c + 360 * k) == angles.distance(a, b)
    assert angles.distance(a, c) <= angles.distance(a, b) + angles.distance(b, c)
    assert angles.distance(a, a + 360 * k) == 0


@light
@given(eighths, eighths)
def test_signed_difference_turns_b_to_a(a: float, b: float) -> None:
    turn = float(angles.signed_difference(a, b))
    assert -180.0 <= turn < 180.0
    assert abs(turn) == angles.distance(a, b)
    assert angles.wrap(b + turn) == angles.wrap(a)


def test_nan_stays_nan_and_touches_nothing_else() -> None:
    for compare in (angles.distance, angles.signed_difference):
        result = compare([10.0, NAN, 350.0], [[20.0], [NAN]])
        assert result.shape == (2, 3)
        assert np.isnan(result).tolist() == [[False, True, False], [True, True, True]]
        assert abs(result[0, 2]) == 30.0
    assert np.isnan(angles.wrap([1.0, NAN])).tolist() == [False, True]


# ----------------------------------------------------------------------------------- classes and labels


@light
@given(degrees, st.integers(2, 720))
def test_class_is_the_nearest_direction(azimuth: float, n: int) -> None:
    index = int(angles.to_class(azimuth, n))
    assert 0 <= index < n
    off = angles.distance(angles.grid(n), azimuth)
    assert off[index] <= off.min() + 1e-8


@light
@given(st.lists(st.tuples(degrees | st.just(math.nan), degrees), max_size=30), st.integers(0, 30))
def test_counts_of_directions_add_and_subtract(frames: list[tuple[float, float]], cut: int) -> None:
    azimuth = np.array(frames, np.float64).reshape(-1, 2)
    whole = angles.count_directions(azimuth, 36)
    first, rest = (angles.count_directions(part, 36) for part in (azimuth[:cut], azimuth[cut:]))
    assert whole.sum() == np.isfinite(azimuth).sum()
    assert whole.shape == (36,)
    assert np.array_equal(first + rest, whole)
    assert np.array_equal(whole - rest, first)


@given(whole, turns)
def test_class_of_a_whole_degree_is_that_degree(k: int, turn: int) -> None:
    assert angles.to_class(k + 360.0 * turn) == k
    assert angles.to_class([k - 0.4, k + 0.4]).tolist() == [k, k]


def slow_encode(directions: NDArray[np.float64], sigma: float, n: int) -> Scores:
    """The definition of the label, one number at a time."""
    label = np.zeros((len(directions), n))
    for t, sources in enumerate(directions):
        for c in range(n):
            for source in sources:
                if not math.isnan(source):
                    turn = (c * 360.0 / n - source) % 360.0
                    off = min(turn, 360.0 - turn)
                    label[t, c] = max(label[t, c], math.exp(-(off**2) / sigma**2))
    return label


sources = st.lists(
    st.lists(st.floats(-720, 720) | st.just(NAN), min_size=2, max_size=2), min_size=1, max_size=3
)


@settings(max_examples=25, deadline=None)
@given(sources, st.floats(0.5, 90.0), st.sampled_from([5, 72, 360]))
def test_label_is_its_definition(frames: list[list[float]], sigma: float, n: int) -> None:
    directions = np.array(frames)
    label = angles.encode(directions, sigma, n)
    assert label.dtype == np.float32
    assert label.shape == (len(frames), n)
    np.testing.assert_allclose(label, slow_encode(directions, sigma, n), rtol=0, atol=1e-6)


@light
@given(st.lists(whole, min_size=1, max_size=3), whole)
def test_label_turns_with_its_sources(directions: list[int], k: int) -> None:
    turned = angles.encode([[float(a + k) for a in directions]])
    assert np.array_equal(turned, np.roll(angles.encode([[float(a) for a in directions]]), k, axis=1))


@light
@given(sources)
def test_label_ignores_the_order_of_sources_holes_and_other_frames(frames: list[list[float]]) -> None:
    directions = np.array(frames)
    label = angles.encode(directions)
    assert np.array_equal(label, angles.encode(directions[:, ::-1]))
    assert np.array_equal(label, angles.encode(np.insert(directions, 1, NAN, axis=1)))
    for t, row in enumerate(directions):
        assert np.array_equal(label[t], angles.encode(row[None])[0])
        if np.isnan(row).all():
            assert not label[t].any()


def test_label_by_hand() -> None:
    label = angles.encode([359.0])[0]
    assert label[359] == 1.0
    assert label[0] == label[358] == np.float32(math.exp(-1 / 64))  # sigma 8, no factor 2, circular
    assert np.array_equal(angles.encode([10.0, 20.0]), angles.encode([[10.0], [20.0]]))
    assert angles.encode(np.empty((0, 2))).shape == (0, 360)


# --------------------------------------------------------------------------------- scores to directions


DECODERS: list[Callable[[Scores], angles.Float]] = [
    angles.decode,
    angles.decode_two,
    partial(angles.decode_peaks, n_sources=3),
    partial(angles.decode_threshold, threshold=0.6, max_sources=5),
]


@pytest.mark.parametrize("decoder", DECODERS)
@settings(max_examples=25, deadline=None)
@given(seed=seeds, k=whole)
def test_turning_the_scores_turns_the_directions(
    decoder: Callable[[Scores], angles.Float], seed: int, k: int
) -> None:
    scores = distinct_scores(seed)
    turned = decoder(np.roll(scores, k, axis=1))
    np.testing.assert_array_equal(turned, angles.wrap(decoder(scores) + k))


@pytest.mark.parametrize("decoder", DECODERS)
@settings(max_examples=25, deadline=None)
@given(seed=seeds, n=grids)
def test_a_frame_is_decoded_alone(decoder: Callable[[Scores], angles.Float], seed: int, n: int) -> None:
    scores = tied_scores(seed, n, n_frames=5)
    together = decoder(scores)
    assert len(together) == 5
    for t in range(5):
        np.testing.assert_array_equal(together[t], decoder(scores[t : t + 1])[0])
    assert decoder(scores[:0]).shape == (0, *together.shape[1:])


@pytest.mark.parametrize("decoder", DECODERS)
def test_scores_of_any_number_type_decode_alike(decoder: Callable[[Scores], angles.Float]) -> None:
    scores = np.round(8 * angles.encode([[20.0, 140.0], [7.0, 300.0]])).astype(np.float64)
    expected = decoder(scores / 8)
    for dtype in (np.float16, np.float32, np.longdouble):
        np.testing.assert_array_equal(decoder((scores / 8).astype(dtype)), expected)
    one_hot = np.eye(360)[[9, 200]]
    for kind in (np.int64, np.bool_):
        np.testing.assert_array_equal(decoder(one_hot.astype(kind)), decoder(one_hot))


@light
@given(whole, st.floats(-0.49, 0.49))
def test_one_source_comes_back(k: int, off: float) -> None:
    assert angles.decode(angles.encode([float(k + off)])).tolist() == [float(k)]


@light
@given(apart(9))
def test_two_sources_come_back_from_every_rule(pair: tuple[int, int]) -> None:
    label = angles.encode([[float(pair[0]), float(pair[1])]])
    expected = sorted(float(a) for a in pair)
    assert sorted(angles.decode_peaks(label, 2)[0]) == expected
    if angles.distance(*pair) >= 16:  # nearer ones the blanking rule cannot tell apart
        assert sorted(angles.decode_two(label)[0]) == expected
        found = angles.decode_threshold(label, 0.5, max_sources=3)[0]
        assert sorted(found[:2]) == expected
        assert np.isnan(found[2])


def slow_decode_two(row: Scores, blank: Fraction) -> list[float]:
    """argmax p, then the first largest of the directions outside [p - blank, p + blank)."""
    n = len(row)
    first = max(range(n), key=lambda c: (row[c], -c))
    allowed = []
    for c in range(n):
        turn = Fraction(360 * (c - first), n) % 360
        turn = turn - 360 if turn >= 180 else turn
        if not -blank <= turn < blank:
            allowed.append(c)
    second = max(allowed, key=lambda c: (row[c], -c))
    return [float(Fraction(360 * c, n)) for c in (first, second)]


@light
@given(seeds, grids, st.sampled_from([5, 15, 45, 60, Fraction(45, 2), 135]))
def test_blanking_rule_is_its_definition(seed: int, n: int, blank: int | Fraction) -> None:
    scores = tied_scores(seed, n)
    found = angles.decode_two(scores, float(blank))
    assert found.tolist() == [slow_decode_two(row, Fraction(blank)) for row in scores]


def test_blanked_interval_is_closed_below_and_open_above() -> None:
    scores = np.zeros((1, 360))
    scores[0, [100, 115, 85, 84]] = [1.0, 0.5, 0.9, 0.4]
    assert angles.decode_two(scores).tolist() == [[100.0, 115.0]]
    scores[0, 115] = 0.0
    assert angles.decode_two(scores).tolist() == [[100.0, 84.0]]


def slow_peaks(row: Scores, neighbourhood: Fraction) -> list[int]:
    """Directions that no neighbour exceeds; of a run of equal ones the first."""
    n = len(row)

    def largest(c: int) -> bool:
        for other in range(n):
            turn = Fraction(360 * (other - c), n) % 360
            if min(turn, 360 - turn) <= neighbourhood and row[other] > row[c]:
                return False
        return True

    return [c for c in range(n) if largest(c) and not (largest(c - 1) and row[c - 1] == row[c])]


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from([8, 12, 36]), st.integers(1, 5), st.integers(1, 4))
def test_peak_rules_are_their_definition(seed: int, n: int, reach: int, n_sources: int) -> None:
    scores = tied_scores(seed, n)
    neighbourhood = Fraction(360 * reach, n)
    for t, row in enumerate(scores):
        ranked = sorted(slow_peaks(row, neighbourhood), key=lambda c: (-row[c], c))
        best = ranked or [int(np.argmax(row))]
        expected = [360.0 / n * c for c in (best + [best[0]] * n_sources)[:n_sources]]
        found = angles.decode_peaks(scores, n_sources, float(neighbourhood))
        assert found[t].tolist() == expected
        above = [360.0 / n * c for c in ranked if row[c] >= 2.0][:n_sources]
        heard = angles.decode_threshold(scores, 2.0, float(neighbourhood), n_sources)[t]
        assert heard[~np.isnan(heard)].tolist() == above
        assert heard.shape == (n_sources,)


@light
@given(seeds, st.floats(0.0, 1.0))
def test_threshold_keeps_every_peak_at_or_above_it(seed: int, height: float) -> None:
    scores = distinct_scores(seed)
    found = angles.decode_threshold(scores, height, max_sources=40)
    for row, peak, directions in zip(scores, angles.is_peak(scores), found, strict=True):
        heard = directions[np.isfinite(directions)].astype(int)
        assert np.isnan(directions[len(heard) :]).all()
        assert (row[heard] >= height).all()
        assert (np.diff(row[heard]) < 0).all()
        assert len(heard) == np.sum(row[peak] >= height)
        if len(heard):  # the threshold is inclusive
            again = angles.decode_threshold(row[None], float(row[heard[-1]]), max_sources=40)[0]
            assert np.isfinite(again).sum() == len(heard)


def test_flat_scores_have_no_peak() -> None:
    flat = np.ones((2, 360))
    assert not angles.is_peak(flat).any()
    assert np.isnan(angles.decode_threshold(flat, 0.5)).all()
    assert angles.decode_peaks(flat, 2).tolist() == [[0.0, 0.0]] * 2


def test_flat_top_across_north_counts_once() -> None:
    scores = -np.cos(np.deg2rad(angles.grid()))[None]  # a round hill at 180
    scores[0, [358, 359, 0, 1]] = 2.0
    assert np.flatnonzero(angles.is_peak(scores)[0]).tolist() == [180, 358]
    assert angles.decode_peaks(scores, 2).tolist() == [[358.0, 180.0]]


def test_more_sources_than_directions() -> None:
    scores = np.array([[0.0, 1.0, 0.0, 0.5]])
    assert angles.decode_peaks(scores, 6, 90.0).tolist() == [[90.0, 270.0, 90.0, 90.0, 90.0, 90.0]]
    heard = angles.decode_threshold(scores, 0.1, 90.0, max_sources=6)
    np.testing.assert_array_equal(heard, [[90.0, 270.0, NAN, NAN, NAN, NAN]])


@pytest.mark.parametrize("decoder", [*DECODERS, angles.is_peak])
def test_decoders_refuse_what_are_no_scores(decoder: Callable[[Scores], object]) -> None:
    for shape in ((360,), (2, 3, 360), (5, 1), (5, 0)):
        with pytest.raises(ValueError, match=r"\(n_frames, n_directions\)"):
            decoder(np.zeros(shape))
    damaged = np.zeros((2, 360))
    damaged[1, 7] = NAN
    with pytest.raises(ValueError, match="NaN"):
        decoder(damaged)


@pytest.mark.parametrize(
    ("function", "option", "values", "why"),
    [
        (angles.encode, "sigma", (0.0, -8.0, NAN), "sigma must be positive"),
        (angles.decode_peaks, "n_sources", (0, -1), "n_sources must be at least 1"),
        (partial(angles.decode_peaks, n_sources=1), "neighbourhood", (0.0, -8.0, NAN), "neighbourhood"),
        (partial(angles.decode_threshold, threshold=0.5), "max_sources", (0, -1), "max_sources"),
        (angles.decode_threshold, "threshold", (NAN,), "threshold must be a number"),
        (angles.decode_two, "blank", (0.0, -5.0, 180.0, 400.0), "blanking"),
    ],
)
def test_senseless_settings_are_refused(
    function: Callable[..., object], option: str, values: tuple[float, ...], why: str
) -> None:
    for value in values:
        with pytest.raises(ValueError, match=why):
            function(angles.encode([1.0]), **{option: value})


def test_directions_become_frames_by_sources() -> None:
    assert angles.frames_by_sources([1.0, 2.0]).shape == (2, 1)
    assert angles.frames_by_sources([[1.0, NAN]]).shape == (1, 2)
    assert angles.grid(8).tolist() == [0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0]


# ------------------------------------------------------------------------------- between the directions


@light
@given(st.floats(0.0, 360.0), st.floats(2.0, 30.0), st.sampled_from([np.float32, np.float64]))
def test_a_bump_between_directions_is_found(azimuth: float, width: float, dtype: type) -> None:
    bump = np.exp(-((angles.distance(angles.grid(), azimuth) / width) ** 2))[None].astype(dtype)
    assert angles.distance(angles.refine(bump, angles.decode(bump)), azimuth).max() < 0.05


def test_bumps_all_round_the_circle_are_found() -> None:
    azimuth = np.arange(0.0, 360.0, 0.1)
    label = angles.encode(azimuth)
    found = angles.decode(label)
    assert angles.distance(found, azimuth).max() > 0.45  # the grid alone cannot
    assert angles.distance(angles.refine(label, found), azimuth).max() < 0.01


@light
@given(seeds, st.sampled_from([2, 3, 8, 36, 360]), st.booleans())
def test_refined_directions_keep_their_shape_their_holes_and_near_their_grid(
    seed: int, n: int, tied: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores = tied_scores(seed, n) if tied else distinct_scores(seed, n_directions=n)
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    index = rng.integers(0, n, (3, 2))
    azimuth = np.where(rng.random(index.shape) < 0.2, NAN, index * (360.0 / n))
    refined = angles.refine(scores, azimuth)
    np.testing.assert_array_equal(np.isnan(refined), np.isnan(azimuth))
    there = np.isfinite(azimuth)
    assert (angles.distance(refined, azimuth)[there] <= 180.0 / n + 1e-9).all()
    assert ((refined[there] >= 0) & (refined[there] < 360)).all()
    np.testing.assert_array_equal(angles.refine(scores, refined), refined)  # once is enough
    np.testing.assert_array_equal(angles.refine(scores, azimuth[:, 0]), refined[:, 0])
    np.testing.assert_allclose(angles.refine(4.0 * scores - 8.0, azimuth), refined, atol=1e-9)


@light
@given(seeds, whole)
def test_turning_the_scores_turns_the_refined_directions(seed: int, k: int) -> None:
    scores = distinct_scores(seed)
    azimuth = angles.decode_two(scores)
    turned = angles.refine(np.roll(scores, k, axis=1), angles.wrap(azimuth + k))
    assert angles.distance(turned, angles.refine(scores, azimuth) + k).max() < 1e-9


def test_refined_by_hand() -> None:
    scores = np.zeros((1, 360))
    scores[0, [359, 0, 1]] = [2.0, 4.0, 3.0]  # falls by 2 and by 1: (2 - 1) / (2 + 1) / 2
    assert angles.refine(scores, [[0.0, NAN]])[0, 0] == pytest.approx(1 / 6)
    assert angles.refine(np.roll(scores, -1, axis=1), [359.0]) == pytest.approx([359 + 1 / 6])
    assert angles.refine(scores, [1.0]).tolist() == [1.0]  # on the slope of 0
    scores[0, 1] = 4.0
    assert angles.refine(scores, [[0.0, 1.0]]).tolist() == [[0.5, 0.5]]  # a flat top of two
    scores[0, 2] = 4.0
    assert angles.refine(scores, [[0.0, 1.0, 2.0]]).tolist() == [[0.5, 1.0, 1.5]]  # of three
    assert angles.refine(np.ones((1, 360)), [-10.0]).tolist() == [350.0]
    for huge in (np.inf, -np.inf, 1.7e308):
        assert np.isfinite(angles.refine(np.where(scores == 4.0, huge, -huge), [[0.0, 7.0]])).all()
    assert angles.refine(scores[:0], np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("function", "given", "why"),
    [
        (angles.to_class, ([10.0, NAN],), "not finite"),
        (angles.to_class, ([10.0, math.inf],), "not finite"),
        (angles.to_class, ([10.0, -math.inf],), "not finite"),
        (angles.encode, (3.0,), r"\(n_frames, n_sources\)"),
        (angles.encode, (np.zeros((1, 2, 3)),), r"\(n_frames, n_sources\)"),
        (angles.encode, ([math.inf],), "infinite"),
        (angles.refine, (np.zeros((3, 360)), [1.0, 2.0]), "azimuth has 2 frames and scores 3"),
        (angles.refine, (np.zeros(360), [1.0]), r"\(n_frames, n_directions\)"),
    ],
)
def test_what_are_no_directions_is_refused(
    function: Callable[..., object], given: tuple[object, ...], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        function(*given)
