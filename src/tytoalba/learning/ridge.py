"""The ridge of an analytic head, chosen from its sums alone: no row is needed, at any phase.

With W = (G + eta I)^-1 Q and S the matrix that maps labels to predictions,

    RSS = sum y2 - 2 tr(W'Q) + tr(W'GW) = sum y2 - tr(W'Q) - eta tr(W'W)      since GW = Q - eta W
    tr S = tr((G + eta I)^-1 G)
    GCV = n RSS / (n - tr S)^2

GCV estimates the error on new rows as leaving one row out does. It takes the rows to be independent: frames
of one recording resemble each other, rows counted several times even more so, and then GCV prefers too small
a ridge. Rows of other rooms or recordings, summed up in a head of their own, judge without that flaw:

    error = (sum y2_v - 2 tr(W'Q_v) + tr(W'G_v W)) / n_v
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, eigvalsh_tridiagonal, lapack, solveh_banded

from tytoalba.errors import HeadError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.sums import Statistics, bring, import_torch, is_tensor

ALPHAS = np.logspace(-3, 1, 13)
"""Ridges to try by default, in units of D / 2: the mean of |h|^2 for D random Fourier features."""
LEAST_FREE = 1e-5
"""Degrees of freedom left, as a share of n, below which a fit goes through every row and GCV is 0 / 0."""

Scores = NDArray[np.float64]


def choose_ridge(
    head: AnalyticHead, held: AnalyticHead | None = None, ridges: ArrayLike | None = None
) -> float:
    """The best of some ridges: by the error on held-out rows where there are any, else by GCV.

    held: a head that has learned other rows of the same features and outputs; it is only read.
    ridges: positive, in the units of `AnalyticHead.ridge`. By default alpha D / 2 for 13 alphas from 0.001 to
    10, which suits features with |h|^2 about D / 2; give others for features of another scale. A choice at an
    end of the grid says that the grid should reach further. Nothing is changed: set `head.ridge` yourself.

    >>> rng = np.random.default_rng(0)
    >>> H = rng.standard_normal((200, 40))
    >>> Y = H @ rng.standard_normal((40, 5)) + 3 * rng.standard_normal((200, 5))  # the best ridge: 9
    >>> head = AnalyticHead(40, 5).learn(H, Y)
    >>> choose_ridge(head, ridges=[0.1, 1.0, 10.0, 100.0, 1000.0])
    10.0
    """
    if ridges is None:
        ridges = ALPHAS * head.n_features / 2
    chosen_from = _checked_ridges(ridges)
    if head.n and not head.memory()["y2"].any():
        raise HeadError(
            f"all labels of the {head.n} rows are zero, any ridge fits them; learn frames with a source first"
        )
    by_gcv = generalised_cross_validation
    errors = by_gcv(head, ridges) if held is None else held_out_error(head, held, ridges)
    if not np.isfinite(errors).any():
        raise HeadError(
            f"with every ridge from {chosen_from.min():g} to {chosen_from.max():g} the fit goes through all "
            f"{head.n} rows, so they cannot judge it; try larger ridges or give held-out rows"
        )
    return float(chosen_from[np.argmin(errors)])


def generalised_cross_validation(head: AnalyticHead, ridges: ArrayLike) -> Scores:
    """GCV of each ridge, (n_ridges,): squared error to expect of a new row, summed over outputs.

    Infinite where the fit goes through every row (see LEAST_FREE).

    >>> head = AnalyticHead(1, 1).learn(np.array([[1.0], [1.0]]), np.array([[1.0], [3.0]]))
    >>> generalised_cross_validation(head, [2.0]).tolist()  # W = 1, RSS = 4, tr S = 1/2
    [3.5555555555555554]
    """
    etas = _checked_ridges(ridges)
    _refuse_empty(head, "this head")
    sums = head.statistics()
    on_cpu = not is_tensor(sums.G) or sums.G.device.type == "cpu"
    fits = (_by_tridiagonal if on_cpu else _by_cholesky)(sums, etas)
    scores = np.full(len(etas), np.inf)
    for k, (rss, trace) in enumerate(fits):
        free = sums.n - trace
        if free > LEAST_FREE * sums.n:
            scores[k] = sums.n * max(rss, 0.0) / free**2
    return scores


def held_out_error(head: AnalyticHead, held: AnalyticHead, ridges: ArrayLike) -> Scores:
    """Mean squared error of each ridge on the rows of another head, (n_ridges,), summed over outputs.

    The heads may differ in kind (exact or float) and in device, not in features and outputs.

    >>> head = AnalyticHead(1, 1).learn(np.array([[1.0], [1.0]]), np.array([[1.0], [3.0]]))
    >>> held = AnalyticHead(1, 1).learn(np.array([[2.0]]), np.array([[5.0]]))
    >>> held_out_error(head, held, [2.0]).tolist()  # W = 1, (5 - 2)^2
    [9.0]
    """
    etas = _checked_ridges(ridges)
    mine, theirs = ((h.n_features, h.n_outputs) for h in (head, held))
    if mine != theirs:
        raise HeadError(
            f"the held-out rows must have this head's (n_features, n_outputs) {mine}, got {theirs}; "
            "sum them up with the same features"
        )
    _refuse_empty(head, "this head")
    _refuse_empty(held, "the held-out head")
    sums, solver = held.statistics(), copy(head)  # a copy, so that the head keeps the weights it has solved
    G, Q = (bring(array, head.device) for array in (sums.G, sums.Q))
    errors = np.empty(len(etas))
    for k, eta in enumerate(etas):
        W = solver.weights(eta)
        errors[k] = float(sums.y2.sum()) + float((W * (G @ W - 2 * Q)).sum())
    return errors.clip(0) / sums.n  # below zero only by rounding


def _by_tridiagonal(sums: Statistics, etas: Scores) -> Iterator[tuple[float, float]]:
    """RSS and tr S of each ridge, on a CPU: G = U T U' with T tridiagonal, once for all ridges.

    With V = (T + eta I)^-1 U'Q = U'W the traces of W are those of V. For 5000 features and one thread this
    is 14 s for one ridge and for 13, against 3.5 s a ridge by Cholesky and 25 s for eigenvectors.
    """
    (G, Q, y2), n = (bring(array, None) for array in sums[:3]), sums.n
    if len(G) == 1:  # LAPACK's solver wants two: a feature that is always zero changes nothing
        G, Q = np.pad(G, (0, 1)), np.pad(Q, ((0, 1), (0, 0)))
    work, _ = lapack.dsytrd_lwork(len(G), lower=1)
    reflectors, diagonal, off, tau, _ = lapack.dsytrd(G.T, lower=1, lwork=int(work), overwrite_a=1)
    V, _, _ = lapack.dormqr("L", "T", reflectors[1:, :-1], tau, Q[1:], 64 * Q.shape[1])
    V = np.vstack([Q[:1], V])  # U leaves the first row as it is
    eigenvalues = eigvalsh_tridiagonal(diagonal, off).clip(0)
    for eta in etas:
        banded = np.stack([diagonal + eta, np.append(off, 0.0)])
        try:
            X = solveh_banded(banded, V, lower=True, check_finite=False)
        except LinAlgError as error:
            raise _indefinite(eta, n) from error
        rss = y2.sum() - np.vdot(X, V) - eta * np.vdot(X, X)
        yield float(rss), float((eigenvalues / (eigenvalues + eta)).sum())


def _by_cholesky(sums: Statistics, etas: Scores) -> Iterator[tuple[float, float]]:
    """RSS and tr S of each ridge, on a GPU: G + eta I = L L' and tr S = D - eta |L^-1|^2."""
    torch, (G, Q, y2, n) = import_torch(), sums
    identity = torch.eye(len(G), dtype=G.dtype, device=G.device)
    for eta in map(float, etas):
        L, info = torch.linalg.cholesky_ex(G + eta * identity)
        if int(info):
            raise _indefinite(eta, n)
        W = torch.cholesky_solve(Q, L)
        rss = y2.sum() - (W * Q).sum() - eta * W.square().sum()
        inverse = torch.linalg.solve_triangular(L, identity, upper=False)
        yield float(rss), len(G) - eta * float(inverse.square().sum())


def _indefinite(eta: float, n: int) -> HeadError:
    return HeadError(
        f"G + ridge I is not positive definite (ridge {eta:g}, {n} rows); try larger ridges, and check that "
        "nothing was forgotten that had not been learned"
    )


def _checked_ridges(ridges: ArrayLike) -> Scores:
    etas = np.asarray(ridges, np.float64)
    if etas.ndim != 1 or not len(etas) or not ((etas > 0) & (etas < np.inf)).all():
        raise HeadError(f"ridges must be a list of positive numbers, got {ridges!r}")
    return etas


def _refuse_empty(head: AnalyticHead, name: str) -> None:
    if head.n < 1:
        raise HeadError(f"{name} has learned nothing (n = 0), so no ridge can be judged by it; learn first")
