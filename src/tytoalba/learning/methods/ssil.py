"""SS-IL (Ahn et al. 2021): separated softmax, distillation task by task, replay beside each batch.

As published, a frame of the phase has cross-entropy within the new directions, an exemplar within all old
ones. Distillation: softmax at temperature 2 within the columns of each earlier phase, Kullback-Leibler
divergence to the previous network's, times 4, summed over phases, on new and replayed frames alike. A step
has a quarter as many exemplars as new frames (128 + 32 in the official program), and an epoch is one pass
over the new frames (there it ends with the shorter of two lists). Exemplars are herded as for the other rows.
The posterior is the softmax over all directions learned so far, 0 for the others.

Two things depart from the publication; `SsIl(labels="one-hot", comparison=0)` is the published form.

- Labels are Gaussians of one or two sources, not one class. "whole": each group learns its part of the
  label, by -sum y log p with p the softmax within the column's own group, so that what spills over the edge
  of a sector and the old source of a new two-source frame count. "cut" keeps the part in the frame's own
  group alone, "one-hot" its direction alone.
- Nothing published compares a new logit with an old one: a softmax leaves the height of its group free. A
  picture of a new class hardly excites the weights of old ones. A frame from a new direction does: the old
  group, trained for longer, answers it with higher peaks, and new frames, which are found well within their
  group, are answered in old directions. So the two groups are compared: cross-entropy between their sums
  (log-sum-exp of logits), the target the label's share in each, weighted so that all directions count alike,
  which keeps the balance that separating is for. One number found on exemplars and added to the new columns
  (`aligned`, as bias correction does) is not enough: `tyto bench ss-il-terms` tests each term.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.finetune import TrainingSet
from tytoalba.learning.methods.replay import Rehearsal, direction_of
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions, on_device

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tytoalba.learning.network import Mlp, Network

Labels = Literal["whole", "cut", "one-hot"]
Term = Callable[["Tensor", "Tensor"], "Tensor"]
"""Of a loss: from the logits of a batch and its rows."""
FURTHEST = 100.0
"""That columns are shifted: beyond it nothing changes any more."""


class SsIl(Rehearsal):
    """Separated softmax. temperature: of the distillation; replay_batch: exemplars a step (batch // 4).

    labels: "whole", "cut" at the edge of the frame's group, or "one-hot". comparison: weight of new against
    old. distillation: weight of it. zero_start: weights of new columns start at 0 instead of as drawn.
    aligned: shift the newest columns so that exemplars are divided rightly between old and new.
    """

    def __init__(
        self,
        task: Task,
        *,
        budget: int = 3600,
        temperature: float = 2.0,
        distillation: float = 1.0,
        comparison: float = 1.0,
        labels: Labels = "whole",
        zero_start: bool = False,
        aligned: bool = False,
        replay_batch: int | None = None,
        **options: Unpack[GradientOptions],
    ) -> None:
        super().__init__(task, budget=budget, **options)
        if temperature <= 0 or min(distillation, comparison) < 0:
            raise ValueError(
                "temperature must be positive, distillation and comparison 0 or more, "
                f"got {temperature}, {distillation}, {comparison}"
            )
        if labels not in get_args(Labels):
            raise ValueError(f"labels must be one of {', '.join(get_args(Labels))}, got {labels!r}")
        self.temperature, self.distillation, self.comparison = temperature, distillation, comparison
        self.labels, self.zero_start, self.aligned = labels, zero_start, aligned
        self.replay_batch = max(1, self.recipe.batch // 4) if replay_batch is None else replay_batch
        self.phase_of_column_ = np.full(task.n_directions, -1, np.intp)
        self.shift_ = np.zeros(task.n_directions, np.float32)  # added to the logits

    def start(self) -> Mlp:
        """The previous network, columns not yet learned at zero if so wished."""
        network = super().start()
        if self.zero_start:
            for weights in (network.output.weight, network.output.bias):
                weights.data[np.flatnonzero(~self.seen_)] = 0.0
        return network

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """Cross-entropy within groups and between them, distillation within each earlier phase's columns."""
        X, Y = self.frames(*self.with_exemplars(phase))
        group = self._group(phase)
        target = self._targets(Y, phase, group)
        terms = [_separated(target, group)]
        if self.distillation and self.network_ is not None and self.seen_.any():
            terms.append(self._distilled(self.network_.predict(X, "logits")))
        if (
            self.comparison
            and self.replay_batch
            and len(self.exemplars_)
            and len(phase)
            and (group == 1).any()
        ):
            terms.append(self._compared(target, group, len(phase)))

        def loss(network: Network, rows: Tensor) -> Tensor:
            logits = network(X[rows])
            first, *others = (term(logits, rows) for term in terms)
            return sum(others, first)

        return TrainingSet(loss, len(phase), len(self.exemplars_), self.replay_batch)

    def _group(self, phase: Phase) -> NDArray[np.intp]:
        """Of each column: 0 old, 1 new, -1 to come."""
        group = np.where(self.seen_, 0, -1)
        group[phase.directions] = np.where(self.seen_[phase.directions], 0, 1)
        return group

    def _targets(self, Y: Tensor, phase: Phase, group: NDArray[np.intp]) -> Tensor:
        """Labels that sum to one (or 0: nothing to learn), of the phase's frames, then of the exemplars."""
        own = direction_of(phase.azimuth, phase.directions, self.task.n_directions)
        if self.labels == "one-hot":
            own = np.concatenate([own, self.exemplars_.direction])
            mass = on_device(own[:, None] == np.arange(self.task.n_directions), Y.device)
        elif self.labels == "cut":
            mine = np.concatenate([np.where(own >= 0, group[own], 1), np.zeros(len(self.exemplars_))])
            mass = Y * on_device((mine[:, None] == group) & (group >= 0), Y.device)
        else:
            mass = Y * on_device(group >= 0, Y.device)
        return mass / mass.sum(dim=1, keepdim=True).clamp_min(1e-12)

    def _distilled(self, before: Tensor) -> Term:
        """Divergence from the previous network's logits within each earlier phase's columns."""
        T = self.temperature
        in_phase = log_softmax_within(self.phase_of_column_, before.device)
        known = on_device(self.phase_of_column_ >= 0, before.device)
        teacher = in_phase(before / T)

        def term(logits: Tensor, rows: Tensor) -> Tensor:
            before = teacher[rows]
            apart = before.exp() * (before - in_phase(logits / T)) * known
            return self.distillation * T**2 * apart.sum() / len(rows)

        return term

    def _compared(self, target: Tensor, group: NDArray[np.intp], n_frames: int) -> Term:
        """Cross-entropy between old and new: the softmax of their sums; all directions count alike.

        target: of `n_frames` frames of the phase, then of the exemplars.
        """
        from torch.nn.functional import binary_cross_entropy_with_logits

        new, old = (on_device(group == number, target.device) > 0 for number in (1, 0))
        share = target[:, new].sum(dim=1)
        # of a step, the frames of the phase stand for the new directions and the exemplars for the old ones
        n_new, n_old = n_frames / -(-n_frames // self.recipe.batch), self.replay_batch
        for_new = (group == 1).sum() / (group >= 0).sum()
        ours = np.arange(len(target)) < n_frames
        each = (n_new + n_old) * np.where(ours, for_new / n_new, (1 - for_new) / n_old)
        weight = self.comparison * on_device(each, target.device) * target.sum(dim=1)

        def term(logits: Tensor, rows: Tensor) -> Tensor:
            above = _sum_within(logits, new) - _sum_within(logits, old)
            apart = binary_cross_entropy_with_logits(above, share[rows], reduction="none")
            return (weight[rows] * apart).mean()

        return term

    def keep(self, network: Mlp, phase: Phase) -> None:
        """Exemplars, which directions came with this phase, and how far they are shifted."""
        super().keep(network, phase)
        group = self._group(phase)
        self.phase_of_column_[group == 1] = self.n_phases_
        self.shift_ = np.zeros(self.task.n_directions, np.float32)
        if self.aligned and (group == 0).any() and (group == 1).any():
            self.shift_[group == 1] = self._shift(network, group)

    def _shift(self, network: Mlp, group: NDArray[np.intp]) -> float:
        """What the new columns lack, so that all exemplars' scores have as much there as their labels."""
        import torch

        X, Y = self.frames(self.exemplars_.X, self.exemplars_.azimuth)
        new, old = (on_device(group == number, Y.device) > 0 for number in (1, 0))
        wanted = (Y[:, new].sum(dim=1) / Y[:, new | old].sum(dim=1).clamp_min(1e-12)).sum()
        logits = network.predict(X, "logits")
        above = _sum_within(logits, new) - _sum_within(logits, old)
        low, high = -FURTHEST, FURTHEST
        for _ in range(30):  # what they have grows with the shift: halve
            middle = (low + high) / 2
            short = bool(torch.sigmoid(above + middle).sum() < wanted)
            low, high = (middle, high) if short else (low, middle)
        return low

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Softmax over the directions learned so far."""
        logits = np.where(self.seen_, self.layer(X, "logits") + self.shift_, -np.inf)
        height = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(height / height.sum(axis=1, keepdims=True), np.float32)

    def memory(self) -> Memory:
        """The phase of each direction and the shift of its column, beside exemplars and network."""
        return super().memory() | {
            "phase_of_column": self.phase_of_column_.copy(),
            "shift": self.shift_.copy(),
        }

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.phase_of_column_ = np.array(memory["phase_of_column"], np.intp)
        self.shift_ = np.array(memory["shift"], np.float32)


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


def _separated(target: Tensor, group: NDArray[np.intp]) -> Term:
    """Cross-entropy within each group of columns; target (n_frames, n_columns)."""
    in_group = log_softmax_within(group, target.device)

    def term(logits: Tensor, rows: Tensor) -> Tensor:
        return -(target[rows] * in_group(logits)).sum() / len(rows)

    return term


def _sum_within(logits: Tensor, columns: Tensor) -> Tensor:
    """Of exponentials over some columns, as a logarithm: (n_frames,)."""
    return logits.masked_fill(~columns, -float("inf")).logsumexp(dim=1)
