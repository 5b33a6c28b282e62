"""Ctrl-C, SIGTERM and SIGHUP end in good order what would go on for ever: files whole, terminal sane."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@dataclass
class Stopped:
    """Which signal came, if any did."""

    signal: int = 0

    @property
    def code(self) -> int:
        """The exit code: 130 after Ctrl-C."""
        return 128 + self.signal if self.signal else 0


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[Stopped]:
    """Call `stop`, in a thread of its own, when a signal asks to end; a second Ctrl-C ends at once.

    Within a signal handler locks may be held by what it interrupted, so the handler only wakes that thread.
    Where handlers cannot be set, in another than the main thread, signals do what they always do.
    """
    found = Stopped()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    reading, writing = os.pipe()

    def note(number: int, _frame: FrameType | None) -> None:
        if found.signal and number == signal.SIGINT:
            raise KeyboardInterrupt
        found.signal = found.signal or number
        os.write(writing, b"s")

    def wait() -> None:
        if os.read(reading, 1) == b"s":
            stop()

    before = {number: signal.signal(number, note) for number in SIGNALS}
    waiting = threading.Thread(target=wait, name="waits for signals", daemon=True)
    waiting.start()
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.write(writing, b"e")
        waiting.join()
        os.close(reading)
        os.close(writing)
