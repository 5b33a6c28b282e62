"""What the network for every array knows of one: the delays of its pairs, and how to steer them.

All of it is whole numbers, computed once where a state or model is made and stored in it: no other machine
has to compute the same floats again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import PriorError
from tytoalba.learning.prior.features import PRIOR_BANDS
from tytoalba.signal.angles import N_DIRECTIONS, grid
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import interpolation

N_BANDS = len(PRIOR_BANDS)
CELLS, UNFOLD = 120, 3
"""Cells around the circle and degrees of each."""
N_KNOWN = 2 * N_BANDS + 1
"""Numbers that the network is told of a pair for each cell."""
STEPS = 16
"""Delays are whole sixteenths of a sample."""
RIDGE = 1e-3
MOST = 127
PER_UNIT = 32
"""Steps of what the network is told: 1/32."""
FINEST = 20
"""Bits by which a table is finer than 1, or coarser, at most."""

Int8 = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Geometry:
    """An array as the network takes it.

    delays: (n_pairs, 360), by how many sixteenths of a sample a wave from each degree reaches the second
    microphone later. table: (n_bands, n_delays, n_lags), from GCC-PHAT at whole lags to its value at delays
    of 0, 1, 2, ... sixteenths, in steps of 2^-scale of each band. known: (n_pairs, CELLS, N_KNOWN), how much
    each band of a pair can tell there and which bands there are, in steps of 1/32.
    """

    delays: NDArray[np.int16]
    table: Int8
    scale: NDArray[np.int8]
    known: Int8

    @classmethod
    def of(cls, array: MicArray, gcc: GccPhat) -> Geometry:
        """The geometry of an array whose features are `gcc`."""
        exact = array.pair_delays(grid(N_DIRECTIONS)).T * gcc.sample_rate  # (P, 360) samples
        delays = np.rint(exact * STEPS).astype(np.int16)
        there = np.arange(int(np.abs(delays).max()) + 1) / STEPS
        table, scale = [], []
        for band in gcc.band_list:
            values = interpolation(gcc.whole, band, there, RIDGE)  # (n_delays, n_lags)
            finest = _finest(values, array.n_pairs)
            table.append(np.rint(values * 2.0**finest).astype(np.int8))
            scale.append(finest)
        made = delays, np.stack(table), np.array(scale, np.int8), _known(exact, array, gcc)
        return cls(*map(np.ascontiguousarray, made))

    def __post_init__(self) -> None:
        """Refuse what cannot be a geometry; a file may have been altered."""
        p, b = len(self.delays), len(self.table)
        kept = [
            (values.dtype.str, values.ndim) for values in (self.delays, self.table, self.scale, self.known)
        ]
        fit = kept == [("<i2", 2), ("|i1", 3), ("|i1", 1), ("|i1", 3)] and 0 < b <= N_BANDS
        fit = fit and self.delays.shape == (p, N_DIRECTIONS) and self.scale.shape == (b,) and p > 0
        fit = fit and self.known.shape == (p, CELLS, N_KNOWN) and self.table.shape[2] % 2 == 1
        if not fit or np.abs(self.delays.astype(int)).max() >= self.table.shape[1]:
            raise PriorError("what this prior knows of its array is damaged or was altered")
        if not ((self.scale >= -FINEST) & (self.scale <= FINEST)).all():  # not by its size: |-128| is -128
            raise PriorError("what this prior knows of its array was altered: its steps are out of range")

    @property
    def n_bands(self) -> int:
        """Bands that the rate of the array can hold."""
        return len(self.table)

    @property
    def n_pairs(self) -> int:
        """Pairs of microphones."""
        return len(self.delays)

    @cached_property
    def steering(self) -> NDArray[np.float32]:
        """From GCC-PHAT to the evidence of pairs for degrees: (n_bands, n_pairs, n_lags, 360), whole."""
        later = self.delays >= 0
        rows = self.table[:, np.abs(self.delays)]  # (B, P, 360, L)
        rows = np.where(later[None, :, :, None], rows, rows[..., ::-1])
        return np.ascontiguousarray(rows.swapaxes(2, 3), np.float32)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """For a file."""
        return {name: getattr(self, name) for name in ("delays", "table", "scale", "known")}


def _finest(values: NDArray[np.float64], n_pairs: int) -> int:
    """By how many bits a table (n_delays, n_lags) may be finer than 1: its numbers fit into eight bits, and
    their sum over the lags of all pairs, with features in eight bits, stays below 2^24.
    """
    longest = float(np.abs(values).sum(axis=1).max())
    room = 2.0**24 / (MOST * n_pairs) - values.shape[1]  # what rounding may add
    return int(np.floor(np.log2(min(MOST / float(np.abs(values).max()), max(room, 1.0) / longest))))


def _known(exact: NDArray[np.float64], array: MicArray, gcc: GccPhat) -> Int8:
    """(n_pairs, CELLS, N_KNOWN): of each band, how fast its phase turns with the azimuth; how far the
    microphones are apart; which bands are not there.
    """
    slope = (np.roll(exact, -1, axis=1) - np.roll(exact, 1, axis=1)) * (90 / np.pi) / gcc.sample_rate
    slope = np.abs(slope.reshape(len(exact), CELLS, UNFOLD)).mean(axis=2)  # seconds a radian
    known = np.zeros((len(exact), CELLS, N_KNOWN))
    for b in range(N_BANDS):
        if b < len(gcc.band_list):
            low, high = gcc.band_list[b]
            middle = (low + min(high, gcc.sample_rate / 2)) / 2
            known[..., b] = np.log2(2 * np.pi * middle * slope + 2.0**-4) / 2
        else:
            known[..., N_BANDS + b] = 1.0
    first, second = (array.coordinates[list(side)] for side in zip(*array.pairs, strict=True))
    known[..., -1] = np.log2(np.linalg.norm(first - second, axis=1) / 0.08)[:, None] / 2
    return np.asarray(np.rint(known * PER_UNIT).clip(-MOST, MOST), np.int8)
