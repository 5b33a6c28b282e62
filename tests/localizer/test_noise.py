"""Discrete Gaussian noise: exact, secure, and not to be seeded by accident."""

from __future__ import annotations

import inspect
import os

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from tytoalba.errors import TytoError
from tytoalba.localizer.noise import LARGEST_SIGMA, Source, _below, _exponential, _laplace, discrete_gaussian


def seeded(seed: int) -> Source:
    return np.random.default_rng(seed).bytes


def chi_square(drawn: NDArray[np.int64], values: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    """Chance of counts that differ as much from these chances."""
    expected = chances * len(drawn)
    kept = expected >= 8
    counts = np.array([(drawn == value).sum() for value in values[kept]], float)
    expected = np.append(expected[kept], len(drawn) - expected[kept].sum())
    counts = np.append(counts, len(drawn) - counts.sum())
    return float(chi2.sf(((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), len(counts) - 1))


@pytest.mark.parametrize("sigma", [1, 2, 3, 20])
def test_draws_have_the_chances_of_the_discrete_gaussian(sigma: int) -> None:
    drawn = discrete_gaussian(60_000, sigma, seeded(sigma))
    values = np.arange(-10 * sigma, 10 * sigma + 1)
    weight = np.exp(-(values**2) / (2 * sigma**2))
    assert chi_square(drawn, values, weight / weight.sum()) > 1e-3


def test_chi_square_notices_another_sigma() -> None:
    values = np.arange(-30, 31)
    weight = np.exp(-(values**2) / (2 * 3.1**2))
    assert chi_square(discrete_gaussian(60_000, 3, seeded(0)), values, weight / weight.sum()) < 1e-3


def test_moments_at_the_sizes_that_releases_need() -> None:
    drawn = discrete_gaussian(100_000, 1_234_567, seeded(1)) / 1_234_567
    assert abs(drawn.mean()) < 4 / np.sqrt(100_000)
    assert abs((drawn**2).mean() - 1) < 0.02
    assert abs((drawn**4).mean() - 3) < 0.15


def test_laplace_and_exponential_chances() -> None:
    drawn = _laplace(60_000, 4, seeded(2))
    values = np.arange(-60, 61)
    weight = np.exp(-np.abs(values) / 4)
    assert chi_square(drawn, values, weight / weight.sum()) > 1e-3
    for over in (0, 1, 3, 7):
        came = _exponential(np.full(50_000, over, np.uint64), np.uint64(7), seeded(over))
        assert abs(came.mean() - np.exp(-over / 7)) < 0.01


def test_whole_numbers_below_a_limit_are_uniform_and_their_last_stretch_is_drawn_again() -> None:
    limit = np.uint64(3 * 2**61)  # of 2^64 a third is left over: the naive rest would favour small numbers
    drawn = _below(np.full(30_000, limit), seeded(3))
    assert drawn.max() < limit
    assert abs((drawn < limit // np.uint64(3)).mean() - 1 / 3) < 0.015


def test_noise_is_the_operating_systems_and_differs_each_time() -> None:
    assert inspect.signature(discrete_gaussian).parameters["source"].default is os.urandom
    np.random.seed(0)  # noqa: NPY002 - nothing that anybody seeds may matter
    first = discrete_gaussian(50, 10**6)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, discrete_gaussian(50, 10**6))
    assert np.array_equal(discrete_gaussian(50, 9, seeded(4)), discrete_gaussian(50, 9, seeded(4)))


@pytest.mark.parametrize("sigma", [0, -1, 1.5, True, LARGEST_SIGMA + 1])
def test_other_sigmas_are_refused(sigma: int) -> None:
    with pytest.raises(TytoError, match="sigma must be a whole number"):
        discrete_gaussian(1, sigma)


def test_no_draws_and_the_largest_sigma() -> None:
    assert len(discrete_gaussian(0, 5)) == 0
    assert discrete_gaussian(10, LARGEST_SIGMA).dtype == np.int64
    with pytest.raises(TytoError, match="negative"):
        discrete_gaussian(-1, 5)
