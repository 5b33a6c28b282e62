"""SRP-PHAT: steer the array to every azimuth and add up what its pairs agree on.

The map of a frame is, for each azimuth, the mean over pairs of GCC-PHAT at the delay that a plane
wave from there would have: 1 for a pure plane wave, about 0 for noise. Two forms:

- exact: evaluated in the frequency domain, one matrix product;
- fast: from GCC-PHAT at whole lags by band-limited interpolation (least squares over the band), so
  that features which are there anyway become a map with one small product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.signal.angles import N_DIRECTIONS, Float, grid
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import SPEECH_BAND, Band, GccPhat

Form = Literal["fast", "exact"]
LAG_MARGIN = 8
"""Lags beyond the largest delay that the fast form looks at to interpolate well."""


@dataclass(frozen=True)
class SrpPhat:
    """SRP-PHAT maps of frames: call it with (n_frames, n_mics, n_samples) -> (n_frames, n_directions).

    Parameters
    ----------
    array : MicArray
        The microphones.
    n_samples : int
        Samples per frame; 0 for the array's own, `array.frame_length`.
    band : tuple of float
        Lowest and highest frequency, Hz.
    form : {"fast", "exact"}
        From GCC-PHAT at whole lags by interpolation, or in the frequency domain.
    n_directions : int
        Azimuths of the map, from 0 degrees up.
    elevation : float
        Degrees at which sources are expected.

    Returns
    -------
    array, (n_frames, n_directions)
        1 for a pure plane wave, about 0 for noise. float64 for float64 frames, else float32.

    Raises
    ------
    AudioError
        Frames of another shape, or not finite.

    Examples
    --------
    >>> from tytoalba.signal.array import load_array
    >>> array = load_array("pepper")
    >>> noise = np.random.default_rng(0).standard_normal(8192)
    >>> spectrum, hertz = np.fft.rfft(noise), np.fft.rfftfreq(8192, 1 / array.sample_rate)
    >>> delayed = spectrum * np.exp(-2j * np.pi * hertz * array.arrival_times(135.0)[:, None])
    >>> int(SrpPhat(array)(np.fft.irfft(delayed)[None]).argmax())
    135
    """

    array: MicArray
    n_samples: int = 0
    band: Band = SPEECH_BAND
    form: Form = "fast"
    n_directions: int = N_DIRECTIONS
    elevation: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_samples", self.n_samples or self.array.frame_length)
        if self.form not in ("fast", "exact"):
            raise ValueError(f"form must be 'fast' or 'exact', got {self.form!r}")
        if self.n_directions < 2 or not np.isfinite(self.elevation):
            raise ValueError("n_directions must be at least 2 and elevation finite degrees")

    @cached_property
    def gcc(self) -> GccPhat:
        """The features that the map is made of."""
        reach = int(np.ceil(self.array.max_delay)) + LAG_MARGIN
        return GccPhat.for_array(self.array, self.n_samples, self.band, min(reach, self.n_samples // 2 - 1))

    def __call__(self, frames: Float) -> Float:
        """Maps (n_frames, n_directions) of frames (n_frames, n_mics, n_samples)."""
        if self.form == "fast":
            return self.of_gcc(self.gcc(frames))
        x = self.gcc.checked(frames)
        cosine, sine = _steering(self, x.dtype.str)
        maps = np.empty((len(x), self.n_directions), x.dtype)
        for rows, real, imag in self.gcc.cross_spectra(x, block=32):
            n = len(real)
            maps[rows] = real.reshape(n, -1) @ cosine - imag.reshape(n, -1) @ sine
        if not np.isfinite(maps).all():
            self.gcc(frames)  # says what is wrong with the frames
        return maps

    def of_gcc(self, gcc: Float) -> Float:
        """Maps of what `gcc` gave, by the fast form."""
        dtype = "<f8" if gcc.dtype == np.float64 else "<f4"
        return srp_from_gcc(gcc, _lag_matrix(self.gcc, self.array, self.n_directions, self.elevation, dtype))


def srp_from_gcc(gcc: Float, matrix: Float) -> Float:
    """SRP maps (n_frames, n_directions) of GCC-PHAT (n_frames, n_pairs, n_lags) by a `lag_matrix`."""
    maps: Float = gcc.reshape(len(gcc), 1, len(matrix)) @ matrix  # a product a frame: batch-independent
    return maps[:, 0]


def lag_matrix(
    gcc: GccPhat,
    array: MicArray,
    n_directions: int = N_DIRECTIONS,
    elevation: float = 0.0,
    ridge: float = 1e-7,
) -> NDArray[np.float64]:
    """Matrix (n_pairs x n_lags, n_directions) that turns single-band GCC-PHAT values into an SRP map.

    For each delay tau the weights a of the lags l minimise the mean over the band of
    |exp(i w tau) - sum_l a_l exp(i w l)|^2: truncated sinc interpolation over the full band, and much
    better than that for a narrower one. ridge: keeps the weights small where the lags cannot tell, such as
    delays beside the last lag in a band up to Nyquist.
    """
    delays = array.pair_delays(grid(n_directions), elevation) * gcc.sample_rate  # (C, P) samples
    solution = _solved(gcc, delays.T, ridge)
    return np.asarray(solution.reshape(-1, n_directions) / delays.shape[1])


def interpolation(gcc: GccPhat, band: Band, delays: Float, ridge: float = 1e-7) -> NDArray[np.float64]:
    """Weights (n_delays, n_lags) that give GCC-PHAT of a band at delays (in samples) from its whole lags.

    >>> from tytoalba.signal.array import load_array
    >>> gcc = GccPhat.for_array(load_array("pepper"), 8192)
    >>> weights = interpolation(gcc, (0.0, 24000.0), np.array([3.0]))
    >>> int(weights[0].argmax()) - gcc.max_lag, round(float(weights.sum()), 3)
    (3, 1.0)
    """
    return np.asarray(_solved(replace(gcc, bands=band), delays[None], ridge)[0].T)


def _solved(gcc: GccPhat, delays: Float, ridge: float) -> Float:
    """Weights of lags (n, n_lags, m) at delays (n, m) in samples, by least squares over the band."""
    lags = np.arange(-gcc.max_lag, gcc.max_lag + 1.0)
    gram = _mean_cosine(gcc, lags[:, None] - lags[None])  # (L, L)
    target = _mean_cosine(gcc, lags[None, :, None] - delays[:, None, :])  # (P, L, C)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(lags)), target))


def _mean_cosine(gcc: GccPhat, shift: Float) -> Float:
    """sum_k w_k cos(2 pi k shift / n) / sum_k w_k over the (first) band, in closed form."""
    start, stop = gcc.bins[0]
    n = gcc.n_samples
    half = np.where(np.abs(shift) < 1e-9, 1e-9, shift) * (np.pi / n)  # the sum is even and flat at 0
    total = (np.sin((2 * stop - 1) * half) - np.sin((2 * start - 1) * half)) / np.sin(half)
    total = total - (start == 0) - (2 * (stop - 1) == n) * np.cos(n * half)
    count = 2 * (stop - start) - (start == 0) - (2 * (stop - 1) == n)
    return np.asarray(total / count)


@lru_cache(maxsize=16)
def _lag_matrix(gcc: GccPhat, array: MicArray, n_directions: int, elevation: float, dtype: str) -> Float:
    return lag_matrix(gcc, array, n_directions, elevation).astype(dtype)


@lru_cache(maxsize=4)
def _steering(srp: SrpPhat, dtype: str) -> tuple[Float, Float]:
    """w cos(w tau) and w sin(w tau) of every pair, bin and azimuth: (n_pairs x n_bins, n_directions)."""
    start, stop = srp.gcc.span
    omega = 2 * np.pi / srp.gcc.n_samples * np.arange(start, stop)
    delays = srp.array.pair_delays(grid(srp.n_directions), srp.elevation) * srp.gcc.sample_rate
    weight = srp.gcc.bin_weights(start, stop)[:, None] / len(srp.gcc.pairs)
    shape = (len(srp.gcc.pairs), stop - start, srp.n_directions)
    cosine, sine = np.empty(shape, dtype), np.empty(shape, dtype)
    for p in range(shape[0]):  # a pair at a time keeps the float64 intermediate small
        phase = np.multiply.outer(omega, delays[:, p])
        cosine[p], sine[p] = weight * np.cos(phase), weight * np.sin(phase)
    return cosine.reshape(-1, srp.n_directions), sine.reshape(-1, srp.n_directions)


def srp_phat(
    frames: ArrayLike, array: MicArray, band: Band | Sequence[float] = SPEECH_BAND, form: Form = "fast"
) -> Float:
    """SRP-PHAT maps of frames; see `SrpPhat`.

    Parameters
    ----------
    frames : array, (n_frames, n_mics, n_samples)
        Sound of each microphone.
    array : MicArray
        The microphones.
    band : tuple of float
        Lowest and highest frequency, Hz.
    form : {"fast", "exact"}
        How it is computed.

    Returns
    -------
    array, (n_frames, 360)
        For each azimuth in degrees how well the pairs of microphones agree on it.

    Raises
    ------
    AudioError
        Frames that are not (n_frames, n_mics, n_samples), or not finite.

    Examples
    --------
    >>> from tytoalba import load_array
    >>> srp_phat(np.zeros((2, 4, 2048)), load_array("pepper")).shape
    (2, 360)
    """
    x = np.asarray(frames)
    low, high = band
    return SrpPhat(array, x.shape[-1], (low, high), form)(x)
