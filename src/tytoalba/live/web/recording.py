"""A few seconds of the live sound, kept in memory until they were learned or checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tytoalba.errors import AudioError
from tytoalba.live.inputs.input import Block, Input
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import FULL_SCALE, SILENCE_DB, Samples, pick_channels, resample, rms

LEAST_HEARD = 1.0
"""Seconds of sound, above silence, that a lesson needs."""
CLIPPED = 1e-3
"""Share of samples at full scale that spoils a lesson."""


@dataclass(frozen=True)
class Taken:
    """What was recorded. samples: (n_mics, n_samples) at the array's rate. heard: seconds with sound."""

    samples: Samples
    heard: float


class Recording:
    """Seconds of live sound as they come. `done` has what was recorded, or why there is nothing.

    on_heard: called with the seconds recorded so far and those with sound, from the thread of the sound.
    """

    def __init__(
        self, source: Input, array: MicArray, seconds: float, on_heard: Callable[[float, float], None]
    ) -> None:
        self.done: Future[Taken] = Future()
        self.heard = 0.0
        self._array, self._rate, self._on_heard = array, source.sample_rate, on_heard
        self._channels: Sequence[int] = pick_channels(source.n_channels, array, source.name)
        self._left = round(seconds * source.sample_rate)
        self._n_samples = 0
        self._blocks: list[Samples] = []

    def add(self, block: Block) -> None:
        """Take a block of the input."""
        if self.done.done():
            return
        if block.lost:
            self.fail("sound was lost while it was recorded, this machine was too slow; try again")
        elif not block.samples.size:
            if block.faults:
                self.fail(f"the sound stopped: {block.faults[0].text}")
        else:
            self._take(block.samples[list(self._channels), : self._left])

    def _take(self, samples: Samples) -> None:
        n = samples.shape[1]
        self._blocks.append(np.array(samples, np.float32))
        self._left -= n
        self._n_samples += n
        if _is_loud(samples):
            self.heard += n / self._rate
        self._on_heard(self._n_samples / self._rate, self.heard)
        if self._left <= 0:
            whole, self._blocks = np.concatenate(self._blocks, axis=1), []
            taken = Taken(resample(whole, self._rate, self._array.sample_rate), self.heard)
            with suppress(InvalidStateError):  # it was cancelled
                self.done.set_result(taken)

    def fail(self, why: str) -> None:
        """End without a result."""
        self._blocks = []
        with suppress(InvalidStateError):
            self.done.set_exception(AudioError(why))


class Tap:
    """An input that hands a copy of what it gives to whoever records."""

    def __init__(self, source: Input, hear: Callable[[Block], None]) -> None:
        self._source, self._hear = source, hear

    @property
    def name(self) -> str:
        """What people call it."""
        return self._source.name

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._source.sample_rate

    @property
    def n_channels(self) -> int:
        """Channels of its blocks."""
        return self._source.n_channels

    def blocks(self) -> Iterator[Block]:
        """The blocks of the input."""
        for block in self._source.blocks():
            self._hear(block)
            yield block

    def close(self) -> None:
        """Let go of it."""
        self._source.close()


def refuse_unfit(samples: Samples, array: MicArray, heard: float | None = None) -> None:
    """Refuse sound from which nothing good is learned. heard: seconds with sound, if they were counted."""
    if samples.shape[1] < array.frame_length:
        raise AudioError(
            f"{samples.shape[1] / array.sample_rate:.2f} s are too short to learn from; talk for 5 s"
        )
    if heard is None:
        heard = _seconds_heard(samples, array)
    if heard < LEAST_HEARD:
        raise AudioError(
            f"{heard:.1f} s of sound were heard, at least {LEAST_HEARD:g} are needed: is the microphone "
            "muted? Talk louder, or come closer"
        )
    clipped = float((np.abs(samples) >= FULL_SCALE).mean(axis=1).max())
    if clipped > CLIPPED:
        raise AudioError(
            f"{100 * clipped:.1f} % of the samples are clipped, which falsifies directions: lower the gain "
            "of the microphone, or talk from further away"
        )


def _seconds_heard(samples: Samples, array: MicArray) -> float:
    hop = array.frame_length // 2
    pieces = [samples[:, start : start + hop] for start in range(0, samples.shape[1], hop)]
    return sum(int(piece.shape[1]) for piece in pieces if _is_loud(piece)) / array.sample_rate


def _is_loud(samples: Samples) -> bool:
    return bool(20 * np.log10(float(rms(samples, axis=None)) + 1e-12) >= SILENCE_DB)
