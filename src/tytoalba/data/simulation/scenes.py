"""Scenes to train a prior on: one array, many different devices, rooms and talkers.

A scene is drawn from its seed and number alone. What varies: gain (+-3 dB), place (1-2 mm), phase and
spectrum of each microphone, their pattern, the speed of sound; one or two talkers anywhere (0.3-4 m, up to
60 degrees up), their level, directivity and orientation; the surroundings (`acoustics`), a reflector or body
close by; noise from everywhere, of people who talk all around, from one place (fans, tones, hiss, far
voices) and of the sensors; bandwidth, level, clipping. `microphones.Conditions` has the limits.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from tytoalba.data.features import FeatureSet, Piece, Progress, gather, recording_features
from tytoalba.data.simulation.acoustics import FAMILIES, PointSource, ambient_noise, crowd_noise, reflector
from tytoalba.data.simulation.microphones import ANY, CALM, Conditions, recorded, varied
from tytoalba.data.simulation.noise import fan_sound
from tytoalba.data.simulation.recordings import SimulatedRecording, activity, as_recording
from tytoalba.data.simulation.room import Sound, convolved, loudness
from tytoalba.data.simulation.voice import SPEECH_RATE, Speech, Voices, at_rate, say, split_speakers
from tytoalba.errors import DataError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, unit_vector
from tytoalba.signal.gcc import GccPhat
from tytoalba.storage.parallel import parallel_map

PARTS = ("train", "valid", "test")
CROWDS = 0.2
"""Share of scenes with other people as background."""
HARD_SNR = (-12.0, 10.0)
"""dB of scenes with much noise."""
APART, LOCAL_SNR = 3.0, (3.0, 30.0)
"""dB: how far a talker is from the usual level, either way; of speech over noise from one place."""
SENSOR_TILT = (-0.3, 1.2)
"""Spectral slope of the noise that sensors make."""


@dataclass(frozen=True)
class Scenes:
    """As many different scenes as asked for.

    families: of `acoustics.FAMILIES`, taken in turn. voices: whose speech; speakers: which part of them.
    seconds: length of a scene. two_sources, three_sources: shares with two and three talkers, at least
    `separation` degrees apart; the others have one.
    calm: share of scenes under conditions `CALM`; the others are under `ANY`.
    """

    array: MicArray
    voices: Sequence[Voices]
    families: tuple[str, ...] = tuple(FAMILIES)
    speakers: str = "train"
    seed: int = 0
    seconds: float = 4.0
    two_sources: float = 0.4
    separation: float = 15.0
    calm: float = 0.0
    three_sources: float = 0.0

    def __post_init__(self) -> None:
        if unknown := [name for name in self.families if name not in FAMILIES]:
            raise DataError(f"no acoustics called {unknown[0]!r}; known: {', '.join(FAMILIES)}")
        if not self.families or not self.voices:
            raise DataError("scenes need at least one family of acoustics and one voice")
        if self.speakers not in PARTS:
            raise DataError(f"no part of the speakers called {self.speakers!r}; known: {', '.join(PARTS)}")
        for voices in self.voices:
            split_speakers(voices.n_speakers, self.speakers)
        if not 0 <= self.calm <= 1:
            raise DataError(f"the share of calm scenes must be from 0 to 1, got {self.calm:g}")
        if self.two_sources > 0 and not self.separation < 180:
            raise DataError(
                f"two talkers cannot be {self.separation:g} degrees apart; less than 180 is needed"
            )
        if self.three_sources > 0 and not self.separation <= 90:
            raise DataError(
                f"three talkers are placed at random, up to 90 degrees apart, not {self.separation:g}"
            )
        if self.n_samples <= self.array.frame_length:
            raise DataError(f"scenes of {self.seconds:g} s hold no frame of {self.array.name}")

    @property
    def n_samples(self) -> int:
        """Length of a scene."""
        return int(self.seconds * self.array.sample_rate)

    def recording(self, number: int) -> SimulatedRecording:
        """Make one scene."""
        rng = np.random.default_rng([0x7363656E, self.seed, number])
        family = self.families[number % len(self.families)]
        conditions = self.conditions(rng)
        device, late = varied(self.array, rng, conditions)
        talkers = self._talkers(rng, conditions)
        n_talkers = len(talkers)
        places = talkers + ([_somewhere(rng)] if rng.random() < conditions.local else [])
        responses = FAMILIES[family](device, late, places, rng)
        frame_ids = np.arange(len(range(0, self.n_samples - device.frame_length, device.frame_length // 2)))
        mixture = np.zeros((device.n_mics, self.n_samples), np.float32)
        talking, unsure, speakers = [], np.zeros(len(frame_ids), bool), []
        close = rng.random() < conditions.close
        for person, response in zip(talkers, responses, strict=False):
            voices, speaker = self._somebody(rng)
            speakers.append(speaker)
            dry = self._speech(voices, speaker, rng)
            received = convolved(dry, response)
            if close:
                received += convolved(dry, reflector(device, person, rng))
            # levels as received: two talkers within 6 dB of each other, wherever they stand
            mixture += received / loudness(received) * 10 ** (rng.uniform(-APART, APART) / 20)
            far = float(np.linalg.norm(person.position))
            loud, quiet = activity(dry, far, device, len(frame_ids))
            talking.append(loud)
            unsure |= ~loud & ~quiet
        local = responses[n_talkers] if len(places) > n_talkers else None
        noisy = self._noisy(mixture, family, device, late, local, rng, conditions)
        samples = recorded(device, noisy, rng, conditions)
        positions = np.stack([person.position for person in talkers])
        kept = ~unsure
        return SimulatedRecording(
            f"{family}_{number:06d}",
            samples,
            frame_ids[kept],
            np.broadcast_to(positions, (int(kept.sum()), *positions.shape)),
            np.stack(talking, axis=1)[kept],
            tuple(speakers),
        )

    def conditions(self, rng: np.random.Generator) -> Conditions:
        """What a scene is like."""
        return CALM if self.calm and rng.random() < self.calm else ANY

    def _talkers(self, rng: np.random.Generator, conditions: Conditions = ANY) -> list[PointSource]:
        drawn = rng.random()
        n = 2 if drawn < self.two_sources else 3 if drawn < self.two_sources + self.three_sources else 1
        azimuth = rng.uniform(0, 360, n)
        while any(distance(a, b) < self.separation for a, b in combinations(azimuth, 2)):
            azimuth = rng.uniform(0, 360, n)
        return [talker(float(angle), rng, conditions) for angle in azimuth]

    def _somebody(self, rng: np.random.Generator) -> tuple[Voices, int]:
        voices = self.voices[int(rng.integers(len(self.voices)))]
        return voices, int(rng.choice(split_speakers(voices.n_speakers, self.speakers)))

    def bystander(self, rng: np.random.Generator) -> Sound:
        """What somebody says, (n_samples,), of power 1."""
        spoken = self._speech(*self._somebody(rng), rng)
        return spoken / np.float32(loudness(spoken))

    def _speech(self, voices: Voices, speaker: int, rng: np.random.Generator) -> Speech:
        return say(voices, speaker, self.seconds, self.array.sample_rate, rng)

    def _noisy(
        self,
        speech: Sound,
        family: str,
        device: MicArray,
        late: MicArray,
        local: Sound | None,
        rng: np.random.Generator,
        conditions: Conditions = ANY,
    ) -> Sound:
        n, rate = self.n_samples, device.sample_rate
        power = max(float(np.mean(speech**2)), 1e-6)  # nobody talks: noise alone
        snr = rng.uniform(*(HARD_SNR if rng.random() < conditions.hard else conditions.snr))
        share = np.exp(rng.uniform(*np.log(conditions.sensors)))
        if rng.random() < CROWDS:
            ambient = crowd_noise(device, [self.bystander(rng) for _ in range(rng.integers(3, 17))], rng)
        else:
            ambient = ambient_noise(family, device, late, n, rng.uniform(0.0, 2.0), rng)
        noise = np.sqrt(1 - share) * ambient / loudness(ambient)
        noise += np.sqrt(share) * _coloured(
            rng.standard_normal(speech.shape, np.float32), rate, rng.uniform(*SENSOR_TILT)
        )
        result = speech + np.float32(np.sqrt(power * 10 ** (-snr / 10))) * noise
        if local is not None:
            sound = convolved(disturbance(n, rate, self.voices[0], self.speakers, rng), local)
            result += sound / loudness(sound) * np.sqrt(power * 10 ** (-rng.uniform(*LOCAL_SNR) / 10))
        return np.asarray(result, np.float32)


@dataclass(frozen=True)
class SceneNoise:
    """The noise of scenes, added to recordings: what priors are trained in.

    Each recording gets its own, drawn like that of a scene: from all around or of people who talk there, of
    the sensors, sometimes from one place, under calm or other conditions. The device stays as it is.
    voices: whose; speakers: which part of them. calm: share of recordings under calm conditions, as usual
    in priors.
    """

    voices: Voices
    speakers: str = "train"
    seed: int = 0
    calm: float = 0.5

    def added_to(self, samples: Sound, array: MicArray, name: str) -> Sound:
        """The recording `name` with its noise, (n_mics, n_samples)."""
        rng = np.random.default_rng([0x6E6F6973, self.seed, zlib.crc32(name.encode())])
        families = ("hybrid", "anechoic")  # the third of them needs an extra package, and a second
        seconds = (samples.shape[1] + 0.5) / array.sample_rate
        scenes = Scenes(
            array, (self.voices,), families, self.speakers, self.seed, seconds=seconds, calm=self.calm
        )
        family, conditions = families[int(rng.integers(len(families)))], scenes.conditions(rng)
        local = None
        if rng.random() < conditions.local:
            (local,) = FAMILIES[family](array, array, [_somewhere(rng)], rng)
        return scenes._noisy(samples, family, array, array, local, rng, conditions)


def scene_features(
    scenes: Scenes,
    numbers: Sequence[int],
    gcc: GccPhat,
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> FeatureSet:
    """Features of the frames of some scenes in which somebody talks."""
    pieces = parallel_map(partial(_features_of, scenes, gcc), list(numbers), processes)
    names = [f"scene_{k:06d}" for k in numbers]
    return gather(pieces, names, scenes.array, gcc, 1, on_progress)[0]


def _features_of(scenes: Scenes, gcc: GccPhat, number: int) -> Piece:
    made = scenes.recording(number)
    return recording_features(gcc, [None], as_recording(made, "", scenes.array))


def talker(azimuth: float, rng: np.random.Generator, conditions: Conditions = ANY) -> PointSource:
    """Somebody at an azimuth (degrees): near or far, low or high, who faces the array or not."""
    far = float(np.exp(rng.uniform(*np.log(conditions.far))))
    level = rng.random() < 1 - conditions.steep
    elevation = float(np.clip(rng.normal(3.0, conditions.rise), -25.0, 60.0) if level else rng.uniform(0, 60))
    towards = unit_vector(azimuth, elevation)
    look = -towards
    if rng.random() < 0.25:  # faces elsewhere
        look = unit_vector(azimuth + 180.0 + rng.uniform(-90, 90), rng.uniform(-20, 20))
    return PointSource(far * towards, look, float(rng.uniform(0.5, 1.0)))


def _somewhere(rng: np.random.Generator) -> PointSource:
    towards = unit_vector(rng.uniform(0, 360), rng.uniform(-30, 60))
    return PointSource(float(rng.uniform(0.5, 4.0)) * towards, -towards, 1.0)


def disturbance(n: int, rate: int, voices: Voices, part: str, rng: np.random.Generator) -> Sound:
    """A sound that is not to be located: a fan, hiss, a hum of tones, a voice or television far away."""
    kind = int(rng.integers(4))
    if kind == 0:
        return fan_sound(n, rate, rng)
    if kind == 1:
        return _coloured(rng.standard_normal((1, n), np.float32), rate, rng.uniform(0.0, 2.0)).ravel()
    if kind == 2:
        t = np.arange(n) / rate
        tones = rng.uniform(80, 3000, int(rng.integers(2, 12)))
        return np.asarray(sum(np.sin(2 * np.pi * f * t + rng.uniform(0, 6.3)) for f in tones), np.float32)
    speakers = split_speakers(voices.n_speakers, part)
    several = sum(
        voices.speak(int(rng.choice(speakers)), n * SPEECH_RATE // rate + 64, rng)
        for _ in range(int(rng.integers(4, 9)))
    )
    return at_rate(np.asarray(several, np.float32), rate)[:n]


def _coloured(noise: NDArray[np.floating], rate: int, tilt: float) -> Sound:
    """White noise (n_channels, n_samples) with power falling as f^-tilt, power 1."""
    n = noise.shape[1]
    n_fft = next_fast_len(n, real=True)
    hertz = np.fft.rfftfreq(n_fft, 1 / rate)
    shape = (np.maximum(hertz, 50.0) ** (-tilt / 2) * (hertz > 0)).astype(np.float32)
    coloured = irfft(rfft(noise, n_fft, axis=-1) * shape, n_fft, axis=-1)[:, :n]
    return np.asarray(coloured / loudness(coloured), np.float32)
