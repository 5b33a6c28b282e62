"""Takes to check an array by talking: a few seconds from known directions, in memory only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tytoalba.errors import TytoError
from tytoalba.live.web.lessons import TELLING, recorded
from tytoalba.live.web.recording import LEAST_HEARD, Recording, Taken
from tytoalba.live.web.refusals import Refusal, told
from tytoalba.live.web.station import Station

MOST_TAKES, LONGEST_TAKE = 8, 10.0
"""How many are kept, and seconds of one."""


@dataclass(frozen=True)
class Take:
    """Sound from a direction in degrees; None: nobody knows where from."""

    number: int
    azimuth: float | None
    taken: Taken
    seconds: float

    @property
    def told(self) -> dict[str, Any]:
        """As the page gets it, without the sound."""
        return {
            "id": self.number,
            "azimuth": self.azimuth,
            "seconds": self.seconds,
            "heard": round(self.taken.heard, 2),
        }


class Takes:
    """What was taken so far."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._takes: list[Take] = []
        self._n_begun = 0
        self._recording: Recording | None = None
        self._task: asyncio.Task[None] | None = None
        self._told = 0.0
        self._checking = False

    @property
    def told(self) -> dict[str, Any]:
        """The takes, and whether one is being recorded."""
        runs = self._recording is not None
        return {"takes": [take.told for take in self._takes], "recording": runs, "most": MOST_TAKES}

    def start(self, azimuth: float | None, seconds: float) -> int:
        """Begin to record one; its number."""
        if self._station.parts.check is None:
            raise Refusal(409, "this server cannot check arrays")
        if self._recording is not None:
            raise Refusal(409, "a take is being recorded already: wait until it is over")
        if len(self._takes) >= MOST_TAKES:
            raise Refusal(409, f"there are {MOST_TAKES} takes already: check them, or drop them")
        number = self._n_begun + 1
        about = {"id": number, "azimuth": azimuth, "seconds": seconds}
        self._recording = self._station.sound.record(
            seconds, lambda *so_far: self._station.soon(self._progress, about, *so_far)
        )
        self._n_begun, self._told = number, 0.0
        self._tell(about, "recording", 0.0, 0.0)
        self._task = asyncio.create_task(self._run(about, self._recording))
        return number

    def drop(self) -> int:
        """Forget all of them, and the one that is being recorded; how many there were."""
        n_takes, self._takes = len(self._takes), []
        if self._recording is not None:
            self._recording.fail("the take was dropped")
        return n_takes

    async def close(self) -> None:
        """Drop all, and wait until what runs is over."""
        self.drop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def check(self) -> dict[str, Any]:
        """What is wrong with how the array is wired or mounted, by the takes."""
        check, takes = self._station.parts.check, list(self._takes)
        if check is None:
            raise Refusal(409, "this server cannot check arrays")
        if not takes:
            raise Refusal(409, "there is no take yet: record some, at directions that are known")
        if self._checking:
            raise Refusal(409, "the takes are being checked already: wait for that answer")
        self._checking = True
        try:
            given = [(take.taken.samples, take.azimuth) for take in takes]
            return await asyncio.to_thread(check, given, self._station.array)
        finally:
            self._checking = False

    def _progress(self, about: dict[str, Any], seconds: float, heard: float) -> None:
        if self._recording is not None and seconds - self._told >= TELLING:
            self._told = seconds
            self._tell(about, "recording", seconds, heard)

    async def _run(self, about: dict[str, Any], recording: Recording) -> None:
        error: str | None = None
        taken: Taken | None = None
        try:
            taken = await recorded(recording, about["seconds"])
            if taken.heard < min(LEAST_HEARD, about["seconds"] / 2):
                raise Refusal(400, f"only {taken.heard:.1f} s of sound were heard: is the microphone muted?")
            self._takes.append(Take(about["id"], about["azimuth"], taken, about["seconds"]))
        except Exception as problem:
            if not isinstance(problem, TytoError):
                self._station.unexpected(problem)
            error = told(problem)
        finally:
            self._recording = None
            heard = taken.heard if taken else 0.0
            self._tell(about, "failed" if error else "done", about["seconds"], heard, error)

    def _tell(
        self, about: dict[str, Any], state: str, recorded: float, heard: float, error: str | None = None
    ) -> None:
        progress = {"state": state, "recorded": round(recorded, 2), "heard": round(heard, 2), "error": error}
        self._station.fanout.tell({"type": "take", **about, **progress, "n_takes": len(self._takes)})
