"""How far the estimated directions are from the true ones.

Pure functions of (reference, estimate). Both are azimuths in degrees, (n_frames,) for one source a
frame or (n_frames, n_sources), NaN for "no source". Errors are circular distances in degrees, in
[0, 180]; rates are fractions in [0, 1], not percent, and NaN where there is nothing to divide by.

The number of sources is known: `match`, `mae`, `median_error`, `accuracy`, `front_back_confusion`.
It is unknown, so that sources are missed and invented: `detection`, `locata`, `dcase`, `gospa`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.signal.angles import Float, distance, frames_by_sources

Rule = Literal["best", "greedy"]
TOLERANCE = 5.0
"""Degrees within which a source counts as found."""
TOLERANCES = (TOLERANCE, 10.0, 15.0, 20.0, 30.0)

_ROUNDING = 1e-9  # degrees: 4.9 and 359.9 are 5 apart, whatever their last bit says
_MOST_OPTIONS = 24  # 4!: beyond four sources a frame at a time is faster than every permutation


def align(reference: ArrayLike, estimate: ArrayLike, rule: Rule = "best") -> Float:
    """Reorder the sources of each estimated frame to stand under their reference, in degrees.

    The rule "best" is the permutation of least total error; among equals (the rule, not the exception:
    any two estimates to the same side of both sources) the one that keeps the nearest pair together.
    "greedy" is He's rule: pair the nearest two, then the nearest two of what is left.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    rule : {"best", "greedy"}
        How estimates and references are paired.

    Returns
    -------
    array, (n_frames, n_sources)
        The estimates, reordered, degrees.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> align([[10.0, 200.0]], [[190.0, 12.0]]).tolist()
    [[12.0, 190.0]]
    """
    reference, estimate = _known(reference, estimate)
    if rule == "best":
        order = _pair(reference, estimate)[1].argmax(axis=2)  # (F, N)
    elif rule == "greedy":
        order = _nearest_first(distance(reference[:, :, None], estimate[:, None, :]))
    else:
        raise ValueError(f"rule must be 'best' or 'greedy', got {rule!r}")
    return np.take_along_axis(estimate, order, axis=1)


def match(reference: ArrayLike, estimate: ArrayLike, rule: Rule = "best") -> Float:
    """Error of every source in degrees, (n_frames, n_sources), the number of sources being known.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    rule : {"best", "greedy"}
        How estimates and references are paired: see `align`.

    Returns
    -------
    array, (n_frames, n_sources)
        Degrees in [0, 180].

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> match([[0.0, 20.0]], [[21.0, 350.0]]).tolist()
    [[10.0, 1.0]]

    The two rules differ where the nearest pair leaves a bad one behind:

    >>> match([[0.0, 100.0]], [[60.0, 200.0]], rule="best").tolist()
    [[60.0, 100.0]]
    >>> match([[0.0, 100.0]], [[60.0, 200.0]], rule="greedy").tolist()
    [[160.0, 40.0]]
    """
    aligned = align(reference, estimate, rule)
    return distance(frames_by_sources(reference), aligned)


def within(error: ArrayLike, tolerance: float = TOLERANCE) -> NDArray[np.bool_]:
    """Whether errors are at most `tolerance`: the one meaning of "within 5 degrees" in this package.

    Parameters
    ----------
    error : array, any shape
        Degrees, 0 or more; NaN (no source) is never within.
    tolerance : float
        Degrees. A billionth more still counts, so that rounding does not decide.

    Returns
    -------
    array of bool, same shape

    Examples
    --------
    >>> within([4.9, 5.0, 5.1, float("nan")]).tolist()
    [True, True, False, False]
    >>> within(8.3 - 3.3).item()  # 5.000000000000001 in binary
    True
    """
    inside: NDArray[np.bool_] = np.asarray(error, dtype=np.float64) <= tolerance + _ROUNDING
    return inside


def hits(
    reference: ArrayLike, estimate: ArrayLike, tolerance: float = TOLERANCE, rule: Rule = "best"
) -> NDArray[np.bool_]:
    """Which sources were found within `tolerance` degrees, (n_frames, n_sources); see `match`.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, with the same known number of sources.
    tolerance : float
        Degrees.
    rule : {"best", "greedy"}
        How estimates and references are paired.

    Returns
    -------
    array of bool, (n_frames, n_sources)

    Examples
    --------
    >>> hits([[0.0, 20.0]], [[21.0, 350.0]]).tolist()
    [[False, True]]
    """
    return within(match(reference, estimate, rule), tolerance)


def mae(reference: ArrayLike, estimate: ArrayLike, rule: Rule = "best") -> float:
    """Mean absolute error in degrees over all matched sources.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    rule : {"best", "greedy"}
        How estimates and references are paired: see `align`.

    Returns
    -------
    float
        Degrees.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> mae([359.0, 90.0], [1.0, 96.0])
    4.0
    """
    return float(match(reference, estimate, rule).mean())


def median_error(reference: ArrayLike, estimate: ArrayLike, rule: Rule = "best") -> float:
    """Median absolute error in degrees over all matched sources: one wild frame does not move it.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    rule : {"best", "greedy"}
        How estimates and references are paired: see `align`.

    Returns
    -------
    float
        Degrees.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> median_error([0.0, 0.0, 0.0], [1.0, 358.0, 180.0])
    2.0
    """
    return float(np.median(match(reference, estimate, rule)))


def accuracy(reference: ArrayLike, estimate: ArrayLike, tolerance: float = 5.0, rule: Rule = "best") -> float:
    """Fraction of matched sources whose error is at most `tolerance` degrees.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    tolerance : float
        Degrees.
    rule : {"best", "greedy"}
        How estimates and references are paired: see `align`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> accuracy([0.0, 0.0, 0.0, 0.0], [5.0, 355.0, 6.0, 180.0])
    0.5
    """
    return accuracies(reference, estimate, (tolerance,), rule)[float(tolerance)]


def accuracies(
    reference: ArrayLike,
    estimate: ArrayLike,
    tolerances: Iterable[float] = TOLERANCES,
    rule: Rule = "best",
) -> dict[float, float]:
    """Accuracy at each tolerance in degrees.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    tolerances : iterable of float
        Degrees.
    rule : {"best", "greedy"}
        How estimates and references are paired: see `align`.

    Returns
    -------
    dict of float to float
        Accuracy in [0, 1] by tolerance.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> accuracies([0.0, 0.0, 0.0, 0.0], [1.0, 12.0, 350.0, 90.0])
    {5.0: 0.25, 10.0: 0.5, 15.0: 0.75, 20.0: 0.75, 30.0: 0.75}
    """
    limits = [_degrees("tolerance", tolerance) for tolerance in tolerances]
    errors = match(reference, estimate, rule)
    return {limit: float(within(errors, limit).mean()) for limit in limits}


def front_back_confusion(
    reference: ArrayLike,
    estimate: ArrayLike,
    tolerance: float = 5.0,
    axis: float = 90.0,
    margin: float = 10.0,
) -> float:
    """Fraction of sources found on the wrong side of a line of microphones.

    A source is confused when its estimate is off by more than `tolerance` degrees and nearer to its
    mirror image than to itself. The mirror is the line through `axis` and `axis` + 180 degrees, by
    default left-right, which swaps front and back. References within `margin` degrees of the line
    are left out: they and their image are the same direction. Several sources are matched first.

    Front (30) found in the back (148) is a confusion, 30 found at 80 is only an error, and 88 is too
    near to the line to tell:

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    tolerance : float
        Degrees.
    axis : float
        Azimuth of the line of microphones, degrees.
    margin : float
        Degrees beside the line that are left out.

    Returns
    -------
    float
        In [0, 1], NaN where no reference is clear of the line.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> front_back_confusion([30.0, 30.0, 88.0], [148.0, 80.0, 92.0])
    0.5
    """
    confused, clear = front_back_counts(reference, estimate, tolerance, axis, margin)
    return _ratio(confused, clear)


def front_back_counts(
    reference: ArrayLike,
    estimate: ArrayLike,
    tolerance: float = 5.0,
    axis: float = 90.0,
    margin: float = 10.0,
) -> tuple[int, int]:
    """How many sources were found on the wrong side of a line of microphones, and how many could have been.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, the same known number of sources in both.
    tolerance, axis, margin : float
        Degrees, as `front_back_confusion` has them.

    Returns
    -------
    tuple of int
        Sources confused, and references clear of the line.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> front_back_counts([30.0, 30.0, 88.0], [148.0, 80.0, 92.0])
    (1, 2)
    """
    tolerance, margin = _degrees("tolerance", tolerance), _degrees("margin", margin, most=90.0)
    if not math.isfinite(axis):
        raise ValueError(f"axis must be an azimuth in degrees, got {axis}")
    aligned = align(reference, estimate)
    reference = frames_by_sources(reference)
    errors = distance(reference, aligned)
    off_axis = distance(2 * reference, 2 * axis) / 2  # to the nearer end of the line, in [0, 90]
    clear = ~within(off_axis, margin)
    nearer_to_image = distance(2 * axis - reference, aligned) < errors - _ROUNDING
    confused = clear & nearer_to_image & ~within(errors, tolerance)
    return int(confused.sum()), int(clear.sum())


def count(reference: ArrayLike, estimate: ArrayLike, tolerance: float = 5.0) -> NDArray[np.intp]:
    """How many sources each frame has found, holds and claims: (n_frames, 3) integers.

    As many estimates as possible are paired with a reference within `tolerance` degrees, one to one.
    The rows add up, so that whole recordings can be summed or resampled before any ratio is taken.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, NaN for "no source"; their numbers of sources may differ.
    tolerance : float
        Degrees.

    Returns
    -------
    array of int, (n_frames, 3)
        Found, in the reference, in the estimate.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> count([[0.0, 90.0], [10.0, float("nan")]], [[2.0, 200.0, 93.0], [30.0, 12.0, 11.0]]).tolist()
    [[2, 2, 3], [1, 1, 3]]
    """
    tolerance = _degrees("tolerance", tolerance)
    reference, estimate = _frames(reference, estimate)
    found = _pair(reference, estimate, tolerance)[1].sum(axis=(1, 2))
    return np.stack([found, _n_sources(reference), _n_sources(estimate)], axis=1)


@dataclass(frozen=True)
class Detection:
    """Precision (NaN without estimates), recall (NaN without references) and F1 (NaN without both)."""

    precision: float
    recall: float
    f1: float


def detection(reference: ArrayLike, estimate: ArrayLike, tolerance: float = 5.0) -> Detection:
    """Precision, recall and F1 over all frames, for an unknown number of sources.

    Pairs are one to one (see `count`).

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, NaN for "no source"; their numbers of sources may differ.
    tolerance : float
        Degrees.

    Returns
    -------
    Detection
        Fractions in [0, 1], NaN where there is nothing to divide by.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> detection([[0.0, 90.0], [10.0, float("nan")]], [[2.0, 200.0], [12.0, 120.0]])
    Detection(precision=0.5, recall=0.6666666666666666, f1=0.5714285714285714)
    """
    found, n_reference, n_estimate = count(reference, estimate, tolerance).sum(axis=0).tolist()
    return Detection(
        precision=_ratio(found, n_estimate),
        recall=_ratio(found, n_reference),
        f1=_ratio(2 * found, n_reference + n_estimate),
    )


@dataclass(frozen=True)
class Locata:
    """Missed detections and false alarms with a gate, in the manner of the LOCATA challenge.

    mdr: missed sources / true sources. far: false alarms / true sources, which may exceed 1.
    false_alarms_per_frame: times the frames per second, it is the challenge's own rate per second.
    error: mean error of the sources found, degrees.
    """

    mdr: float
    far: float
    false_alarms_per_frame: float
    error: float


def locata(reference: ArrayLike, estimate: ArrayLike, gate: float = 30.0) -> Locata:
    """Missed detection and false alarm rate: estimates beyond `gate` degrees find nothing.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, NaN for "no source"; their numbers of sources may differ.
    gate : float
        Degrees.

    Returns
    -------
    Locata
        Rates per true source, and the mean error of those found in degrees.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> locata([[0.0, 90.0], [10.0, float("nan")]], [[4.0, 121.0], [350.0, 200.0]])
    Locata(mdr=0.3333333333333333, far=0.6666666666666666, false_alarms_per_frame=1.0, error=12.0)
    """
    gate = _degrees("gate", gate)
    reference, estimate = _frames(reference, estimate)
    errors, paired = _pair(reference, estimate, gate)
    n_found, n_reference = paired.sum(), np.isfinite(reference).sum()
    n_false = np.isfinite(estimate).sum() - n_found
    return Locata(
        mdr=_ratio(n_reference - n_found, n_reference),
        far=_ratio(n_false, n_reference),
        false_alarms_per_frame=_ratio(n_false, len(reference)),
        error=_ratio(errors[paired].sum(), n_found),
    )


@dataclass(frozen=True)
class Dcase:
    """Localization error (degrees), localization recall and location-dependent F-score (fractions)."""

    error: float
    recall: float
    f_score: float


def dcase(reference: ArrayLike, estimate: ArrayLike, tolerance: float = 20.0) -> Dcase:
    """LE, LR and F20 of the DCASE challenge for a single class, frame by frame.

    As many sources as possible are paired for the least total error, however far apart. LE is the
    mean error of these pairs (180 when there is none), LR the fraction of references that have one,
    and F counts the pairs within `tolerance` degrees. `detection` pairs anew within the tolerance and
    may therefore find more.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, NaN for "no source"; their numbers of sources may differ.
    tolerance : float
        Degrees.

    Returns
    -------
    Dcase
        Error in degrees; recall and F-score in [0, 1].

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> dcase([[0.0, 90.0], [10.0, float("nan")]], [[4.0, 150.0], [float("nan"), float("nan")]])
    Dcase(error=32.0, recall=0.6666666666666666, f_score=0.4)
    """
    tolerance = _degrees("tolerance", tolerance)
    reference, estimate = _frames(reference, estimate)
    errors, paired = _pair(reference, estimate)
    error = errors[paired]
    n_reference, n_estimate = np.isfinite(reference).sum(), np.isfinite(estimate).sum()
    return Dcase(
        error=float(error.mean()) if len(error) else 180.0,
        recall=_ratio(len(error), n_reference),
        f_score=_ratio(2 * within(error, tolerance).sum(), n_reference + n_estimate),
    )


@dataclass(frozen=True, eq=False)
class Gospa:
    """GOSPA of each frame: distance**order = localisation + missed + false.

    distance: (n_frames,) degrees. The three parts: (n_frames,) degrees to the power `order`.
    """

    distance: Float
    localisation: Float
    missed: Float
    false: Float


def gospa(reference: ArrayLike, estimate: ArrayLike, cutoff: float = 30.0, order: float = 2.0) -> Gospa:
    """Generalised optimal sub-pattern assignment distance of each frame, alpha = 2, on the circle.

    A source found at error d < cutoff costs d**order, a missed or a false one cutoff**order / 2. It is
    a metric between sets of directions.

    Parameters
    ----------
    reference, estimate : array, (n_frames,) or (n_frames, n_sources)
        Degrees, NaN for "no source"; their numbers of sources may differ.
    cutoff : float
        Degrees, in (0, 360].
    order : float
        In [1, 50].

    Returns
    -------
    Gospa
        Distance of each frame, and what it is made of.

    Raises
    ------
    ValueError
        Directions of different frames or, where the number must be known, of different numbers.

    Examples
    --------
    >>> result = gospa([[0.0, 90.0]], [[3.0, float("nan")]], cutoff=20.0)
    >>> result.localisation.tolist(), result.missed.tolist(), result.false.tolist()
    ([9.0], [200.0], [0.0])
    >>> result.distance.round(3).tolist()
    [14.457]
    """
    if not 0 < cutoff <= 360:
        raise ValueError(f"cutoff must be degrees in (0, 360], got {cutoff}")
    if not 1 <= order <= 50:
        raise ValueError(f"order must be in [1, 50] (below 1 it is no metric), got {order}")
    reference, estimate = _frames(reference, estimate)
    errors = distance(reference[:, :, None], estimate[:, None, :])  # (F, N, M)
    cost = np.minimum(errors / cutoff, 1.0) ** order  # 1: as dear as to leave both alone
    found = _assign(np.where(cost < 1, 1 - cost, 0.0)) & (cost < 1)
    n_found = found.sum(axis=(1, 2))
    localisation = np.where(found, cost, 0.0).sum(axis=(1, 2))
    missed = (_n_sources(reference) - n_found) / 2
    false = (_n_sources(estimate) - n_found) / 2
    unit = float(cutoff) ** order
    return Gospa(
        distance=cutoff * (localisation + missed + false) ** (1 / order),
        localisation=localisation * unit,
        missed=missed * unit,
        false=false * unit,
    )


@dataclass(frozen=True)
class Interval:
    """A value and its confidence interval, all in the unit of the value."""

    value: float
    low: float
    high: float

    @classmethod
    def of_resamples(cls, value: float, resampled: ArrayLike, level: float = 0.95) -> Interval:
        """The percentile interval of a value that was computed again for each resample."""
        low, high = np.quantile(np.asarray(resampled), [(1 - level) / 2, (1 + level) / 2]).tolist()
        return cls(value, low, high)


def resamples(n_groups: int, n_resamples: int, *, rng: np.random.Generator) -> NDArray[np.intp]:
    """Groups drawn with replacement, as many as there are: (n_resamples, n_groups) numbers of groups.

    Parameters
    ----------
    n_groups, n_resamples : int
        At least 1.
    rng : numpy.random.Generator
        What draws.

    Returns
    -------
    array of int, (n_resamples, n_groups)

    Examples
    --------
    >>> resamples(3, 2, rng=np.random.default_rng(0)).shape
    (2, 3)
    """
    return np.stack([rng.integers(n_groups, size=n_groups) for _ in range(n_resamples)])


def bootstrap(
    values: ArrayLike,
    groups: ArrayLike,
    statistic: Callable[[Float], Any] = np.mean,
    n_resamples: int = 1000,
    level: float = 0.95,
    *,
    rng: np.random.Generator,
) -> Interval:
    """Percentile bootstrap interval that draws whole recordings, with replacement.

    Frames of one recording resemble each other: drawing frames one by one would promise too much.

    Parameters
    ----------
    values : array, (n_frames,) or (n_frames, n_columns)
        What was measured of each frame, such as errors in degrees or the rows of `count`.
    groups : array, (n_frames,)
        The recording of each frame: names or numbers, at least two different ones.
    statistic : callable
        From the rows drawn to a number. The mean is fast: it needs only the sum of each recording.
    n_resamples : int
        How often recordings are drawn.
    level : float
        Share of the resamples that the interval holds, in (0, 1).
    rng : numpy.random.Generator
        What draws; the same generator gives the same interval.

    Returns
    -------
    Interval
        The statistic of all frames, and the ends of its interval, in the unit of the statistic.

    Raises
    ------
    ValueError
        Values that are empty or not finite, groups of another length, a single recording, a level or a number
        of resamples that makes no sense.

    Examples
    --------
    >>> errors = [2.0, 2.0, 4.0, 4.0, 9.0, 9.0]
    >>> bootstrap(errors, ["a", "a", "b", "b", "c", "c"], rng=np.random.default_rng(0))
    Interval(value=5.0, low=2.0, high=9.0)
    """
    rows = np.asarray(values, dtype=np.float64)
    names, recording = np.unique(np.asarray(groups), return_inverse=True)
    _check_bootstrap(rows, np.shape(groups), len(names), n_resamples, level)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator such as np.random.default_rng(0), got {rng!r}")
    draws = resamples(len(names), n_resamples, rng=rng)
    sizes = np.bincount(recording)
    if statistic is np.mean:
        sums = np.bincount(recording, weights=rows.reshape(len(rows), -1).mean(axis=1))
        resampled = [sums[drawn].sum() / sizes[drawn].sum() for drawn in draws]
    else:
        recordings = np.split(rows[np.argsort(recording, kind="stable")], np.cumsum(sizes)[:-1])
        resampled = [statistic(np.concatenate([recordings[i] for i in drawn])) for drawn in draws]
    return Interval.of_resamples(float(statistic(rows)), resampled, level)


def _pair(reference: Float, estimate: Float, gate: float = 180.0) -> tuple[Float, NDArray[np.bool_]]:
    """Errors of all pairs and which are taken, both (F, N, M): most pairs first, then least error."""
    errors = distance(reference[:, :, None], estimate[:, None, :])
    allowed = within(errors, gate)  # never where there is no source
    weight = 180.0 * (1 + min(errors.shape[1:]))  # one more pair outweighs all errors together
    return errors, _assign(np.where(allowed, 1 - errors / weight, 0.0)) & allowed


def _assign(gain: Float) -> NDArray[np.bool_]:
    """The one-to-one assignment of largest total gain of each frame, as a mask: (F, N, M) in [0, 1]."""
    if gain.shape[1] > gain.shape[2]:
        return _assign(gain.swapaxes(1, 2)).swapaxes(1, 2)
    n_rows, n_columns = gain.shape[1:]
    if math.perm(n_columns, n_rows) <= _MOST_OPTIONS:
        options = np.array(list(permutations(range(n_columns), n_rows)), dtype=np.intp)  # (O, N)
        gains = [gain[:, np.arange(n_rows), option] for option in options]  # O x (F, N)
        totals = np.stack([each.sum(axis=1) for each in gains])  # (O, F)
        # Equal totals must not fall as the sources happen to be ordered: the most uneven one wins.
        uneven = np.stack([(each**2).sum(axis=1) for each in gains])
        tied = totals >= totals.max(axis=0) - 1e-12
        columns = options[np.where(tied, uneven, -1.0).argmax(axis=0)]
    else:
        from scipy.optimize import linear_sum_assignment

        tilted = gain + 1e-7 * gain**2  # the same preference, in a form this solver can take
        columns = np.stack([linear_sum_assignment(frame, maximize=True)[1] for frame in tilted])
    chosen = np.zeros(gain.shape, dtype=np.bool_)
    np.put_along_axis(chosen, columns[:, :, None], True, axis=2)
    return chosen


def _nearest_first(errors: Float) -> NDArray[np.intp]:
    """Column of each row when the nearest pair is taken out again and again: (F, N, N) -> (F, N)."""
    left = errors.copy()
    frames, n_sources = np.arange(len(left)), left.shape[2]
    order = np.empty(left.shape[:2], dtype=np.intp)
    for _ in range(n_sources):
        row, column = np.divmod(left.reshape(len(left), -1).argmin(axis=1), n_sources)
        order[frames, row] = column
        left[frames, row, :] = np.inf
        left[frames, :, column] = np.inf
    return order


def _frames(reference: ArrayLike, estimate: ArrayLike) -> tuple[Float, Float]:
    reference, estimate = frames_by_sources(reference), frames_by_sources(estimate)
    if len(reference) != len(estimate):
        raise ValueError(
            f"reference has {len(reference)} frames and estimate {len(estimate)}; frames come first, "
            "(n_frames, n_sources): is one of them transposed, or were frames dropped from one only?"
        )
    if not len(reference):
        raise ValueError("reference and estimate hold no frame, so there is nothing to measure")
    return reference, estimate


def _known(reference: ArrayLike, estimate: ArrayLike) -> tuple[Float, Float]:
    reference, estimate = _frames(reference, estimate)
    if reference.shape != estimate.shape or not reference.size:
        raise ValueError(
            f"reference holds {reference.shape[1]} and estimate {estimate.shape[1]} sources a frame, "
            "expected the same number, at least one; where it is unknown use detection, locata or gospa"
        )
    for name, directions in (("reference", reference), ("estimate", estimate)):
        missing = np.flatnonzero(np.isnan(directions).any(axis=1))
        if len(missing):
            raise ValueError(
                f"{name} is NaN (no source) in {len(missing)} of {len(directions)} frames, first in frame "
                f"{missing[0]}; drop frames without source, or use detection, locata or gospa"
            )
    return reference, estimate


def _degrees(name: str, value: float, most: float = 180.0) -> float:
    if not 0 <= value <= most:
        raise ValueError(f"{name} must be degrees in [0, {most:g}], got {value}")
    return float(value)


def _n_sources(directions: Float) -> NDArray[np.intp]:
    present: NDArray[np.intp] = np.isfinite(directions).sum(axis=1)
    return present


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else math.nan


def _check_bootstrap(
    rows: Float, groups_shape: tuple[int, ...], n_groups: int, n_resamples: int, level: float
) -> None:
    if rows.ndim not in (1, 2) or not rows.size:
        raise ValueError(f"values must be (n_frames,) or (n_frames, n_columns), got shape {rows.shape}")
    if groups_shape != (len(rows),):
        raise ValueError(
            f"groups must be ({len(rows)},), the recording of each frame, got shape {groups_shape}"
        )
    if n_groups < 2:
        raise ValueError("all frames are of one recording, which cannot say how recordings differ")
    if not np.isfinite(rows).all():
        raise ValueError("values hold NaN or infinity; drop the frames that have no value")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}")
    if not 0 < level < 1:
        raise ValueError(f"level must be a fraction in (0, 1) such as 0.95, got {level}")
