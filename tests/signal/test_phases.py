"""Phases are the same whole numbers from any FFT, in any batch, whatever its rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.fft
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.signal import phases as module
from tytoalba.signal.phases import (
    GUARD,
    PHASE_BITS,
    circle,
    cosines,
    hamming,
    phases,
    phases_of_tensor,
    settled,
    settled_power,
)

Values = NDArray[np.float64]
STEPS = 2**PHASE_BITS
SIGNALS: dict[str, Callable[[int], Values]] = {
    "noise": lambda n: np.random.default_rng(1).standard_normal((3, 2, n)),
    "steep noise": lambda n: np.random.default_rng(2).standard_normal((3, 2, n)).cumsum(-1).cumsum(-1),
    "a tone": lambda n: np.tile(np.sin(0.31 * np.arange(n)), (3, 2, 1)).astype(np.float32).astype(np.float64),
    "a tone of int16": lambda n: np.tile(np.rint(32767 * np.sin(0.31 * np.arange(n))) / 32768, (3, 2, 1)),
    "a tone on a bin": lambda n: np.tile(np.cos(2 * np.pi * 5 / n * np.arange(n)), (3, 2, 1)),
    "silence": lambda n: np.zeros((3, 2, n)),
    "an impulse": lambda n: np.tile(np.arange(n) == n // 3, (3, 2, 1)).astype(np.float64),
    "two impulses": lambda n: np.tile((np.arange(n) % (n // 2) == 0) * 0.5, (3, 2, 1)),
    "a copied channel": lambda n: np.tile(np.random.default_rng(3).standard_normal((3, 1, n)), (1, 2, 1)),
    "clipped": lambda n: np.sign(np.random.default_rng(4).standard_normal((3, 2, n))),
    "constant": lambda n: np.ones((3, 2, n)),
    "tiny": lambda n: 1e-42 * np.random.default_rng(5).standard_normal((3, 2, n)),
    "beyond float32": lambda n: 1e300 * np.random.default_rng(6).standard_normal((3, 2, n)),
    "vanishing": lambda n: 1e-310 * np.random.default_rng(7).standard_normal((3, 2, n)),
}  # fmt: skip


def by_torch(y: Values, **_: Any) -> NDArray[np.complex128]:
    return np.asarray(torch.fft.rfft(torch.from_numpy(np.ascontiguousarray(y)), dim=-1))


def perturbed(seed: int, share: float, y: Values, **_: Any) -> NDArray[np.complex128]:
    """An FFT with errors up to a share of the guard."""
    X = scipy.fft.rfft(y, axis=-1)
    rng, peak = np.random.default_rng(seed), np.abs(X.view(np.float64)).max(axis=-1, keepdims=True)
    error = rng.uniform(-1, 1, X.shape) + 1j * rng.uniform(-1, 1, X.shape)
    return np.asarray(X + error * peak * GUARD * share)


def whole(y: Values, rfft: Callable[..., Any] = scipy.fft.rfft) -> Values:
    return np.stack(phases(y, 0, y.shape[-1] // 2 + 1, rfft)) + 0.0


@pytest.mark.parametrize("n", [64, 90, 341])
@pytest.mark.parametrize("name", SIGNALS)
def test_every_fft_gives_the_same(name: str, n: int) -> None:
    y = SIGNALS[name](n) * hamming(n)
    expected = whole(y)
    assert np.array_equal(expected, np.rint(expected))
    assert np.abs(expected).max() <= STEPS
    ffts: list[Any] = [partial(perturbed, seed, 0.5) for seed in range(3)]
    for rfft in [np.fft.rfft, by_torch, *ffts]:
        assert whole(y, rfft).tobytes() == expected.tobytes()
    tensors = phases_of_tensor(torch.from_numpy(y), 0, n // 2 + 1)
    assert (np.stack([part.numpy() for part in tensors]) + 0.0).tobytes() == expected.tobytes()
    assert whole(y[1:2, 1:]).tobytes() == expected[:, 1:2, 1:].tobytes()
    if name == "silence":
        assert not expected.any()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([1, 2, 3, 7, 2**15, 2**24]))
def test_few_coarse_samples_lie_on_edges_and_are_decided_alike(seed: int, n: int, grid: int) -> None:
    """Whole numbers make phases and sizes that are simple, where ties and near ties are likely."""
    y = np.rint(np.random.default_rng(seed).uniform(-grid, grid, (4, n)))
    expected = whole(y)
    assert whole(y, partial(perturbed, seed, 0.9)).tobytes() == expected.tobytes()
    assert whole(y, np.fft.rfft).tobytes() == expected.tobytes()


def powers(y: Values, rfft: Callable[..., Any] = scipy.fft.rfft) -> tuple[Values, Values]:
    """Powers of all bins, and the phases beside them."""
    found = np.empty((*y.shape[:-1], y.shape[-1] // 2 + 1))
    return found, np.stack(phases(y, 0, found.shape[-1], rfft, found))


@pytest.mark.parametrize("n", [64, 171])
@pytest.mark.parametrize("name", SIGNALS)
def test_powers_are_the_same_from_every_fft(name: str, n: int) -> None:
    y = SIGNALS[name](n) * hamming(n)
    expected, beside = powers(y)
    assert beside.tobytes() == np.stack(phases(y, 0, n // 2 + 1, scipy.fft.rfft)).tobytes()
    assert not expected[~beside.any(axis=0)].any()  # without a phase, no power
    for rfft in (np.fft.rfft, partial(perturbed, 0, 0.5), partial(perturbed, 1, 0.5)):
        assert powers(y, rfft)[0].tobytes() == expected.tobytes()
    with np.errstate(over="ignore"):
        real = np.abs(scipy.fft.rfft(y)) ** 2
    kept = (expected > 0) & np.isfinite(real)
    assert (np.frexp(expected[kept])[0] * 16 % 1 == 0).all()  # four bits
    assert (expected[kept] <= real[kept] * (1 + 1e-9)).all()
    assert (expected[kept] >= real[kept] * (8 / 9 - 1e-9)).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([1, 2, 3, 7, 2**15, 2**24]))
def test_powers_of_coarse_samples_lie_on_edges_and_are_decided_alike(seed: int, n: int, grid: int) -> None:
    y = np.rint(np.random.default_rng(seed).uniform(-grid, grid, (4, n)))
    expected = powers(y)[0]
    assert powers(y, partial(perturbed, seed, 0.9))[0].tobytes() == expected.tobytes()
    for row, k in np.argwhere(expected > 0)[:6]:
        assert settled_power(y[row], int(k)) == expected[row, k]


def test_without_the_guard_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the tests above could pass with nothing to decide."""
    y = np.random.default_rng(0).standard_normal((100, 512))
    fft = partial(perturbed, 0, 5e5)  # so much larger errors make what is rare common
    monkeypatch.setattr(module, "GUARD", 0.0)
    assert 3 <= np.count_nonzero(whole(y, fft) != whole(y)) < 1000
    monkeypatch.setattr(module, "GUARD", 1e6 * GUARD)
    assert whole(y, fft).tobytes() == whole(y).tobytes()


def test_they_are_the_rounded_phases() -> None:
    y = np.random.default_rng(1).standard_normal((5, 300)) * hamming(300)
    X = scipy.fft.rfft(y)
    real, imag = phases(y, 10, 140, scipy.fft.rfft)
    unit = (X / np.abs(X))[:, 10:140] * STEPS
    assert np.abs(real - unit.real).max() <= 0.5 + 1e-9
    assert np.abs(imag - unit.imag).max() <= 0.5 + 1e-9
    for k in (0, 7, 150):
        value = settled(y[2], k)
        assert abs(complex(*value) - STEPS * X[2, k] / abs(X[2, k])) < 0.71


def test_bins_of_next_to_nothing_are_dropped() -> None:
    n = 1024
    tone = np.sin(2 * np.pi * 100 / n * np.arange(n))
    for weak, kept in ((2.0**-21, False), (2.0**-14, True)):
        real, imag = phases(tone + weak * np.sin(2 * np.pi * 300 / n * np.arange(n)), 0, 513, scipy.fft.rfft)
        assert bool(real[300] or imag[300]) == kept
        assert np.count_nonzero(real.astype(bool) | imag.astype(bool)) == 1 + kept


@pytest.mark.parametrize("level", [1.0, 2.0**-1030, 2.0**901, 2.0**902])
def test_what_is_dropped_does_not_depend_on_the_level(level: float) -> None:
    """Also where squares of samples would vanish or overflow, in numpy as in torch."""
    n = 256
    weak = np.random.default_rng(0).standard_normal((20, n)) * 2.0 ** -np.linspace(11, 17, 20)[:, None]
    y = 1.0 + np.ldexp(np.rint(weak * 2.0**30), -30)
    expected = whole(y)
    dropped = ~expected.any(axis=0)
    assert 0.2 < dropped.mean() < 0.8
    assert whole(y * level).tobytes() == expected.tobytes()
    tensors = phases_of_tensor(torch.from_numpy(y * level), 0, n // 2 + 1)
    assert (np.stack([part.numpy() for part in tensors]) + 0.0).tobytes() == expected.tobytes()


def test_silence_has_no_phases() -> None:
    n = 64
    assert settled(np.zeros(n), 3) == (0, 0)


def test_bins_at_the_edge_of_what_is_dropped_are_decided_alike() -> None:
    n = 64
    floor = 2.0 ** (1 + module.floor_shift(n))  # of samples whose largest is 1
    for k, kept in ((0, True), (1, False)):
        y = np.zeros(n)
        y[:2] = 1.0, -1.0 + floor * (1 - k * 2.0**-30)  # the sum is the bin of 0 Hz
        assert bool(whole(y)[0, 0]) == kept
        for seed in range(4):
            assert bool(whole(y, partial(perturbed, seed, 0.9))[0, 0]) == kept


# ---- tables


@pytest.mark.parametrize("n", [1, 2, 7, 12, 90, 1024])
def test_cosines_come_from_integers(n: int) -> None:
    angle = 2 * np.pi * np.arange(n) / n
    for table, wanted in zip(circle(n), (np.cos(angle), np.sin(angle)), strict=True):
        assert table.dtype == np.int64
        assert np.abs(table / 2.0**58 - wanted).max() < 2e-15
    assert [int(value) for value in circle(12)[0][[0, 2, 3, 6]]] == [2**58, 2**57, 0, -(2**58)]
    cosine, sine = cosines(n, np.arange(-3, 2 * n), 16)
    assert np.abs(cosine - 2**16 * np.cos(2 * np.pi * np.arange(-3, 2 * n) / n)).max() <= 0.5 + 1e-6
    assert np.abs(sine - 2**16 * np.sin(2 * np.pi * np.arange(-3, 2 * n) / n)).max() <= 0.5 + 1e-6


def test_the_window_is_hamming_on_a_grid() -> None:
    for n in (2730, 8192):
        wanted = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / n)
        assert np.abs(hamming(n) - wanted).max() <= 2.0**-15 + 1e-12
        assert np.array_equal(hamming(n) * 2**14, np.rint(hamming(n) * 2**14))
