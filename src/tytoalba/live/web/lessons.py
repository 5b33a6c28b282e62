"""Lessons by speaking: record, learn, tell. One at a time, and the sound is gone when it is over."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from tytoalba.errors import TytoError
from tytoalba.live.web.recording import Recording, Taken, refuse_unfit
from tytoalba.live.web.refusals import Refusal, told
from tytoalba.live.web.station import Station
from tytoalba.live.web.stored import Changed
from tytoalba.signal.audio import Samples

State = Literal["recording", "learning", "done", "failed", "cancelled"]
PATIENCE = 10.0
"""Seconds beyond its length in which a recording must be complete."""
TELLING = 0.2
"""Seconds of sound between two messages of a recording."""
LONGEST_LESSON = 30.0
"""Seconds of a lesson by speaking."""


@dataclass
class Lesson:
    """A lesson that runs, or did.

    heard: seconds with sound so far. frames: learned. lesson: what to forget it by. digest, before: of the
    state, SHA-256 in hex.
    """

    id: str
    azimuth: float
    seconds: float
    who: str
    state: State = "recording"
    recorded: float = 0.0
    heard: float = 0.0
    frames: int = 0
    error: str | None = None
    lesson: str | None = None
    before: str | None = None
    digest: str | None = None

    @property
    def runs(self) -> bool:
        """Whether it is not over."""
        return self.state in ("recording", "learning")

    @property
    def told(self) -> dict[str, Any]:
        """As the page gets it."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return facts | {"recorded": round(self.recorded, 2), "heard": round(self.heard, 2)}


class Lessons:
    """The lesson that runs, and the last one."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self.last: Lesson | None = None
        self._task: asyncio.Task[None] | None = None
        self._recording: Recording | None = None
        self._cancelled = False

    @property
    def current(self) -> Lesson:
        """The lesson that runs; refused where there is none."""
        if self.last is None or not self.last.runs:
            raise Refusal(404, "no lesson runs; /api/lessons/last has the last one")
        return self.last

    def start(self, azimuth: float, seconds: float, who: str) -> Lesson:
        """Begin a lesson."""
        if why := self._station.stored.why_not_teach:
            raise Refusal(409, why)
        if self.last is not None and self.last.runs:
            raise Refusal(409, "a lesson runs already: wait until it is over, or cancel it")
        lesson = Lesson(secrets.token_hex(8), azimuth, seconds, who)
        self._recording = self._station.sound.record(
            seconds, lambda *so_far: self._station.soon(self._progress, lesson, *so_far)
        )
        self.last, self._cancelled = lesson, False
        self._tell(lesson)
        self._task = asyncio.create_task(self._run(lesson, self._recording))
        return lesson

    def cancel(self) -> Lesson:
        """Cancel the lesson that runs. One that is being learned is undone before it is written."""
        lesson, self._cancelled = self.current, True
        if self._recording is not None:
            self._recording.fail("cancelled")
        return lesson

    async def close(self) -> None:
        """Cancel what runs, and wait until it is over."""
        if self._task is not None and not self._task.done():
            self._cancelled = True
            if self._recording is not None:
                self._recording.fail("tyto serve was stopped")
            await asyncio.gather(self._task, return_exceptions=True)

    def _progress(self, lesson: Lesson, recorded: float, heard: float) -> None:
        if lesson.state != "recording":
            return
        due = recorded - lesson.recorded >= TELLING
        if due:
            lesson.recorded, lesson.heard = recorded, heard
            self._tell(lesson)

    async def _run(self, lesson: Lesson, recording: Recording) -> None:
        try:
            taken = await recorded(recording, lesson.seconds)
            lesson.state, lesson.recorded, lesson.heard = "learning", lesson.seconds, taken.heard
            self._tell(lesson)
            refuse_unfit(taken.samples, self._station.array, taken.heard)
            changed = await self._learned(taken.samples, lesson)
            lesson.before, lesson.digest, lesson.frames = changed.before, changed.digest, changed.n_frames
            (lesson.lesson,) = changed.lessons
            lesson.state = "done"
        except Exception as error:
            if not isinstance(error, TytoError):
                self._station.unexpected(error)
            lesson.state = "cancelled" if self._cancelled else "failed"
            lesson.error = None if self._cancelled else told(error)
        finally:
            self._recording = None
            self._tell(lesson)

    async def _learned(self, samples: Samples, lesson: Lesson) -> Changed:
        stored = self._station.stored
        return await asyncio.to_thread(
            stored.teach, samples, lesson.azimuth, lesson.who, lambda: self._cancelled
        )

    def _tell(self, lesson: Lesson) -> None:
        self._station.fanout.tell({"type": "lesson", **lesson.told})


async def recorded(recording: Recording, seconds: float) -> Taken:
    """What is recorded, once it is."""
    try:
        async with asyncio.timeout(seconds + PATIENCE):
            return await asyncio.wrap_future(recording.done)
    except TimeoutError:
        recording.fail("no sound came")
        raise Refusal(409, "no sound came: is the microphone connected?") from None
