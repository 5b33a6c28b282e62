"""For pages and programs that come and go: a small server, from which every client gets updates as JSON.

One message per frame, `Update.json`. Clients say nothing. Each has a short queue of its own: who is slow
loses old updates, and nobody else notices. On this machine anybody may read; from elsewhere only with a
token. Pages of other sites are refused, also on this machine: a browser tells where a page is from.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs.access import (
    TOO_MANY_WRONG,
    Guesses,
    bearer_token,
    checked_token,
    is_local,
    listed_origins,
    same_token,
)
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.mailbox import Mailbox
from tytoalba.live.outputs.rates import SAID_AT_ONCE, SAID_PER_SECOND, Rates
from tytoalba.live.segments import Moment
from tytoalba.live.update import Update

MOST_CLIENTS = 500
BUFFER = 2**14
"""Bytes that the system may hold for a client: what waits there grows old."""
UNANSWERED = 20.0
"""Seconds between two pings, and for their answer: who does not read for so long is let go."""
NO_TOKEN = "show the token: Authorization: Bearer TOKEN, or ?token=TOKEN\n"
CLOSING = 1.0
"""Seconds that clients have for a goodbye."""


class WebSocket:
    """A server of updates. It listens when this returns.

    token: what clients must show, in the header `Authorization: Bearer TOKEN` or as `?token=TOKEN`; needed
    unless the address is a loopback one. origins: sites whose pages may read, such as "https://home.example";
    those of this machine always may.
    """

    def __init__(
        self,
        address: Address,
        *,
        token: str | None = None,
        origins: Sequence[str] = (),
        most: int = MOST_CLIENTS,
    ) -> None:
        self._serve = _load_serve()
        if token is None and not address.is_loopback:
            raise TytoError(
                f"a WebSocket server at {address} can be reached from other machines and needs a token; for "
                "this machine alone: 127.0.0.1"
            )
        if token is not None:
            checked_token(token)
        self._token, self._most = token, most
        self._guesses = Guesses()
        self._origins = listed_origins(origins)
        self._clients: set[Mailbox] = set()
        self._newest: str | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        began: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, args=(address, began), daemon=True)
        self._thread.start()
        self.address = Address(address.host, began.result())
        """Where it listens."""

    @property
    def n_clients(self) -> int:
        """Clients that are connected now."""
        return len(self._clients)

    def send(self, update: Update, moment: Moment) -> None:  # noqa: ARG002, the scores are not sent
        """Hand over a frame."""
        self._loop.call_soon_threadsafe(self._hand_out, update.json)

    def close(self) -> None:
        """Say goodbye to all clients, and stop listening."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(2 * CLOSING)

    def _hand_out(self, text: str) -> None:
        self._newest = text
        for client in self._clients:
            client.put(text)

    def _run(self, address: Address, began: Future[int]) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._listen(address, began))
            except Exception as error:  # whatever it is, who waits for the beginning must hear of it
                if began.done():
                    raise
                why = getattr(error, "strerror", None) or str(error)
                began.set_exception(
                    TytoError(f"cannot listen at {address}: {why}; is the port taken? Choose another one")
                )

    async def _listen(self, address: Address, began: Future[int]) -> None:
        async with self._serve(
            self._attend,
            address.host,
            address.port,
            process_request=self._refusal,
            compression=None,  # small messages, and no memory for each client
            max_size=2**10,
            write_limit=BUFFER,
            ping_interval=UNANSWERED,
            ping_timeout=UNANSWERED,
            open_timeout=5.0,
            close_timeout=CLOSING,
            create_connection=_quiet_connection(),
            server_header=None,
            logger=_SILENT,
        ) as server:
            began.set_result(server.sockets[0].getsockname()[1])
            await self._stop.wait()

    def _refusal(self, connection: Any, request: Any) -> Any:
        """The answer to who may not come in; None: come in."""
        if len(self._clients) >= self._most:
            return connection.respond(503, "too many clients\n")
        origins = request.headers.get_all("Origin")
        if not all(self._is_welcome(origin) for origin in origins):
            return connection.respond(403, "pages of other sites may not read this\n")
        if self._token is not None:
            given, address = _shown(request), str(connection.remote_address[0])
            if given and self._guesses.too_many(address):
                return connection.respond(429, f"{TOO_MANY_WRONG}\n")
            if not same_token(given, self._token):
                if given:
                    self._guesses.count(address, given)
                return connection.respond(401, NO_TOKEN)
        return None

    def _is_welcome(self, origin: str) -> bool:
        return origin.lower() in self._origins or is_local(origin)

    async def _attend(self, connection: Any) -> None:
        """One client, from beginning to end."""
        raw = connection.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        client = Mailbox()
        if self._newest is not None:
            client.put(self._newest)
        self._clients.add(client)
        sending = asyncio.create_task(_send_all(client, connection))
        try:
            with suppress(_closed()):
                async for _ in connection:  # what clients say is read, or their goodbye would not be seen
                    pass
        finally:
            self._clients.discard(client)
            sending.cancel()
            with suppress(asyncio.CancelledError, _closed()):
                await sending


def _shown(request: Any) -> str:
    """The token that a client shows; "" for none."""
    given = bearer_token(request.headers.get("Authorization", ""))
    return given or parse_qs(urlsplit(request.path).query).get("token", [""])[0]


async def _send_all(client: Mailbox, connection: Any) -> None:
    while True:
        await connection.send(await client.get())


_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def _quiet_connection() -> Any:
    """Connections of clients that say little: the answers to a flood of pings would wait here for ever."""

    class Quiet(importlib.import_module("websockets.asyncio.server").ServerConnection):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._said = Rates(SAID_PER_SECOND, SAID_AT_ONCE)

        def data_received(self, data: bytes) -> None:
            if self._said.allow("", len(data)):
                super().data_received(data)
            else:
                self.transport.abort()

    return Quiet


def _closed() -> type[Exception]:
    closed: type[Exception] = importlib.import_module("websockets.exceptions").ConnectionClosed
    return closed


def _load_serve() -> Any:
    try:
        return importlib.import_module("websockets.asyncio.server").serve
    except ImportError as error:
        raise MissingExtraError("WebSocket servers", "web") from error
