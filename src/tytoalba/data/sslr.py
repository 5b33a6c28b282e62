"""The SSLR data set (He, Motlicek and Odobez 2018): loudspeakers and people around a Pepper robot.

It is not redistributable: whoever has it points tytoalba at its folder. The simulator writes the
same layout with `write_recording`, so that one loader serves both.

    <root>/<subset>/audio/<ID>.wav                      4 channels, 48 kHz, 16 bit
    <root>/<subset>/gt_frame/<ID>.w8192_o4096.gtf.pkl   [(frame id, [((x, y, z), type, speaker), ...]), ...]
    <root>/<subset>/gt_file/<ID>.gt.pkl                 (ID, start, end, [((x, y, z), file, ...), ...])

Positions are metres from the array's centre, x front, y left; azimuth = atan2(y, x). A silent frame
has an empty list; a frame of uncertain voice activity is absent. Source type 1 is speech, 0 anything
else. Frame t covers samples [4096 t, 4096 t + 8192). Should the ids of a recording all be multiples
of 4096 and reach beyond its last frame, they are taken for the sample offsets 4096 t instead.
"""

from __future__ import annotations

import math
import os
import pickle
import reprlib
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tytoalba.data import unpickle
from tytoalba.data.recording import FRAME_LENGTH, HOP, Listed, Recording
from tytoalba.errors import DataError, TytoWarning
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.soundfiles import read_unchanged, sound_length, write_audio
from tytoalba.storage.writing import write_whole

CITATION = (
    "W. He, P. Motlicek and J.-M. Odobez, "
    '"Deep neural networks for multiple speaker detection and localization", '
    "IEEE International Conference on Robotics and Automation (ICRA), 2018"
)
LICENCE = (
    "SSLR is provided by the Idiap Research Institute under its own terms and is not redistributable: "
    "obtain it from Idiap and point tytoalba at its folder"
)

SUBSETS = ("lsp_train_106", "lsp_train_301", "lsp_test_106", "lsp_test_library", "human")

MAX_SOURCES = 16
"""More sources than this in one frame are taken for damage."""
MAX_FRAME_ID = 2**31
SPEECH = 1

FrameSource = tuple[Sequence[float], int, str | int | None]
"""(x, y, z) in metres, 1 = speech or 0 = other, speaker."""
FileSource = tuple[Sequence[float], str, float, float, float, str | int | None]
"""(x, y, z) in metres, source file, begin and end in seconds, volume, speaker."""

_WAV = ".wav"
_GT_FRAME = ".w8192_o4096.gtf.pkl"
_GT_FILE = ".gt.pkl"
_PAIRED = {"audio": _WAV, "gt_frame": _GT_FRAME}
_NOT_READ = {"gt_file", "audio_gt", "video_gt"}
_N_NAMED = 5
_SEQUENCE = (list, tuple)
_NUMBER = (int, float, np.integer, np.floating)
_LABEL = (str, bytes, int, float, np.generic, type(None))


def open_sslr(root: str | os.PathLike[str]) -> list[Recording]:
    """Open the data set: labels are read now, sound when a recording's `load` is called.

    Sources of type speech are kept: a frame in which only something else sounds is a frame without source
    (all NaN). Recordings come in the order of `SUBSETS`, then by name, with at least two columns of azimuth.
    """
    return [read_listed(root, listed) for listed in list_sslr(root)]


def list_sslr(root: str | os.PathLike[str]) -> list[Listed]:
    """The recordings of the data set in the order of `open_sslr`; neither labels nor sound are read."""
    root = Path(root)
    subsets = [subset for subset in SUBSETS if (root / subset).is_dir()]
    missing, extra = _compared(root, subsets)
    if missing:
        raise DataError(f"{root}: {_listed(missing, 'missing')}; is the download complete?")
    if extra:
        warnings.warn(f"{root}: ignores {_listed(extra, 'unknown')}", TytoWarning, stacklevel=3)
    found = [Listed(subset, f"{name}{_WAV}") for subset in subsets for name in _ids(root, subset, "audio")]
    if not found:
        raise DataError(f"{root}: no recording in {', '.join(SUBSETS)}")
    return found


def read_listed(root: str | os.PathLike[str], listed: Listed) -> Recording:
    """One recording of the data set, its labels read."""
    sound, labels = files_of(root, listed)
    frame_ids, azimuth = _frames(unpickle.load(labels), labels)
    array = load_array("pepper")
    load = partial(_read_sound, sound, array)
    return Recording(listed.name, listed.subset, array, _as_frame_ids(frame_ids, sound), azimuth, load)


def files_of(root: str | os.PathLike[str], listed: Listed) -> list[Path]:
    """All that a recording depends on: its sound and its labels."""
    folder = Path(root) / listed.subset
    return [folder / "audio" / listed.file, folder / "gt_frame" / f"{listed.name}{_GT_FRAME}"]


def write_recording(
    root: str | os.PathLike[str],
    subset: str,
    name: str,
    samples: NDArray[np.float32],
    sample_rate: int,
    frames: Sequence[tuple[int, Sequence[FrameSource]]],
    sources: Sequence[FileSource] = (),
) -> None:
    """Write one recording in the layout of SSLR; each of its three files whole or not at all.

    samples: (n_mics, n_samples) in [-1, 1); stored as round(32768 x), 16 bit. sample_rate: Hz.
    frames: (frame id, its sources) for each labelled frame, as in gt_frame.
    sources: what was played where and when, as in gt_file.
    """
    folder = Path(root) / subset
    for kind in ("audio", "gt_frame", "gt_file"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    rounded = np.rint(samples * 32768.0) / 32768.0  # write_audio itself rounds down
    write_audio(folder / "audio" / f"{name}{_WAV}", rounded, sample_rate)
    gt_file = (name, 0.0, samples.shape[1] / sample_rate, list(sources))
    for path, content in (
        (f"gt_frame/{name}{_GT_FRAME}", list(frames)),
        (f"gt_file/{name}{_GT_FILE}", gt_file),
    ):
        write_whole(folder / path, pickle.dumps(content, protocol=2))


def _compared(root: Path, subsets: Sequence[str]) -> tuple[list[str], list[str]]:
    """What a recording lacks, and what does not belong to the layout of SSLR: names relative to the root.

    Hidden files are ignored, and so is what lies in gt_file, audio_gt and video_gt, which may be absent.
    """
    missing: list[str] = []
    extra = [name for name in _names(root) if name not in {f"{known}/" for known in (*SUBSETS, "misc")}]
    extra += [f"misc/{name}" for name in _names(root / "misc") if name != "phone_alignment.npz"]
    for subset in subsets:
        for folder, suffix in _PAIRED.items():
            names = _names(root / subset / folder)
            extra += [f"{subset}/{folder}/{name}" for name in names if not name.endswith(suffix)]
            if not (root / subset / folder).is_dir():
                missing.append(f"{subset}/{folder}/")
        sounds, labels = (set(_ids(root, subset, folder)) for folder in _PAIRED)
        missing += [f"{subset}/audio/{lone}{_WAV}" for lone in sorted(labels - sounds)]
        missing += [f"{subset}/gt_frame/{lone}{_GT_FRAME}" for lone in sorted(sounds - labels)]
        known = {f"{folder}/" for folder in {*_PAIRED, *_NOT_READ}}
        extra += [f"{subset}/{name}" for name in _names(root / subset) if name not in known]
    return missing, extra


def _ids(root: Path, subset: str, folder: str) -> list[str]:
    """Names of the recordings that have a file in a folder of a subset."""
    suffix = _PAIRED[folder]
    return [n.removesuffix(suffix) for n in _names(root / subset / folder) if n.endswith(suffix)]


def _names(folder: Path) -> list[str]:
    """Sorted names of what is in a folder, folders with a slash; hidden files are not named."""
    try:
        with os.scandir(folder) as entries:
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DataError(f"cannot look into {folder}: {error}") from error
    return sorted(name for name in names if not name.startswith("."))


def _listed(names: Sequence[str], what: str) -> str:
    more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
    return f"{len(names)} {what}: {', '.join(names[:_N_NAMED])}{more}"


def _frames(labels: object, where: str | Path) -> tuple[NDArray[np.intp], Float]:
    """Frame ids and azimuths (degrees, NaN padded) from what a gt_frame file holds, sorted by id."""
    if not isinstance(labels, _SEQUENCE):
        raise DataError(f"{where}: expected a list of frames, got {type(labels).__name__}")
    rows: dict[int, list[float]] = {}
    for i, entry in enumerate(labels):
        if not isinstance(entry, _SEQUENCE) or len(entry) != 2:
            _refuse(f"{where}: entry {i}", "expected (frame id, sources)", entry)
        frame_id, active = entry
        if not _is_whole(frame_id) or not 0 <= frame_id < MAX_FRAME_ID:
            _refuse(f"{where}: entry {i}", "a frame id must count from 0", frame_id)
        if int(frame_id) in rows:
            raise DataError(f"{where}: frame {frame_id} is labelled twice")
        rows[int(frame_id)] = list(_angles(active, f"{where}: frame {frame_id}"))
    azimuth = np.full((len(rows), max([2, *map(len, rows.values())])), np.nan)
    for row, frame_id in zip(azimuth, sorted(rows), strict=True):
        row[: len(rows[frame_id])] = rows[frame_id]
    return np.array(sorted(rows), dtype=np.intp), wrap(azimuth)


def _angles(active: object, where: str) -> Iterator[float]:
    """Degrees in [-180, 180] of each source of a frame that is speech."""
    if not isinstance(active, _SEQUENCE) or len(active) > MAX_SOURCES:
        _refuse(where, f"expected a list of at most {MAX_SOURCES} sources", active)
    for source in active:
        if not isinstance(source, _SEQUENCE) or len(source) != 3:
            _refuse(where, "a source must be ((x, y, z), type, speaker)", source)
        position, kind, speaker = source
        x, y = _position(position, where)
        if not _is_whole(kind) or kind not in (0, SPEECH):
            _refuse(where, "a source's type must be 1 (speech) or 0 (other)", kind)
        if not isinstance(speaker, _LABEL):
            _refuse(where, "a speaker must be a name or a number", speaker)
        if kind == SPEECH:
            yield math.degrees(math.atan2(y, x))


def _position(position: object, where: str) -> tuple[float, float]:
    values = position.tolist() if isinstance(position, np.ndarray) else position
    if not isinstance(values, _SEQUENCE) or len(values) != 3:
        _refuse(where, "a position must be (x, y, z) in metres", position)
    if not all(isinstance(value, _NUMBER) for value in values):
        _refuse(where, "a position must be three numbers", position)
    x, y, z = map(float, values)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        _refuse(where, "a position must be finite", position)
    if math.hypot(x, y) < 1e-6:
        _refuse(where, "a source at the array's centre, or right above it, has no azimuth", position)
    return x, y


def _refuse(where: str, why: str, value: Any) -> NoReturn:
    raise DataError(f"{where}: {why}, got {reprlib.repr(value)}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _as_frame_ids(ids: NDArray[np.intp], sound: Path) -> NDArray[np.intp]:
    """Frame ids as they are, or made from sample offsets (see the top of this file)."""
    if len(ids) == 0 or ids.max() == 0 or (ids % HOP).any():
        return ids
    n_frames = (sound_length(sound) - FRAME_LENGTH) // HOP + 1
    return ids // HOP if ids.max() >= n_frames else ids


def _read_sound(path: Path, array: MicArray) -> NDArray[np.float32]:
    """All samples of a file, (n_mics, n_samples); its format is checked."""
    sound = read_unchanged(path)
    n_channels, rate = len(sound.samples), sound.sample_rate
    if n_channels != array.n_mics:
        raise DataError(f"{path}: {n_channels} channels, but the array {array.name!r} has {array.n_mics}")
    if rate != array.sample_rate:
        raise DataError(f"{path}: {rate} Hz, but the array {array.name!r} has {array.sample_rate} Hz")
    return sound.samples
