"""A lesson as a state takes it: gathered block by block, known by a keyed digest, no larger than its sums.

However long a recording is, no more of it is in memory than a block of frames and either the rows of the
lesson or, where these are smaller, its sums. The digest is of rows in the order of frames, so that it does
not depend on the blocks; front ends of version 1 took all features first, and need the whole lesson for it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.phases import Phase
from tytoalba.learning.tyto import Lesson, Sums, Tyto
from tytoalba.localizer.offsets import Offsets, Tally

AT_ONCE = 512
"""Frames whose rows are in memory together."""


class Gathered(NamedTuple):
    """A lesson: its name, frames, and what to add or take away, rows or sums, whichever is smaller.

    release: what it adds to the sums for releases.
    """

    name: str
    n_frames: int
    part: Lesson | Sums
    release: Offsets


def gather(learner: Tyto, phases: Phase | Iterable[Phase], seed: int, frontend: int) -> Gathered:
    """All frames of the phases as one lesson; frames without a source are refused."""
    given = [phases] if isinstance(phases, Phase) else phases
    if frontend == 1:
        given = [_joined(list(given))]
    name, parts, tally, n_frames = _Name(seed, frontend), _Parts(learner), Tally(), 0
    by_frame = frontend != 1
    for phase in given:
        for some in _cut(phase) if by_frame else [phase]:
            lesson = learner.lesson(some, by_frame)
            if not np.isfinite(some.azimuth).any(axis=1).all():
                raise TytoError(NEEDED)
            name.add(lesson)
            parts.add(lesson)
            tally.add(lesson.Y[learner.plain_rows(len(some), by_frame)])
            n_frames += len(some)
    if not n_frames:
        raise TytoError(NEEDED)
    return Gathered(name.text(), n_frames, parts.smaller(), tally.offsets())


NEEDED = "a lesson needs frames, and each of them a source; leave the silent ones out"


def lesson_name(lesson: Lesson, seed: int, frontend: int) -> str:
    """By what a lesson is known again: a digest of its rows that only who has the seed can compute."""
    name = _Name(seed, frontend)
    name.add(lesson)
    return name.text()


class _Name:
    """The digest of a lesson that comes in parts; of version 1 only as a whole."""

    def __init__(self, seed: int, frontend: int) -> None:
        key = hashlib.sha256(b"tytoalba lesson" + int(seed).to_bytes(8, "big")).digest()
        self._found = hmac.new(key, digestmod=hashlib.sha256)
        self._by_frame = frontend != 1
        self._counts: NDArray[np.int64] | None = None

    def add(self, lesson: Lesson) -> None:
        if self._by_frame:
            for first in range(0, len(lesson.H), AT_ONCE):
                rows = slice(first, first + AT_ONCE)
                self._found.update(np.concatenate([lesson.H[rows], lesson.Y[rows]], axis=1).tobytes())
        else:
            for values in (lesson.H, lesson.Y):
                self._found.update(np.ascontiguousarray(values).tobytes())
        self._counts = lesson.counts if self._counts is None else self._counts + lesson.counts

    def text(self) -> str:
        if self._counts is not None:
            self._found.update(np.ascontiguousarray(self._counts).tobytes())
        return self._found.hexdigest()[:32]


class _Parts:
    """Rows as long as they are smaller than their sums, then sums."""

    def __init__(self, learner: Tyto) -> None:
        self._learner = learner
        self._rows: list[Lesson] = []
        self._sums: Sums | None = None

    def add(self, lesson: Lesson) -> None:
        self._rows.append(lesson)
        n_rows, (D, C) = sum(len(part.H) for part in self._rows), (lesson.H.shape[1], lesson.Y.shape[1])
        if self._sums is not None or n_rows * (D + C) > 8 * (D * (D + 1) // 2 + D * C):
            for part in self._rows:
                self._sums = self._learner.sums(part, self._sums)
            self._rows = []

    def smaller(self) -> Lesson | Sums:
        if self._sums is not None:
            return self._sums
        H, Y, counts = zip(*self._rows, strict=True)
        return Lesson(np.concatenate(H), np.concatenate(Y), np.sum(counts, axis=0, dtype=np.int64))


def _cut(phase: Phase) -> Iterator[Phase]:
    for first in range(0, max(1, len(phase)), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        yield Phase(phase.X[rows], phase.azimuth[rows], phase.directions)


def _joined(phases: list[Phase]) -> Phase:
    if len(phases) == 1:
        return phases[0]
    if not phases:
        raise TytoError(NEEDED)
    X, azimuth = (np.concatenate([getattr(p, name) for p in phases]) for name in ("X", "azimuth"))
    return Phase(X, azimuth, np.unique(np.concatenate([phase.directions for phase in phases])))
