"""Sound in memory: cut it into frames, resample, mix, pick channels, and say what is wrong with it.

Channels first, (n_channels, n_samples), float32 in [-1, 1]; channels count from 0.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tytoalba.errors import AudioError, TytoWarning
from tytoalba.signal.array import MicArray
from tytoalba.texts.printing import plural

Samples = NDArray[np.float32]

BLOCK = 65536
"""Samples looked at at a time."""
SILENCE_DB = -60.0
"""Frames below this level (dB of full scale) have no direction."""
LOWEST_RATE, HIGHEST_RATE = 1000, 1_000_000
FULL_SCALE = 0.999
DEVICE_CHANNELS = {"respeaker-usb-4": 6, "respeaker-6mic": 8, "respeaker-core-v2": 8, "minidsp-uma8": 8}
"""Channels that a device records, where they are more than its microphones."""
LARGEST = 2.0**31
"""The largest integer sample: beyond it, not even integers saved as floats explain a value."""


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
            f"{plural(samples.shape[1], 'sample is', 'samples are')} too short for one frame, at least "
            f"{frame_length} are needed; record longer, use shorter frames, or are channels not the first "
            "axis?"
        )
    windows = np.lib.stride_tricks.sliding_window_view(samples, frame_length, axis=1)  # (M, N - L + 1, L)
    return windows[:, ::hop].swapaxes(0, 1)


class Framer:
    """Cuts sound that comes in blocks (n_mics, any length) into frames, each as soon as it is complete.

    The batches that `add` gives, joined, are `frames` of the joined blocks.

    >>> framer = Framer(frame_length=4, hop=2)
    >>> [framer.add(part)[:, 0].tolist() for part in np.split(np.arange(7.0)[None], [3], axis=1)]
    [[], [[0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0]]]
    """

    def __init__(self, frame_length: int, hop: int) -> None:
        self.frame_length, self.hop = frame_length, hop
        self.clear()

    def clear(self) -> None:
        """Begin a new recording."""
        self._held: NDArray[Any] = np.zeros((0, 0), np.float32)
        self._skip = 0  # samples to drop before the next frame, when hop > frame_length
        self._found = False

    def add(self, block: NDArray[Any]) -> NDArray[Any]:
        """Take a block (n_mics, any length); give the frames that it completes, a batch."""
        block = _two_axes(block, "block")
        held = self._held
        if held.size and len(block) != len(held):
            raise AudioError(f"a block has {plural(len(block), 'channel')}, those before it {len(held)}")
        fresh, self._skip = block[:, self._skip :], max(0, self._skip - block.shape[1])
        held = np.concatenate([held, fresh], axis=1) if held.size else np.array(fresh)
        if held.shape[1] < self.frame_length:
            self._held = held
            return np.empty((0, len(block), self.frame_length), block.dtype)
        batch = frames(held, self.frame_length, self.hop)
        self._found, used = True, len(batch) * self.hop
        self._skip = max(0, used - held.shape[1])
        self._held = held[:, used:].copy()  # a copy, so that a long block can go
        return batch

    def refuse_short(self) -> None:
        """AudioError where all that came was too short for one frame."""
        if not self._found:
            frames(self._held, self.frame_length, self.hop)


def resample(samples: NDArray[Any], from_rate: int, to_rate: int) -> NDArray[Any]:
    """Sound at another sample rate (Hz), along the last axis: (n,) or (n_channels, n), linear phase.

    >>> resample(np.zeros((2, 480)), 48000, 16000).shape
    (2, 160)
    """
    samples = np.asarray(samples)
    check_rate(from_rate, "resample")
    check_rate(to_rate, "resample")
    if from_rate == to_rate:
        return samples
    if samples.dtype not in (np.float32, np.float64):
        raise AudioError(f"resample takes float32 or float64 samples, got {samples.dtype}")
    blocks = resampled([_two_axes(np.atleast_2d(samples), "sound to resample")], from_rate, to_rate)
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


def spoken(frames: NDArray[Any], silence_db: float = SILENCE_DB) -> NDArray[np.bool_]:
    """Which frames (n_frames, n_mics, n_samples) have something to learn from: not silent, not a pause.

    A pause is 12 dB below the loud frames of the same recording. silence_db: dB of full scale.
    """
    if not len(frames):
        return np.zeros(0, np.bool_)
    level = rms(frames, axis=(1, 2))
    loud: NDArray[np.bool_] = level > 0.25 * np.quantile(level, 0.9)
    return loud & (20 * np.log10(level + 1e-12) >= silence_db)


def levels(frames: NDArray[Any]) -> NDArray[np.int64]:
    """Energy of frames (n_frames, n_mics, n_samples), (n_frames,): whole numbers, the same on every machine.

    The sum of the squares of all samples, each rounded to 16 bits (2^-15 is 1) and cut at +-8: below 2^53 up
    to 131072 samples a frame, so that no order of adding matters.
    """
    total = np.zeros(len(frames), np.int64)
    for channel in range(frames.shape[1]):
        whole = np.rint(np.clip(frames[:, channel], -8.0, 8.0) * 2.0**15).astype(np.float64, copy=False)
        total += np.einsum("fn,fn->f", whole, whole).astype(np.int64)
    return total


def voiced(level: NDArray[np.int64], n_values: int) -> NDArray[np.bool_]:
    """`spoken` by the `levels` (n_frames,) of frames of so many values each, decided in whole numbers.

    Loud frames are those above nine tenths of all; silence is below -60 dB of full scale.

    >>> voiced(np.array([1, 20, 300, 2, 300]) * 10**6, n_values=1000).tolist()
    [False, True, True, False, True]
    """
    if not len(level):
        return np.zeros(0, np.bool_)
    loud = int(np.sort(level)[9 * (len(level) - 1) // 10])
    least = -(-n_values * 2**30 // 10**6)  # of n_values samples of 1/1000, rounded up
    return (level > loud // 16) & (level >= least)


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


def check(samples: NDArray[Any], what: str = "recording", channels: Sequence[int] = ()) -> None:
    """Refuse sound that cannot be used, warn (TytoWarning) of sound that is suspicious.

    samples: (n_channels, n_samples) floats. channels: their numbers in the file, from 0 if not given.
    AudioError: empty, wrong shape, integers, not finite.
    Warnings, each at most once: silence, dead channels, identical channels, clipping (three or more
    samples in a row at full scale).

    >>> check(np.array([[0.0, np.nan]]))
    Traceback (most recent call last):
    tytoalba.errors.AudioError: recording: 1 sample is NaN or infinite, the first at 1; ...
    """
    refuse_damaged(samples, what)  # first, to count all that is not finite
    health = Health(what, channels or range(len(samples)))
    for _ in health.watch(samples[:, start : start + BLOCK] for start in range(0, samples.shape[1], BLOCK)):
        pass
    health.report()


class Health:
    """Running counts of what is suspicious, so that a stream is judged like a whole recording.

    early: samples with sound after which dead, identical and clipped channels are warned of, once each; None
    to say nothing before `report`.
    """

    def __init__(self, what: str, channels: Sequence[int], early: int | None = None) -> None:
        self.what, self.channels, self.early = what, channels, early
        self.n_samples, self.n_sounding, self.peak = 0, 0, 0.0
        self._warned: set[str] = set()
        self.sounds = np.zeros(len(channels), np.bool_)
        self.clipped = np.zeros(len(channels), np.intp)
        self.tail = np.zeros((len(channels), 3), np.bool_)  # which of the last samples were at full scale
        self.alike = [list(range(len(channels)))]  # groups of channels that have been identical so far

    def watch(self, blocks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Pass blocks on, refusing damaged ones and counting what is suspicious in the others."""
        for block in blocks:  # (M, K)
            refuse_damaged(block, self.what, self.n_samples)
            self.n_samples += block.shape[1]
            self.sounds |= block.any(axis=1)
            magnitude = np.abs(block)
            self.peak = max(self.peak, float(magnitude.max()))
            self._count_clipped(magnitude >= FULL_SCALE)
            self.alike = [same for group in self.alike for same in _identical(block, group)]
            self.n_sounding += block.shape[1] if self.sounds.any() else 0
            if self.early is not None and self.n_sounding >= self.early:
                self._report_channels()
            yield block

    def _count_clipped(self, loud: NDArray[np.bool_]) -> None:
        loud = np.concatenate([self.tail, loud], axis=1)  # runs go on from block to block
        run = loud[:, :-2] & loud[:, 1:-1] & loud[:, 2:]  # three in a row, by where they end
        starts = run[:, 1:] & ~run[:, :-1]  # the first three of a run count at once
        self.clipped += run[:, 1:].sum(axis=1) + 2 * starts.sum(axis=1)
        self.tail = loud[:, -3:]

    def report(self) -> None:
        """Warn, at most once of each kind."""
        if not self.sounds.any():
            self._warn("digital silence, every sample is zero; was the microphone muted or not allowed?")
        else:
            self._report_channels()

    def _warn(self, message: str) -> None:
        warnings.warn(f"{self.what}: {message}", TytoWarning, stacklevel=6)  # the caller of read_audio

    def _report_channels(self) -> None:
        def warn(kind: str, message: str) -> None:
            if kind not in self._warned:
                self._warned.add(kind)
                self._warn(message)

        def name(indices: Iterable[Any]) -> str:
            return ", ".join(str(self.channels[i]) for i in indices)

        if not self.sounds.all():
            dead = name(np.flatnonzero(~self.sounds))
            fault = f"channel {dead} is dead (all zero)"
            warn("dead", f"{fault}; is the microphone broken or the channel map wrong?")
        if twins := [name(group) for group in self.alike if self.sounds[group[0]]]:
            fault = f"channels {'; '.join(twins)} are identical"
            warn("identical", f"{fault}; was a mono or stereo recording copied?")
        if self.clipped.any():
            share = {int(i): f"{self.clipped[i] / self.n_samples:.2%}" for i in np.flatnonzero(self.clipped)}
            where = ", ".join(f"{percent} of channel {self.channels[i]}" for i, percent in share.items())
            remedy = "lower the input gain"
            if self.peak > 2.0:
                remedy = f"the peak is {self.peak:.6g}: were integers not divided, e.g. by 32768?"
            warn("clipped", f"clipped, {where}; {remedy}")


def _identical(block: NDArray[Any], group: list[int]) -> list[list[int]]:
    same: defaultdict[bytes, list[int]] = defaultdict(list)
    for channel in group:
        same[block[channel].tobytes()].append(channel)
    return [found for found in same.values() if len(found) > 1]


def resampled(blocks: Iterable[NDArray[Any]], from_rate: int, to_rate: int) -> Iterator[NDArray[Any]]:
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


def recorded_channels(array: MicArray) -> int:
    """How many channels the device of an array records: as many as its microphones need, or more.

    >>> from tytoalba.signal.array import load_array
    >>> [recorded_channels(load_array(name)) for name in ("respeaker-usb-4", "pepper")]
    [6, 4]
    """
    return max(DEVICE_CHANNELS.get(array.name, 0), max(array.channels) + 1)


def pick_channels(n_channels: int, array: MicArray, what: str) -> Sequence[int]:
    """Which channels of a recording with `n_channels` are the array's microphones."""
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


def refuse_damaged(samples: NDArray[Any], what: str, start: int = 0) -> None:
    """Refuse what is empty, integer or not finite; samples (M, N), the first of them is number `start`."""
    if _two_axes(samples, what).size == 0:
        raise AudioError(f"{what} is empty, shape {samples.shape}; was anything recorded?")
    if samples.dtype.kind != "f":
        raise AudioError(f"{what}: floats in [-1, 1] expected, got {samples.dtype}; divide int16 by 32768")
    finite = np.isfinite(samples)
    if not finite.all():
        n, first = int(samples.size - np.count_nonzero(finite)), start + int(np.argmin(finite.all(axis=0)))
        raise AudioError(
            f"{what}: {plural(n, 'sample is', 'samples are')} NaN or infinite, the first at "
            f"{first}; a damaged file, or a division by zero when it was made: export it again"
        )
    if (peak := float(np.abs(samples).max())) > LARGEST:
        raise AudioError(
            f"{what}: values up to {peak:.3g}, but sound lies in [-1, 1]; a damaged file, or one read in "
            "the wrong sample format: export it again"
        )


def check_rate(rate: int, what: str) -> None:
    """Refuse a sample rate that cannot be meant."""
    if not (LOWEST_RATE <= rate <= HIGHEST_RATE and rate == int(rate)):
        raise AudioError(
            f"{what}: the sample rate must be whole Hz from {LOWEST_RATE} to {HIGHEST_RATE}, got {rate}; "
            "kHz instead of Hz, or a damaged header?"
        )
