"""One gradient loop for every method that has one: a method is only its loss.

The data lie on the device as a whole, batches are rows drawn there, and nothing is read back within an epoch
(nor at its end). On a GPU so small a step would cost the launching of its kernels, so it
is recorded once and replayed (a CUDA graph). The loop draws only from the network's own generator: torch's
global state stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.signal.angles import N_DIRECTIONS, SIGMA, frames_by_sources

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tytoalba.learning.network import Network
    from tytoalba.signal.symmetry import Symmetry

    Loss = Callable[[Network, Tensor], Tensor]
    """From the network and the rows of a batch to what shall become small."""

Schedule = Literal["cosine", "constant"]


class GradientOptions(TypedDict, total=False):
    """The options that all gradient methods share."""

    epochs: int
    lr: float
    weight_decay: float
    batch: int
    width: int
    dropout: float
    schedule: Schedule


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: Adam as the paper sets it.

    batch: frames a step, at most: an epoch is cut into batches of equal size, so that no small rest spoils
    the batch statistics. schedule: "cosine" falls from lr to 0 over all steps, "constant" is the paper's.
    """

    epochs: int = 30
    lr: float = 1e-3
    weight_decay: float = 1e-4
    batch: int = 256
    schedule: Schedule = "cosine"

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch < 1:
            raise ValueError(f"epochs must be 0 or more and batch at least 1, got {self}")
        if self.lr <= 0 or self.weight_decay < 0:
            raise ValueError(f"lr must be positive and weight_decay 0 or more, got {self}")
        if self.schedule not in ("cosine", "constant"):
            raise ValueError(f"schedule must be 'cosine' or 'constant', got {self.schedule!r}")

    def lr_at(self, progress: float) -> float:
        """Learning rate at a share of all steps, 0 to 1."""
        return self.lr * (0.5 + 0.5 * math.cos(math.pi * progress) if self.schedule == "cosine" else 1.0)


@dataclass(frozen=True)
class Stopping:
    """Train until something stops rising, instead of by a schedule.

    judge: how good a network is, the higher the better; asked after every epoch. patience: epochs without a
    rise after which the best weights come back and the rate falls to a quarter; the second time is the end.
    """

    judge: Callable[[Network], float]
    patience: int

    FALL: ClassVar[float] = 0.25
    FALLS: ClassVar[int] = 1


class _Watched:
    """A network whose best weights are kept, and the rate that it learns by."""

    def __init__(self, network: Network, stopping: Stopping) -> None:
        self.network, self.stopping = network, stopping
        self.best, self.waited, self.falls = -math.inf, 0, 0
        self.kept: dict[str, Tensor] = {}

    @property
    def rate(self) -> float:
        """Share of the first rate."""
        return float(self.stopping.FALL**self.falls)

    def goes_on(self) -> bool:
        """Judge after an epoch."""
        found = self.stopping.judge(self.network)
        if found > self.best:
            self.best, self.waited = found, 0
            self.kept = {name: value.clone() for name, value in self.network.state_dict().items()}
            return True
        self.waited += 1
        if self.waited < self.stopping.patience:
            return True
        self.waited = 0
        self.falls += 1
        self.go_back()
        return self.falls <= self.stopping.FALLS

    def go_back(self) -> None:
        """To the best weights, in place: recorded steps read them there."""
        if self.kept:
            self.network.load_state_dict(self.kept)


def train(
    network: Network,
    loss: Loss,
    n_frames: int,
    recipe: Recipe,
    *,
    seed: int = 0,
    n_replay: int = 0,
    replay_batch: int = 0,
    graphs: bool = True,
    stopping: Stopping | None = None,
    on_epoch: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Train a network in place; returns the mean loss of each epoch.

    loss: of the network and a batch, a tensor of rows on the network's device: rows of 0..n_frames in random
    order, each once an epoch; then, with `n_replay`, `replay_batch` rows of n_frames..n_frames + n_replay,
    which come round as often as they must. What a row means is the loss's business.
    seed: of the order of frames and of dropout.
    graphs: record and replay steps on a GPU; the loss must then do the same work for every batch of a size
    and never read a value back.
    stopping: ends training and takes the place of the schedule; the recipe's epochs are the most then.
    on_epoch: called with (epochs done, epochs in all).
    """
    import torch

    generator = network.generator.manual_seed(seed)
    device = generator.device
    descend = _Descent(network, loss, recipe, graphs)
    n_steps = -(-n_frames // recipe.batch)  # an epoch
    replay_batch = replay_batch if n_replay else 0
    losses: list[Tensor] = []
    watched = _Watched(network, stopping) if stopping else None
    network.train()
    for epoch in range(recipe.epochs if n_frames else 0):
        order = torch.randperm(n_frames, generator=generator, device=device)
        batches = order.tensor_split(n_steps)
        if replay_batch:
            replayed = n_frames + _rounds(n_replay, n_steps * replay_batch, generator)
            beside = torch.split(replayed, replay_batch)
            batches = tuple(torch.cat(pair) for pair in zip(batches, beside, strict=True))
        total = torch.zeros((), device=device)
        for step, rows in enumerate(batches):
            progress = (epoch + step / n_steps) / recipe.epochs
            total += descend(rows, recipe.lr * watched.rate if watched else recipe.lr_at(progress))
        losses.append(total / n_steps)
        if on_epoch:
            on_epoch(epoch + 1, recipe.epochs)
        if watched and not watched.goes_on():
            break
    if watched:
        watched.go_back()
    network.zero_grad()
    network.eval()
    return [float(loss) for loss in torch.stack(losses).tolist()] if losses else []


class _Descent:
    """One step of Adam on the rows of a batch; on a GPU recorded once for each size of batch."""

    WARM = 3
    """Steps of a size before it is recorded: by then everything that a step allocates exists."""

    def __init__(self, network: Network, loss: Loss, recipe: Recipe, graphs: bool) -> None:
        import torch

        self.network, self.loss = network, loss
        device = network.generator.device
        gpu = device.type == "cuda"
        self.lr = torch.tensor(recipe.lr, device=device) if gpu else None  # a recorded step reads it there
        self.adam = torch.optim.Adam(
            [p for p in network.parameters() if p.requires_grad],
            recipe.lr if self.lr is None else self.lr,
            weight_decay=recipe.weight_decay,
            fused=True if device.type in ("cpu", "cuda") else None,
            capturable=gpu,
        )
        self.graphs = graphs and gpu
        self.n_done: dict[int, int] = {}
        self.recorded: dict[int, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}

    def __call__(self, rows: Tensor, lr: float) -> Tensor:
        """The loss of these rows before the step; read it before the next."""
        if self.lr is None:
            self.adam.param_groups[0]["lr"] = lr
        else:
            self.lr.fill_(lr)
        size = len(rows)
        self.n_done[size] = self.n_done.get(size, 0) + 1
        if not self.graphs or self.n_done[size] <= self.WARM:
            return self._step(rows)
        if size not in self.recorded:
            self.recorded[size] = self._record(rows)
        graph, own_rows, value = self.recorded[size]
        own_rows.copy_(rows)
        graph.replay()
        return value

    def _step(self, rows: Tensor) -> Tensor:
        self.adam.zero_grad()
        value = self.loss(self.network, rows)
        value.backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        return value.detach()

    def _record(self, rows: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor, Tensor]:
        import torch

        own_rows = rows.clone()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.network.generator)
        with torch.cuda.graph(graph):
            value = self._step(own_rows)
        return graph, own_rows, value


def squared_loss(
    X: Tensor,
    target: Tensor,
    column_weight: Tensor | None = None,
    sides: tuple[Tensor, Tensor] | None = None,
) -> Loss:
    """Mean over frames and directions of (score - target)^2, directions weighted if wished.

    X: (n_frames, n_inputs); target: (n_frames, n_directions); column_weight: (n_directions,).
    sides: of a symmetric array, the order of inputs (n_sides, n_inputs) and of directions (n_sides,
    n_directions) as seen from each (`sides_of`); every frame is seen from one drawn anew each time.
    """
    import torch

    def batch(network: Network, rows: Tensor) -> tuple[Tensor, Tensor]:
        if sides is None:
            return X[rows], target[rows]
        side = torch.randint(len(sides[0]), rows.shape, generator=network.generator, device=X.device)
        return X[rows[:, None], sides[0][side]], target[rows[:, None], sides[1][side]]

    def loss(network: Network, rows: Tensor) -> Tensor:
        inputs, wanted = batch(network, rows)
        error = (network.scores(inputs) - wanted).square()
        return (error if column_weight is None else error * column_weight).mean()

    return loss


def sides_of(
    views: Sequence[tuple[Symmetry, Any]], n_inputs: int, device: str | torch.device
) -> tuple[Tensor, Tensor] | None:
    """Symmetries and their orders as `squared_loss` takes them; None where there is only the plain view."""
    import torch

    if len(views) < 2:
        return None
    orders = np.stack([np.arange(n_inputs)[order] for _, order in views])
    columns = np.stack([view.columns for view, _ in views])
    return torch.tensor(orders, device=device), torch.tensor(columns, device=device)


def on_device(values: ArrayLike, device: str | torch.device) -> Tensor:
    """A float32 copy of an array on a device."""
    import torch

    return torch.tensor(np.asarray(values, np.float32), device=device)


def labels(
    azimuth: NDArray[np.floating] | Tensor,
    device: str | torch.device,
    sigma: float = SIGMA,
    n_directions: int = N_DIRECTIONS,
) -> Tensor:
    """`angles.encode`, computed on a device: (n_frames, n_sources) degrees -> (n_frames, n_directions)."""
    import torch

    there = isinstance(azimuth, torch.Tensor)
    directions = azimuth if there else on_device(frames_by_sources(azimuth), device)
    theta = torch.arange(n_directions, device=device) * (360.0 / n_directions)
    label = torch.zeros(len(directions), n_directions, device=device)
    for source in directions.T:  # (F,)
        apart = (theta - source[:, None]).abs_().remainder_(360.0)
        apart = torch.minimum(apart, 360.0 - apart)
        height = apart.div_(sigma).square_().neg_().exp_()
        label = torch.maximum(label, height.nan_to_num_(0.0))  # NaN: no source
    return label


def _rounds(n: int, length: int, generator: torch.Generator) -> Tensor:
    """`length` rows of 0..n: one random order of all after another."""
    import torch

    n_rounds = -(-length // n)
    shuffled = torch.rand(n_rounds, n, generator=generator, device=generator.device).argsort(dim=1)
    return shuffled.flatten()[:length]
