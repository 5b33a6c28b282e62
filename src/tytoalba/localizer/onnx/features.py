"""From frames of raw sound to features, as a graph: GCC-PHAT of `GccPhat(exact=True)`.

The Fourier transform is two products with small matrices and a turn between them, n = rows x columns:

    X[k1 + rows k2] = sum_c W^(c k1) (sum_r x[columns r + c] W_rows^(r k1)) W_columns^(c k2)

Matrix products in float64 are in every runtime; its own DFT node is not, or only in float32. Only the
bins that are needed are computed in the second product.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.prior.exact import INPUT_GRID
from tytoalba.localizer.onnx.builder import Builder, Name
from tytoalba.signal.gcc import GccPhat, whole_transforms
from tytoalba.signal.phases import PHASE_BITS, TABLE_BITS, WINDOW_BITS, circle, floor_shift, hamming

SMALLEST, LARGEST = {"same": -170, "fast": -100}, {"same": 160, "fast": 120}
"""Powers of two between which the largest sample of a frame may be; smaller ones are silence."""


def codes(g: Builder, frames: Name, gcc: GccPhat) -> Name:
    """GCC-PHAT in steps of 1/INPUT_GRID, (n_frames, looks, bands x pairs, lags).

    frames: (n_frames, n_mics, n_samples) float32, with the microphones in the order of the prior.
    The first look is the whole frame, the others are its windows.
    """
    n = gcc.whole.n_samples
    x = g.reshape(g.cast(frames, g.real), -1, 1, _n_mics(gcc), n)
    looks = [_look(g, x, gcc.whole)]
    if gcc.n_windows:
        width = gcc.window.n_samples
        starts = [k * width // 2 for k in range(gcc.n_windows)]
        windows = g.join([g.cut(x, 3, start, start + width) for start in starts], axis=1)
        looks.append(_look(g, windows, gcc.window))
    features = g.join(looks, axis=1)
    if not g.is_same:
        return g.op("Mul", features, g.constant(INPUT_GRID))
    # in float32, as features are; the product is exact, and keeps runtimes from leaving out the two casts
    steps = g.op("Mul", g.single(features), g.constant(INPUT_GRID, np.float32))
    return g.rounded(g.cast(steps, g.real))


def _n_mics(gcc: GccPhat) -> int:
    return 1 + max(max(pair) for pair in gcc.pairs)


def _look(g: Builder, x: Name, gcc: GccPhat) -> Name:
    """GCC-PHAT (n_frames, looks, bands x pairs, lags), real, of x (n_frames, looks, mics, samples)."""
    re, im = phases(g, x, gcc)
    first, second = (list(side) for side in zip(*gcc.pairs, strict=True))
    ri, rj, ii, ij = (g.take(part, index, 2) for part in (re, im) for index in (first, second))
    real = g.op("Add", g.op("Mul", ri, rj), g.op("Mul", ii, ij))
    imag = g.op("Sub", g.op("Mul", ri, ij), g.op("Mul", ii, rj))
    bands, units = [], []
    for (start, stop), (even, odd, unit) in zip(gcc.bins, whole_transforms(gcc), strict=True):
        low, high = start - gcc.span[0], stop - gcc.span[0]
        cosine = np.concatenate([even[:, :0:-1], even], axis=1)
        sine = np.concatenate([odd[:, ::-1], 0 * even[:, :1], -odd], axis=1)
        products = [
            g.op("MatMul", g.cut(part, 3, low, high), g.whole(table))
            for part, table in ((real, cosine), (imag, sine))
        ]
        bands.append(g.op("Add", *products))
        units += [unit] * len(gcc.pairs)
    # one factor for each pair: a single one might be drawn into the product, where it rounds otherwise
    return g.op("Mul", g.join(bands, axis=2), g.constant(np.array(units)[:, None]))


def _scaled(g: Builder, y: Name) -> Name:
    """y (.., n) divided by the power of two above its largest magnitude: exact. Silence becomes 0."""
    least, most = SMALLEST[g.precision], LARGEST[g.precision]
    powers = np.ldexp(1.0, np.arange(least, most))
    factors = np.append(0.0, np.ldexp(1.0, -np.arange(least + 1, most + 1)))
    largest = g.op("ReduceMax", g.op("Abs", y), axes=[-1], keepdims=1)
    reached = g.cast(g.op("GreaterOrEqual", largest, g.constant(powers)), np.int64)
    place = g.op("ReduceSum", reached, g.constant([-1], np.int64), keepdims=1)
    return g.op("Mul", y, g.op("Gather", g.constant(factors), place, axis=0))


def phases(g: Builder, x: Name, gcc: GccPhat) -> tuple[Name, Name]:
    """Unit phases of x (n_frames, looks, mics, n), real and imaginary, in steps of 2^-PHASE_BITS.

    Of the bins of `span`; those that are too weak are 0.
    """
    y = _scaled(g, g.op("Mul", x, g.whole(hamming(gcc.n_samples), 2.0**-WINDOW_BITS)))
    re, im = _spectrum(g, y, gcc.n_samples, *gcc.span)
    size = g.op("Sqrt", g.op("Add", g.op("Mul", re, re), g.op("Mul", im, im)))
    kept = g.op("GreaterOrEqual", size, g.constant(2.0 ** floor_shift(gcc.n_samples)))
    size = g.op("Where", kept, size, g.constant(np.inf))
    factor = g.op("Div", g.constant(2.0**PHASE_BITS), size)
    first, second = (g.rounded(g.op("Mul", part, factor)) for part in (re, im))
    return first, second


def factors_of(n: int) -> tuple[int, int]:
    """Rows and columns, rows x columns = n, as near to each other as can be."""
    rows = next(r for r in range(isqrt(n), 0, -1) if n % r == 0)
    return rows, n // rows


def _spectrum(g: Builder, y: Name, n: int, start: int, stop: int) -> tuple[Name, Name]:
    """Real and imaginary parts of bins [start, stop) of real y (n_frames, looks, mics, n)."""
    rows, columns = factors_of(n)
    n_needed = -(-stop // rows)
    r, k1, c, k2 = np.arange(rows), np.arange(rows), np.arange(columns), np.arange(n_needed)
    cosine, sine = _turns(n, columns * np.outer(k1, r))
    y = g.op("MatMul", g.constant(np.concatenate([cosine, -sine])), _grid(g, y, rows, columns))
    re, im = g.cut(y, 3, 0, rows), g.cut(y, 3, rows, 2 * rows)  # (.., k1, c)
    between = [g.constant(part) for part in _turns(n, np.outer(k1, c))]
    turned_re = g.op("Add", g.op("Mul", re, between[0]), g.op("Mul", im, between[1]))
    turned_im = g.op("Sub", g.op("Mul", im, between[0]), g.op("Mul", re, between[1]))
    cosine, sine = _turns(n, rows * np.outer(c, k2))
    both = np.block([[cosine, -sine], [sine, cosine]])  # (2 columns, real and imaginary of n_needed)
    found = g.op("MatMul", g.join([turned_re, turned_im], axis=4), g.constant(both))
    parts = []
    for first in (0, n_needed):
        part = g.transpose(g.cut(found, 4, first, first + n_needed), 0, 1, 2, 4, 3)  # (.., k2, k1)
        flat = g.op("Reshape", part, g.constant([0, 0, 0, -1], np.int64))
        parts.append(g.cut(flat, 3, start, stop))
    return parts[0], parts[1]


def _grid(g: Builder, y: Name, rows: int, columns: int) -> Name:
    return g.op("Reshape", y, g.constant([0, 0, 0, rows, columns], np.int64))


def _turns(n: int, turns: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """cos and sin(2 pi turns / n), correctly rounded but for the last bit, the same on every machine."""
    cosine, sine = (table[turns % n] / 2.0**TABLE_BITS for table in circle(n))
    return cosine, sine
