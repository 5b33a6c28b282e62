"""The paper's recursion: the same ridge solution as `learning.head`, carried as R and W instead of G and Q.

    R_0 = I / eta,   W_0 = 0
    R_k = R_{k-1} - R_{k-1} H' (I + H R_{k-1} H')^-1 H R_{k-1}
    W_k = W_{k-1} + R_k H' (Y - H W_{k-1})

The paper prints R_k without the inverse, twice; it is put back here (Woodbury). All outputs are there from
the start, so that labels which spill over the edge of a phase are learned as in the joint solution. Worth its
place where a phase is a handful of frames and D is large; else `AnalyticHead` is faster and more precise.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tytoalba.errors import HeadError

Float = NDArray[np.floating[Any]]


class RecursiveHead:
    """Recursive ridge regression in float64; `ridge` (the paper's eta) cannot be changed later.

    >>> head = RecursiveHead(n_features=2, n_outputs=1, ridge=1.0)
    >>> head.learn([[1.0, 0.0], [0.0, 2.0]], [[1.0], [1.0]]).W.round(6).tolist()
    [[0.5], [0.4]]
    """

    def __init__(self, n_features: int, n_outputs: int = 360, ridge: float = 0.1) -> None:
        if n_features < 1 or n_outputs < 1:
            raise HeadError(f"n_features and n_outputs must be at least 1, got {n_features} and {n_outputs}")
        if not 0 < ridge < np.inf:
            raise HeadError(f"ridge must be positive: the recursion starts from R = I / ridge; got {ridge}")
        self.n_features, self.n_outputs, self.ridge = n_features, n_outputs, float(ridge)
        self.R: Float = np.eye(n_features) / self.ridge  # (D, D)
        self.W: Float = np.zeros((n_features, n_outputs))  # (D, C)

    def learn(self, H: ArrayLike, Y: ArrayLike, batch_size: int = 512) -> Self:
        """Add rows: features H (n, n_features) and their labels Y (n, n_outputs), some at a time.

        A batch costs about 4 n D^2 operations and a system of n equations; the result is the same for any.
        """
        H, Y = _rows(H, "H", self.n_features), _rows(Y, "Y", self.n_outputs)
        if len(H) != len(Y):
            raise HeadError(f"each row of features needs its label: H has {len(H)} rows, Y has {len(Y)}")
        if batch_size < 1:
            raise HeadError(f"batch_size must be at least 1, got {batch_size}")
        R, W = self.R, self.W
        for start in range(0, len(H), batch_size):
            R, W = _step(R, W, H[start : start + batch_size], Y[start : start + batch_size])
        self.R, self.W = R, W
        return self

    def scores(self, H: ArrayLike) -> Float:
        """Predicted labels (n, n_outputs)."""
        return _rows(H, "H", self.n_features) @ self.W

    def memory(self) -> dict[str, Float]:
        """Everything kept of the data: copies of R and W."""
        return {"R": self.R.copy(), "W": self.W.copy()}


def _step(R: Float, W: Float, H: Float, Y: Float) -> tuple[Float, Float]:
    HR = H @ R  # (n, D)
    try:
        K = cho_factor(np.eye(len(H)) + HR @ H.T, lower=True)
    except (LinAlgError, ValueError) as error:  # ValueError: not finite
        raise HeadError("the recursion has lost its digits; use AnalyticHead, or a larger ridge") from error
    R = R - HR.T @ cho_solve(K, HR)
    R = (R + R.T) / 2  # rounding would let the two triangles drift apart
    return R, W + R @ (H.T @ (Y - H @ W))


def _rows(array: ArrayLike, name: str, width: int) -> Float:
    rows = np.asarray(array, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise HeadError(f"{name} must be (n_frames, {width}), got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise HeadError(f"{name} holds NaN or infinity; did a silent or damaged frame slip through?")
    return rows
