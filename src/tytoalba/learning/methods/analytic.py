"""What the analytic methods share: a frozen backbone, a fixed expansion of its features, ridge regression.

    X -> scaled -> Z = backbone(X) -> H = expansion(Z) -> G = sum H'H, Q = sum H'Y -> W = (G + eta I)^-1 Q

A method is its difference: the expansion (`_expand`) and the targets (`_targets`). After the first phase the
backbone is only evaluated, in float64, so that neither the batch nor the phase shows in more than the last
digits; frames are taken in blocks and never kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.method import Memory, Method, Task, blocks, checked_features, checked_phase
from tytoalba.learning.phases import Phase
from tytoalba.learning.random_features import RandomReLU
from tytoalba.learning.training import Schedule
from tytoalba.signal.angles import Float, encode

if TYPE_CHECKING:
    from tytoalba.learning.network import Mlp

Tensor = Any
"""Of torch, which is imported only where it is needed."""
BACKBONE = "backbone."


class AnalyticOptions(TypedDict, total=False):
    """The options that all analytic methods share; `Analytic` says what they mean."""

    ridge: float
    backbone: Literal["trained", "random"]
    width: int
    epochs: int
    schedule: Schedule


class Analytic(Method):
    """Ridge regression on expanded features of a backbone that is frozen after the first phase.

    n_features: D. ridge: the paper's eta. backbone: "trained" on the first phase that has frames, with the
    paper's settings, or "random". width, epochs, schedule: of the backbone and its training.
    """

    def __init__(
        self,
        task: Task,
        *,
        n_features: int,
        ridge: float = 0.1,
        backbone: Literal["trained", "random"] = "trained",
        width: int = 1000,
        epochs: int = 30,
        schedule: Schedule = "constant",
    ) -> None:
        super().__init__(task)
        if backbone not in ("trained", "random"):
            raise TytoError(f"backbone must be 'trained' or 'random', got {backbone!r}")
        self.n_features, self.ridge = n_features, ridge
        self.backbone, self.width, self.epochs, self.schedule = backbone, width, epochs, schedule
        self._seed = task.seed
        self._network: Mlp | None = None  # until the first frames come
        self._expansion: RandomReLU | None = None  # until it is needed
        self._head = self._new_head(n_features, ridge)
        self._n_phases = 0

    def learn(self, phase: Phase) -> None:
        """Add a phase to the sums; the first trains and freezes the backbone."""
        X, azimuth, directions = checked_phase(self.task, phase)
        draft = copy(self)  # learning replaces, never changes: an error leaves the method as it was
        draft._learn(X, azimuth, directions)
        vars(self).update(vars(draft))

    def _learn(self, X: NDArray[np.float32], azimuth: Float, directions: NDArray[np.intp]) -> None:
        if self._network is None and len(X):
            self._begin(X, azimuth)
        self._head = copy(self._head)
        for rows, Z in self._backbone_features(X):
            self._head.learn(self._expand(Z), self._targets(azimuth[rows], directions))
        self._n_phases += 1

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Predicted labels (n_frames, n_directions); zero as long as nothing was learned."""
        X = checked_features(self.task, X)
        scores = np.zeros((len(X), self.task.n_directions), np.float32)
        if self._network is not None:
            for rows, Z in self._backbone_features(X):
                scores[rows] = self._scores(Z).cpu().numpy()
        return scores

    def weights(self) -> NDArray[np.float64]:
        """W (n_features, n_directions)."""
        W: NDArray[np.float64] = self._head.weights().cpu().numpy()
        return W

    def memory(self) -> Memory:
        """The frozen backbone, the seed of the expansion, the sums and the number of phases."""
        kept = self._head.memory()
        kept |= {"n_phases": np.array(self._n_phases, np.int64), "seed": np.array(self._seed, np.int64)}
        if self._network is not None:  # float32 before it was frozen: nothing is lost
            arrays = self._network.arrays().items()
            kept |= {BACKBONE + name: values.astype(np.float32) for name, values in arrays}
        return kept

    def restore(self, memory: Memory) -> None:
        """Take over backbone, random features and sums; they must be of a method with the same settings."""
        draft = copy(self)
        draft._restore(memory)
        vars(self).update(vars(draft))

    def _restore(self, memory: Memory) -> None:
        self._head = self._head.restored(memory)
        self._n_phases, self._seed = int(memory["n_phases"]), int(memory["seed"])
        self._network = self._expansion = None
        arrays = {k.removeprefix(BACKBONE): v for k, v in memory.items() if k.startswith(BACKBONE)}
        if arrays:
            network = self._new_network()
            network.load_arrays(arrays)
            self._network = network.double().eval()

    def _begin(self, X: NDArray[np.float32], azimuth: Float) -> None:
        """What the first frames decide: the backbone."""
        from tytoalba.learning.training import Recipe, labels, on_device, squared_loss, train

        network = self._new_network()
        if self.backbone == "trained":
            Y = labels(azimuth, self.task.device, self.task.sigma, self.task.n_directions)
            loss = squared_loss(on_device(self.task.scale(X), self.task.device), Y)
            recipe = Recipe(epochs=self.epochs, schedule=self.schedule)
            train(network, loss, len(X), recipe, seed=self._seed)
        self._network = network.double().eval()

    def _new_network(self) -> Mlp:
        from tytoalba.learning.network import Mlp

        n_inputs, n_outputs = self.task.n_inputs, self.task.n_directions
        return Mlp(n_inputs, n_outputs, width=self.width, seed=self._seed, device=self.task.device)

    def _new_head(self, n_features: int, ridge: float) -> AnalyticHead:
        return AnalyticHead(n_features, self.task.n_directions, ridge, device=self.task.device)

    def _backbone_features(self, X: NDArray[np.float32]) -> Iterator[tuple[slice, Tensor]]:
        """Z (n, width), float64 on the device, block after block of frames."""
        import torch

        for rows in blocks(len(X)):
            if self._network is None:
                raise TytoError("the backbone comes with the first frames: learn a phase first")
            scaled = torch.tensor(self.task.scale(X[rows]), dtype=torch.float64, device=self.task.device)
            yield rows, self._network.predict(scaled, "features")

    def _relu(self) -> RandomReLU:
        """The random expansion, drawn when first needed: the same for the same seed."""
        if self._expansion is None:
            self._expansion = RandomReLU(self.width, self.n_features, self._seed)
        return self._expansion

    def _expand(self, Z: Tensor) -> Tensor:
        """H (n, n_features) from Z (n, width)."""
        return self._relu().transform(Z)

    def _targets(self, azimuth: Float, directions: NDArray[np.intp]) -> NDArray[np.float32]:  # noqa: ARG002
        """Y (n, n_directions): Gaussian labels, all columns from the start."""
        return encode(azimuth, self.task.sigma, self.task.n_directions)

    def _scores(self, Z: Tensor) -> Tensor:
        return self._head.scores(self._expand(Z))
