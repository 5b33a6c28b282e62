"""Recordings that never were: rooms, talkers and noise for any array, the same to the bit from a seed.

A recording is made of its seed, its part and its number alone, so the number of processes changes nothing.
Sound is rounded to 16 bits like a recorder's, so what is written to wav files and read back gives exactly
the features that are computed directly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Recording
from tytoalba.data.simulation.microphones import CEILING
from tytoalba.data.simulation.noise import fan_sound
from tytoalba.data.simulation.presets import PRESETS, Preset
from tytoalba.data.simulation.room import Placement, Room, Sound, diffuse_noise, loudness
from tytoalba.data.simulation.talkers import interrupted, place_talkers, propagate, somewhere, walk
from tytoalba.data.simulation.voice import Speech, Voices, choose_voices, say, split_speakers
from tytoalba.errors import DataError
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray, load_array
from tytoalba.storage.parallel import parallel_map

ACTIVE_DB, SILENT_DB = -22.0, -40.0
"""A source talks in a frame whose power is above the first, is silent below the second (relative to its
loud frames); between them nobody can say, and the frame is left out, as in SSLR."""


@dataclass(frozen=True)
class SimulatedRecording:
    """What a simulation gives: sound, and for each labelled frame where each talker is and whether it talks.

    samples: (n_mics, n_samples) float32, on the grid of 16 bits.
    positions: metres from the array's centre, (n_frames, n_sources, 3). talking: (n_frames, n_sources).
    """

    name: str
    samples: Sound
    frame_ids: NDArray[np.intp]
    positions: Float
    talking: NDArray[np.bool_]
    speakers: tuple[int, ...]

    @property
    def azimuth(self) -> Float:
        """Degrees of the talkers of each frame, NaN where nobody (else) talks, (n_frames, 2 or more)."""
        x, y = self.positions[..., 0], self.positions[..., 1]
        angle = np.where(self.talking, wrap(np.rad2deg(np.arctan2(y, x))), np.nan)
        return np.pad(
            np.sort(angle, axis=1), ((0, 0), (0, max(0, 2 - angle.shape[1]))), constant_values=np.nan
        )


@dataclass(frozen=True)
class Simulation:
    """A preset made sound: which array, whose voices, which seed."""

    preset: Preset
    array: MicArray
    voices: Voices
    seed: int = 0

    @classmethod
    def of_preset(
        cls,
        preset: str = "quick",
        array: MicArray | str | Path | None = None,
        *,
        size: float = 1.0,
        moving: float = 0.0,
        speech: str | Path | None = None,
        seed: int = 0,
    ) -> Simulation:
        """A simulation by the name of its preset; see `simulate`."""
        if preset not in PRESETS:
            raise DataError(f"no preset called {preset!r}; known: {', '.join(PRESETS)}")
        if not (0 < size < inf and 0 <= moving < inf and seed >= 0):
            raise DataError(
                f"size must be positive, moving and seed cannot be negative; got {size}, {moving} and {seed}"
            )
        recipe = replace(PRESETS[preset].scaled(size), speed=moving)
        mics = load_array(array or recipe.array)
        return cls(recipe, mics, choose_voices(speech), seed)

    def __post_init__(self) -> None:
        for part in self.preset.parts:
            split_speakers(self.voices.n_speakers, part.speakers)
            low, high = part.azimuths
            if self.preset.two_sources > 0 and min(high - low, 180.0) <= self.preset.separation:
                raise DataError(
                    f"two talkers {self.preset.separation:g} degrees apart do not fit between azimuths "
                    f"{low:g} and {high:g} of part {part.name!r}"
                )
        if self.n_samples <= self.array.frame_length:
            raise DataError(f"recordings of {self.preset.seconds} s hold no frame of {self.array.name}")

    @property
    def n_samples(self) -> int:
        """Length of each recording."""
        return int(self.preset.seconds * self.array.sample_rate)

    @property
    def digest(self) -> str:
        """Of everything that the recordings depend on; real speech counts by its files' names and sizes."""
        files = [(file.name, file.stat().st_size) for file in getattr(self.voices, "files", ())]
        told = repr((self.preset, self.array.to_toml(), type(self.voices).__name__, files, self.seed))
        return hashlib.sha256(told.encode()).hexdigest()

    def tasks(self, only: str | None = None) -> list[tuple[int, int]]:
        """(number of the part, number of the recording) of every recording, or of those of one part."""
        names = [part.name for part in self.preset.parts]
        if only is not None and only not in names:
            raise DataError(f"preset {self.preset.name!r} has no part {only!r}; it has: {', '.join(names)}")
        return [
            (p, i)
            for p, part in enumerate(self.preset.parts)
            for i in range(part.n_recordings)
            if only in (None, part.name)
        ]

    def recording(self, task: tuple[int, int]) -> SimulatedRecording:
        """Make one recording."""
        number, index = task
        part, preset, array = self.preset.parts[number], self.preset, self.array
        rng = np.random.default_rng([self.seed, number, index])
        room = part.rooms[index % len(part.rooms)]
        n_sources = 2 if rng.random() < preset.two_sources else 1
        placement, starts = place_talkers(room, part, preset, n_sources, rng)
        speakers = rng.choice(split_speakers(self.voices.n_speakers, part.speakers), n_sources)
        frame_ids = np.arange(len(range(0, self.n_samples - array.frame_length, array.frame_length // 2)))
        mixture = np.zeros((array.n_mics, self.n_samples), np.float32)
        positions, talking, unsure = [], [], np.zeros(len(frame_ids), bool)
        for start, speaker in zip(starts, speakers, strict=True):
            dry = say(self.voices, int(speaker), preset.seconds, array.sample_rate, rng)
            dry = interrupted(dry, preset, array.sample_rate, rng)
            path = walk(start, room, placement, preset, self.n_samples, array, rng)
            mixture += propagate(room, array, placement, dry, path, rng.uniform(*preset.talker), rng)
            loud, quiet = activity(dry, float(np.linalg.norm(start)), array, len(frame_ids))
            walked = path[2 : 2 * len(frame_ids) + 2 : 2]  # the middle of each frame
            positions.append(walked if len(path) > 1 else path.repeat(len(frame_ids), axis=0))
            talking.append(loud)
            unsure |= ~loud & ~quiet
        spoken = np.any(talking, axis=0)
        samples = self._add_noise(mixture, spoken, room, placement, rng)
        return SimulatedRecording(
            f"{part.name}_{index:05d}",
            _set_level(samples, spoken, preset, array, rng),
            frame_ids[~unsure],
            np.stack(positions, axis=1)[~unsure],
            np.stack(talking, axis=1)[~unsure],
            tuple(int(s) for s in speakers),
        )

    def _add_noise(
        self,
        speech: Sound,
        spoken: NDArray[np.bool_],
        room: Room,
        placement: Placement,
        rng: np.random.Generator,
    ) -> Sound:
        preset, array = self.preset, self.array
        power = np.mean(speech**2) / max(0.2, spoken.mean())  # while somebody talks
        power = max(power, 1e-6)  # nobody does: noise alone
        ambient = diffuse_noise(array, self.n_samples, rng, rng.uniform(*preset.tilt))
        sensor = rng.standard_normal(speech.shape, dtype=np.float32)
        share = np.exp(rng.uniform(*np.log(preset.sensor)))
        noise = np.sqrt(1 - share) * ambient / loudness(ambient) + np.sqrt(share) * sensor
        result = speech + np.sqrt(power * 10 ** (-rng.uniform(*preset.snr) / 10)) * noise
        if rng.random() < preset.interferer:
            where = somewhere(room, placement, rng)
            dry = fan_sound(self.n_samples, array.sample_rate, rng)
            fan = propagate(room, array, placement, dry, where[None], 1.0, rng)
            result += fan / loudness(fan) * np.sqrt(power * 10 ** (-rng.uniform(*preset.interferer_snr) / 10))
        return np.asarray(result, np.float32)


def as_recording(made: SimulatedRecording, subset: str, array: MicArray) -> Recording:
    """A simulated recording as every data set gives them."""
    load = partial(np.copy, made.samples)
    hop = array.frame_length // 2
    return Recording(made.name, subset, array, made.frame_ids, made.azimuth, load, array.frame_length, hop)


def simulate(
    preset: str = "quick",
    array: MicArray | str | Path | None = None,
    *,
    part: str | None = None,
    size: float = 1.0,
    moving: float = 0.0,
    speech: str | Path | None = None,
    seed: int = 0,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[Recording]:
    """Labelled recordings of simulated rooms, talkers and noise, for any array.

    Parameters
    ----------
    preset : str
        "quick" (120 recordings), "twin" (5208, like the SSLR data set) or "hard" (with more noise).
    array : MicArray, str or Path, optional
        An array, the name of a built-in one or a TOML file; the preset's own (pepper) if not given.
    part : str, optional
        Only recordings of this part: "train", "valid" or "test", and "human" of twin and hard.
    size : float
        This many times the recordings of the preset, at least one per part.
    moving : float
        Talkers walk around the array, at most this many degrees per second.
    speech : str or Path, optional
        Folder of real speech, one file per speaker; a synthetic voice if not given.
    seed : int
        The same seed gives the same recordings, to the bit.
    processes : int
        Processes to use; 0: one per core.
    on_progress : callable, optional
        Called with (recordings done, recordings in all) after each.

    Returns
    -------
    iterator of Recording
        Each with its `name`, its part (`subset`), `azimuth` in degrees (n_frames, n_sources) of the frames
        `frame_ids`, and `load()`: the sound, (n_mics, n_samples). They are made when asked for.

    Raises
    ------
    DataError
        No such preset or part, or a size, speed or seed that makes no sense.

    Examples
    --------
    >>> first = next(simulate("quick", "respeaker-usb-4", part="test", size=0.1))
    >>> first.name, first.load().shape, first.azimuth.shape
    ('test_00000', (4, 64000), (43, 2))
    """
    simulation = Simulation.of_preset(preset, array, size=size, moving=moving, speech=speech, seed=seed)
    tasks = simulation.tasks(part)
    return _made(simulation, tasks, processes, on_progress)


def _made(
    simulation: Simulation,
    tasks: list[tuple[int, int]],
    processes: int,
    on_progress: Callable[[int, int], None] | None,
) -> Iterator[Recording]:
    made = parallel_map(simulation.recording, tasks, processes)
    for done, (task, recording) in enumerate(zip(tasks, made, strict=True), 1):
        if on_progress:
            on_progress(done, len(tasks))
        yield as_recording(recording, simulation.preset.parts[task[0]].name, simulation.array)


def activity(
    dry: Speech, far: float, array: MicArray, n_frames: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Frames in which a talker surely talks, and in which it surely does not; sound needs time to arrive."""
    delay = round(far / SPEED_OF_SOUND * array.sample_rate)
    energy = np.concatenate([np.zeros(delay + 1), np.cumsum(dry.astype(np.float64) ** 2)])
    start = np.arange(n_frames) * (array.frame_length // 2)
    power = (energy[start + array.frame_length] - energy[start]) / array.frame_length
    decibel = 10 * np.log10(power / max(float(np.quantile(power, 0.9)), 1e-12) + 1e-12)
    return decibel >= ACTIVE_DB, decibel <= SILENT_DB


def _set_level(
    x: Sound,
    spoken: NDArray[np.bool_],
    preset: Preset,
    array: MicArray,
    rng: np.random.Generator,
) -> Sound:
    """Bring frames with speech to a plausible level and round to 16 bits, as a recorder does."""
    windows = np.lib.stride_tricks.sliding_window_view(x, array.frame_length, axis=1)
    frames = windows[:, :: array.frame_length // 2][:, : len(spoken)]
    loud = loudness(frames[:, spoken] if spoken.any() else frames)
    gain = np.exp(rng.uniform(*np.log(preset.level))) / loud
    gain = min(gain, CEILING / float(np.abs(x).max()))
    return np.asarray(np.round(x * (gain * 32768.0)) / 32768.0, np.float32)
