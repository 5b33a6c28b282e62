"""GCC-PHAT: how similar two microphones sound at each lag, every frequency counted alike.

The one sign of this project: **a positive lag means that the sound reached microphone i first and j
that many samples later** (pair (i, j), i < j). For a band of frequencies, lag l and whitened cross
spectrum C_k = conj(X_i,k) X_j,k / |X_i,k X_j,k|,

    gcc(l) = sum_k w_k Re(C_k exp(2 pi i k l / n)) / sum_k w_k,   w_k = 2, or 1 at 0 Hz and Nyquist,

which over the full band is the inverse FFT of C. A pure whole-sample delay peaks at exactly 1; a bin
without energy counts 0, so silence gives zeros, never NaN. Frames are weighted with a periodic Hamming
window. A frame's values do not depend on which frames it is computed with, to the bit; `exact` ones not even
on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import AudioError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.phases import PHASE_BITS, cosines, hamming, phases, phases_of_tensor

if TYPE_CHECKING:
    import torch

    Frames = TypeVar("Frames", Float, torch.Tensor)
else:
    Frames = TypeVar("Frames")

Band = tuple[float, float]
FULL_BAND: Band = (0.0, np.inf)
SPEECH_BAND: Band = (100.0, 8000.0)
"""Hz; more accurate and faster than the full band for speech of 8 kHz bandwidth."""
LONGEST_EXACT = 2**20
"""Samples of a frame whose sums of whole numbers stay below 2^53."""
FEWEST = 512.0
"""Sum of squared weights, in 64ths, as which fewer count: a handful of bins is no direction."""
SAMPLES_AT_ONCE = 2**17
"""Of all microphones: what stays in the cache of a processor."""


@dataclass(frozen=True)
class GccPhat:
    """GCC-PHAT of frames of one length: call it with (n_frames, n_mics, n_samples).

    Parameters
    ----------
    pairs : tuple of (int, int)
        Microphones i and j of each pair.
    n_samples : int
        Samples per frame.
    sample_rate : int
        Hz.
    max_lag : int
        Lags kept on either side, in samples.
    bands : (low, high) or tuple of them
        Hz, inclusive; their union is computed once.
    parts : int
        Beside the whole frame, windows of 1/parts of it are transformed, each half a window after the last:
        2 parts - 1 of them, or none for 1. Who talks changes from one to the next.
    exact : bool
        Phases are rounded to steps of 2^-11 (`phases`) and all sums are those of whole numbers: the same bits
        whatever the FFT, BLAS, number of threads, batch, CPU or device, in up to twice the time.

    Returns
    -------
    array, (n_frames, n_bands, n_pairs, 2 max_lag + 1)
        Without the axis of bands if `bands` is a single (low, high). With parts, the second axis is the bands
        of the whole frame, then those of each window. float64 frames are computed in float64, anything else
        in float32; torch tensors stay on their device.

    Raises
    ------
    AudioError
        Frames of another shape, or not finite.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal(1024)
    >>> frame = np.stack([x, np.roll(x, 3)])[None]  # microphone 1 hears it 3 samples later
    >>> gcc = GccPhat(pairs=((0, 1),), n_samples=1024, sample_rate=16000, max_lag=8)
    >>> int(gcc(frame).argmax()) - gcc.max_lag
    3
    """

    pairs: tuple[tuple[int, int], ...]
    n_samples: int
    sample_rate: int
    max_lag: int
    bands: Band | tuple[Band, ...] = FULL_BAND
    parts: int = 1
    exact: bool = False

    def __post_init__(self) -> None:
        if not self.pairs or any(i == j or min(i, j) < 0 for i, j in self.pairs):
            raise ValueError(f"pairs must be two different microphones each, got {self.pairs}")
        if self.n_samples < 2 or self.sample_rate <= 0:
            raise ValueError("n_samples must be at least 2 and sample_rate positive")
        if not 0 <= self.max_lag < self.n_samples / 2:
            raise ValueError(f"max_lag must be below half of {self.n_samples} samples, got {self.max_lag}")
        object.__setattr__(self, "bands", _tidy_bands(self.bands))
        for (low, high), (start, stop) in zip(self.band_list, self.bins, strict=True):
            if stop <= start:
                raise ValueError(
                    f"band {low:g}-{high:g} Hz holds no frequency of a {self.n_samples}-sample frame "
                    f"at {self.sample_rate} Hz (Nyquist {self.sample_rate / 2:g} Hz)"
                )
        if self.parts < 1:
            raise ValueError(f"parts must be at least 1, got {self.parts}")
        if self.exact and self.n_samples > LONGEST_EXACT:
            raise ValueError(f"exact frames have at most {LONGEST_EXACT} samples, got {self.n_samples}")
        if self.parts > 1:
            _ = self.window  # says what is wrong with windows so short

    @classmethod
    def for_array(
        cls,
        array: MicArray,
        n_samples: int = 0,
        bands: Band | Sequence[Band] = FULL_BAND,
        max_lag: int | None = None,
        parts: int = 1,
        exact: bool = False,
    ) -> GccPhat:
        """All pairs of an array; by default its frames (`frame_length`) and its lags (`max_lag`)."""
        lag = array.max_lag if max_lag is None else max_lag
        n = n_samples or array.frame_length
        return cls(array.pairs, n, array.sample_rate, lag, _tidy_bands(bands), parts, exact)

    @cached_property
    def whole(self) -> GccPhat:
        """The same of whole frames alone; its values come first."""
        return replace(self, parts=1)

    @cached_property
    def window(self) -> GccPhat:
        """The same of one window."""
        return replace(self, n_samples=self.n_samples // self.parts, parts=1)

    @property
    def n_windows(self) -> int:
        """Windows beside the whole frame."""
        return 0 if self.parts == 1 else 2 * self.parts - 1

    @property
    def n_looks(self) -> int:
        """How often a pair is looked at: bands x (whole frame and windows)."""
        return len(self.band_list) * (1 + self.n_windows)

    @property
    def band_list(self) -> tuple[Band, ...]:
        """The bands, also where there is only one."""
        return self.bands if isinstance(self.bands[0], tuple) else (self.bands,)

    @cached_property
    def bins(self) -> tuple[tuple[int, int], ...]:
        """FFT bins [start, stop) of each band."""
        width = self.sample_rate / self.n_samples
        n_bins = self.n_samples // 2 + 1
        limits = []
        for low, high in self.band_list:
            stop = n_bins if high >= self.sample_rate / 2 else int(np.floor(high / width + 1e-9)) + 1
            limits.append((int(np.ceil(low / width - 1e-9)), stop))
        return tuple(limits)

    @property
    def band_shares(self) -> NDArray[np.float64]:
        """How much of all bins each band has."""
        widths = np.array([stop - start for start, stop in self.bins], np.float64)
        return np.asarray(widths / widths.sum())

    @cached_property
    def span(self) -> tuple[int, int]:
        """FFT bins [start, stop) that any band needs."""
        return min(start for start, _ in self.bins), max(stop for _, stop in self.bins)

    @property
    def n_lags(self) -> int:
        """Lags in the result, 2 max_lag + 1."""
        return 2 * self.max_lag + 1

    @property
    def n_features(self) -> int:
        """Values a frame: looks x pairs x lags."""
        return self.n_looks * len(self.pairs) * self.n_lags

    def bin_weights(self, start: int, stop: int) -> NDArray[np.float64]:
        """w_k / sum w of the FFT bins [start, stop)."""
        k = np.arange(start, stop)
        weight = np.where((k == 0) | (2 * k == self.n_samples), 1.0, 2.0)
        share: NDArray[np.float64] = weight / weight.sum()
        return share

    def __call__(self, frames: Frames) -> Frames:
        """GCC-PHAT of (n_frames, n_mics, n_samples)."""
        if self.parts > 1:
            return cast(Frames, self._with_windows(frames))
        if type(frames).__module__.startswith("torch"):
            return cast(Frames, self._torch(frames))
        x = self.checked(frames)
        result: Any = self._exactly([x]) if self.exact else self._quickly(x)
        _refuse_nonfinite(bool(np.isfinite(result).all()))
        return cast(Frames, result[:, 0] if self.bands is self.band_list[0] else result)

    def _quickly(self, x: Float) -> Float:
        result: Any = np.empty((len(x), len(self.band_list), len(self.pairs), self.n_lags), x.dtype)
        for rows, real, imag in self.cross_spectra(x):
            for b, (even, odd) in enumerate(self._transforms(x.dtype.str)):
                band = slice(self.bins[b][0] - self.span[0], self.bins[b][1] - self.span[0])
                # one product a frame (matmul over the stack): its rounding cannot depend on the batch
                _fold(result[rows, b], real[..., band] @ even, imag[..., band] @ odd)
        return np.asarray(result)

    def _with_windows(self, frames: Any) -> Any:
        self._check_shape(tuple(frames.shape))
        is_tensor = type(frames).__module__.startswith("torch")
        x = frames if is_tensor else self.checked(frames)
        cut = self.cut_windows(x)
        if self.exact and not is_tensor:
            looks: list[Any] = [self.whole._exactly([x]), self.window._exactly(cut)]
            _refuse_nonfinite(all(bool(np.isfinite(look).all()) for look in looks))
        else:
            shape = len(x), len(self.band_list), len(self.pairs), self.n_lags
            looks = [look.reshape(shape) for look in (self.whole(x), *map(self.window, cut))]
        if not is_tensor:
            return np.concatenate(looks, axis=1)
        import torch

        return torch.cat(looks, dim=1)

    def _exactly(self, looks: list[Float]) -> Float:
        """GCC-PHAT of looks (n_frames, n_mics, n_samples) at the same frames: bands of one after another."""
        n_frames, n_mics, n = looks[0].shape
        n_looks = len(looks)
        shape = n_looks * len(self.band_list), len(self.pairs), self.n_lags
        result: Any = np.empty((n_frames, *shape), looks[0].dtype)
        block = max(1, SAMPLES_AT_ONCE // (n_looks * n_mics * n))
        for first in range(0, n_frames, block):
            rows = slice(first, min(first + block, n_frames))
            real, imag, _ = self.exact_spectra([look[rows] for look in looks])
            result[rows] = self.exact_sums(real, imag).reshape(-1, *shape)
        return np.asarray(result)

    def exact_spectra(self, looks: list[Float], powers: bool = False) -> tuple[Float, Float, Float | None]:
        """Products of each pair's phases, whole (n_pairs, n_frames x n_looks, n_bins): real, imaginary.

        looks: (n_frames, n_mics, n_samples) each. powers: also those of all microphones, (n_frames x n_looks,
        n_bins), rounded. Microphones come first on the way, so that what belongs together lies together.
        """
        from scipy.fft import rfft

        n_frames, n_mics, n = looks[0].shape
        window, n_bins = hamming(n), self.span[1] - self.span[0]
        weighted = np.empty((n_mics, n_frames, len(looks), n))
        for number, look in enumerate(looks):
            np.multiply(look.swapaxes(0, 1), window, out=weighted[:, :, number])
        flat = weighted.reshape(n_mics, -1, n)
        power = np.empty((n_mics, flat.shape[1], n_bins)) if powers else None
        with np.errstate(invalid="ignore"):  # infinite samples become NaN, and are refused
            real, imag = self._crossed(*phases(flat, *self.span, rfft, power))
        if power is None:
            return real, imag, None
        total = power[0]
        for one in power[1:]:  # in this order everywhere
            total = total + one
        return real, imag, total

    def exact_sums(self, real: Float, imag: Float, weights: Float | None = None) -> Float:
        """GCC-PHAT (n, n_bands, n_pairs, n_lags) of products of phases (n_pairs, n, n_bins).

        weights: of the bins in eighths, whole numbers (n, n_bins). What is left of a band is scaled so that
        noise in it stays as large as it was; equal weights of 8 change nothing, to the bit.
        """
        if weights is not None:
            real, imag = (np.rint(part * (weights * 0.125)) for part in (real, imag))
        result = np.empty((real.shape[1], len(self.band_list), len(self.pairs), self.n_lags))
        for b, (even, odd, unit) in enumerate(whole_transforms(self)):
            band = slice(self.bins[b][0] - self.span[0], self.bins[b][1] - self.span[0])
            whole = np.empty((len(self.pairs), real.shape[1], self.n_lags))
            _fold(whole, real[..., band] @ even, imag[..., band] @ odd)
            whole *= unit
            if weights is not None:
                whole *= self._scale(weights, b)[:, None]
            np.add(whole.swapaxes(0, 1), 0.0, out=result[:, b])  # no -0.0
        return result

    def _scale(self, weights: Float, b: int) -> Float:
        """By what to multiply the weighted sum of a band, (n,): 1 where all weights are 8."""
        start, stop = self.bins[b]
        k = np.arange(start, stop)
        twice = np.where((k == 0) | (2 * k == self.n_samples), 1.0, 2.0)
        squares = (weights[:, start - self.span[0] : stop - self.span[0]] ** 2 * twice).sum(axis=1)
        all_of_them = 64.0 * twice.sum()
        return np.asarray(np.sqrt(all_of_them / np.maximum(squares, min(FEWEST, all_of_them))))

    def cut_windows(self, frames: Float) -> list[Float]:
        """The windows of frames (n_frames, n_mics, n_samples), one after another."""
        n = self.window.n_samples
        return [frames[..., k * n // 2 : k * n // 2 + n] for k in range(self.n_windows)]

    def cross_spectra(self, frames: Float, block: int = 0) -> Iterator[tuple[slice, Float, Float]]:
        """Whitened cross spectra in blocks of frames: (rows, real, imaginary), each (F, P, bins of span)."""
        from scipy.fft import rfft

        start, stop = self.span
        window = _hamming(self.n_samples, frames.dtype.str)
        block = block or max(1, min(8, 48 // len(self.pairs)))
        for first in range(0, len(frames), block):
            rows = slice(first, min(first + block, len(frames)))
            X = rfft(frames[rows] * window, axis=-1)[..., start:stop]  # (F, M, K)
            re, im = np.ascontiguousarray(X.real), np.ascontiguousarray(X.imag)
            size = re * re
            size += im * im
            np.sqrt(size, out=size)
            np.divide(1.0, size, out=size, where=size > 0)  # a bin of zero energy stays zero
            with np.errstate(invalid="ignore"):  # infinite samples become NaN, and are refused
                re *= size
                im *= size
            real = np.empty((len(re), len(self.pairs), stop - start), frames.dtype)
            imag = np.empty_like(real)
            self._cross(re.swapaxes(0, 1), im.swapaxes(0, 1), real.swapaxes(0, 1), imag.swapaxes(0, 1))
            yield rows, real, imag

    def _crossed(self, re: Float, im: Float) -> tuple[Float, Float]:
        """Products of each pair's phases (M, F, K), the first conjugated: real and imaginary, (P, F, K)."""
        real = np.empty((len(self.pairs), *re.shape[1:]), re.dtype)
        imag = np.empty_like(real)
        self._cross(re, im, real, imag)
        return real, imag

    def _cross(self, re: Float, im: Float, real: Float, imag: Float) -> None:
        term = np.empty_like(real[0])
        for p, (i, j) in enumerate(self.pairs):
            np.multiply(re[i], re[j], out=real[p])
            real[p] += np.multiply(im[i], im[j], out=term)
            np.multiply(re[i], im[j], out=imag[p])
            imag[p] -= np.multiply(im[i], re[j], out=term)

    def _transforms(self, dtype: str) -> list[tuple[Float, Float]]:
        return [_inverse_transform(self, start, stop, dtype) for start, stop in self.bins]

    def checked(self, frames: Any) -> Float:
        """Frames as an array that can be used, (n_frames, n_mics, n_samples); others are refused."""
        x = np.asarray(frames)
        if x.dtype != np.float64:
            if x.dtype.kind not in "fiu":
                raise AudioError(f"frames must be real numbers, got {x.dtype}")
            x = x.astype(np.float32, copy=False)
        self._check_shape(x.shape)
        return x

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        needed = 1 + max(max(pair) for pair in self.pairs)
        if len(shape) != 3 or shape[1] < needed or shape[2] != self.n_samples:
            raise AudioError(
                f"frames must be (n_frames, at least {needed} microphones, {self.n_samples} samples), "
                f"got shape {shape}; channels come first"
            )

    def _torch(self, frames: Any) -> Any:
        import torch

        self._check_shape(tuple(frames.shape))
        x = frames if frames.dtype == torch.float64 else frames.to(torch.float32)
        _refuse_nonfinite(bool(torch.isfinite(x).all()))
        numpy_dtype = "<f8" if x.dtype == torch.float64 else "<f4"

        def on_device(values: Float) -> Any:
            return torch.from_numpy(values).to(x.device)

        if not len(x):  # torch cannot transform nothing
            return x.new_empty(self(np.empty(tuple(x.shape), numpy_dtype)).shape)
        start, stop = self.span
        if self.exact:
            re, im = phases_of_tensor(x.double() * on_device(hamming(self.n_samples).copy()), start, stop)
            tables = whole_transforms(self)
        else:
            X = torch.fft.rfft(x * on_device(_hamming(self.n_samples, numpy_dtype)), dim=-1)[..., start:stop]
            size = X.abs()
            X = torch.where(size > 0, X / torch.where(size > 0, size, 1.0), 0.0)
            re, im = X.real, X.imag
            tables = [(even, odd, 1.0) for even, odd in self._transforms(numpy_dtype)]
        first, second = (list(side) for side in zip(*self.pairs, strict=True))
        real = re[:, first] * re[:, second] + im[:, first] * im[:, second]  # (F, P, K)
        imag = re[:, first] * im[:, second] - im[:, first] * re[:, second]
        bands = []
        for (low, high), (even, odd, unit) in zip(self.bins, tables, strict=True):
            band = slice(low - start, high - start)
            e, o = real[..., band] @ on_device(even), imag[..., band] @ on_device(odd)
            e0, rest = e[..., :1], e[..., 1:]
            both = torch.cat([(rest + o).flip(-1), e0, rest - o], dim=-1)
            bands.append((both * unit + 0.0).to(x.dtype) if self.exact else both)
        return bands[0] if self.bands is self.band_list[0] else torch.stack(bands, dim=1)


def gcc_phat(
    frames: Frames,
    array: MicArray,
    bands: Band | Sequence[Band] = FULL_BAND,
    max_lag: int | None = None,
) -> Frames:
    """GCC-PHAT of frames for all pairs of an array; see `GccPhat`.

    Parameters
    ----------
    frames : array or tensor, (n_frames, n_mics, n_samples)
        Sound of each microphone.
    array : MicArray
        The microphones.
    bands : (low, high) or sequence of them
        Hz.
    max_lag : int, optional
        Lags kept on either side, in samples; `array.max_lag` if not given.

    Returns
    -------
    array or tensor, (n_frames, n_pairs, 2 max_lag + 1)
        With several bands (n_frames, n_bands, n_pairs, 2 max_lag + 1).

    Raises
    ------
    AudioError
        Frames that are not (n_frames, n_mics, n_samples), or not finite.

    Examples
    --------
    >>> from tytoalba import load_array
    >>> gcc_phat(np.zeros((2, 4, 2048)), load_array("pepper")).shape
    (2, 6, 51)
    """
    return GccPhat.for_array(array, frames.shape[-1], bands, max_lag)(frames)


def min_max(features: Float) -> Float:
    """Scale each frame's values to [0, 1] over all its pairs and lags, as the paper's program does.

    (n_frames, ...) -> same shape; a frame of equal values becomes zeros.

    >>> min_max(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]])).tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]
    """
    axes = tuple(range(1, features.ndim))
    low = features.min(axis=axes, keepdims=True)
    spread = features.max(axis=axes, keepdims=True) - low
    scaled: Float = (features - low) / np.where(spread > 0, spread, 1.0).astype(features.dtype)
    return scaled


@lru_cache(maxsize=32)
def _hamming(n: int, dtype: str) -> Float:
    return (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / n)).astype(dtype)


@lru_cache(maxsize=64)
def _inverse_transform(gcc: GccPhat, start: int, stop: int, dtype: str) -> tuple[Float, Float]:
    """Cosines of lags 0..max_lag for the real part, sines of 1..max_lag for the imaginary part."""
    lags = np.arange(gcc.max_lag + 1)
    phase = 2 * np.pi / gcc.n_samples * np.outer(np.arange(start, stop), lags)  # (K, L)
    weight = gcc.bin_weights(start, stop)[:, None]
    return (weight * np.cos(phase)).astype(dtype), (weight * np.sin(phase[:, 1:])).astype(dtype)


@lru_cache(maxsize=64)
def whole_transforms(gcc: GccPhat) -> list[tuple[Float, Float, float]]:
    """The same of each band in whole numbers, and what one of their products' sums is worth.

    Every sum is below 2^53: two phases are at most 2^22 (1 + 2^-10), the weights of all bins n_samples.
    """
    bits = min(16, 29 - (gcc.n_samples - 1).bit_length())
    found: list[tuple[Float, Float, float]] = []
    for start, stop in gcc.bins:
        k = np.arange(start, stop)
        weight = np.where((k == 0) | (2 * k == gcc.n_samples), 1, 2)
        even, odd = cosines(gcc.n_samples, np.outer(k, np.arange(gcc.max_lag + 1)), bits)
        unit = 1.0 / (int(weight.sum()) << (2 * PHASE_BITS + bits))
        found.append((even * weight[:, None], odd[:, 1:] * weight[:, None], unit))
    return found


def _fold(result: Float, even: Float, odd: Float) -> None:
    """gcc(+-l) = even(l) -+ odd(l), written into result (F, P, 2 max_lag + 1)."""
    zero = even.shape[-1] - 1
    result[..., zero] = even[..., 0]
    np.subtract(even[..., 1:], odd, out=result[..., zero + 1 :])
    np.add(even[..., 1:], odd, out=result[..., :zero][..., ::-1])


def _tidy_bands(bands: Any) -> Band | tuple[Band, ...]:
    single = len(bands) > 0 and np.ndim(bands[0]) == 0
    listed = [bands] if single else list(bands)
    if not listed:
        raise ValueError("give at least one band (low, high) in Hz")
    tidy: list[Band] = []
    for band in listed:
        low, high = (float(edge) for edge in band)
        if not 0 <= low < high:
            raise ValueError(f"a band is (low, high) in Hz with 0 <= low < high, got {band}")
        tidy.append((low, high))
    return tidy[0] if single else tuple(tidy)


def _refuse_nonfinite(finite: bool) -> None:
    if not finite:
        raise AudioError("a frame holds NaN or infinite samples; audio.check says where")
