"""The network behind a prior: it looks at what each pair of microphones says about each azimuth.

GCC-PHAT of every band and pair is steered to 360 azimuths (`prior.steering_matrix`, fixed by the array), so
that the same few weights serve all around the circle: circular convolutions along the azimuth see the
neighbourhood, maxima and means over the circle the rest. Three neighbouring degrees are one cell, which
saves two thirds of the work. 0.15 million weights do what three million of a plain network do not
(docs/learner.md). `folded` gives them to `prior.Prior`, which needs no torch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tytoalba.backbone import BatchNorm, Network
from tytoalba.prior import CELLS, DILATIONS, STEERED_GAIN, TAPS, UNFOLD, Shape, shifts

try:
    import torch
except ImportError as error:  # pragma: no cover - backbone says it first
    raise ImportError from error
from torch import Tensor, nn


class Steered(Network):
    """Logits (n_frames, 360) of GCC-PHAT (n_frames, bands x pairs x lags) as `prior` describes it.

    matrix: `steering_matrix` of the array, (n_maps, n_lags, 360). width: channels.
    """

    matrix: Tensor

    def __init__(
        self,
        matrix: NDArray[np.floating],
        *,
        width: int = 64,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.tensor(matrix, dtype=torch.float32), persistent=False)
        n_maps = len(matrix)
        initial = torch.Generator().manual_seed(seed)

        def weight(*size: int) -> nn.Parameter:
            bound = size[0] ** -0.5
            return nn.Parameter(torch.empty(size).uniform_(-bound, bound, generator=initial))

        blocks = range(len(DILATIONS))
        self.enter = weight(n_maps * UNFOLD, width)
        self.place = nn.Parameter(torch.zeros(CELLS, width))
        self.near = nn.ParameterList(weight(len(TAPS) * width, width) for _ in blocks)
        self.around = nn.ParameterList(weight(2 * width, width) for _ in blocks)
        self.mix = nn.ParameterList(weight(width, width) for _ in blocks)
        self.bias = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in blocks)
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(len(DILATIONS) + 1))
        self.leave = weight(width, UNFOLD)
        self.level = nn.Parameter(torch.full((CELLS, UNFOLD), -3.0))
        self.to(device)
        self.generator = torch.Generator(device).manual_seed(seed)

    def features(self, X: Tensor) -> Tensor:
        """The last hidden layer, (n_frames, CELLS, width)."""
        n_maps, n_lags, _ = self.matrix.shape
        maps = torch.einsum("fpl,pla->fpa", X.reshape(-1, n_maps, n_lags), self.matrix) * STEERED_GAIN
        cells = maps.reshape(len(X), n_maps, CELLS, UNFOLD).transpose(1, 2).flatten(2)
        Z = torch.relu(self._norm(0, cells @ self.enter + self.place))
        for k, dilation in enumerate(DILATIONS):
            beside = torch.cat([torch.roll(Z, shift, 1) for shift in shifts(dilation)], dim=2)
            overall = torch.cat([Z.mean(1), Z.amax(1)], dim=1) @ self.around[k]
            inner = torch.relu(self._norm(k + 1, beside @ self.near[k] + overall[:, None]))
            Z = Z + inner @ self.mix[k] + self.bias[k]
        return Z

    def forward(self, X: Tensor) -> Tensor:
        """Logits, (n_frames, 360)."""
        with torch.autocast("cuda", torch.bfloat16, X.is_cuda and self.training, cache_enabled=False):
            logits = torch.relu(self.features(X)) @ self.leave + self.level
        return logits.float().flatten(1)

    def _norm(self, k: int, Z: Tensor) -> Tensor:
        normed: Tensor = self.norms[k](Z.flatten(0, 1).float())
        return normed.reshape(Z.shape)

    @torch.no_grad()
    def folded(self) -> Shape:
        """Weights with the normalisation multiplied in, float64, as `prior.Prior` takes them."""
        scale, offset = [], []
        for norm in self.norms:
            assert isinstance(norm, BatchNorm)
            scale.append(norm.weight / torch.sqrt(norm.running_var + 1e-5))
            offset.append(norm.bias - norm.running_mean * scale[-1])
        weights = {"enter": self.enter * scale[0], "place": self.place * scale[0] + offset[0]}
        for k in range(len(DILATIONS)):
            weights |= {
                f"near{k}": self.near[k] * scale[k + 1],
                f"around{k}": self.around[k] * scale[k + 1],
                f"offset{k}": offset[k + 1],
                f"mix{k}": self.mix[k],
                f"bias{k}": self.bias[k],
            }
        weights |= {"leave": self.leave, "level": self.level}
        return {name: value.detach().cpu().double().numpy() for name, value in weights.items()}
