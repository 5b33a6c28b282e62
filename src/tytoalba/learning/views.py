"""From how many sides a method may look at a frame, where the array is symmetric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Task
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.symmetry import Symmetry, symmetries


def views_of(task: Task) -> list[tuple[Symmetry, Any]]:
    """The symmetries of the array, and the order that features come to by each; the plain view first.

    The mirror image of a line's world is no other view: its features are the same.
    """
    plain = Symmetry((), False, 0), slice(None)
    if task.array is None or task.gcc is None or task.gcc.n_features != task.n_inputs:
        return [plain]
    found = symmetries(task.array) if task.n_directions == N_DIRECTIONS else ()
    others = (s for s in found[1:] if s.partner != found[0].partner)
    return [plain, *((s, s.order(task.gcc)) for s in others)]


def own_side(X: NDArray[np.float32], n_sides: int) -> NDArray[np.intp]:
    """One of so many sides for each frame (n_frames, n_inputs), drawn by what it holds: always the same."""
    bits = np.ascontiguousarray(X[:, :8], np.float32).view(np.uint32).sum(axis=1, dtype=np.uint64)
    spread = bits * np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: near bits become far ones
    return np.asarray((spread >> np.uint64(40)) % np.uint64(n_sides), np.intp)
