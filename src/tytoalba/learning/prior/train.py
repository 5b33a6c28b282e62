"""A network learns from mixed frames and becomes a prior; `judge` then calibrates it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.learning.prior.features import steering_matrices
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.training import Recipe
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.symmetry import symmetries

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tytoalba.learning.network import Network

EPOCHS_PER_MIX = 2
"""How often frames are seen before others are mixed, which takes longer than an epoch."""
RECIPE = Recipe(epochs=10, lr=2e-3, weight_decay=1e-6, batch=512)
FURTHER = replace(RECIPE, lr=5e-4)
"""To go on from a prior: as large steps as at first would undo it."""
N_KEPT, KEPT_BYTES = 3000, 2_000_000
"""Simulated frames that a prior keeps, if they are not larger than this together."""


class FrameSource(Protocol):
    """Where frames to learn from come from: `data.simulation.mixer.Mixer`."""

    array: MicArray
    gcc: GccPhat
    device: torch.device

    def frames(self, n: int) -> Iterator[tuple[Tensor, Tensor]]:
        """GCC-PHAT (some, n_features) and azimuth (some, 2), NaN for nobody, of `n` frames in all."""


def train_prior(
    mixer: FrameSource,
    n_frames: int,
    *,
    width: int = 64,
    n_blocks: int = 4,
    recipe: Recipe = RECIPE,
    sigma: float = 5.0,
    seed: int = 0,
    start: Prior | None = None,
    on_progress: Progress | None = None,
) -> Prior:
    """A prior from mixed frames, `n_frames` new ones for every second epoch; not calibrated yet.

    start: a prior of the same array to go on from; the width is its own then, and it has as many blocks at
    least.
    A symmetric array sees each frame from a side drawn anew in every epoch: more scenes for nothing. One on a
    line learns each direction and its mirror image as one.
    """
    import torch

    from tytoalba.learning.prior.network import PriorNetwork
    from tytoalba.learning.training import labels, sides_of, squared_loss, train

    array, gcc, device = mixer.array, mixer.gcc, mixer.device
    if not recipe.epochs:
        n_frames = min(n_frames, recipe.batch)  # enough to take over from: nothing is learned
    X = torch.empty(n_frames, gcc.n_features, device=device)
    target = torch.empty(n_frames, N_DIRECTIONS, device=device)

    def mix() -> None:
        done = 0
        for frames, azimuth in mixer.frames(n_frames):
            rows = slice(done, done := done + len(frames))
            on_line = array.mirror_axis is not None  # others need no way off a GPU and back
            places = array.alike(azimuth.cpu().numpy()) if on_line else azimuth
            X[rows], target[rows] = frames, labels(places, device, sigma)

    def next_epoch(epoch: int, n_epochs: int) -> None:
        if epoch % EPOCHS_PER_MIX == 0 and epoch < n_epochs:
            mix()
        if on_progress:
            on_progress(epoch, n_epochs)

    window_width = None
    if start:
        width, window_width, n_blocks = (
            start.width,
            start.window_width,
            max(n_blocks, start.n_blocks),
        )
    matrices = steering_matrices(array, gcc)
    network = PriorNetwork(
        matrices,
        width=width,
        n_blocks=n_blocks,
        window_width=window_width,
        seed=seed,
        device=device,
    )
    sides = sides_of([(view, view.order(gcc)) for view in symmetries(array)], gcc.n_features, device)
    mix()
    if start:
        network.take_over(start.real_weights(), X[: recipe.batch])
    if device.type == "cuda":
        n_steps = -(-n_frames // recipe.batch)
        _compiled(network, X[: -(-n_frames // n_steps)])  # as many as steps have: other sizes cost it again
    loss = squared_loss(X, target, sides=sides)
    losses = train(network, loss, n_frames, recipe, seed=seed, on_epoch=next_epoch)
    prior = Prior.quantised(array, gcc, network.folded())
    n_kept = min(N_KEPT, KEPT_BYTES // (N_DIRECTIONS + len(gcc.pairs) * gcc.n_lags))
    some = torch.cat([frames for frames, _ in mixer.frames(n_kept)]).cpu().numpy()
    logits = prior.logits(some)
    return replace(
        prior.with_frames(some),
        about={
            "n_frames": n_frames * -(-recipe.epochs // EPOCHS_PER_MIX),
            "recipe": {**recipe.__dict__, "sigma": sigma, "seed": seed},
            "loss": losses[-1] if losses else None,
            **({"start": start.about} if start else {}),
        },
        constants={
            "logit_mean": _rounded(logits.mean(axis=0)),
            "logit_spread": _rounded(np.maximum(logits.std(axis=0), 0.1)),
        },
    )


def _compiled(network: Network, X: Tensor) -> None:
    """Let torch join the small steps of a network: three times as fast, after half a minute.

    Without the compilers that it needs (triton, C) the network stays as it is.
    """
    network.compile(dynamic=False)
    try:
        network.scores(X).sum().backward()  # type: ignore[no-untyped-call]
    except RuntimeError:
        network._compiled_call_impl = None
    network.zero_grad()


def _rounded(values: NDArray[np.floating]) -> list[Any]:
    """Constants as short decimals: they are read back as they were written."""
    return [float(f"{value:.4g}") for value in values]
