"""Joint training, the upper bound: keeps every frame and starts anew on phases 0..k at every k."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.inputs import views_of
from tytoalba.learning.method import Memory, Task, checked_array, checked_features, checked_phase
from tytoalba.learning.methods.finetune import Gradient, TrainingSet
from tytoalba.learning.methods.replay import stack_azimuths
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import steering_matrices
from tytoalba.learning.training import GradientOptions, on_device, sides_of, squared_loss
from tytoalba.signal.angles import N_DIRECTIONS, Float

if TYPE_CHECKING:
    from torch import Tensor

    from tytoalba.learning.network import Network

Kind = Literal["mlp", "steered"]


class Joint(Gradient["Network"]):
    """Everything seen so far, from new initial weights at each phase.

    network: "mlp" is the paper's; "steered" the one behind a prior (`learning.prior.network`), which knows
    where the microphones are and takes GCC-PHAT as it is, unscaled; it has no dropout. blocks: its depth.

    views: from how many sides frames are looked at where the array is symmetric, as `Tyto` does: one drawn
    anew each time in training, all averaged when asked. 1 is the paper's.
    sigma: width of the Gaussian labels in degrees, instead of the task's.
    """

    keeps: ClassVar[Literal["nothing", "exemplars", "everything"]] = "everything"

    def __init__(
        self,
        task: Task,
        *,
        views: int = 1,
        network: Kind = "mlp",
        blocks: int = 4,
        sigma: float | None = None,
        **options: Unpack[GradientOptions],
    ) -> None:
        if sigma is not None and not 0 < sigma < np.inf:
            raise TytoError(f"sigma must be positive degrees, got {sigma}")
        super().__init__(task if sigma is None else replace(task, sigma=sigma), **options)
        if min(views, blocks) < 1:
            raise TytoError(f"views and blocks must be at least 1, got {views} and {blocks}")
        if network not in get_args(Kind):
            raise TytoError(f"network must be one of {', '.join(get_args(Kind))}, got {network!r}")
        self.steered, self.blocks = network == "steered", blocks
        if self.steered:
            _ = self._matrices  # says what is wrong with the task
            self.asked_at_a_time = 1024  # a frame of seven windows takes it about 1 MB
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

    def fresh(self) -> Network:
        """New initial weights."""
        if not self.steered:
            return self.mlp()
        from tytoalba.learning.prior.network import PriorNetwork

        size = {"width": self.width, "n_blocks": self.blocks}
        return PriorNetwork(self._matrices, **size, seed=self.phase_seed, device=self.task.device)

    def inputs(self, X: NDArray[np.float32]) -> Tensor:
        """Features on the device, scaled where the network wants it."""
        if not self.steered:
            return super().inputs(X)
        return on_device(checked_features(self.task, X), self.task.device)

    def training_set(self, network: Network, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """All frames, seen from every side."""
        X, Y = self.frames(phase.X, phase.azimuth)
        sides = sides_of(self.views, self.task.n_inputs, self.task.device)
        return TrainingSet(squared_loss(X, Y, sides=sides), len(X))

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

    @cached_property
    def _matrices(self) -> dict[str, NDArray[np.float64]]:
        """What each pair says of each azimuth, which the steered network starts with."""
        array, gcc = checked_array(self.task, "the steered network", "take network = 'mlp'")
        if self.task.n_directions != N_DIRECTIONS:
            raise TytoError(
                f"the steered network scores {N_DIRECTIONS} directions, the task has {self.task.n_directions}"
            )
        return steering_matrices(array, gcc)
