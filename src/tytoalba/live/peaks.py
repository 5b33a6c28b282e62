"""What one frame says: a few directions, each with the chance that a talker is there.

From the scores of a method (360 directions) or from a `Located`. A prior and a `Localizer` have calibrated
chances. SRP-PHAT and MUSIC do not: there the contrast of a peak to the rest of its map stands for a chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tytoalba.errors import TytoError
from tytoalba.learning.prior.calibration import Calibration, evidence
from tytoalba.learning.prior.decisions import candidates
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import N_DIRECTIONS, Float, encode

MOST = 3
"""Peaks of a frame that are looked at."""
LEAST = 0.03
"""Chance below which a peak is none."""
CLEAR, STEEPNESS = 2.2, 4.6
"""Of a peak without calibration: standard deviations above the median at which it counts as even, and how
fast its chance rises there."""
UNKNOWN = 0.5
"""Chance of a direction of a `Located` without probabilities."""


class Peak(NamedTuple):
    """A direction in degrees, the chance that a talker is there, and the scores (360,) that say so."""

    azimuth: float
    probability: float
    scores: Float


def peaks(
    frame: Float | Located | None, counting: Sequence[Calibration] = (), spread: float | None = None
) -> list[Peak]:
    """The peaks of a frame, strongest first, more than 15 degrees apart; none in silence.

    frame: scores (360,), -inf where a direction is ruled out; or a `Located`; or None, a silent frame.
    counting: calibrations of the highest peak and of the next ones; empty: the map's own contrast is used.
    spread: standard deviation of the scores before a background was taken away, which the contrast needs.
    """
    if frame is None:
        return []
    if isinstance(frame, Located):
        return _of_located(frame)
    scores = checked_scores(frame)
    azimuth = candidates(scores[None], MOST)  # (1, MOST)
    found = azimuth[0][np.isfinite(azimuth[0])]
    if not len(found):
        return []
    if counting:
        support = evidence(scores[None], azimuth)[0]
        chances = [
            float(counting[min(k, len(counting) - 1)].probability(support[k])) for k in range(len(found))
        ]
    else:
        chances = contrast(scores, found, spread).tolist()
    return [Peak(float(a), p, scores) for a, p in zip(found, chances, strict=True) if p >= LEAST]


def contrast(scores: Float, azimuth: Float, spread: float | None = None) -> Float:
    """How far peaks stand out of their map, as a rough chance, (n,), whatever the scale of the scores.

    A peak `CLEAR` standard deviations above the median direction counts as even. Both numbers were chosen for
    SRP-PHAT on the validation scenes of `tyto bench tracking`; other arrays and methods differ.
    """
    finite = scores[np.isfinite(scores)].astype(np.float64)
    height = scores[np.round(azimuth).astype(np.intp) % N_DIRECTIONS].astype(np.float64)
    deviation = float(finite.std()) if spread is None else spread
    deviations = (height - np.median(finite)) / max(deviation, 1e-12)
    return np.asarray(1 / (1 + np.exp(-STEEPNESS * np.clip(deviations - CLEAR, -10.0, 10.0))))


def _of_located(found: Located) -> list[Peak]:
    chances = found.probability if found.probability is not None else (UNKNOWN,) * found.n_sources
    scores = encode(np.array(found.azimuth))
    return [Peak(a, p, s) for a, p, s in zip(found.azimuth, chances, scores, strict=True)]


def checked_scores(frame: Float) -> Float:
    """Scores (360,) of one frame; anything else is refused."""
    scores = np.asarray(frame)
    if scores.shape != (N_DIRECTIONS,) or scores.dtype.kind != "f":
        raise TytoError(
            f"a frame must be scores of {N_DIRECTIONS} directions, a Located, or None in silence, got "
            f"{scores.dtype} of shape {scores.shape}; one frame at a time: maps[0], not maps"
        )
    if np.isnan(scores).any() or np.isposinf(scores).any() or not np.isfinite(scores).any():
        raise TytoError("the scores of a frame hold NaN or infinity; did a damaged frame slip through?")
    return scores
