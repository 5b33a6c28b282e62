"""LwF, learning without forgetting (Li and Hoiem 2016): the previous network teaches the new one.

On the frames of the new phase, columns of old directions regress to the previous network's outputs or to the
label, whichever is higher; all others (new ones, and those still to come) to the label. In the original, old
columns are the teacher's alone (`old_labels=False`): its pictures show one class, and that a new one. A frame
here may have a second source in an old direction, and the label of a new direction near a sector's edge
reaches into the old one: labels that are there are used. With sigmoid outputs and a squared loss there is no
temperature to choose. Published weights of the distillation are 0.5 (Mammoth), 1 (FACIL, Avalanche; the
default here) and 3 (PyCIL): choose on validation data, by the mean over phases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.method import Task
from tytoalba.learning.methods.finetune import FineTune, TrainingSet
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import GradientOptions, on_device, squared_loss

if TYPE_CHECKING:
    from torch import Tensor

    from tytoalba.learning.network import Mlp
    from tytoalba.learning.training import Loss


class LwF(FineTune):
    """Fine-tune, with the previous network's outputs as labels of old directions.

    distillation: weight of the old columns. old_labels: use the label there too, where it is higher.
    """

    def __init__(
        self,
        task: Task,
        *,
        distillation: float = 1.0,
        old_labels: bool = True,
        **options: Unpack[GradientOptions],
    ) -> None:
        super().__init__(task, **options)
        if distillation < 0:
            raise ValueError(f"distillation must be 0 or more, got {distillation}")
        self.distillation, self.old_labels = distillation, old_labels

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """New frames; old columns from the previous network."""
        X, Y = self.frames(phase.X, phase.azimuth)
        old = self.old_columns(phase)
        loss = distilled(X, Y, self.network_, old, self.distillation, old_labels=self.old_labels)
        return TrainingSet(loss, len(X))


def distilled(
    X: Tensor,
    Y: Tensor,
    teacher: Mlp | None,
    old: NDArray[np.bool_],
    weight: float = 1.0,
    *,
    old_labels: bool = False,
) -> Loss:
    """Squared loss whose old columns, weighted, are the teacher's outputs for X and not the label Y.

    old_labels: or the label, where it is higher.
    """
    if teacher is None or not old.any():
        return squared_loss(X, Y)
    columns = on_device(old, Y.device) > 0
    said = teacher.predict(X)
    target = Y.where(~columns, said.maximum(Y) if old_labels else said)
    return squared_loss(X, target, on_device(np.where(old, weight, 1.0), Y.device))
