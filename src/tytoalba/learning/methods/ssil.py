"""SS-IL (Ahn et al. 2021): separated softmax, distillation task by task, replay beside each batch.

The original has one label a frame; ours are Gaussians of one or two sources, so the target of the
cross-entropy is the label over the frame's own group of columns, made to sum to one: the new directions for
a frame of the phase, all old ones for an exemplar (or for a frame of the phase whose direction is not new).
What a label spills into the other group, and the old source of a new two-source frame, are not learned: that
is what separating means. Distillation: softmax at temperature 2 within the columns of each earlier phase,
Kullback-Leibler divergence to the previous network's, times 4, summed over phases, on new and replayed
frames alike. A step has a quarter as many exemplars as new frames (128 + 32 in the official program), and an
epoch is one pass over the new frames (there it ends with the shorter of two lists). Exemplars are herded as
for the other rows. The posterior is the softmax over all directions learned so far, 0 for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.finetune import TrainingSet
from tytoalba.learning.methods.replay import Rehearsal, direction_of
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tytoalba.learning.network import Mlp, Network


class SsIl(Rehearsal):
    """Separated softmax. temperature: of the distillation; replay_batch: exemplars a step (batch // 4)."""

    def __init__(
        self,
        task: Task,
        *,
        budget: int = 3600,
        temperature: float = 2.0,
        distillation: float = 1.0,
        replay_batch: int | None = None,
        **options: Unpack[GradientOptions],
    ) -> None:
        super().__init__(task, budget=budget, **options)
        if temperature <= 0 or distillation < 0:
            raise ValueError(
                f"temperature must be positive and distillation 0 or more, got {temperature}, {distillation}"
            )
        self.temperature = temperature
        self.distillation = distillation
        self.replay_batch = max(1, self.recipe.batch // 4) if replay_batch is None else replay_batch
        self.phase_of_column_ = np.full(task.n_directions, -1, np.intp)

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """Cross-entropy within new or old columns, distillation within each earlier phase's."""
        import torch

        X, Y = self.frames(*self.with_exemplars(phase))
        group, target = self._targets(Y, phase)
        in_group = log_softmax_within(group, X.device)
        in_phase = log_softmax_within(self.phase_of_column_, X.device)
        known = torch.tensor(self.phase_of_column_ >= 0, device=X.device)
        T = self.temperature
        teacher = None
        if self.network_ is not None and self.seen_.any():
            teacher = in_phase(self.network_.predict(X, "logits") / T)

        def loss(network: Network, rows: Tensor) -> Tensor:
            logits = network(X[rows])
            value = -(target[rows] * in_group(logits)).sum() / len(rows)
            if teacher is not None:
                before = teacher[rows]
                apart = before.exp() * (before - in_phase(logits / T)) * known
                value = value + self.distillation * T**2 * apart.sum() / len(rows)
            return value

        return TrainingSet(loss, len(phase), len(self.exemplars_), self.replay_batch)

    def _targets(self, Y: Tensor, phase: Phase) -> tuple[NDArray[np.intp], Tensor]:
        """Group of each column (0 old, 1 new, -1 to come); labels that sum to one within a frame's group."""
        import torch

        group = np.where(self.seen_, 0, -1)
        group[phase.directions] = np.where(self.seen_[phase.directions], 0, 1)
        own = direction_of(phase.azimuth, phase.directions, self.task.n_directions)
        frame_group = np.concatenate([np.where(own >= 0, group[own], 1), np.zeros(len(self.exemplars_))])
        columns = torch.tensor(group, device=Y.device)
        mine = columns == torch.tensor(frame_group, device=Y.device)[:, None]  # (F, C)
        mass = Y * mine
        return group, mass / mass.sum(dim=1, keepdim=True).clamp_min(1e-12)

    def keep(self, network: Mlp, phase: Phase) -> None:
        """Exemplars, and which directions came with this phase."""
        super().keep(network, phase)
        new = phase.directions[~self.seen_[phase.directions]]
        self.phase_of_column_[new] = self.n_phases_

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Softmax over the directions learned so far."""
        logits = np.where(self.seen_, self.layer(X, "logits"), -np.inf)
        height = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(height / height.sum(axis=1, keepdims=True), np.float32)

    def memory(self) -> Memory:
        """The phase of each direction, beside exemplars and network."""
        return super().memory() | {"phase_of_column": self.phase_of_column_.copy()}

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.phase_of_column_ = np.array(memory["phase_of_column"], np.intp)


def log_softmax_within(group: NDArray[np.intp], device: torch.device) -> Callable[[Tensor], Tensor]:
    """From logits (n_frames, n_columns) to the logarithm of the softmax within each group of columns.

    group: (n_columns,) number of each column's group; columns of -1 are a group that means nothing.
    """
    import torch

    numbers, index = np.unique(group, return_inverse=True)
    member = torch.tensor(index == np.arange(len(numbers))[:, None], device=device)  # (G, C)
    spread = member.float()

    def log_softmax(logits: Tensor) -> Tensor:
        sums = logits[:, None].masked_fill(~member, -torch.inf).logsumexp(dim=2)  # (F, G)
        return logits - sums @ spread  # each column its group's sum

    return log_softmax
