"""Uploaded recordings: handed to a process while they come, one at a time, and gone with their client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import numpy as np
from starlette.requests import Request

from tytoalba.live.web.bodies import sound_pieces
from tytoalba.live.web.refusals import Refusal
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import Samples

LONGEST_SOUND = 600.0
"""Seconds of a recording that is located."""
LONGEST_LESSON = 60.0
"""Seconds of a recording that is taught."""
WORKING = 300.0
"""Seconds that a recording may take."""
DAMAGED = "the recording is damaged: reading it failed. Copy or record it again"


class Uploads:
    """One recording at a time."""

    def __init__(self, array: MicArray, method: str | None) -> None:
        self._array, self._method = array, method
        self._busy = False

    async def located(self, request: Request, localizer: Localizer | None) -> bytes:
        """Who is where in the recording that a client sends, as JSON."""
        known = b"" if localizer is None else await asyncio.to_thread(lambda: localizer.model.to_bytes())
        return await self._answered(request, "locate", LONGEST_SOUND, known)

    async def decoded(self, request: Request) -> Samples:
        """The samples of the recording that a client sends, (n_mics, n_samples) at the array's rate."""
        data = await self._answered(request, "decode", LONGEST_LESSON)
        return np.frombuffer(data, "<f4").reshape(self._array.n_mics, -1)

    async def _answered(self, request: Request, what: str, seconds: float, known: bytes = b"") -> bytes:
        if self._busy:
            raise Refusal(409, "another recording is being worked on: try again when it is done")
        pieces = sound_pieces(request)
        head = {"what": what, "array": self._array.to_toml(), "method": self._method, "seconds": seconds}
        self._busy = True
        try:
            start = json.dumps(head | {"localizer": len(known)}).encode() + b"\n" + known
            return await _in_process(request, start, pieces)
        finally:
            self._busy = False


async def _in_process(request: Request, start: bytes, pieces: AsyncIterator[bytes]) -> bytes:
    """What the worker answers; it ends with its client."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tytoalba.live.web.worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin
    assert process.stdout
    try:
        await _fed(process.stdin, start, pieces)
        answering = asyncio.create_task(process.stdout.read())
        leaving = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({answering, leaving}, timeout=WORKING, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                status, why = (400, "the client went away") if leaving.done() else (413, "it took too long")
                raise Refusal(status, f"{why}: the recording was not located")
            await process.wait()
            return _read(answering.result())
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # `process.kill` may reap it, and asyncio misses it then
        try:
            await process.wait()
        finally:  # also where the server stops meanwhile
            process.stdin.close()
            process._transport.close()  # type: ignore[attr-defined]


async def _fed(sink: asyncio.StreamWriter, start: bytes, pieces: AsyncIterator[bytes]) -> None:
    """Hand over what comes; a process that has ended says why by what it wrote."""
    with suppress(BrokenPipeError, ConnectionResetError):
        sink.write(start)
        await sink.drain()
    n_bytes = 0
    async for piece in pieces:
        n_bytes += len(piece)
        with suppress(BrokenPipeError, ConnectionResetError):
            sink.write(piece)
            await sink.drain()
    if not n_bytes:
        raise Refusal(400, "the body is empty: send a sound file")
    with suppress(BrokenPipeError, ConnectionResetError):
        sink.write_eof()


async def _gone(request: Request) -> None:
    """Wait until the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _read(data: bytes) -> bytes:
    line, end, body = data.partition(b"\n")
    if not end:
        raise Refusal(400, DAMAGED)
    head = json.loads(line)
    if "error" in head:
        raise Refusal(int(head["status"]), head["error"])
    return body
