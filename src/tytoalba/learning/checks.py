"""What a method refuses before it changes anything: features and phases that do not fit the task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.method import Task
from tytoalba.learning.phases import Phase
from tytoalba.learning.sums import all_finite
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat

BLOCK = 8192
"""Frames taken at a time, so that expanded features never fill the memory."""


def blocks(n_frames: int) -> Iterator[slice]:
    """Slices of at most BLOCK frames."""
    return (slice(start, start + BLOCK) for start in range(0, n_frames, BLOCK))


def checked_features(task: Task, X: ArrayLike, *, finite: bool = True) -> NDArray[np.float32]:
    """X as (n_frames, n_inputs) float32, row after row in memory; refused where that cannot be.

    finite: False for those who look for NaN themselves (`refuse_holes`), where the frames go.
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != task.n_inputs:
        raise TytoError(
            f"features must be (n_frames, {task.n_inputs}), got shape {rows.shape}; "
            "flatten pairs and lags, and give the task the number of values of a frame"
        )
    if rows.dtype.kind not in "fiu":
        raise TytoError(f"features must be real numbers, got {rows.dtype}")
    if finite and rows.dtype.kind == "f":
        refuse_holes(rows)
    return np.ascontiguousarray(rows, np.float32)


def refuse_holes(rows: Any) -> None:
    """Refuse NaN and infinity: one look at large arrays or tensors, and nothing as large beside them.

    The sum is finite only if all values are; where it is not, they may still be so large that it overflowed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(rows.sum())
    if not np.isfinite(total) and not all_finite(rows):
        raise TytoError("features hold NaN or infinity; did a silent or damaged frame slip through?")


def checked_array(task: Task, who: str, instead: str) -> tuple[MicArray, GccPhat]:
    """What the features of a task are, for those that must know; `who` needs it, `instead` is the way out."""
    if task.array is None or task.gcc is None:
        raise TytoError(
            f"{who} needs to know the array and its GCC-PHAT: give the task `array` and `gcc`, or {instead} "
            "where the features come without them"
        )
    if task.gcc.n_features != task.n_inputs:
        raise TytoError(
            f"this GCC-PHAT has {task.gcc.n_features} values a frame, the task {task.n_inputs}; "
            "are there features of another kind beside it?"
        )
    return task.array, task.gcc


def checked_phase(
    task: Task, phase: Phase, *, finite: bool = True
) -> tuple[NDArray[np.float32], Float, NDArray[np.intp]]:
    """X, azimuth (n_frames, n_sources) in degrees and directions of a phase that fits the task."""
    X = checked_features(task, phase.X, finite=finite)
    azimuth = np.asarray(phase.azimuth, np.float64)
    if azimuth.ndim != 2 or len(azimuth) != len(X):
        raise TytoError(
            f"a phase of {len(X)} frames needs azimuths ({len(X)}, n_sources), got shape {azimuth.shape}"
        )
    if np.isinf(azimuth).any():
        raise TytoError("azimuths must be degrees or NaN (no source), got an infinite value")
    directions = np.asarray(phase.directions, np.intp)
    if directions.ndim != 1 or not ((directions >= 0) & (directions < task.n_directions)).all():
        raise TytoError(f"directions of a phase must be classes 0..{task.n_directions - 1}, got {directions}")
    return X, azimuth, directions
