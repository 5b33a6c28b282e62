"""Who speaks: a synthetic voice for those who have no speech at hand, and a folder of real speech.

The synthetic voice has what matters to a localizer: harmonics of a moving pitch, moving formants,
fricative noise, bursts, pauses. Nobody would take it for a person. Both give mono speech at 16 kHz, the
bandwidth of the speech that SSLR's loudspeakers played.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from pathlib import Path
from tokenize import TokenError
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly

from tytoalba.errors import DataError
from tytoalba.signal.angles import Float

SPEECH_RATE = 16000
Speech = NDArray[np.float32]
_SOUND = {".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".npy"}


class Voices(Protocol):
    """Speakers 0..n_speakers-1, and what one of them says."""

    @property
    def n_speakers(self) -> int:
        """How many speakers there are."""

    def speak(self, speaker: int, n_samples: int, rng: np.random.Generator) -> Speech:
        """Speech of a speaker, (n_samples,) at 16 kHz, RMS about 1 while talking."""


@dataclass(frozen=True)
class SpeechFolder:
    """A folder of recordings, one file per speaker (in the order of their names)."""

    folder: Path

    def __post_init__(self) -> None:
        _sound_files(self.folder)  # says what is wrong with it

    @property
    def files(self) -> tuple[Path, ...]:
        """The speakers' files."""
        return _sound_files(self.folder)

    @property
    def n_speakers(self) -> int:
        """How many speakers there are."""
        return len(self.files)

    def speak(self, speaker: int, n_samples: int, rng: np.random.Generator) -> Speech:
        """A random stretch of a speaker's file, repeated where the file is shorter."""
        whole = _load_speaker(self.files[speaker])
        start = int(rng.integers(len(whole)))
        return np.take(whole, np.arange(start, start + n_samples), mode="wrap")


@dataclass(frozen=True)
class SyntheticVoices:
    """As many synthetic speakers as asked for; speaker k is the same on every machine."""

    n_speakers: int = 48

    def speak(self, speaker: int, n_samples: int, rng: np.random.Generator) -> Speech:
        """A few seconds of babbled syllables."""
        traits = np.random.default_rng([0x7970746F, speaker])
        pitch = float(np.exp(traits.uniform(np.log(85.0), np.log(240.0))))
        tract = float(0.9 + 0.25 * (pitch - 85.0) / 155.0 + traits.uniform(-0.05, 0.05))
        return _babble(n_samples, pitch, tract, rng)


def split_speakers(n_speakers: int, part: str) -> range:
    """Speakers of "train", "valid" or "test": disjoint, three quarters and twice an eighth.

    >>> [len(split_speakers(48, part)) for part in ("train", "valid", "test")]
    [36, 6, 6]
    """
    held_out = max(1, n_speakers // 8)
    train = n_speakers - 2 * held_out
    if train < 1:
        raise DataError(f"{n_speakers} speakers are too few: training, validation and test need one each")
    ranges = {
        "train": range(train),
        "valid": range(train, train + held_out),
        "test": range(train + held_out, n_speakers),
    }
    return ranges[part]


def at_rate(speech: Speech, sample_rate: int) -> Speech:
    """Speech of 16 kHz at another sample rate (Hz); with scipy, which gives the same bits everywhere."""
    common = gcd(SPEECH_RATE, sample_rate)
    return np.asarray(resample_poly(speech, sample_rate // common, SPEECH_RATE // common), np.float32)


def say(voices: Voices, speaker: int, seconds: float, sample_rate: int, rng: np.random.Generator) -> Speech:
    """What a speaker says in some seconds, at a sample rate (Hz)."""
    spoken = voices.speak(speaker, int(np.ceil(seconds * SPEECH_RATE)) + 64, rng)
    return at_rate(spoken, sample_rate)[: int(seconds * sample_rate)]


@lru_cache(maxsize=8)
def _sound_files(folder: Path) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; --speech takes a folder of sound files, one per speaker")
    files = tuple(sorted(f for f in folder.iterdir() if f.suffix.lower() in _SOUND))
    if not files:
        raise DataError(f"no speech in {folder}: expected sound files ({', '.join(sorted(_SOUND))})")
    return files


@lru_cache(maxsize=256)
def _load_speaker(path: Path) -> Speech:
    if path.suffix.lower() == ".npy":
        mono = _load_npy(path)
    else:
        from tytoalba.storage.soundfiles import read_audio

        mono = read_audio(path, sample_rate=SPEECH_RATE).samples[0]
    loud = _talking_rms(mono) if mono.size and np.isfinite(mono).all() else 0.0
    if not loud > 0:
        raise DataError(f"{path} is silent or damaged: no speech to simulate with")
    return np.asarray(mono / np.float32(loud), np.float32)


def _load_npy(path: Path) -> Speech:
    """Mono samples at 16 kHz, for machines without libsndfile."""
    wanted = f"{path}: expected an array (n_samples,) of mono speech at {SPEECH_RATE} Hz"
    try:
        mono = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TokenError, MemoryError) as error:
        raise DataError(f"{wanted}, cannot read it: {str(error)[:200]}") from error
    if not isinstance(mono, np.ndarray) or mono.ndim != 1 or mono.dtype.kind not in "fiu":
        raise DataError(f"{wanted}, got {getattr(mono, 'dtype', 'an archive')} {getattr(mono, 'shape', '')}")
    return mono.astype(np.float32)


def _talking_rms(x: Float) -> float:
    """RMS of the loud half of the 20 ms blocks, i.e. while somebody talks."""
    block = SPEECH_RATE // 50
    if len(x) < block:
        return float(np.sqrt(np.mean(x**2)))
    power = np.mean(x[: len(x) // block * block].reshape(-1, block) ** 2, axis=1)
    return float(np.sqrt(np.mean(power[power >= np.median(power)])))


# Formants (Hz) of nine vowels, averages over speakers; a phone moves from one to the next.
_VOWELS = np.array(
    [
        (300, 2300, 3000),
        (400, 2000, 2550),
        (550, 1800, 2500),
        (700, 1650, 2450),
        (750, 1150, 2450),
        (600, 900, 2400),
        (450, 1050, 2300),
        (330, 900, 2250),
        (650, 1250, 2450),
    ],
    dtype=float,
)
_BANDWIDTHS = np.array([80.0, 110.0, 160.0, 250.0])
_BLOCK, _HOP = 512, 128


def _babble(n_samples: int, pitch: float, tract: float, rng: np.random.Generator) -> Speech:
    """Source and filter: pulses and noise, shaped in short overlapping blocks by moving formants."""
    n_blocks = n_samples // _HOP + 1
    voicing, breath, formants, centre = _score(n_blocks, rng)
    f0 = pitch * np.exp(0.12 * _wander(n_blocks, 40, rng)) * (1.1 - 0.2 * np.linspace(0, 1, n_blocks))
    padded = n_blocks * _HOP + _BLOCK
    at = np.minimum(np.arange(padded) // _HOP, n_blocks - 1)
    phase = np.cumsum(f0[at] / SPEECH_RATE)
    pulses = np.diff(np.floor(phase), prepend=0.0) * np.sqrt(SPEECH_RATE / f0[at])
    noise = rng.standard_normal(padded)

    hertz = np.fft.rfftfreq(_BLOCK, 1 / SPEECH_RATE)
    tilt = 1.0 / (1.0 + (hertz / 250.0) ** 2) ** 0.5
    resonance = np.ones((n_blocks, len(hertz)))
    tract_formants = np.column_stack([formants, np.full(n_blocks, 3600.0)]) * tract  # (B, 4)
    for formant, width in zip(tract_formants.T, _BANDWIDTHS, strict=True):
        ratio = hertz / formant[:, None]
        resonance *= 1.0 / np.sqrt((1 - ratio**2) ** 2 + (ratio * width / formant[:, None]) ** 2)
    hiss = np.exp(-(((hertz - centre[:, None]) / 1500.0) ** 2)) + 0.02

    window = np.hanning(_BLOCK + 1)[:-1]
    view = np.lib.stride_tricks.sliding_window_view
    voiced = np.fft.rfft(view(pulses, _BLOCK)[::_HOP][:n_blocks] * window, axis=1) * tilt * resonance
    hissed = np.fft.rfft(view(noise, _BLOCK)[::_HOP][:n_blocks] * window, axis=1) * hiss
    blocks = np.fft.irfft(voicing[:, None] * voiced + breath[:, None] * hissed, _BLOCK, axis=1)
    out = np.zeros(padded)
    for part in range(_BLOCK // _HOP):  # overlap-add, a quarter of every block at a time
        chunk = blocks[:, part * _HOP : (part + 1) * _HOP].ravel()
        out[part * _HOP : part * _HOP + len(chunk)] += chunk
    speech = out[:n_samples]
    return (speech / (_talking_rms(speech) + 1e-12)).astype(np.float32)


def _score(n_blocks: int, rng: np.random.Generator) -> tuple[Float, Float, Float, Float]:
    """What is said, block by block (8 ms): voicing and breath levels, formants (B, 3), centre of the hiss."""
    voicing, breath = np.zeros(n_blocks), np.zeros(n_blocks)
    formants, centre = np.tile(_VOWELS[8], (n_blocks, 1)), np.full(n_blocks, 4000.0)
    b, syllables_left = int(rng.integers(0, 25)), int(rng.integers(2, 7))
    vowel = _VOWELS[rng.integers(len(_VOWELS))]
    while b < n_blocks:
        consonant = int(rng.integers(4, 14))
        onset = slice(b, min(b + consonant, n_blocks))
        kind = rng.random()
        if kind < 0.45:  # fricative
            breath[onset] = rng.uniform(0.15, 0.5)
            centre[onset] = rng.uniform(2500.0, 7000.0)
        elif kind < 0.7:  # plosive: silence, then a burst
            breath[max(onset.stop - 2, b) : onset.stop] = rng.uniform(0.4, 0.9)
            centre[onset] = rng.uniform(1000.0, 5000.0)
        else:  # nasal or glide: soft voicing
            voicing[onset] = 0.3
        b = onset.stop
        target = _VOWELS[rng.integers(len(_VOWELS))]
        length = min(int(rng.integers(8, 26)), n_blocks - b)
        if length > 0:
            glide = np.clip(np.linspace(0.0, 2.0, length), 0.0, 1.0)[:, None]
            formants[b : b + length] = vowel + glide * (target - vowel)
            voicing[b : b + length] = rng.uniform(0.6, 1.0) * np.sin(np.pi * np.linspace(0.12, 0.9, length))
            breath[b : b + length] = np.maximum(breath[b : b + length], 0.03)
        vowel, b = target, b + length
        syllables_left -= 1
        if syllables_left == 0:
            b, syllables_left = b + int(rng.integers(10, 45)), int(rng.integers(2, 7))
    return voicing, breath, formants, centre


def _wander(n: int, step: int, rng: np.random.Generator) -> Float:
    """A smooth random curve around 0: random values every `step`, joined by lines."""
    knots = rng.standard_normal(n // step + 2)
    return np.interp(np.arange(n) / step, np.arange(len(knots)), knots)


def choose_voices(speech: str | Path | None) -> Voices:
    """Real speech from a folder, or the synthetic voices when there is none."""
    if speech is None:
        return SyntheticVoices()
    return SpeechFolder(Path(speech).expanduser())
