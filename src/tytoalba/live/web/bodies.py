"""What clients send, read within limits of size, depth and time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import ClientDisconnect, Request

from tytoalba.live.web.refusals import Refusal
from tytoalba.texts.parsing import parse_json

LARGEST_JSON = 32 * 2**10
"""Bytes."""
LONGEST_NAME = 200
"""Characters."""
LARGEST_SOUND = 64 * 2**20
"""Bytes."""
PIECE_SECONDS = 10.0
"""Seconds in which the next piece must come."""
JSON_SECONDS, SOUND_SECONDS = 10.0, 300.0
"""Seconds in which all must have come."""


async def pieces(request: Request, largest: int, seconds: float) -> AsyncIterator[bytes]:
    """A body as it comes."""
    n_bytes, stream, loop = 0, request.stream(), asyncio.get_running_loop()
    give_up = loop.time() + seconds
    while True:
        try:
            async with asyncio.timeout_at(min(give_up, loop.time() + PIECE_SECONDS)):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise Refusal(408, "the body came too slowly: send it again") from error
        except ClientDisconnect as error:
            raise Refusal(400, "the client went away") from error
        n_bytes += len(piece)
        if n_bytes > largest:
            raise Refusal(413, f"the body is larger than {largest} bytes")
        yield piece


async def read_object(request: Request, known: set[str]) -> dict[str, Any]:
    """A body that is one JSON object with no other keys than these."""
    _require_head(request, "application/json", LARGEST_JSON)
    body = b"".join([piece async for piece in pieces(request, LARGEST_JSON, JSON_SECONDS)])
    try:
        found = parse_json(body)
    except ValueError as error:
        raise Refusal(400, f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refusal(400, 'the body must be a JSON object, such as {"azimuth": 90}')
    if unknown := sorted(found.keys() - known):
        raise Refusal(400, f"no key called {unknown[0][:40]!r}; known: {', '.join(sorted(known))}")
    return found


def sound_pieces(request: Request) -> AsyncIterator[bytes]:
    """A body that is a sound file."""
    _require_head(request, "application/octet-stream", LARGEST_SOUND)
    return pieces(request, LARGEST_SOUND, SOUND_SECONDS)


def _require_head(request: Request, wanted: str, largest: int) -> None:
    """Refuse a body by what its headers say, before any of it is read."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise Refusal(415, f"send Content-Type: {wanted}; got {given[:60]!r}")
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()):
        raise Refusal(400, "Content-Length must be a number")
    if len(length) > 18 or int(length) > largest:
        raise Refusal(413, f"the body is larger than {largest} bytes")


def number(value: Any, name: str, low: float, high: float) -> float:
    """A number between two others, from JSON or from a query."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not math.isfinite(float(value)) or not low <= value <= high:
        raise Refusal(400, f"{name} is a number from {low:g} to {high:g}")
    return float(value)


def name_of(value: Any) -> str:
    """A name: one line of printable characters."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isprintable():
        raise Refusal(400, f"who is one line of up to {LONGEST_NAME} printable characters")
    return value


def query(request: Request, known: set[str]) -> dict[str, str]:
    """The query, each key once and none that is not known."""
    items = request.query_params.multi_items()
    if len(items) != len(dict(items)):
        raise Refusal(400, "each key of the query may come once only")
    if unknown := sorted({key for key, _ in items} - known):
        takes = f"known: {', '.join(sorted(known))}" if known else "there are none here"
        raise Refusal(400, f"no key of the query is called {unknown[0][:40]!r}; {takes}")
    return dict(items)
