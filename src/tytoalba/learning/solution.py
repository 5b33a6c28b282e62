"""W = A^-1 B of ridge regression: solved in place, or brought up to date after a few rows.

With rows H and labels Y added to A and B (weight w = 1; -1 where they were taken away),

    W' = W + P K^-1 (Y - H W),   P = A^-1 H',   K = diag(1 / w) + H P      (Woodbury)

costs two triangular solutions of a few columns, where factoring anew costs D^3 / 3 and solving for all labels
2 D^2 C. The two differ by rounding, by less than 1e-7 of the largest weight; where that is not sure, it is
solved anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from tytoalba.learning.sums import Array, Statistics, all_finite, import_torch

Real = NDArray[np.float64]

SMALLEST = 512
"""Features from which on a solution is worth bringing up to date: fewer are solved in milliseconds."""
KEPT = 2**28
"""Bytes of a factor that are kept for it, 256 MiB (5792 features)."""
SHARE = 16
"""Rows up to D / SHARE are brought in: more cost nearly what factoring costs."""
DIGITS = 1e4
"""Times that 1 / w, or the largest eigenvalue of K, may exceed the smallest: where rows are taken away that
had made most of what is known of some features, little but rounding is left of K."""


class Rows(NamedTuple):
    """Rows that were added, `weight` times, or taken away (below 0)."""

    H: NDArray[Any]  # (n, D)
    Y: NDArray[Any]  # (n, C)
    weight: int


@dataclass(frozen=True)
class Solution:
    """W, and what is needed to bring it up to date."""

    W: Array  # (D, C)
    factor: Real | None = None  # (D, D), of A as `cho_factor` leaves it
    first: Real | None = None  # (D, C), the weights that belong to the factor
    P: Real | None = None  # (D, k), A^-1 H' of all rows since
    H: Real | None = None  # (k, D)
    Y: Real | None = None  # (k, C)
    w: Real | None = None  # (k,)

    @property
    def from_sums(self) -> bool:
        """Whether it was solved from the sums alone, whatever way they came about."""
        return self.P is None

    def takes(self, n: int) -> bool:
        """Whether n rows more are worth being brought in."""
        known = 0 if self.w is None else len(self.w)
        return self.factor is not None and n + known <= len(self.factor) // SHARE

    def brought_up_to_date(self, changes: Sequence[Rows], unit: int = 1) -> Solution | None:
        """The solution with some rows more or fewer; None where rounding would show.

        unit: what stands for 1.0 in the rows.
        """
        assert self.factor is not None
        first = self.W if self.first is None else self.first
        H = np.concatenate([change.H for change in changes]) / unit
        Y = np.concatenate([change.Y for change in changes]) / unit
        w = np.concatenate([np.full(len(change.H), float(change.weight)) for change in changes])
        P = cho_solve((self.factor, True), H.T, check_finite=False)
        if self.H is not None:
            assert self.P is not None
            assert self.Y is not None
            assert self.w is not None
            H, Y = np.concatenate([self.H, H]), np.concatenate([self.Y, Y])
            w, P = np.concatenate([self.w, w]), np.concatenate([self.P, P], axis=1)
        K = H @ P
        K[np.diag_indices(len(K))] += 1 / w
        try:
            values, V = eigh((K + K.T) / 2, check_finite=False)
        except LinAlgError:
            return None
        most = max(np.abs(1 / w).max(initial=0.0), np.abs(values).max(initial=0.0))
        if not np.abs(values).min(initial=np.inf) * DIGITS > most:  # NaN: not either
            return None
        W = first + P @ (V @ ((V.T @ (Y - H @ first)) / values[:, None]))
        return replace(self, W=W, first=first, P=P, H=H, Y=Y, w=w) if all_finite(W) else None


class Solved(NamedTuple):
    """A solution, what it belongs to, and the rows that it does not know of."""

    ridge: float
    beside: Statistics | None
    solution: Solution
    unknown: tuple[Rows, ...] = ()

    def takes(self, n: int) -> bool:
        """Whether n rows more are worth being brought in."""
        return self.solution.takes(n + sum(len(rows.H) for rows in self.unknown))

    def changed(self, rows: Sequence[Rows]) -> Solved:
        """The same, with rows that the solution does not know of."""
        return self._replace(unknown=(*self.unknown, *rows))

    def now(self, ridge: float, beside: Statistics | None, unit: int, anew: bool) -> Solution | None:
        """The solution for that ridge and those other sums, brought up to date; None: to be solved anew.

        unit: what stands for 1.0 in the rows. anew: whether only a solution of the sums alone will do.
        """
        if self.ridge != ridge or self.beside is not beside or (anew and self.unknown):
            return None
        if self.unknown:
            return self.solution.brought_up_to_date(self.unknown, unit)
        return None if anew and not self.solution.from_sums else self.solution


def solve(A: Array, B: Array) -> Solution | None:
    """A^-1 B for a symmetric A, which is overwritten; None where A is not positive definite."""
    if not isinstance(A, np.ndarray):
        torch = import_torch()
        L, info = torch.linalg.cholesky_ex(A)
        W = None if int(info) else torch.cholesky_solve(B, L)
        return Solution(W) if W is not None and all_finite(W) else None
    try:  # A.T has the column order of LAPACK: no copy
        factor, _ = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    W = cho_solve((factor, True), B, check_finite=False)
    keeps = len(A) >= SMALLEST and A.nbytes <= KEPT
    return Solution(W, factor if keeps else None) if all_finite(W) else None
