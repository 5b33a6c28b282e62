"""What scenes are mixed from: responses of rooms, noises, voices and disturbances, each simulated once.

A whole scene takes a third of a second and gives forty frames. Its stems, kept apart, are
mixed again and again (`mixer`): another voice in the same room, another moment, other levels, another
recorder. A network that never meets a frame twice cannot memorise frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.data.simulation.acoustics import FAMILIES, ambient_noise, crowd_noise, reflector
from tytoalba.data.simulation.microphones import CALM, varied
from tytoalba.data.simulation.room import loudness
from tytoalba.data.simulation.scenes import CROWDS, Scenes, disturbance, talker
from tytoalba.errors import DataError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray
from tytoalba.storage.parallel import parallel_map
from tytoalba.storage.tensors import read_tensors, write_tensors

Half = NDArray[np.float16]
PLACES = 4
"""Where sound may come from in each room: one or two talkers and a disturbance are at different ones."""
LONGEST = 1.024
"""Seconds of a response that are kept; few rooms ring longer."""
N_VOICES = (64, 512)
"""As many as rooms, between these; half as many disturbances."""
OF_ROOMS = ("responses", "azimuth", "delay", "calm", "family")
"""What has a row for each room."""
FORMAT, VERSION = "tytoalba-stems", 2


@dataclass(frozen=True)
class Stems:
    """What scenes of an array are mixed from, as float16.

    responses: (n_scenes, PLACES, n_mics, n_taps), energy 1: one device in one room, sound from each place.
    azimuth, delay: of the places, (n_scenes, PLACES), degrees and samples.
    calm: which rooms are under conditions `scenes.CALM`, (n_scenes,).
    noises: (n_noises, n_mics, n_samples), power 1.
    family, noise_family: where rooms and noises come from, as numbers of `families`.
    voices, disturbances: (n, n_samples), dry, power 1.
    """

    array: MicArray
    families: tuple[str, ...]
    responses: Half
    azimuth: NDArray[np.float32]
    delay: NDArray[np.int32]
    calm: NDArray[np.bool_]
    family: NDArray[np.int32]
    noises: Half
    noise_family: NDArray[np.int32]
    voices: Half
    disturbances: Half

    def __post_init__(self) -> None:
        n, n_mics = len(self.responses), self.array.n_mics
        fit = self.responses.shape[1:3] == (PLACES, n_mics) and self.noises.shape[1:2] == (n_mics,)
        fit = fit and self.azimuth.shape == self.delay.shape == (n, PLACES)
        fit = fit and self.calm.shape == self.family.shape == (n,)
        fit = fit and self.noise_family.shape == (len(self.noises),)
        dimensions = [bank.ndim for bank in (self.responses, self.noises, self.voices, self.disturbances)]
        if not fit or dimensions != [4, 3, 2, 2]:
            raise DataError("these stems do not fit each other: they are damaged")

    def only(self, families: Sequence[str]) -> Stems:
        """The rooms and noises of some families."""
        wanted = [k for k, name in enumerate(self.families) if name in families]
        rooms, noises = np.isin(self.family, wanted), np.isin(self.noise_family, wanted)
        if not (rooms.any() and noises.any()):
            raise DataError(f"no stems of {', '.join(families)}; there are {', '.join(self.families)}")
        of_rooms = {name: getattr(self, name)[rooms] for name in OF_ROOMS}
        return replace(self, noises=self.noises[noises], noise_family=self.noise_family[noises], **of_rooms)

    def save(self, path: str | Path) -> None:
        """Write them as safetensors, whole or not at all."""
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "array": self.array.to_toml(),
            "families": self.families,
        }
        write_tensors(path, arrays, header)

    @classmethod
    def load(cls, path: str | Path) -> Stems:
        """Read what `save` wrote; anything else is refused."""
        try:
            header, arrays = read_tensors(path)
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise DataError(f"{path} holds no stems of this version; without it they are made anew")
            array = MicArray.from_toml(header["array"], str(path))
            return cls(array, tuple(header["families"]), **arrays)
        except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{path} is damaged or holds no stems: {error}") from error


def gather_stems(
    scenes: Scenes, n_scenes: int, *, processes: int = 1, on_progress: Progress | None = None
) -> Stems:
    """Simulate stems: `n_scenes` rooms, a quarter as many noises, voices (twice as long) and disturbances."""
    array, turns = scenes.array, scenes.families
    if scenes.separation > 180.0 / PLACES:
        raise DataError(f"{PLACES} places cannot be {scenes.separation:g} degrees apart, or hardly ever")
    n_noises = max(len(turns), n_scenes // 4)
    names = tuple(dict.fromkeys(turns))
    family = np.array([names.index(turns[k % len(turns)]) for k in range(max(n_scenes, n_noises))], np.int32)
    n_voices = min(max(n_scenes, N_VOICES[0]), N_VOICES[1])
    n_taps = int(LONGEST * array.sample_rate)
    made: dict[str, Any] = {
        "responses": np.zeros((n_scenes, PLACES, array.n_mics, n_taps), np.float16),
        "noises": np.empty((n_noises, array.n_mics, scenes.n_samples), np.float16),
        "voices": np.empty((n_voices, _longer(scenes).n_samples), np.float16),
        "disturbances": np.empty((n_voices // 2, scenes.n_samples), np.float16),
    }
    azimuth, delay = np.empty((n_scenes, PLACES), np.float32), np.empty((n_scenes, PLACES), np.int32)
    calm = np.empty(n_scenes, bool)
    jobs = [(kind, k) for kind, bank in made.items() for k in range(len(bank))]
    pieces = parallel_map(partial(_piece, scenes), jobs, processes)
    for done, ((kind, k), piece) in enumerate(zip(jobs, pieces, strict=True), 1):
        if kind == "responses":
            piece, azimuth[k], delay[k], calm[k] = piece
        made[kind][k, ..., : piece.shape[-1]] = piece
        if on_progress:
            on_progress(done, len(jobs))
    return Stems(
        array,
        names,
        azimuth=azimuth,
        delay=delay,
        calm=calm,
        family=family[:n_scenes],
        noise_family=family[:n_noises],
        **made,
    )


def _piece(scenes: Scenes, job: tuple[str, int]) -> Any:
    """One of a kind, from the seed, its kind and its number alone."""
    kind, number = job
    rng = np.random.default_rng([0x7374656D, scenes.seed, number, *kind.encode()])
    family = scenes.families[number % len(scenes.families)]
    if kind == "responses":
        return _room(scenes, family, rng)
    if kind == "noises":
        sound = _noise(scenes, family, rng)
    elif kind == "voices":
        own = scenes.voices[number % len(scenes.voices)]
        sound = replace(_longer(scenes), voices=(own,)).bystander(rng)
    else:
        sound = disturbance(
            scenes.n_samples, scenes.array.sample_rate, scenes.voices[0], scenes.speakers, rng
        )
    return (sound / loudness(sound)).astype(np.float16)


def _room(scenes: Scenes, family: str, rng: np.random.Generator) -> tuple[Half, Any, Any, bool]:
    conditions = scenes.conditions(rng)
    device, late = varied(scenes.array, rng, conditions)
    azimuth = rng.uniform(0, 360, PLACES)
    while min(distance(a, b) for a, b in combinations(azimuth, 2)) < scenes.separation:
        azimuth = rng.uniform(0, 360, PLACES)
    places = [talker(float(angle), rng, conditions) for angle in azimuth]
    responses = FAMILIES[family](device, late, places, rng)
    if rng.random() < conditions.close:
        responses = [_sum(r, reflector(device, at, rng)) for r, at in zip(responses, places, strict=True)]
    n_taps = min(max(r.shape[1] for r in responses), int(LONGEST * device.sample_rate))
    result = np.zeros((PLACES, device.n_mics, n_taps), np.float16)
    for kept, response in zip(result, responses, strict=True):
        cut = response[:, :n_taps]
        kept[:, : cut.shape[1]] = cut / np.sqrt(np.sum(cut**2) / device.n_mics)
    far = np.array([np.linalg.norm(place.position) for place in places])
    delay = np.rint(far / SPEED_OF_SOUND * device.sample_rate)
    return result, azimuth, delay, conditions is CALM


def _noise(scenes: Scenes, family: str, rng: np.random.Generator) -> Any:
    device, late = varied(scenes.array, rng)
    if rng.random() < CROWDS:
        return crowd_noise(device, [scenes.bystander(rng) for _ in range(rng.integers(3, 17))], rng)
    return ambient_noise(family, device, late, scenes.n_samples, rng.uniform(0.0, 2.0), rng)


def _longer(scenes: Scenes) -> Scenes:
    return replace(scenes, seconds=2 * scenes.seconds)


def _sum(a: Any, b: Any) -> Any:
    """Responses (n_mics, n_samples) of different lengths, added."""
    total = np.zeros((len(a), max(a.shape[1], b.shape[1])), np.float32)
    for part in (a, b):
        total[:, : part.shape[1]] += part
    return total
