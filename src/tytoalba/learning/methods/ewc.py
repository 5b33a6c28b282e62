"""EWC, elastic weight consolidation (Kirkpatrick et al. 2017): weights that mattered stay where they were.

Importance is the diagonal of J'J (J: outputs by weights), the Fisher information of a squared loss, averaged
over the frames of a phase. It is estimated without a pass per output: the gradient of sum_i e_i . f(x_i) with
independent normal e_i has exactly that expectation when squared, for a whole batch at once. (The squared
gradient of the loss itself, often used, vanishes where the fit is good.) Online form: the importances of all
phases are added and the anchor is the last solution, so memory does not grow with the phases. With strength
1 the penalty is the second-order rise of the old phases' loss, as far as a diagonal can say, which is too
little; the default is 10, published values run from 1 to 5000: choose on validation data. Batch statistics
follow the new data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np

from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.finetune import FineTune, TrainingSet, part
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions, on_device

if TYPE_CHECKING:
    from torch import Tensor

    from tytoalba.learning.network import Mlp, Network

BATCH = 64  # frames a draw of the estimate: smaller is less noisy and slower


class Ewc(FineTune):
    """Fine-tune with a quadratic penalty. strength: of the penalty."""

    def __init__(self, task: Task, *, strength: float = 10.0, **options: Unpack[GradientOptions]) -> None:
        super().__init__(task, **options)
        if strength < 0:
            raise ValueError(f"strength must be 0 or more, got {strength}")
        self.strength = strength
        self.importance_: Memory = {}

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:
        """Fine-tune's, and the penalty."""
        plain = super().training_set(network, phase)
        if self.network_ is None or not self.importance_:
            return plain
        from torch.nn.utils import parameters_to_vector as flat

        names = [name for name, _ in network.named_parameters()]
        importance = on_device(np.concatenate([self.importance_[n].ravel() for n in names]), self.task.device)
        anchor = flat(self.network_.parameters()).detach()

        def loss(network: Network, rows: Tensor) -> Tensor:
            moved = (importance * (flat(network.parameters()) - anchor).square()).sum()
            return plain.loss(network, rows) + self.strength / self.task.n_directions * moved

        return TrainingSet(loss, plain.n_frames)

    def keep(self, network: Mlp, phase: Phase) -> None:
        """Add the importances of this phase."""
        if not len(phase):
            return
        new = self.estimate(network, self.inputs(phase.X))
        self.importance_ = {name: value + self.importance_.get(name, 0.0) for name, value in new.items()}

    def estimate(self, network: Mlp, X: Tensor) -> Memory:
        """Mean over frames of the diagonal of J'J, by the name of the weights."""
        import torch

        names, weights = zip(*network.named_parameters(), strict=True)
        total = [torch.zeros_like(weight) for weight in weights]
        for x in torch.split(X, BATCH):
            outputs = network.scores(x)  # after training: running statistics, no dropout
            e = torch.empty_like(outputs).normal_(generator=network.generator)
            for sum_, gradient in zip(total, torch.autograd.grad(outputs, weights, e), strict=True):
                sum_ += gradient.square()
        return {name: (sum_ / len(X)).cpu().numpy() for name, sum_ in zip(names, total, strict=True)}

    def memory(self) -> Memory:
        """The importances, beside the network, which is the anchor."""
        kept = {f"importance.{name}": np.array(value) for name, value in self.importance_.items()}
        return super().memory() | kept

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.importance_ = {name: np.array(value) for name, value in part(memory, "importance.").items()}
