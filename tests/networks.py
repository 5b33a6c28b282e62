"""Networks behind priors, without the time that training takes."""

from __future__ import annotations

from typing import Any

from tytoalba.gcc import GccPhat
from tytoalba.geometry import MicArray
from tytoalba.prior import steering_matrices


def trained_like(array: MicArray, gcc: GccPhat, width: int = 5, seed: int = 0, n_blocks: int = 4) -> Any:
    """A network whose biases are not zero and whose normalisation is not the identity."""
    import torch

    from tytoalba.backbone import BatchNorm
    from tytoalba.steered import Steered

    network = Steered(steering_matrices(array, gcc), width=width, n_blocks=n_blocks, seed=seed)
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in network.named_parameters():
            if name in ("place", "level") or name.startswith("bias"):
                value.add_(torch.empty(value.shape).uniform_(-0.5, 0.5, generator=chance))
        norms = [module for module in network.modules() if isinstance(module, BatchNorm)]
        assert len(norms) == n_blocks + 1 + (gcc.n_windows > 0)
        for norm in norms:
            norm.weight.uniform_(0.5, 1.5, generator=chance)
            norm.bias.uniform_(-0.5, 0.5, generator=chance)
            norm.running_mean.uniform_(-0.5, 0.5, generator=chance)
            norm.running_var.uniform_(0.5, 2.0, generator=chance)
    return network.eval()
