"""Features and codes of a made-up sound, which must have the same bits on every machine.

    python -m tests.golden.codes                 # compare with codes.json, all arrays that are built in
    python -m tests.golden.codes pepper          # one of them
    python -m tests.golden.codes --device=cuda   # with torch
    python -m tests.golden.codes --write         # anew: only where the front end changes on purpose

The sound is made of whole numbers alone: bytes of SHAKE-256, differences and sums of them. So this is a way
to see whether a CPU, an FFT, a BLAS or a device that no test ran on computes what all others do. It needs
the sources, numpy, scipy, safetensors and threadpoolctl, and no installation: PYTHONPATH=src.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.inputs import Inputs, views_of
from tytoalba.learning.method import Task
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.registry import fitting_prior
from tytoalba.signal.array import MicArray, builtin_arrays, load_array
from tytoalba.signal.audio import levels

STORED = Path(__file__).parent / "codes.json"
N_CODES, SEED = 64, 5


def sound(array: MicArray) -> NDArray[np.float32]:
    """Frames (8, n_mics, n_samples): noise, steep noise, a voice, tone, copies, clipping, click, silence."""
    n, mics = array.frame_length, array.n_mics
    words = hashlib.shake_256(f"tytoalba/codes/{array.name}".encode()).digest(2 * (mics + 1) * (n + 64))
    noise = np.frombuffer(words, "<i2").reshape(mics + 1, n + 64).astype(np.int64)
    at = np.arange(n)
    late = np.stack([noise[mics, 8 + 3 * m : 8 + 3 * m + n] for m in range(mics)])  # of one source
    steep = np.cumsum(noise[:mics, :n] - noise[:mics, 1 : n + 1] // 2, axis=1)
    rough = np.where((at // 7) % 16 < 3, late * ((at // 512) % 3 + 1), 0) // 4 + noise[:mics, :n] // 1024
    triangle = np.tile(np.abs(at * 2099 % 65536 - 32768) - 16384, (mics, 1))
    click = np.where(at == n // 3, 30000, 0) * np.ones((mics, 1), np.int64)
    kinds = [
        late + noise[:mics, :n] // 4,
        (steep - steep.mean(axis=1, keepdims=True).astype(np.int64)) // 64,
        rough,
        triangle,
        np.tile(noise[mics, :n], (mics, 1)),
        np.sign(noise[:mics, :n]) * 32767,
        click,
        0 * late,
    ]
    return (np.stack(kinds) / 65536).astype(np.float32)


def codes(name: str, device: str | None = None) -> dict[str, str]:
    """Digests of levels and features of an array's sound, and of codes and scores by the prior that fits it.

    device: of torch, else numpy.
    """
    array = load_array(name)
    gcc = prior_gcc(array)
    frames: Any = sound(array)
    level = levels(frames)
    if device is not None:
        import torch

        frames = torch.from_numpy(frames).to(device)
    X = gcc(frames).reshape(len(frames), gcc.n_features)
    heard = {"levels": _sha256(level), "features": _sha256(X)}
    prior, how = fitting_prior(array)  # its microphones may have another order
    gcc = prior_gcc(prior.array)
    X = gcc(how.in_order(frames)).reshape(len(frames), gcc.n_features)
    task = Task(gcc.n_features, seed=SEED, array=prior.array, gcc=gcc)
    inputs = Inputs(task, prior, N_CODES, 1.5, 1.0, SEED)
    found = [part for _, order in views_of(task)[:2] for part in inputs.codes(X[:, order])]
    return heard | {"codes": _sha256(*found[::2]), "scores": _sha256(*found[1::2])}


def _sha256(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        values = np.asarray(part if isinstance(part, np.ndarray) else part.cpu())
        found.update(f"{values.dtype.str}{values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def main(arguments: list[str]) -> int:
    """Compare, or write; the number of arrays that differ."""
    os.environ["TYTO_PRIORS"] = str(Path(__file__).parent / "none")  # only those that are shipped
    device = next((a.removeprefix("--device=") for a in arguments if a.startswith("--device=")), None)
    names = [a for a in arguments if not a.startswith("--")] or list(builtin_arrays())
    found = {name: codes(name, device) for name in names}
    if "--write" in arguments:
        STORED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    wrong = 0
    for name, own in found.items():
        differ = [what for what, digest in own.items() if stored[name][what] != digest]
        wrong += bool(differ)
        print(f"{name}: {'DIFFERS in ' + ', '.join(differ) if differ else 'the same'}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
