"""Knowing what one knows: from scores to the probability that a direction is right.

Scores are maps (n_frames, n_directions) of any scale, directions degrees (n_frames, n) with NaN for "no
source", probabilities fractions in (0, 1). `evidence` says how well a direction stands out of its map, and a
`Calibration` fitted on decisions known to be right or wrong turns evidence into a probability; `decisions`
decodes with these. Fit on validation data, never on the test set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import DataError
from tytoalba.signal.angles import BLANK, Float, distance, frames_by_sources, grid, to_class

ROUNDING = 1e-9
"""Degrees within which two distances are the same."""
MOST_KNOTS = 64

_LARGEST = 1e300  # differences of evidence must not overflow


def evidence(scores: ArrayLike, azimuth: ArrayLike) -> Float:
    """How well found directions stand out: height of the peak plus its height above the best rival.

    scores: (n_frames, n_directions), -inf where a direction is ruled out. azimuth: degrees, (n_frames,) or
    (n_frames, n), NaN for "no source". The rival is the best score more than 15 degrees from every direction
    found in the frame (the lowest score of the frame where these leave none). Returns (n_frames, n), in the
    unit of the scores, NaN where the direction is NaN; it grows with the peak and falls with the rival.

    >>> from tytoalba.signal.angles import encode
    >>> scores = encode([[90.0, 200.0]]) * [0.5 if 150 < a < 250 else 1.0 for a in range(360)]
    >>> evidence(scores, [[90.0, float("nan")]]).tolist()  # height 1, and 0.5 above the rival at 200
    [[1.5, nan]]
    >>> evidence(scores, [[90.0, 200.0]]).round(2).tolist()  # nothing else is there
    [[1.98, 0.98]]
    """
    maps, directions = checked_maps(scores), frames_by_sources(azimuth)
    if len(directions) != len(maps):
        raise ValueError(
            f"azimuth has {len(directions)} frames and scores {len(maps)}; frames come first: is one "
            "transposed, or were frames dropped from one only?"
        )
    n_directions = maps.shape[1]
    there = np.isfinite(directions)
    outside = np.ones(maps.shape, dtype=np.bool_)
    for source in directions.T:  # (F,); comparisons with NaN are false
        outside &= ~(distance(grid(n_directions), source[:, None]) <= BLANK + ROUNDING)
    lowest = np.where(np.isfinite(maps), maps, np.inf).min(axis=1, keepdims=True)  # (F, 1)
    rival = np.maximum(np.where(outside, maps, -np.inf).max(axis=1, keepdims=True), lowest)
    top = to_class(np.where(there, directions, 0.0), n_directions)  # (F, N)
    height = np.maximum(np.take_along_axis(maps, top, axis=1), lowest).astype(np.float64)
    return np.where(there, height + (height - rival), np.nan)


@dataclass(frozen=True)
class Calibration:
    """A rising map from the evidence for a decision to the probability that the decision is right.

    knots: evidence, rising, at most 64. values: the probabilities there, never falling, in (0, 1); linear
    between the knots, constant beyond them. n: how many decisions it was fitted on.

    >>> calibration = Calibration.fit([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1, 1, 1])
    >>> calibration.probability([0.0, 0.5, 2.0]).round(3).tolist()
    [0.4, 0.575, 0.8]
    >>> Calibration.from_dict(calibration.to_dict()) == calibration
    True
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]
    n: int

    def __post_init__(self) -> None:
        _refuse_damaged(self)

    @classmethod
    def fit(cls, evidence: ArrayLike, right: ArrayLike) -> Self:
        """Isotonic regression of right or wrong on the evidence.

        evidence: finite numbers of any shape. right: of the same shape, True where the decision was right
        (within 5 degrees, say). Evidence is first gathered in bins of equal counts, about sqrt(n) and at most
        64 of them, so that few decisions are not followed one by one. Every level counts one right and one
        wrong decision more than it saw (Laplace): it lies in [1/(n + 2), (n + 1)/(n + 2)]. Where evidence
        does not rise with being right, the map is flat: the share of right decisions.
        """
        from scipy.optimize import isotonic_regression

        x, hit = _decisions("evidence", evidence, right)
        if np.abs(x).max() > _LARGEST:
            raise ValueError(
                f"evidence must be finite, at most {_LARGEST:g} in size, got {x[np.abs(x).argmax()]}; "
                "were directions of -inf scores, which are ruled out, decided for?"
            )
        order = np.argsort(x, kind="stable")
        x, hit = x[order], hit[order]
        start = _bins(x)
        stop = np.append(start[1:], len(x))
        n_right, n_all = np.add.reduceat(hit, start), (stop - start).astype(np.float64)
        level = isotonic_regression(n_right / n_all, weights=n_all).blocks  # first bin of each, and the end
        n_right, n_all = np.add.reduceat(n_right, level[:-1]), np.add.reduceat(n_all, level[:-1])
        # Laplace draws small levels further to 1/2 than large ones, which may turn their order.
        smooth = isotonic_regression((n_right + 1) / (n_all + 2), weights=n_all).x
        value = np.repeat(smooth, np.diff(level))
        knot = x[(start + stop - 1) // 2]  # the median: outliers do not move it
        inside = np.zeros(len(value), dtype=np.bool_)  # a flat stretch needs its two ends only
        inside[1:-1] = (value[1:-1] == value[:-2]) & (value[1:-1] == value[2:])
        return cls(tuple(knot[~inside].tolist()), tuple(value[~inside].tolist()), len(x))

    def probability(self, evidence: ArrayLike) -> Float:
        """Probability of being right, of the shape of the evidence; NaN stays NaN."""
        knots, values = np.array(self.knots), np.array(self.values)
        x = np.clip(np.asarray(evidence, dtype=np.float64), knots[0], knots[-1])
        above = np.searchsorted(knots, x).clip(1, max(len(knots) - 1, 1))  # NaN is sorted to the end
        low, high = above - 1, np.minimum(above, len(knots) - 1)
        way = (x - knots[low]) / np.where(high > low, knots[high] - knots[low], 1.0)  # in [0, 1]
        return np.asarray(np.minimum(values[low] + way * (values[high] - values[low]), values[high]))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers for JSON, which give back every bit."""
        return {
            "format": "tytoalba-calibration",
            "version": 1,
            "n": self.n,
            "knots": list(self.knots),
            "values": list(self.values),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """What `to_dict` gave; DataError says what is wrong with a damaged one."""
        parts = checked_document(document, "tytoalba-calibration", ("n", "knots", "values"))
        for name in ("knots", "values"):
            if not isinstance(parts[name], list):
                raise _damaged(f"{name} must be a list", parts[name])
        return cls(tuple(parts["knots"]), tuple(parts["values"]), parts["n"])


@dataclass(frozen=True, eq=False)
class Reliability:
    """Bins of equal width in [0, 1], each (n_bins,): mean probability and accuracy (NaN if empty), count."""

    probability: Float
    accuracy: Float
    count: NDArray[np.intp]

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of probability and accuracy, weighted by count."""
        filled = self.count > 0
        apart = np.abs(self.probability - self.accuracy)[filled]
        return float(np.average(apart, weights=self.count[filled]))


def reliability(probability: ArrayLike, right: ArrayLike, n_bins: int = 15) -> Reliability:
    """What was claimed beside what came true, in `n_bins` bins of the claimed probability.

    probability: fractions in [0, 1], any shape, no NaN. right: of the same shape, True or False.

    >>> bins = reliability([0.1, 0.3, 0.8, 0.9], [False, True, True, True], n_bins=2)
    >>> bins.probability.round(3).tolist(), bins.accuracy.tolist(), bins.count.tolist()
    ([0.2, 0.85], [0.5, 1.0], [2, 2])
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    p, hit = _decisions("probability", probability, right)
    check_fractions("probability", p)
    index = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    count = np.bincount(index, minlength=n_bins)
    size = np.where(count > 0, count, np.nan)
    claimed, came = (np.bincount(index, weights=each, minlength=n_bins) / size for each in (p, hit))
    return Reliability(claimed, came, count)


def expected_calibration_error(probability: ArrayLike, right: ArrayLike, n_bins: int = 15) -> float:
    """Mean distance between claimed probability and accuracy over the bins of `reliability`, in [0, 1].

    >>> round(expected_calibration_error([0.1, 0.3, 0.8, 0.9], [False, True, True, True], n_bins=2), 3)
    0.225
    """
    return reliability(probability, right, n_bins).error


def _bins(x: Float) -> NDArray[np.intp]:
    """First places of at most 64 bins of about equal counts in rising numbers; equal ones stay together."""
    n_bins = min(MOST_KNOTS, math.ceil(math.sqrt(len(x))))
    _, first, times = np.unique(x, return_index=True, return_counts=True)
    index = np.floor((first + times / 2) * (n_bins / len(x)))
    return np.asarray(first[np.diff(index, prepend=-1.0) > 0], dtype=np.intp)


def _decisions(name: str, numbers: ArrayLike, right: ArrayLike) -> tuple[Float, Float]:
    """Flat numbers and 0 or 1 for wrong or right."""
    x, hit = np.asarray(numbers, dtype=np.float64), np.asarray(right)
    if x.shape != hit.shape:
        raise ValueError(
            f"{name} is {x.shape} and right {hit.shape}, expected the same shape: one True or False for each "
            "decision; were decisions dropped from one only?"
        )
    if not x.size:
        raise ValueError(f"{name} holds no decision, so there is nothing to learn or measure")
    if np.isnan(x).any():
        raise ValueError(
            f"{name} is NaN (no source) in {np.isnan(x).sum()} of {x.size} decisions; drop these from both: "
            f"keep = ~np.isnan({name})"
        )
    if not np.isin(hit, (0, 1)).all():
        raise ValueError(
            "right must be True or False (1 or 0) for each decision; did you give errors in degrees?"
        )
    return x.ravel(), hit.ravel().astype(np.float64)


def checked_maps(scores: ArrayLike) -> Float:
    """Scores as maps (n_frames, n_directions) that one can decode; ValueError says what is wrong."""
    maps = np.asarray(scores)
    if maps.dtype not in (np.float32, np.float64):
        maps = maps.astype(np.float64)
    if maps.ndim != 2 or maps.shape[1] < 2:
        raise ValueError(f"scores must be (n_frames, n_directions), got shape {maps.shape}")
    if np.isnan(maps).any() or np.isposinf(maps).any() or np.isneginf(maps).all(axis=1).any():
        raise ValueError(
            "scores hold NaN, +inf or a frame of -inf only (-inf rules a direction out); did a silent or "
            "damaged frame slip through?"
        )
    return maps


def check_fractions(name: str, values: Float) -> None:
    """Refuse numbers outside [0, 1]; NaN (no source) passes."""
    if ((values < 0) | (values > 1)).any():
        raise ValueError(
            f"{name} must lie in [0, 1], got {np.nanmin(values):g} to {np.nanmax(values):g}; are these "
            "percent, or scores that were not calibrated?"
        )


def _refuse_damaged(calibration: Calibration) -> None:
    knots, values, n = calibration.knots, calibration.values, calibration.n
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise _damaged("n must be a whole number of decisions, at least 1", n)
    if not 1 <= len(knots) <= MOST_KNOTS or len(values) != len(knots):
        raise _damaged(
            f"knots and values must be 1 to {MOST_KNOTS}, as many of both", (len(knots), len(values))
        )
    for number in (*knots, *values):
        if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) <= _LARGEST:
            raise _damaged("knots and values must be finite numbers", number)
    if any(a >= b for a, b in pairwise(knots)):
        raise _damaged("knots must rise", knots)
    if any(a > b for a, b in pairwise(values)):
        raise _damaged("values must not fall", values)
    if not 0 < values[0] <= values[-1] < 1:
        raise _damaged("values must be probabilities above 0 and below 1", values)


def checked_document(document: Any, form: str, names: tuple[str, ...]) -> dict[str, Any]:
    """A document of the format `form` that has all `names`; DataError says what is wrong with another."""
    if not isinstance(document, dict):
        raise _damaged("it must be an object", document)
    for name in ("format", "version", *names):
        if name not in document:
            raise _damaged(f"{form} needs {name!r}", sorted(map(str, document)))
    if document["format"] != form or document["version"] != 1:
        raise _damaged(f"it must be a {form} of version 1", (document["format"], document["version"]))
    return document


def _damaged(expected: str, given: object) -> DataError:
    shown = repr(given)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return DataError(
        f"not a calibration: {expected}, got {shown}; was it cut or edited? fit and save it again"
    )
