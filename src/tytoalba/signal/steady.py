"""Steady noise from one place, a fan or a hum: which bins of a frame are its own, and which somebody else's.

GCC-PHAT gives every frequency one vote, and a fan owns all those in which speech is weak. So each bin has a
running floor, which is a low quantile of its power over the last four seconds, and beside it the mean phases
between the microphones whenever the power is near the floor. Where these are the phases of a source (those of
diffuse noise are zero, or real), bins count less the nearer they are to the floor, and the more they look
like the noise. A frame in which hardly any bin counts holds nothing but the noise.

All is computed from phases and powers that are rounded (`phases`): by comparisons, sums of whole numbers, and
single operations on each value in a fixed order. So it is the same to the bit on every machine and in blocks
of any size. Only past frames are used, and memory does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.angles import Float
from tytoalba.signal.gcc import SAMPLES_AT_ONCE, GccPhat

Flags = NDArray[np.bool_]

HISTORY, EVERY, SOON = 48, 4, 8
"""Frames that a floor looks back on (4 s), and after how many it is found anew; at first after each."""
LOW = (3, 10)
"""Which quantile of the powers the floor is, as a fraction."""
NEAR = 2.0
"""How many times the floor a power may be whose phases are taken for those of the noise."""
MEMORY = 32
"""Frames over which these are averaged."""
PHASE = 2.0**-6
"""Products of two phases, up to 2^22, are rounded to 2^16 before they are averaged."""
ONE = 2.0**32
"""Square of such a product."""
LEAST = 0.02
"""Squared mean phase of a pair below which the noise looks like nothing."""
BASE, GAIN, MOST = 1.5, 10.0, 1.5
"""A bin begins to count from BASE (1 + GAIN alike^2) times the floor on; alike is 0 for what looks different
from the noise, 1 for the noise itself, and MOST at most."""
DIRECTIONAL, CHANCE = 0.08, 0.6
"""Mean square of the imaginary parts of mean phases from which a floor has a direction, and what averages of
one frame have by chance: those of n have 1/n of it."""
FIRST = 12
"""Frames before which nothing is known."""
LOWEST = 1000.0
"""Hz. Bands up to there follow the next one: low down, noise from everywhere and from one place are alike."""
SILENT = (15, 1000)
"""A frame whose directional bins count for less than this share of them holds the noise alone."""


class Weighed(NamedTuple):
    """Frames beside their floor.

    features: GCC-PHAT, (n_frames, n_looks, n_pairs, n_lags) float32. weights: of the bins of whole frames, 0
    to 1, (n_frames, n_bins). speech: whether there is more than steady noise, (n_frames,).
    """

    features: NDArray[np.float32]
    weights: Float
    speech: Flags

    def only(self, rows: Flags | slice) -> Weighed:
        """Some of the frames."""
        return Weighed(self.features[rows], self.weights[rows], self.speech[rows])


class SteadyNoise:
    """The floor of sound that runs. gcc: exact features, whose bins are weighed.

    order: which microphone of the frames is at each place of `gcc`; as they come if not given. Where a floor
    has no direction, features are those of `gcc` to the bit.
    """

    def __init__(self, gcc: GccPhat, order: tuple[int, ...] = ()) -> None:
        if not gcc.exact:
            raise ValueError("steady noise is told from exact features only")
        self.gcc, self._order = gcc, list(order)
        self.clear()

    def clear(self) -> None:
        """Begin a new recording."""
        gcc = self.gcc
        self._whole = _Floor(gcc.whole, (0,))
        self._window = _Floor(gcc.window, tuple(range(0, gcc.parts, 2))) if gcc.n_windows else None

    def add(self, frames: NDArray[np.floating]) -> Weighed:
        """Take the next frames (n_frames, n_mics, n_samples), each half a frame after the last."""
        gcc, x = self.gcc, self.gcc.whole.checked(np.asarray(frames, np.float32))
        if self._order and self._order != list(range(x.shape[1])):
            x = x[:, self._order]
        shape = gcc.n_looks, len(gcc.pairs), gcc.n_lags
        features = np.empty((len(x), *shape), np.float32)
        weights = np.empty((len(x), gcc.span[1] - gcc.span[0]))
        speech = np.empty(len(x), np.bool_)
        block = max(1, SAMPLES_AT_ONCE // max(1, x[:1].size * (1 + (gcc.n_windows > 0))))
        for first in range(0, len(x), block):
            rows = slice(first, min(first + block, len(x)))
            features[rows], weights[rows], speech[rows] = self._block(x[rows])
        return Weighed(features, weights, speech)

    def _block(self, x: NDArray[np.floating]) -> tuple[Float, Float, Flags]:
        gcc, whole, window = self.gcc, self._whole, self._window
        heard = whole.hear([x])
        cut = window.hear(gcc.cut_windows(x)) if window else []
        speech = np.empty(len(x), np.bool_)
        for t, look in enumerate(heard):
            whole.learn(look)
            on = whole.directional()
            look.weights = whole.weigh(look, on)
            speech[t] = whole.speaks(look.weights[0], on)
            if window:
                window.learn(cut[t])
                cut[t].weights = window.weigh(cut[t], on)
        found = [whole.sums(heard)]
        if window:
            found.append(window.sums(cut))
        weights = np.concatenate([look.weights for look in heard]) / 8.0
        return (
            np.concatenate([one.reshape(len(x), -1, *one.shape[2:]) for one in found], axis=1),
            weights,
            speech,
        )


@dataclass(eq=False)
class _Look:
    """A frame, or its windows: real, imag (n_pairs, n_looks, n_bins), power and weights (n_looks, n_bins)."""

    real: Float
    imag: Float
    power: Float
    weights: Float


class _Floor:
    """What is known of the noise in the bins of one kind of look.

    learns: which looks of a frame it learns from.
    """

    def __init__(self, gcc: GccPhat, learns: tuple[int, ...]) -> None:
        self._gcc, self._learns = gcc, list(learns)
        start, stop = gcc.span
        self._bands = [slice(low - start, high - start) for low, high in gcc.bins]
        shape = len(gcc.pairs), stop - start
        self._real, self._imag = np.zeros(shape), np.zeros(shape)
        self._count = np.zeros(stop - start)
        self._history = np.zeros((HISTORY * len(learns), stop - start), np.uint16)
        self._floor = np.zeros(stop - start)
        self._n = 0

    def hear(self, looks: list[NDArray[np.floating]]) -> list[_Look]:
        """What frames (n_frames, n_mics, n_samples) hold, frame by frame."""
        real, imag, power = self._gcc.exact_spectra(looks, powers=True)
        assert power is not None
        n = len(looks)
        return [
            _Look(real[:, at], imag[:, at], _with_neighbours(power[at]), power[:0])
            for at in (slice(first, first + n) for first in range(0, real.shape[1], n))
        ]

    def learn(self, look: _Look) -> None:
        """Take a frame into the floor, and into the mean phases where it is near it."""
        power = look.power[self._learns]
        size = len(power)
        at = self._n % HISTORY * size
        self._history[at : at + size] = power.view(np.int64) >> 48  # exponent and four bits: in order
        self._n += 1
        if self._n <= SOON or self._n % EVERY == 0:
            known = self._history[: min(self._n, HISTORY) * size]
            low = LOW[0] * (len(known) - 1) // LOW[1]
            floor = np.partition(known, low, axis=0)[low]
            self._floor = (floor.astype(np.int64) << 48).view(np.float64)
        for number, own in zip(self._learns, power, strict=True):
            near = own <= NEAR * self._floor
            self._count += near
            share = near / np.clip(self._count, 1.0, MEMORY * size)
            for mean, part in ((self._real, look.real), (self._imag, look.imag)):
                mean += np.rint((np.rint(part[:, number] * PHASE) - mean) * share)

    def directional(self) -> list[bool]:
        """Of each band, whether its floor comes from a direction."""
        found = []
        for band in self._bands:
            imag = self._imag[:, band]
            n = float(self._count[band].mean())
            chance = CHANCE / min(max(n, 1.0), 1.5 * MEMORY)
            found.append(
                self._n > FIRST and bool(np.square(imag).sum() >= (DIRECTIONAL + chance) * ONE * imag.size)
            )
        highest = [high for _, high in self._gcc.band_list]
        for b in range(len(found) - 2, -1, -1):
            found[b] = found[b + 1] if highest[b] <= LOWEST else found[b]
        return found

    def weigh(self, look: _Look, on: list[bool]) -> Float:
        """Weights of bins in eighths, (n_looks, n_bins); 8 in bands whose floor has no direction."""
        weights = np.full(look.power.shape, 8.0)
        for band, directional in zip(self._bands, on, strict=True):
            if directional:
                weights[:, band] = self._weigh(look, band)
        return weights

    def _weigh(self, look: _Look, band: slice) -> Float:
        real, imag = self._real[:, band], self._imag[:, band]
        size = np.square(real).sum(axis=0) + np.square(imag).sum(axis=0)  # whole numbers
        alike = (real[:, None] * np.rint(look.real[..., band] * PHASE)).sum(axis=0)
        alike += (imag[:, None] * np.rint(look.imag[..., band] * PHASE)).sum(axis=0)
        alike /= np.maximum(size, LEAST * ONE * len(real))
        np.clip(alike, 0.0, MOST, out=alike)
        needed = BASE * (1.0 + GAIN * (alike * alike)) * np.maximum(self._floor[band], 1e-30)
        return np.asarray(np.clip(np.floor(8.0 * (look.power[:, band] / needed - 1.0) + 1.0), 0.0, 8.0))

    def speaks(self, weights: Float, on: list[bool]) -> bool:
        """Whether a frame with these weights (n_bins,) holds more than the noise."""
        bands = [weights[band] for band, directional in zip(self._bands, on, strict=True) if directional]
        n_bins = sum(map(len, bands))
        total = sum(float(band.sum()) for band in bands)
        return SILENT[1] * total >= SILENT[0] * 8 * n_bins

    def sums(self, looks: list[_Look]) -> Float:
        """GCC-PHAT of frames, (n_frames x n_looks, n_bands, n_pairs, n_lags)."""
        real, imag = (
            np.concatenate(parts, axis=1) for parts in zip(*((k.real, k.imag) for k in looks), strict=True)
        )
        weights = np.concatenate([look.weights for look in looks])
        if (weights == 8.0).all():
            return self._gcc.exact_sums(real, imag)
        return self._gcc.exact_sums(real, imag, weights)


def _with_neighbours(power: Float) -> Float:
    """The power of each bin (..., n_bins) and of those beside it, added in this order."""
    total = power.copy()
    total[..., 1:] += power[..., :-1]
    total[..., :-1] += power[..., 1:]
    return total
