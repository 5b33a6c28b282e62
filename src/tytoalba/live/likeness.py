"""How alike channels are: copies, sums of others and mixtures, as microphones apart never are.

Three measures, of the last two seconds with sound:

- A copy has a correlation of 1 with its original at all times, whatever its gain and sign.
- A channel that is a weighted sum of others makes the covariance of all singular.
- A mixture shares sound with another channel without any delay, in every moment. Microphones a few
  centimetres apart may do so while somebody talks who is as far from both. Between words, when sound comes
  from everywhere or is the microphones' own noise, they share nothing above some 4 kHz; a mixture does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

MEMORY = 2.0
"""Seconds with sound that count."""
LEAST = 0.6
"""Seconds with sound without which nothing is said."""
QUIETEST = 1e-9
"""Power (full scale is 1) of moments that count: -90 dB."""
LOW, BAND = 1000.0, (4000.0, 7000.0)
"""Hz: copies and sums are looked for from LOW on, mixtures in BAND; lower where the sample rate is low."""
COPY, COPY_ALWAYS = 0.99995, 0.99
"""Correlation of copies: of all sound, and of its moments on average."""
SINGULAR = 1e-4
"""Smallest eigenvalue of the correlation matrix of channels that depend on each other."""
SCATTERED, SCATTERED_SHARE, N_SCATTERED = 0.42, 0.3, 7
"""Moments without a single direction: at most so much shared by a third of all pairs at any delay; the
share of all moments, and how many are needed."""
SHARED, SHARED_ALWAYS = 0.62, 0.45
"""Correlation of mixtures in scattered moments, and in nine of ten of all moments."""


@dataclass(frozen=True)
class Alike:
    """Channels, by their place among those that are looked at. copies, mixed: pairs; sums: all in one."""

    copies: tuple[tuple[int, int], ...] = ()
    sums: tuple[int, ...] = ()
    mixed: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class _Moment:
    """Some 30 ms. plain, level: covariances, as they are and with even spectra, (C, C).

    shared: correlation of pairs, (P,). single: how much of the sound may come from one direction, 0 to 1.
    """

    plain: Float
    level: Float
    shared: Float
    single: float


class Likeness:
    """Compares channels over time. n_channels: those that are compared; sample_rate: Hz."""

    def __init__(self, sample_rate: int, n_channels: int) -> None:
        self.frame_length = 2 ** round(np.log2(0.032 * sample_rate))
        hertz = np.fft.rfftfreq(self.frame_length, 1 / sample_rate)
        top = min(BAND[1], 0.44 * sample_rate)
        self._all = (hertz >= min(LOW, 0.06 * sample_rate)) & (hertz <= top)
        self._high = (hertz >= min(BAND[0], 0.25 * sample_rate))[self._all]
        self._window = np.hanning(self.frame_length)
        self._pairs = list(combinations(range(n_channels), 2))
        self._first, self._second = np.array(self._pairs, int).reshape(-1, 2).T
        self._n_least = round(LEAST * sample_rate / self.frame_length)
        self._moments: deque[_Moment] = deque(maxlen=round(MEMORY * sample_rate / self.frame_length))

    def add(self, samples: NDArray[np.float32]) -> None:
        """Take samples (n_channels, a multiple of frame_length)."""
        frames = samples.reshape(len(samples), -1, self.frame_length)  # (C, T, L)
        spectra = np.fft.rfft(frames * self._window, axis=2)[:, :, self._all].swapaxes(0, 1)  # (T, C, K)
        scale = 8 / (3 * self.frame_length**2)  # a window's loss, and a transform's gain
        for spectrum in spectra:
            power = (np.abs(spectrum) ** 2).mean(axis=0)  # (K,)
            if 2 * scale * power.sum() > QUIETEST:
                self._moments.append(self._moment(spectrum, power))

    def _moment(self, spectrum: NDArray[np.complex128], power: Float) -> _Moment:
        even = spectrum / np.sqrt(power + 1e-6 * power.max())  # the same weights for all channels
        level = (even @ even.conj().T).real
        high = even[:, self._high]
        high = high / np.maximum(np.linalg.norm(high, axis=1, keepdims=True), 1e-30)
        cross = high[self._first] * high[self._second].conj()  # (P, K)
        anywhere = np.sort(np.abs(np.fft.fft(cross, 2 * cross.shape[1], axis=1)).max(axis=1, initial=0.0))
        single = float(anywhere[len(anywhere) // 3]) if len(anywhere) else 1.0
        plain = (spectrum @ spectrum.conj().T).real
        return _Moment(plain, level / max(float(np.trace(level)), 1e-30), cross.sum(axis=1).real, single)

    def judge(self, alive: Sequence[int]) -> Alike:
        """What is alike. alive: the channels to compare, those that are no constant."""
        if len(self._moments) < self._n_least or len(alive) < 2:
            return Alike()
        among = [n for n, (a, b) in enumerate(self._pairs) if a in alive and b in alive]
        copies = self._copies(among)
        doubles = {b for _, b in copies}
        sums = self._sums([c for c in alive if c not in doubles])
        mixed = [] if sums else self._mixed([n for n in among if self._pairs[n] not in copies])
        return Alike(tuple(copies), tuple(sums), tuple(mixed))

    def _copies(self, among: Sequence[int]) -> list[tuple[int, int]]:
        plain = np.array([one.plain for one in self._moments])  # (T, C, C)
        overall = _correlation(plain.sum(axis=0))
        always = np.abs(_correlation(plain)).mean(axis=0)
        pairs = [self._pairs[n] for n in among]
        return [(a, b) for a, b in pairs if abs(overall[a, b]) > COPY and always[a, b] > COPY_ALWAYS]

    def _sums(self, among: Sequence[int]) -> list[int]:
        if len(among) < 3:
            return []
        level = _correlation(np.sum([one.level for one in self._moments], axis=0))[np.ix_(among, among)]
        values, vectors = np.linalg.eigh(level)
        if values[0] > SINGULAR:
            return []
        return [c for c, share in zip(among, np.abs(vectors[:, 0]), strict=True) if share > 0.1]

    def _mixed(self, among: Sequence[int]) -> list[tuple[int, int]]:
        single = np.array([one.single for one in self._moments])
        scattered = np.argsort(single)[: round(SCATTERED_SHARE * len(single))]
        scattered = scattered[single[scattered] <= SCATTERED]
        if len(scattered) < N_SCATTERED:
            return []
        shared = np.abs([one.shared for one in self._moments])  # (T, P)
        typical, least = shared[scattered].mean(axis=0), np.quantile(shared, 0.1, axis=0)
        return [self._pairs[n] for n in among if typical[n] > SHARED and least[n] > SHARED_ALWAYS]


def _correlation(covariance: Float) -> Float:
    """Correlations (..., C, C) of covariances."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-30))
    return np.asarray(covariance / (deviation[..., :, None] * deviation[..., None, :]))
