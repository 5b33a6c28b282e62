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

import io
import math
import os
import pickle
import re
import reprlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.data import unpickle
from tytoalba.data.recording import FRAME_LENGTH, HOP, Recording
from tytoalba.errors import DataError, TytoWarning
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.files import written_whole
from tytoalba.storage.soundfiles import read_unchanged, sound_length

CITATION = (
    "W. He, P. Motlicek and J.-M. Odobez, "
    '"Deep neural networks for multiple speaker detection and localization", '
    "IEEE International Conference on Robotics and Automation (ICRA), 2018"
)
LICENCE = (
    "SSLR is provided by the Idiap Research Institute under its own terms and is not redistributable: "
    "obtain it from Idiap and point tytoalba at its folder"
)

TRAIN_SUBSETS = ("lsp_train_106", "lsp_train_301")
TEST_SUBSETS = ("lsp_test_106", "lsp_test_library", "human")
SUBSETS = TRAIN_SUBSETS + TEST_SUBSETS

MAX_SOURCES = 16
"""More sources than this in one frame are taken for damage."""
MAX_FRAME_ID = 2**31
SPEECH = 1

SourceTypes = Literal["speech", "all"]
Position = Sequence[float]
FrameSource = tuple[Position, int, str | int | None]
"""(x, y, z) in metres, 1 = speech or 0 = other, speaker."""
FileSource = tuple[Position, str, float, float, float, str | int | None]
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


@dataclass(frozen=True)
class LayoutReport:
    """Files by name, relative to the data set's folder, with forward slashes.

    missing: what a recording lacks: the sound of a label file, or the labels of a sound file.
    extra: what does not belong to the data set; folders end in a slash.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]


def check_layout(root: str | os.PathLike[str], subsets: Sequence[str] | None = None) -> LayoutReport:
    """Compare the folder with the layout of SSLR; only names are looked at.

    subsets: those to look into; all that are there, if not given. Hidden files are ignored, and
    so is what lies in gt_file, audio_gt and video_gt, which may be absent.
    """
    root = Path(root)
    subsets = _present(root, subsets)
    missing: list[str] = []
    extra = [name for name in _names(root) if name not in {f"{known}/" for known in (*SUBSETS, "misc")}]
    extra += [f"misc/{name}" for name in _names(root / "misc") if name != "phone_alignment.npz"]
    for subset in subsets:
        ids = {}
        for folder, suffix in _PAIRED.items():
            names = _names(root / subset / folder)
            ids[folder] = {name.removesuffix(suffix) for name in names if name.endswith(suffix)}
            extra += [f"{subset}/{folder}/{name}" for name in names if not name.endswith(suffix)]
            if not (root / subset / folder).is_dir():
                missing.append(f"{subset}/{folder}/")
        missing += [f"{subset}/audio/{lone}{_WAV}" for lone in sorted(ids["gt_frame"] - ids["audio"])]
        missing += [f"{subset}/gt_frame/{lone}{_GT_FRAME}" for lone in sorted(ids["audio"] - ids["gt_frame"])]
        known = {f"{folder}/" for folder in {*_PAIRED, *_NOT_READ}}
        extra += [f"{subset}/{name}" for name in _names(root / subset) if name not in known]
    return LayoutReport(tuple(missing), tuple(extra))


def open_sslr(
    root: str | os.PathLike[str],
    subsets: Sequence[str] | None = None,
    sources: SourceTypes = "speech",
    *,
    array: MicArray | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> list[Recording]:
    """Open the data set: labels are read now, sound when a recording's `load` is called.

    subsets: names from `SUBSETS`; all that are there, if not given.
    sources: "speech" keeps sources of type speech only: a frame in which only something else sounds
        is then a frame without source (all NaN). "all" keeps both.
    array: what it was recorded with; Pepper's, if not given. Channel i is microphone i.
    on_progress: called with (recordings done, recordings in all) after each.

    Recordings come in the order of `SUBSETS`, then by name, with at least two columns of azimuth.
    """
    if sources not in get_args(SourceTypes):
        raise DataError(f"sources must be one of {', '.join(get_args(SourceTypes))}, got {sources!r}")
    root = Path(root)
    subsets = _present(root, subsets)
    report = check_layout(root, subsets)
    if report.missing:
        raise DataError(f"{root}: {_listed(report.missing, 'missing')}; is the download complete?")
    if report.extra:
        warnings.warn(f"{root}: ignores {_listed(report.extra, 'unknown')}", TytoWarning, stacklevel=2)
    array = array or load_array("pepper")
    found = [(s, name.removesuffix(_WAV)) for s in subsets for name in _names(root / s / "audio", _WAV)]
    if not found:
        raise DataError(f"{root}: no recording in {', '.join(subsets)}")
    recordings = []
    for done, (subset, name) in enumerate(found, start=1):
        sound = root / subset / "audio" / f"{name}{_WAV}"
        labels = root / subset / "gt_frame" / f"{name}{_GT_FRAME}"
        frame_ids, azimuth = _frames(unpickle.load(labels), labels, sources)
        frame_ids = _as_frame_ids(frame_ids, sound)
        load = partial(_read_sound, sound, array)
        recordings.append(Recording(name, subset, array, frame_ids, azimuth, load))
        if on_progress is not None:
            on_progress(done, len(found))
    return recordings


def write_recording(
    root: str | os.PathLike[str],
    subset: str,
    name: str,
    samples: ArrayLike,
    sample_rate: int,
    frames: Sequence[tuple[int, Sequence[FrameSource]]],
    sources: Sequence[FileSource] = (),
    *,
    array: MicArray | None = None,
) -> None:
    """Write one recording in the layout of SSLR; each of its three files whole or not at all.

    samples: (n_mics, n_samples) in [-1, 1); stored as round(32768 x), 16 bit.
    sample_rate: Hz; like n_mics it must be the array's (Pepper's, if none is given).
    frames: (frame id, its sources) for each labelled frame, as in gt_frame.
    sources: what was played where and when, as in gt_file.
    """
    import soundfile

    where = f"recording {name!r}"
    if subset not in SUBSETS:
        raise DataError(f"{where}: no subset {subset!r}; known: {', '.join(SUBSETS)}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise DataError(f"{where}: a name is made of letters, digits, '.', '_' and '-'")
    array = array or load_array("pepper")
    pcm = _pcm16(samples, where)  # (M, n_samples)
    _check_format(where, len(pcm), sample_rate, array)
    frame_ids, _ = _frames(list(frames), where, "all")
    n_samples = pcm.shape[1]
    if len(frame_ids) and frame_ids.max() * HOP + FRAME_LENGTH > n_samples:
        raise DataError(f"{where}: frame {frame_ids.max()} is labelled beyond the {n_samples} samples")
    gt_frame = [(int(t), [(_plain(p), int(kind), _item(who)) for p, kind, who in now]) for t, now in frames]
    played = [(_plain(p), str(f), float(b), float(e), float(v), _item(who)) for p, f, b, e, v, who in sources]
    gt_file = (name, 0.0, n_samples / sample_rate, played)
    wav = io.BytesIO()
    soundfile.write(wav, pcm.T, sample_rate, format="WAV", subtype="PCM_16")
    folder = Path(root) / subset
    _write(folder / "gt_file" / f"{name}{_GT_FILE}", pickle.dumps(gt_file, protocol=2))
    _write(folder / "gt_frame" / f"{name}{_GT_FRAME}", pickle.dumps(gt_frame, protocol=2))
    _write(folder / "audio" / f"{name}{_WAV}", wav.getvalue())


def _present(root: Path, subsets: Sequence[str] | None) -> list[str]:
    """The subsets that are asked for, in the order of SUBSETS, after making sure that they are there."""
    asked = SUBSETS if subsets is None else (subsets,) if isinstance(subsets, str) else tuple(subsets)
    if unknown := [name for name in asked if name not in SUBSETS]:
        raise DataError(f"no subset {unknown[0]!r} in SSLR; known: {', '.join(SUBSETS)}")
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; expected the folder that holds {', '.join(SUBSETS)}")
    there = [name for name in SUBSETS if name in asked and (root / name).is_dir()]
    absent = [name for name in asked if name not in there]
    if (subsets is None and not there) or (subsets is not None and absent):
        inside = _names(root)
        content = f"it holds {', '.join(inside[:_N_NAMED])}" if inside else "it is empty"
        more = ", ..." if len(inside) > _N_NAMED else ""
        raise DataError(f"{root}: expected folders {', '.join(absent)}, but {content}{more}")
    return there


def _names(folder: Path, suffix: str = "") -> list[str]:
    """Sorted names of what is in a folder, folders with a slash; hidden files are not named."""
    try:
        with os.scandir(folder) as entries:
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DataError(f"cannot look into {folder}: {error}") from error
    return sorted(name for name in names if not name.startswith(".") and name.endswith(suffix))


def _listed(names: Sequence[str], what: str) -> str:
    more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
    return f"{len(names)} {what}: {', '.join(names[:_N_NAMED])}{more}"


def _frames(labels: object, where: str | Path, sources: SourceTypes) -> tuple[NDArray[np.intp], Float]:
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
        rows[int(frame_id)] = list(_angles(active, f"{where}: frame {frame_id}", sources))
    azimuth = np.full((len(rows), max([2, *map(len, rows.values())])), np.nan)
    for row, frame_id in zip(azimuth, sorted(rows), strict=True):
        row[: len(rows[frame_id])] = rows[frame_id]
    return np.array(sorted(rows), dtype=np.intp), wrap(azimuth)


def _angles(active: object, where: str, sources: SourceTypes) -> Iterator[float]:
    """Degrees in [-180, 180] of each source of a frame that is kept."""
    if not isinstance(active, _SEQUENCE) or len(active) > MAX_SOURCES:
        _refuse(where, f"expected a list of at most {MAX_SOURCES} sources", active)
    for source in active:
        if not isinstance(source, _SEQUENCE) or len(source) != 3:
            _refuse(where, "a source must be ((x, y, z), type, speaker)", source)
        position, kind, speaker = source
        x, y, _ = _position(position, where)
        if not _is_whole(kind) or kind not in (0, SPEECH):
            _refuse(where, "a source's type must be 1 (speech) or 0 (other)", kind)
        if not isinstance(speaker, _LABEL):
            _refuse(where, "a speaker must be a name or a number", speaker)
        if kind == SPEECH or sources == "all":
            yield math.degrees(math.atan2(y, x))


def _position(position: object, where: str) -> tuple[float, float, float]:
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
    return x, y, z


def _refuse(where: str, why: str, value: Any) -> NoReturn:
    raise DataError(f"{where}: {why}, got {reprlib.repr(value)}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _plain(position: Position) -> tuple[float, float, float]:
    return _position(position, "a source")


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_frame_ids(ids: NDArray[np.intp], sound: Path) -> NDArray[np.intp]:
    """Frame ids as they are, or made from sample offsets (see the top of this file)."""
    if len(ids) == 0 or ids.max() == 0 or (ids % HOP).any():
        return ids
    n_frames = (sound_length(sound) - FRAME_LENGTH) // HOP + 1
    return ids // HOP if ids.max() >= n_frames else ids


def _read_sound(path: Path, array: MicArray) -> NDArray[np.float32]:
    """All samples of a file, (n_mics, n_samples); its format is checked."""
    sound = read_unchanged(path)
    _check_format(path, len(sound.samples), sound.sample_rate, array)
    return sound.samples


def _check_format(where: object, n_channels: int, sample_rate: int, array: MicArray) -> None:
    if n_channels != array.n_mics:
        raise DataError(f"{where}: {n_channels} channels, but the array {array.name!r} has {array.n_mics}")
    if sample_rate != array.sample_rate:
        raise DataError(f"{where}: {sample_rate} Hz, but the array {array.name!r} has {array.sample_rate} Hz")


def _pcm16(samples: ArrayLike, where: str) -> NDArray[np.int16]:
    """round(32768 x) as 16 bit; samples that lie on that grid come back bit for bit."""
    x = np.asarray(samples)
    if x.ndim != 2 or not np.issubdtype(x.dtype, np.floating):
        raise DataError(f"{where}: samples must be floats (n_mics, n_samples), got {x.dtype} {x.shape}")
    if not np.isfinite(x).all():
        raise DataError(f"{where}: samples hold NaN or infinity")
    if x.size and (x.min() < -1.0 or x.max() >= 1.0):
        peak = max(-float(x.min()), float(x.max()))
        raise DataError(f"{where}: 16 bits hold samples in [-1, 1), the peak is {peak:.7g}; scale it down")
    return np.clip(np.rint(x * 32768.0), -32768, 32767).astype(np.int16)


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}") from error
