"""What every output can do: take what is told of a frame, at once, whatever its peer does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tytoalba.live.segments import Moment
from tytoalba.live.update import Update

Say = Callable[[str], None]
"""Tells a person one line; called from any thread."""


class Output(Protocol):
    """Somewhere to hand updates to.

    `send` returns at once: it never waits for a network or a disk, and never raises because a peer is gone.
    A peer that went away is said once, reconnected by itself, and said once more when it is back.
    """

    def send(self, update: Update, moment: Moment) -> None:
        """Hand over a frame. moment: the same frame, with the scores of all directions."""
        ...

    def close(self) -> None:
        """Send what can still be sent within a second or two, and let go; no `send` comes after it."""
        ...
