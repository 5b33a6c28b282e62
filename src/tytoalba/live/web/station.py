"""All that is served, in one place: the sound, the localizer, who listens on the live channel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tytoalba import __version__
from tytoalba.live.segments import Moment
from tytoalba.live.tracking import Following
from tytoalba.live.update import Update
from tytoalba.live.web.doa import Doa
from tytoalba.live.web.fanout import Fanout
from tytoalba.live.web.messages import update_message
from tytoalba.live.web.pages import File
from tytoalba.live.web.refusals import Refusal
from tytoalba.live.web.sound import LiveSound
from tytoalba.live.web.stored import Stored
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import Samples

Check = Callable[[Sequence[tuple[Samples, float | None]], MicArray], dict[str, Any]]
"""`tyto check` on sound (n_mics, n_samples), each with its azimuth in degrees or None."""
NO_SOUND: dict[str, Any] = {"name": "none", "live": False, "state": "none", "faults": []}


@dataclass(frozen=True)
class Parts:
    """What a station is made of.

    following: hears the sound, and is given each localizer that was taught. sound: None without an input.
    stored: None where only an array is known. check: None where it cannot be checked. report: a page.
    """

    following: Following
    method: str | None = None
    sound: LiveSound | None = None
    stored: Stored | None = None
    check: Check | None = None
    report: File | None = None


class Station:
    """What the routes ask. say: tells people at the terminal a line."""

    def __init__(self, parts: Parts, say: Callable[[str], None], *, needs_token: bool = False) -> None:
        self.parts, self.say, self._needs_token = parts, say, needs_token
        self.array = parts.following.array
        self.fanout, self.doa = Fanout(), Doa()
        self.newest: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        if parts.stored is not None:
            parts.stored.on_change = parts.following.use

    @property
    def localizer(self) -> Localizer | None:
        """What locates, if it is more than an array."""
        return None if self.parts.stored is None else self.parts.stored.localizer

    @property
    def sound(self) -> LiveSound:
        """The live sound; refused where there is none."""
        if self.parts.sound is None:
            raise Refusal(409, "there is no live sound here: start tyto serve with --device or --from")
        return self.parts.sound

    @property
    def stored(self) -> Stored:
        """The localizer's file; refused where there is none."""
        if self.parts.stored is None:
            raise Refusal(404, self._why_not_teach() or "")
        return self.parts.stored

    async def start(self) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        self.tell_state()
        if (sound := self.parts.sound) is not None:
            sound.on_unexpected = self.unexpected
            sound.start(self._from_sound, lambda: self.soon(self.tell_state))

    async def stop(self) -> None:
        """Stop listening; what comes later is not handed over."""
        if self.parts.sound is not None:
            await asyncio.to_thread(self.parts.sound.close)

    def unexpected(self, error: BaseException) -> None:
        """Say at the terminal what nobody expected."""
        self.say(f"unexpected: {type(error).__name__}: {error}")

    def soon(self, do: Callable[..., None], *arguments: Any) -> None:
        """Do something in the event loop, from any thread."""
        assert self._loop
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do, *arguments)

    def _from_sound(self, update: Update, moment: Moment) -> None:
        self.soon(self._hand_out, update, json.dumps(update_message(update, moment), allow_nan=False))

    def _hand_out(self, update: Update, text: str) -> None:
        self.newest = text
        self.doa.hear(update)
        self.fanout.put(text)

    def tell_state(self) -> None:
        """Tell all pages what is here."""
        self.fanout.tell({"type": "state", **self.state()}, keep=True)

    def state(self) -> dict[str, Any]:
        """What is here."""
        array, why = self.array, self._why_not_teach()
        return {
            "version": __version__,
            "needs_token": self._needs_token,
            "array": {
                "name": array.name,
                "n_mics": array.n_mics,
                "sample_rate": array.sample_rate,
                "positions": array.coordinates.tolist(),
                "ambiguities": list(array.ambiguities),
            },
            "input": self.parts.sound.told if self.parts.sound else NO_SOUND,
            "localizer": None if self.parts.stored is None else self.parts.stored.name,
            "can_teach": why is None,
            "why_not_teach": why,
            "report": self.parts.report is not None,
        }

    def _why_not_teach(self) -> str | None:
        if self.parts.stored is None:
            return "only an array was given: `tyto new` makes a localizer, --model serves it"
        return self.parts.stored.why_not_teach
