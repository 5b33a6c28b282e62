"""Replay: frames kept as examples of their directions and learned again beside the new ones.

`Replay` is the plain method; `Rehearsal` is what it shares with iCaRL and SS-IL: which frames, and how many.

Every direction gets the same share of the budget, rounded down: 3600 // directions seen. Frames are chosen
by herding (iCaRL): on features of length 1, pick greedily the frame that brings the mean of those picked
closest to the mean of all. The order is kept, so that shrinking is cutting off the end. A frame of several
sources counts for the last direction of its phase. A direction that comes back is herded anew from its
exemplars and the new frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.finetune import FineTune, TrainingSet
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions, squared_loss
from tytoalba.signal.angles import Float, to_class

if TYPE_CHECKING:
    from tytoalba.learning.network import Mlp

Features = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class Exemplars:
    """Raw features X (n, n_inputs), azimuth (n, n_sources), direction (n,); sorted by it, the best first."""

    X: NDArray[np.float32]
    azimuth: Float
    direction: NDArray[np.intp]

    @classmethod
    def none(cls, n_inputs: int) -> Exemplars:
        """An empty memory."""
        return cls(np.empty((0, n_inputs), np.float32), np.empty((0, 1)), np.empty(0, np.intp))

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: NDArray[np.intp]) -> Exemplars:
        """Some of them, copied."""
        return Exemplars(self.X[rows], self.azimuth[rows], self.direction[rows])

    def updated(self, new: Exemplars, features: Features, quota: NDArray[np.intp]) -> Exemplars:
        """Shrink the old, choose among the new frames (in any order); features: of raw X, (n, h)."""
        both = Exemplars(
            np.concatenate([self.X, new.X]),
            stack_azimuths(self.azimuth, new.azimuth),
            np.concatenate([self.direction, new.direction]),
        )
        Z_new = normalised(features(new.X))
        chosen = []
        for c in np.unique(both.direction[both.direction >= 0]):
            rows = np.flatnonzero(both.direction == c)
            known = rows[rows < len(self)]
            if len(known) < len(rows):
                Z = Z_new[rows[len(known) :] - len(self)]
                if len(known):
                    Z = np.concatenate([normalised(features(self.X[known])), Z])
                rows = rows[herd(Z, int(quota[c]))]
            chosen.append(rows[: quota[c]])
        return both.take(np.concatenate(chosen) if chosen else np.empty(0, np.intp))


def herd(Z: Float, n: int) -> NDArray[np.intp]:
    """The first n rows (or all) of Z (n_frames, h), in the order in which they keep the mean best.

    >>> herd(np.array([[0.0], [1.0], [0.4]]), 2).tolist()
    [2, 1]
    """
    Z = np.asarray(Z, np.float64)
    length = np.sum(Z**2, axis=1)
    mean = Z.mean(axis=0) if len(Z) else 0.0
    picked = np.zeros(Z.shape[1])
    order = np.empty(min(n, len(Z)), np.intp)
    for k in range(len(order)):
        # |(picked + z) / (k + 1) - mean|^2, but for terms that are the same for every z
        worse = length + 2 * (Z @ (picked - (k + 1) * mean))
        worse[order[:k]] = np.inf
        order[k] = np.argmin(worse)
        picked += Z[order[k]]
    return order


def normalised(Z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows at length 1; a row of zeros stays."""
    length = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.asarray(Z / np.where(length > 0, length, 1.0), np.float32)


def direction_of(azimuth: Float, phase_directions: NDArray[np.intp], n_directions: int) -> NDArray[np.intp]:
    """The direction that each frame counts for, (n_frames,): its largest class among the phase's.

    The largest of all if none is of the phase; -1 for a frame without source.
    """
    present = np.isfinite(azimuth)
    classes = np.where(present, to_class(np.where(present, azimuth, 0.0), n_directions), -1)
    own = np.where(np.isin(classes, phase_directions), classes, -1).max(axis=1, initial=-1)
    direction: NDArray[np.intp] = np.where(own >= 0, own, classes.max(axis=1, initial=-1))
    return direction


def equal_quota(budget: int, seen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Frames for each direction, (n_directions,): the same for all that were seen."""
    return np.where(seen, budget // max(1, int(seen.sum())), 0).astype(np.intp)


def stack_azimuths(first: Float, second: Float) -> Float:
    """One after the other, padded with NaN to the same number of sources."""
    width = max(first.shape[1], second.shape[1])
    padded = [np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=np.nan) for a in (first, second)]
    return np.concatenate(padded)


class Rehearsal(FineTune):
    """What methods with exemplars share: keeping them. budget: frames in all."""

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "exemplars"
    forgets: ClassVar[bool] = False

    def __init__(self, task: Task, *, budget: int = 3600, **options: Unpack[GradientOptions]) -> None:
        super().__init__(task, **options)
        if budget < 0:
            raise ValueError(f"budget must be 0 or more frames, got {budget}")
        self.budget = budget
        self.exemplars_ = Exemplars.none(task.n_inputs)

    def quota(self, phase: Phase) -> NDArray[np.intp]:
        """How many frames each direction may keep after this phase."""
        seen = self.seen_.copy()
        seen[phase.directions] = True
        return equal_quota(self.budget, seen)

    def keep(self, network: Mlp, phase: Phase) -> None:
        """Make room, and choose among the new frames."""
        own = direction_of(phase.azimuth, phase.directions, self.task.n_directions)
        new = Exemplars(phase.X, phase.azimuth, own)
        self.exemplars_ = self.exemplars_.updated(
            new, lambda X: self.layer(X, "features", network), self.quota(phase)
        )

    def with_exemplars(self, phase: Phase) -> tuple[NDArray[np.float32], Float]:
        """Raw features and azimuths: first the phase's frames, then the exemplars."""
        X = np.concatenate([phase.X, self.exemplars_.X])
        return X, stack_azimuths(phase.azimuth, self.exemplars_.azimuth)

    def memory(self) -> Memory:
        """The exemplars, beside the network."""
        kept = self.exemplars_
        return super().memory() | {
            "exemplars.X": kept.X.copy(),
            "exemplars.azimuth": kept.azimuth.copy(),
            "exemplars.direction": kept.direction.copy(),
        }

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.exemplars_ = Exemplars(
            np.array(memory["exemplars.X"], np.float32),
            np.array(memory["exemplars.azimuth"], np.float64),
            np.array(memory["exemplars.direction"], np.intp),
        )


class Replay(Rehearsal):
    """Plain replay: at each step as many exemplars as new frames, all columns against their labels.

    new_share: of the budget, for the directions of the newest phase; by default (None) all directions get the
    same. RMM (Liu et al. 2021, reinforced memory management) learns by reinforcement, on simulated streams,
    how to divide its memory so; that policy is not reproduced, and this row is not called RMM: choose the
    share on validation rooms. replay_batch: exemplars a step (the batch).
    """

    def __init__(
        self,
        task: Task,
        *,
        budget: int = 3600,
        new_share: float | None = None,
        replay_batch: int | None = None,
        **options: Unpack[GradientOptions],
    ) -> None:
        super().__init__(task, budget=budget, **options)
        if new_share is not None and not 0 <= new_share <= 1:
            raise ValueError(f"new_share must be in [0, 1] or None, got {new_share}")
        self.new_share = new_share
        self.replay_batch = self.recipe.batch if replay_batch is None else replay_batch

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """New frames, exemplars beside them, labels for all."""
        X, Y = self.frames(*self.with_exemplars(phase))
        return TrainingSet(squared_loss(X, Y), len(phase), len(self.exemplars_), self.replay_batch)

    def quota(self, phase: Phase) -> NDArray[np.intp]:
        """The newest phase's share, and the rest for all directions before it."""
        old = self.old_columns(phase)
        if self.new_share is None or not old.any():
            return super().quota(phase)
        n_new = int(self.new_share * self.budget)
        quota = np.where(old, (self.budget - n_new) // int(old.sum()), 0).astype(np.intp)
        quota[phase.directions] = n_new // len(phase.directions)
        return quota
