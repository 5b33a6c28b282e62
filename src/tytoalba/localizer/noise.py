"""Discrete Gaussian noise, drawn exactly: whole numbers only, from the operating system's secure randomness.

The sampler of Canonne, Kamath and Steinke (The Discrete Gaussian for Differential Privacy, 2020), for whole
sigma and many numbers at a time. No float is computed anywhere, so no rounding weakens the proof: a draw x
has a chance in proportion to exp(-x^2 / (2 sigma^2)). Whole-number sums of L2 sensitivity S with this noise
on each entry are 1/2 (S / sigma)^2 zero-concentrated differentially private, as with real Gaussian noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError

Source = Callable[[int], bytes]
"""Gives that many random bytes."""
Whole = NDArray[np.uint64]

LARGEST_SIGMA = 2**24
"""So that all products fit into 64 bits. Draws from 2^31 on, 128 sigma and more, are drawn again: that
changes their chances by less than exp(-8000)."""
LONGEST = 2**31
BLOCK = 2**18
"""Numbers drawn at a time."""


def discrete_gaussian(n: int, sigma: int, source: Source = os.urandom) -> NDArray[np.int64]:
    """Independent draws (n,) of the discrete Gaussian with mean 0 and whole sigma, from 1 to 2^24.

    source: for tests alone; noise that can be foretold protects nobody.

    >>> abs(float(discrete_gaussian(20_000, 50).std()) - 50) < 2
    True
    """
    if isinstance(sigma, bool) or not isinstance(sigma, int) or not 1 <= sigma <= LARGEST_SIGMA:
        raise TytoError(f"sigma must be a whole number from 1 to {LARGEST_SIGMA}, got {sigma!r}")
    if n < 0:
        raise TytoError(f"the number of draws must not be negative, got {n}")
    found: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    missing = n
    while missing > 0:
        drawn = _accepted(min(BLOCK, 2 * missing + 64), sigma, source)[:missing]
        found.append(drawn)
        missing -= len(drawn)
    return np.concatenate(found)


def _accepted(n: int, sigma: int, source: Source) -> NDArray[np.int64]:
    """About 0.7 n draws: of n draws of a discrete Laplace distribution of scale sigma those that stay.

    x stays with chance exp(-(|x| - sigma)^2 / (2 sigma^2)).
    """
    drawn = _laplace(n, sigma, source)
    drawn = drawn[np.abs(drawn) < LONGEST]
    apart = np.abs(np.abs(drawn) - sigma).astype(np.uint64)
    square, unit = apart * apart, np.uint64(2 * sigma * sigma)
    whole, rest = square // unit, square % unit
    stays = _runs(len(drawn), source) >= whole
    stays[stays] = _exponential(rest[stays], unit, source)
    return np.asarray(drawn[stays])


def _laplace(n: int, scale: int, source: Source) -> NDArray[np.int64]:
    """Draws x of at most n, each with a chance in proportion to exp(-|x| / scale)."""
    unit = np.uint64(scale)
    below = _below(np.full(n, unit), source)
    below = below[_exponential(below, unit, source)]
    size = (below + unit * _runs(len(below), source)).astype(np.int64)
    negative = (_words(len(size), source) >> np.uint64(63)).astype(np.bool_)
    signed: NDArray[np.int64] = np.where(negative, -size, size)
    return np.asarray(signed[~(negative & (size == 0))])  # or zero would come twice as often


def _runs(n: int, source: Source) -> Whole:
    """How often in a row a chance of exp(-1) came true, (n,)."""
    count, going = np.zeros(n, np.uint64), np.arange(n)
    one = np.uint64(1)
    while len(going):
        going = going[_exponential(np.ones(len(going), np.uint64), one, source)]
        count[going] += one
    return count


def _exponential(over: Whole, under: np.uint64, source: Source) -> NDArray[np.bool_]:
    """True with chance exp(-over / under), each; over: at most under.

    By von Neumann: of chances g, g / 2, g / 3, ... the first that fails has an odd number that often.
    """
    result, going, k = np.zeros(len(over), np.bool_), np.arange(len(over)), 1
    while len(going):
        came = _below(np.full(len(going), under * np.uint64(k)), source) < over[going]
        result[going[~came]] = k % 2 == 1
        going, k = going[came], k + 1
    return result


def _below(limit: Whole, source: Source) -> Whole:
    """Uniform whole numbers from 0 up to, and without, each limit, which is below 2^63."""
    result, going = np.empty(len(limit), np.uint64), np.arange(len(limit))
    while len(going):
        most = limit[going]
        words = _words(len(going), source)
        rest = words % most
        fair = words - rest <= np.uint64(2**64 - 1) - (most - np.uint64(1))  # the last, short stretch is not
        result[going[fair]] = rest[fair]
        going = going[~fair]
    return result


def _words(n: int, source: Source) -> Whole:
    return np.frombuffer(source(8 * n), np.uint64)
