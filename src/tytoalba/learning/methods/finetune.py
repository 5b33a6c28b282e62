"""Fine-tune, the lower bound: goes on with the weights it has, on the new phase alone, and forgets.

`Gradient` is the frame that all gradient methods stand in. A method changes one of four things: the network
it starts from (`start`), what it learns (`training_set`), what it keeps afterwards (`keep`), and how it
scores. The loss is the paper's: squared, all 360 sigmoid outputs against the Gaussian label, so the columns
of old directions learn zero. Seeds depend on the task and the phase alone: on the first phase, methods that
do the same get the same network.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.method import Memory, Method, Task, checked_features, checked_phase
from tytoalba.learning.phases import Phase
from tytoalba.learning.training import Recipe, Schedule, labels, on_device, squared_loss, train
from tytoalba.signal.angles import Float

if TYPE_CHECKING:
    from torch import Tensor

    from tytoalba.learning.network import Layer, Mlp, Network
    from tytoalba.learning.training import Loss, Stopping

Net = TypeVar("Net", bound="Network")
"""The kind of network that a method trains."""


@dataclass(frozen=True)
class TrainingSet:
    """What the loop runs over: rows 0..n_frames each epoch, and replayed rows beside each batch."""

    loss: Loss
    n_frames: int
    n_replay: int = 0
    replay_batch: int = 0
    stopping: Stopping | None = None


class Gradient(Method, Generic[Net]):
    """Learns each phase with one network; keeps the network and nothing else."""

    def __init__(
        self,
        task: Task,
        *,
        epochs: int = 30,
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        batch: int = 256,
        width: int = 1000,
        dropout: float = 0.2,
        schedule: Schedule = "cosine",
    ) -> None:
        super().__init__(task)
        self.recipe = Recipe(epochs, lr, weight_decay, batch, schedule)
        self.width = width
        self.dropout = dropout
        self.n_phases_ = 0
        self.seen_ = np.zeros(task.n_directions, np.bool_)
        self.asked_at_a_time = 8192
        self.network_: Net | None = None

    def learn(self, phase: Phase) -> None:
        """Learn one more phase; an interruption leaves the method as it was."""
        phase = Phase(*checked_phase(self.task, phase))
        network = self.start()
        frames = self.training_set(network, phase)
        train(
            network,
            frames.loss,
            frames.n_frames,
            self.recipe,
            seed=self.phase_seed,
            n_replay=frames.n_replay,
            replay_batch=frames.replay_batch,
            stopping=frames.stopping,
        )
        self.keep(network, phase)
        self.network_ = network
        self.seen_[phase.directions] = True
        self.n_phases_ += 1

    @abstractmethod
    def fresh(self) -> Net:
        """A network with initial weights."""

    def start(self) -> Net:
        """The network that goes into this phase: a new one."""
        return self.fresh()

    def training_set(self, network: Net, phase: Phase) -> TrainingSet:  # noqa: ARG002
        """What to learn from a phase."""
        X, Y = self.frames(phase.X, phase.azimuth)
        return TrainingSet(squared_loss(X, Y), len(X))

    def keep(self, network: Net, phase: Phase) -> None:
        """Keep more than the network, once it has learned the phase."""

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sigmoid outputs."""
        return self.layer(X, "scores")

    def memory(self) -> Memory:
        """Weights and running statistics, the number of phases and the directions learned."""
        kept: Memory = {"n_phases": np.array(self.n_phases_), "seen": self.seen_.copy()}
        if self.network_ is not None:
            kept.update({f"network.{name}": value for name, value in self.network_.arrays().items()})
        return kept

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        arrays = part(memory, "network.")
        network = self.fresh() if arrays else None
        if network is not None:
            network.load_arrays(arrays)
            network.eval()
        self.network_ = network
        self.n_phases_ = int(memory["n_phases"])
        self.seen_ = np.array(memory["seen"], np.bool_)

    # ---- what the other methods build with ----

    @property
    def phase_seed(self) -> int:
        """Of the coming phase."""
        return int(np.random.SeedSequence([self.task.seed, self.n_phases_]).generate_state(1)[0])

    def mlp(self) -> Mlp:
        """The paper's network with initial weights."""
        from tytoalba.learning.network import Mlp

        return Mlp(
            self.task.n_inputs,
            self.task.n_directions,
            width=self.width,
            dropout=self.dropout,
            seed=self.phase_seed,
            device=self.task.device,
        )

    def inputs(self, X: NDArray[np.float32]) -> Tensor:
        """Raw features, scaled and on the device."""
        return on_device(self.task.scale(checked_features(self.task, X)), self.task.device)

    def frames(self, X: NDArray[np.float32], azimuth: Float) -> tuple[Tensor, Tensor]:
        """Scaled features and Gaussian labels on the device."""
        Y = labels(azimuth, self.task.device, self.task.sigma, self.task.n_directions)
        return self.inputs(X), Y

    def layer(self, X: NDArray[np.float32], layer: Layer, network: Net | None = None) -> NDArray[np.float32]:
        """A layer for raw features, of the network that learned last unless another is given."""
        network = network or self.network_
        if network is None:
            raise TytoError(f"{type(self).__name__} has learned nothing yet: call learn or restore first")
        found = network.predict(self.inputs(X), layer, self.asked_at_a_time)
        values: NDArray[np.float32] = found.cpu().numpy()
        return values

    def old_columns(self, phase: Phase) -> NDArray[np.bool_]:
        """Directions that were learned before and are not in this phase."""
        old = self.seen_.copy()
        old[phase.directions] = False
        return old


class FineTune(Gradient["Mlp"]):
    """Continue on each phase alone."""

    forgets: ClassVar[bool] = True

    def fresh(self) -> Mlp:
        """The paper's network."""
        return self.mlp()

    def start(self) -> Mlp:
        """The network that goes into this phase: a copy, so that the old one can teach."""
        return self.fresh() if self.network_ is None else self.network_.copy()


class MlpGcc(FineTune):
    """A reference without phases: each call of `learn` starts from new weights and shall bring everything."""

    sees_everything: ClassVar[bool] = True
    forgets: ClassVar[bool] = False

    def start(self) -> Mlp:
        """New initial weights."""
        return self.fresh()


def part(memory: Memory, prefix: str) -> Memory:
    """Entries whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in memory.items() if name.startswith(prefix)}
