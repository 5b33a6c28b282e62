"""How talkers are followed: one set of numbers for all arrays and methods, each explained in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tytoalba.errors import TytoError

HOP = 4096 / 48000
"""Seconds between frames; settings that are per frame mean such frames."""
POSITIVE = ("drift", "stride", "sharpness", "place", "trust", "talk", "pause", "memory", "near", "merge")


@dataclass(frozen=True)
class Settings:
    """How talkers are followed. One set for all arrays and methods, chosen on validation scenes.

    Parameters
    ----------
    drift : float
        Degrees that a talker may move from one frame to the next (85 ms), one standard deviation. More
        follows faster walkers, and is less steady for those who stand.
    lead : float
        How fast the speed of a walker is learned, 0 to 1; 0: everybody is expected where he was.
    stride : float
        Seconds for which somebody who is not heard is expected to walk on.
    sharpness : float
        How much the top of a peak counts more than its sides: the power of the scores.
    even : float
        Chance of a peak that speaks neither for nor against a talker. Peaks above it confirm, peaks below it
        count against.
    place : float
        How much it counts for a peak to be where the talker is expected, 0 to 1.
    trust : float
        How much one frame counts, 0 to 1. Frames overlap and echoes last, so they are no independent
        witnesses.
    most : float
        Factor by which a single frame can change the odds at most: one loud frame makes no talker.
    missed : float
        How likely a talker who talks has no peak in a frame.
    born : float
        Chance that a peak which nobody explains is somebody new.
    shown : float
        Probability from which a talker is reported; he then stays so as long as it is more than a half.
    kept : float
        Probability below which a talker is forgotten for good. Before that, he gets his identity back when
        he talks again.
    talk : float
        Seconds that somebody usually talks before a pause.
    pause : float
        Seconds that a pause usually lasts.
    memory : float
        Seconds after which a silent talker is believed to have left, on average.
    near : float
        Degrees within which two talkers cannot be told apart: there nobody new is born.
    merge : float
        Seconds after which two that stay that near become one, the older.
    """

    drift: float = 4.0
    lead: float = 0.1
    stride: float = 1.0
    sharpness: float = 1.0
    even: float = 0.4
    place: float = 0.25
    trust: float = 1.0
    most: float = 16.0
    missed: float = 0.5
    born: float = 0.1
    shown: float = 0.7
    kept: float = 0.02
    talk: float = 8.0
    pause: float = 1.5
    memory: float = 6.0
    near: float = 12.0
    merge: float = 4.0

    def __post_init__(self) -> None:
        for name in ("even", "missed", "born", "shown", "kept"):
            if not 0 < getattr(self, name) < 1:
                raise TytoError(f"{name} must be a chance between 0 and 1, got {getattr(self, name)}")
        for name in POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise TytoError(f"{name} must be a positive number, got {getattr(self, name)}")
        if not 0 <= self.lead <= 1:
            raise TytoError(f"lead must be from 0 to 1, got {self.lead}")
        if not self.most > 1 or not self.kept < min(self.born, self.shown):
            raise TytoError("most must be above 1, and kept below born and shown")
        if self.twice >= self.shown:
            raise TytoError(
                f"a sound that is in two frames alone, which overlap, would be reported: its probability "
                f"reaches {self.twice:.2f}; make born or most smaller, or shown larger"
            )

    @property
    def twice(self) -> float:
        """Probability of a talker after two frames at most: a click is in two frames, which overlap."""
        return self.born * self.most / (1 - self.born + self.born * self.most)
