"""A feature file that is written piece by piece, in bounded memory, and goes on where it was stopped.

Until it is complete, everything is in a folder beside it, NAME.part: the features where they will lie in the
file, the labels, and how far both are right. At the end the labels and the header are put in their places and
the file takes its name: the features are written once.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import described_set
from tytoalba.errors import DataError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat
from tytoalba.storage.files import locked, read_json
from tytoalba.storage.writing import require_writable, write_whole

BETWEEN_SYNCS = 2.0
"""Seconds of work that are lost at most when the machine is."""
ROOM = 1024
"""Bytes of the header for sizes that are known at the end."""


class Piece(NamedTuple):
    """Frames of one recording: features, directions (n_frames, n_sources) in degrees, their numbers."""

    X: NDArray[np.float32]
    azimuth: Float
    frame: NDArray[np.int32]


@dataclass
class Place:
    """How far a file is written: pieces of which recording, frames, bytes of labels, most sources."""

    recording: int = 0
    piece: int = 0
    frames: int = 0
    labels: int = 0
    width: int = 2


class FeatureWriter:
    """Takes the pieces of recordings in their order; `growing` makes one. place: what is there already."""

    def __init__(self, folder: Path, header: bytes, recipe: str, place: Place) -> None:
        self.place, self._folder, self._recipe = place, folder, recipe
        self._header, self._begin = header, 8 + len(header)
        self._X, self._labels = (_opened(folder / name) for name in ("features", "labels"))
        self._synced = time.monotonic()

    def add(self, recording: int, number: int, piece: Piece, *, last: bool) -> None:
        """Append piece `number` of a recording; last: the recording is complete with it."""
        n, width = piece.azimuth.shape
        place = self.place
        self._X.write(np.asarray(piece.X, np.float32).tobytes())
        labels = [
            np.array([n, width], np.int64).tobytes(),
            np.asarray(piece.azimuth, np.float64).tobytes(),
            np.full(n, recording, np.int32).tobytes(),
            np.asarray(piece.frame, np.int32).tobytes(),
        ]
        for values in labels:
            self._labels.write(values)
        place.labels += sum(map(len, labels))
        place.frames, place.width = place.frames + n, max(place.width, width)
        place.recording, place.piece = (recording + 1, 0) if last else (recording, number + 1)
        if time.monotonic() - self._synced > BETWEEN_SYNCS:
            self.sync()

    def sync(self) -> None:
        """Make sure that what is written survives, and write down how far that is."""
        for file in (self._X, self._labels):
            file.flush()
            os.fsync(file.fileno())
        told = {"recipe": self._recipe, "place": vars(self.place)}
        write_whole(self._folder / "place.json", json.dumps(told).encode())
        self._synced = time.monotonic()

    def finish(self, shape: tuple[int, ...]) -> None:
        """Put labels and header in their places. shape: of a frame's features."""
        n, width = self.place.frames, self.place.width
        sizes = {
            "X": ("F32", [n, *shape], 4 * n * int(np.prod(shape))),
            "recording": ("I32", [n], 4 * n),
            "frame": ("I32", [n], 4 * n),
            "azimuth": ("F64", [n, width], 8 * n * width),
        }
        table, at = json.loads(self._header), 0
        for name, (dtype, size, n_bytes) in sizes.items():
            table[name] = {"dtype": dtype, "shape": size, "data_offsets": [at, at + n_bytes]}
            at += n_bytes
        header = json.dumps(table, separators=(",", ":")).encode()
        begin = sizes["X"][2] + self._begin
        self._X.seek(begin)
        self._X.truncate()
        for name in ("recording", "frame", "azimuth"):
            for label in self._rows(width):
                self._X.write(label[name].tobytes())
        self._X.seek(0)
        self._X.write(struct.pack("<Q", len(self._header)) + header.ljust(len(self._header)))
        self._X.flush()
        os.fsync(self._X.fileno())
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._X.close()
        self._labels.close()

    def _rows(self, width: int) -> Iterator[dict[str, NDArray[Any]]]:
        """The labels of each piece, azimuths padded to the same width."""
        self._labels.seek(0)
        left = self.place.labels
        while left > 0:
            n, own = np.frombuffer(self._labels.read(16), np.int64).tolist()
            azimuth = np.frombuffer(self._labels.read(8 * n * own), np.float64).reshape(n, own)
            recording, frame = (np.frombuffer(self._labels.read(4 * n), np.int32) for _ in range(2))
            left -= 16 + 8 * n * own + 8 * n
            padded = np.pad(azimuth, ((0, 0), (0, width - own)), constant_values=np.nan)
            yield {"azimuth": padded, "recording": recording, "frame": frame}


@contextmanager
def growing(
    path: str | Path, names: tuple[str, ...], array: MicArray, gcc: GccPhat, recipe: str
) -> Iterator[FeatureWriter]:
    """Begin a feature file, or go on with one; it is there when the block has ended well.

    names: of all recordings. recipe: what goes into it, as a digest; a file that was begun by another is
    refused. When the block is interrupted, what there is stays for the next time.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    require_writable(path)
    folder = path.with_name(f"{path.name}.part")
    with locked(path):
        metadata = {"__metadata__": {"tytoalba": json.dumps(described_set(names, array, gcc))}}
        text = json.dumps(metadata, separators=(",", ":")).encode()
        header = text.ljust(-(-(len(text) + ROOM) // 8) * 8)
        row = np.asarray(gcc(np.zeros((1, array.n_mics, gcc.n_samples), np.float32))[0], np.float32)

        def sizes(place: Place) -> dict[Path, int]:
            size = 8 + len(header) + row.nbytes * place.frames
            return {folder / "features": size, folder / "labels": place.labels}

        _refuse_planted(folder)
        place = _place(folder, recipe, path)
        if not all(file.is_file() and file.stat().st_size >= n for file, n in sizes(place).items()):
            place = Place()
        folder.mkdir(mode=0o700, exist_ok=True)
        for file, n_bytes in sizes(place).items():
            with _opened(file) as opened:
                opened.truncate(n_bytes)
        writer = FeatureWriter(folder, header, recipe, place)
        try:
            yield writer
            writer.finish(row.shape)
        except BaseException:
            if not writer._X.closed:
                writer.sync()
            raise
        finally:
            writer.close()
        (folder / "features").replace(path)
        shutil.rmtree(folder)


def _place(folder: Path, recipe: str, path: Path) -> Place:
    if not (folder / "place.json").is_file():
        return Place()
    told = read_json(folder / "place.json", error=DataError)
    try:
        place, other = Place(**told["place"]), told["recipe"]
        if any(type(value) is not int or value < 0 for value in vars(place).values()):
            raise ValueError("its numbers")
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"{folder} is damaged ({error}): remove it, and {path.name} is made anew") from error
    if other != recipe:
        raise DataError(
            f"{folder} was begun with other recordings or options: run that command again to finish it, or "
            f"remove {folder.name} to begin anew"
        )
    return place


def _refuse_planted(folder: Path) -> None:
    """Refuse an unfinished file that this program did not begin: links and pipes that somebody put there."""
    if not os.path.lexists(folder):
        return
    wrong = folder if folder.is_symlink() or not folder.is_dir() else None
    for name in ("features", "labels", "place.json"):
        file = folder / name
        if wrong is None and os.path.lexists(file) and (file.is_symlink() or not file.is_file()):
            wrong = file
    if wrong is not None:
        raise DataError(
            f"{wrong} is not what an interrupted run leaves: nothing is written through links and pipes; "
            f"remove {folder.name} and run this again"
        )


def _opened(path: Path) -> BinaryIO:
    """A file to go on with at its end, made where it is missing; a link is not followed."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(path, flags, 0o666), "r+b")
    file.seek(0, os.SEEK_END)
    return file
