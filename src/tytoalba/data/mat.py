"""The features that the authors of SSL-CIL extracted from SSLR and publish as MATLAB files.

Three parts, each with GCC-PHAT features X (N x 306), binary directions Y (N x 360, class index =
azimuth in degrees) and the number of speakers I; the test parts come with noise added, too:

    qianTraining_GCCPHAT_SSLR.mat                 "train"        Xtr, Ytr, Itr
    qianTesting1_GCCPHAT_SSLR[_SNR<n>dB].mat      "human"        Xte1, Yte1, Ite1
    qianTesting2_GCCPHAT_SSLR[_SNR<n>dB].mat      "loudspeaker"  Xte2, Yte2, Ite2

MATLAB v7.3 files are HDF5 inside, where matrices appear transposed; `matlab` reads older ones.
X is passed on as it is, not scaled. The Gaussian labels Ztr are not read: `angles.encode` makes them.
"""

from __future__ import annotations

import math
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.matlab import matrices
from tytoalba.errors import DataError, MissingExtraError, TytoWarning
from tytoalba.signal.angles import N_DIRECTIONS, Float

N_FEATURES = 306
SNRS = (-20, -10, 0, 10)
"""Noise levels of the noisy test files in dB."""
BLOCK_ROWS = 8192
"""Rows read at a time: the training part is gigabytes in the file's double precision."""
MAX_ROWS = 5_000_000
"""Ten times what SSLR has; a file that announces more is damaged."""
MAX_SOURCES = 16

PARTS = {"train": ("Training", "tr"), "human": ("Testing1", "te1"), "loudspeaker": ("Testing2", "te2")}
"""Name of each part: its word in the file name, and the ending of its variables."""

_HDF5 = b"\x89HDF\r\n\x1a\n"


Files = dict[tuple[str, int | None], Path]
"""Files by part and SNR of the added noise (dB), None without."""


def open_mat(folder: str | os.PathLike[str]) -> Files:
    """Find the authors' feature files in a folder; any of them may be absent, but not all."""
    noisy = [(part, snr) for part in PARTS if part != "train" for snr in SNRS]
    wanted: list[tuple[str, int | None]] = [*((part, None) for part in PARTS), *noisy]
    paths = {key: Path(folder) / file_name(*key) for key in wanted}
    files = {key: path for key, path in paths.items() if path.is_file()}
    if not files:
        expected = ", ".join(file_name(part) for part in PARTS)
        raise DataError(f"{folder}: none of the feature files is here; expected {expected}")
    return files


def read_mat(files: Files, part: str, snr: int | None = None) -> tuple[NDArray[np.float32], Float]:
    """Features X (n_frames, 306) and azimuth of one part, e.g. `read_mat(files, "loudspeaker", snr=-10)`.

    azimuth: degrees, (n_frames, n_sources), at least two columns, NaN where there is no further source.
    """
    if (part, snr) not in files:
        there = ", ".join(path.name for path in files.values())
        raise DataError(f"{file_name(part, snr)} is missing; there are {there}")
    path = files[part, snr]
    with _variables(path) as variables:
        source = _Source(path, variables, PARTS[part][1])
        X = np.empty((source.n_rows, N_FEATURES), dtype=np.float32)
        azimuths, start = [], 0
        for block, azimuth in source.blocks(BLOCK_ROWS):
            X[start : start + len(block)] = block
            azimuths.append(azimuth)
            start += len(block)
    width = max(azimuth.shape[1] for azimuth in azimuths)
    padded = [np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=np.nan) for a in azimuths]
    return X, np.concatenate(padded)


def file_name(part: str, snr: int | None = None) -> str:
    """What the authors call a file.

    >>> file_name("human", -10)
    'qianTesting1_GCCPHAT_SSLR_SNR-10dB.mat'
    """
    noise = "" if snr is None else f"_SNR{snr}dB"
    return f"qian{PARTS[part][0]}_GCCPHAT_SSLR{noise}.mat"


Matrices = Mapping[str, Any]
"""By name: numpy arrays, or HDF5 data sets that are not read before they are sliced."""


class _Source:
    """The three variables of an open file: checked for their shapes at once, for their values by block."""

    def __init__(self, path: Path, variables: Matrices, ending: str) -> None:
        self.path = path
        self.names = {letter: f"{letter}{ending}" for letter in "XYI"}
        if absent := [name for name in self.names.values() if name not in variables]:
            there = ", ".join(sorted(variables)) or "nothing"
            raise DataError(f"{path}: no matrix {absent[0]}; of matrices the file holds {there}")
        self.X, self.Y, n_speakers = (variables[name] for name in self.names.values())
        for letter, matrix in zip("XYI", (self.X, self.Y, n_speakers), strict=True):
            if matrix.dtype.kind not in "biuf" or (letter != "I" and len(matrix.shape) != 2):
                self.refuse(letter, f"expected a matrix of numbers, got {matrix.dtype} {matrix.shape}")
        # X and Y together tell how they lie, even where there are just 306 or 360 rows
        self.transposed = (*self.X.shape[1:], *self.Y.shape[1:]) != (N_FEATURES, N_DIRECTIONS)
        self.n_rows = self.X.shape[-1 if self.transposed else 0]
        expected = [(self.n_rows, N_FEATURES), (self.n_rows, N_DIRECTIONS)]
        expected = [shape[::-1] for shape in expected] if self.transposed else expected
        if [self.X.shape, self.Y.shape] != expected or not 0 < self.n_rows <= MAX_ROWS:
            shapes = f"{self.X.shape}, and {self.names['Y']} is {self.Y.shape}"
            self.refuse("X", f"is {shapes}: not N x 306 and N x 360 with N from 1 to {MAX_ROWS}")
        if math.prod(n_speakers.shape) != self.n_rows:
            self.refuse("I", f"expected one number for each of {self.n_rows} rows, got {n_speakers.shape}")
        self.n_speakers = np.asarray(n_speakers[:], dtype=np.float64).ravel()

    def blocks(self, n_rows: int) -> Iterator[tuple[NDArray[np.float32], Float]]:
        """X and azimuth, about n_rows rows at a time."""
        chunks = getattr(self.X, "chunks", None) or (1, 1)
        chunk = chunks[1 if self.transposed else 0]
        step = chunk * max(1, n_rows // chunk)  # a compressed chunk is unpacked only once
        merged = []
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            with np.errstate(over="ignore"):  # too large for float32: infinite, and refused as that
                X = self.rows(self.X, rows).astype(np.float32, order="C")
            bad = ~np.isfinite(X).all(axis=1)
            if bad.any():
                self.refuse("X", "a feature is not finite", start + int(bad.argmax()))
            azimuth, same = self.directions(self.rows(self.Y, rows), self.n_speakers[rows], start)
            merged += [start + int(row) for row in np.flatnonzero(same)]
            yield X, azimuth
        if merged:
            warnings.warn(
                f"{self.path}: {len(merged)} rows (the first is {merged[0]}) name more speakers than "
                f"directions; they are taken to share one",
                TytoWarning,
                stacklevel=3,
            )

    def rows(self, matrix: Any, rows: slice) -> NDArray[Any]:
        block: NDArray[Any] = np.asarray(matrix[:, rows]).T if self.transposed else np.asarray(matrix[rows])
        return block

    def directions(
        self, Y: NDArray[Any], n_speakers: NDArray[Any], start: int
    ) -> tuple[Float, NDArray[np.bool_]]:
        """Azimuth (F, n_sources), and where all sources share one direction (F,)."""
        bad = ~((Y == 0) | (Y == 1)).all(axis=1)
        if bad.any():
            self.refuse("Y", "not binary", start + int(bad.argmax()))
        bad = ~((n_speakers >= 0) & (n_speakers <= MAX_SOURCES) & (n_speakers == np.floor(n_speakers)))
        if bad.any():
            row = int(bad.argmax())
            self.refuse("I", f"not a number of speakers: {n_speakers[row]}", start + row)
        n_sources = n_speakers.astype(np.intp)
        marked = (Y != 0).sum(axis=1)  # (F,)
        shared = (marked == 1) & (n_sources > 1)  # speakers behind one another, within one degree
        bad = (marked != n_sources) & ~shared
        if bad.any():
            row = int(bad.argmax())
            why = f"{marked[row]} directions are marked, but {self.names['I']} says {n_sources[row]}"
            self.refuse("Y", why, start + row)
        azimuth = np.full((len(Y), max(2, n_sources.max(initial=0))), np.nan)
        frame, direction = np.nonzero(Y)
        order = np.arange(len(frame)) - np.searchsorted(frame, frame)  # 0, 1, ... within each frame
        azimuth[frame, order] = direction
        for twice in np.flatnonzero(shared):
            azimuth[twice, : n_sources[twice]] = azimuth[twice, 0]
        return azimuth, shared

    def refuse(self, letter: str, why: str, row: int | None = None) -> NoReturn:
        place = self.names[letter] if row is None else f"{self.names[letter]}, row {row}"
        raise DataError(f"{self.path}: {place}: {why}")


@contextmanager
def _variables(path: Path) -> Iterator[Matrices]:
    """The matrices of a MATLAB file."""
    try:
        with path.open("rb") as file:
            head = file.read(512 + len(_HDF5))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if _HDF5 in (head[: len(_HDF5)], head[512:]):
        yield from _hdf5(path)
    else:
        yield from _old_format(path)


def _hdf5(path: Path) -> Iterator[Matrices]:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("MATLAB v7.3 files", "mat") from error

    def is_own(file: Any, name: str) -> bool:
        """A data set of this very file: HDF5 may also point into other files of the machine."""
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            return False
        item = file[name]
        return isinstance(item, h5py.Dataset) and not item.is_virtual and item.external is None

    try:
        with h5py.File(path, "r") as file:
            yield {name: file[name] for name in file if is_own(file, name)}
    except DataError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, MemoryError) as error:
        raise DataError(f"{path}: damaged HDF5: {error}") from error


def _old_format(path: Path) -> Iterator[Matrices]:
    try:
        yield {name: matrix for name, matrix in matrices(path).items() if name[:1] in "XYI"}
    except DataError:
        raise
    except (OSError, ValueError, zlib.error, MemoryError) as error:
        raise DataError(f"{path}: not a MATLAB file, or a damaged one ({str(error)[:200]})") from error
