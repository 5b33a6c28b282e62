"""The background learned by itself: from moments in which nobody seems to talk.

Speech rises and falls, a fan does not. Where the level hardly changes for almost half a second, and is about
the lowest of late, frames are taken for background. Should it get quieter later, somebody was talking after
all, and what was louder counts no more.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from tytoalba.live.background import Background
from tytoalba.signal.angles import N_DIRECTIONS, Float

STEADY = 0.4
"""Seconds for which the level must hardly change."""
CHANGE = 3.0
"""dB by which it may change in that time."""
ABOVE = 4.0
"""dB above the lowest level of late up to which a frame may be background."""
RISE = 0.6
"""dB per second by which the lowest level is forgotten: rooms get louder, too."""
MEMORY = 100
"""Frames that are remembered: 8.5 seconds of background."""


class OwnBackground:
    """Listens for moments without talkers, and keeps their scores.

    Chosen on validation scenes, as `Settings`; also on those begun in the middle of talk.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float, Float]] = deque()  # time, level, scores
        self._floor = self._last = np.inf
        self._levels = np.full(MEMORY, np.inf)
        self._scores = np.zeros((MEMORY, N_DIRECTIONS))
        self._n = 0  # frames ever kept
        self._kept = -np.inf  # time of the last of them

    def hear(self, scores: Float | None, level: float, time: float) -> None:
        """Take a frame: scores (360,), None in silence; level in dB; time in seconds, of its middle."""
        passed, self._last = max(time - self._last, 0.0), time
        self._floor += RISE * passed
        if scores is None:  # a muted microphone is no quiet room
            self._recent.clear()
            return
        self._floor = min(self._floor, level)
        self._recent.append((time, level, scores))
        while time - self._recent[0][0] > STEADY + 0.05:
            self._recent.popleft()
        levels = [one[1] for one in self._recent]
        if time - self._recent[0][0] >= STEADY and max(levels) - min(levels) <= CHANGE:
            for one in self._recent:
                self._keep(*one)

    def _keep(self, time: float, level: float, scores: Float) -> None:
        if time <= self._kept:
            return
        place = self._n % MEMORY
        self._levels[place], self._scores[place] = level, np.where(np.isfinite(scores), scores, 0.0)
        self._n, self._kept = self._n + 1, time

    @property
    def background(self) -> Background:
        """What is known: the mean of the frames that are still taken for background, maybe none."""
        quiet = self._levels <= self._floor + ABOVE
        n_frames = int(quiet.sum())
        return Background(self._scores[quiet].sum(axis=0) / max(n_frames, 1), n_frames)
