"""From how many sides a method may look at a frame, where the array is symmetric."""

from __future__ import annotations

from typing import Any

from tytoalba.angles import N_DIRECTIONS
from tytoalba.methods.method import Task
from tytoalba.symmetry import Symmetry, symmetries


def views_of(task: Task) -> list[tuple[Symmetry, Any]]:
    """The symmetries of the array, and the order that features come to by each; the plain view first."""
    plain = Symmetry((), False, 0), slice(None)
    if task.array is None or task.gcc is None or task.gcc.n_features != task.n_inputs:
        return [plain]
    found = symmetries(task.array) if task.n_directions == N_DIRECTIONS else ()
    return [plain, *((s, s.order(task.gcc)) for s in found[1:])]
