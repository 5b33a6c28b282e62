"""Sound: read, stream, cut into frames, resample, mix and write it, and say what is wrong with it.

Channels first, (n_channels, n_samples), float32 in [-1, 1]; channels count from 0. Whatever is wrong
with a file leaves this module as an AudioError that names the file, the likely cause and the remedy.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import stat
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import AudioError, TytoWarning
from tytoalba.geometry import MicArray

Samples = NDArray[np.float32]
Source = str | Path | BinaryIO | Sequence[str | Path]

BLOCK = 65536
LOWEST_RATE, HIGHEST_RATE = 1000, 1_000_000
FULL_SCALE = 0.999
LARGEST = 2.0**31
"""The largest integer sample: beyond it, not even integers saved as floats explain a value."""
UNKNOWN_LENGTH = 0x7FF00000
"""Bytes. Recorders that write to a pipe cannot know the length and promise this much or more."""
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


@dataclass(frozen=True, eq=False)
class Audio:
    """Sound in memory. samples: (n_channels, n_samples) float32 in [-1, 1]; sample_rate: Hz.

    >>> Audio(np.zeros((4, 8000), np.float32), 16000).duration
    0.5
    """

    samples: Samples
    sample_rate: int

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return float(self.samples.shape[1] / self.sample_rate)


def select_channels(samples: NDArray[Any], array: MicArray) -> NDArray[Any]:
    """The array's microphones among the channels of a recording: (n_channels, n) -> (n_mics, n).

    A recording that has all of `array.channels` is reduced to them; one with exactly n_mics channels
    is taken to be in microphone order already; anything else is an AudioError.

    >>> from tytoalba.geometry import load_array
    >>> select_channels(np.arange(6.0)[:, None], load_array("respeaker-usb-4"))[:, 0].tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    samples = _two_axes(samples, "recording")
    return samples[_pick(len(samples), array, "recording")]


def frames(samples: NDArray[Any], frame_length: int = 8192, hop: int = 4096) -> NDArray[Any]:
    """All full frames, (n_mics, n_samples) -> (n_frames, n_mics, frame_length), a read-only view.

    Frame t is samples [hop * t, hop * t + frame_length); what is left at the end is dropped.

    >>> frames(np.arange(7.0)[None], frame_length=4, hop=2)[:, 0].tolist()
    [[0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0]]
    """
    if frame_length < 1 or hop < 1:
        raise AudioError(f"frame_length and hop are at least 1 sample, got {frame_length} and {hop}")
    samples = _two_axes(samples, "recording")
    if samples.shape[1] < frame_length:
        raise AudioError(
            f"{samples.shape[1]} samples are too short for one frame, at least {frame_length} are needed; "
            "record longer, use shorter frames, or are the channels not the first axis?"
        )
    windows = np.lib.stride_tricks.sliding_window_view(samples, frame_length, axis=1)  # (M, N - L + 1, L)
    return windows[:, ::hop].swapaxes(0, 1)


def stream_frames(
    blocks: Iterable[NDArray[Any]], frame_length: int = 8192, hop: int = 4096
) -> Iterator[NDArray[Any]]:
    """Frames of a recording that comes in blocks (n_mics, any length), as batches of consecutive frames.

    The batches (n_frames, n_mics, frame_length) joined are `frames` of the joined blocks.

    >>> halves = [np.arange(3.0)[None], np.arange(3.0, 7.0)[None]]
    >>> [batch[:, 0].tolist() for batch in stream_frames(halves, frame_length=4, hop=2)]
    [[[0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0]]]
    """
    held: NDArray[Any] = np.zeros((0, 0), np.float32)
    skip, found = 0, False  # skip: samples to drop before the next frame, when hop > frame_length
    for block in blocks:
        block = _two_axes(block, "block")
        if held.size and len(block) != len(held):
            raise AudioError(f"a block has {len(block)} channels, those before it {len(held)}")
        fresh, skip = block[:, skip:], max(0, skip - block.shape[1])
        held = np.concatenate([held, fresh], axis=1) if held.size else np.array(fresh)
        if held.shape[1] >= frame_length:
            batch = frames(held, frame_length, hop)
            yield batch
            found, used = True, len(batch) * hop
            skip = max(0, used - held.shape[1])
            held = held[:, used:].copy()  # a copy, so that a long block can go
    if not found:
        frames(held, frame_length, hop)  # too short: says so


def resample(samples: NDArray[Any], from_rate: int, to_rate: int) -> NDArray[Any]:
    """Sound at another sample rate (Hz), along the last axis: (n,) or (n_channels, n), linear phase.

    >>> resample(np.zeros((2, 480)), 48000, 16000).shape
    (2, 160)
    """
    samples = np.asarray(samples)
    _check_rate(from_rate, "resample")
    _check_rate(to_rate, "resample")
    if from_rate == to_rate:
        return samples
    if samples.dtype not in (np.float32, np.float64):
        raise AudioError(f"resample takes float32 or float64 samples, got {samples.dtype}")
    blocks = _resampled([_two_axes(np.atleast_2d(samples), "sound to resample")], from_rate, to_rate)
    return np.concatenate(list(blocks), axis=1).reshape(*samples.shape[:-1], -1)


def rms(samples: ArrayLike, axis: int | tuple[int, ...] | None = -1) -> NDArray[np.float64]:
    """Root mean square along `axis` (None: over everything).

    >>> rms([[3.0, -3.0], [0.0, 0.0]]).tolist()
    [3.0, 0.0]
    """
    samples = np.asarray(samples)
    if samples.size == 0:
        raise AudioError("nothing to measure: no samples")
    root: NDArray[np.float64] = np.sqrt(np.mean(np.square(samples, dtype=np.float64), axis=axis))
    return root


def mix(signal: ArrayLike, noise: ArrayLike, snr_db: float) -> NDArray[Any]:
    """Signal plus noise scaled so that their power ratio, over all channels and samples, is `snr_db`.

    signal, noise: the same shape, any number of axes. Returns the signal's float dtype.

    >>> mix(np.ones((1, 2)), np.array([[4.0, -4.0]]), snr_db=20.0).round(6).tolist()
    [[1.1, 0.9]]
    """
    signal, noise = np.asarray(signal), np.asarray(noise)
    if signal.shape != noise.shape:
        raise AudioError(
            f"signal {signal.shape} and noise {noise.shape} differ in shape; "
            "cut the noise to the signal (repeat it if it is shorter)"
        )
    if not -1000 <= snr_db <= 1000:
        raise AudioError(f"snr_db must be finite decibels, at most 1000 either way, got {snr_db}")
    levels = [float(rms(part, axis=None)) for part in (signal, noise)]
    for name, level in zip(("signal", "noise"), levels, strict=True):
        if not (np.isfinite(level) and level > 0):
            fault = "silent, so no SNR is defined" if level == 0 else "not finite"
            raise AudioError(f"the {name} is {fault}; check the file it came from")
    with np.errstate(over="ignore", invalid="ignore"):
        gain = np.float64(levels[0]) / levels[1] * 10.0 ** (-snr_db / 20.0)
        dtype = np.result_type(signal, np.float16) if signal.dtype.kind == "f" else np.dtype(np.float32)
        mixed: NDArray[Any] = (signal.astype(np.float64) + gain * noise).astype(dtype)
    if not np.isfinite(mixed).all():
        raise AudioError(f"noise at {snr_db} dB overflows {dtype}; scale signal and noise into [-1, 1]")
    return mixed


def check(samples: NDArray[Any], what: str = "recording") -> None:
    """Refuse sound that cannot be used, warn (TytoWarning) of sound that is suspicious.

    samples: (n_channels, n_samples) floats. AudioError: empty, wrong shape, integers, not finite.
    Warnings, each at most once: silence, dead channels, identical channels, clipping (three or more
    samples in a row at full scale).

    >>> check(np.array([[0.0, np.nan]]))
    Traceback (most recent call last):
    tytoalba.errors.AudioError: recording: 1 samples are NaN or infinite, the first at 1; ...
    """
    samples = _two_axes(samples, what)
    _inspect(samples, what, range(len(samples)))


class _Health:
    """Running counts of what is suspicious, so that a stream is judged like a whole recording."""

    def __init__(self, what: str, channels: Sequence[int]) -> None:
        self.what, self.channels = what, channels
        self.n_samples, self.peak = 0, 0.0
        self.sounds = np.zeros(len(channels), np.bool_)
        self.clipped = np.zeros(len(channels), np.intp)
        self.tail = np.zeros((len(channels), 3), np.bool_)  # which of the last samples were at full scale
        self.alike = [list(range(len(channels)))]  # groups of channels that have been identical so far

    def watch(self, blocks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Pass blocks on, refusing damaged ones and counting what is suspicious in the others."""
        for block in blocks:  # (M, K)
            _refuse_damaged(block, self.what, self.n_samples)
            self.n_samples += block.shape[1]
            self.sounds |= block.any(axis=1)
            magnitude = np.abs(block)
            self.peak = max(self.peak, float(magnitude.max()))
            self._count_clipped(magnitude >= FULL_SCALE)
            self.alike = [same for group in self.alike for same in _identical(block, group)]
            yield block

    def _count_clipped(self, loud: NDArray[np.bool_]) -> None:
        loud = np.concatenate([self.tail, loud], axis=1)  # runs go on from block to block
        run = loud[:, :-2] & loud[:, 1:-1] & loud[:, 2:]  # three in a row, by where they end
        starts = run[:, 1:] & ~run[:, :-1]  # the first three of a run count at once
        self.clipped += run[:, 1:].sum(axis=1) + 2 * starts.sum(axis=1)
        self.tail = loud[:, -3:]

    def report(self) -> None:
        """Warn, at most once of each kind."""

        def warn(message: str) -> None:
            warnings.warn(f"{self.what}: {message}", TytoWarning, stacklevel=5)

        def name(indices: Iterable[Any]) -> str:
            return ", ".join(str(self.channels[i]) for i in indices)

        if not self.sounds.any():
            warn("digital silence, every sample is zero; was the microphone muted or not allowed?")
        elif not self.sounds.all():
            dead = name(np.flatnonzero(~self.sounds))
            warn(f"channel {dead} is dead (all zero); is the microphone broken or the channel map wrong?")
        if twins := [name(group) for group in self.alike if self.sounds[group[0]]]:
            warn(f"channels {'; '.join(twins)} are identical; was a mono or stereo recording copied?")
        if self.clipped.any():
            share = {int(i): f"{self.clipped[i] / self.n_samples:.2%}" for i in np.flatnonzero(self.clipped)}
            where = ", ".join(f"{percent} of channel {self.channels[i]}" for i, percent in share.items())
            remedy = "lower the input gain"
            if self.peak > 2.0:
                remedy = f"the peak is {self.peak:.6g}: were integers not divided, e.g. by 32768?"
            warn(f"clipped, {where}; {remedy}")


def _identical(block: NDArray[Any], group: list[int]) -> list[list[int]]:
    same: defaultdict[bytes, list[int]] = defaultdict(list)
    for channel in group:
        same[block[channel].tobytes()].append(channel)
    return [found for found in same.values() if len(found) > 1]


def _inspect(samples: NDArray[Any], what: str, channels: Sequence[int]) -> None:
    _refuse_damaged(samples, what)  # first, to count all that is not finite
    health = _Health(what, channels)
    for _ in health.watch(samples[:, start : start + BLOCK] for start in range(0, samples.shape[1], BLOCK)):
        pass
    health.report()


def _resampled(blocks: Iterable[NDArray[Any]], from_rate: int, to_rate: int) -> Iterator[NDArray[Any]]:
    """Blocks (n_mics, any length) at another rate; resampling piece by piece or at once gives the same."""
    import soxr  # type: ignore[import-untyped]

    if from_rate == to_rate:
        yield from blocks
        return
    resampler, empty, found = None, np.zeros((0, 0)), False
    for block in blocks:
        if resampler is None:
            resampler = soxr.ResampleStream(from_rate, to_rate, len(block), dtype=block.dtype)
        piece = resampler.resample_chunk(np.ascontiguousarray(block.T)).T
        if piece.size:
            found = True
            yield np.ascontiguousarray(piece)
        empty = block[:, :0].T
    rest = resampler.resample_chunk(np.ascontiguousarray(empty), last=True).T if resampler else empty
    if rest.size:
        yield np.ascontiguousarray(rest)
    elif not found:
        raise AudioError(f"too short to resample from {from_rate} to {to_rate} Hz: not one sample is left")


def _pick(n_channels: int, array: MicArray, what: str) -> Sequence[int]:
    if n_channels > max(array.channels):
        return list(array.channels)
    if n_channels == array.n_mics:
        return range(n_channels)
    few = {1: "a mono mix-down", 2: "a stereo mix-down"}.get(n_channels, "a recorder that drops channels")
    raise AudioError(
        f"{what}: channels that came: {n_channels}; array {array.name!r} has its microphones on channels "
        f"{', '.join(map(str, array.channels))}, so {max(array.channels) + 1} or more were expected, or "
        f"exactly {array.n_mics} in microphone order. Likely {few}, or the firmware that sends every "
        "microphone (for a ReSpeaker USB the six-channel firmware) is not installed. Record all channels, "
        "or name the array that recorded this"
    )


def _two_axes(samples: ArrayLike, what: str) -> NDArray[Any]:
    samples = np.asarray(samples)
    if samples.ndim != 2:
        raise AudioError(f"{what} must be (n_channels, n_samples), channels first, got shape {samples.shape}")
    return samples


def _refuse_damaged(samples: NDArray[Any], what: str, start: int = 0) -> None:
    """Refuse what is empty, integer or not finite; samples (M, N), the first of them is number `start`."""
    if _two_axes(samples, what).size == 0:
        raise AudioError(f"{what} is empty, shape {samples.shape}; was anything recorded?")
    if samples.dtype.kind != "f":
        raise AudioError(f"{what}: floats in [-1, 1] expected, got {samples.dtype}; divide int16 by 32768")
    finite = np.isfinite(samples)
    if not finite.all():
        first = start + int(np.argmin(finite.all(axis=0)))
        raise AudioError(
            f"{what}: {samples.size - np.count_nonzero(finite)} samples are NaN or infinite, the first at "
            f"{first}; a damaged file, or a division by zero when it was made: export it again"
        )
    if (peak := float(np.abs(samples).max())) > LARGEST:
        raise AudioError(
            f"{what}: values up to {peak:.3g}, but sound lies in [-1, 1]; a damaged file, or one read in "
            "the wrong sample format: export it again"
        )


def _check_rate(rate: int, what: str) -> None:
    if not (LOWEST_RATE <= rate <= HIGHEST_RATE and rate == int(rate)):
        raise AudioError(
            f"{what}: the sample rate must be whole Hz from {LOWEST_RATE} to {HIGHEST_RATE}, got {rate}; "
            "kHz instead of Hz, or a damaged header?"
        )


def read_audio(source: Source, array: MicArray | None = None, sample_rate: int | None = None) -> Audio:
    """Read a whole recording, its channels in microphone order, at the array's sample rate.

    source: a path; a sequence of paths, one mono file a microphone; "-" for standard input; or a
        binary file object, which is read from its beginning if it can seek.
    array: picks the channels (see `select_channels`) and gives the sample rate unless `sample_rate` does.
    sample_rate: Hz to resample to; the file's own if neither is given.

    Refuses files that are cut short, where their format says how long they should be (not ogg, mp3).
    For long recordings use `stream_audio`, which gives the same samples piece by piece.
    """
    with _opened(source, array, sample_rate, whole=True) as sound:
        samples = np.concatenate(list(sound.blocks(BLOCK)), axis=1)
    _inspect(samples, sound.name, sound.channels)
    return Audio(resample(samples, sound.sample_rate, sound.to_rate), sound.to_rate)


def stream_audio(
    source: Source, array: MicArray | None = None, sample_rate: int | None = None, block: int = BLOCK
) -> Iterator[Samples]:
    """Read a recording of any length in blocks (n_channels, about `block` samples or fewer).

    The blocks joined are what `read_audio` returns. Memory is bounded, also for WAV that comes through a
    pipe. Nothing is opened before the first block is asked for. A sample that is not finite is an error
    at its block; silence, dead channels and clipping are warned of after the last block.
    """
    if block < 1:
        raise AudioError(f"block must be at least 1 sample, got {block}")
    with _opened(source, array, sample_rate, whole=False) as sound:
        health = _Health(sound.name, sound.channels)
        size = max(1, min(block, block * sound.sample_rate // sound.to_rate))
        yield from _resampled(health.watch(sound.blocks(size)), sound.sample_rate, sound.to_rate)
        health.report()


def write_audio(path: str | Path, samples: ArrayLike, sample_rate: int, subtype: str = "PCM_16") -> None:
    """Write (n_channels, n_samples) or (n_samples,) floats in [-1, 1]; the format is the path's suffix.

    Whole or not at all: a failure leaves an older file as it was. Nothing is clipped: sound out of
    range is refused. subtype: e.g. "PCM_16", "PCM_24", "FLOAT", "VORBIS" (for .ogg).
    """
    import soundfile

    path, samples = Path(path), np.atleast_2d(np.asarray(samples))
    what = f"sound for {path}"
    _refuse_damaged(samples, what)
    _check_rate(sample_rate, what)
    if (peak := float(np.abs(samples).max())) > 1.0:
        raise AudioError(f"{what}: peak {peak:.6g} is beyond 1 and would clip; divide by the peak first")
    if not path.parent.is_dir():
        raise AudioError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp{path.suffix}"
    dtype = np.float64 if samples.dtype == np.float64 else np.float32
    try:
        with soundfile.SoundFile(temporary, "x", int(sample_rate), len(samples), subtype) as file:
            for start in range(0, samples.shape[1], BLOCK):  # one long write overflows libvorbis's stack
                file.write(np.ascontiguousarray(samples[:, start : start + BLOCK].T, dtype))
        temporary.replace(path)
    except SNDFILE_ERRORS as error:
        subtypes = ", ".join(soundfile.available_subtypes(path.suffix[1:])) if path.suffix else ""
        raise AudioError(
            f"cannot write {path}, {subtype}, {len(samples)} channels: {str(error) or 'is the disk full?'}; "
            f"{path.suffix or 'no suffix'} takes: {subtypes or 'nothing, use .wav, .flac or .ogg'}"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Sound:
    """One open file, or one open mono file a channel."""

    files: dict[str, Any]
    name: str
    channels: Sequence[int]
    sample_rate: int
    to_rate: int

    def blocks(self, size: int) -> Iterator[Samples]:
        """All of it in blocks (n_mics, at most size); refuses a file that ends before its time."""
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
    source: Source, array: MicArray | None, sample_rate: int | None, *, whole: bool
) -> Iterator[_Sound]:
    sources = list(source) if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    if not sources:
        raise AudioError("no file given; give one path, or one mono file a microphone")
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        for one in sources:
            name, file = _open(one, whole=whole)
            stack.enter_context(file)
            _check_rate(file.samplerate, name)
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
        channels = _pick(n_channels, array, name) if array else range(n_channels)
        to_rate = sample_rate if sample_rate is not None else array.sample_rate if array else rate
        _check_rate(to_rate, f"reading {name}")
        yield _Sound(files, name, channels, rate, to_rate)


def _open(source: Any, *, whole: bool) -> tuple[str, Any]:
    import soundfile

    if isinstance(source, str) and source == "-":
        name, target = (
            "standard input",
            _readable(getattr(sys.stdin, "buffer", None), "standard input", whole),
        )
    elif isinstance(source, str | os.PathLike):
        name, target = str(source), Path(source)
    else:
        name = source.name if isinstance(getattr(source, "name", None), str) else "the file object"
        target = _readable(source, name, whole)
    head = _head(target, name)
    try:
        file = soundfile.SoundFile(target, closefd=False)
    except SNDFILE_ERRORS as error:
        if name.lower().endswith(".raw"):
            why = "has no header; give it one: ffmpeg -f s16le -ar 16000 -ac 4 -i IN.raw OUT.wav"
        elif head is None:
            why = "is not WAV, the only format that streams through a pipe; pipe ffmpeg -i IN -f wav -"
        else:
            why = next(why for begin, why in NOT_SOUND.items() if re.match(begin, head, re.DOTALL))
        raise AudioError(f"{name} {why} ({error})") from error
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
    unknown = file.frames >= 2**62 or (data and int(data[1]) >= UNKNOWN_LENGTH)
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
