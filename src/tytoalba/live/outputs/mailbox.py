"""What waits for one client: few messages, however slow it is."""

from __future__ import annotations

import asyncio
from collections import deque

LONGEST_QUEUE = 16
"""Updates that wait for one client at most; a second of frames."""


class Mailbox:
    """Messages for one client, to be used in one event loop. Who is slow loses old updates.

    News are messages of which only the newest of each kind counts, such as the state of a lesson: they are
    not lost among updates, and go first.
    """

    def __init__(self) -> None:
        self._updates: deque[str] = deque(maxlen=LONGEST_QUEUE)
        self._news: dict[str, str] = {}
        self._there = asyncio.Event()

    def __len__(self) -> int:
        return len(self._updates) + len(self._news)

    def put(self, text: str) -> None:
        """Add an update; the oldest goes where there are too many."""
        self._updates.append(text)
        self._there.set()

    def tell(self, kind: str, text: str) -> None:
        """Add news of a kind; older ones of that kind go."""
        self._news[kind] = text
        self._there.set()

    async def get(self) -> str:
        """The next message, once there is one."""
        while not len(self):
            self._there.clear()
            await self._there.wait()
        if self._news:
            return self._news.pop(next(iter(self._news)))
        return self._updates.popleft()
