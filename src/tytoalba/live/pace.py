"""Whether sound comes as fast as its sample rate says.

A wrong rate turns no direction into none, but every direction into a wrong one: delays between microphones
are counted in samples.
"""

from __future__ import annotations

from tytoalba.live.update import Fault

RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000)
"""Hz that devices have."""
WINDOW = 0.5
"""Seconds over which the pace is measured."""
WINDOWS = 2
"""How many in a row must agree."""
NEAR = 0.04
"""A rate is meant where the measured one is as near, as a share of it."""


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
        self._met: list[int] = []

    def feed(self, n_samples: int, arrived: float | None) -> None:
        """Some samples came; arrived: seconds when the last of them was there, None if nobody knows."""
        if arrived is None:
            return
        if self._began is None:
            self._began = arrived
            return
        self._n_samples += n_samples
        passed = arrived - self._began
        if passed >= WINDOW:
            self._met = [*self._met, self._nearest(self._n_samples / passed)][-WINDOWS:]
            self._began, self._n_samples = arrived, 0

    def restart(self) -> None:
        """There was a gap: what comes next is measured anew."""
        self._began, self._n_samples = None, 0

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong now: nothing, or the rate."""
        if len(self._met) < WINDOWS or len(set(self._met)) > 1 or self._met[0] in (0, self._rate):
            return ()
        text = (
            f"sound comes at {self._met[0]} Hz, not at {self._rate} Hz as was said: directions are wrong; "
            "say the right rate (--rate)"
        )
        return (Fault("rate", (), text),)

    def _nearest(self, measured: float) -> int:
        """The rate that is meant; 0 if none is near."""
        near = min((self._rate, *RATES), key=lambda rate: abs(measured - rate) / rate)
        return near if abs(measured - near) <= NEAR * near else 0
