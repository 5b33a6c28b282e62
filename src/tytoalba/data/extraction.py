"""Any data set to a feature file: on all cores, in memory that does not grow, resumable.

Recordings are cut into pieces of a few minutes. A piece is named by its recording and its frames, so it can
be worked on anywhere; the file has them in their order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tytoalba.data.feature_file import FeatureWriter, Piece, growing
from tytoalba.data.features import Progress, describe
from tytoalba.data.recording import Listed, Recording
from tytoalba.data.source import FolderSource, SimulatedSource
from tytoalba.errors import DataError
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import FULL_BAND, Band, GccPhat
from tytoalba.storage.age import Keys
from tytoalba.storage.parallel import parallel_map

PIECE = 2048
"""Labelled frames of a piece: minutes of sound, megabytes of features."""
AT_ONCE = 256
"""Frames that are in memory together."""

Source = FolderSource | SimulatedSource


class Span(NamedTuple):
    """Frames of a recording that are worked on together; last: exclusive, None: to the end."""

    recording: int
    number: int
    listed: Listed
    first: int
    last: int | None
    is_last: bool


Worked = Callable[[Iterator[Span]], Iterator[Piece]]
"""Works on spans, wherever that is, and gives their pieces in order."""


@dataclass(frozen=True)
class Extraction:
    """What to extract features of, and how. bands: as `GccPhat` takes them.

    exact: the same bits on every machine; else faster, and the last bits depend on the CPU.
    """

    source: Source
    array: MicArray
    gcc: GccPhat

    @classmethod
    def of(
        cls, source: Source, bands: Sequence[Band] = (), *, exact: bool = True, keys: Keys = None
    ) -> Extraction:
        """An extraction from a source; its first recording says which array it is."""
        array, length = source.array_of(keys)
        chosen = bands[0] if len(bands) == 1 else tuple(bands) or FULL_BAND
        return cls(source, array, GccPhat.for_array(array, length, chosen, exact=exact))

    @property
    def recipe(self) -> str:
        """Digest of everything that the features depend on but the recordings."""
        told = {
            "source": self.source.described(),
            "array": self.array.to_toml(),
            "gcc": describe(self.gcc),
            "piece": PIECE,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def spans(
        self, listed: Sequence[Listed], recording: int, piece: int, keys: Keys, *, plain: bool
    ) -> Iterator[Span]:
        """All spans from a piece of a recording on; labels are read when their turn comes."""
        for number in range(recording, len(listed)):
            one = listed[number]
            if not plain and self.source.sealed(one):
                raise DataError(
                    f"{one.name} is sealed, and features tell much of what was said and where: they would "
                    "lie in the open. Say --plain if that is meant"
                )
            spans = self.source.spans(one, PIECE, keys)
            for k, (first, last) in enumerate(spans):
                if k >= piece:
                    yield Span(number, k, one, first, last, k == len(spans) - 1)
            piece = 0

    def piece(self, recording: Recording, first: int, last: int | None) -> Piece:
        """Features of the frames of a span in which somebody talks."""
        last = len(recording.frame_ids) if last is None else last
        ids = recording.frame_ids[first:last]
        X, azimuth, frame, done = [], [], [], 0
        for part, cut in recording.span(first, last).parts(AT_ONCE):
            used = part.n_sources > 0
            own, done = ids[done : done + len(used)], done + len(used)
            X.append(np.asarray(self.gcc(cut[used]), np.float32))
            azimuth.append(part.azimuth[used])
            frame.append(own[used].astype(np.int32))
        return Piece(np.concatenate(X), np.concatenate(azimuth), np.concatenate(frame))


def extract_to_file(
    extraction: Extraction,
    output: str | Path,
    *,
    keys: Keys = None,
    plain: bool = False,
    processes: int = 1,
    worked: Worked | None = None,
    on_progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the features of all recordings to a file; gives the number of frames and of recordings.

    plain: features of sealed recordings may lie in the open. processes: to work on; 0: one per core. worked:
    works on the spans in their stead, such as on other machines. on_progress: called after each recording.
    """
    source = extraction.source
    listed = source.listed()
    several = len({one.subset for one in listed}) > 1
    names = tuple(f"{one.subset}/{one.name}" if several else one.name for one in listed)
    recipe = hashlib.sha256(extraction.recipe.encode())
    for one in listed:
        recipe.update(repr((one, [_stamp(file) for file in source.files(one)])).encode())
    if worked is None:
        worked = partial(_on_processes, extraction, keys, processes)
    with growing(output, names, extraction.array, extraction.gcc, recipe.hexdigest()) as writer:
        place = writer.place
        spans = _Watched(extraction.spans(listed, place.recording, place.piece, keys, plain=plain))
        for piece in worked(spans):
            _write(writer, spans.taken.pop(0), piece, len(listed), on_progress)
        return place.frames, len(listed)


def _write(writer: FeatureWriter, span: Span, piece: Piece, total: int, on_progress: Progress | None) -> None:
    writer.add(span.recording, span.number, piece, last=span.is_last)
    if span.is_last and on_progress:
        on_progress(span.recording + 1, total)


class _Watched(Iterator[Span]):
    """Spans, and those that were taken and are not written yet."""

    def __init__(self, spans: Iterator[Span]) -> None:
        self._spans, self.taken = spans, list[Span]()

    def __next__(self) -> Span:
        span = next(self._spans)
        self.taken.append(span)
        return span


def _stamp(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return file.name, found.st_size, found.st_mtime_ns


def _on_processes(
    extraction: Extraction, keys: Keys, processes: int, spans: Iterator[Span]
) -> Iterator[Piece]:
    return parallel_map(partial(span_features, extraction, keys), spans, processes)


_read: dict[tuple[Source, Listed], Recording] = {}
"""The recording that was worked on last, so that the labels of a long one are read once."""


def span_features(extraction: Extraction, keys: Keys, span: Span) -> Piece:
    """Features of one span, from its name alone."""
    key = extraction.source, span.listed
    recording = _read.get(key)
    if recording is None:
        recording = extraction.source.recording(span.listed, keys)
        _read.clear()
        if not span.is_last:
            _read[key] = recording
    return extraction.piece(recording, span.first, span.last)
