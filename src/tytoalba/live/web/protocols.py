"""How connections are held: few at once, none that only dawdles, none whose buffers grow.

A transport that is closed waits until its client has taken what was sent, for ever if need be. Here it waits
`LINGER` seconds.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tytoalba.live.outputs.rates import SAID_AT_ONCE, SAID_PER_SECOND, Rates
from tytoalba.live.web.fanout import MOST_CLIENTS

MOST_CONNECTIONS = MOST_CLIENTS + 100
HEAD_SECONDS = 10.0
"""Seconds in which the head of a request must come, from its first byte or from the connection."""
BUFFER = 2**14
"""Bytes that wait in this process for one client of the live channel, and in the system for it."""
LINGER = 10.0
"""Seconds that a client has to take the end of what was sent, and to send the end of what was answered."""
MOST_FRAGMENTS = 16
"""Pieces of one message of a client."""


class Closing:
    """A transport whose `close` ends, whatever its client takes."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Send what waits, for a while."""
        if not self._transport.is_closing():
            self._transport.close()
            asyncio.get_running_loop().call_later(LINGER, self._transport.abort)


class HttpProtocol(H11Protocol):
    """A connection for requests. Who does not finish the head of one in time is let go.

    So is who goes on sending a body long after it was answered, which is what refuses it.
    """

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        super().connection_made(cast("asyncio.Transport", Closing(transport)))
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

    def on_response_complete(self) -> None:
        """A request was answered, perhaps before all of it has come."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(LINGER, self._end, self.cycle)

    def _end(self, answered: Any) -> None:
        if self.cycle is answered and self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()

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
    """A connection of the live channel; what waits for a client is in its mailbox, and hardly here.

    Who says more than somebody who has nothing to say is let go.
    """

    def connection_made(self, transport: Any) -> None:
        """A client is there. transport: that of the request for the live channel."""
        super().connection_made(transport)
        self._said = Rates(SAID_PER_SECOND, SAID_AT_ONCE)
        transport.set_write_buffer_limits(high=BUFFER)
        if (raw := transport.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)

    def data_received(self, data: bytes) -> None:
        """Some bytes came; the answers to a flood of pings would wait here for ever."""
        if self._said.allow("", len(data)):
            super().data_received(data)
        else:
            self.transport.abort()

    def handle_cont(self, event: Any) -> None:
        """A piece of a message came, which may be empty, and the last one may never come."""
        if len(self.frames) < MOST_FRAGMENTS:
            super().handle_cont(event)
        else:
            self.transport.abort()
