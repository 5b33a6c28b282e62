"""Whether sound comes as fast as its sample rate says.

A wrong rate turns no direction into none, but every direction into a wrong one: delays between microphones
are counted in samples.
"""

from __future__ import annotations

from collections import deque

from tytoalba.live.update import Fault

RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000)
"""Hz that devices have."""
WINDOW = 0.24
"""Seconds after which the next window begins: just below two blocks of 125 ms, as arecord gives them."""
WINDOWS = 3
"""How many in a row must agree."""
NEAR = 0.03
"""A rate is meant where sound keeps its time as well, as a share of that time."""
ALIKE, AGAIN = 0.45, 2
"""A rate that differs from the said one by a smaller share than this must be met so many times in a row."""

Point = tuple[float, int]
"""When a block was there, in seconds, and samples until its end."""


class Pace:
    """Compares how many samples come with the time in which they come.

    A fault is told where they come steadily at another rate that devices have. Anything else is no wrong
    rate: a pipe that is fed from a file is fast, one that stalls is slow.

    >>> pace = Pace(16000)
    >>> for number in range(12):
    ...     pace.feed(4800, arrived=number / 10)
    >>> print(pace.faults[0].text)
    sound comes at 48000 Hz, not at 16000 Hz as was said: directions are wrong; say the right rate (--rate)
    """

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._began: float | None = None
        self._n_samples = 0
        self._points: list[Point] = []
        self._windows: deque[list[Point]] = deque(maxlen=WINDOWS)
        self._met: deque[int] = deque(maxlen=AGAIN)
        self._told = sample_rate

    def feed(self, n_samples: int, arrived: float | None) -> None:
        """Some samples came; arrived: seconds when the last of them was there, None if nobody knows."""
        if arrived is None:
            return
        self._n_samples += n_samples
        if self._began is None:
            self._began = arrived
        self._points.append((arrived, self._n_samples))
        if arrived - self._began >= WINDOW:
            self._windows.append(self._points)
            self._began, self._points = arrived, []
            if len(self._windows) == WINDOWS:
                self._decide(self._meant())

    def restart(self) -> None:
        """There was a gap: what comes next is measured anew."""
        self._began, self._points = None, []
        self._windows.clear()
        self._met.clear()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong now: nothing, or the rate."""
        if self._told == self._rate:
            return ()
        text = (
            f"sound comes at {self._told} Hz, not at {self._rate} Hz as was said: directions are wrong; "
            "say the right rate (--rate)"
        )
        return (Fault("rate", (), text),)

    def _decide(self, meant: int) -> None:
        self._met.append(meant)
        needed = AGAIN if 0 < abs(meant / self._rate - 1) < ALIKE else 1
        if meant and self._met.count(meant) >= needed:
            self._told = meant

    def _meant(self) -> int:
        """The rate at which sound comes, the said one first; 0 if it is none of those that devices have."""
        passed = self._windows[-1][-1][0] - self._windows[0][-1][0]
        if self._strays(self._rate) <= NEAR * passed:
            return self._rate
        meant = min(RATES, key=self._strays)
        return meant if self._strays(meant) <= NEAR * passed else 0

    def _strays(self, rate: int) -> float:
        """Seconds by which sound of this rate would have come too early or too late.

        A busy machine takes blocks late, never early: the earliest one of each window counts.
        """
        late = [min(arrived - n / rate for arrived, n in window) for window in self._windows]
        return max(late) - min(late)
