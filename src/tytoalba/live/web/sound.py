"""The live sound: an input that is listened to in a thread of its own, and recorded on request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal

from tytoalba.errors import TytoError
from tytoalba.live.inputs.input import Block, Input
from tytoalba.live.listening import Listener
from tytoalba.live.outputs.output import Say
from tytoalba.live.segments import Moment
from tytoalba.live.tracking import Following
from tytoalba.live.update import Fault, Update
from tytoalba.live.web.recording import Recording, Tap
from tytoalba.live.web.refusals import Refusal, told

State = Literal["none", "waiting", "listening", "ended"]
ENDING = 5.0
"""Seconds in which the thread ends."""


class LiveSound:
    """An input that is listened to in a thread.

    following: who is there. live: whether the sound is of this moment, or from a file. say: tells people.
    """

    def __init__(
        self, source: Input, following: Following, *, live: bool = True, say: Say = lambda _: None
    ) -> None:
        self.source, self.live, self._array = source, live, following.array
        self._listener = Listener(Tap(source, self._hear), following, say=say)
        self.state: State = "waiting"
        self._faults: dict[str, tuple[Fault, ...]] = {}  # by who noticed
        self._recording: Recording | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._on_frame: Callable[[Update, Moment], None] = lambda *_: None
        self._on_change: Callable[[], None] = lambda: None
        self.on_unexpected: Callable[[BaseException], None] = lambda _: None

    def start(self, on_frame: Callable[[Update, Moment], None], on_change: Callable[[], None]) -> None:
        """Begin to listen. Both are called from the thread of the sound."""
        self._on_frame, self._on_change = on_frame, on_change
        self._thread = threading.Thread(target=self._run, name="tyto sound", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._end_recording("tyto serve was stopped")
        self._listener.stop()
        if self._thread is not None:
            self._thread.join(ENDING)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the sound now."""
        return tuple(dict.fromkeys(fault for some in self._faults.values() for fault in some))

    @property
    def told(self) -> dict[str, Any]:
        """As the page gets it."""
        faults = [{"kind": f.kind, "channels": list(f.channels), "text": f.text} for f in self.faults]
        return {"name": self.source.name, "live": self.live, "state": self.state, "faults": faults}

    def record(self, seconds: float, on_heard: Callable[[float, float], None]) -> Recording:
        """Begin to record; one at a time."""
        with self._lock:
            if self.state == "ended":
                raise Refusal(409, "the sound has ended: there is nothing to record")
            if self._recording is not None and not self._recording.done.done():
                raise Refusal(409, "something is being recorded already: wait until that has finished")
            self._recording = Recording(self.source, self._array, seconds, on_heard)
            return self._recording

    def _run(self) -> None:
        try:
            for update, moment in self._listener:
                self._set(self.state, listener=update.faults)
                self._on_frame(update, moment)
        except (TytoError, OSError) as error:
            self._set("ended", listener=(Fault("stopped", (), told(error)),), input=())
        except BaseException as error:
            self._set("ended", listener=(Fault("stopped", (), told(Exception())),), input=())
            self.on_unexpected(error)
        else:
            self._set("ended", input=())
        self._end_recording("the sound ended while it was recorded")

    def _end_recording(self, why: str) -> None:
        if self._recording is not None:
            self._recording.fail(why)

    def _hear(self, block: Block) -> None:
        there = bool(block.samples.size)
        self._set("listening" if there else "waiting", input=block.faults)
        if (recording := self._recording) is not None:
            recording.add(block)

    def _set(self, state: State, **faults: tuple[Fault, ...]) -> None:
        after = {**self._faults, **faults}
        if (state, after) != (self.state, self._faults):
            self.state, self._faults = state, after
            self._on_change()
