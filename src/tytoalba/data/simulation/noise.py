"""Noise to add to a recording at a chosen signal-to-noise ratio: how robust is what was learned in quiet?"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tytoalba.data.simulation.room import Sound, diffuse_noise
from tytoalba.data.simulation.voice import SPEECH_RATE, SyntheticVoices, at_rate
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import mix

N_TALKERS = 12


def white(array: MicArray, n_samples: int, rng: np.random.Generator) -> Sound:
    """Independent white noise in every microphone, (n_mics, n_samples)."""
    return rng.standard_normal((array.n_mics, n_samples), dtype=np.float32)


def babble(array: MicArray, n_samples: int, rng: np.random.Generator) -> Sound:
    """A dozen synthetic talkers around the array, each a plane wave from its own direction."""
    total = np.zeros((array.n_mics, n_samples), np.float32)
    voices = SyntheticVoices()
    for azimuth in rng.uniform(0, 360, N_TALKERS):
        spoken = voices.speak(
            int(rng.integers(voices.n_speakers)), n_samples * SPEECH_RATE // array.sample_rate + 64, rng
        )
        total += plane_wave(at_rate(spoken, array.sample_rate)[:n_samples], array, float(azimuth))
    return total


def fan(array: MicArray, n_samples: int, rng: np.random.Generator) -> Sound:
    """A fan somewhere around the array: falling noise and the hum of its blades, half of it diffuse."""
    direct = plane_wave(fan_sound(n_samples, array.sample_rate, rng), array, float(rng.uniform(0, 360)))
    around = diffuse_noise(array, n_samples, rng, tilt=2.0)
    return direct / np.float32(direct.std()) + around / np.float32(around.std())


NOISES: dict[str, Callable[[MicArray, int, np.random.Generator], Sound]] = {
    "white": white,
    "babble": babble,
    "fan": fan,
}


class AnyNoise(Protocol):
    """Noise that is added to a recording; it depends on the recording's name and a seed only."""

    def added_to(self, samples: Sound, array: MicArray, name: str) -> Sound:
        """The recording `name` with this noise, (n_mics, n_samples)."""


@dataclass(frozen=True)
class Noise:
    """A kind of noise at an SNR in dB; the noise of a recording depends on its name and `seed` only."""

    kind: str
    snr: float
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in NOISES:
            raise ValueError(f"no noise called {self.kind!r}; known: {', '.join(NOISES)}")

    def __str__(self) -> str:
        return f"{self.kind} {self.snr:g} dB"

    def added_to(self, samples: Sound, array: MicArray, name: str) -> Sound:
        """The recording `name` with this noise, (n_mics, n_samples)."""
        rng = np.random.default_rng([self.seed, zlib.crc32(self.kind.encode()), zlib.crc32(name.encode())])
        return mix(samples, NOISES[self.kind](array, samples.shape[1], rng), self.snr).astype(np.float32)


def plane_wave(sound: Sound, array: MicArray, azimuth: float) -> Sound:
    """A sound from far away, (n_mics, n_samples): delayed and weighted as each microphone gets it."""
    n = len(sound)
    hertz = np.fft.rfftfreq(n, 1 / array.sample_rate)
    shift = np.exp(-2j * np.pi * hertz * array.arrival_times(azimuth)[:, None])  # (M, K)
    waves = np.fft.irfft(np.fft.rfft(sound) * shift, n) * array.gains(azimuth)[:, None]
    return waves.astype(np.float32)


def fan_sound(n_samples: int, sample_rate: int, rng: np.random.Generator) -> Sound:
    """What a fan sounds like close by, (n_samples,)."""
    spectrum = np.fft.rfft(rng.standard_normal(n_samples))
    hertz = np.fft.rfftfreq(n_samples, 1 / sample_rate)
    noise = np.fft.irfft(spectrum / np.sqrt(1 + (hertz / 300.0) ** 2), n_samples)
    t = np.arange(n_samples) / sample_rate
    blades = rng.uniform(80.0, 250.0)
    hum = sum(np.sin(2 * np.pi * k * blades * t + rng.uniform(0, 6.28)) / k for k in range(1, 6))
    return np.asarray(noise / noise.std() + 0.5 * hum, np.float32)
