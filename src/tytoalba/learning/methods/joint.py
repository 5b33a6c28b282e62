"""Joint training, the upper bound: keeps every frame and starts anew on phases 0..k at every k."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.inputs import fitting_prior, views_of
from tytoalba.learning.method import Had, Memory, Task, checked_array, checked_features, checked_phase
from tytoalba.learning.methods.finetune import Gradient, TrainingSet
from tytoalba.learning.methods.replay import stack_azimuths
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import steering_matrices
from tytoalba.learning.training import GradientOptions, Stopping, on_device, sides_of, squared_loss
from tytoalba.signal.angles import N_DIRECTIONS, Float, decode, decode_two, to_class
from tytoalba.signal.metrics import match, within

if TYPE_CHECKING:
    from torch import Tensor

    from tytoalba.learning.network import Network
    from tytoalba.learning.prior.prior import Prior

Kind = Literal["mlp", "steered"]
Start = Literal["anew", "prior"]
TAKEN_OVER = 1024
"""Frames of the phases by which a prior's network is put back into training."""


class Joint(Gradient["Network"]):
    """Everything seen so far, from new initial weights at each phase, or from the prior's.

    network: "mlp" is the paper's; "steered" the one behind a prior (`learning.prior.network`), which knows
    where the microphones are and takes GCC-PHAT as it is, unscaled; it has no dropout. blocks: its depth.

    views: from how many sides frames are looked at where the array is symmetric, as `Tyto` does: one drawn
    anew each time in training, all averaged when asked. 1 is the paper's.
    sigma: width of the Gaussian labels in degrees, instead of the task's.
    start: "anew", or "prior": at each phase from the prior that comes with the array, whose network it is.
    patience: 0, or the epochs after which training ends in which the frames of `Task.valid` were found no
    better (`Stopping`); those count whose directions were taught. `epochs` are the most then.
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
        start: Start = "anew",
        patience: int = 0,
        **options: Unpack[GradientOptions],
    ) -> None:
        if sigma is not None and not 0 < sigma < np.inf:
            raise TytoError(f"sigma must be positive degrees, got {sigma}")
        super().__init__(task if sigma is None else replace(task, sigma=sigma), **options)
        if min(views, blocks) < 1:
            raise TytoError(f"views and blocks must be at least 1, got {views} and {blocks}")
        if network not in get_args(Kind):
            raise TytoError(f"network must be one of {', '.join(get_args(Kind))}, got {network!r}")
        if start not in get_args(Start):
            raise TytoError(f"start must be one of {', '.join(get_args(Start))}, got {start!r}")
        if patience < 0 or (patience and task.valid is None):
            raise TytoError(
                f"patience must be 0 or more epochs, got {patience}"
                if patience < 0
                else "patience needs validation frames: give the task `valid`, or leave it out"
            )
        self.patience, self.epochs_ = patience, list[int]()
        self.prior = self._fitting_prior() if start == "prior" else None
        self.steered, self.blocks = network == "steered" or self.prior is not None, blocks
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

        size: dict[str, Any] = {"width": self.width, "n_blocks": self.blocks}
        if prior := self.prior:
            size = {"width": prior.width, "n_blocks": prior.n_blocks, "window_width": prior.window_width}
        return PriorNetwork(self._matrices, **size, seed=self.phase_seed, device=self.task.device)

    def inputs(self, X: NDArray[np.float32]) -> Tensor:
        """Features on the device, scaled where the network wants it."""
        if not self.steered:
            return super().inputs(X)
        return on_device(checked_features(self.task, X), self.task.device)

    def training_set(self, network: Network, phase: Phase) -> TrainingSet:
        """All frames, seen from every side."""
        X, Y = self.frames(phase.X, phase.azimuth)
        if self.prior and len(X):
            self._take_over(network, X)
        sides = sides_of(self.views, self.task.n_inputs, self.task.device)
        loss = squared_loss(X, Y, sides=sides)
        return TrainingSet(loss, len(X), stopping=self._stopping(phase.directions))

    def keep(self, network: Network, phase: Phase) -> None:  # noqa: ARG002
        """Keep how long it took."""
        if self.patience:
            self.epochs_.append(self._asked)

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sigmoid outputs, averaged over the sides."""
        return self._scores(checked_features(self.task, X))

    def memory(self) -> Memory:
        """All frames, beside the network, and how many epochs each phase took where that was not given."""
        kept = super().memory() | {"X": self.X_.copy(), "azimuth": self.azimuth_.copy()}
        return kept | ({"epochs": np.array(self.epochs_, np.int64)} if self.patience else {})

    def restore(self, memory: Memory) -> None:
        """Become what the memory says."""
        super().restore(memory)
        self.X_ = np.array(memory["X"], np.float32)
        self.azimuth_ = np.array(memory["azimuth"], np.float64)
        self.epochs_ = [int(n) for n in memory.get("epochs", ())]

    @property
    def had(self) -> tuple[Had, ...]:
        """What it has beside the frames of the phases."""
        had: dict[Had, bool] = {
            "simulations": self.prior is not None,
            "mirrored frames": len(self.views) > 1,
            "validation frames": bool(self.patience),
        }
        return tuple(name for name, there in had.items() if there)

    def _scores(self, X: NDArray[np.float32], network: Network | None = None) -> NDArray[np.float32]:
        found = [view.back(self.layer(X[:, order], "scores", network)) for view, order in self.views]
        return np.asarray(np.mean(found, axis=0), np.float32) if len(found) > 1 else found[0]

    def _fitting_prior(self) -> Prior:
        prior = fitting_prior(self.task, "auto")
        if prior is None:
            raise TytoError(
                "no prior fits these features: it takes the bands and windows of `prior_gcc` and all 360 "
                "directions; leave out start = 'prior'"
            )
        return prior

    def _take_over(self, network: Network, X: Tensor) -> None:
        """Put the weights of the prior into a network that is to learn from frames X."""
        import torch

        from tytoalba.learning.prior.network import PriorNetwork

        assert self.prior
        assert isinstance(network, PriorNetwork)
        rows = torch.randperm(len(X), generator=network.generator, device=X.device)[:TAKEN_OVER]
        network.take_over(self.prior.real_weights(), X[rows])

    def _stopping(self, directions: NDArray[np.intp]) -> Stopping | None:
        """To stop by the validation frames of all directions taught, these included."""
        valid, self._asked = self.task.valid, 0
        if not self.patience or valid is None:
            return None
        taught = self.seen_.copy()
        taught[directions] = True
        X, azimuth, _ = checked_phase(self.task, valid)
        present = np.isfinite(azimuth)
        classes = to_class(np.where(present, azimuth, 0.0), self.task.n_directions)
        n_sources = present.sum(axis=1)
        kept = np.isin(n_sources, (1, 2)) & (taught[classes] | ~present).all(axis=1)
        X, azimuth = X[kept], azimuth[kept]
        if not len(X):  # nothing to judge by
            self._asked = self.recipe.epochs
            return None

        def judge(network: Network) -> float:
            self._asked += 1
            return _accuracy(self._scores(X, network), azimuth)

        return Stopping(judge, self.patience)

    @cached_property
    def _matrices(self) -> dict[str, NDArray[np.float64]]:
        """What each pair says of each azimuth, which the steered network starts with."""
        array, gcc = checked_array(self.task, "the steered network", "take network = 'mlp'")
        if self.task.n_directions != N_DIRECTIONS:
            raise TytoError(
                f"the steered network scores {N_DIRECTIONS} directions, the task has {self.task.n_directions}"
            )
        return steering_matrices(array, gcc)


def _accuracy(scores: NDArray[np.float32], azimuth: Float) -> float:
    """Share of one or two directions (n_frames, n_sources), NaN padded, that scores find."""
    azimuth = np.sort(azimuth, axis=1)  # NaN last
    right, n_sources = np.empty(len(azimuth)), np.isfinite(azimuth).sum(axis=1)
    for n, decoder in ((1, decode), (2, decode_two)):
        rows = np.flatnonzero(n_sources == n)
        if len(rows):
            found = decoder(scores[rows]).reshape(-1, n)
            right[rows] = within(match(azimuth[rows, :n], found)).mean(axis=1)
    return float(right.mean())
