"""What the weights of a model give away: a reviewer's attacks over plain arrays.

Letters as in the head. A model has W = A^-1 (Q + Qsim) with A = G + Gsim + ridge I. G and Q are secret. Gsim
and Qsim, of the simulated frames of the prior, follow from the prior and the seed, which everybody has who
has the model. V is the half of W that regresses the labels, (D, C), and Q = sum of q_p y_p' over the
places that were taught, with their labels y_p.

    places      A is symmetric, hence Qsim'V - V'Qsim = V'Q - Q'V, whose range holds every y_p
    G           for combinations N of labels that no place uses, Q N = 0 and A (V N) = Qsim N
    difference  of the models before and after a lesson (H, Y): A V1 - A V2 = H'(H V2 - Y), and
                (V1 N)'A = N'Qsim' from above: a candidate lesson fits or does not

Everything is in real numbers: 127 of an exact head is 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from tytoalba.errors import TytoError

Float = NDArray[np.float64]
ROUNDING = 2.0**-24
"""Relative error of a float32: what weights in a file have."""
EXACTLY = 1e-3
"""Share of a label's length that may lie outside what float32 tells of a span; of neighbours 4e-3 does."""
NOISE = 3.0
"""How far above the noise of rounding, as drawn, singular values must be to count."""
GAP = 1e3
"""Ratio of neighbouring singular values of V N that only rounding makes."""
SYMMETRIC = 0.05
"""Share of a recovered G that may be antisymmetric; of noise about half is."""


class Known(NamedTuple):
    """What everybody knows who has a model: sums of the prior's simulated frames.

    A: Gsim + ridge I, (D, D). Q: Qsim, (D, C).
    """

    A: Float
    Q: Float


class Places(NamedTuple):
    """Which labels were taught, by the weights.

    found: their numbers. off: share of every label's length outside the range, (n_labels,): 0 for a taught
    one. rank: of the antisymmetric matrix, twice the number of labels in use; as many as there are columns
    where noise hides everything. free: combinations (C, C - rank) that no label in use touches, whichever
    these are.
    """

    found: NDArray[np.intp]
    off: Float
    rank: int
    free: Float


class RecoveredG(NamedTuple):
    """G on as many directions as the weights determine.

    basis: (D, k), orthonormal; all of G where k = D. G: basis' G basis, (k, k). asymmetry: share of what was
    found that is antisymmetric, about 0 where the attack works; it needs no truth.
    """

    basis: Float
    G: Float
    asymmetry: float

    @property
    def found(self) -> bool:
        """Whether what was found can be a G at all."""
        return len(self.G) > 0 and self.asymmetry < SYMMETRIC


def places(V: ArrayLike, known: Known, labels: ArrayLike) -> Places:
    """Find the labels (n_labels, C) that were taught from the weights V (D, C).

    Works for fewer than C / 2 places and at most D: then the range of Qsim'V - V'Qsim leaves room. How much
    of it is rounding of the file is told by rounding the weights once more, at random.
    """
    W, Y = _weights(V, known), np.asarray(labels, np.float64)
    C = W.shape[1]
    if Y.ndim != 2 or Y.shape[1] != C:
        raise TytoError(f"labels must be (n_labels, {C}), got shape {Y.shape}")
    U, s, _ = np.linalg.svd(_antisymmetric(W, known.Q))
    error = W * ROUNDING * np.random.default_rng(0).uniform(-1, 1, W.shape)
    noise = U.T @ _antisymmetric(error, known.Q) @ U
    floor = C * np.finfo(np.float64).eps * float(s.max(initial=0.0))  # of float64 itself
    left = np.cumsum(np.square(s)[::-1])[::-1]  # squares beyond the first r singular values
    of_noise = np.cumsum(np.cumsum(np.square(noise)[::-1, ::-1], 0), 1)[::-1, ::-1].diagonal()
    enough = left <= NOISE**2 * of_noise + C * floor**2
    rank = int(np.argmax(np.append(enough, True)))
    outside = np.linalg.norm(Y @ U[:, rank:], axis=1)
    off = outside / np.maximum(np.linalg.norm(Y, axis=1), np.finfo(np.float64).tiny)
    if rank == C:  # everything is in the range: that says nothing
        off = np.ones(len(Y))
    return Places(np.flatnonzero(off < EXACTLY), off, rank, U[:, rank:])


def unused(labels: ArrayLike) -> Float:
    """Combinations N (C, k), orthonormal, that labels (n_labels, C) do not touch."""
    Y = np.asarray(labels, np.float64)
    if not len(Y):
        return np.eye(Y.shape[1])
    _, s, Vt = np.linalg.svd(Y)
    return np.asarray(Vt[int((s > 1e-9 * s.max()).sum()) :].T)


def gram_from_weights(V: ArrayLike, known: Known, N: ArrayLike) -> RecoveredG:
    """Solve (G + A) V N = Qsim N for G, on the directions that V N has. N (C, k): labels nobody uses."""
    W, free = _weights(V, known), np.asarray(N, np.float64)
    X = W @ free  # (D, k)
    right = known.Q @ free - known.A @ X  # G X
    error = (W * ROUNDING * np.random.default_rng(0).uniform(-1, 1, W.shape)) @ free
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    k = int((s > NOISE * np.linalg.norm(error, 2)).sum()) if X.size else 0
    falls = s[1:k] * GAP < s[: max(k - 1, 0)]  # what lies beyond is rounding too, in N
    k = int(np.argmax(falls)) + 1 if falls.any() else k
    basis = U[:, :k]
    G = basis.T @ (right @ (Vt[:k].T / s[:k]))
    length = float(np.linalg.norm(G))
    asymmetry = float(np.linalg.norm(G - G.T)) / (2 * length) if length else 0.0
    return RecoveredG(basis, (G + G.T) / 2, asymmetry)


def relative_error(found: RecoveredG, G: ArrayLike) -> float:
    """How far a recovered G is from the true one (D, D), over the length of the latter, where it is known."""
    true = found.basis.T @ np.asarray(G, np.float64) @ found.basis
    length = float(np.linalg.norm(true))
    return float(np.linalg.norm(found.G - true)) / length if length else float("nan")


def between_models(
    before: ArrayLike,
    after: ArrayLike,
    known: Known,
    N: ArrayLike,
    lessons: Iterable[tuple[ArrayLike, ArrayLike]],
) -> Float:
    """How badly each candidate lesson explains two models, (n_lessons,): 0 for the one learned between them.

    before, after: their W (D, n C), the half of the labels first. lessons: features H (n, D) and labels
    Y (n, n C) of each, one row for each side that a frame is learned from. N: labels that neither uses.
    """
    W1, W2 = (np.asarray(W, np.float64) for W in (before, after))
    free, C = np.asarray(N, np.float64), known.Q.shape[1]
    seen = (known.Q @ free).T @ (W1 - W2)
    length = max(float(np.linalg.norm(seen)), np.finfo(np.float64).tiny)
    missed = []
    for H, Y in lessons:
        h = np.asarray(H, np.float64)
        expected = (h @ (W1[:, :C] @ free)).T @ (h @ W2 - np.asarray(Y, np.float64))
        missed.append(float(np.linalg.norm(seen - expected)) / length)
    return np.array(missed)


def most_found(fpr: float, epsilon: float, delta: float, noise: float | None = None) -> float:
    """The largest share of members that anybody can find at a false positive rate, by differential privacy.

    noise: standard deviation of Gaussian noise over sensitivity, if it is known, which says more than
    (epsilon, delta): Phi(Phi^-1(fpr) + 1 / noise).

    >>> round(most_found(0.01, 3.0, 1e-6), 3), round(most_found(0.01, 3.0, 1e-6, noise=2.0), 3)
    (0.201, 0.034)
    """
    if not 0 < fpr < 1 or not epsilon >= 0 or not 0 <= delta <= 1:
        raise TytoError(f"fpr must be in (0, 1), epsilon from 0, delta in [0, 1]: {fpr}, {epsilon}, {delta}")
    ratio = float(np.exp(min(epsilon, 700.0)))  # more would overflow, and is certain anyway
    bounds = [1.0, ratio * fpr + delta, 1 - (1 - delta - fpr) / ratio]
    if noise is not None:
        if not noise > 0:
            raise TytoError(f"noise must be positive, got {noise}")
        bounds.append(float(ndtr(ndtri(fpr) + 1 / noise)))
    return float(min(bounds))


def _antisymmetric(V: Float, Q: Float) -> Float:
    product = Q.T @ V
    return np.asarray(product - product.T)


def _weights(V: Any, known: Known) -> Float:
    W = np.asarray(V, np.float64)
    if W.shape != known.Q.shape or known.A.shape != (len(W), len(W)):
        raise TytoError(
            f"the weights of labels must be (D, C) as Qsim is, and A (D, D); got {W.shape}, {known.Q.shape} "
            f"and {known.A.shape}"
        )
    return W
