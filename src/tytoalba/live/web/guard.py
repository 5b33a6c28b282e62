"""Who is served at all: hosts, origins, tokens and rates are looked at before any request is answered.

What is answered gets the headers that keep pages of other sites away from it. Whatever goes wrong inside is
told in one sentence without a path or a trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response

from tytoalba.live.outputs.access import TOO_MANY_WRONG, Guesses, bearer_token
from tytoalba.live.outputs.rates import Rates
from tytoalba.live.web.fanout import MOST_CLIENTS, Fanout
from tytoalba.live.web.hosts import Hosts
from tytoalba.live.web.refusals import Refusal, status_of, told
from tytoalba.live.web.sessions import COOKIE, Sessions

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(), camera=(), geolocation=()",
    "Cache-Control": "no-store",
}
SIGN_IN = "/api/session"
"""Where the token is shown."""
METHODS = "GET, POST, DELETE"
PIECE, TAKING = 2**16, 30.0
"""Bytes of a piece of an answer, and seconds in which a client must take one."""


class Guard:
    """The outermost layer (ASGI).

    page: paths of its files, which need no token: they hold nothing. unexpected: is told of errors that
    nobody foresaw.
    """

    def __init__(
        self,
        app: Any,
        *,
        hosts: Hosts,
        sessions: Sessions,
        rates: Rates,
        fanout: Fanout,
        page: Collection[str],
        unexpected: Callable[[BaseException], None],
    ) -> None:
        self._app, self._hosts, self._sessions, self._rates = app, hosts, sessions, rates
        self._fanout, self._unexpected = fanout, unexpected
        self._open = frozenset({*page, SIGN_IN})
        self._guesses = Guesses()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            early = self._before(scope, headers)
        except Refusal as refusal:
            early = answer_of(refusal)
        if scope["type"] == "websocket":
            if early is None:
                await self._app(scope, receive, send)
            else:
                await _denied(early, scope, receive, self._with_headers(headers, send))
            return
        await self._answer(early, scope, receive, self._with_headers(headers, send))

    async def _answer(self, early: Response | None, scope: Any, receive: Any, send: Any) -> None:
        begun = False

        async def noted(message: Any) -> None:
            nonlocal begun
            begun = True
            for piece in _in_pieces(message):
                async with asyncio.timeout(TAKING):
                    await send(piece)

        try:
            await (early or self._app)(scope, receive, noted)
        except TimeoutError:
            raise
        except Exception as error:
            if status_of(error) == 500:
                self._unexpected(error)
            if begun:
                raise
            await answer_of(error)(scope, receive, noted)

    def _before(self, scope: Any, headers: Headers) -> Response | None:
        """What is answered at once; None: it may go on."""
        address = scope["client"][0] if scope.get("client") else ""
        if not self._rates.allow(address):
            raise Refusal(429, "too many requests from one address: ask less often")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.knows(hosts[0]):
            raise Refusal(
                403,
                "this server does not know the name by which it was asked; --origin URL says that it is one",
            )
        self._require_origin(scope, headers, hosts[0])
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and "origin" in headers:
            return Response(status_code=204)
        if scope["path"] not in self._open:
            self._require_session(headers, address)
        if scope["type"] == "websocket" and self._fanout.is_full:
            raise Refusal(503, f"there are {MOST_CLIENTS} clients already")
        return None

    def _require_origin(self, scope: Any, headers: Headers, host: str) -> None:
        origins = headers.getlist("origin")
        if not all(self._hosts.welcomes(origin, host) for origin in origins):
            raise Refusal(403, "pages of other sites may not ask this server; --origin URL allows one")
        elsewhere = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if elsewhere and not origins and scope["path"] not in self._open:
            raise Refusal(403, "pages of other sites may not ask this server; --origin URL allows one")

    def _require_session(self, headers: Headers, address: str) -> None:
        if self._sessions.is_open(cookie=cookie_of(headers)):
            return
        given = bearer_token(headers.get("authorization", ""))
        if not (given and self.is_right(given, address)):
            raise Refusal(401, "show the token: Authorization: Bearer TOKEN, or sign in on the page")

    def is_right(self, token: str, address: str) -> bool:
        """Whether this is the token; who has guessed too often gets no answer for a while."""
        if self._guesses.too_many(address):
            raise Refusal(429, TOO_MANY_WRONG)
        if self._sessions.is_token(token):
            return True
        self._guesses.count(address, token)
        return False

    def _with_headers(self, asked: Headers, send: Any) -> Any:
        """Send, with the headers that every answer has."""
        origin = asked.get("origin", "").lower()

        async def sent(message: Any) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if origin in self._hosts.origins:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Allow-Methods"] = METHODS
                    headers["Access-Control-Allow-Headers"] = "authorization, content-type"
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                    headers.add_vary_header("Origin")
            await send(message)

        return sent


def _in_pieces(message: Any) -> Iterator[Any]:
    """A message as it is, or a long part of an answer in short ones: what is handed over is copied."""
    body = message.get("body", b"")
    if len(body) <= PIECE:
        yield message
        return
    for start in range(0, len(body), PIECE):
        more = message.get("more_body", False) or start + PIECE < len(body)
        yield {"type": message["type"], "body": body[start : start + PIECE], "more_body": more}


def cookie_of(headers: Headers) -> str:
    """The value of the session's cookie; "" for none."""
    try:
        found = SimpleCookie(headers.get("cookie", "")[:4096]).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def answer_of(error: Exception) -> JSONResponse:
    """An error as JSON."""
    status = status_of(error)
    extra = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(status)
    return JSONResponse({"error": told(error)}, status, extra)


async def _denied(answer: Response, scope: Any, receive: Any, send: Any) -> None:
    """Refuse a WebSocket before it is one."""
    if "websocket.http.response" in scope.get("extensions", {}):
        await answer(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
