"""A labelled recording, as every data set yields it: which frames are labelled, where the sources are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import DataError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import BLOCK, Framer
from tytoalba.storage.age import Keys
from tytoalba.storage.soundfiles import read_audio, stream_audio
from tytoalba.texts.printing import plural

FRAME_LENGTH = 8192
HOP = 4096


@dataclass(frozen=True)
class SoundFile:
    """The sound of a recording in a file: call it for all, (n_mics, n_samples), or take it in blocks."""

    path: Path
    array: MicArray
    keys: Keys = None

    def __call__(self) -> NDArray[np.float32]:
        """All of it."""
        return read_audio(self.path, self.array, keys=self.keys).samples

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """The same samples in blocks (n_mics, any length), in memory that does not grow with the file."""
        return stream_audio(self.path, self.array, keys=self.keys)


@dataclass(frozen=True)
class Recording:
    """One recording; its sound is read only when asked for.

    subset: the part of the data set it belongs to, e.g. "lsp_test_106".
    frame_ids: which frames are labelled; frame t covers samples [hop * t, hop * t + frame_length).
    azimuth: degrees, (n_frames, n_sources), NaN where there is no further source; a silent frame is all NaN.
    load: reads the sound, (n_mics, n_samples) float32 in [-1, 1], at the array's sample rate.
    """

    name: str
    subset: str
    array: MicArray
    frame_ids: NDArray[np.intp]
    azimuth: Float
    load: Callable[[], NDArray[np.float32]]
    frame_length: int = FRAME_LENGTH
    hop: int = HOP

    @property
    def n_sources(self) -> NDArray[np.intp]:
        """Number of sources of each labelled frame, (n_frames,)."""
        count: NDArray[np.intp] = np.isfinite(self.azimuth).sum(axis=1)
        return count

    def frames(self, samples: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """The labelled frames, (n_frames, n_mics, frame_length), of this sound (read if not given)."""
        if not len(self.frame_ids):
            return np.empty((0, self.array.n_mics, self.frame_length), np.float32)
        samples = self.load() if samples is None else samples
        starts = self.frame_ids * self.hop
        if starts.max() + self.frame_length > samples.shape[1]:
            raise self._too_short(samples.shape[1])
        windows = np.lib.stride_tricks.sliding_window_view(samples, self.frame_length, axis=1)
        return np.ascontiguousarray(windows[:, starts].swapaxes(0, 1))

    def parts(self, n_frames: int) -> Iterator[tuple[Recording, NDArray[np.float32]]]:
        """The recording in parts of so many labelled frames, each with these frames.

        A sound file is read in blocks, so that a long one is never in memory as a whole, if the frames are
        labelled in order.
        """
        in_order = bool((np.diff(self.frame_ids) > 0).all())
        if isinstance(self.load, SoundFile) and in_order:
            yield from self._parts_of_blocks(self.load.blocks(), n_frames)
            return
        samples = self.load()
        for first in range(0, max(1, len(self.frame_ids)), n_frames):
            part = self._part(first, n_frames)
            yield part, part.frames(samples)

    def _part(self, first: int, n_frames: int) -> Recording:
        rows = slice(first, first + n_frames)
        return replace(self, frame_ids=self.frame_ids[rows], azimuth=self.azimuth[rows])

    def _parts_of_blocks(
        self, blocks: Iterable[NDArray[np.float32]], n_frames: int
    ) -> Iterator[tuple[Recording, NDArray[np.float32]]]:
        framer, n_samples, n_cut, first = Framer(self.frame_length, self.hop), 0, 0, 0
        waiting = [np.empty((0, self.array.n_mics, self.frame_length), np.float32)]
        for block in _small(blocks):
            n_samples += block.shape[1]
            batch = framer.add(block)
            found = np.searchsorted(self.frame_ids, [n_cut, n_cut + len(batch)])
            waiting.append(batch[self.frame_ids[slice(*found)] - n_cut])
            n_cut += len(batch)
            while sum(map(len, waiting)) >= n_frames:
                cut = np.concatenate(waiting)
                yield self._part(first, n_frames), cut[:n_frames]
                waiting, first = [cut[n_frames:]], first + n_frames
        cut = np.concatenate(waiting)
        if first + len(cut) < len(self.frame_ids):
            raise self._too_short(n_samples)
        if len(cut) or not first:
            yield self._part(first, n_frames), cut

    def _too_short(self, n_samples: int) -> DataError:
        return DataError(
            f"recording {self.name!r} has {plural(n_samples, 'sample')}, but frame {self.frame_ids.max()} is "
            "labelled; the sound is cut short or the labels belong to another file"
        )


def _small(blocks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Blocks of at most BLOCK samples."""
    for block in blocks:
        for first in range(0, block.shape[1], BLOCK):
            yield block[:, first : first + BLOCK]
