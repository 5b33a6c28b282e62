"""Networks behind priors without the time that training takes, what they hear, and files of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from tests.helpers.waves import plane_waves
from tytoalba.learning.prior.features import prior_gcc, steering_matrices
from tytoalba.learning.prior.prior import Prior
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.gcc import GccPhat

MINE = replace(load_array("respeaker-usb-4"), name="mine", yaw=7.0)
"""Mounted as no array that a prior is shipped for."""


def trained_like(array: MicArray, gcc: GccPhat, width: int = 5, seed: int = 0, n_blocks: int = 4) -> Any:
    """A network whose biases are not zero and whose normalisation is not the identity."""
    import torch

    from tytoalba.learning.network import BatchNorm
    from tytoalba.learning.prior.network import PriorNetwork

    network = PriorNetwork(steering_matrices(array, gcc), width=width, n_blocks=n_blocks, seed=seed)
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


@cache
def heard_all_around() -> NDArray[np.float32]:
    """Features of waves from all around, some hardly to be heard, and of silence."""
    loud, faint = (plane_waves(MINE, np.arange(0, 360, 9.0), noise=noise) for noise in (0.3, 5.0))
    frames = np.concatenate([loud, faint, np.zeros_like(loud[:1])])
    return np.asarray(prior_gcc(MINE)(frames), np.float32).reshape(len(frames), -1)


@cache
def prior_of_mine() -> Prior:
    """As if it had been trained, but not calibrated."""
    gcc, X = prior_gcc(MINE), heard_all_around()
    made = Prior.quantised(MINE, gcc, trained_like(MINE, gcc).folded(), about={"n_frames": 1})
    logits = made.logits(X)
    spread = 1.0 + logits.std(axis=0)
    constants = {"logit_mean": logits.mean(axis=0).tolist(), "logit_spread": spread.tolist()}
    return replace(made.with_frames(X[:20]), constants=constants)


Alter = Callable[[dict[str, Any], dict[str, Any]], None]


def altered(prior: Prior, folder: Path, change: Alter) -> Path:
    """A file that was tampered with: `change` gets its header and its arrays."""
    path = folder / "altered.safetensors"
    prior.save(path)
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["tytoalba"])
    arrays = load_file(path)
    change(header, arrays)
    save_file(arrays, path, {"tytoalba": json.dumps(header)})
    return path
