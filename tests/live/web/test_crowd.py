"""Many clients, of which some never read: nobody waits, and memory does not grow."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.updates import HOST

N_READERS, N_DEAF = 150, 50
SECONDS = 15.0
PROGRAM = """
import sys, time
from tests.helpers.serving import Played, running, station_of
from tytoalba.live.web import station
plain = station.update_message
station.update_message = lambda *frame: plain(*frame) | {"sent": time.monotonic()}
with running(station_of(Played())) as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""
"""A server whose frames say when they were handed over, by a clock that all processes share."""


def rss(pid: int) -> int:
    """Bytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def hello(port: int) -> bytes:
    return (
        f"GET /api/live HTTP/1.1\r\nHost: {HOST}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


async def read_for(port: int, seconds: float, late: list[float]) -> int:
    """Read frames; late: seconds from when each was handed over. How many.

    It reads by hand: this many clients in one process would else wait for each other.
    """
    n_frames = 0
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(hello(port))
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                kind, length = await reader.readexactly(2)
                if length == 126:
                    length = int.from_bytes(await reader.readexactly(2))
                text = await reader.readexactly(length)
                now = time.monotonic()
                if kind == 0x81 and (sent := text.rpartition(b'"sent": ')[2][:-1])[:1].isdigit():
                    n_frames += 1
                    late.append(now - float(sent))
    writer.close()
    return n_frames


def deaf(port: int) -> socket.socket:
    """A client that never reads."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect((HOST, port))
    raw.sendall(hello(port))
    return raw


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port, and its process."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield int(process.stdout.readline()), process.pid
        process.stdin.close()
        assert process.wait(20) == 0


async def crowd(port: int, seconds: float) -> tuple[list[int], list[float]]:
    """Frames that each reader got, and how late all of them were, in seconds."""
    late = list[float]()
    return await asyncio.gather(*(read_for(port, seconds, late) for _ in range(N_READERS))), late


@pytest.mark.end_to_end
def test_200_clients_of_which_50_never_read() -> None:
    with server() as (port, pid):
        asyncio.run(crowd(port, 1.0))  # what a crowd needs once
        silent = [deaf(port) for _ in range(N_DEAF)]
        before = rss(pid)
        n_frames, late = asyncio.run(crowd(port, SECONDS))
        after = rss(pid)
        for raw in silent:
            raw.close()
    p50, p99 = np.quantile(late, [0.5, 0.99])
    print(f"{min(n_frames)} to {max(n_frames)} frames each, {1000 * p50:.1f} ms, p99 {1000 * p99:.1f} ms")
    print(f"{before / 2**20:.1f} MB, then {after / 2**20:.1f} MB")
    assert min(n_frames) > 0.7 * SECONDS / 0.0853
    assert p99 < 0.1
    assert after - before < 8 * 2**20  # what 50 who do not read were sent is twice as much
