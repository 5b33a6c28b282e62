"""Matrices of MATLAB files before v7.3 (formats 4 and 5), read by a reader of our own.

That of scipy ends the process on some damaged files. This one takes full matrices of real numbers and steps
over everything else. Every length is compared with what is there before it is used, and what is compressed
is unpacked to the length that was announced and no further.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

HEAD = 128
"""Bytes of text and version before the first element of format 5."""
START = 4096
"""Bytes of an element that hold all that is said of a matrix before its numbers."""
MATRIX, COMPRESSED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""How numbers lie in an element of format 5, by its type."""
NUMBERS = range(6, 16)
"""Classes of format 5 that are full matrices of numbers, from double to uint64."""
COMPLEX = 0x800
OLD = ("f8", "f4", "i4", "i2", "u2", "u1")
"""How numbers lie in format 4."""


@dataclass(frozen=True)
class Matrix:
    """A matrix in a file, whose numbers are read when they are first asked for, by `matrix[...]`.

    shape: as MATLAB has it. place, size: bytes of its element in the file. start: where its numbers begin in
    the element, unpacked.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    place: int
    size: int
    start: int
    compressed: bool

    @cached_property
    def values(self) -> NDArray[Any]:
        """All of its numbers; ValueError where the file is damaged."""
        n_bytes = math.prod(self.shape) * self.dtype.itemsize
        with self.path.open("rb") as file:
            file.seek(self.place)
            data = file.read(self.size)
        if self.compressed:
            data = _unpacked(data, self.start + n_bytes + 8)
        numbers = np.frombuffer(data, self.dtype, math.prod(self.shape), self.start)
        return numbers.reshape(self.shape, order="F")

    def __getitem__(self, index: Any) -> NDArray[Any]:
        found: NDArray[Any] = self.values[index]
        return found


def matrices(path: Path) -> dict[str, Matrix]:
    """The matrices of numbers in a file, by name; ValueError where it is damaged, or no MATLAB file."""
    with path.open("rb") as file:
        head = file.read(HEAD)
        if len(head) >= 4 and 0 in head[:4]:
            return dict(_format_4(path, file))
        if len(head) < HEAD or head[126:] not in (b"IM", b"MI"):
            raise ValueError("it does not begin as MATLAB files do")
        order = "<" if head[126:] == b"IM" else ">"
        (version,) = struct.unpack(f"{order}H", head[124:126])
        if version >> 8 != 1:
            raise ValueError(f"it says that it is version {version >> 8}.{version & 255}")
        return dict(_format_5(path, file, order))


def _format_5(path: Path, file: BinaryIO, order: str) -> Iterator[tuple[str, Matrix]]:
    end, place = file.seek(0, 2), HEAD
    while place < end:
        file.seek(place)
        kind, size = _numbers(file.read(8), f"{order}II")
        place += 8
        if kind not in (MATRIX, COMPRESSED):
            raise ValueError(f"an element of unknown type {kind}")
        if size > end - place:
            raise ValueError("it was cut short")
        start = file.read(min(size, START))
        if kind == COMPRESSED:
            start = zlib.decompressobj().decompress(start, START)
            inner, _ = _numbers(start[:8], f"{order}II")
            found = _matrix(start[8:], order) if inner == MATRIX else None
        else:
            found = _matrix(start, order)
        if found is not None:
            name, shape, dtype, begin, n_bytes = found
            begin += 8 * (kind == COMPRESSED)
            if n_bytes != math.prod(shape) * dtype.itemsize or (kind == MATRIX and begin + n_bytes > size):
                raise ValueError(f"{name!r} has {n_bytes} bytes, expected {shape} numbers")
            yield name, Matrix(path, shape, dtype, place, size, begin, kind == COMPRESSED)
        place += size


def _matrix(data: bytes, order: str) -> tuple[str, tuple[int, ...], np.dtype[Any], int, int] | None:
    """Name, shape, kind of numbers, their place and bytes, of an element; None if it is no matrix of numbers.

    data: how the element begins.
    """
    _, flags, place, n_bytes = _element(data, 0, order)
    what = _numbers(data[flags : flags + 4], f"{order}I")[0] if n_bytes == 8 else 0
    if what & 255 not in NUMBERS or what & COMPLEX:
        return None
    _, at, place, n_bytes = _element(data, place, order)
    shape = _numbers(data[at : at + n_bytes], f"{order}{n_bytes // 4}i")
    _, at, place, n_bytes = _element(data, place, order)
    name = data[at : at + n_bytes].decode("latin-1")
    kind, at, _, n_bytes = _element(data, place, order)
    if kind not in STORED or len(shape) < 2 or min(shape) < 0 or math.prod(shape) > 2**32:
        raise ValueError(f"{name[:60]!r} is damaged: {shape[:4]} numbers of type {kind}")
    return name, shape, np.dtype(order + STORED[kind]), at, n_bytes


def _element(data: bytes, place: int, order: str) -> tuple[int, int, int, int]:
    """Type of an element within a matrix, where its data and the next element begin, bytes of its data."""
    kind, n_bytes = _numbers(data[place : place + 8], f"{order}II")
    if kind >> 16:  # up to four bytes lie in the tag itself
        return kind & 0xFFFF, place + 4, place + 8, min(kind >> 16, 4)
    return kind, place + 8, place + 8 + n_bytes + -n_bytes % 8, n_bytes


def _format_4(path: Path, file: BinaryIO) -> Iterator[tuple[str, Matrix]]:
    end, place = file.seek(0, 2), 0
    while place < end:
        file.seek(place)
        head = file.read(20)
        order = "<" if 0 <= _numbers(head[:4], "<i")[0] <= 5000 else ">"
        kind, n_rows, n_columns, imaginary, n_letters = _numbers(head, f"{order}5i")
        number, sort = kind // 10 % 10, kind % 10
        if kind // 100 not in (0, 10) or number >= len(OLD) or sort > 2 or not 0 < n_letters <= 1000:
            raise ValueError(f"it does not begin as MATLAB files do, or is damaged at byte {place}")
        name = file.read(n_letters).rstrip(b"\0").decode("latin-1")
        dtype = np.dtype(order + OLD[number])
        place += 20 + n_letters
        n_bytes = n_rows * n_columns * dtype.itemsize
        if min(n_rows, n_columns) < 0 or n_bytes * (1 + (imaginary == 1)) > end - place:
            raise ValueError(f"it was cut short in {name[:60]!r}")
        if sort == 0 and imaginary == 0:
            yield name, Matrix(path, (n_rows, n_columns), dtype, place, n_bytes, 0, False)
        place += n_bytes * (1 + (imaginary == 1))


def _numbers(data: bytes, form: str) -> tuple[int, ...]:
    try:
        return struct.unpack(form, data)
    except struct.error as error:
        raise ValueError("it was cut short, or a length in it is wrong") from error


def _unpacked(data: bytes, most: int) -> bytes:
    """What zlib packed, all of it and whole; at most so many bytes."""
    packed = zlib.decompressobj()
    unpacked = packed.decompress(data, most + 1)
    if not packed.eof or len(unpacked) > most:
        raise ValueError("what is packed in it is damaged")
    return unpacked
