"""What `tyto listen` prints where there is no screen: a line per change, or JSON, faults, a last summary."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tytoalba.cli.console import print_json, put, say, warn

if TYPE_CHECKING:
    from tytoalba.live.segments import Moment, Segment
    from tytoalba.live.tracker import Track
    from tytoalba.live.update import Fault, Update

MOVED = 10.0
"""Degrees: who has walked as far since the last line is worth one."""
MOST_PEOPLE = 6
"""People that the summary names; it counts the others."""
MOST_SEGMENTS = 5000
"""What is kept for the summary: hours of talk, and no more memory after that."""
BETWEEN_LOSSES = 5.0
"""Seconds between two remarks on lost sound."""


class Telling(Protocol):
    """What shows updates to a person, or to a program."""

    def tell(self, update: Update, moment: Moment) -> None:
        """Show a frame."""
        ...

    def say(self, message: str) -> None:
        """Show a remark; from any thread."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class JsonLines:
    """One JSON object per frame, on standard output, at once."""

    def __init__(self) -> None:
        self._notes = Notes(say, warn)

    def tell(self, update: Update, moment: Moment) -> None:  # noqa: ARG002, the scores are not printed
        """Print a frame."""
        print_json(update.plain)
        self._notes.tell(update)

    def say(self, message: str) -> None:
        """Print a remark on standard error; peers that are gone are also told with --quiet."""
        warn(message)

    def close(self) -> None:
        """Nothing to leave."""


class ChangeLines:
    """A line where somebody begins or ends to speak, or has walked on."""

    def __init__(self) -> None:
        self._notes = Notes(say, warn)
        self._last: dict[int, float] | None = None

    def tell(self, update: Update, moment: Moment) -> None:  # noqa: ARG002, the scores are not printed
        """Print a frame, if there is anything new."""
        if (line := self.line(update)) is not None:
            put(line)
        self._notes.tell(update)

    def line(self, update: Update) -> str | None:
        """The line of a frame, None where nothing has changed."""
        from tytoalba.signal.angles import distance

        now = {one.id: one.azimuth for one in update.tracks if one.speaking}
        before = self._last
        if before is not None and now.keys() == before.keys():
            if all(float(distance(now[name], before[name])) < MOVED for name in now):
                return None
        elif before is None and not now:
            return None
        self._last = now
        return f"{update.time:8.2f}  {who_speaks(update.tracks)}"

    def say(self, message: str) -> None:
        """Print a remark on standard error; peers that are gone are also told with --quiet."""
        warn(message)

    def close(self) -> None:
        """Nothing to leave."""


class Notes:
    """Faults and lost sound in words: each fault once when it comes, and once when it is over."""

    def __init__(
        self,
        say: Callable[[str], None],
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._note, self._clock = say, note, clock
        self._there: dict[tuple[str, tuple[int, ...]], Fault] = {}
        self._dropped = 0
        self._remarked = -BETWEEN_LOSSES

    def tell(self, update: Update) -> None:
        """Say what is new in a frame."""
        now = {(fault.kind, fault.channels): fault for fault in update.faults}
        for key, fault in now.items():
            if key not in self._there:
                self._note(fault.text)
        for key in self._there:
            if key not in now:
                self._say(f"over: {in_short(*key)}")
        self._there = now
        if update.dropped > self._dropped and self._clock() - self._remarked >= BETWEEN_LOSSES:
            self._note(
                f"{update.dropped - self._dropped} samples per channel were lost: this machine is too slow, "
                "or busy with something else"
            )
            self._dropped, self._remarked = update.dropped, self._clock()


class Summary:
    """Who was there, in one sentence, however long it took."""

    def __init__(self) -> None:
        self._kept: deque[Segment] = deque(maxlen=MOST_SEGMENTS)
        self.seconds = 0.0

    def add(self, one: Segment) -> None:
        """A segment has ended."""
        self._kept.append(one)

    @property
    def text(self) -> str:
        """The sentence."""
        from tytoalba.live.segments import in_words

        found = list(self._kept)
        spoken: dict[int, float] = {}
        for one in found:
            spoken[one.id] = spoken.get(one.id, 0.0) + one.seconds
        named = sorted(spoken, key=lambda name: -spoken[name])[:MOST_PEOPLE]
        since = found[0].start if len(found) == MOST_SEGMENTS else 0.0
        text = in_words([one for one in found if one.id in named], max(self.seconds - since, 1e-9))
        others = len(spoken) - len(named)
        more = f"; and {others} more who spoke less" if others else ""
        return f"{self.seconds:.0f} s: {text}{more}"


def who_speaks(tracks: Sequence[Track]) -> str:
    """Who speaks where, in words.

    >>> from tytoalba.live.tracker import Track
    >>> who_speaks([Track(1, 40.2, 0.9, 0.0, True), Track(2, 250.0, 0.9, 0.0, False)])
    '1 at 40 degrees'
    """
    speaking = [f"{one.id} at {round(one.azimuth) % 360} degrees" for one in tracks if one.speaking]
    return ", ".join(speaking) or "nobody"


def in_short(kind: str, channels: Sequence[int]) -> str:
    """A fault by its kind and channels.

    >>> in_short("muted", (2, 3)), in_short("unplugged", ())
    ('muted (channels 2, 3)', 'unplugged')
    """
    if not channels:
        return kind
    return f"{kind} (channel{'s' if len(channels) > 1 else ''} {', '.join(map(str, channels))})"
