"""LfL, less-forgetting learning (Jung et al. 2016): the features of the new frames stay where they were.

The loss is fine-tune's plus a weight times the mean squared distance between the last hidden layers of the
new network and the previous one. The original freezes the whole classifier, since its classes stay the same;
here new directions need their columns, so only the columns of old directions are frozen. Its weight, 1.6e-3
of half the sum over units, is about 1 of our mean over 1000 units beside a cross-entropy; a squared loss over
360 mostly empty columns is about a hundred times smaller, so the default is 0.01: choose on validation data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np

from tytoalba.learning.method import Task
from tytoalba.learning.methods.finetune import FineTune, TrainingSet
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions

if TYPE_CHECKING:
    from torch import Tensor

    from tytoalba.learning.network import Mlp, Network


class LfL(FineTune):
    """Fine-tune that holds features and old columns. strength: weight of the features' distance."""

    def __init__(self, task: Task, *, strength: float = 0.01, **options: Unpack[GradientOptions]) -> None:
        super().__init__(task, **options)
        if strength < 0:
            raise ValueError(f"strength must be 0 or more, got {strength}")
        self.strength = strength

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:
        """Fine-tune's loss with old columns held, plus the distance of features."""
        import torch

        from tytoalba.learning.network import Mlp

        if self.network_ is None:
            return super().training_set(network, phase)
        X, Y = self.frames(phase.X, phase.azimuth)
        Z_old = self.network_.predict(X, "features")
        old = torch.tensor(self.old_columns(phase), device=X.device)
        W_old, b_old = self.network_.output.weight.detach(), self.network_.output.bias.detach()

        def loss(network: Network, rows: Tensor) -> Tensor:
            assert isinstance(network, Mlp)
            Z = network.features(X[rows])
            W = torch.where(old[:, None], W_old, network.output.weight)
            b = torch.where(old, b_old, network.output.bias)
            scores = torch.sigmoid(torch.nn.functional.linear(Z, W, b))
            moved = (Z - Z_old[rows]).square().mean()
            return (scores - Y[rows]).square().mean() + self.strength * moved

        return TrainingSet(loss, len(X))

    def keep(self, network: Mlp, phase: Phase) -> None:
        """Put the held columns back: weight decay has pulled at them."""
        if self.network_ is not None:
            rows = np.flatnonzero(self.old_columns(phase))
            network.output.weight.data[rows] = self.network_.output.weight.data[rows]
            network.output.bias.data[rows] = self.network_.output.bias.data[rows]
