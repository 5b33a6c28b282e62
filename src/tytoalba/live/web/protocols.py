"""How connections are held: few at once, none that only dawdles, none whose buffers grow."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tytoalba.live.web.fanout import MOST_CLIENTS

MOST_CONNECTIONS = MOST_CLIENTS + 100
HEAD_SECONDS = 10.0
"""Seconds in which the head of a request must come, from its first byte or from the connection."""
BUFFER = 2**14
"""Bytes that wait in this process for one client of the live channel, and in the system for it."""


class HttpProtocol(H11Protocol):
    """A connection for requests. Who does not finish the head of one in time is let go."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or self.transport.get_protocol() is not self:
            self._wait_no_more()
        elif self._waiting is None:
            self._wait()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._let_go)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _let_go(self) -> None:
        self._waiting = None
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A connection of the live channel; what waits for a client is in its mailbox, and hardly here."""

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=BUFFER)
        if (raw := transport.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
