"""A labelled recording, as every data set yields it: which frames are labelled, where the sources are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

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
class Listed:
    """A recording of a data set, of which nothing was read yet. file: the name of its sound there."""

    subset: str
    file: str

    @property
    def name(self) -> str:
        """What the recording is called."""
        return Path(self.file).stem


@dataclass(frozen=True)
class SoundFile:
    """The sound of a recording in a file: call it for all, (n_mics, n_samples), or take it in blocks.

    start, stop: samples at the array's rate, where it is only a part of the file; stop None: to its end.
    """

    path: Path
    array: MicArray
    keys: Keys = None
    start: int = 0
    stop: int | None = None

    def __call__(self) -> NDArray[np.float32]:
        """All of it."""
        if self.start or self.stop is not None:
            return np.concatenate(list(self.blocks()), axis=1)
        return read_audio(self.path, self.array, keys=self.keys).samples

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """The same samples in blocks (n_mics, any length), in memory that does not grow with the file."""
        left = np.inf if self.stop is None else self.stop - self.start
        sound = stream_audio(self.path, self.array, keys=self.keys, start=self.start, again=self.start > 0)
        with closing(
            cast("Generator[NDArray[np.float32], None, None]", sound)
        ):  # so that the file is closed here
            for block in sound:
                yield block if block.shape[1] <= left else block[:, : int(left)]
                left -= block.shape[1]
                if left <= 0:
                    return


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
            raise self.too_short(samples.shape[1])
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

    def spans(self, n_frames: int) -> Iterator[tuple[int, int]]:
        """First and last (exclusive) labelled frame of each piece to be worked on by itself (`span`).

        A recording is in one piece if it is not longer than that, or if its sound is no file.
        """
        n = len(self.frame_ids)
        whole = not isinstance(self.load, SoundFile) or not bool((np.diff(self.frame_ids) > 0).all())
        step = max(1, n) if whole else n_frames
        return ((first, min(first + step, n)) for first in range(0, max(1, n), step))

    def span(self, first: int, last: int) -> Recording:
        """Some of the labelled frames, numbered as before, with the sound of these frames alone."""
        if first == 0 and last >= len(self.frame_ids):
            return self
        assert isinstance(self.load, SoundFile)
        ids = self.frame_ids[first:last]
        start = int(ids[0]) * self.hop
        stop = None if last >= len(self.frame_ids) else int(ids[-1]) * self.hop + self.frame_length
        load = replace(self.load, start=start, stop=stop)
        return replace(self, frame_ids=ids - ids[0], azimuth=self.azimuth[first:last], load=load)

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
            raise self.too_short(n_samples)
        if len(cut) or not first:
            yield self._part(first, n_frames), cut

    def too_short(self, n_samples: int) -> DataError:
        """The error of sound that has only so many samples."""
        return DataError(
            f"recording {self.name!r} has {plural(n_samples, 'sample')}, but frame {self.frame_ids.max()} is "
            "labelled; the sound is cut short or the labels belong to another file"
        )


def _small(blocks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Blocks of at most BLOCK samples."""
    for block in blocks:
        for first in range(0, block.shape[1], BLOCK):
            yield block[:, first : first + BLOCK]
