"""Inputs for tests: blocks that were made before, and a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tytoalba.live.inputs.input import Block
from tytoalba.live.update import Fault

GONE = Fault("unplugged", (), "the device is gone; plug it in again")


class Clock:
    """Seconds, as somebody sets them."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class FakeInput:
    """Blocks one after another; where they say when they arrived, the clock is set to that."""

    def __init__(
        self, blocks: Sequence[Block], sample_rate: int, clock: Clock | None = None, *, n_channels: int = 4
    ) -> None:
        self._blocks, self.sample_rate, self.n_channels = blocks, sample_rate, n_channels
        self.name, self.closed, self._clock = "a fake input", 0, clock

    def blocks(self) -> Iterator[Block]:
        for block in self._blocks:
            if self.closed:
                return
            if self._clock is not None and block.arrived is not None:
                self._clock.now = block.arrived
            yield block

    def close(self) -> None:
        self.closed += 1


def blocks_of(
    sound: NDArray[np.float32], sample_rate: int, *, began: float | None = None, size: int = 341
) -> list[Block]:
    """Sound (n_channels, n) as blocks that come at its own speed; began: seconds; None: as no live sound."""
    found = []
    for start in range(0, sound.shape[1], size):
        piece = sound[:, start : start + size]
        arrived = None if began is None else began + (start + piece.shape[1]) / sample_rate
        found.append(Block(piece, arrived))
    return found


def no_sound(n_channels: int, arrived: float, *faults: Fault) -> Block:
    """What an input gives while its device is gone."""
    return Block(np.zeros((n_channels, 0), np.float32), arrived, faults=faults or (GONE,))
