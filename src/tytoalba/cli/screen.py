"""The terminal as a screen: drawn anew some times a second without flicker, and left as it was found."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from tytoalba.cli.console import say
from tytoalba.cli.picture import SHOWN, View, picture

if TYPE_CHECKING:
    from tytoalba.live.segments import Moment
    from tytoalba.live.tracker import Track
    from tytoalba.live.update import Update

FASTEST = 1 / 12
"""Seconds between two pictures, at least."""
REPAIRED = 2.0
"""Seconds until all is drawn anew: PortAudio and others write across it when a card is unplugged."""
REMARKED = 10.0
"""Seconds that a remark stays on the screen."""
MOST_REMARKS = 20
"""Remarks that are said again when the screen is left."""
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
"""Another screen than that of the shell, no cursor, no line goes on in the next one, all empty."""
LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
AT_ONCE, DONE = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know it show what is between these at once."""


class Screen:
    """Updates on a terminal. title: its first line; clock: seconds.

    `say` is for any thread, all else for one; remarks, and warnings of Python, are shown in the picture, and
    said again on standard error at the end. Ctrl-Z leaves the screen, and `fg` enters it again.
    """

    def __init__(
        self, title: str, target: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._title, self._clock = title, clock
        self._descriptor = (target or sys.stdout).fileno()
        self._colour = "NO_COLOR" not in os.environ
        self._past: deque[tuple[float, tuple[Track, ...]]] = deque()
        self._remarks: deque[str] = deque(maxlen=MOST_REMARKS)
        self._remarked = self._drawn = self._whole = -60.0
        self._size = (0, 0)
        self._lines: list[str] = []
        self._open = True
        self._warned = warnings.showwarning
        warnings.showwarning = self._warn
        self._before: Any = None
        self._handles = hasattr(signal, "SIGTSTP") and (threading.current_thread() is threading.main_thread())
        if self._handles:
            self._before = signal.signal(signal.SIGTSTP, self._suspend)
        self._write(ENTER)

    def tell(self, update: Update, moment: Moment) -> None:
        """Draw a frame, if it is time."""
        self._past.append((update.time, update.tracks))
        while self._past[0][0] < update.time - SHOWN:
            self._past.popleft()
        now = self._clock()
        if now - self._drawn < FASTEST:
            return
        self._drawn = now
        if now - self._whole >= REPAIRED:
            self._whole, self._lines = now, []
        remark = self._remarks[-1] if self._remarks and now - self._remarked < REMARKED else ""
        self._draw(View(self._title, update, moment.scores, self._past, remark))

    def say(self, message: str) -> None:
        """Show a remark for a while; it is said again at the end."""
        self._remarks.append(message)
        self._remarked = self._clock()

    def close(self) -> None:
        """Leave the terminal as it was, and say the remarks."""
        if not self._open:
            return
        self._open = False
        warnings.showwarning = self._warned
        if self._handles:
            signal.signal(signal.SIGTSTP, self._before)
        with suppress(OSError):  # the terminal is gone
            self._write(LEAVE)
        for remark in self._remarks:
            say(remark)

    def _draw(self, view: View) -> None:
        """Write the lines that have changed."""
        size = os.get_terminal_size(self._descriptor) if os.isatty(self._descriptor) else _size()
        width, height = max(size[0] - 1, 1), max(size[1], 1)
        lines = picture(view, width, height).lines(self._colour)
        anew = (width, height) != self._size
        changed = [
            f"\x1b[{row + 1};1H{line}\x1b[K"
            for row, line in enumerate(lines)
            if anew or row >= len(self._lines) or line != self._lines[row]
        ]
        self._size, self._lines = (width, height), lines
        clear = "\x1b[2J" if anew else ""
        self._write("".join((AT_ONCE, clear, *changed, DONE)))

    def _write(self, text: str) -> None:
        """To the terminal itself: a signal may come while this runs, and Python's files allow no second."""
        data = memoryview(text.encode(errors="replace"))
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                time.sleep(0.005)

    def _warn(self, message: Warning | str, *_: Any, **__: Any) -> None:
        self.say(f"warning: {message}")

    def _suspend(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its screen back until it lets us go on."""
        self._write(LEAVE)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._suspend)
        self._size = (0, 0)
        self._write(ENTER)


def _size() -> tuple[int, int]:
    found = shutil.get_terminal_size()
    return found.columns, found.lines
