"""Private releases of states that were made before there were sums for them (`offsets`): by frames alone.

Such a state has the sums Q of features times labels and times the prior's scores. What a lesson added to them
has no bound, but what a frame adds has: features are at most 1 and labels and scores from 0 to 1, so

    |h' M (y - b)| <= sqrt(D) sqrt(360) |M|      for any matrix M (D, 360), |M| its largest singular value.

The matrices here are made from the prior's simulated frames and nothing else. h' M is about the slope of a
label at the direction that the prior finds, times 1, cos 2t and sin 2t, so the sum of h' M (y - b) over all
rows is large where labels lie beside the prior's peaks: it tells the offset of the device, less well than
`offsets` do. Mirrored frames are in the sums like all others, and hide how far a device is turned.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.prior.features import scores
from tytoalba.learning.sums import SCALE, gaussian_labels
from tytoalba.localizer.noise import LARGEST_SIGMA, Source, discrete_gaussian
from tytoalba.localizer.offsets import N_COEFFICIENTS, offset_curve
from tytoalba.localizer.worth import USUAL, Estimate

if TYPE_CHECKING:
    from tytoalba.localizer.state import State

Float = NDArray[np.floating]
MOST_FEATURES = 500
"""Random features that are used, the first of a state."""
RIDGE, CLEAR = 10.0, 0.3
"""Of the regression, in units of D / 2; the least height of a peak that it learns from."""
BITS = 16
"""Matrices are whole numbers over 2^BITS."""
COUNT = 64
"""The number of rows is released, too, with an error that costs 1 / COUNT of the rest."""
ALIKE = 20.0
"""Frames of a lesson are alike: their variance counts as often."""
MISFIT = 0.02
"""By how much h' M (y - b) of real rows may differ from that of simulated ones, however many there are."""
STEP = 1.0
"""Degrees, to see how the sums change with the offset."""


@dataclass(frozen=True)
class _Probe:
    """Matrices (3, D, 360) in whole numbers, and what rows of a device as drawn give by them: public.

    base: mean of h' M (y - b), (3,); slope: its change for each degree of each coefficient, (3, 3); spread:
    its standard deviation, (3,). norm: length of the three of one row, at most.
    """

    matrices: NDArray[np.int64]
    base: Float
    slope: Float
    spread: Float
    norm: float


def older_estimate(state: State, noise: float, source: Source) -> Estimate:
    """The offset of a device from the sums of an older state, with noise.

    noise: times the most that one frame adds, what is needed. There is a little more of it: how much depends
    on the secret seed, so nobody is told.
    """
    probe = _probe(state)
    row = ceil(SCALE**2 * probe.norm) + 1  # the most that one row adds, in whole steps
    counted = row // COUNT + 1
    n_views = state.learner.n_views
    most = n_views * (row + counted)
    steps = max(0, (ceil(noise * most) // LARGEST_SIGMA).bit_length() + 1)  # bits that are cut off
    bound = (most >> steps) + 1 + isqrt(N_COEFFICIENTS + 1) + 1  # and rounding, at most 1 in each of four
    sigma = ceil(noise * bound)
    exact = [
        value >> steps for value in (*_queries(state, probe), counted * state.learner.n_frames * n_views)
    ]
    noisy = np.array(exact, np.float64) + discrete_gaussian(N_COEFFICIENTS + 1, sigma, source)
    return _interpreted(noisy * 2.0**steps, sigma * 2.0**steps, counted, probe)


def _queries(state: State, probe: _Probe) -> list[int]:
    """Sum of h' M (y - b) over all rows, for each matrix: Python's whole numbers, of any size."""
    memory, n = state.learner.memory(), state.prior.n_directions
    D = probe.matrices.shape[1]
    E = memory["Q"][:D, :n] - memory["Q"][:D, n:]
    high, low = E >> 24, E & (2**24 - 1)  # products and their sums stay below 2^63
    return [(int((M * high).sum()) << 24) + int((M * low).sum()) for M in probe.matrices]


def _interpreted(noisy: Float, sigma: float, counted: int, probe: _Probe) -> Estimate:
    n = noisy[-1] / counted
    if n <= 3 * sigma / counted:
        return Estimate(np.zeros(N_COEFFICIENTS), np.diag(USUAL**2))
    unit = SCALE**2 * 2.0**BITS
    told, of_noise = noisy[:-1] / unit - n * probe.base, sigma / unit
    inverse = np.diag(1.0 / (of_noise**2 + ALIKE * n * probe.spread**2 + (MISFIT * n) ** 2))
    A = n * probe.slope
    covariance = np.linalg.inv(A.T @ inverse @ A + np.diag(USUAL**-2.0))
    return Estimate(covariance @ A.T @ inverse @ told, covariance)


def _probe(state: State) -> _Probe:
    prior, learner = state.prior, state.learner
    if not prior.frames:
        raise TytoError("the prior of this state keeps no simulated frames, by which its sums could be read")
    logits, sound = prior.simulated_frames()
    B = np.asarray(scores(logits), np.float64)
    clear = B.max(axis=1) >= CLEAR
    H = np.asarray(learner.inputs.expand(logits, sound))[clear, :MOST_FEATURES] / np.float64(SCALE)
    B, heard = B[clear], B[clear].argmax(axis=1)
    D = H.shape[1]
    waves = np.stack([offset_curve(row)[heard] for row in np.eye(N_COEFFICIENTS)])  # (3, n)
    apart = (np.arange(360) - heard[:, None] + 180) % 360 - 180
    slopes = apart / learner.sigma * np.exp(-((apart / learner.sigma) ** 2))  # (n, 360)
    solved = np.linalg.solve(H.T @ H + RIDGE * D / 2 * np.eye(D), H.T)  # (D, n)
    matrices = np.rint([solved @ (wave[:, None] * slopes) * 2.0**BITS for wave in waves]).astype(np.int64)
    rows = np.stack([H @ (M / 2.0**BITS) for M in matrices])  # h' M, (3, n, 360)
    views = learner.views

    def heard_as(coefficients: Float) -> Float:
        """h' M (y - b) of every simulated row if the device had this offset, (3, n_views x n)."""
        curve, found = offset_curve(coefficients), []
        for view in views:
            plain = (view.turn - heard if view.mirrored else heard - view.turn) % 360
            true = view.azimuth(plain - curve[plain])
            Y = gaussian_labels(np.asarray(true)[:, None], learner.sigma, 360) / np.float64(SCALE)
            found.append(np.einsum("jnt,nt->jn", rows, Y - B))
        return np.concatenate(found, axis=1)

    base = heard_as(np.zeros(N_COEFFICIENTS))
    moved = [heard_as(STEP * row).mean(axis=1) for row in np.eye(N_COEFFICIENTS)]
    slope = (np.stack(moved, axis=1) - base.mean(axis=1)[:, None]) / STEP
    norm = float(np.sqrt(D * 360.0) * np.sqrt(sum(_largest(M) ** 2 for M in matrices)))
    return _Probe(matrices, base.mean(axis=1), slope, base.std(axis=1), norm)


def _largest(M: NDArray[np.int64]) -> float:
    """At least the largest singular value s of M, and little more: the sum of all s^8, to the power 1/8."""
    real = M.astype(np.float64)
    square = real.T @ real
    return float(np.linalg.norm(square @ square) ** 0.25 * (1 + 1e-9))
