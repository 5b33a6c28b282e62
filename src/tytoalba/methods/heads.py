"""Analytic heads inside a method's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.head import AnalyticHead, Statistics
from tytoalba.methods.method import Memory

NAMES = ("G", "Q", "y2", "n")


def listed(head: AnalyticHead, prefix: str) -> Memory:
    """What a head keeps, under names that begin with a prefix."""
    return {prefix + name: array for name, array in head.memory().items()}


def restored(like: AnalyticHead, memory: Memory, prefix: str = "") -> AnalyticHead:
    """A head of the same settings that knows what the memory says."""
    head = AnalyticHead(like.n_features, like.n_outputs, like.ridge, like.exact, like.device)
    wanted = head.memory()
    for name in NAMES:
        found = memory.get(prefix + name)
        if found is None or (found.dtype, found.shape) != (wanted[name].dtype, wanted[name].shape):
            came = "nothing" if found is None else f"{found.dtype} {found.shape}"
            raise TytoError(
                f"memory {prefix + name!r} must be {wanted[name].dtype} {wanted[name].shape}, got {came}; "
                "is it of another method, or of other settings (n_features, n_directions)?"
            )
    G, Q, y2 = (_placed(memory[prefix + name], head.device) for name in ("G", "Q", "y2"))
    return head._become(Statistics(G, Q, y2, int(memory[prefix + "n"])))


def _placed(array: NDArray[Any], device: str | None) -> Any:
    if device is None:
        return np.array(array)
    import torch

    return torch.from_numpy(np.array(array)).to(device)
