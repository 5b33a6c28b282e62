"""Degrees: wrapping, circular distance, direction labels and how scores become directions.

Azimuths are degrees in [0, 360): 0 is front, 90 is left. Directions of frames with a varying number
of sources are arrays (n_frames, n_sources) padded with NaN where there is no source.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.floating[Any]]

N_DIRECTIONS = 360
SIGMA = 8.0
"""Width of the Gaussian label in degrees (no factor 2 in its exponent)."""
BLANK = 15.0
"""Degrees to either side of a found direction that belong to it: no rival and no second source is there."""


def wrap(azimuth: ArrayLike) -> Float:
    """Map degrees into [0, 360).

    >>> wrap([-90.0, 360.0, 725.0]).tolist()
    [270.0, 0.0, 5.0]
    """
    wrapped = np.mod(np.asarray(azimuth, dtype=np.float64), 360.0)
    return np.where(wrapped >= 360.0, 0.0, wrapped)  # a tiny negative angle rounds up to 360


def distance(a: ArrayLike, b: ArrayLike) -> Float:
    """Circular distance in degrees, in [0, 180]; broadcasts, NaN stays NaN.

    >>> distance([359.0, 10.0], [1.0, 190.0]).tolist()
    [2.0, 180.0]
    """
    apart = np.abs(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)) % 360.0
    return np.minimum(apart, 360.0 - apart)


def signed_difference(a: ArrayLike, b: ArrayLike) -> Float:
    """Turn from b to a in degrees, in [-180, 180).

    >>> signed_difference([1.0, 350.0], [359.0, 10.0]).tolist()
    [2.0, -20.0]
    """
    turn = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return wrap(turn + 180.0) - 180.0


def to_class(azimuth: ArrayLike, n_directions: int = N_DIRECTIONS) -> NDArray[np.intp]:
    """Index of the nearest direction of a grid that starts at 0 degrees.

    >>> to_class([359.6, 0.4, 90.0]).tolist()
    [0, 0, 90]
    """
    azimuth = np.asarray(azimuth, dtype=np.float64)
    if not np.isfinite(azimuth).all():
        raise ValueError("an azimuth that is not finite has no class; drop frames without source")
    index: NDArray[np.intp] = np.rint(wrap(azimuth) * (n_directions / 360.0)).astype(np.intp) % n_directions
    return index


def count_directions(azimuth: ArrayLike, n_directions: int = N_DIRECTIONS) -> NDArray[np.int64]:
    """How many sources each direction class has, (n_directions,).

    azimuth: degrees, (n_frames, n_sources), NaN padded.

    >>> count_directions([[0.0, 90.0], [90.0, float("nan")]], n_directions=4).tolist()
    [1, 2, 0, 0]
    """
    directions = frames_by_sources(azimuth)
    classes = to_class(directions[np.isfinite(directions)], n_directions)
    return np.bincount(classes, minlength=n_directions).astype(np.int64)


def grid(n_directions: int = N_DIRECTIONS) -> Float:
    """Azimuths of the direction classes in degrees, starting at 0."""
    return np.arange(n_directions) * (360.0 / n_directions)


def turned(maps: Float, degrees: float) -> Float:
    """Maps (n_frames, 360) turned to the left by some degrees; by a part of one they are interpolated.

    >>> decode(turned(encode([10.0, 350.0]), 20.0)).tolist()
    [30.0, 10.0]
    """
    whole, rest = divmod(degrees, 1.0)
    once = np.roll(maps, int(whole), axis=1)
    return (1 - rest) * once + rest * np.roll(once, 1, axis=1)


def encode(azimuth: ArrayLike, sigma: float = SIGMA, n_directions: int = N_DIRECTIONS) -> NDArray[np.float32]:
    """Gaussian label of each frame: y(theta) = max_j exp(-dist(theta, a_j)^2 / sigma^2).

    azimuth: degrees, (n_frames,) or (n_frames, n_sources), NaN for "no source".
    Returns (n_frames, n_directions), zero everywhere for a frame without source.

    >>> encode([0.0])[0, [0, 8, 352]].round(4).tolist()
    [1.0, 0.367900013923645, 0.367900013923645]
    """
    if not sigma > 0:
        raise ValueError(f"sigma must be positive degrees, got {sigma}")
    directions = frames_by_sources(azimuth)
    label = np.zeros((len(directions), n_directions), dtype=np.float32)
    theta = grid(n_directions)
    for source in directions.T:  # (F,)
        present = np.isfinite(source)
        off = distance(theta, source[present, None])  # (F', C)
        label[present] = np.maximum(label[present], np.exp(-((off / sigma) ** 2)))
    return label


def decode(scores: ArrayLike) -> Float:
    """Azimuth of the largest score of each frame in degrees: (n_frames, n_directions) -> (n_frames,).

    >>> decode(encode([10.0, 350.0])).tolist()
    [10.0, 350.0]
    """
    scores = _scores(scores)
    best: Float = np.argmax(scores, axis=1) * (360.0 / scores.shape[1])
    return best


def decode_two(scores: ArrayLike, blank: float = BLANK) -> Float:
    """Two directions a frame: the argmax p, then the argmax with [p - blank, p + blank) blanked.

    The convention of the SSL-CIL paper. Returns degrees, (n_frames, 2), strongest first.

    >>> decode_two(encode([[10.0, 200.0]])).tolist() in ([[10.0, 200.0]], [[200.0, 10.0]])
    True
    """
    scores = _scores(scores)
    n = scores.shape[1]
    first = np.argmax(scores, axis=1)
    reach = np.arange(np.ceil(-blank * n / 360.0), np.ceil(blank * n / 360.0)).astype(np.intp)
    if not 0 < len(reach) < n:
        raise ValueError(f"blanking {blank} degrees to either side leaves no direction, or the first again")
    rest = scores.copy()
    np.put_along_axis(rest, (first[:, None] + reach) % n, -np.inf, axis=1)
    found: Float = np.stack([first, np.argmax(rest, axis=1)], axis=1) * (360.0 / n)
    return found


def is_peak(scores: ArrayLike, neighbourhood: float = 8.0) -> NDArray[np.bool_]:
    """Where a score is the largest within `neighbourhood` degrees to either side.

    A flat top counts once, at its first direction. (n_frames, n_directions) -> same shape.
    """
    from scipy.ndimage import maximum_filter1d

    if not neighbourhood > 0:
        raise ValueError(f"neighbourhood must be positive degrees, got {neighbourhood}")
    scores = _scores(scores)
    reach = max(1, round(neighbourhood * scores.shape[1] / 360.0))
    highest = maximum_filter1d(scores, 2 * reach + 1, axis=1, mode="wrap")
    peak = scores == highest
    run_goes_on = peak & np.roll(peak, 1, axis=1) & (np.roll(scores, 1, axis=1) == scores)
    first: NDArray[np.bool_] = peak & ~run_goes_on
    return first


def decode_peaks(scores: ArrayLike, n_sources: int, neighbourhood: float = 8.0) -> Float:
    """The `n_sources` highest peaks of each frame in degrees, (n_frames, n_sources), strongest first.

    The convention of He et al. 2018: a peak is the largest score of its neighbourhood; where there
    are fewer peaks than sources, the best peak is repeated.
    """
    if n_sources < 1:
        raise ValueError(f"n_sources must be at least 1, got {n_sources}")
    scores = _scores(scores)
    found = _strongest_peaks(scores, is_peak(scores, neighbourhood), n_sources)
    best = np.where(np.isnan(found[:, :1]), decode(scores)[:, None], found[:, :1])
    return np.where(np.isnan(found), best, found)


def decode_threshold(
    scores: ArrayLike, threshold: float, neighbourhood: float = 8.0, max_sources: int = 4
) -> Float:
    """All peaks at or above `threshold`: the number of sources is unknown.

    Returns degrees, (n_frames, max_sources), strongest first, NaN where there is no further source.

    >>> decode_threshold(encode([[30.0, 120.0], [5.0, float("nan")]]), 0.5, max_sources=2).tolist()
    [[30.0, 120.0], [5.0, nan]]
    """
    if max_sources < 1:
        raise ValueError(f"max_sources must be at least 1, got {max_sources}")
    if np.isnan(threshold):
        raise ValueError("threshold must be a number, got NaN")
    scores = _scores(scores)
    return _strongest_peaks(scores, is_peak(scores, neighbourhood) & (scores >= threshold), max_sources)


def refine(scores: ArrayLike, azimuth: ArrayLike) -> Float:
    """Found directions between those of the grid: the top of the parabola through a peak and its neighbours.

    scores: (n_frames, n_directions). azimuth: degrees found in them, (n_frames,) or (n_frames, n), NaN for
    "no source"; each counts as its nearest direction of the grid. Returns degrees of the same shape, at most
    half a step from the grid and the same for scores times a positive number or plus any. What has no
    parabola to climb stays: a direction on a slope, inside a flat top, beside an infinite score. The first
    direction of a flat top moves half a step into it, which is the middle of a top of two.

    >>> refine(encode([100.3, 359.6]), [100.0, 0.0]).round(2).tolist()
    [100.3, 359.6]
    """
    scores = _scores(scores)
    given = np.asarray(azimuth, dtype=np.float64)
    directions = frames_by_sources(given)
    if len(directions) != len(scores):
        raise ValueError(
            f"azimuth has {len(directions)} frames and scores {len(scores)}; frames come first: is one "
            "transposed, or were frames dropped from one only?"
        )
    n = scores.shape[1]
    there = np.isfinite(directions)
    top = to_class(np.where(there, directions, 0.0), n)  # (F, N)
    height, before, after = (
        np.take_along_axis(scores, (top + aside) % n, axis=1).astype(np.float64) for aside in (0, -1, 1)
    )
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):  # infinite or equal: no peak
        left, right = height - before, height - after  # how far the scores fall to either side
        shift = 0.5 * (left - right) / (left + right)
    peak = there & (left >= 0) & (right >= 0) & np.isfinite(shift)
    moved = wrap((top + np.where(peak, shift, 0.0)) * (360.0 / n))
    return np.where(peak, moved, wrap(directions)).reshape(given.shape)


def frames_by_sources(azimuth: ArrayLike) -> Float:
    """Directions as (n_frames, n_sources): one source a frame may come as (n_frames,)."""
    directions = np.asarray(azimuth, dtype=np.float64)
    if directions.ndim == 1:
        directions = directions[:, None]
    if directions.ndim != 2:
        raise ValueError(
            f"directions must be (n_frames,) or (n_frames, n_sources), got shape {directions.shape}"
        )
    if np.isinf(directions).any():
        raise ValueError("directions must be degrees or NaN (no source), got an infinite value")
    return directions


def _strongest_peaks(scores: Float, peak: NDArray[np.bool_], n: int) -> Float:
    height = np.where(peak, scores, -np.inf)
    order = np.argsort(-height, axis=1, kind="stable")[:, :n]
    exists = np.take_along_axis(peak, order, axis=1)
    found = np.full((len(scores), n), np.nan)
    found[:, : order.shape[1]] = np.where(exists, order * (360.0 / scores.shape[1]), np.nan)
    return found


def _scores(scores: ArrayLike) -> Float:
    scores = np.asarray(scores)
    if scores.dtype not in (np.float32, np.float64):
        scores = scores.astype(np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(f"scores must be (n_frames, n_directions), got shape {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError("scores hold NaN; did a silent or damaged frame slip through?")
    return scores
