"""One's own labelled recordings: a folder with an array file, sound files and a small table beside each.

    <root>/array.toml
    <root>/<part>/<name>.wav      (or flac, ogg; as many channels as the array file says)
    <root>/<part>/<name>.csv      frame,azimuth: one row per source and frame, azimuth empty if nobody talks

Frame t covers samples [hop t, hop t + length), length = array.frame_length (170.7 ms), hop half of it, at
the array's sample rate. Frames that are not listed are not used. Any file may be sealed (`tyto seal`):
array.toml.age, <name>.wav.age, <name>.csv.age. Where the plain file is there as well, that one is read.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Listed, Recording, SoundFile
from tytoalba.errors import DataError, FileError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.age import Keys, is_sealed
from tytoalba.storage.sealed import read_secret
from tytoalba.storage.soundfiles import write_audio
from tytoalba.storage.writing import write_whole, written_whole

HEADER = ["frame", "azimuth"]
MAX_SOURCES = 64
"""Of one frame; more is a mistake, or a table that is to fill the memory."""
LARGEST_TABLE = 2**26
"""Bytes of a table of labels: days of sound."""
_SOUND = (".wav", ".flac", ".ogg")


def open_folder(root: str | Path, keys: Keys = None) -> list[Recording]:
    """The recordings of a folder: labels are read now, sound when it is asked for.

    keys: what opens sealed files.
    """
    root = Path(root)
    array = read_array(root, keys)
    return [_recording(root, listed, array, keys) for listed in list_folder(root)]


def list_folder(root: str | Path) -> list[Listed]:
    """The recordings of a folder in their order; neither labels nor sound are read."""
    root = Path(root)
    found = []
    for part in sorted(folder.name for folder in root.iterdir() if folder.is_dir()):
        for plain in sorted({_without_age(f) for f in (root / part).iterdir()}):
            if plain.suffix.lower() not in _SOUND:
                continue
            if not _plain_or_sealed(plain.with_suffix(".csv")).is_file():
                sound = _plain_or_sealed(plain)
                raise DataError(f"{sound} has no labels: {plain.stem}.csv is missing beside it")
            found.append(Listed(part, plain.name))
    if not found:
        raise DataError(f"{root} holds no recording: expected <part>/<name>.wav and <part>/<name>.csv")
    return found


def read_listed(root: str | Path, listed: Listed, keys: Keys = None) -> Recording:
    """One recording of a folder, its labels read."""
    return _recording(Path(root), listed, read_array(root, keys), keys)


def files_of(root: str | Path, listed: Listed) -> list[Path]:
    """All that a recording depends on: its sound, its labels, the file of the array; plain or sealed."""
    plain = Path(root) / listed.subset / listed.file
    return [_plain_or_sealed(file) for file in (plain, plain.with_suffix(".csv"), Path(root) / "array.toml")]


def read_array(root: str | Path, keys: Keys = None) -> MicArray:
    """The array of a folder."""
    file = _plain_or_sealed(Path(root) / "array.toml")
    if not file.is_file():
        raise DataError(f"{root} has no array.toml; tyto array show NAME --toml prints one to start from")
    return MicArray.from_toml(_text(file, keys), str(file)) if is_sealed(file) else load_array(file)


def _recording(root: Path, listed: Listed, array: MicArray, keys: Keys) -> Recording:
    sound, table, _ = files_of(root, listed)
    frame_ids, azimuth = _read_labels(table, keys)
    load, hop = SoundFile(sound, array, keys), array.frame_length // 2
    return Recording(listed.name, listed.subset, array, frame_ids, azimuth, load, array.frame_length, hop)


def write_array(root: str | Path, array: MicArray) -> None:
    """Write the folder's array file; sound in it has one channel a microphone, in order."""
    Path(root).mkdir(parents=True, exist_ok=True)
    write_whole(Path(root) / "array.toml", array.plain_channels().to_toml().encode())


def write_recording(
    root: str | Path,
    part: str,
    name: str,
    samples: NDArray[np.float32],
    array: MicArray,
    frame_ids: NDArray[np.intp],
    azimuth: Float,
) -> None:
    """Write one recording: samples (n_mics, n_samples), azimuth (n_frames, n_sources) in degrees."""
    folder = Path(root) / part
    folder.mkdir(parents=True, exist_ok=True)
    with written_whole(folder / f"{name}.csv") as temporary:
        with temporary.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            for frame, directions in zip(frame_ids.tolist(), azimuth, strict=True):
                present = directions[np.isfinite(directions)].tolist()
                writer.writerows([[frame, repr(a)] for a in present] or [[frame, ""]])
        write_audio(folder / f"{name}.wav", samples, array.sample_rate)  # if this fails, so does the table


def _without_age(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".age" else path


def _plain_or_sealed(plain: Path) -> Path:
    """The plain file, or the sealed one in its stead."""
    sealed = plain.with_name(plain.name + ".age")
    return sealed if sealed.is_file() and not plain.is_file() else plain


def _text(path: Path, keys: Keys) -> str:
    """What a small file says; opened in memory if it is sealed."""
    if path.stat().st_size > LARGEST_TABLE:
        raise DataError(f"{path} has more than {LARGEST_TABLE} bytes: no table of labels is as long")
    try:
        return read_secret(path, keys).decode("utf-8-sig")
    except (FileError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _read_labels(path: Path, keys: Keys) -> tuple[NDArray[np.intp], Float]:
    frames: dict[int, list[float]] = defaultdict(list)
    try:
        rows = csv.reader(io.StringIO(_text(path, keys), newline=""))
        if (header := next(rows, None)) != HEADER:
            raise DataError(f"{path}: the first line must be {','.join(HEADER)}, got {str(header)[:200]}")
        for number, row in enumerate(rows, 2):
            frame, azimuth = _read_row(row, f"{path}, line {number}")
            frames[frame] += [] if azimuth is None else [azimuth]
            if len(frames[frame]) > MAX_SOURCES:
                raise DataError(f"{path}, line {number}: frame {frame} has more than {MAX_SOURCES} sources")
    except csv.Error as error:
        raise DataError(f"cannot read {path}: {error}") from error
    ids = sorted(frames)
    width = max([2, *(len(directions) for directions in frames.values())])
    azimuths = np.full((len(ids), width), np.nan)
    for i, frame in enumerate(ids):
        azimuths[i, : len(frames[frame])] = frames[frame]
    return np.array(ids, np.intp), azimuths


def _read_row(row: list[str], where: str) -> tuple[int, float | None]:
    try:
        frame, text = row
        azimuth = float(text) if text else None
        if int(frame) < 0 or int(frame) > 2**31 or (azimuth is not None and not 0 <= azimuth < 360):
            raise ValueError
        return int(frame), azimuth
    except ValueError:
        wanted = "a frame number from 0 and an azimuth in [0, 360) degrees or nothing"
        raise DataError(f"{where}: expected {wanted}, got {','.join(row)[:80]!r}") from None
