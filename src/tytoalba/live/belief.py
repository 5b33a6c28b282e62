"""Where one talker may be: a probability for each degree, and how a frame changes it.

A circular Bayes filter. A belief is (360,), not negative, of sum 1. `predicted` says what is known a moment
later of somebody who may walk; `seen` what a peak tells; `updated` joins the two. Turning what goes in by
whole degrees turns what comes out, to the bit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.ndimage import convolve1d

from tytoalba.signal.angles import N_DIRECTIONS, Float, turned

REACH = 15.0
"""Degrees around a peak that belong to it."""
_ASIDE = np.arange(-int(REACH), int(REACH) + 1)


def predicted(belief: Float, drift: float, moved: float = 0.0) -> Float:
    """The belief a moment later.

    drift: degrees by which the talker may be elsewhere, one standard deviation. moved: degrees to the left
    that he is expected to have walked.

    >>> here = np.eye(360)[0]
    >>> predicted(here, 2.0)[[0, 2, 358]].round(3).tolist()
    [0.199, 0.121, 0.121]
    """
    if moved:
        belief = turned(belief[None], moved)[0]
    return np.asarray(convolve1d(belief, _kernel(round(float(drift), 3)), mode="wrap"))


@lru_cache(maxsize=256)
def _kernel(drift: float) -> Float:
    """A normal distribution in steps of one degree, cut at four deviations."""
    reach = min(int(np.ceil(4 * drift)), N_DIRECTIONS // 2 - 1)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / drift) ** 2)
    return np.asarray(weights / weights.sum())


def seen(scores: Float, azimuth: float, sharpness: float = 1.0) -> Float:
    """Likelihood of each direction, given a peak of a map that is a talker: mean 1, 0 far from the peak.

    scores: (360,), their own height does not matter. sharpness: power of the scores; more means that the top
    of a peak counts more than its sides.
    """
    near = (round(azimuth) + _ASIDE) % N_DIRECTIONS
    around = np.asarray(scores[near], np.float64)
    finite = np.isfinite(around)
    low, high = around[finite].min(), around[finite].max()
    inside = np.where(finite, around - low, 0.0) / (high - low) if high > low else finite.astype(float)
    shape = np.zeros(N_DIRECTIONS)
    shape[near] = inside**sharpness
    return np.asarray(shape * (N_DIRECTIONS / shape.sum()))


def updated(belief: Float, likelihood: Float, probability: float) -> Float:
    """Bayes: the belief after a peak that is the talker with a probability, and otherwise says nothing."""
    product = belief * (probability * likelihood + (1 - probability))
    total = float(product.sum())
    return product / total if total > 0 else belief


def agreement(belief: Float, likelihood: Float) -> float:
    """How many times likelier a peak is for this talker than for a random place; 1: no difference."""
    return float(belief @ likelihood)


def centre(belief: Float) -> float:
    """Azimuth in degrees: the mean of the belief around its highest direction.

    >>> centre(predicted(np.eye(360)[359], 3.0))
    359.0
    """
    top = int(belief.argmax())
    weight = belief[(top + _ASIDE) % N_DIRECTIONS]
    return float((top + float(_ASIDE @ weight) / float(weight.sum())) % 360.0)
