"""Small networks for every array, and features of arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared.geometry import Geometry
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.array import MicArray


@cache
def weights(seed: int = 0, width: int = 8) -> SharedWeights:
    """A network that has learned nothing, with larger weights than one that has."""
    import torch

    from tytoalba.learning.prior.shared.network import SharedNetwork

    network = SharedNetwork(width, 8, 6, 2, seed=seed)
    with torch.no_grad():
        for name, weight in network.weights.items():
            weight *= 3.0 if name == "leave" else 1.5
    return SharedWeights(network.eval().quantised(), {"seed": seed}, {})


def features(array: MicArray, n: int = 3, seed: int = 0) -> NDArray[np.float32]:
    """GCC-PHAT of noise that comes from somewhere, (n, n_features)."""
    from tests.helpers.waves import plane_waves

    azimuth = np.random.default_rng(seed).uniform(0, 360, n)
    gcc = prior_gcc(array)
    made: Any = gcc(plane_waves(array, azimuth, noise=0.3))
    return np.asarray(made, np.float32).reshape(n, gcc.n_features)


def geometry(array: MicArray) -> Geometry:
    """What a network is told of an array."""
    return Geometry.of(array, prior_gcc(array))
