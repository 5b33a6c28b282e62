"""LwF, learning without forgetting (Li and Hoiem 2016): the previous network teaches the new one.

On the frames of the new phase, columns of old directions regress to the previous network's outputs, all
others (new ones, and those still to come) to the label. With sigmoid outputs and a squared loss there is no
temperature to choose. Published weights of the distillation are 0.5 (Mammoth), 1 (FACIL, Avalanche; the
default here) and 3 (PyCIL): choose on validation data. The label of an old source in a two-source frame is
not used: as in the original, old columns are the teacher's.
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

    distillation: weight of the old columns.
    """

    def __init__(self, task: Task, *, distillation: float = 1.0, **options: Unpack[GradientOptions]) -> None:
        super().__init__(task, **options)
        if distillation < 0:
            raise ValueError(f"distillation must be 0 or more, got {distillation}")
        self.distillation = distillation

    def training_set(self, network: Mlp, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """New frames; old columns from the previous network."""
        X, Y = self.frames(phase.X, phase.azimuth)
        loss = distilled(X, Y, self.network_, self.old_columns(phase), self.distillation)
        return TrainingSet(loss, len(X))


def distilled(X: Tensor, Y: Tensor, teacher: Mlp | None, old: NDArray[np.bool_], weight: float = 1.0) -> Loss:
    """Squared loss whose old columns, weighted, are the teacher's outputs for X and not the label Y."""
    if teacher is None or not old.any():
        return squared_loss(X, Y)
    columns = on_device(old, Y.device) > 0
    target = Y.where(~columns, teacher.predict(X))
    return squared_loss(X, target, on_device(np.where(old, weight, 1.0), Y.device))
