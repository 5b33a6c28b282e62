"""The network of a prior, as it is trained: from the evidence of each pair of microphones.

GCC-PHAT of every band and pair is steered to 360 azimuths (`features.steering_matrices`, fixed by the array),
so that the same few weights serve all around the circle: circular convolutions along the azimuth see the
neighbourhood, maxima and means over the circle the rest. Windows of a frame go through one layer, and
their maximum stands beside the whole frame. Three neighbouring degrees are one cell, which
saves two thirds of the work. 0.15 million weights do what three million of a plain network do not
(docs/how-it-works.md). `folded` gives them to `prior.Prior`, which needs no torch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.network import BatchNorm, Network
from tytoalba.learning.prior.exact import CELLS, STEERED_GAIN, TAPS, UNFOLD, Weights, shifts

try:
    import torch
except ImportError as error:  # pragma: no cover - learning.network says it first
    raise ImportError from error
from torch import Tensor, nn

EPSILON = 1e-5
"""What torch adds to variances before it divides by them."""


class PriorNetwork(Network):
    """Logits (n_frames, 360) of GCC-PHAT (n_frames, n_features), as `exact` describes it.

    matrices: `steering_matrices` of the array, (n_maps, n_lags, 360) each. width: channels. window_width:
    those of windows; half as many again if not given, which costs less than wider blocks and gives more.
    """

    matrix: Tensor
    window_matrix: Tensor

    def __init__(
        self,
        matrices: dict[str, NDArray[np.float64]],
        *,
        width: int = 64,
        n_blocks: int = 4,
        window_width: int | None = None,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        for name, matrix in matrices.items():
            self.register_buffer(name, torch.tensor(matrix, dtype=torch.float32), persistent=False)
        self.windows = "window_matrix" in matrices
        n_maps = len(matrices["matrix"])
        initial = torch.Generator().manual_seed(seed)

        def weight(*size: int) -> nn.Parameter:
            bound = size[0] ** -0.5
            return nn.Parameter(torch.empty(size).uniform_(-bound, bound, generator=initial))

        blocks = range(n_blocks)
        window_width = (window_width or 3 * width // 2) if self.windows else 0
        if self.windows:
            self.hear = weight(n_maps * UNFOLD, window_width)
            self.hearing = BatchNorm(window_width)
        self.enter = weight(n_maps * UNFOLD + window_width, width)
        self.place = nn.Parameter(torch.zeros(CELLS, width))
        self.near = nn.ParameterList(weight(len(TAPS) * width, width) for _ in blocks)
        self.around = nn.ParameterList(weight(2 * width, width) for _ in blocks)
        self.mix = nn.ParameterList(weight(width, width) for _ in blocks)
        self.bias = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in blocks)
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(n_blocks + 1))
        self.leave = weight(width, UNFOLD)
        self.level = nn.Parameter(torch.full((CELLS, UNFOLD), -3.0))
        self.to(device)
        self.generator = torch.Generator(device).manual_seed(seed)

    def features(self, X: Tensor) -> Tensor:
        """The last hidden layer, (n_frames, CELLS, width)."""
        n_maps, n_lags, _ = self.matrix.shape
        parts = X.reshape(len(X), X.shape[1] // (n_maps * n_lags), n_maps, n_lags)
        cells = _cells(parts[:, 0], self.matrix)
        if self.windows:
            said = _cells(parts[:, 1:].flatten(0, 1), self.window_matrix) @ self.hear
            said = _normed(self.hearing, said).reshape(len(X), parts.shape[1] - 1, CELLS, self.hear.shape[1])
            cells = torch.cat([cells, torch.relu(said.amax(1))], dim=2)
        Z = torch.relu(_normed(self.norms[0], cells @ self.enter + self.place))
        for k in range(len(self.near)):
            beside = torch.cat([torch.roll(Z, shift, 1) for shift in shifts(k)], dim=2)
            overall = torch.cat([Z.mean(1), Z.amax(1)], dim=1) @ self.around[k]
            inner = torch.relu(_normed(self.norms[k + 1], beside @ self.near[k] + overall[:, None]))
            Z = Z + inner @ self.mix[k] + self.bias[k]
        return Z

    def forward(self, X: Tensor) -> Tensor:
        """Logits, (n_frames, 360)."""
        with torch.autocast("cuda", torch.bfloat16, X.is_cuda and self.training, cache_enabled=False):
            logits = torch.relu(self.features(X)) @ self.leave + self.level
        return logits.float().flatten(1)

    @torch.no_grad()
    def folded(self) -> Weights:
        """Weights with the normalisation multiplied in, float64, as `prior.Prior` takes them."""
        scale, offset = zip(*map(_folded, self.norms), strict=True)
        weights: dict[str, Tensor] = dict(self._places())
        weights |= {"enter": self.enter * scale[0], "place": self.place * scale[0] + offset[0]}
        if self.windows:
            size, shift = _folded(self.hearing)
            weights |= {"hear": self.hear * size, "heard": shift}
        for k in range(len(self.near)):
            weights |= {
                f"near{k}": self.near[k] * scale[k + 1],
                f"around{k}": self.around[k] * scale[k + 1],
                f"offset{k}": offset[k + 1],
            }
        return {name: value.detach().cpu().double().numpy() for name, value in weights.items()}

    @torch.no_grad()
    def take_over(self, folded: Weights, X: Tensor) -> None:
        """Become the network that these weights were `folded` from, to be trained further.

        X: some frames; normalisation is put back between the layers so that it leaves these as they are.
        Blocks that it has beyond those of the weights add nothing until they have learned something.
        """
        norms = [norm for norm in self.modules() if isinstance(norm, BatchNorm)]
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

        def look(norm: nn.Module, inputs: tuple[Tensor]) -> None:
            seen[norm] = torch.var_mean(inputs[0], dim=0, correction=0)

        for norm in norms:
            _set(norm, torch.ones_like(norm.running_var), torch.zeros_like(norm.running_mean))
            norm.bias.zero_()
        for name, parameter in self._places().items():
            if name in folded:
                parameter.copy_(torch.as_tensor(folded[name]))
            elif name.startswith(("mix", "bias")):
                parameter.zero_()
        hooks = [norm.register_forward_pre_hook(look) for norm in norms]
        self.predict(X, "logits")
        for norm, hook in zip(norms, hooks, strict=True):
            hook.remove()
            _set(norm, *seen[norm])
            norm.bias.add_(norm.running_mean)

    def _places(self) -> dict[str, nn.Parameter]:
        """Where weights go that were folded; what normalisation adds to the first layer is in `place`."""
        norms = [norm for norm in self.norms if isinstance(norm, BatchNorm)]
        places = {"enter": self.enter, "place": self.place, "leave": self.leave, "level": self.level}
        if self.windows:
            places |= {"hear": self.hear, "heard": self.hearing.bias}
        for k in range(len(self.near)):
            places |= {
                f"near{k}": self.near[k],
                f"around{k}": self.around[k],
                f"offset{k}": norms[k + 1].bias,
                f"mix{k}": self.mix[k],
                f"bias{k}": self.bias[k],
            }
        return places


def _cells(x: Tensor, matrix: Tensor) -> Tensor:
    """The evidence of each pair for each cell, (n_frames, CELLS, n_maps x UNFOLD)."""
    maps = torch.einsum("fpl,pla->fpa", x, matrix) * STEERED_GAIN
    return maps.reshape(len(x), len(matrix), CELLS, UNFOLD).transpose(1, 2).flatten(2)


def _normed(norm: nn.Module, Z: Tensor) -> Tensor:
    normed: Tensor = norm(Z.flatten(0, 1).float())
    return normed.reshape(Z.shape)


def _folded(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """What a normalisation multiplies with and adds."""
    assert isinstance(norm, BatchNorm)
    scale = norm.weight / torch.sqrt(norm.running_var + EPSILON)
    return scale, norm.bias - norm.running_mean * scale


def _set(norm: BatchNorm, variance: Tensor, mean: Tensor) -> None:
    """Normalise by these, and multiply with the spread again."""
    norm.running_var.copy_(variance)
    norm.running_mean.copy_(mean)
    norm.weight.copy_((variance + EPSILON).sqrt())
