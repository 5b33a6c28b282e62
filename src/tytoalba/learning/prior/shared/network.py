"""The network for every array, as it is trained: `exact.forward` in real numbers, rounding in the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import MissingExtraError
from tytoalba.learning.prior.exact import DILATIONS, TAPS
from tytoalba.learning.prior.shared.exact import (
    BYTE,
    HALF,
    N_MAPS,
    STATE,
    UNIT,
    Weights,
    neighbours,
    quantised,
    real,
    shapes,
    sizes,
    steered,
)
from tytoalba.learning.prior.shared.geometry import CELLS, UNFOLD, Geometry

try:
    import torch
except ImportError as error:
    raise MissingExtraError("new priors", "train") from error
from torch import Tensor, nn

EPSILON = 1e-5
"""What torch adds to variances before it divides by them."""
FIRST_LEVEL = -3.0
"""Logits before anything is learned: directions are seldom right."""


@dataclass(frozen=True)
class Placed:
    """What the network is told of an array, on a device: the parts of a `Geometry`, as they are stored."""

    geometry: Geometry
    table: Tensor
    delays: Tensor
    known: Tensor

    @classmethod
    def of(cls, geometry: Geometry, device: torch.device | str = "cpu") -> Placed:
        """A geometry on a device."""
        parts = (geometry.table, geometry.delays.astype(np.int64), geometry.known)
        return cls(geometry, *(torch.as_tensor(part, device=device) for part in parts))

    def changed(self, pairs: Tensor, order: Tensor, cells: Tensor) -> Placed:
        """Some pairs, and the degrees and their cells in another order along the circle."""
        return Placed(self.geometry, self.table, self.delays[pairs][:, order], self.known[pairs][:, cells])

    @property
    def steering(self) -> Tensor:
        """`Geometry.steering`, made where it is needed: (n_bands, n_pairs, n_lags, 360)."""
        rows = self.table[:, self.delays.abs()]  # (B, P, 360, L)
        rows = torch.where((self.delays >= 0)[None, :, :, None], rows, rows.flip(-1))
        return rows.swapaxes(2, 3).float().contiguous()


@dataclass(frozen=True)
class Batch:
    """Frames of one array: codes (n, looks, bands, pairs, lags) in whole numbers, float32."""

    codes: Tensor
    geometry: Geometry
    steering: Tensor
    known: Tensor

    @classmethod
    def of(cls, codes: NDArray[np.int8] | Tensor, told: Geometry | Placed, device: Any = "cpu") -> Batch:
        """Codes and what is told of their array, on a device."""
        placed = told if isinstance(told, Placed) else Placed.of(told, device)
        numbers = torch.as_tensor(codes, device=device).float()
        return cls(numbers, placed.geometry, placed.steering, placed.known.float())


class SharedNetwork(nn.Module):
    """Logits (n_frames, 360) of frames of any arrays.

    width: channels along the circle. pair_width, window_width: of what pairs and windows give. rounding: the
    normalisation is folded into the weights, which are rounded to eight bits on their way.
    """

    def __init__(
        self,
        width: int = 48,
        pair_width: int = 32,
        window_width: int = 32,
        n_blocks: int = 4,
        *,
        seed: int = 0,
        rounding: bool = False,
    ) -> None:
        super().__init__()
        self.shape = width, pair_width, window_width, n_blocks
        initial = torch.Generator().manual_seed(seed)
        self.weights, self.biases, self.norms = nn.ParameterDict(), nn.ParameterDict(), nn.ModuleDict()
        self.steps: dict[str, Tensor] = {}
        self._beside: dict[tuple[int, torch.device], Tensor] = {}
        self.rounding = rounding
        for name, (n_in, n_out) in shapes(*self.shape).items():
            bound = n_in**-0.5
            weight = torch.empty(n_in, n_out).uniform_(-bound, bound, generator=initial)
            self.weights[name] = nn.Parameter(weight)
            if rounding or name.startswith(("mix", "leave")):
                level = FIRST_LEVEL if name == "leave" else 0.0
                self.biases[name] = nn.Parameter(torch.full((n_out,), level))
            else:
                self.norms[name] = nn.BatchNorm1d(n_out, momentum=0.02)

    @classmethod
    @torch.no_grad()
    def of(cls, weights: Weights) -> SharedNetwork:
        """The network that has these weights in eight bits, to be trained on with rounding."""
        network = cls(*sizes(weights), rounding=True)
        for name in network.weights:
            matrix, bias = real(name, weights)
            network.weights[name].copy_(torch.as_tensor(matrix))
            network.biases[name].copy_(torch.as_tensor(bias))
        return network

    @property
    def n_blocks(self) -> int:
        """How deep it is."""
        return self.shape[3]

    def forward(self, batches: Sequence[Batch]) -> Tensor:
        """Logits of the frames of all batches."""
        each, together = [], []
        matrix = self._weight("pair")
        for batch in batches:
            pairs, both = steered(batch.codes, batch.geometry, batch.steering)
            known = (batch.known * UNIT) @ matrix[N_MAPS:]
            each.append((pairs * UNIT) @ matrix[:N_MAPS] + known.swapaxes(0, 1))
            together.append(both * UNIT)
        flat = self._normed("pair", torch.cat([x.reshape(-1, x.shape[-1]) for x in each]), BYTE)
        parts = torch.split(flat, [x.shape[:3].numel() for x in each])
        said = [part.reshape(x.shape) for part, x in zip(parts, each, strict=True)]
        mean = torch.cat([self._settled(x.mean(2), UNIT, 0.0, BYTE) for x in said])
        most = torch.cat([x.amax(2) for x in said])
        maps = torch.cat(together)  # (n, looks, CELLS, N_MAPS)
        windows = maps[:, 1:] @ self._weight("hear")
        heard = self._normed("hear", windows.reshape(-1, windows.shape[-1]), BYTE)
        heard = heard.reshape(windows.shape).amax(1)
        Z = self._layer("enter", torch.cat([mean, most, maps[:, 0], heard], dim=2), STATE, HALF)
        for k in range(self.n_blocks):
            n, _, width = Z.shape
            beside = Z[:, self._neighbours(k, Z.device)].reshape(n, CELLS, -1)
            overall = torch.cat([self._settled(Z.mean(1), STATE, -HALF, HALF), Z.amax(1)], dim=1)
            matrix = self._weight(f"near{k}")
            inner = beside @ matrix[: len(TAPS) * width] + (overall @ matrix[len(TAPS) * width :])[:, None]
            inner = self._normed(f"near{k}", inner.flatten(0, 1), BYTE).reshape(Z.shape)
            added = inner @ self._weight(f"mix{k}") + self.biases[f"mix{k}"]
            Z = self._settled(Z + added, STATE, -HALF, HALF)
        logits = Z.clamp(min=0.0) @ self._weight("leave") + self.biases["leave"]
        return torch.reshape(logits, (len(Z), CELLS * UNFOLD))

    def _neighbours(self, block: int, device: torch.device) -> Tensor:
        """`neighbours`, copied to a device once."""
        key = block % len(DILATIONS), device
        if key not in self._beside:
            self._beside[key] = torch.as_tensor(neighbours(block), device=device)
        return self._beside[key]

    def _weight(self, name: str) -> Tensor:
        weight: Tensor = self.weights[name]
        if not self.rounding:
            return weight
        if name not in self.steps:
            fine = torch.floor(torch.log2(HALF / weight.detach().abs().amax(0).clamp(min=2.0**-12)))
            self.steps[name] = 2.0**-fine
        step = self.steps[name]
        rounded: Tensor = torch.fake_quantize_per_channel_affine(
            weight, step, torch.zeros_like(step, dtype=torch.int32), 1, -int(HALF), int(HALF)
        )
        return rounded

    def _layer(self, name: str, x: Tensor, step: float, high: float) -> Tensor:
        y = x @ self._weight(name)
        return self._normed(name, y.flatten(0, 1), high, step).reshape(*x.shape[:2], -1)

    def _normed(self, name: str, rows: Tensor, high: float, step: float = UNIT) -> Tensor:
        """Normalised, and rounded to steps between 0 and `high` of them."""
        rows = rows + self.biases[name] if self.rounding else self.norms[name](rows)
        return self._settled(rows, step, 0.0, high)

    def _settled(self, x: Tensor, step: float, low: float, high: float) -> Tensor:
        """Cut, and rounded to steps if that is asked for; gradients pass where nothing was cut."""
        if self.rounding:
            return torch.fake_quantize_per_tensor_affine(x, step, 0, int(low), int(high))
        return x.clamp(low * step, high * step)

    @torch.no_grad()
    def folded(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Matrix and bias of every layer, with the normalisation multiplied in."""
        found = {}
        for name, weight in self.weights.items():
            matrix = weight.double()
            if name in self.biases:
                bias = self.biases[name].double()
            else:
                norm = self.norms[name]
                assert isinstance(norm, nn.BatchNorm1d)
                assert norm.running_var is not None
                assert norm.running_mean is not None
                scale = norm.weight.double() / torch.sqrt(norm.running_var.double() + EPSILON)
                matrix, bias = matrix * scale, norm.bias.double() - norm.running_mean.double() * scale
            found[name] = (matrix.cpu().numpy(), bias.cpu().numpy())
        return found

    @torch.no_grad()
    def with_rounding(self) -> SharedNetwork:
        """The same with the normalisation folded in and weights rounded on their way, to be trained on."""
        other = SharedNetwork(*self.shape, rounding=True)
        for name, (matrix, bias) in self.folded().items():
            other.weights[name].copy_(torch.as_tensor(matrix))
            other.biases[name].copy_(torch.as_tensor(bias))
        return other

    def quantised(self) -> Weights:
        """Its weights in eight bits."""
        weights: Weights = {}
        for name, (matrix, bias) in self.folded().items():
            if name in self.steps:  # those that it was trained with, whatever its weights have become
                step = self.steps[name].double().cpu().numpy()
                matrix = np.clip(np.rint(matrix / step), -HALF, HALF) * step
            weights |= quantised(name, matrix, bias)
        return weights
