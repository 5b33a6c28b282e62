"""Joint training, the upper bound: keeps every frame and starts anew on phases 0..k at every k."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from tytoalba.angles import Float
from tytoalba.errors import TytoError
from tytoalba.methods.checks import checked_features, checked_phase
from tytoalba.methods.exemplars import stack_azimuths
from tytoalba.methods.finetune import FineTune, Lesson
from tytoalba.methods.method import Memory, Task
from tytoalba.methods.views import views_of
from tytoalba.phases import Phase
from tytoalba.training import Options, sides_of, squared_loss

if TYPE_CHECKING:
    from tytoalba.backbone import Mlp


class Joint(FineTune):
    """Everything seen so far, from new initial weights at each phase.

    views: from how many sides frames are looked at where the array is symmetric, as `Tyto` does: one drawn
    anew each time in training, all averaged when asked. 1 is the paper's.
    """

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "everything"

    def __init__(self, task: Task, *, views: int = 1, **options: Unpack[Options]) -> None:
        super().__init__(task, **options)
        if views < 1:
            raise TytoError(f"views must be at least 1, got {views}")
        self.views = views_of(task)[:views]
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

    def lesson(self, network: Mlp, phase: Phase) -> Lesson:  # noqa: ARG002
        """All frames, seen from every side."""
        X, Y = self.frames(phase.X, phase.azimuth)
        sides = sides_of(self.views, self.task.n_inputs, self.task.device)
        return Lesson(squared_loss(X, Y, sides=sides), len(X))

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sigmoid outputs, averaged over the sides."""
        X = checked_features(self.task, X)
        found = [view.back(super(Joint, self).posterior(X[:, order])) for view, order in self.views]
        return np.asarray(np.mean(found, axis=0), np.float32) if len(found) > 1 else found[0]

    def memory(self) -> Memory:
        """All frames, beside the network."""
        return super().memory() | {"X": self.X_.copy(), "azimuth": self.azimuth_.copy()}

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.X_ = np.array(memory["X"], np.float32)
        self.azimuth_ = np.array(memory["azimuth"], np.float64)
