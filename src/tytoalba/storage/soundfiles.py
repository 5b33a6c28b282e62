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
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.errors import AudioError, TytoWarning
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import (
    BLOCK,
    Audio,
    Health,
    Samples,
    check,
    check_rate,
    pick_channels,
    refuse_damaged,
    resample,
    resampled,
)
from tytoalba.storage.age import Keys, is_sealed
from tytoalba.storage.files import explained
from tytoalba.storage.writing import written_whole

Source = str | Path | BinaryIO | Sequence[str | Path]

UNKNOWN_LENGTH = 0x7FF00000
"""Bytes. Recorders that write to a pipe cannot know the length and promise this much or more."""
IN_MEMORY = 16 * 2**20
"""Bytes of a sealed recording up to which it is opened at once; a longer one streams, at half the speed."""
HOP = 4096 / 48000
"""Seconds between two frames, and read at a time of what comes live."""
EARLY = 3
"""Seconds of sound after which a stream is warned of its channels."""
PIECE = 2**16
"""Bytes at most that are taken at a time from a pipe."""
ENDLESS = 2**62
"""Samples. libsndfile says more than this where it does not know the length."""
ENCODINGS = {"s16le": 2, "s24le": 3, "s32le": 4, "f32le": 4}
"""Raw sound: bytes per sample by the name that ffmpeg and arecord use (S16_LE), little-endian."""
STREAMS = (b"RIFF", b"riff\x2e\x91\xcf\x11")
"""How WAV and W64 begin, the formats that libsndfile reads through a pipe."""
LOSSY = {"VORBIS": "Vorbis", "OPUS": "Opus"} | {f"MPEG_LAYER_{n}": "MP3" for n in ("I", "II", "III")}
"""Formats whose decoders may differ in the last bits of a sample, as libsndfile calls them."""
CHECKED = ("WAV", "FLAC", "AIFF", "W64", "RF64", "CAF", "AU")
"""Formats that say how long they are. Closing one on a full disk fails without a word in libsndfile."""
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

    source: a path; a sequence of paths, one mono file per microphone; "-" for standard input; or a
        binary file object, which is read from its beginning if it can seek. Each may be sealed with age.
    array: picks the channels (see `pick_channels`) and gives the sample rate unless `sample_rate` does.
    sample_rate: Hz to resample to; the file's own if neither is given.
    keys: what opens a sealed file, in memory.

    Refuses files that are cut short, where their format says how long they should be (not ogg, mp3).
    For long recordings use `stream_audio`, which gives the same samples piece by piece.
    """
    with _opened(source, array, sample_rate, keys, whole=True) as sound:
        samples = np.concatenate(list(sound.blocks(BLOCK)), axis=1)
    check(samples, sound.name, sound.channels)
    return Audio(resample(samples, sound.sample_rate, sound.to_rate), sound.to_rate)


def read_unchanged(path: Path) -> Audio:
    """All channels of a file at its own sample rate, without remarks on silent or clipping channels."""
    with _opened(path, None, None, None, whole=True) as sound:
        samples = np.concatenate(list(sound.blocks(BLOCK)), axis=1)
    refuse_damaged(samples, sound.name)
    return Audio(samples, sound.sample_rate)


def resampled_text(from_rate: int, to_rate: int) -> str:
    """How `stream_audio` says that it resampled."""
    return f"resampled from {from_rate} to {to_rate} Hz"


def sound_format(source: Source, keys: Keys = None) -> tuple[int, int]:
    """Channels and sample rate (Hz) of a recording, as its header says."""
    with _opened(source, None, None, keys, whole=False) as sound:
        return len(sound.channels), sound.sample_rate


def sound_length(path: Path) -> int:
    """Samples per channel of a file, as its header says."""
    with _opened(path, None, None, None, whole=True) as sound:
        return int(sound.files[sound.name].frames)


def stream_audio(
    source: Source,
    array: MicArray | None = None,
    sample_rate: int | None = None,
    block: int | None = None,
    keys: Keys = None,
    *,
    again: bool = False,
    varies: list[str] | None = None,
    start: int = 0,
) -> Iterator[Samples]:
    """Read a recording of any length in blocks (n_channels, about `block` samples or fewer).

    block: if not given, large ones of a file, and of a pipe what comes within a hop (85 ms), so that every
    frame is there when its last sample is. again: it was read before, so nothing is warned of.
    varies: a list that gets the reasons why another program may read other samples from this file.
    start: leave out that many samples (at the rate that is asked for) at the beginning.

    The blocks joined are what `read_audio` returns. Memory is bounded, also for WAV that comes through a
    pipe or is sealed; other sealed formats are held in memory as they are on the disk. Nothing is opened
    before the first block is asked for. A sample that is not finite is an error at its block. Dead, identical
    and clipped channels are warned of after three seconds of sound, silence after the last block.
    """
    if block is not None and block < 1:
        raise AudioError(f"block must be at least 1 sample, got {block}")
    with _opened(source, array, sample_rate, keys, whole=False) as sound:
        health = Health(sound.name, sound.channels, early=EARLY * sound.sample_rate)
        rate, to_rate = sound.sample_rate, sound.to_rate
        if block is None:
            hop = round(to_rate * HOP)
            block = (hop if rate == to_rate else hop // 4) if sound.live else BLOCK  # resampling takes time
        size = max(1, min(block, block * rate // to_rate))
        if varies is not None:
            varies += sound.varies()
        skipped = sound.skip(start) if rate == to_rate else 0
        blocks = sound.blocks(size, skipped)
        found = resampled(blocks if again else health.watch(blocks), rate, to_rate)
        yield from _without(found, start - skipped)
        if not again:
            health.report()


def stream_raw(
    source: str | Path | BinaryIO,
    encoding: str = "s16le",
    *,
    channels: int,
    sample_rate: int,
    array: MicArray | None = None,
) -> Iterator[Samples]:
    """Read sound without a header, as `arecord -t raw` and `ffmpeg -f s16le` give it, as soon as it comes.

    source: a path, "-" for standard input, or a binary file object. encoding: one of `ENCODINGS`, samples of
    all channels in turn. channels: how many; array: picks those of its microphones, and gives the rate to
    resample to. sample_rate: Hz, of the sound. Returns blocks (n_channels, any length) of floats in [-1, 1].
    """
    name = "standard input" if source == "-" else str(getattr(source, "name", source))
    check_raw(encoding, channels, sample_rate, name)
    chosen = pick_channels(channels, array, name) if array else range(channels)
    to_rate = array.sample_rate if array else sample_rate

    def blocks() -> Iterator[Samples]:
        size = ENCODINGS[encoding] * channels
        rest, found = b"", False
        for data in _pieces(source, name, round(HOP * sample_rate) * size):
            whole = len(rest + data) // size * size
            rest, data = (rest + data)[whole:], (rest + data)[:whole]
            if data:
                found = True
                yield np.ascontiguousarray(decode_raw(data, encoding, channels)[chosen])
        if not found:
            raise AudioError(f"{name} holds no samples: was anything recorded?")
        if rest:
            message = f"{name} ends in the middle of a sample: are encoding and channels right?"
            warnings.warn(message, TytoWarning, stacklevel=2)

    health = Health(name, chosen, early=EARLY * sample_rate)
    yield from resampled(health.watch(blocks()), sample_rate, to_rate)
    health.report()


def _pieces(source: Any, name: str, size: int) -> Iterator[bytes]:
    """Bytes as they come, at most PIECE at a time where that can be asked for, else `size`."""
    try:
        with ExitStack() as stack:
            file = source
            if source == "-":
                file = sys.stdin.buffer
            elif isinstance(source, str | os.PathLike):
                file = stack.enter_context(Path(source).open("rb"))
            as_it_comes = getattr(file, "read1", None)
            while data := as_it_comes(PIECE) if as_it_comes else file.read(size):
                yield data
    except OSError as error:
        raise AudioError(f"{name} cannot be read: {error}") from error


def check_raw(encoding: str, n_channels: int, sample_rate: int, name: str) -> None:
    """Refuse what cannot be said of sound without a header. name: what errors call it."""
    if encoding not in ENCODINGS:
        raise AudioError(f"no encoding called {encoding!r}; known: {', '.join(ENCODINGS)}")
    if n_channels < 1:
        raise AudioError(f"{name}: raw sound needs its number of channels, at least 1, got {n_channels}")
    check_rate(sample_rate, name)


def decode_raw(data: bytes, encoding: str, n_channels: int) -> Samples:
    """Samples (n_channels, n) of whole raw ones, all channels in turn; encoding: one of `ENCODINGS`.

    >>> decode_raw(bytes([0, 64, 0, 192]), "s16le", 2).tolist()
    [[0.5], [-0.5]]
    """
    return _decoded(data, encoding).reshape(-1, n_channels).T


def _decoded(data: bytes, encoding: str) -> Samples:
    if encoding == "f32le":
        return np.frombuffer(data, "<f4")
    if encoding == "s16le":
        return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(2**15)
    if encoding == "s24le":
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        data = wide.tobytes()
    return (np.frombuffer(data, "<i4") / 2.0**31).astype(np.float32)


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
        form = path.suffix[1:].upper()
        with written_whole(path) as temporary:
            with soundfile.SoundFile(
                temporary, "w", int(sample_rate), len(samples), subtype, format=form
            ) as file:
                for start in range(0, samples.shape[1], BLOCK):  # one long write overflows libvorbis's stack
                    file.write(np.ascontiguousarray(samples[:, start : start + BLOCK].T, dtype))
            if form in CHECKED:
                with soundfile.SoundFile(temporary) as file:
                    odd = re.search("should be|closed properly", file.extra_info)
                    if odd or file.frames != samples.shape[1]:
                        raise OSError("it could not be written to its end: is the disk full?")
    except SNDFILE_ERRORS as error:
        subtypes = ", ".join(soundfile.available_subtypes(path.suffix[1:])) if path.suffix else ""
        raise AudioError(
            f"cannot write {path}, {subtype}, {len(samples)} channels: {str(error) or 'is the disk full?'}; "
            f"{path.suffix or 'no suffix'} takes: {subtypes or 'nothing, use .wav, .flac or .ogg'}"
        ) from error


@dataclass(frozen=True)
class _Sound:
    """One open file, or one open mono file per channel."""

    files: dict[str, Any]
    seals: Sequence[_Copied]
    name: str
    channels: Sequence[int]
    sample_rate: int
    to_rate: int
    live: bool

    def varies(self) -> list[str]:
        """Why another version of a decoder or resampler may give other samples."""
        codecs = sorted({LOSSY[file.subtype] for file in self.files.values() if file.subtype in LOSSY})
        return [f"decoded from {codec}, a lossy format" for codec in codecs] + (
            [resampled_text(self.sample_rate, self.to_rate)] if self.sample_rate != self.to_rate else []
        )

    def skip(self, n_samples: int) -> int:
        """Go to a sample of plain files, whose decoders can; how far it went."""
        if not n_samples or self.seals or not all(_seeks(file, n_samples) for file in self.files.values()):
            return 0
        for file in self.files.values():
            file.seek(n_samples)
        return n_samples

    def blocks(self, size: int, skipped: int = 0) -> Iterator[Samples]:
        """All of it in blocks (n_mics, at most size); refuses a file that ends before its time.

        skipped: how far it was gone before.
        """
        try:
            yield from self._blocks(size, skipped)
        except AudioError:
            self._check_seals()  # a broken seal ends a file early, and is the better reason
            raise
        self._check_seals()

    def _check_seals(self) -> None:
        for seal in self.seals:
            seal.finish()

    def _blocks(self, size: int, n_samples: int) -> Iterator[Samples]:
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
        raise AudioError("no file given; give one path, or one mono file per microphone")
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        live = False
        seals: list[_Copied] = []
        for one in sources:
            name, file, from_pipe = _open(one, stack, seals, keys, whole=whole)
            stack.enter_context(file)
            check_rate(file.samplerate, name)
            if name in files:
                raise AudioError(f"{name} is given twice; each microphone needs its own file")
            if len(sources) > 1 and file.channels != 1:
                raise AudioError(
                    f"{name} has {file.channels} channels, but several files must be mono, one per "
                    "microphone; give a multi-channel file alone"
                )
            files[name] = file
            live = live or from_pipe
        rate = _agreed({name: file.samplerate for name, file in files.items()}, "Hz")
        _agreed({name: file.frames for name, file in files.items()}, "samples")
        name = next(iter(files)) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        n_channels = sum(file.channels for file in files.values())
        channels = pick_channels(n_channels, array, name) if array else range(n_channels)
        to_rate = sample_rate if sample_rate is not None else array.sample_rate if array else rate
        check_rate(to_rate, f"reading {name}")
        yield _Sound(files, seals, name, channels, rate, to_rate, live)


def _open(
    source: Any, stack: ExitStack, seals: list[_Copied], keys: Keys, *, whole: bool
) -> tuple[str, Any, bool]:
    """The name of a source, libsndfile's file of it, and whether it comes live, through a pipe."""
    import soundfile

    if isinstance(source, str) and source == "-":
        name = "standard input"
        target = _readable(getattr(sys.stdin, "buffer", None), name, stack, seals, whole=whole)
    elif isinstance(source, str | os.PathLike):
        name, target = str(source), Path(source)
    else:
        name = source.name if isinstance(getattr(source, "name", None), str) else "the file object"
        target = _readable(source, name, stack, seals, whole=whole)
    head = _head(target, name)
    live = head is None
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
    return name, file, live


def _readable(source: Any, name: str, stack: ExitStack, seals: list[_Copied], *, whole: bool) -> Any:
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
        start = b"" if whole else source.read(4)
        if start == b"RIFF":
            pump = Pump(source, start, name)
            stack.callback(pump.close)
            seals.append(pump)
            return pump.fileno()
        return _Tame(io.BytesIO(start + source.read()))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise AudioError(f"{name} cannot be read: {error}; is it closed?") from error


def _unsealed(
    target: Any,
    name: str,
    stack: ExitStack,
    seals: list[_Copied],
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
        if start.startswith(STREAMS):
            seal = stack.enter_context(Unsealing(file, keys, name))
            seals.append(seal)
            return seal.fileno(), start
    plain = open_bytes(file.read(), keys, name)
    return _Tame(io.BytesIO(plain)), plain[:64]


class _Copied(Protocol):
    """What comes through a pipe of our own; `finish` raises what was wrong with it."""

    def finish(self) -> None: ...


class Pump:
    """A file object that cannot seek as the descriptor of a pipe: a thread copies its bytes as they come."""

    def __init__(self, file: Any, start: bytes, name: str) -> None:
        self._pipe, writing = os.pipe()
        self._name = name
        self._error: BaseException | None = None
        threading.Thread(target=self._copy, args=(file, start, writing), daemon=True).start()

    def _copy(self, file: Any, data: bytes, writing: int) -> None:
        read = getattr(file, "read1", file.read)  # what is there, rather than all that was asked for
        with suppress(OSError), os.fdopen(writing, "wb", buffering=0) as sink:  # OSError: it was closed
            while data:
                sink.write(data)
                try:
                    data = read(PIECE)
                except Exception as error:  # raised again where it is read
                    self._error, data = error, b""

    def fileno(self) -> int:
        """The reading end of the pipe."""
        return self._pipe

    def finish(self) -> None:
        """Raise what ended the sound before its time."""
        if self._error is not None:
            raise AudioError(f"{self._name} cannot be read: {self._error}") from self._error

    def close(self) -> None:
        """Stop copying."""
        os.close(self._pipe)


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
    with explained(name, AudioError):
        if isinstance(target, int) or (isinstance(target, Path) and target.is_fifo()):
            return None
        with target.open("rb") if isinstance(target, Path) else nullcontext(target) as file:
            file.seek(0)
            head: bytes = file.read(64)
            file.seek(0)
    return head


def _read(name: str, file: Any, size: int) -> Samples:
    try:
        part: Samples = file.read(size, dtype="float32", always_2d=True)
    except SNDFILE_ERRORS as error:
        raise AudioError(f"{name} is damaged or cut short ({error}); copy or record it again") from error
    return part


def _seeks(file: Any, n_samples: int) -> bool:
    """Whether a file goes to that very sample: those whose samples do not depend on the ones before do."""
    plain = file.format in (*CHECKED, "WAVEX") and file.subtype.startswith(("PCM_", "FLOAT", "DOUBLE"))
    return bool(plain and file.seekable() and n_samples < _promised(file))


def _without(blocks: Iterator[Samples], n_samples: int) -> Iterator[Samples]:
    """Blocks without the first samples."""
    for block in blocks:
        if n_samples < block.shape[1]:
            yield block[:, n_samples:] if n_samples else block
        n_samples = max(0, n_samples - block.shape[1])


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
