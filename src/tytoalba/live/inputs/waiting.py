"""Sound that waits to be taken: bounded, the oldest is dropped and counted."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Piece:
    """What came at once: samples (n_channels, any length) and when, by `time.monotonic()`."""

    samples: NDArray[np.float32]
    arrived: float


class Waiting:
    """A queue of pieces, from one thread to another. rate: Hz. seconds: of sound that it holds at most."""

    def __init__(self, rate: int, seconds: float) -> None:
        self._rate, self._seconds = rate, seconds
        self._pieces: deque[tuple[int, Piece]] = deque()  # samples lost before it, and the piece
        self._n = self._lost = 0
        self._changed = threading.Condition()
        self.last: float | None = None
        """When something came last."""

    def put(self, piece: Piece, overflow: bool) -> None:
        """Queue a piece. overflow: some sound was lost just before it, how much is told by the time."""
        n = piece.samples.shape[1]
        with self._changed:
            lost = 0
            if overflow:
                passed = 0.0 if self.last is None else (piece.arrived - self.last) * self._rate
                lost = max(n, round(passed) - n)
            self.last = piece.arrived
            self._pieces.append((lost, piece))
            self._n += n
            while self._n > self._seconds * self._rate and len(self._pieces) > 1:
                before, oldest = self._pieces.popleft()
                self._n -= oldest.samples.shape[1]
                self._lost += before + oldest.samples.shape[1]
            self._changed.notify()

    def take(self, timeout: float) -> tuple[list[Piece], int]:
        """What waits, up to the next loss, and the samples lost before it; nothing after so many seconds."""
        with self._changed:
            if not self._pieces:
                self._changed.wait(timeout)
            taken: list[Piece] = []
            lost, self._lost = self._lost, 0
            while self._pieces and (not taken or not self._pieces[0][0]):
                before, piece = self._pieces.popleft()
                lost += before
                taken.append(piece)
                self._n -= piece.samples.shape[1]
            return taken, lost

    def wake(self) -> None:
        """Let who waits go on."""
        with self._changed:
            self._changed.notify_all()
