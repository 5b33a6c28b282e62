"""The server itself: a port, TLS, limits on connections, and a clean end."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs.addresses import Address

LARGEST_HEAD = 2**14
"""Bytes of a request without its body."""
LARGEST_SAID = 2**10
"""Bytes of a message by a client of the live channel."""
UNANSWERED = 20.0
"""Seconds between two pings, and for their answer."""
IDLE = 15
"""Seconds that a connection waits for another request."""
ENDING = 2
"""Seconds that clients have when the server stops."""


@dataclass(frozen=True)
class Tls:
    """Files of a certificate and its key, in PEM."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Refuse files that make no server."""
        for path in (self.certificate, self.key):
            if not path.is_file():
                raise TytoError(f"no file {path}; docs/serve.md says how to make a certificate")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise TytoError(
                f"{self.certificate} and {self.key} are not a certificate and its key, in PEM, without a "
                f"passphrase ({error})"
            ) from error


def load_uvicorn() -> Any:
    """The module, or what to install."""
    try:
        for name in ("starlette", "websockets"):
            importlib.import_module(name)
        return importlib.import_module("uvicorn")
    except ImportError as error:
        raise MissingExtraError("pages in a browser", "web") from error


def open_port(address: Address) -> socket.socket:
    """Take the port, or say why not."""
    try:
        family, *_, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        if family == socket.AF_INET6:
            return socket.create_server(where, family=family, backlog=256)
        return socket.create_server(where, backlog=256)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise TytoError(
            f"cannot serve at {address}: {why}; is another program at port {address.port}? --port "
            f"{address.port + 1} takes the next one"
        ) from error


class Server:
    """Serves an application until it is stopped; `run` in the main thread, or `start` in one of its own."""

    def __init__(self, app: Any, port: socket.socket, tls: Tls | None = None) -> None:
        uvicorn = load_uvicorn()
        protocols = importlib.import_module("tytoalba.live.web.protocols")
        config = uvicorn.Config(
            app,
            http=protocols.HttpProtocol,
            ws=protocols.WebSocketProtocol,
            interface="asgi3",
            loop="asyncio",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            ws_max_size=LARGEST_SAID,
            ws_ping_interval=UNANSWERED,
            ws_ping_timeout=UNANSWERED,
            ws_per_message_deflate=False,
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=ENDING,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            ssl_certfile=tls and str(tls.certificate),
            ssl_keyfile=tls and str(tls.key),
        )
        for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [logging.NullHandler()], False

        class Quiet(uvicorn.Server):  # type: ignore[misc, name-defined]
            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # who runs it does that

        self._port, self._server = port, Quiet(config)
        self._handshake = tls and protocols.HEAD_SECONDS
        self._failed: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The number of the port."""
        number: int = self._port.getsockname()[1]
        return number

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`."""

        async def serve() -> None:
            loop, seconds = asyncio.get_running_loop(), self._handshake
            if seconds is not None:  # uvicorn leaves it at a minute, for as many as like
                loop.create_server = partial(  # type: ignore[method-assign]
                    loop.create_server, ssl_handshake_timeout=seconds
                )
            serving = asyncio.create_task(self._server.serve(sockets=[self._port]))
            while not (self._server.started or serving.done()):
                await asyncio.sleep(0.005)
            if self._server.started:
                on_start()
            await serving

        with suppress(SystemExit):  # which is how uvicorn says that it could not begin
            asyncio.run(serve())
        if not self._server.started:
            raise TytoError("the server could not be started: the live sound, or the page, cannot begin")

    def start(self) -> None:
        """Serve in a thread of its own; returns when it answers."""
        there = threading.Event()

        def serve() -> None:
            try:
                self.run(there.set)
            except BaseException as error:
                self._failed = error
            finally:
                there.set()

        self._thread = threading.Thread(target=serve, name="tyto serve", daemon=True)
        self._thread.start()
        there.wait()
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """End it, from any thread; clients are told to come again."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(2 * ENDING + 5)
