"""How long the network for every array takes beside own priors: milliseconds of the CPU a frame."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import find_prior, shared_weights
from tytoalba.signal.array import builtin_arrays

N_FRAMES, TIMES = 64, 3


def milliseconds(prior: Prior) -> float:
    """The best of some runs, a frame; noise in place of features."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.1, (N_FRAMES, prior.gcc.n_features)).astype(np.float32)
    prior.logits(X)
    taken = []
    for _ in range(TIMES):
        start = time.process_time()
        prior.logits(X)
        taken.append(time.process_time() - start)
    return 1000 * min(taken) / N_FRAMES


def main() -> None:
    """Print a line for each built-in array that has a prior of its own."""
    for name, array in builtin_arrays().items():
        own, shared = find_prior(array), shared_weights().prior(replace(array, yaw=0.0))
        if own is not None:
            mine, all_arrays = milliseconds(own), milliseconds(shared)
            ratio = mine / all_arrays
            print(f"{name}: own {mine:.2f} ms, every array's {all_arrays:.2f} ms, {ratio:.1f} times faster")


if __name__ == "__main__":
    main()
