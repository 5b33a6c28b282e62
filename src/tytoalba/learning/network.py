"""The paper's network: n_inputs -> 3 x [Linear 1000, BatchNorm, ReLU, Dropout 0.2] -> Linear 360.

It returns logits; `scores` are their sigmoid, which the squared loss compares with Gaussian labels, and
`features` the last hidden layer. All that is random in it, initial weights and dropout, comes from its seed,
never from torch's global state: the same seed starts from the same weights on every device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.signal.angles import N_DIRECTIONS

try:
    import torch
except ImportError as error:
    raise MissingExtraError("networks", "train") from error
from torch import Tensor, nn

Layer = Literal["logits", "scores", "features"]


class BatchNorm(nn.Module):
    """Batch normalisation that also takes a single frame, which has no variance: running statistics then."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, Z: Tensor) -> Tensor:
        """(n_frames, width) -> same shape."""
        own = self.training and len(Z) > 1
        return nn.functional.batch_norm(
            Z, self.running_mean, self.running_var, self.weight, self.bias, training=own
        )


class Network(nn.Module, ABC):
    """What can be trained: logits from scaled features; its randomness comes from `generator`."""

    generator: torch.Generator
    """Of dropout, and of the order of frames in training."""

    @abstractmethod
    def features(self, X: Tensor) -> Tensor:
        """The last hidden layer."""

    def scores(self, X: Tensor) -> Tensor:
        """Sigmoid of the logits."""
        return torch.sigmoid(self(X))

    @torch.no_grad()
    def predict(self, X: Tensor, layer: Layer = "scores", batch: int = 8192) -> Tensor:
        """A layer as it is for testing: running statistics, no dropout, no gradient; in batches."""
        function = {"logits": self.__call__, "scores": self.scores, "features": self.features}[layer]
        was_training = self.training
        self.eval()
        try:
            return torch.cat([function(part) for part in torch.split(X, batch)])
        finally:
            self.train(was_training)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """All parameters and running statistics by name (copies)."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.state_dict().items()}

    @torch.no_grad()
    def load_arrays(self, arrays: dict[str, NDArray[np.float32]]) -> None:
        """Become the network that `arrays` came from; sizes must agree."""
        own = self.state_dict()
        if arrays.keys() != own.keys():
            raise TytoError(f"these arrays are of another network: {sorted(arrays.keys() ^ own.keys())}")
        for name, value in own.items():
            if arrays[name].shape != tuple(value.shape):
                raise TytoError(
                    f"{name} should be {tuple(value.shape)}, got {arrays[name].shape}: "
                    "was the network saved with another width, depth or number of inputs?"
                )
        for name, value in own.items():
            value.copy_(torch.tensor(arrays[name]))


class Mlp(Network):
    """The network; call it with scaled features (n_frames, n_inputs) for logits (n_frames, n_outputs).

    >>> network = Mlp(306, width=50)
    >>> network(torch.zeros(2, 306)).shape, network.features(torch.zeros(2, 306)).shape
    (torch.Size([2, 360]), torch.Size([2, 50]))
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int = N_DIRECTIONS,
        *,
        width: int = 1000,
        depth: int = 3,
        dropout: float = 0.2,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if min(n_inputs, n_outputs, width, depth) < 1 or not 0 <= dropout < 1:
            raise ValueError(
                f"sizes must be at least 1 and dropout in [0, 1), got inputs {n_inputs}, "
                f"outputs {n_outputs}, width {width}, depth {depth}, dropout {dropout}"
            )
        self.dropout = dropout
        sizes = [n_inputs] + [width] * depth
        initial = torch.Generator().manual_seed(seed)
        self.hidden = nn.ModuleList(_linear(a, width, initial) for a in sizes[:-1])
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(depth))
        self.output = _linear(width, n_outputs, initial)
        self.to(device)
        self.generator = torch.Generator(device).manual_seed(seed)

    def features(self, X: Tensor) -> Tensor:
        """The last hidden layer, (n_frames, width)."""
        Z = X
        for linear, norm in zip(self.hidden, self.norms, strict=True):
            Z = self._drop(torch.relu(norm(linear(Z))))
        return Z

    def forward(self, X: Tensor) -> Tensor:
        """Logits, (n_frames, n_outputs)."""
        logits: Tensor = self.output(self.features(X))
        return logits

    def _drop(self, Z: Tensor) -> Tensor:
        if not self.training or not self.dropout:
            return Z
        keep = torch.empty_like(Z).bernoulli_(1 - self.dropout, generator=self.generator)
        return Z * keep.mul_(1 / (1 - self.dropout))

    def copy(self) -> Mlp:
        """A second network with the same weights and nothing shared."""
        first = self.hidden[0]
        assert isinstance(first, nn.Linear)
        twin = Mlp(
            first.in_features,
            self.output.out_features,
            width=first.out_features,
            depth=len(self.hidden),
            dropout=self.dropout,
            device=self.generator.device,
        )
        twin.load_state_dict(self.state_dict())
        return twin


def _linear(n_inputs: int, n_outputs: int, generator: torch.Generator) -> nn.Linear:
    """torch's own initial values, uniform +-1/sqrt(n_inputs), from a generator."""
    linear = nn.Linear(n_inputs, n_outputs, device="meta").to_empty(device="cpu")  # draws nothing
    bound = n_inputs**-0.5
    with torch.no_grad():
        linear.weight.uniform_(-bound, bound, generator=generator)
        linear.bias.uniform_(-bound, bound, generator=generator)
    return linear
