"""Simulated frames of many random arrays, a file for each: what the network for every array learns from."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.steady import TRAINED, steady_sound
from tytoalba.data.simulation.stems import gather_stems
from tytoalba.data.simulation.voice import Voices
from tytoalba.errors import DataError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared.exact import rounded_codes
from tytoalba.signal.array import MicArray
from tytoalba.storage.parallel import parallel_map
from tytoalba.storage.tensors import read_tensors, write_tensors

FORMAT, VERSION = "tytoalba-array-frames", 2
TURNS = ("hybrid", "anechoic", "hybrid", "hybrid", "pyroom")
"""Acoustics that arrays take in turn: all rooms of one array are of one family, so that a family can be left
out by leaving arrays out."""
SECONDS_OF_MACHINES = 4.0
PLAIN = 600
"""Frames whose bytes are limited; with more frames there may be as many more bytes."""


@dataclass(frozen=True)
class FrameRecipe:
    """What is simulated for each array.

    rooms: with four places each. frames: mixed in them, fewer where 600 took more than `most_bytes`.
    machines: sounds of machines. voices: whose speech. speakers: which part of them. calm: share of rooms
    that are quiet, with a well-built device.
    """

    voices: tuple[Voices, ...]
    speakers: str = "train"
    seed: int = 0
    rooms: int = 15
    frames: int = 600
    machines: int = 16
    calm: float = 0.4
    most_bytes: int = 25_000_000


@dataclass(frozen=True)
class ArrayFrames:
    """Frames of an array: GCC-PHAT in int8 (n_frames, n_looks, n_bands, n_pairs, n_lags), steps of 1/128.

    azimuth: (n_frames, 2) degrees, NaN for nobody.
    """

    array: MicArray
    codes: NDArray[np.int8]
    azimuth: NDArray[np.float32]

    def save(self, path: str | Path) -> None:
        """Write them as safetensors, whole or not at all."""
        header = {"format": FORMAT, "version": VERSION, "array": self.array.to_toml()}
        write_tensors(path, {"codes": self.codes, "azimuth": self.azimuth}, header)

    @classmethod
    def load(cls, path: str | Path) -> ArrayFrames:
        """Read what `save` wrote."""
        try:
            header, arrays = read_tensors(path)
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise DataError(f"{path} holds no frames of this version; delete it, and they are made anew")
            return cls(MicArray.from_toml(header["array"], str(path)), **arrays)
        except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{path} is damaged or holds no frames: {error}") from error


def simulated_frames(array: MicArray, recipe: FrameRecipe, number: int = 0) -> ArrayFrames:
    """Frames of an array, from the recipe and a number alone."""
    import torch

    from tytoalba.data.simulation.mixer import Machines, Mixer

    gcc = prior_gcc(array)
    seed = recipe.seed * 1_000_003 + number
    scenes = Scenes(array, recipe.voices, (family_of(number),), recipe.speakers, seed, calm=recipe.calm)
    machines = None
    if recipe.machines:
        rng = np.random.default_rng([0x6D616368, recipe.seed, number])
        n, kinds = int(SECONDS_OF_MACHINES * array.sample_rate), sorted(TRAINED)
        sounds = [
            steady_sound(kinds[k % len(kinds)], n, array.sample_rate, rng) for k in range(recipe.machines)
        ]
        machines = Machines(np.stack(sounds).astype(np.float16))
    mixer = Mixer(gather_stems(scenes, recipe.rooms), gcc, machines=machines, seed=number)
    n_frames = max(16, recipe.frames * min(PLAIN, recipe.most_bytes // gcc.n_features) // PLAIN)
    shape = gcc.n_looks // len(gcc.band_list), len(gcc.band_list), len(gcc.pairs), gcc.n_lags
    codes, places = [], []
    for sound, azimuth in mixer.sounds(n_frames):
        features: Any = gcc(sound.numpy())  # numpy is faster than torch on a CPU
        codes.append(rounded_codes(features).astype(np.int8).reshape(-1, *shape))
        places.append(torch.as_tensor(azimuth).numpy().astype(np.float32))
    return ArrayFrames(array, np.concatenate(codes), np.concatenate(places))


def family_of(number: int) -> str:
    """The acoustics of all rooms of an array."""
    return TURNS[number % len(TURNS)]


def make_frames(
    folder: str | Path,
    n_arrays: int,
    recipe: FrameRecipe,
    *,
    array: MicArray | None = None,
    leave_out: str | None = None,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> list[Path]:
    """Frames of `n_arrays` random arrays, a file each in a folder; what is there is not made again.

    array: one that all files are of, each of other rooms. leave_out: a family of acoustics whose arrays are
    left out.
    """
    found: list[Path] = []
    files = each_frames(folder, n_arrays, recipe, array=array, leave_out=leave_out, processes=processes)
    for path in files:
        found.append(path)
        if on_progress:
            on_progress(len(found), n_arrays)
    return sorted(found)


def each_frames(
    folder: str | Path,
    n_arrays: int,
    recipe: FrameRecipe,
    *,
    array: MicArray | None = None,
    leave_out: str | None = None,
    processes: int = 1,
) -> Generator[Path]:
    """The same one by one, first those that are there already."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    part = f"{recipe.speakers}-{recipe.seed}"
    wanted = [number for number in range(n_arrays) if family_of(number) != leave_out]
    paths = {number: folder / f"{part}-{number:05d}.safetensors" for number in wanted}
    missing = [number for number in wanted if not paths[number].exists()]
    yield from (path for number, path in paths.items() if number not in set(missing))
    yield from parallel_map(partial(_make_one, recipe, paths, array), missing, processes)


def _make_one(recipe: FrameRecipe, paths: Mapping[int, Path], array: MicArray | None, number: int) -> Path:
    simulated_frames(array or random_array(recipe.seed, number), recipe, number).save(paths[number])
    return paths[number]
