"""MUSIC: directions whose steering vector lies in the span of the loudest eigenvectors.

Broadband and normalised: a frame is cut into short snapshots, each frequency gets a spatial covariance
and a pseudo-spectrum 1 / (1 - |projection onto the signal space|^2), scaled to a largest value of 1 so
that no frequency shouts down the others; the map is their mean, in (0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import AudioError
from tytoalba.signal.angles import N_DIRECTIONS, Float, grid
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import SPEECH_BAND, Band

FLOOR = 1e-3
"""Keeps the pseudo-spectrum of a noise-free frame finite."""


@dataclass(frozen=True)
class Music:
    """MUSIC maps of frames: call it with (n_frames, n_mics, n_samples) -> (n_frames, n_directions).

    Parameters
    ----------
    array : MicArray
        The microphones.
    n_samples : int
        Samples per frame; 0 for the array's own, `array.frame_length`.
    band : tuple of float
        Lowest and highest frequency, Hz.
    n_sources : int
        Dimension of the signal space, less than the number of microphones.
    n_fft : int
        Samples of a snapshot; snapshots overlap by half. 0 for an eighth of the frame.
    n_directions : int
        Azimuths of the map, from 0 degrees up.
    elevation : float
        Degrees at which sources are expected.

    Returns
    -------
    array, (n_frames, n_directions)
        In (0, 1]; a silent frame is 1 everywhere.

    Raises
    ------
    AudioError
        Frames of another shape, or not finite.

    Examples
    --------
    >>> from tytoalba import load_array
    >>> music = Music(load_array("respeaker-usb-4"))
    >>> music.n_samples, music(np.random.default_rng(0).standard_normal((2, 4, 2730))).shape
    (2730, (2, 360))
    """

    array: MicArray
    n_samples: int = 0
    band: Band = SPEECH_BAND
    n_sources: int = 1
    n_fft: int = 0
    n_directions: int = N_DIRECTIONS
    elevation: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_samples", self.n_samples or self.array.frame_length)
        object.__setattr__(self, "n_fft", self.n_fft or 2 * (self.n_samples // 16))
        if not 1 <= self.n_sources < self.array.n_mics:
            raise ValueError(
                f"MUSIC with {self.array.n_mics} microphones finds 1 to {self.array.n_mics - 1} sources, "
                f"asked for {self.n_sources}"
            )
        if not 4 <= self.n_fft <= self.n_samples:
            raise ValueError(f"n_fft must be between 4 and the frame's {self.n_samples}, got {self.n_fft}")
        if not len(self._bins):
            raise ValueError(f"band {self.band} Hz holds no frequency of {self.n_fft}-sample snapshots")

    @property
    def _bins(self) -> NDArray[np.intp]:
        hertz = np.arange(self.n_fft // 2 + 1) * (self.array.sample_rate / self.n_fft)
        low, high = self.band
        return np.flatnonzero((hertz >= max(low, 1e-9)) & (hertz <= high))  # 0 Hz has no direction

    def __call__(self, frames: Float, weights: Float | None = None) -> Float:
        """Maps (n_frames, n_directions) of frames (n_frames, n_mics, n_samples); silence gives a flat map.

        weights: how much each frequency of the band counts, (n_frames, n), from its lowest to its highest;
        alike if not given.
        """
        x = np.asarray(frames)
        if x.ndim != 3 or x.shape[1:] != (self.array.n_mics, self.n_samples):
            raise AudioError(
                f"frames must be (n_frames, {self.array.n_mics}, {self.n_samples}), got shape {x.shape}"
            )
        if not np.isfinite(x).all():
            raise AudioError("a frame holds NaN or infinite samples; audio.check says where")
        each = None if weights is None else self._own(np.asarray(weights, np.float64))
        starts = range(0, len(x), 8)
        blocks = [self._maps(x[k : k + 8], None if each is None else each[k : k + 8]) for k in starts]
        return np.concatenate(blocks) if blocks else np.empty((0, self.n_directions))

    def _own(self, weights: Float) -> Float:
        """Weights (n_frames, n) of a band at the snapshots' frequencies: (n_frames, n_bins)."""
        edges = np.linspace(0, weights.shape[1], len(self._bins) + 1).astype(np.intp)
        return np.asarray(np.add.reduceat(weights, edges[:-1], axis=1) / np.maximum(np.diff(edges), 1))

    def _maps(self, x: Float, weights: Float | None = None) -> Float:
        from scipy.fft import rfft

        snapshots = np.lib.stride_tricks.sliding_window_view(x, self.n_fft, axis=-1)
        snapshots = snapshots[:, :, :: self.n_fft // 2] * np.hanning(self.n_fft)  # (F, M, T, S)
        X = rfft(snapshots, axis=-1)[..., self._bins].transpose(0, 3, 1, 2)  # (F, K, M, T)
        covariance = X @ X.conj().swapaxes(-1, -2)  # (F, K, M, M)
        _, vectors = np.linalg.eigh(covariance)
        signal = vectors[..., -self.n_sources :].conj().swapaxes(-1, -2)  # (F, K, n, M)
        projected = signal @ _steering(self)  # (F, K, n, C)
        inside = (projected.real**2 + projected.imag**2).sum(axis=2)  # (F, K, C), in [0, 1]
        pseudo = 1.0 / (1.0 - np.minimum(inside, 1.0) + FLOOR)
        pseudo /= pseudo.max(axis=-1, keepdims=True)
        silent = np.trace(covariance, axis1=-2, axis2=-1).real <= 0  # (F, K)
        pseudo[silent] = 1.0
        if weights is None:
            return np.asarray(pseudo.mean(axis=1))
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
        return np.asarray((pseudo * share[..., None]).sum(axis=1))


@lru_cache(maxsize=4)
def _steering(music: Music) -> NDArray[np.complexfloating]:
    """Unit steering vectors (n_bins, n_mics, n_directions)."""
    omega = 2 * np.pi * music._bins * (music.array.sample_rate / music.n_fft)
    arrival = music.array.arrival_times(grid(music.n_directions), music.elevation)  # (C, M)
    phase = omega[:, None, None] * arrival.T
    return np.asarray(np.exp(-1j * phase) / np.sqrt(music.array.n_mics))
