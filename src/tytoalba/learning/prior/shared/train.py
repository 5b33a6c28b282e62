"""The network for every array learns from frames of many: resumable, the same steps wherever it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.errors import DataError, TytoError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared.exact import Weights
from tytoalba.learning.prior.shared.frames import ArrayFrames
from tytoalba.learning.prior.shared.geometry import UNFOLD, Geometry
from tytoalba.learning.prior.shared.network import Batch, Placed, SharedNetwork
from tytoalba.learning.training import labels
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.array import MicArray
from tytoalba.storage.tensors import read_tensors, write_tensors

SIGMA = 5.0
FEWEST_MICS = 3
OFTEN = 250
"""Steps between checkpoints."""


@dataclass(frozen=True)
class SharedRecipe:
    """How the network for every array is trained.

    width, pair_width, window_width, blocks: its size. steps: of the optimiser; the last `rounded` of them
    with weights in eight bits. arrays, frames: in each step. rate: highest learning rate, `rounded_rate`
    that of the rounded steps. tuning: it goes on from a network in eight bits, which has its own size: all
    steps are rounded, and no microphones are left out.
    """

    width: int = 48
    pair_width: int = 32
    window_width: int = 32
    blocks: int = 4
    steps: int = 12000
    rounded: float = 0.1
    arrays: int = 4
    frames: int = 48
    rate: float = 3e-3
    rounded_rate: float = 3e-4
    warm_up: int = 200
    seed: int = 0
    tuning: bool = False

    def __post_init__(self) -> None:
        if min(self.width, self.pair_width, self.window_width, self.blocks, self.arrays, self.frames) < 1:
            raise DataError("sizes, arrays and frames of a step must be at least 1")
        if self.steps < 10 or not 0 < self.rounded < 1:
            raise DataError("training takes at least 10 steps, and a share of them rounded")

    @property
    def first_rounded(self) -> int:
        """The first step with weights in eight bits."""
        if self.tuning:
            return 0
        return self.steps - max(1, round(self.rounded * self.steps))

    def rate_at(self, step: int) -> float:
        """Learning rate: rises, then falls along a cosine; anew for the rounded steps."""
        if step >= self.first_rounded:
            done = (step - self.first_rounded) / (self.steps - self.first_rounded)
            return self.rounded_rate * (1 + math.cos(math.pi * done)) / 2
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.first_rounded - self.warm_up)
        return self.rate * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)


def train_shared(
    paths: Sequence[str | Path],
    recipe: SharedRecipe,
    *,
    start: Weights | None = None,
    checkpoint: str | Path | None = None,
    device: str = "cpu",
    more: Callable[[], Sequence[str | Path]] = tuple,
    until: float = math.inf,
    on_progress: Progress | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> Weights:
    """Weights in eight bits, learned from files of `ArrayFrames`.

    All frames lie on the device, in eight bits, and little is copied there in a step. start: what a recipe
    for `tuning` goes on from. checkpoint: a file to go on from, if it is there, and to write now and then.
    more: is asked now and then for files that came since. until: `time.monotonic()` at which to stop with a
    checkpoint, and an error that says so. watch: is told the step and the loss of the steps since the last
    time.
    """
    library = [_Known.load(path, device) for path in paths]
    if not library:
        raise DataError("no frames to learn from")
    network = _beginning(recipe, start).to(device).train()
    optimiser = _optimiser(network)
    step = 0
    if checkpoint and Path(checkpoint).exists():
        step, network = _resumed(checkpoint, network, recipe, device)
        optimiser = _optimiser(network)
        _restore(optimiser, checkpoint, network)
    lost: list[torch.Tensor] = []
    while step < recipe.steps:
        if step == recipe.first_rounded and not network.rounding:
            network = network.with_rounding().to(device).train()
            optimiser = _optimiser(network)
        rate = recipe.rate_at(step)
        for group in optimiser.param_groups:
            group["lr"] = rate
        batches, target = drawn(library, recipe, step, device)
        optimiser.zero_grad(set_to_none=True)
        with _fast_products():
            loss = (torch.sigmoid(network(batches)) - target).square().sum(1).mean()
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimiser.step()
        lost.append(loss.detach())
        step += 1
        over = step < recipe.steps and time.monotonic() >= until
        if step % OFTEN == 0 or step == recipe.steps or over:
            mean = float(torch.stack(lost).mean())
            lost.clear()
            if not math.isfinite(mean):
                raise DataError("training went wrong: the loss is not finite; try a lower learning rate")
            if watch:
                watch(step, mean)
            if checkpoint:
                _save(checkpoint, step, network, optimiser)
            library += [_Known.load(path, device) for path in more()]
        if on_progress:
            on_progress(step, recipe.steps)
        if over:
            raise TytoError(
                f"the time is over at step {step} of {recipe.steps}, with frames of {len(library)} arrays; "
                "the same command goes on there"
            )
    return network.quantised()


def _beginning(recipe: SharedRecipe, start: Weights | None) -> SharedNetwork:
    if recipe.tuning != (start is not None):
        raise DataError("tuning needs a network to start from, and nothing else does")
    if start is not None:
        return SharedNetwork.of(start)
    return SharedNetwork(
        recipe.width, recipe.pair_width, recipe.window_width, recipe.blocks, seed=recipe.seed
    )


@contextmanager
def _fast_products() -> Iterator[None]:
    """Tensor cores for products of float32 on a GPU: the whole numbers here, up to 511, are exact there."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@dataclass(frozen=True)
class _Known:
    """Frames of an array and what the network is told of it, on a device. azimuth: (n_frames, 2) degrees."""

    array: MicArray
    codes: torch.Tensor
    azimuth: NDArray[np.float32]
    told: Placed

    @classmethod
    def load(cls, path: str | Path, device: str) -> _Known:
        frames = ArrayFrames.load(path)
        told = Placed.of(Geometry.of(frames.array, prior_gcc(frames.array)), device)
        return cls(frames.array, torch.as_tensor(frames.codes, device=device), frames.azimuth, told)


def drawn(
    library: Sequence[_Known], recipe: SharedRecipe, step: int, device: str = "cpu"
) -> tuple[list[Batch], torch.Tensor]:
    """What a step learns from: some frames of some arrays, with a choice of their microphones (or all of
    them, where it is `tuning`), turned by up to two degrees and perhaps mirrored; and labels (n_frames, 360).
    """
    rng = np.random.default_rng([0x73746570, recipe.seed, step])
    batches, targets = [], []
    for number in rng.choice(len(library), recipe.arrays, replace=len(library) < recipe.arrays):
        one = library[number]
        array, n_frames = one.array, len(one.codes)
        rows = np.sort(rng.choice(n_frames, min(recipe.frames, n_frames), replace=False))
        n_mics = FEWEST_MICS + int((array.n_mics - FEWEST_MICS + 1) * rng.random() ** 2)
        if recipe.tuning:
            n_mics = array.n_mics
        chosen = np.sort(rng.choice(array.n_mics, n_mics, replace=False)).tolist()
        kept = [p for p, (i, j) in enumerate(array.pairs) if i in chosen and j in chosen]
        part = replace(
            array,
            positions=tuple(array.positions[m] for m in chosen),
            channels=(),
            facing=(0.0,),
        )
        order = (int(rng.integers(UNFOLD)) + rng.choice([-1, 1]) * np.arange(N_DIRECTIONS)) % N_DIRECTIONS
        cells = order[1::UNFOLD] // UNFOLD
        pairs, turned, cell, which = (torch.as_tensor(i).to(device) for i in (kept, order, cells, rows))
        codes = one.codes[which][:, :, :, pairs]
        batches.append(Batch.of(codes, one.told.changed(pairs, turned, cell), device))
        targets.append(labels(part.alike(one.azimuth[rows]), device, SIGMA)[:, turned])
    return batches, torch.cat(targets)


def _optimiser(network: SharedNetwork) -> torch.optim.AdamW:
    fused = next(network.parameters()).is_cuda  # one kernel for all weights
    return torch.optim.AdamW(network.parameters(), lr=0.0, weight_decay=1e-4, betas=(0.9, 0.99), fused=fused)


def _save(path: str | Path, step: int, network: SharedNetwork, optimiser: torch.optim.AdamW) -> None:
    arrays: dict[str, Any] = {f"network.{k}": v for k, v in network.state_dict().items()}
    arrays |= {f"steps.{k}": v for k, v in network.steps.items()}
    for name, parameter in network.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            arrays[f"optimiser.{key}.{name}"] = value
    plain = {name: value.detach().cpu().numpy() for name, value in arrays.items()}
    write_tensors(
        path, plain, {"format": "tytoalba-shared-checkpoint", "step": step, "rounding": network.rounding}
    )


def _resumed(
    path: str | Path, network: SharedNetwork, recipe: SharedRecipe, device: str
) -> tuple[int, SharedNetwork]:
    header, arrays = read_tensors(path)
    try:
        if header["rounding"]:
            network = SharedNetwork(*network.shape, rounding=True).to(device).train()
            network.steps = {
                k.removeprefix("steps."): torch.as_tensor(v, device=device)
                for k, v in arrays.items()
                if k.startswith("steps.")
            }
        state = {
            k.removeprefix("network."): torch.as_tensor(v)
            for k, v in arrays.items()
            if k.startswith("network.")
        }
        network.load_state_dict(state)
        step = int(header["step"])
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path} is not a checkpoint of this recipe: {error}") from error
    if not 0 <= step <= recipe.steps:
        raise DataError(f"{path} is of step {step}, of {recipe.steps} that the recipe has")
    return step, network


def _restore(optimiser: torch.optim.AdamW, path: str | Path, network: SharedNetwork) -> None:
    _, arrays = read_tensors(path)
    for name, parameter in network.named_parameters():
        keys = ("step", "exp_avg", "exp_avg_sq")
        found = {key: arrays.get(f"optimiser.{key}.{name}") for key in keys}
        here = parameter.device if parameter.is_cuda else "cpu"  # fused steps count on the device
        if all(value is not None for value in found.values()):
            optimiser.state[parameter] = {
                key: torch.as_tensor(value, device=here if key == "step" else parameter.device)
                for key, value in found.items()
            }
