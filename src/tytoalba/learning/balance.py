"""Directions seen unequally often: weights for the frames, or factors for the scores, from counts alone.

A regression on many frames of one direction and few of another favours the first. Two remedies, both in
closed form and without a frame kept:

- before learning: frames of rare directions count several times. Whole numbers, so that an exact head stays
  exact; a frame has to be forgotten with the weight that it was learned with.
- after learning: scores are divided by how often their direction was seen. Counts add and subtract, so that
  this depends neither on order nor on phases, and follows every merge and every forgetting.

>>> azimuth = np.array([[0.0]] * 6 + [[180.0]] * 2)
>>> weights = frame_weights(azimuth, count_directions(azimuth, n_directions=4))
>>> weights.tolist()
[1, 1, 1, 1, 1, 1, 3, 3]

and then `head.learn(H[weights == times], Y[weights == times], times)` for each `times` among the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import TytoError
from tytoalba.signal.angles import N_DIRECTIONS, distance, frames_by_sources, grid, to_class

CAP = 8
"""The most that a frame counts: few frames of a direction are noisy, and more weight repeats their noise."""
LIMIT = 8.0
"""The most that a score is multiplied or divided by."""


def count_directions(azimuth: ArrayLike, n_directions: int = N_DIRECTIONS) -> NDArray[np.int64]:
    """How many sources each direction class has, (n_directions,).

    azimuth: degrees, (n_frames, n_sources), NaN padded.

    >>> count_directions([[0.0, 90.0], [90.0, float("nan")]], n_directions=4).tolist()
    [1, 2, 0, 0]
    """
    directions = frames_by_sources(azimuth)
    classes = to_class(directions[np.isfinite(directions)], n_directions)
    return np.bincount(classes, minlength=n_directions).astype(np.int64)


def integer_weights(counts: ArrayLike, cap: int = CAP, reach: float = 0.0) -> NDArray[np.int64]:
    """How often a frame of each direction should count, (n_directions,): 1 for the most seen, at most `cap`.

    counts: sources of each direction class, (n_directions,), integers. The weight is the largest count over
    the class's own, rounded (halves up), 1 for a class without any.
    reach: degrees; where counts are small, judge a class by the mean of those within reach that were seen.

    >>> integer_weights([100, 50, 10, 1, 0]).tolist()
    [1, 2, 8, 8, 1]
    """
    own = _checked_counts(counts)
    if not isinstance(cap, int | np.integer) or isinstance(cap, bool) or cap < 1:
        raise TytoError(f"cap must be a whole number from 1 up, got {cap!r}; 1 weighs all frames the same")
    if not 0 <= reach < 180:
        raise TytoError(f"reach must be degrees in [0, 180), got {reach}")
    near = (_apart(len(own)) <= reach).astype(np.int64)  # (C, C)
    total, seen = near @ own, np.maximum(near @ (own > 0), 1)  # (C,): their ratio is the smoothed count
    top = int(np.argmax(np.where(own > 0, total / seen, 0)))
    over, under = total[top] * seen, np.maximum(total * seen[top], 1)  # in whole numbers: no machine differs
    weights = ((2 * over + under) // (2 * under)).clip(1, cap)
    return np.where(own > 0, weights, 1).astype(np.int64)


def frame_weights(
    azimuth: ArrayLike, counts: ArrayLike, cap: int = CAP, reach: float = 0.0
) -> NDArray[np.int64]:
    """How often each frame should count, (n_frames,): as the rarest of its sources; 1 without any.

    azimuth: degrees, (n_frames, n_sources), NaN padded. counts, cap, reach: as for `integer_weights`; the
    counts must include these frames.
    """
    weights, own = integer_weights(counts, cap, reach), np.asarray(counts)
    directions = frames_by_sources(azimuth)
    present = np.isfinite(directions)
    classes = to_class(np.where(present, directions, 0.0), len(own))  # (F, S)
    unseen = np.unique(classes[present & (own[classes] == 0)])
    if len(unseen):
        raise TytoError(
            f"frames of the direction classes {unseen.tolist()}, which have no counts; "
            "count the frames before weighing them (count_directions)"
        )
    heaviest: NDArray[np.int64] = np.where(present, weights[classes], 1).max(axis=1, initial=1)
    return heaviest


def prior_correction(
    counts: ArrayLike, sigma: float, strength: float = 1.0, limit: float = LIMIT
) -> NDArray[np.float64]:
    """Factors for the scores, (n_directions,): directions seen rarely are raised, common ones lowered.

    (mean of the smoothed counts / smoothed count)^strength, between 1 / limit and limit. Smoothed: the mean
    over classes that were seen, weighted by exp(-dist^2 / sigma^2); so the rim of a taught sector, with
    nothing beyond it, does not look rare.

    counts: sources of each direction class, (n_directions,), integers. sigma: degrees, about the width of
    the labels. strength: 0 changes nothing, 1 undoes the frequencies. A class with none seen within sigma
    has never been taught: its factor is 1.

    >>> prior_correction([30, 10, 20, 0], sigma=10.0).round(3).tolist()
    [0.667, 2.0, 1.0, 1.0]
    """
    own = _checked_counts(counts)
    if not 0 < sigma < np.inf:
        raise TytoError(f"sigma must be positive degrees, got {sigma}")
    if not 0 <= strength < np.inf or not 1 <= limit < np.inf:
        raise TytoError(f"strength must be from 0 up and limit from 1 up, got {strength} and {limit}")
    seen, apart = own > 0, _apart(len(own))
    taught = (apart[:, seen] <= sigma).any(axis=1)
    kernel = np.exp(-((apart / sigma) ** 2))  # (C, C)
    smoothed = (kernel @ own)[taught] / (kernel @ seen)[taught]
    factors = np.ones(len(own))
    factors[taught] = (smoothed[seen[taught]].mean() / smoothed) ** strength if seen.any() else 1.0
    return factors.clip(1 / limit, limit)


def _apart(n_directions: int) -> NDArray[np.float64]:
    """Circular distance of every two directions in degrees, (n_directions, n_directions)."""
    theta = grid(n_directions)
    return distance(theta[:, None], theta).astype(np.float64)


def _checked_counts(counts: ArrayLike) -> NDArray[np.int64]:
    own = np.asarray(counts)
    if own.ndim != 1 or not len(own) or own.dtype.kind not in "iu":
        raise TytoError(
            f"counts must be integers (n_directions,), got {own.dtype} of shape {own.shape}; "
            "count_directions makes them from azimuths"
        )
    if own.min() < 0:
        raise TytoError(f"counts must be from 0 up, got {own.min()}; was more forgotten than learned?")
    return own.astype(np.int64)
