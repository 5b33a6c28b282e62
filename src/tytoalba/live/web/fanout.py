"""One message to all pages: each has a short mailbox, and who is slow loses old updates."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tytoalba.live.outputs.mailbox import Mailbox
from tytoalba.live.outputs.rates import Rates

MOST_CLIENTS = 500
TALKATIVE = Rates(per_second=5.0, burst=20)
"""How often a client may say something; nobody listens to it."""
TOO_TALKATIVE = 1008
"""Code of goodbye."""


class Fanout:
    """The clients of the live channel, in one event loop."""

    def __init__(self) -> None:
        self._clients: set[Mailbox] = set()
        self._news: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._clients)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another client."""
        return len(self._clients) >= MOST_CLIENTS

    def put(self, text: str) -> None:
        """An update, for all."""
        self._news["update"] = text
        for client in self._clients:
            client.put(text)

    def tell(self, message: dict[str, Any], *, keep: bool = False) -> None:
        """News, for all. keep: also for who comes later."""
        kind, text = str(message["type"]), json.dumps(message, allow_nan=False)
        if keep:
            self._news[kind] = text
        for client in self._clients:
            client.tell(kind, text)

    async def attend(self, socket: WebSocket) -> None:
        """One client, from beginning to end."""
        await socket.accept()
        client = Mailbox()
        for kind in ("state", "update"):
            if kind in self._news:
                client.tell(kind, self._news[kind])
        self._clients.add(client)
        sending = asyncio.create_task(_send_all(client, socket))
        try:
            await _listen(socket)
        finally:
            self._clients.discard(client)
            sending.cancel()


async def _send_all(client: Mailbox, socket: WebSocket) -> None:
    with suppress(WebSocketDisconnect, RuntimeError, OSError):  # it is gone
        while True:
            await socket.send_text(await client.get())


async def _listen(socket: WebSocket) -> None:
    """Read what a client says, or its goodbye would not be seen; who says much is let go."""
    said = Rates(TALKATIVE.per_second, TALKATIVE.burst)
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if not said.allow("") and socket.application_state == WebSocketState.CONNECTED:
            with suppress(RuntimeError):
                await socket.close(TOO_TALKATIVE, "clients say nothing here")
            return
