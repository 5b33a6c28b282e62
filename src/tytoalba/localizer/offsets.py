"""By how many degrees a device hears sound beside where it is: eight whole numbers for each lesson.

Microphones that are not where the drawing has them turn and bend the directions that the prior finds. Far
sound from the opposite side arrives with opposite delays, so this offset has a period of 180 degrees:

    offset(t) = c0 + c1 cos 2t + c2 sin 2t        (degrees, t: where the sound really is)

A taught frame shows it: the prior's highest score near the taught direction lies `offset` beside it. The
coefficients follow from sums over frames by least squares, and a release needs no more than these sums:

    v = sum of offset times (1, cos 2t, sin 2t),    a = sum of (1, cos 2t, sin 2t, cos 4t, sin 4t)

Every lesson counts the same however long it is: its sums are divided by their number. Offsets and cosines
are whole numbers of known range, so a lesson's eight numbers have a length of at most `BOUND`, whatever was
taught. They are added when a lesson is taught and the same numbers are taken away when it is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Float = NDArray[np.floating]

N_COEFFICIENTS, N_SUMS = 3, 8
REACH = 12
"""Degrees around a taught direction within which the prior's peak is looked for: more let single lessons
weigh more, fewer see less. It, COUNT and SURE were chosen in trials of seven settings, which hardly differed,
on a simulated Pepper off its drawing, in test rooms of the twin, by another seed than `tyto bench releases`.
"""
SURE = 38
"""Of 127: a lower peak is none."""
TAUGHT = 100
"""Of 127: labels have their directions at peaks above this."""
STEPS, COUNT, MEAN = 32, 8, 32
"""What stands for 1: in the cosines, in the sums a besides, and in the mean over a lesson."""


def _tables() -> tuple[Whole, Whole]:
    """Cosines and sines of each degree, (360, 3) for v and (360, 5) for a."""
    degree = np.deg2rad(np.arange(360.0))
    waves = [np.ones(360), *(wave(k * degree) for k in (2, 4) for wave in (np.cos, np.sin))]
    whole = np.rint(STEPS * np.stack(waves, axis=1)).astype(np.int64)
    return whole[:, :N_COEFFICIENTS], whole


V_TABLE, A_TABLE = _tables()


def _bound() -> int:
    """Most that the eight numbers of a lesson can be long: a mean is no longer than its longest part.

    The longest part is at some degree t with an offset of REACH. Times MEAN, and rounded down: each of the
    eight numbers moves by less than 1.
    """
    longest = (REACH**2 * (V_TABLE**2).sum(axis=1) + COUNT**2 * (A_TABLE**2).sum(axis=1)).max()
    return isqrt(MEAN**2 * int(longest) - 1) + 1 + isqrt(N_SUMS - 1) + 1


BOUND = _bound()
"""L2 norm of what one lesson, or one frame, adds to the sums: at most this."""


class Offsets(NamedTuple):
    """Sums (8,): of lessons, each counted once, and of frames, each counted once; int64."""

    lessons: Whole
    frames: Whole

    @classmethod
    def none(cls) -> Offsets:
        """Of nothing taught."""
        return cls(np.zeros(N_SUMS, np.int64), np.zeros(N_SUMS, np.int64))

    def plus(self, other: Offsets, sign: int = 1) -> Offsets:
        """These and (sign = -1: without) the others."""
        return Offsets(self.lessons + sign * other.lessons, self.frames + sign * other.frames)


@dataclass
class Tally:
    """The offsets of one lesson, from blocks of its rows in any sizes."""

    total: Whole = field(default_factory=lambda: np.zeros(N_SUMS, np.int64))
    frames: Whole = field(default_factory=lambda: np.zeros(N_SUMS, np.int64))
    seen: int = 0

    def add(self, Y: NDArray[np.int8]) -> None:
        """Rows as seen from the plain side: labels and the prior's scores, (n_frames, 2 x 360), 0 to 127.

        A learner without a prior's scores in its rows has no offsets.
        """
        if Y.shape[1] != 720 or not len(Y):
            return
        frame, degree, off = _observed(Y[:, :360], Y[:, 360:])
        parts = np.concatenate([off[:, None] * V_TABLE[degree], COUNT * A_TABLE[degree]], axis=1)
        self.total = self.total + parts.sum(axis=0)
        self.seen += len(parts)
        of_frame = np.zeros((len(Y), N_SUMS), np.int64)
        np.add.at(of_frame, frame, parts)
        n = np.bincount(frame, minlength=len(Y))[:, None]
        self.frames = self.frames + (MEAN * of_frame // np.maximum(n, 1)).sum(axis=0)

    def offsets(self) -> Offsets:
        """What the lesson adds; nothing where no frame shows an offset."""
        return Offsets(MEAN * self.total // max(self.seen, 1), self.frames)


def offsets_of(Y: NDArray[np.int8]) -> Offsets:
    """What a lesson of these rows adds: see `Tally.add`."""
    tally = Tally()
    tally.add(Y)
    return tally.offsets()


def _observed(labels: NDArray[np.int8], scores: NDArray[np.int8]) -> tuple[Whole, Whole, Whole]:
    """Frame, degree and offset of every taught direction whose peak is seen.

    Left out: directions with another one so near that the peak may be its, and peaks that are too low.
    """
    left, right = np.roll(labels, 1, axis=1), np.roll(labels, -1, axis=1)
    frame, degree = np.nonzero((labels >= TAUGHT) & (labels > left) & (labels >= right))
    taught = np.zeros(labels.shape, np.int64)
    taught[frame, degree] = 1
    around = np.arange(-2 * REACH, 2 * REACH + 1)
    alone = taught[frame[:, None], (degree[:, None] + around) % 360].sum(axis=1) == 1
    frame, degree = frame[alone], degree[alone]
    near = scores[frame[:, None], (degree[:, None] + np.arange(-REACH, REACH + 1)) % 360]
    sure = near.max(axis=1, initial=0) >= SURE
    off = near.argmax(axis=1) - REACH if len(near) else np.zeros(0, np.int64)
    return frame[sure], degree[sure], off[sure].astype(np.int64)


def clipped(sums: Whole, most: int) -> Whole:
    """Sums (8,) that are at most this long, in the same direction: scaled down and rounded towards zero."""
    values = [int(value) for value in sums]
    square = sum(value * value for value in values)
    if square <= most * most:
        return sums
    length = isqrt(square - 1) + 1
    return np.array([(-1 if v < 0 else 1) * (abs(v) * most // length) for v in values], np.int64)


def offset_curve(coefficients: Float) -> Float:
    """offset(t) in degrees, (360,), of coefficients (3,).

    >>> offset_curve(np.array([3.0, 1.0, 0.0]))[[0, 90, 180]].round(6).tolist()
    [4.0, 2.0, 4.0]
    """
    twice = np.deg2rad(2.0 * np.arange(360.0))
    c0, c1, c2 = coefficients
    return np.asarray(c0 + c1 * np.cos(twice) + c2 * np.sin(twice))


def moved(maps: NDArray[np.float32], curve: NDArray[np.floating]) -> NDArray[np.float32]:
    """Maps (n_frames, 360) of a device whose directions are off by `curve` (360,), in degrees, put right.

    The score of t is the one found at t + curve(t), between two degrees in proportion.

    >>> moved(np.eye(360, dtype=np.float32)[[100]], np.full(360, 2.0)).argmax()
    np.int64(98)
    """
    at = (np.arange(360.0) + curve) % 360.0
    low = np.floor(at)
    part = (at - low).astype(np.float32)
    index = low.astype(np.intp) % 360
    return np.asarray(maps[:, index] * (1 - part) + maps[:, (index + 1) % 360] * part, np.float32)
