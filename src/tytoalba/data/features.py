"""Features with their labels: what learners see of a data set, extracted from recordings, kept in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Recording, SoundFile
from tytoalba.errors import DataError, SealError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import Framer
from tytoalba.signal.gcc import FULL_BAND, GccPhat
from tytoalba.storage.age import Keys, Recipient
from tytoalba.storage.parallel import parallel_map, threaded_map
from tytoalba.storage.soundfiles import Source, stream_audio
from tytoalba.storage.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from tytoalba.data.simulation.noise import AnyNoise

FORMAT = "tytoalba-features"
VERSION = 1
LONGEST_FRAME = 2**24
"""Samples of a frame in a file, and lags."""
Progress = Callable[[int, int], None]
"""Called with (done, total) after each recording."""


@dataclass(frozen=True)
class FeatureSet:
    """Frames as features, with directions and where they come from.

    X: (n_frames, n_pairs, n_lags), or (n_frames, n_parts, n_pairs, n_lags) for several bands or windows.
    azimuth: degrees, (n_frames, n_sources), NaN where there is no further source.
    recording: number of each frame's recording in `names`; frame: its number there.
    array, gcc: what the features were computed for and how.
    """

    X: NDArray[np.float32]
    azimuth: Float
    recording: NDArray[np.int32]
    frame: NDArray[np.int32]
    names: tuple[str, ...]
    array: MicArray
    gcc: GccPhat

    def __post_init__(self) -> None:
        n = len(self.X)
        if not (len(self.azimuth) == len(self.recording) == len(self.frame) == n):
            raise DataError("features and labels differ in length: the file or its maker is at fault")
        if n and not (self.recording.min() >= 0 and self.recording.max() < len(self.names)):
            raise DataError("a frame belongs to a recording that is not listed")
        if self.X.size // max(n, 1) != self.gcc.n_features and n:
            raise DataError(f"{self.X.shape[1:]} values per frame, the recipe gives {self.gcc.n_features}")

    def __len__(self) -> int:
        return len(self.X)

    @property
    def flat(self) -> NDArray[np.float32]:
        """X as (n_frames, n_features)."""
        return self.X.reshape(len(self), self.gcc.n_features)

    @property
    def n_sources(self) -> NDArray[np.intp]:
        """Number of sources of each frame."""
        count: NDArray[np.intp] = np.isfinite(self.azimuth).sum(axis=1)
        return count

    def select(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> FeatureSet:
        """Some of the frames."""
        return replace(
            self,
            X=self.X[rows],
            azimuth=self.azimuth[rows],
            recording=self.recording[rows],
            frame=self.frame[rows],
        )

    def save(self, path: str | Path, recipients: Sequence[Recipient] | None = None) -> None:
        """Write the set to a safetensors file, whole or not at all; sealed if there are recipients."""
        recipe = described_set(self.names, self.array, self.gcc)
        tensors: dict[str, NDArray[Any]] = {
            "X": np.ascontiguousarray(self.X),
            "azimuth": np.ascontiguousarray(self.azimuth, np.float64),
            "recording": np.ascontiguousarray(self.recording),
            "frame": np.ascontiguousarray(self.frame),
        }
        write_tensors(path, tensors, recipe, recipients)

    @classmethod
    def load(cls, path: str | Path, keys: Keys = None) -> FeatureSet:
        """Read a set that `save` wrote; a sealed one is opened in memory, with these keys."""
        if not Path(path).is_file():
            raise DataError(f"no such file: {path}")
        try:
            recipe, tensors = read_tensors(path, keys)
            if recipe.get("format") != FORMAT:
                raise DataError(f"{path} holds no features; tyto features DATA -o FILE makes some")
            if (version := recipe.get("version")) != VERSION:
                raise DataError(f"{path} has version {str(version)[:20]}; this program reads {VERSION}")
            if not all(isinstance(name, str) for name in recipe["names"]):
                raise DataError(f"{path} is damaged: names of recordings are texts")
            array = MicArray.from_toml(recipe["array"], str(path))
            gcc = read_description(recipe["gcc"], array)
            X, azimuth, recording, frame = (tensors[key] for key in ("X", "azimuth", "recording", "frame"))
            return cls(X, azimuth, recording, frame, tuple(recipe["names"]), array, gcc)
        except (DataError, SealError):
            raise
        except (OSError, LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise DataError(f"{path} is damaged or not a feature file: {error}") from error


def described_set(names: Sequence[str], array: MicArray, gcc: GccPhat) -> dict[str, Any]:
    """What a feature file says beside its frames."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "names": names,
        "array": array.to_toml(),
        "gcc": describe(gcc),
    }


def describe(gcc: GccPhat) -> dict[str, Any]:
    """How features were computed, as JSON can say it."""
    return {
        "n_samples": gcc.n_samples,
        "max_lag": gcc.max_lag,
        "bands": [[low, high if np.isfinite(high) else None] for low, high in gcc.band_list],
        "single_band": gcc.bands is gcc.band_list[0],
        "parts": gcc.parts,
        **({"exact": True} if gcc.exact else {}),  # as files have it that were written before
    }


def read_description(described: dict[str, Any], array: MicArray) -> GccPhat:
    """The features that `describe` described, for an array."""
    listed = tuple((low, np.inf if high is None else high) for low, high in described["bands"])
    bands = listed[0] if described["single_band"] else listed
    n_samples, max_lag, parts = described["n_samples"], described["max_lag"], described.get("parts", 1)
    sizes = n_samples, max_lag, parts
    if any(type(size) is not int or not 0 <= size <= LONGEST_FRAME for size in sizes):
        raise ValueError(f"n_samples, max_lag and parts are whole numbers up to {LONGEST_FRAME}")
    exact = bool(described.get("exact", False))
    return GccPhat.for_array(array, n_samples, bands, max_lag, parts, exact)


def extract(
    recordings: Sequence[Recording],
    gcc: GccPhat | None = None,
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> FeatureSet:
    """Features of the labelled frames of recordings in which somebody talks."""
    return extract_noisy(recordings, [None], gcc, processes=processes, on_progress=on_progress)[0]


def extract_noisy(
    recordings: Sequence[Recording],
    noises: Sequence[AnyNoise | None],
    gcc: GccPhat | None = None,
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> list[FeatureSet]:
    """Features of the same frames under several noises (None: as they are), each sound read once."""
    if not recordings:
        raise DataError("no recordings to extract features from")
    array = recordings[0].array
    gcc = gcc or GccPhat.for_array(array, recordings[0].frame_length, FULL_BAND)
    work = partial(recording_features, gcc, noises)
    if processes != 1 and all(isinstance(recording.load, SoundFile) for recording in recordings):
        parts = threaded_map(work, recordings, processes)  # features need not be copied between processes
    else:  # simulations hold Python's lock
        parts = parallel_map(work, recordings, processes)
    return gather(parts, [r.name for r in recordings], array, gcc, len(noises), on_progress)


def stream_features(
    source: Source, array: MicArray, gcc: GccPhat, *, threads: int = 0, keys: Keys = None
) -> Iterator[NDArray[np.float32]]:
    """Features of all frames of a sound file, some frames at a time, in memory that does not grow with it.

    Frames are half a frame apart. The file is read ahead while `threads` threads (0: one per core) compute;
    the values are those of `gcc` of all frames at once.
    """
    framer = Framer(gcc.n_samples, gcc.n_samples // 2)
    batches = (framer.add(block) for block in stream_audio(source, array, keys=keys))
    yield from threaded_map(gcc, (batch for batch in batches if len(batch)), threads)
    framer.refuse_short()


Piece = tuple[list[NDArray[np.float32]], Float, NDArray[np.int32]]


def recording_features(gcc: GccPhat, noises: Sequence[AnyNoise | None], recording: Recording) -> Piece:
    """Features of a recording under each noise, directions and numbers of its frames with a source."""
    used = recording.n_sources > 0
    samples = recording.load()
    X = []
    for noise in noises:
        noisy = noise.added_to(samples, recording.array, recording.name) if noise else samples
        X.append(np.asarray(gcc(recording.frames(noisy)[used]), np.float32))
    return X, recording.azimuth[used], recording.frame_ids[used].astype(np.int32)


def gather(
    pieces: Iterable[Piece],
    names: Sequence[str],
    array: MicArray,
    gcc: GccPhat,
    n_sets: int,
    on_progress: Progress | None,
) -> list[FeatureSet]:
    """Pieces of recordings as `n_sets` feature sets, one per noise."""
    X: list[list[NDArray[np.float32]]] = [[] for _ in range(n_sets)]
    azimuth, frame, recording = [], [], []
    for number, (x, directions, ids) in enumerate(pieces):
        for one, values in zip(X, x, strict=True):
            one.append(values)
        azimuth.append(directions)
        frame.append(ids)
        recording.append(np.full(len(ids), number, np.int32))
        if on_progress:
            on_progress(number + 1, len(names))
    widest = max(directions.shape[1] for directions in azimuth)
    padded = [
        np.pad(directions, ((0, 0), (0, widest - directions.shape[1])), constant_values=np.nan)
        for directions in azimuth
    ]
    labels = np.concatenate(padded), np.concatenate(recording), np.concatenate(frame)
    return [FeatureSet(np.concatenate(one), *labels, tuple(names), array, gcc) for one in X]
