"""Decoding that knows what it knows: directions, how sure they are, and what to do with that.

With calibrated probabilities (`calibration`) one can choose between two methods (`blend`), count sources
(`count_sources`) and keep silent (`reject`, `known`). Scores are maps (n_frames, n_directions) of any scale,
directions degrees (n_frames, n) with NaN for "no source", probabilities fractions in (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import (
    BLANK,
    ROUNDING,
    Calibration,
    check_fractions,
    checked_document,
    checked_maps,
    evidence,
)
from tytoalba.signal.angles import Float, decode, decode_two, distance, frames_by_sources, grid, is_peak, wrap

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

    @property
    def certainty(self) -> Float:
        """Mean probability of the directions of each frame, (n_frames,); 0 for a frame without any."""
        n_found = np.isfinite(self.probability).sum(axis=1)
        certainty: Float = np.nansum(self.probability, axis=1) / np.maximum(n_found, 1)
        return certainty


@dataclass(frozen=True, eq=False)
class Blended(Decision):
    """The surer of two decisions in each frame. learned: (n_frames,), True where it is the learned one."""

    learned: Bool


def decide(scores: ArrayLike, calibration: Calibration, n_sources: int = 1) -> Decision:
    """Decode maps (n_frames, n_directions) with 1 or 2 sources a frame, and say how sure that is.

    The directions are those of `angles.decode` and `angles.decode_two`: fit the calibration on these.
    """
    if n_sources not in (1, 2):
        raise ValueError(f"n_sources must be 1 or 2, got {n_sources}; is it unknown? use count_sources")
    azimuth = decode(scores)[:, None] if n_sources == 1 else decode_two(scores, BLANK)
    return Decision(azimuth, calibration.probability(evidence(scores, azimuth)))


def blend(learned: Decision, fallback: Decision, margin: float = 0.0) -> Blended:
    """Of two decisions on the same frames the surer, frame by frame, with all its directions.

    Surer is the larger mean probability over the directions of the frame; ties go to the fallback
    (SRP-PHAT, which needs no teaching). margin: by how much the fallback must be surer to be taken.

    >>> learned = Decision(np.array([[10.0], [20.0]]), np.array([[0.9], [0.4]]))
    >>> fallback = Decision(np.array([[99.0], [98.0]]), np.array([[0.6], [0.6]]))
    >>> taken = blend(learned, fallback)
    >>> taken.azimuth.tolist(), taken.probability.tolist(), taken.learned.tolist()
    ([[10.0], [98.0]], [[0.9], [0.6]], [True, False])
    """
    if learned.azimuth.shape != fallback.azimuth.shape:
        raise ValueError(
            f"the learned decision is {learned.azimuth.shape} and the fallback {fallback.azimuth.shape}, "
            "expected the same (n_frames, n); were both decoded from the same frames and number of sources?"
        )
    surer = learned.certainty + margin > fallback.certainty
    azimuth = np.where(surer[:, None], learned.azimuth, fallback.azimuth)
    return Blended(azimuth, np.where(surer[:, None], learned.probability, fallback.probability), surer)


def mixed_maps(learned: ArrayLike, fallback: ArrayLike, weight: float) -> Float:
    """One map and so much of another; where both are ruled out, -inf, so is the sum, whatever the weight."""
    if not weight:  # times -inf it would be no number
        return np.asarray(learned)
    return np.asarray(learned) + weight * np.asarray(fallback)


@dataclass(frozen=True)
class Blend:
    """Two calibrated methods as one: call it with the maps of both.

    weight: of the fallback's map, added to the learned one before anything else: where one of them does not
    tell, the other does. margin: by how much the fallback alone must be surer than both to be believed.
    Fit the two calibrations with the number of sources that it is called with: a second source is harder.

    >>> from tytoalba.signal.angles import encode
    >>> both = Blend(Calibration((0.0, 2.0), (0.1, 0.9), 50), Calibration((0.0, 2.0), (0.2, 0.7), 50))
    >>> sure, unsure = encode([10.0, 20.0]), 0.25 * encode([99.0, 98.0])
    >>> taken = both(sure, unsure)
    >>> taken.azimuth.tolist(), taken.probability.round(3).tolist(), taken.learned.tolist()
    ([[10.0], [20.0]], [[0.893], [0.893]], [True, True])
    >>> Blend.from_dict(both.to_dict()) == both
    True
    """

    learned: Calibration
    fallback: Calibration
    margin: float = 0.0
    weight: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.margin, (int, float)) and 0 <= self.margin <= 1):
            raise DataError(f"the margin of a blend must be a number from 0 to 1, got {self.margin!r}")
        if not (isinstance(self.weight, (int, float)) and 0 <= self.weight <= 100):
            raise DataError(f"the weight in a blend must be a number from 0 to 100, got {self.weight!r}")

    def __call__(self, learned: ArrayLike, fallback: ArrayLike, n_sources: int = 1) -> Blended:
        """Directions of the surer map of each frame. learned, fallback: (n_frames, n_directions)."""
        mine = decide(self.mixed(learned, fallback), self.learned, n_sources)
        return blend(mine, decide(fallback, self.fallback, n_sources), self.margin)

    def mixed(self, learned: ArrayLike, fallback: ArrayLike) -> Float:
        """The learned map with some of the other: what the calibration `learned` is of."""
        return mixed_maps(learned, fallback, self.weight)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers for JSON, which give back every bit."""
        both = {"learned": self.learned.to_dict(), "fallback": self.fallback.to_dict()}
        return {
            "format": "tytoalba-blend",
            "version": 1,
            **both,
            "margin": self.margin,
            "weight": self.weight,
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """What `to_dict` gave; DataError says what is wrong with a damaged one."""
        parts = checked_document(document, "tytoalba-blend", ("learned", "fallback", "margin"))
        learned, fallback = (Calibration.from_dict(parts[name]) for name in ("learned", "fallback"))
        return cls(learned, fallback, parts["margin"], parts.get("weight", 0.0))


def candidates(scores: ArrayLike, max_sources: int = 3) -> Float:
    """The highest peaks of each frame, more than 15 degrees apart: what may be a source.

    scores: (n_frames, n_directions). Returns degrees, (n_frames, max_sources), strongest first, NaN where
    there is no further peak. A calibration for `count_sources` is fitted on the evidence for these.
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


def count_sources(
    scores: ArrayLike,
    calibration: Calibration | Sequence[Calibration],
    max_sources: int = 3,
    threshold: float = 0.5,
) -> Decision:
    """All `candidates` that are a source with at least the probability `threshold`: their number is unknown.

    calibration: one for all, or one each for the strongest peak, the second, ... (max_sources of them).
    Returns directions and probabilities, (n_frames, max_sources), strongest first, padded with NaN.

    >>> from tytoalba.signal.angles import encode
    >>> calibration = Calibration((0.0, 2.0), (0.1, 0.9), 50)
    >>> heard = count_sources(encode([[30.0, 120.0], [5.0, float("nan")]]), calibration)
    >>> heard.azimuth.tolist()
    [[30.0, 120.0, nan], [5.0, nan, nan]]
    """
    each = [calibration] * max_sources if isinstance(calibration, Calibration) else list(calibration)
    if len(each) != max_sources:
        raise ValueError(
            f"got {len(each)} calibrations for at most {max_sources} sources; give one for all, or one for "
            "each from the strongest peak to the weakest"
        )
    _minimum("threshold", threshold)
    azimuth = candidates(scores, max_sources)
    found = evidence(scores, azimuth)
    probability = np.stack([one.probability(x) for one, x in zip(each, found.T, strict=True)], axis=1)
    azimuth = reject(azimuth, probability, threshold)
    order = np.argsort(np.isnan(azimuth), axis=1, kind="stable")  # holes to the end
    probability = np.where(np.isnan(azimuth), np.nan, probability)
    azimuth, probability = (np.take_along_axis(each, order, axis=1) for each in (azimuth, probability))
    return Decision(azimuth, probability)


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
