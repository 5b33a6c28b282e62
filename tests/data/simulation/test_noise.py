"""Noise: the SNR that was asked for, the same from the recording's name, and of the kind that it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.data.simulation.noise import NOISES, Noise, fan_sound, plane_wave
from tytoalba.errors import AudioError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import lag_matrix

PEPPER = load_array("pepper")
ARRAYS = [PEPPER, load_array("respeaker-usb-4"), load_array("minidsp-uma8")]
N = 16384
kinds = pytest.mark.parametrize("kind", NOISES)


def speech(array: MicArray = PEPPER, n_samples: int = N, seed: int = 0) -> NDArray[np.float32]:
    """Something to add noise to."""
    rng = np.random.default_rng(seed)
    return (0.1 * rng.standard_normal((array.n_mics, n_samples))).astype(np.float32)


def made(kind: str, n_samples: int = N, seed: int = 0, array: MicArray = PEPPER) -> NDArray[np.float64]:
    return NOISES[kind](array, n_samples, np.random.default_rng(seed)).astype(np.float64)


def decibel(signal: NDArray[np.float64], noise: NDArray[np.float64]) -> float:
    return float(10 * np.log10(np.mean(signal**2) / np.mean(noise**2)))


# ---- every kind ----


@kinds
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.name))
def test_shape_type_and_level(kind: str, array: MicArray) -> None:
    for n_samples in (N, N + 1):
        noise = NOISES[kind](array, n_samples, np.random.default_rng(0))
        assert noise.shape == (array.n_mics, n_samples)
        assert noise.dtype == np.float32
        assert np.isfinite(noise).all()
        assert (noise.std(axis=1) > 0).all()


@kinds
@pytest.mark.parametrize("snr", [-20.0, 0.0, 12.5])
def test_the_snr_is_exact_over_the_recording(kind: str, snr: float) -> None:
    clean = speech()
    noisy = Noise(kind, snr).added_to(clean, PEPPER, "talk")
    assert noisy.dtype == np.float32
    added = noisy.astype(np.float64) - clean
    assert decibel(clean.astype(np.float64), added) == pytest.approx(snr, abs=1e-4)


@kinds
def test_the_same_from_name_and_seed_and_another_from_others(kind: str) -> None:
    clean = speech()
    before = clean.copy()
    first = Noise(kind, 0.0).added_to(clean, PEPPER, "talk")
    np.testing.assert_array_equal(first, Noise(kind, 0.0).added_to(clean, PEPPER, "talk"))
    np.testing.assert_array_equal(clean, before)
    for other in (
        Noise(kind, 0.0).added_to(clean, PEPPER, "talk2"),
        Noise(kind, 0.0, seed=1).added_to(clean, PEPPER, "talk"),
    ):
        assert abs(np.corrcoef((first - clean).ravel(), (other - clean).ravel())[0, 1]) < 0.5
    louder = Noise(kind, -20.0).added_to(clean, PEPPER, "talk")  # the same noise, ten times as strong
    np.testing.assert_allclose(louder - clean, 10 * (first - clean), atol=1e-5)


def test_kinds_do_not_share_their_noise() -> None:
    added = [(Noise(kind, 0.0).added_to(speech(), PEPPER, "talk") - speech()).ravel() for kind in NOISES]
    assert np.abs(np.corrcoef(added) - np.eye(3)).max() < 0.1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="no noise called 'rain'; known: white, babble, fan"):
        Noise("rain", 0.0)
    with pytest.raises(AudioError, match="the signal is silent"):
        Noise("white", 0.0).added_to(0 * speech(), PEPPER, "talk")


def test_how_a_noise_is_called() -> None:
    assert str(Noise("white", -10.0)) == str(Noise("white", -10)) == "white -10 dB"
    assert str(Noise("fan", 2.5)) == "fan 2.5 dB"


# ---- what each kind is ----


def coherence(noise: NDArray[np.float64], low: float, high: float) -> float:
    """Mean magnitude-squared coherence of the first microphone with the others in a band, near 0 to 1."""
    from scipy.signal import coherence as measured

    hertz, found = measured(noise[:1], noise[1:], PEPPER.sample_rate, nperseg=512)
    return float(found[:, (hertz >= low) & (hertz < high)].mean())


def test_white_is_flat_and_nobodys_but_the_microphones_own() -> None:
    noise = made("white", 8 * N)
    apart = np.corrcoef(noise) - np.eye(4)
    assert np.abs(apart).max() < 0.02
    assert coherence(noise, 100, 20000) < 0.02
    power = np.abs(np.fft.rfft(noise)) ** 2
    bands = np.array([part.mean() for part in np.array_split(power, 8, axis=1)])
    assert bands.max() / bands.min() < 1.1


def test_babble_has_the_spectrum_of_speech() -> None:
    noise = made("babble", 4 * N)
    power = np.abs(np.fft.rfft(noise)).mean(axis=0) ** 2
    hertz = np.fft.rfftfreq(noise.shape[1], 1 / PEPPER.sample_rate)

    def level(low: float, high: float) -> float:
        return float(10 * np.log10(power[(hertz >= low) & (hertz < high)].mean()))

    assert level(100, 1000) > level(1000, 4000) + 6
    assert level(1000, 4000) > level(4000, 8000) + 3
    assert level(100, 1000) > level(9000, 20000) + 40  # voices are made at 16 kHz
    assert level(100, 1000) > level(20, 70) + 10
    assert coherence(noise, 100, 1000) > 0.3  # waves, not the microphones' own


def loudest(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """SRP-PHAT map over all frames of a noise."""
    gcc = GccPhat.for_array(PEPPER, 8192, (100.0, 8000.0))
    frames = noise.reshape(4, -1, 8192).swapaxes(0, 1)
    features = np.asarray(gcc(frames)).reshape(len(frames), -1).mean(axis=0)
    found: NDArray[np.float64] = features @ lag_matrix(gcc, PEPPER, 360)
    return found


def test_a_fan_stands_somewhere() -> None:
    seen = []
    for seed in range(4):
        truth = _fan_azimuth(seed)
        found = float(np.argmax(loudest(made("fan", 4 * N, seed))))
        seen.append(float(distance(found, truth)))
    assert np.median(seen) < 15.0


def _fan_azimuth(seed: int) -> float:
    """Where the fan of this seed stands: what `fan` draws after its sound."""
    rng = np.random.default_rng(seed)
    fan_sound(4 * N, PEPPER.sample_rate, rng)
    return float(rng.uniform(0, 360))


def test_a_fan_falls_and_hums() -> None:
    sound = fan_sound(8 * N, 48000, np.random.default_rng(0))
    power = np.abs(np.fft.rfft(sound)) ** 2
    hertz = np.fft.rfftfreq(8 * N, 1 / 48000)
    assert power[hertz < 300].mean() > 20 * power[(hertz > 3000) & (hertz < 6000)].mean()
    blades = hertz[np.argmax(power * (hertz > 60))]
    assert 80 <= blades <= 250
    for harmonic in (2, 3):
        near = np.abs(hertz - harmonic * blades) < 2
        beside = np.abs(np.abs(hertz - harmonic * blades) - 20) < 10
        assert power[near].max() > 5 * power[beside].mean()


# ---- a plane wave ----


@given(st.floats(0, 360), st.sampled_from(ARRAYS), st.integers(0, 3))
def test_a_plane_wave_arrives_when_the_array_says(azimuth: float, array: MicArray, seed: int) -> None:
    n = 512
    sound = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
    waves = plane_wave(sound, array, azimuth)
    assert waves.shape == (array.n_mics, n)
    hertz = np.fft.rfftfreq(n, 1 / array.sample_rate)[1:-1]
    transfer = np.fft.rfft(waves)[:, 1:-1] / np.fft.rfft(sound)[1:-1]
    expected = array.gains(azimuth)[:, None] * np.exp(
        -2j * np.pi * hertz * array.arrival_times(azimuth)[:, None]
    )
    strong = np.abs(np.fft.rfft(sound)[1:-1]) > 5.0
    np.testing.assert_allclose(transfer[:, strong], expected[:, strong], atol=1e-4)


def test_a_plane_wave_comes_first_to_the_microphone_that_faces_it() -> None:
    click = np.zeros(4096, np.float32)
    click[2048] = 1.0
    for azimuth in (0.0, 77.0, 200.0):
        peaks = np.argmax(np.abs(plane_wave(click, PEPPER, azimuth)), axis=1) - 2048
        np.testing.assert_allclose(peaks, PEPPER.arrival_times(azimuth) * 48000, atol=0.51)
