"""Steady sounds: power 1, the same from a seed, at every rate, and of mechanisms that differ."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.data.simulation.steady import KINDS, LEFT_OUT, NOT_STEADY, TRAINED, steady_sound

RATES = (8000, 16000, 44100, 48000)
BANDS = (80, 160, 315, 630, 1250, 2500, 3900)
kinds = pytest.mark.parametrize("kind", KINDS)


def made(kind: str, seed: int = 0, seconds: float = 2.0, rate: int = 16000) -> NDArray[np.float64]:
    sound = steady_sound(kind, int(seconds * rate), rate, np.random.default_rng(seed))
    return sound.astype(np.float64)


def spectrum(sound: NDArray[np.float64], rate: int = 16000) -> NDArray[np.float64]:
    """dB of power in bands of an octave, the mean taken off."""
    power = np.abs(np.fft.rfft(sound)) ** 2
    hertz = np.fft.rfftfreq(len(sound), 1 / rate)
    level = [
        10 * np.log10(power[(hertz >= low) & (hertz < high)].sum() + 1e-9) for low, high in pairwise(BANDS)
    ]
    return np.asarray(level - np.mean(level))


@kinds
@pytest.mark.parametrize("rate", RATES)
def test_power_is_one_at_every_rate(kind: str, rate: int) -> None:
    sound = steady_sound(kind, rate + 1, rate, np.random.default_rng(3))
    assert sound.shape == (rate + 1,)
    assert sound.dtype == np.float32
    assert np.mean(sound.astype(np.float64) ** 2) == pytest.approx(1.0, abs=1e-4)


@given(st.sampled_from(list(KINDS)), st.integers(0, 99), st.integers(1, 5000))
def test_a_seed_gives_the_same_sound_of_any_length(kind: str, seed: int, n_samples: int) -> None:
    first, second = (steady_sound(kind, n_samples, 16000, np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (n_samples,)
    assert np.isfinite(first).all()


@kinds
def test_two_of_a_kind_differ(kind: str) -> None:
    assert np.abs(spectrum(made(kind, 0)) - spectrum(made(kind, 1))).max() > 0.5


def test_kinds_have_spectra_of_their_own() -> None:
    """Of two kinds, the mean spectra of twelve sounds each are some dB apart."""
    mean = {kind: np.mean([spectrum(made(kind, k, 1.0)) for k in range(12)], axis=0) for kind in KINDS}
    names = list(mean)
    apart = {(a, b): np.abs(mean[a] - mean[b]).max() for k, a in enumerate(names) for b in names[k + 1 :]}
    alike = [pair for pair, far in apart.items() if far < 1.0]
    assert not alike


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NOT_STEADY])
def test_what_is_steady_has_about_the_same_level_all_the_time(kind: str) -> None:
    level = [
        10 * np.log10(np.mean(part**2))
        for seed in range(4)
        for sound in [made(kind, seed, 4.0)]
        for part in np.array_split(sound, 8)
    ]
    assert np.std(level) < 4.0


def test_kinds_for_training_and_for_judging_are_apart() -> None:
    assert not set(TRAINED) & set(LEFT_OUT)
    assert set(KINDS) == set(TRAINED) | set(LEFT_OUT)
    assert len(TRAINED) >= 5
    assert len(LEFT_OUT) >= 4


@kinds
def test_much_of_it_is_where_speech_is(kind: str) -> None:
    """Some of the sound lies between 300 Hz and 3.5 kHz, or it would disturb nobody."""
    for seed in range(3):
        power = np.abs(np.fft.rfft(made(kind, seed))) ** 2
        hertz = np.fft.rfftfreq(32000, 1 / 16000)
        inside = power[(hertz > 300) & (hertz < 3500)].sum() / power.sum()
        assert inside > 0.005


def test_unknown_kinds_and_no_sound_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="no steady sound called 'fam'; known: fan"):
        steady_sound("fam", 100, 16000, rng)
    with pytest.raises(ValueError, match="at least one sample"):
        steady_sound("fan", 0, 16000, rng)
