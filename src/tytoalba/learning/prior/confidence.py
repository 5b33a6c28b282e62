"""How sure a direction is, with any number of frames averaged, for one, two, three or any number of sources.

A mean over frames is flatter than a frame and right more often, so the same height means more there. The
chance that a direction is right is a logistic function of its evidence (`calibration.evidence`) and of

    s = 1 - 1 / sqrt(n)        n: frames that were averaged

which is how much of the noise is gone. Fit on validation speakers, never on the test set.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import checked_document
from tytoalba.signal.angles import Float

MOST = 3
"""Sources that are counted."""
KNEE = 0.3
"""Evidence up to which chances rise faster."""
LARGEST = 40.0
"""Of a weight, either way."""
RIDGE = 1e-4
DIGITS = 3
"""Decimals of weights and thresholds."""
FORMAT = "tytoalba-confidence"


@dataclass(frozen=True)
class Law:
    """From evidence and the number of averaged frames to a chance.

    weights: of 1, of s, of the evidence e up to KNEE, of what is above KNEE, and of s times e; the last three
    are not negative, so that the chance never falls with evidence.

    >>> law = Law((-2.0, 0.5, 4.0, 3.0, 1.0))
    >>> law.probability([0.2, 1.0, 1.0], [1, 1, 9]).round(2).tolist()
    [0.23, 0.79, 0.91]
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        given = self.weights
        right = isinstance(given, tuple) and len(given) == 5
        right = right and all(type(w) in (int, float) and abs(w) <= LARGEST for w in given)
        if not right or min(given[2:]) < 0:
            raise DataError(
                f"not a law of confidence: five numbers up to {LARGEST:g}, the last three not negative, got "
                f"{str(given)[:60]}; was it cut or edited?"
            )

    def probability(self, evidence: ArrayLike, n_averaged: ArrayLike = 1) -> Float:
        """Chance of being right, of the shape of the evidence (n_frames, ...); NaN stays NaN.

        n_averaged: frames behind each row of the evidence, (n_frames,), or one number for all.
        """
        e, n = np.asarray(evidence, np.float64), np.asarray(n_averaged, np.float64)
        n = n.reshape(n.shape + (1,) * (e.ndim - n.ndim))
        z = sum(w * part for w, part in zip(self.weights, _parts(e, n), strict=True))
        return np.asarray(1 / (1 + np.exp(-np.clip(z, -30.0, 30.0))))

    @classmethod
    def fit(cls, evidence: ArrayLike, n_averaged: ArrayLike, right: ArrayLike) -> Self:
        """Logistic regression of right or wrong: all flat, as many of each, finite."""
        from scipy.optimize import minimize

        e, n, hit = (np.asarray(each, np.float64).ravel() for each in (evidence, n_averaged, right))
        if not len(e) == len(n) == len(hit) or not len(e) or not np.isfinite(e).all():
            raise ValueError("a law is fitted on finite evidence with a number of frames and an outcome each")
        X, sign = np.stack(_parts(e, n), axis=1), 1 - 2 * hit

        def loss(w: Float) -> tuple[float, Float]:
            z = sign * (X @ w)
            pull = X.T @ (sign / (1 + np.exp(-np.clip(z, -30.0, 30.0)))) / len(e)
            return float(np.logaddexp(0, z).mean() + RIDGE * w @ w), pull + 2 * RIDGE * w

        bounds = [(-LARGEST, LARGEST)] * 2 + [(0.0, LARGEST)] * 3
        found = minimize(loss, np.zeros(5), jac=True, method="L-BFGS-B", bounds=bounds).x
        return cls(tuple(round(float(w), DIGITS) for w in found))


@dataclass(frozen=True)
class Confidence:
    """How far directions can be trusted.

    asked: a law each for where one, two and three sources are known to be (`decisions.decide`). counted: for
    the highest peak, the next and the third, however many there are (`decisions.count_sources`). least: the
    chance from which each of these counts as a source.

    >>> law = Law((-2.0, 0.5, 4.0, 3.0, 1.0))
    >>> sure = Confidence((law,) * 3, (law,) * 3, (0.3, 0.4, 0.4))
    >>> Confidence.from_dict(sure.to_dict()) == sure
    True
    """

    asked: tuple[Law, ...]
    counted: tuple[Law, ...]
    least: tuple[float, ...]

    def __post_init__(self) -> None:
        laws = (self.asked, self.counted)
        right = all(len(each) == MOST and all(isinstance(law, Law) for law in each) for each in laws)
        right = right and len(self.least) == MOST
        if not right or not all(type(p) in (int, float) and 0 <= p <= 1 for p in self.least):
            raise DataError(
                f"confidence needs {MOST} laws, {MOST} laws of counting and {MOST} chances; "
                "was it cut or edited?"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers for JSON."""
        return {
            "format": FORMAT,
            "version": 1,
            "asked": [list(law.weights) for law in self.asked],
            "counted": [list(law.weights) for law in self.counted],
            "least": list(self.least),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """What `to_dict` gave; DataError says what is wrong with a damaged one."""
        parts = checked_document(document, FORMAT, ("asked", "counted", "least"))
        if not all(isinstance(parts[name], list) for name in ("asked", "counted", "least")):
            raise DataError("not a confidence: asked, counted and least must be lists")
        asked, counted = (
            tuple(Law(tuple(w) if isinstance(w, list) else w) for w in parts[name])
            for name in ("asked", "counted")
        )
        return cls(asked, counted, tuple(parts["least"]))


@cache
def usual_confidence() -> Confidence:
    """That of the priors that ship, fitted on several of them at once (`tools/fit_confidence.py`).

    Priors that bring none of their own get this one: networks that learned the same labels mean much the same
    by the same height.
    """
    file = resources.files("tytoalba") / "resources" / "priors" / "confidence.json"
    return Confidence.from_dict(json.loads(file.read_text(encoding="utf-8")))


def _parts(e: Float, n: Float) -> list[Float]:
    """What the weights of a law are of, each of the shape of the evidence."""
    gone = np.broadcast_to(1 - 1 / np.sqrt(n), e.shape)
    return [np.ones(e.shape), gone, np.minimum(e, KNEE), np.maximum(e - KNEE, 0.0), gone * e]
