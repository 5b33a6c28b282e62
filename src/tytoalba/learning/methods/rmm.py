"""Plain replay with a chosen split of the memory, after RMM (Liu et al. 2021, reinforced memory management).

RMM learns by reinforcement, on simulated streams, how to divide the memory between old and new phases. That
learned policy is NOT reproduced: the division is an option, `new_share`, to be chosen on validation rooms;
by default every direction gets the same. The learner beneath is plain replay: at each step as many exemplars
as new frames (`replay_batch`, by default the batch), all columns against their labels, decision by the output
layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Task
from tytoalba.learning.methods.finetune import TrainingSet
from tytoalba.learning.methods.replay import Rehearsal
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions, squared_loss

if TYPE_CHECKING:
    from tytoalba.learning.network import Mlp


class Rmm(Rehearsal):
    """Replay. new_share: of the budget, for the directions of the newest phase (None: all alike)."""

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
