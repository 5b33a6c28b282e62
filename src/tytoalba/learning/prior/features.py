"""What priors take and give: GCC-PHAT in bands and windows, steering matrices, scores of logits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.prior.exact import GRID, MATRIX_GRID, Array
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import Band, GccPhat
from tytoalba.signal.srp import lag_matrix

PRIOR_BANDS: tuple[Band, ...] = ((100.0, 1000.0), (1000.0, 2000.0), (2000.0, 4000.0), (4000.0, 8000.0))
"""Hz. The GCC-PHAT of each band shows how reliable it is; their sum does not."""
PARTS = 4
"""Seven windows of 43 ms beside each frame of 171: two voices seldom fill all of them together."""
TOP = 12.0
"""Logits are cut at +-TOP before they become scores."""


def prior_gcc(array: MicArray) -> GccPhat:
    """The features that priors of an array take: exact ones; those in floats are near enough."""
    bands = tuple(band for band in PRIOR_BANDS if band[0] < array.sample_rate / 2)
    return GccPhat.for_array(array, array.frame_length, bands, parts=PARTS, exact=True)


def steering_matrices(array: MicArray, gcc: GccPhat) -> dict[str, NDArray[np.float64]]:
    """`steering_matrix` of whole frames, and of their windows where there are any."""
    found = {"matrix": steering_matrix(array, gcc.whole)}
    return found | ({"window_matrix": steering_matrix(array, gcc.window)} if gcc.n_windows else {})


def steering_matrix(array: MicArray, gcc: GccPhat) -> NDArray[np.float64]:
    """From GCC-PHAT of bands and pairs to evidence for each azimuth: (n_bands x n_pairs, n_lags, 360)."""
    bands = [lag_matrix(replace(gcc, bands=band), array, ridge=1e-3) for band in gcc.band_list]
    steered = np.stack(bands).reshape(-1, gcc.n_lags, N_DIRECTIONS) * array.n_pairs
    return np.asarray(np.round(steered * MATRIX_GRID) / MATRIX_GRID)


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
