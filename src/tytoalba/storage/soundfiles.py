"""Sound files: read, stream and write them.

Channels first, (n_channels, n_samples), float32 in [-1, 1]. Whatever is wrong with a file leaves this module
as an AudioError that names the file, the likely cause and the remedy. Sealed files (`tyto seal`) are read as
the sound in them; what is wrong with a seal is a SealError.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.errors import AudioError
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import (
    BLOCK,
    Audio,
    Health,
    Samples,
    check_rate,
    inspect,
    pick_channels,
    refuse_damaged,
    resample,
    resampled,
)
from tytoalba.storage.age import Keys, is_sealed
from tytoalba.storage.files import written_whole

if TYPE_CHECKING:
    from tytoalba.storage.age import Unsealing

Source = str | Path | BinaryIO | Sequence[str | Path]

UNKNOWN_LENGTH = 0x7FF00000
"""Bytes. Recorders that write to a pipe cannot know the length and promise this much or more."""
IN_MEMORY = 16 * 2**20
"""Bytes of a sealed recording up to which it is opened at once; a longer one streams, at half the speed."""
ENDLESS = 2**62
"""Samples. libsndfile says more than this where it does not know the length."""
SNDFILE_ERRORS = (RuntimeError, OSError, TypeError, ValueError, AssertionError)
"""What soundfile raises; the last one when a full disk takes only part of a block."""

NOT_SOUND = {  # how a file begins that libsndfile does not read -> what it is and what to do
    rb"$": "is empty (0 bytes): the recording stopped before anything was written",
    rb"....ftyp|\x1aE\xdf\xa3|\x30\x26\xb2\x75|\xff[\xf0\xf1\xf8\xf9]": "is MP4/M4A, WebM, WMA or AAC, which "
    "libsndfile does not read; convert it: ffmpeg -i IN OUT.wav",
    rb"version https://git-lfs": "is a Git LFS pointer, not the sound itself; fetch it: git lfs pull",
    rb"\s*<": "is a web page, not sound: the download probably failed",
    rb"[\t\n\r -~]+$": "is text, not sound; is it the label file of a recording?",
    rb"RIFF|RF64|fLaC|OggS|FORM|ID3|caff": "is damaged or cut short; copy or record it again",
    rb"": "is not wav, flac, ogg, mp3, aiff or the like; convert it: ffmpeg -i IN OUT.wav",
}


def read_audio(
    source: Source,
    array: MicArray | None = None,
    sample_rate: int | None = None,
    keys: Keys = None,
) -> Audio:
    """Read a whole recording, its channels in microphone order, at the array's sample rate.

    source: a path; a sequence of paths, one mono file a microphone; "-" for standard input; or a
        binary file object, which is read from its beginning if it can seek. Each may be sealed with age.
    array: picks the channels (see `select_channels`) and gives the sample rate unless `sample_rate` does.
    sample_rate: Hz to resample to; the file's own if neither is given.
    keys: what opens a sealed file, in memory.

    Refuses files that are cut short, where their format says how long they should be (not ogg, mp3).
    For long recordings use `stream_audio`, which gives the same samples piece by piece.
    """
    with _opened(source, array, sample_rate, keys, whole=True) as sound:
        samples = np.concatenate(list(sound.blocks(BLOCK)), axis=1)
    inspect(samples, sound.name, sound.channels)
    return Audio(resample(samples, sound.sample_rate, sound.to_rate), sound.to_rate)


def stream_audio(
    source: Source,
    array: MicArray | None = None,
    sample_rate: int | None = None,
    block: int = BLOCK,
    keys: Keys = None,
) -> Iterator[Samples]:
    """Read a recording of any length in blocks (n_channels, about `block` samples or fewer).

    The blocks joined are what `read_audio` returns. Memory is bounded, also for WAV that comes through a
    pipe or is sealed; other sealed formats are held in memory as they are on the disk. Nothing is opened
    before the first block is asked for. A sample that is not finite is an error at its block; silence, dead
    channels and clipping are warned of after the last block.
    """
    if block < 1:
        raise AudioError(f"block must be at least 1 sample, got {block}")
    with _opened(source, array, sample_rate, keys, whole=False) as sound:
        health = Health(sound.name, sound.channels)
        size = max(1, min(block, block * sound.sample_rate // sound.to_rate))
        yield from resampled(health.watch(sound.blocks(size)), sound.sample_rate, sound.to_rate)
        health.report()


def write_audio(path: str | Path, samples: ArrayLike, sample_rate: int, subtype: str = "PCM_16") -> None:
    """Write (n_channels, n_samples) or (n_samples,) floats in [-1, 1]; the format is the path's suffix.

    Whole or not at all: a failure leaves an older file as it was. Nothing is clipped: sound out of
    range is refused. subtype: e.g. "PCM_16", "PCM_24", "FLOAT", "VORBIS" (for .ogg).
    """
    import soundfile

    path, samples = Path(path), np.atleast_2d(np.asarray(samples))
    what = f"sound for {path}"
    refuse_damaged(samples, what)
    check_rate(sample_rate, what)
    if (peak := float(np.abs(samples).max())) > 1.0:
        raise AudioError(f"{what}: peak {peak:.6g} is beyond 1 and would clip; divide by the peak first")
    if not path.parent.is_dir():
        raise AudioError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    dtype = np.float64 if samples.dtype == np.float64 else np.float32
    try:
        with (
            written_whole(path) as temporary,
            soundfile.SoundFile(temporary, "w", int(sample_rate), len(samples), subtype) as file,
        ):
            for start in range(0, samples.shape[1], BLOCK):  # one long write overflows libvorbis's stack
                file.write(np.ascontiguousarray(samples[:, start : start + BLOCK].T, dtype))
    except SNDFILE_ERRORS as error:
        subtypes = ", ".join(soundfile.available_subtypes(path.suffix[1:])) if path.suffix else ""
        raise AudioError(
            f"cannot write {path}, {subtype}, {len(samples)} channels: {str(error) or 'is the disk full?'}; "
            f"{path.suffix or 'no suffix'} takes: {subtypes or 'nothing, use .wav, .flac or .ogg'}"
        ) from error


@dataclass(frozen=True)
class _Sound:
    """One open file, or one open mono file a channel."""

    files: dict[str, Any]
    seals: Sequence[Unsealing]
    name: str
    channels: Sequence[int]
    sample_rate: int
    to_rate: int

    def blocks(self, size: int) -> Iterator[Samples]:
        """All of it in blocks (n_mics, at most size); refuses a file that ends before its time."""
        try:
            yield from self._blocks(size)
        except AudioError:
            self._check_seals()  # a broken seal ends a file early, and is the better reason
            raise
        self._check_seals()

    def _check_seals(self) -> None:
        for seal in self.seals:
            seal.finish()

    def _blocks(self, size: int) -> Iterator[Samples]:
        n_samples = 0
        while True:
            parts = {name: _read(name, file, size) for name, file in self.files.items()}  # each (K, C)
            length = _agreed({name: n_samples + len(part) for name, part in parts.items()}, "samples")
            if length == n_samples:
                break
            n_samples = length
            yield np.ascontiguousarray(np.concatenate([*parts.values()], axis=1)[:, self.channels].T)
        for name, file in self.files.items():
            if n_samples < _promised(file):
                raise _cut_short(name, f"{n_samples} of {_promised(file)} samples")
        if not n_samples:
            raise AudioError(
                f"{self.name} holds no samples; if it is long, its recorder was stopped before it wrote "
                "the length: sox --ignore-length IN.wav OUT.wav"
            )


@contextmanager
def _opened(
    source: Source,
    array: MicArray | None,
    sample_rate: int | None,
    keys: Keys,
    *,
    whole: bool,
) -> Iterator[_Sound]:
    sources = list(source) if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    if not sources:
        raise AudioError("no file given; give one path, or one mono file a microphone")
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        seals: list[Unsealing] = []
        for one in sources:
            name, file = _open(one, stack, seals, keys, whole=whole)
            stack.enter_context(file)
            check_rate(file.samplerate, name)
            if name in files:
                raise AudioError(f"{name} is given twice; each microphone needs its own file")
            if len(sources) > 1 and file.channels != 1:
                raise AudioError(
                    f"{name} has {file.channels} channels, but several files must be mono, one a "
                    "microphone; give a multi-channel file alone"
                )
            files[name] = file
        rate = _agreed({name: file.samplerate for name, file in files.items()}, "Hz")
        _agreed({name: file.frames for name, file in files.items()}, "samples")
        name = next(iter(files)) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        n_channels = sum(file.channels for file in files.values())
        channels = pick_channels(n_channels, array, name) if array else range(n_channels)
        to_rate = sample_rate if sample_rate is not None else array.sample_rate if array else rate
        check_rate(to_rate, f"reading {name}")
        yield _Sound(files, seals, name, channels, rate, to_rate)


def _open(
    source: Any, stack: ExitStack, seals: list[Unsealing], keys: Keys, *, whole: bool
) -> tuple[str, Any]:
    import soundfile

    if isinstance(source, str) and source == "-":
        name = "standard input"
        target = _readable(getattr(sys.stdin, "buffer", None), name, whole)
    elif isinstance(source, str | os.PathLike):
        name, target = str(source), Path(source)
    else:
        name = source.name if isinstance(getattr(source, "name", None), str) else "the file object"
        target = _readable(source, name, whole)
    head = _head(target, name)
    if head is not None and is_sealed(head):
        target, head = _unsealed(target, name, stack, seals, keys, whole=whole)
    try:
        file = soundfile.SoundFile(target, closefd=False)
    except SNDFILE_ERRORS as error:
        if name.lower().endswith(".raw"):
            why = "has no header; give it one: ffmpeg -f s16le -ar 16000 -ac 4 -i IN.raw OUT.wav"
        elif head is None:
            why = (
                "is not WAV, the only format that streams through a pipe; pipe ffmpeg -i IN -f wav -, or, "
                "if it is sealed, tyto open FILE.age -o -"
            )
        else:
            why = next(why for begin, why in NOT_SOUND.items() if re.match(begin, head, re.DOTALL))
        raise AudioError(f"{name} {why} ({error})") from error
    if file.frames >= ENDLESS and file.seekable():  # soundfile fails at the end of such a file
        file.close()
        raise AudioError(f"{name} does not say how long it is, made on a pipe? ffmpeg -i IN OUT.wav adds it")
    cut = re.search(r"(?:data|SSND|Data Size)\s*: (\d+) \(should be (\d+)\)", file.extra_info)
    if cut and int(cut[2]) < int(cut[1]) < UNKNOWN_LENGTH:
        file.close()
        raise _cut_short(name, f"{cut[2]} of {cut[1]} bytes")
    return name, file


def _readable(source: Any, name: str, whole: bool) -> Any:
    """What libsndfile can read: a file that seeks, the descriptor of a pipe, or else all bytes in memory."""
    if isinstance(source, io.TextIOBase) or not hasattr(source, "read"):
        raise AudioError(
            f"cannot read sound from {type(source).__name__}; "
            "give a path, a list of paths, '-' for standard input or a file opened in binary mode"
        )
    try:
        if source.seekable():
            return _Tame(source)
        raw = getattr(source, "raw", source)
        if not whole and isinstance(raw, io.FileIO) and stat.S_ISFIFO(os.fstat(raw.fileno()).st_mode):
            return raw.fileno()
        return _Tame(io.BytesIO(source.read()))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise AudioError(f"{name} cannot be read: {error}; is it closed?") from error


def _unsealed(
    target: Any,
    name: str,
    stack: ExitStack,
    seals: list[Unsealing],
    keys: Keys,
    *,
    whole: bool,
) -> tuple[Any, bytes]:
    """What libsndfile can read of a sealed file, and how it begins: a pipe for long WAV, else bytes."""
    from tytoalba.storage.age import Unsealing, has_passphrase, head_of, open_bytes, open_start

    file = stack.enter_context(target.open("rb")) if isinstance(target, Path) else target.file
    is_long = file.seek(0, os.SEEK_END) > IN_MEMORY
    file.seek(0)
    if is_long and not whole and sys.platform != "win32" and not has_passphrase(head_of(file)):
        start = open_start(file, keys, 64, name)
        file.seek(0)
        if start.startswith(b"RIFF"):
            seals.append(stack.enter_context(Unsealing(file, keys, name)))
            return seals[-1].fileno(), start
    plain = open_bytes(file.read(), keys, name)
    return _Tame(io.BytesIO(plain)), plain[:64]


class _Tame:
    """A file object that ignores impossible seeks: damaged headers ask for them, cffi prints tracebacks."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> None:
        with suppress(OSError, ValueError):
            self.file.seek(offset, whence)


def _head(target: Any, name: str) -> bytes | None:
    """The first bytes, which tell what is in a file that is not sound; None for a pipe, read only once."""
    try:
        if isinstance(target, int) or (isinstance(target, Path) and target.is_fifo()):
            return None
        with target.open("rb") if isinstance(target, Path) else nullcontext(target) as file:
            file.seek(0)
            head: bytes = file.read(64)
            file.seek(0)
        return head
    except FileNotFoundError as error:
        raise AudioError(f"{name}: no such file; check its spelling and the folder, {Path.cwd()}") from error
    except IsADirectoryError as error:
        raise AudioError(f"{name} is a folder; give the sound files in it") from error
    except (OSError, ValueError) as error:
        raise AudioError(f"{name} cannot be read: {error}; check its permissions") from error


def _read(name: str, file: Any, size: int) -> Samples:
    try:
        part: Samples = file.read(size, dtype="float32", always_2d=True)
    except SNDFILE_ERRORS as error:
        raise AudioError(f"{name} is damaged or cut short ({error}); copy or record it again") from error
    return part


def _promised(file: Any) -> int:
    """How many samples the file says it has; 0 where it does not know (pipes) or only estimates (mp3)."""
    data = re.search(r"data : (\d+)", file.extra_info)
    unknown = file.frames >= ENDLESS or (data and int(data[1]) >= UNKNOWN_LENGTH)
    return 0 if unknown or file.format == "MP3" else int(file.frames)


def _agreed(values: dict[str, int], unit: str) -> int:
    """The one value that all files share; names the file that departs from the others."""
    usual = Counter(values.values()).most_common(1)[0][0]
    for name, value in values.items():
        if value != usual:
            raise AudioError(
                f"{name} has {value} {unit}, the others {usual}; the files of one recording must agree: "
                "does it belong to another one, or was it cut or converted alone?"
            )
    return usual


def _cut_short(name: str, held: str) -> AudioError:
    return AudioError(
        f"{name} is cut short, it holds {held}; was the copy or the recording interrupted? Copy it again, "
        "or keep what there is: ffmpeg -i IN OUT.wav"
    )
