"""Maps of scores, for tests of what decides on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.angles import encode


def scores_of(seed: int, n_frames: int = 4, n_directions: int = 360) -> NDArray[np.float64]:
    """Maps of random bumps on noise, no two scores equal."""
    rng = np.random.default_rng(seed)
    bumps = encode(rng.uniform(0, 360, (n_frames, 3)), n_directions=n_directions)
    return np.asarray(bumps * rng.uniform(0.2, 1, (n_frames, 1)) + 0.2 * rng.random(bumps.shape))
