"""The client is a process of its own, as users run it; `tyto` sends to it over a real socket."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import odas_client
from tests.helpers.updates import HOST, free_port, hand_over, hand_over_until, track, tracks, wait_until
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.odas import Odas, Slots, tracked_text
from tytoalba.live.tracker import Track
from tytoalba.signal.angles import distance


class Client:
    """The example, and the lines that it has printed."""

    def __init__(self) -> None:
        self.port = free_port()
        command = [sys.executable, odas_client.__file__, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())

    def says(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def accepts(self, data: bytes) -> bool:
        with socket.socket() as one, suppress(ConnectionResetError, BrokenPipeError):
            if one.connect_ex((HOST, self.port)):
                return False
            one.sendall(data)
        return True

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self._thread.join(10)


@pytest.fixture
def client() -> Iterator[Client]:
    one = Client()
    try:
        yield one
    finally:
        one.close()


def test_the_client_prints_what_tyto_listen_sends(client: Client) -> None:
    output = Odas(Address(HOST, client.port), None, lambda _: None)
    who = track(3, 90.0), track(5, 300.0, speaking=False)
    hand_over_until(lambda: client.says("3: 90 degrees (0.90), 5: 300 degrees (0.00)"), output, *who)
    hand_over_until(lambda: client.says("  -"), output)
    output.close()
    wait_until(lambda: client.says(f"{HOST} is gone"))
    numbers = [int(line[:6]) for line in client.lines if re.match(r" *\d+  ", line)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    again = Odas(Address(HOST, client.port), None, pytest.fail)  # the next one is served, too
    hand_over(again, 3, track(8, 0.0))
    again.close()
    wait_until(lambda: client.says("     3  8: 0 degrees"))


def test_who_is_no_odas_is_let_go(client: Client) -> None:
    wait_until(lambda: client.accepts(b""))
    hostile = [
        b'{"timeStamp": 1}',
        b'{"timeStamp": 1, "src": 2}',
        b'{"timeStamp": 1, "src": [{"id": "\\u001b[2J", "x": 1, "y": 1, "activity": 1}]}',
        b"\xff",
        (odas_client.LONGEST + 1) * b" {",
        10_000 * b"[",
    ]
    for number, text in enumerate(hostile, 2):
        assert client.accepts(text)
        wait_until(lambda n=number: client.lines.count(f"{HOST} is gone") == n)  # type: ignore[misc]
        assert not client.says("\x1b")
    assert client.process.poll() is None


@settings(max_examples=25)
@given(st.lists(tracks(), max_size=4, unique_by=lambda one: one.id), st.integers(1, 400))
def test_however_the_stream_is_cut_it_is_read(who: list[Track], size: int) -> None:
    text = (tracked_text(1, Slots().placed(who)) + tracked_text(2, [None] * 4)).encode()

    class Cut:
        def __init__(self) -> None:
            self.pieces = [text[start : start + size] for start in range(0, len(text), size)]

        def recv(self, _size: int) -> bytes:
            return self.pieces.pop(0) if self.pieces else b""

    first, second = odas_client.objects(Cut())  # type: ignore[arg-type]
    assert [one["id"] for one in first["src"] if one["id"]] == [one.id for one in who]
    for source, one in zip(first["src"], who, strict=False):
        assert distance(odas_client.azimuth(source), one.azimuth) < 0.1
    assert odas_client.line(second) == "     2  -"


ODASLIVE = """{
    "timeStamp": 2047,
    "src": [
        { "id": 12, "tag": "dynamic", "x": -0.707, "y": 0.707, "z": 0.000, "activity": 1.000 },
        { "id": 0, "tag": "", "x": 0.000, "y": 0.000, "z": 0.000, "activity": 0.000 }
    ]
}
"""


def test_what_odaslive_prints_is_read() -> None:
    assert odas_client.line(json.loads(ODASLIVE)) == "  2047  12: 135 degrees (1.00)"
    assert Path(odas_client.__file__).read_text("utf-8").count("\n") < 90
