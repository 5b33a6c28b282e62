"""Learning one group of directions after another: who comes when.

A phase is a group of direction classes and the training frames that belong to it. A frame of several
sources belongs to the phase that comes last among its sources', so that its other sources are already known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.angles import N_DIRECTIONS, Float, to_class

Order = Literal["contiguous", "shuffled", "interleaved"]
ORDERS: tuple[Order, ...] = ("contiguous", "shuffled", "interleaved")


@dataclass(frozen=True)
class Phase:
    """What a method sees at once: GCC-PHAT features X (n_frames, n_inputs), azimuth (n_frames, n_sources).

    directions: the classes that are new in this phase (or visited again). Azimuth in degrees, NaN padded.
    """

    X: NDArray[np.float32]
    azimuth: Float
    directions: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.X)


def groups(
    n_phases: int, order: Order = "contiguous", seed: int = 0, n_directions: int = N_DIRECTIONS
) -> list[NDArray[np.intp]]:
    """Direction classes of each phase: every class in exactly one.

    contiguous: sectors; shuffled: sectors of a random order of directions; interleaved: phase k has the
    directions k, k + n_phases, k + 2 n_phases...

    >>> [int(g[0]) for g in groups(10)]
    [0, 36, 72, 108, 144, 180, 216, 252, 288, 324]
    """
    if not 1 <= n_phases <= n_directions:
        raise ValueError(f"n_phases must be between 1 and {n_directions}, got {n_phases}")
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    classes = np.arange(n_directions)
    if order == "interleaved":
        return [classes[k::n_phases] for k in range(n_phases)]
    if order == "shuffled":
        classes = np.random.default_rng(seed).permutation(n_directions)
    return [np.sort(part) for part in np.array_split(classes, n_phases)]


def phase_of(azimuth: Float, directions: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """Phase of each frame: the latest of its sources'; -1 for a frame without source.

    azimuth: degrees, (n_frames, n_sources), NaN padded. directions: the classes of each phase.
    """
    phase_of_class = np.full(N_DIRECTIONS, -1, np.intp)
    for k, classes in enumerate(directions):
        phase_of_class[classes] = k
    present = np.isfinite(azimuth)
    classes = to_class(np.where(present, azimuth, 0.0))
    latest: NDArray[np.intp] = np.where(present, phase_of_class[classes], -1).max(axis=1)
    return latest


def split(X: NDArray[np.float32], azimuth: Float, directions: Sequence[NDArray[np.intp]]) -> list[Phase]:
    """Training frames as phases, each frame in exactly one."""
    belongs = phase_of(azimuth, directions)
    return [Phase(X[belongs == k], azimuth[belongs == k], classes) for k, classes in enumerate(directions)]


def generalised(
    X: NDArray[np.float32],
    azimuth: Float,
    directions: Sequence[NDArray[np.intp]],
    rng: np.random.Generator,
    *,
    overlap: float = 0.0,
    imbalance: float = 1.0,
) -> list[Phase]:
    """A stream that is less tidy: sectors overlap and come back, and some phases are much smaller.

    overlap: share of each phase's frames that come from earlier or later phases (repeated visits).
    imbalance: largest phase over smallest (long-tailed: geometric between them), in random order.
    """
    if not 0 <= overlap < 1 or imbalance < 1:
        raise ValueError(f"overlap must be in [0, 1) and imbalance at least 1, got {overlap}, {imbalance}")
    belongs = phase_of(azimuth, directions)
    n = len(directions)
    kept = imbalance ** -(rng.permutation(n) / max(1, n - 1))
    away = rng.integers(1, n, size=len(X)) if n > 1 else 0  # how many phases on, around the end
    home = np.where(rng.random(len(X)) < overlap, (belongs + away) % n, belongs)
    used = (belongs >= 0) & (rng.random(len(X)) < kept[home])
    phases = []
    for k in range(n):
        rows = used & (home == k)
        visited = azimuth[rows][np.isfinite(azimuth[rows])]
        phases.append(Phase(X[rows], azimuth[rows], np.union1d(to_class(visited), directions[k])))
    return phases
