"""The mean of a frame and its neighbours, frame by frame as they come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tytoalba.signal.angles import Float


class Mean(NamedTuple):
    """Averaged maps of a frame, None in silence, and of how many frames they are the mean."""

    maps: Float | None
    n: int


class Neighbours:
    """Maps averaged over the frames with sound at most `context` before or after.

    A frame is its maps (n_maps, 360), None in silence. What `add` gives is `context` frames late.
    """

    def __init__(self, context: int) -> None:
        self.context = context
        self._held: list[Float | None] = []
        self._done = 0  # frames of `_held` that were given

    def add(self, frames: Iterable[Float | None]) -> list[Mean]:
        """Take frames; give those whose neighbours are all known."""
        ready = []
        for frame in frames:
            self._held.append(frame)
            if len(self._held) > self._done + self.context:
                ready.append(self._average(self._done))
                self._done += 1
                if self._done > self.context:
                    self._held, self._done = self._held[1:], self.context
        return ready

    def rest(self) -> list[Mean]:
        """The frames that have fewer neighbours after them; then it is as new."""
        ready = [self._average(number) for number in range(self._done, len(self._held))]
        self._held, self._done = [], 0
        return ready

    def _average(self, number: int) -> Mean:
        window = self._held[max(0, number - self.context) : number + self.context + 1]
        loud = [maps for maps in window if maps is not None]
        own = self._held[number]
        if own is None or len(loud) == 1:
            return Mean(own, 1)
        return Mean(np.asarray(np.mean(loud, axis=0, dtype=own.dtype)), len(loud))
