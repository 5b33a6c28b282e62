"""What priors take and give: GCC-PHAT in bands and windows, steering matrices, scores of logits."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import PriorError
from tytoalba.learning.prior.exact import GRID, MATRIX_GRID, Array
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import Band, GccPhat
from tytoalba.signal.srp import lag_matrix

PRIOR_BANDS: tuple[Band, ...] = ((100.0, 1000.0), (1000.0, 2000.0), (2000.0, 4000.0), (4000.0, 8000.0))
"""Hz. The GCC-PHAT of each band shows how reliable it is; their sum does not."""
PARTS = 4
"""Seven windows of 43 ms beside each frame of 171: two voices seldom fill all of them together."""
NEAR, MOST_NEAR = 1e-7, 10
"""Steps from an edge within which a steering value may be rounded either way, and how many may be. Kernels of
OpenBLAS differ by up to 7e-9 steps; of the arrays with a prior the nearest value is 3e-8 from an edge."""
TOP = 12.0
"""Logits are cut at +-TOP before they become scores."""


def prior_gcc(array: MicArray) -> GccPhat:
    """The features that priors of an array take: exact ones; those in floats are near enough."""
    bands = tuple(band for band in PRIOR_BANDS if band[0] < array.sample_rate / 2)
    return GccPhat.for_array(array, array.frame_length, bands, parts=PARTS, exact=True)


def steering_matrices(array: MicArray, gcc: GccPhat, digest: str = "") -> dict[str, NDArray[np.float64]]:
    """`steering_matrix` of whole frames, and of their windows where there are any.

    They are solved for with floats and rounded, so that a value next to a step may be rounded the other way
    on another machine. digest: their `steering_digest` where a state was made; values within NEAR of a step
    are tried both ways until it fits, and refused where it does not.
    """
    steps = {"matrix": _steered(array, gcc.whole)}
    steps |= {"window_matrix": _steered(array, gcc.window)} if gcc.n_windows else {}
    found = {name: np.round(values) / MATRIX_GRID for name, values in steps.items()}
    if digest and steering_digest(found) != digest:
        return _other_ways(steps, found, digest)
    return found


def steering_digest(matrices: dict[str, NDArray[np.float64]]) -> str:
    """A digest of rounded steering matrices, 16 hexadecimal digits."""
    found = hashlib.sha256()
    for _, values in sorted(matrices.items()):
        found.update((values * MATRIX_GRID).astype("<i4").tobytes())
    return found.hexdigest()[:16]


def steering_matrix(array: MicArray, gcc: GccPhat) -> NDArray[np.float64]:
    """From GCC-PHAT of bands and pairs to evidence for each azimuth: (n_bands x n_pairs, n_lags, 360)."""
    return np.asarray(np.round(_steered(array, gcc)) / MATRIX_GRID)


def _steered(array: MicArray, gcc: GccPhat) -> NDArray[np.float64]:
    """`steering_matrix` in steps, not rounded."""
    bands = [lag_matrix(replace(gcc, bands=band), array, ridge=1e-3) for band in gcc.band_list]
    steered = np.stack(bands).reshape(-1, gcc.n_lags, N_DIRECTIONS) * array.n_pairs
    return np.asarray(steered * MATRIX_GRID)


def _other_ways(
    steps: dict[str, NDArray[np.float64]], rounded: dict[str, NDArray[np.float64]], digest: str
) -> dict[str, NDArray[np.float64]]:
    """Matrices of that digest: as rounded, but for values next to a step, which go the other way."""
    near = []
    for name, values in steps.items():
        apart = np.abs(np.abs(values - np.round(values)) - 0.5).ravel()
        near += [(float(apart[at]), name, int(at)) for at in np.flatnonzero(apart < NEAR)]
    near = sorted(near)[:MOST_NEAR]
    for n in range(1, len(near) + 1):
        for some in combinations(near, n):
            found = {name: values.copy() for name, values in rounded.items()}
            for _, name, at in some:
                exact = steps[name].flat[at]
                both = np.floor(exact) + np.ceil(exact)
                found[name].flat[at] = (both - np.round(exact)) / MATRIX_GRID
            if steering_digest(found) == digest:
                return found
    raise PriorError(
        f"this machine computes other steering matrices ({len(near)} of their values lie next to a step) "
        "than the one on which this state was made: its lessons would not be known again. Use it with the "
        "version of numpy and on the type of CPU that made it, or teach a new state"
    )


def full_band(gcc: GccPhat, X: Array) -> Array:
    """GCC-PHAT of whole frames over all bands, (n_frames, n_pairs x n_lags), of that of each band.

    Whole numbers stay whole: bands count by their bins, in whole multiples of the narrowest, and the
    result is the sum over that many.
    """
    bins = [stop - start for start, stop in gcc.bins]
    bands = X[:, : gcc.whole.n_features].reshape(len(X), len(bins), len(gcc.pairs) * gcc.n_lags)
    total = bands[:, 0] * round(bins[0] / min(bins))
    for b in range(1, len(bins)):
        total = total + bands[:, b] * round(bins[b] / min(bins))
    return total


def scores(logits: Array) -> Array:
    """Scores in 0..1 of logits on their grid, float32, looked up: the same bits everywhere."""
    steps = (logits * GRID).clip(-TOP * GRID, TOP * GRID) + TOP * GRID
    if isinstance(logits, np.ndarray):
        return _SIGMOID[steps.astype(np.int64)]
    import torch

    return torch.tensor(_SIGMOID, device=logits.device)[steps.long()]


def _sigmoid_table() -> NDArray[np.float32]:
    logit = np.arange(-TOP * GRID, TOP * GRID + 1) / GRID
    return np.round(2.0**16 / (1.0 + np.exp(-logit))).astype(np.float32) / np.float32(2.0**16)


_SIGMOID = _sigmoid_table()
"""On a grid of 2^-16: an exponential that differs in its last bit gives the same."""
