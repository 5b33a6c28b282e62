"""Decoding that knows what it knows: directions, how sure they are, and what to do with that.

With probabilities (`confidence`) one can count sources (`count_sources`) and keep silent (`reject`, `known`).
Scores are maps (n_frames, n_directions) of any scale, directions degrees (n_frames, n) with NaN for "no
source", probabilities fractions in (0, 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.learning.prior.calibration import ROUNDING, check_fractions, checked_maps, evidence
from tytoalba.learning.prior.confidence import MOST, Confidence
from tytoalba.signal.angles import (
    BLANK,
    Float,
    decode,
    decode_two,
    distance,
    frames_by_sources,
    grid,
    is_peak,
    wrap,
)

Bool = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Decision:
    """Directions in degrees and the probability that each is right, both (n_frames, n), NaN for none."""

    azimuth: Float
    probability: Float

    def __post_init__(self) -> None:
        azimuth, probability = frames_by_sources(self.azimuth), frames_by_sources(self.probability)
        if azimuth.shape != probability.shape or (np.isnan(azimuth) != np.isnan(probability)).any():
            raise ValueError(
                "azimuth and probability must have the same shape and be NaN (no source) in the same places, "
                f"got shapes {azimuth.shape} and {probability.shape}; are they of the same frames?"
            )
        check_fractions("probability", probability)
        object.__setattr__(self, "azimuth", azimuth)
        object.__setattr__(self, "probability", probability)


def decide(
    scores: ArrayLike, confidence: Confidence, n_sources: int = 1, n_averaged: ArrayLike = 1
) -> Decision:
    """Decode maps (n_frames, n_directions) with 1, 2 or 3 sources a frame, and say how sure that is.

    n_averaged: frames behind each map, (n_frames,), or one number. Directions are those of `angles.decode`,
    `angles.decode_two`, and of three `candidates`, of which a map may have fewer.
    """
    if n_sources not in (1, 2, 3):
        raise ValueError(f"n_sources must be 1, 2 or 3, got {n_sources}; is it unknown? use count_sources")
    if n_sources == 1:
        azimuth = decode(scores)[:, None]
    else:
        azimuth = decode_two(scores, BLANK) if n_sources == 2 else candidates(scores)
    law = confidence.asked[n_sources - 1]
    return Decision(azimuth, law.probability(evidence(scores, azimuth), n_averaged))


def candidates(scores: ArrayLike, max_sources: int = MOST) -> Float:
    """The highest peaks of each frame, more than 15 degrees apart: what may be a source.

    scores: (n_frames, n_directions). Returns degrees, (n_frames, max_sources), strongest first, NaN where
    there is no further peak. What `count_sources` believes is fitted on the evidence for these.
    """
    if max_sources < 1:
        raise ValueError(f"max_sources must be at least 1, got {max_sources}")
    maps = checked_maps(scores)
    height = np.where(is_peak(maps, BLANK), maps, -np.inf)
    found = np.full((len(maps), max_sources), np.nan)
    directions = grid(maps.shape[1])
    for column in range(max_sources):
        top = height.argmax(axis=1)
        there = np.isfinite(height[np.arange(len(height)), top])
        found[there, column] = directions[top[there]]
        height[distance(directions, directions[top][:, None]) <= BLANK + ROUNDING] = -np.inf
    return found


def count_sources(scores: ArrayLike, confidence: Confidence, n_averaged: ArrayLike = 1) -> Decision:
    """The `candidates` that are a source with a chance of at least `confidence.least`, strongest first.

    A peak counts only if the higher ones do. n_averaged: frames behind each map, (n_frames,), or one number.
    Returns directions and probabilities, (n_frames, 3), padded with NaN; none is sure where all are.

    >>> from tytoalba.learning.prior.confidence import Law
    >>> from tytoalba.signal.angles import encode
    >>> law = Law((-3.0, 0.0, 4.0, 4.0, 0.0))
    >>> maps = encode([[30.0, 120.0], [5.0, float("nan")]])
    >>> heard = count_sources(maps, Confidence((law,) * 3, (law,) * 3, (0.5,) * 3))
    >>> heard.azimuth.tolist()
    [[30.0, 120.0, nan], [5.0, nan, nan]]
    """
    azimuth = candidates(scores)
    probability = counted_probability(scores, azimuth, confidence, n_averaged)
    there = np.cumprod(probability >= confidence.least, axis=1).astype(np.bool_)
    return Decision(np.where(there, azimuth, np.nan), np.where(there, probability, np.nan))


def counted_probability(
    scores: ArrayLike, azimuth: Float, confidence: Confidence, n_averaged: ArrayLike = 1
) -> Float:
    """Chance of each of the `candidates`, strongest first, to be a source; NaN where there is none."""
    found = evidence(scores, azimuth)
    each = [law.probability(x, n_averaged) for law, x in zip(confidence.counted, found.T, strict=True)]
    return np.stack(each, axis=1)


def reject(azimuth: ArrayLike, probability: ArrayLike, minimum: float) -> Float:
    """Directions that are right with at least the probability `minimum`, NaN for the others; same shape.

    >>> reject([[10.0, 200.0]], [[0.9, 0.3]], 0.5).tolist()
    [[10.0, nan]]
    """
    azimuth, probability = np.asarray(azimuth, np.float64), np.asarray(probability, np.float64)
    if azimuth.shape != probability.shape:
        raise ValueError(
            f"azimuth is {azimuth.shape} and probability {probability.shape}, expected the same shape: one "
            "probability for each direction"
        )
    _minimum("minimum", minimum)
    return np.where(probability >= minimum, azimuth, np.nan)


def known(azimuth: ArrayLike, counts: ArrayLike, reach: float = 10.0) -> Bool:
    """Whether anything was ever taught within `reach` degrees of each direction; False for NaN.

    azimuth: degrees, any shape. counts: taught frames of each direction class, (n_directions,) whole numbers.

    >>> taught = np.zeros(360, dtype=int)
    >>> taught[350] = 7
    >>> known([0.0, 340.0, 1.0, 180.0], taught).tolist()
    [True, True, False, False]
    """
    azimuth, frames = np.asarray(azimuth, np.float64), np.asarray(counts)
    if frames.ndim != 1 or not len(frames) or frames.dtype.kind not in "iu" or (frames < 0).any():
        raise ValueError(
            "counts must be (n_directions,) whole numbers of frames, zero or more, got shape "
            f"{frames.shape} of {frames.dtype}; count the classes with np.bincount(..., minlength=360)"
        )
    if not 0 <= reach <= 180:
        raise ValueError(f"reach must be degrees in [0, 180], got {reach}")
    if np.isinf(azimuth).any():
        raise ValueError("azimuth must be degrees or NaN (no source), got an infinite value")
    taught = grid(len(frames))[frames > 0]
    if not len(taught):
        return np.zeros(azimuth.shape, dtype=np.bool_)
    around = np.concatenate([taught[-1:] - 360.0, taught, taught[:1] + 360.0])
    there = np.where(np.isnan(azimuth), 0.0, wrap(azimuth))
    after = np.searchsorted(around, there)  # at least 1: there is always one below
    nearest = np.minimum(there - around[after - 1], around[after] - there)
    within: Bool = (nearest <= reach + ROUNDING) & ~np.isnan(azimuth)
    return within


def _minimum(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability in [0, 1], got {value}; is it percent?")
