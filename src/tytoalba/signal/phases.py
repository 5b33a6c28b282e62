"""Unit phases and powers of spectra, rounded: the same numbers from any FFT, batch and device.

A phase X_k / |X_k| is rounded to steps of 2^-11, so that everything after it is sums of whole numbers. FFTs
differ in their last bits, which now and then would move a value across the edge between two steps. So (Ziv's
strategy) a value that lies nearer to an edge than GUARD, far more than any FFT is wrong by, is not taken from
the FFT: that one bin is computed anew as a sum of integers, with a table of cosines made of integers, and
compared with the edge in integers. Bins below a power of two that follows from the largest sample, about
2^-20 of what a tone of that size would have, hold next to nothing but rounding errors and become 0; bins near
that limit are decided in integers too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import frexp, isqrt, ldexp
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Kind = TypeVar("Kind", np.int64, np.float64)

PHASE_BITS = 11
"""Steps of a phase: 2^-11. Products of two phases are below 2^23."""
GUARD = 2.0**-39
"""How wrong an FFT may be, as a share of the largest real or imaginary part of its spectrum (1.8e-12). Those
of numpy, scipy and torch are wrong by at most 1/2500 of that; CUDA's differed from them by 1/70. With
errors of 0.12 of it, in root mean square, a lesson of a minute would change less often than once in a million
(`chance_of_change` in tools/measure_exactness.py, which measures all of this)."""
FLOOR_BITS = 17
"""A bin is kept from 2^-17 x sqrt(n) x the largest sample on, all rounded up to powers of two."""
WINDOW_BITS = 14
"""Steps of the window: its products with float32 samples are exact in float64."""
TABLE_BITS, SPARE_BITS = 58, 24
"""Of the cosines that decide, and those that are computed beyond them."""
LIMB = 20
"""Bits of the parts that samples and cosines are split into, so that their products add up exactly."""
AT_ONCE = 2**14
"""Products of such parts that are below 2^53 in all."""
POWER_BITS = 49
"""Of the 52 bits of a power's fraction, those that are cut off: what stays has steps of 0.3 to 0.5 dB."""
FARTHEST = 400
"""Powers of two up to which squares of samples and of their spectra are far from overflowing or vanishing."""
PI = 0x6487ED5110B4611A62633145C06E0E68948127044533E63A0105DF531D89CD9128A5043CC71A026E
"""pi x 2^317."""


@lru_cache(maxsize=16)
def circle(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """cos and sin(2 pi j / n) for j = 0 ... n - 1 in steps of 2^-58, from integer arithmetic alone."""
    bits = TABLE_BITS + SPARE_BITS
    half_pi = PI >> (318 - bits)
    first: dict[int, tuple[int, int]] = {}  # of the angles up to 45 degrees
    cosine, sine = np.empty(n, np.int64), np.empty(n, np.int64)
    for j in range(n):
        quarter, rest = divmod(4 * j, n)  # the angle is (quarter + rest / n) x 90 degrees
        swap = 2 * rest > n
        part = n - rest if swap else rest
        if part not in first:
            first[part] = _small_angle(half_pi * part // n, bits)
        c, s = first[part][::-1] if swap else first[part]
        turned = ((c, s), (-s, c), (-c, -s), (s, -c))[quarter]
        cosine[j], sine[j] = ((value + (1 << (SPARE_BITS - 1))) >> SPARE_BITS for value in turned)
    return _fixed(cosine), _fixed(sine)


def _small_angle(x: int, bits: int) -> tuple[int, int]:
    """cos and sin of x / 2^bits, at most pi / 4, in the same steps: Taylor series."""
    square = (x * x) >> bits
    cosine, sine, term = 0, 0, 1 << bits
    for n in range(0, 40, 2):  # (pi / 4)^40 / 40! is below 2^-170
        cosine += term
        sine += (term * x >> bits) // (n + 1)
        term = -(term * square >> bits) // ((n + 1) * (n + 2))
    return cosine, sine


@lru_cache(maxsize=16)
def hamming(n: int) -> Values:
    """A periodic Hamming window in steps of 2^-14, (n,)."""
    one = 1 << TABLE_BITS
    steps = [(54 * one - 46 * int(c)) * (1 << WINDOW_BITS) for c in circle(n)[0]]
    whole = [(2 * step + 100 * one) // (200 * one) for step in steps]
    return _fixed(np.array(whole, np.float64) / 2.0**WINDOW_BITS)


def cosines(n: int, turns: NDArray[np.int64], bits: int) -> tuple[Values, Values]:
    """cos and sin(2 pi turns / n) as whole numbers of steps of 2^-bits, of the same shape."""
    half = 1 << (TABLE_BITS - bits - 1)
    cosine, sine = (((table + half) >> (TABLE_BITS - bits))[turns % n] for table in circle(n))
    return cosine.astype(np.float64), sine.astype(np.float64)


def phases(
    y: Values, start: int, stop: int, rfft: Callable[..., Any], power: Values | None = None
) -> tuple[Values, Values]:
    """Real and imaginary parts of the phases of bins [start, stop) of real y, as whole numbers of steps.

    y: (..., n) finite; rfft: of scipy or numpy. Returns two arrays (..., stop - start). power: an array of
    that shape, which is filled with the bins' powers, cut to four bits; 0 where the phase is 0.
    """
    exponent, turned = np.frexp(np.maximum(y.max(axis=-1), -y.min(axis=-1)))[1], None
    if np.abs(exponent).max(initial=0) >= FARTHEST:
        y, turned, exponent = np.ldexp(y, -exponent[..., None]), exponent, 0 * exponent
    X = rfft(y, axis=-1)
    parts = X.view(np.float64)
    peak = np.maximum(parts.max(axis=-1), -parts.min(axis=-1))  # (...)
    floor = np.where(peak == 0.0, np.inf, np.ldexp(1.0, exponent + floor_shift(y.shape[-1])))
    X = X[..., start:stop]
    re, im = np.ascontiguousarray(X.real), np.ascontiguousarray(X.imag)
    size = re * re
    work = im * im
    size += work
    np.sqrt(size, out=size)
    wrong = GUARD * peak
    flagged: list[NDArray[np.intp]] = []
    if (size.min(axis=-1) <= floor + wrong).any():
        flagged.append(np.flatnonzero(np.abs(size - floor[..., None]) <= wrong[..., None]))
        np.copyto(size, np.inf, where=size < floor[..., None])  # which become 0
    if power is not None:
        cut_powers(y, size, wrong, start, power)
        if turned is not None:
            with np.errstate(over="ignore", under="ignore"):
                np.ldexp(power, 2 * turned[..., None], out=power)
    least = np.minimum(size.min(axis=-1), 2.0**1000)  # all were dropped: nothing is near an edge
    nearest = 0.5 - 2.0**PHASE_BITS * float((wrong / least).max(initial=0.0))
    np.divide(2.0**PHASE_BITS, size, out=size)
    whole = [work, np.empty_like(work)]
    for part, rounded in zip((re, im), whole, strict=True):
        part *= size
        np.rint(part, out=rounded)
        part -= rounded
        np.abs(part, out=part)
        near = np.flatnonzero(part > nearest)
        if len(near):
            rows = near // part.shape[-1]
            flagged.append(near[part.flat[near] > 0.5 - wrong.flat[rows] * size.flat[near]])
    if flagged:
        at = np.concatenate(flagged)
        _patch(y.reshape(-1, y.shape[-1]), at, start, *whole)
        if power is not None:
            _patch_powers(y, at, start, whole, power, turned)
    return whole[0], whole[1]


def cut_powers(y: Values, size: Values, wrong: Values, start: int, power: Values) -> None:
    """Fill `power` with the squares of `size` (..., width), infinite for 0, cut to four bits.

    wrong: by how much each row's sizes may be wrong, (...).
    """
    np.multiply(size, size, out=power)
    rest = (power.view(np.int64) & ((1 << POWER_BITS) - 1)) * 2.0**-POWER_BITS
    near = wrong / np.minimum(size.min(axis=-1), 2.0**1000)
    near = 2.0**5 * near + 2.0**-40  # the power is wrong by twice that, of 8 to 16 steps
    unsure = np.flatnonzero((np.abs(rest - 0.5) >= 0.5 - near[..., None]) & np.isfinite(size))
    power.view(np.int64)[...] &= ~((1 << POWER_BITS) - 1)
    power[np.isinf(size)] = 0.0
    rows = y.reshape(-1, y.shape[-1])
    for at in unsure:
        row, k = divmod(int(at), size.shape[-1])
        error = 2.0**5 * wrong.flat[row] / size.flat[at] + 2.0**-40
        if abs(rest.flat[at] - 0.5) >= 0.5 - error:
            power.flat[at] = settled_power(rows[row], start + k)


def settled_power(y: Values, k: int) -> float:
    """The power of bin k of y (n,), cut to four bits, decided in integers."""
    real, imag, exponent = _exactly(y, k)
    power = real * real + imag * imag
    extra = max(power.bit_length() - 4, 0)
    return ldexp(float(power >> extra), extra + 2 * exponent)


def phases_of_tensor(y: Any, start: int, stop: int) -> tuple[Any, Any]:
    """`phases` of a float64 tensor, where it is; what lies near an edge is decided on the CPU."""
    import torch

    exponent = torch.frexp(y.abs().amax(-1)).exponent
    if len(exponent) and bool((exponent.abs() >= FARTHEST).any()):
        half = exponent[..., None] // 2  # at once the power itself might overflow
        y, exponent = torch.ldexp(torch.ldexp(y, -half), half - exponent[..., None]), 0 * exponent
    X = torch.fft.rfft(y, dim=-1)
    peak = torch.view_as_real(X).flatten(-2).abs().amax(-1)
    floor = torch.ldexp(torch.ones_like(peak), exponent + floor_shift(y.shape[-1]))
    floor = torch.where(peak == 0.0, torch.inf, floor)
    X = X[..., start:stop]
    size, wrong = (X.real.square() + X.imag.square()).sqrt(), (GUARD * peak)[..., None]
    flagged = (size - floor[..., None]).abs() <= wrong
    size = torch.where(size < floor[..., None], torch.inf, size)
    steps = 2.0**PHASE_BITS / size
    found = []
    for part in (X.real * steps, X.imag * steps):
        whole = part.round()
        flagged |= (part - whole).abs() > 0.5 - wrong * steps
        found.append(whole)
    chosen = torch.nonzero(flagged.flatten()).flatten()
    if len(chosen):
        width = stop - start
        rows, inverse = torch.unique(chosen // width, return_inverse=True)
        some = y.reshape(-1, y.shape[-1])[rows].cpu().numpy()
        re, im = (part.reshape(-1, width)[rows].cpu().numpy() for part in found)
        at = (inverse * width + chosen % width).cpu().numpy()
        _patch(some, at, start, re, im)
        for part, patched in zip(found, (re, im), strict=True):
            part.view(-1, width)[rows] = torch.from_numpy(patched).to(part.device)
    return found[0], found[1]


def _patch(y: Values, flagged: NDArray[np.intp], start: int, re: Values, im: Values) -> None:
    """Put what `settled` says into phases re and im (..., width) of y (rows, n)."""
    width = re.shape[-1]
    for at in np.unique(flagged):
        row, k = divmod(int(at), width)
        re.flat[at], im.flat[at] = settled(y[row], start + k)


def settled(y: Values, k: int) -> tuple[int, int]:
    """The phase of bin k of y (n,), in whole steps, decided in integers: 0, 0 where it is below the floor."""
    n = len(y)
    real, imag, _ = _exactly(y, k)
    power = real * real + imag * imag
    floor = 1 << (2 * TABLE_BITS + floor_shift(n))
    if power < floor * floor or not power:
        return 0, 0
    return _rounded(real, power), _rounded(imag, power)


def _exactly(y: Values, k: int) -> tuple[int, int, int]:
    """Bin k of the spectrum of y (n,) in integers: real, imaginary, and the exponent of their unit."""
    n = len(y)
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return 0, 0, 0
    exponent = frexp(largest)[1]
    samples = _limbs(np.rint(np.ldexp(y, TABLE_BITS - exponent)).astype(np.int64))  # (3, n)
    table = _circle_limbs(n)[:, np.arange(n) * k % n]  # (6, n)
    sums = np.zeros((3, 6), dtype=object)
    for first in range(0, n, AT_ONCE):
        part = slice(first, first + AT_ONCE)
        exact = samples[:, part] @ table[:, part].T  # whole numbers below 2^53: exact in any order
        sums += exact.astype(np.int64).astype(object)
    real, imag = (
        sum(int(sums[a, 3 * which + b]) << (LIMB * (a + b)) for a in range(3) for b in range(3))
        for which in (0, 1)
    )
    return real, -imag, exponent - 2 * TABLE_BITS


def _rounded(value: int, power: int) -> int:
    """value / sqrt(power) in steps, to the nearest."""
    doubled = (abs(value) << (PHASE_BITS + 1)) ** 2  # (2 steps)^2 of power
    whole = isqrt(doubled // (4 * power))
    whole += (2 * whole + 1) ** 2 * power <= doubled
    return whole if value >= 0 else -whole


def floor_shift(n: int) -> int:
    """log2 of the floor over that of the largest sample."""
    return -FLOOR_BITS + (n.bit_length() + 1) // 2


def _limbs(values: NDArray[np.int64]) -> Values:
    """Three parts of `LIMB` bits, the lowest first, whose magnitudes are at most 2^19: (3, n)."""
    parts = []
    for _ in range(2):
        low = ((values + (1 << (LIMB - 1))) & ((1 << LIMB) - 1)) - (1 << (LIMB - 1))
        parts.append(low)
        values = (values - low) >> LIMB
    return np.stack([*parts, values]).astype(np.float64)


def _patch_powers(
    y: Values,
    flagged: NDArray[np.intp],
    start: int,
    whole: list[Values],
    power: Values,
    turned: NDArray[np.intc] | None,
) -> None:
    """Powers where the phase was decided anew: 0 where it is 0, and no longer 0 where it is not."""
    width = power.shape[-1]
    rows = y.reshape(-1, y.shape[-1])
    for at in np.unique(flagged):
        row, k = divmod(int(at), width)
        if whole[0].flat[at] == 0.0 == whole[1].flat[at]:
            power.flat[at] = 0.0
        elif power.flat[at] == 0.0:
            more = 0 if turned is None else 2 * int(turned.flat[row])
            with np.errstate(over="ignore", under="ignore"):
                power.flat[at] = np.ldexp(settled_power(rows[row], start + k), more)


@lru_cache(maxsize=8)
def _circle_limbs(n: int) -> Values:
    """Parts of the cosines, then of the sines: (6, n)."""
    return _fixed(np.concatenate([_limbs(table) for table in circle(n)]))


def _fixed(array: NDArray[Kind]) -> NDArray[Kind]:
    array.flags.writeable = False
    return array
