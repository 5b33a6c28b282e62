"""Joint training, the upper bound: keeps every frame and starts anew on phases 0..k at every k."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

import numpy as np

from tytoalba.angles import Float
from tytoalba.methods.checks import checked_phase
from tytoalba.methods.exemplars import stack_azimuths
from tytoalba.methods.finetune import FineTune
from tytoalba.methods.method import Memory, Task
from tytoalba.phases import Phase
from tytoalba.training import Options

if TYPE_CHECKING:
    from tytoalba.backbone import Mlp


class Joint(FineTune):
    """Everything seen so far, from new initial weights at each phase."""

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "everything"

    def __init__(self, task: Task, **options: Unpack[Options]) -> None:
        super().__init__(task, **options)
        self.X_ = np.empty((0, task.n_inputs), np.float32)
        self.azimuth_: Float = np.empty((0, 1))

    def learn(self, phase: Phase) -> None:
        """Keep the phase, and learn everything again."""
        X, azimuth, directions = checked_phase(self.task, phase)
        X = np.concatenate([self.X_, X])
        azimuth = stack_azimuths(self.azimuth_, azimuth)
        super().learn(Phase(X, azimuth, directions))
        self.X_, self.azimuth_ = X, azimuth

    def start(self) -> Mlp:
        """New initial weights."""
        return self.fresh()

    def memory(self) -> Memory:
        """All frames, beside the network."""
        return super().memory() | {"X": self.X_.copy(), "azimuth": self.azimuth_.copy()}

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.X_ = np.array(memory["X"], np.float32)
        self.azimuth_ = np.array(memory["azimuth"], np.float64)
