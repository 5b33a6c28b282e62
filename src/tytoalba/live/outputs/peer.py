"""A peer that comes and goes: messages wait for it, the oldest are dropped, and it is reconnected.

Whoever sends never waits. A thread of its own connects, hands over, notices that the peer is gone, and tries
again, later and later. People are told once that it is gone, and once that it is back.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.output import Say

LONGEST_QUEUE = 32
"""Messages that wait at most; two or three seconds of frames."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0
"""Seconds before the first and between later attempts to reconnect; each pause is twice the one before."""
STEADY = 1.0
"""Seconds that a connection must hold to count: then a peer is said to be back, and pauses begin anew."""
PATIENCE = 1.0
"""Seconds that closing waits for messages to be handed over."""
STUCK = 5.0
"""Seconds in which a peer must connect, or take a message; else it counts as gone."""

Message = TypeVar("Message")
Taken = TypeVar("Taken", contravariant=True)


class Connection(Protocol[Taken]):
    """A connection as `Peer` uses it, in one thread; whatever is wrong with it is an OSError."""

    def send(self, message: Taken) -> None:
        """Hand over a message; may wait, `STUCK` seconds at most."""
        ...

    def close(self) -> None:
        """Let go; never raises."""
        ...


class Peer(Generic[Message]):
    """Messages to one peer. `send` and `close` come from one thread.

    name: what people are told is gone, "the ODAS client at 127.0.0.1:9000". connect: makes a connection, or
    raises OSError. say: tells people, from the peer's thread. longest: messages that wait at most.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Connection[Message]],
        say: Say,
        *,
        longest: int = LONGEST_QUEUE,
    ) -> None:
        self._name, self._connect, self._say = name, connect, say
        self._waiting: deque[Message] = deque(maxlen=longest)
        self._changed = threading.Condition()
        self._closing = False
        self._gone = False
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Messages that the peer never got, so far."""
        return self._dropped

    def send(self, message: Message) -> None:
        """Let a message wait for the peer; the oldest that waits is dropped if there are too many."""
        with self._changed:
            self._dropped += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(message)
            self._changed.notify()

    def close(self, patience: float = PATIENCE) -> None:
        """Hand over what waits if the peer takes it within `patience` seconds, and disconnect."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(patience)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            since = math.inf
            try:
                connection = self._connect()
                since = time.monotonic()
                try:
                    self._serve(connection, since)
                    return
                finally:
                    connection.close()
            except OSError as error:
                self._lose(error)
            if time.monotonic() - since > STEADY:
                pause = FIRST_PAUSE
            if self._rest(pause):
                return
            pause = min(2 * pause, LONGEST_PAUSE)

    def _serve(self, connection: Connection[Message], since: float) -> None:
        """Hand over until there is nothing left and it is closed; OSError when the peer is gone."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                message = self._waiting.popleft()
            connection.send(message)
            if self._gone and time.monotonic() - since > STEADY:
                self._gone = False
                self._say(f"{self._name} is back")

    def _lose(self, error: OSError) -> None:
        if not self._gone and not self._closing:
            self._gone = True
            why = error.strerror or str(error) or type(error).__name__
            self._say(f"{self._name} is gone ({why}); it gets nothing until it is back")

    def _rest(self, pause: float) -> bool:
        """Wait before the next attempt; what waits for the peer grows old meanwhile, and is dropped.

        Whether it was closed.
        """
        with self._changed:
            ended = self._changed.wait_for(lambda: self._closing, pause)
            self._dropped += len(self._waiting)
            self._waiting.clear()
            return ended


class TcpConnection:
    """Bytes over TCP."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, timeout=STUCK)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: bytes) -> None:
        """Send all of it; a part that was sent alone ends the connection."""
        self._socket.sendall(message)

    def close(self) -> None:
        """Close it."""
        self._socket.close()
