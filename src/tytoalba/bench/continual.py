"""What is left after learning phase after phase.

The accuracy matrix A is (n_phases, n_phases): A[i, j] is the accuracy on phase j after learning phase
i, in any unit, which the measures keep. Above the diagonal lies the future: it is never read. A column
of NaN is a phase without test frames and is left out of every mean. The averages serve an error (MAE)
as well; in forgetting and backward transfer an error has the opposite sign.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.signal.angles import Float


def seen_accuracy(matrix: ArrayLike, counts: ArrayLike | None = None) -> Float:
    """Accuracy on everything seen after each phase: the curve of the paper's figure, (n_phases,).

    counts: (n_phases,) test frames of each phase, so that every frame weighs the same; without them
    every phase does. NaN where no phase seen so far has a test frame.

    >>> A = [[1.0, float("nan")], [0.5, 0.75]]
    >>> seen_accuracy(A).tolist(), seen_accuracy(A, counts=[30, 10]).tolist()
    ([1.0, 0.625], [1.0, 0.5625])
    """
    matrix, tested = _matrix(matrix)
    weights = np.tril(np.ones_like(matrix)) * _weights(tested, counts)  # (T, T)
    total = np.where(weights > 0, weights * matrix, 0.0).sum(axis=1)
    n_seen = weights.sum(axis=1)
    return np.where(n_seen > 0, total, np.nan) / np.where(n_seen > 0, n_seen, 1.0)


def average_incremental_accuracy(matrix: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Mean over the phases of the accuracy on everything seen (see `seen_accuracy`).

    >>> average_incremental_accuracy([[1.0, float("nan")], [0.5, 0.75]])
    0.8125
    """
    return float(np.nanmean(seen_accuracy(matrix, counts)))


def last_accuracy(matrix: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Accuracy on everything, after the last phase.

    >>> last_accuracy([[1.0, float("nan")], [0.5, 0.75]], counts=[10, 30])
    0.6875
    """
    return float(seen_accuracy(matrix, counts)[-1])


def forgetting(matrix: ArrayLike, include_last: bool = False) -> float:
    """How far the old phases fell from their best: mean over j < T of max over i < T of A[i, j] - A[T, j].

    Frameworks differ in whether the maximum includes the last phase. By default it does not, and a phase
    that gained by the last one forgets a negative amount; with `include_last` it forgets nothing.

    >>> A = [[0.9, 0, 0], [0.5, 0.8, 0], [0.6, 0.9, 0.7]]
    >>> round(forgetting(A), 6), round(forgetting(A, include_last=True), 6)
    (0.1, 0.15)
    """
    matrix, old = _old_phases(matrix)
    rows = matrix if include_last else matrix[:-1]
    return float(np.mean(np.nanmax(rows[:, old], axis=0) - matrix[-1, old]))


def backward_transfer(matrix: ArrayLike) -> float:
    """How the old phases changed since they were learned: mean over j < T of A[T, j] - A[j, j].

    >>> round(backward_transfer([[0.9, 0, 0], [0.5, 0.8, 0], [0.6, 0.9, 0.7]]), 6)
    -0.1
    """
    matrix, old = _old_phases(matrix)
    return float(np.mean(matrix[-1, old] - matrix.diagonal()[old]))


def newest_accuracy(matrix: ArrayLike) -> float:
    """Accuracy on the phase just learned: mean of A[k, k] over the phases that have an older one beside them.

    >>> round(newest_accuracy([[0.9, 0, 0], [0.5, 0.8, 0], [0.6, 0.9, 0.7]]), 6)
    0.75
    """
    matrix, later = _later_phases(matrix)
    return float(np.mean(matrix.diagonal()[later]))


def older_accuracy(matrix: ArrayLike) -> float:
    """Accuracy on the older phases when another was just learned: mean over the same k of mean A[k, j < k].

    >>> round(older_accuracy([[0.9, 0, 0], [0.5, 0.8, 0], [0.6, 0.9, 0.7]]), 6)
    0.625
    """
    matrix, later = _later_phases(matrix)
    return float(np.mean([np.nanmean(matrix[k, :k]) for k in later]))


def _matrix(matrix: ArrayLike) -> tuple[Float, NDArray[np.bool_]]:
    """The matrix with NaN above the diagonal, and which phases have test frames."""
    matrix = np.array(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"the accuracy matrix must be (n_phases, n_phases), got shape {matrix.shape}")
    past = np.tril(np.ones(matrix.shape, dtype=np.bool_))
    if np.isinf(matrix[past]).any():
        raise ValueError("the accuracy matrix holds an infinite value; accuracies are finite or NaN")
    matrix[~past] = np.nan
    known = np.isfinite(matrix)
    tested = known.any(axis=0)
    if not tested.any():
        raise ValueError("the accuracy matrix holds no number on or below its diagonal")
    if (past & ~known)[:, tested].any():
        raise ValueError(
            "the accuracy matrix has holes on or below its diagonal; row i holds the accuracies after "
            "learning phase i, and a column is either complete or all NaN: is it transposed?"
        )
    return matrix, tested


def _old_phases(matrix: ArrayLike) -> tuple[Float, NDArray[np.intp]]:
    matrix, tested = _matrix(matrix)
    old = np.flatnonzero(tested[:-1])
    if not len(old):
        raise ValueError(
            f"nothing to forget: the accuracy matrix has {len(matrix)} phases, expected at least two, "
            "and test frames in one before the last"
        )
    return matrix, old


def _later_phases(matrix: ArrayLike) -> tuple[Float, NDArray[np.intp]]:
    """The phases with test frames that come after another with test frames."""
    matrix, old = _old_phases(matrix)
    tested = np.flatnonzero(np.isfinite(matrix[-1]))
    later = tested[tested > old[0]]
    if not len(later):
        raise ValueError("the accuracy matrix has one phase with test frames: none is newer")
    return matrix, later


def _weights(tested: NDArray[np.bool_], counts: ArrayLike | None) -> Float:
    if counts is None:
        return tested.astype(np.float64)
    weights = np.asarray(counts, dtype=np.float64)
    if weights.shape != tested.shape:
        raise ValueError(f"counts must be ({len(tested)},), one for each phase, got shape {weights.shape}")
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise ValueError(f"counts must be frames, zero or more and not all zero, got {weights.tolist()}")
    if (weights[~tested] > 0).any():
        raise ValueError("a phase has frames in counts but only NaN in the accuracy matrix")
    return weights
