"""The programs of docs/integrations.md that need a sender are run with one."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import SOCK_DGRAM

from tests.helpers.snippets import ROOT, blocks
from tests.helpers.updates import HOST, free_port, hand_over_until, track
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.osc import Osc
from tytoalba.live.outputs.websocket import WebSocket

PAGE = ROOT / "docs" / "integrations.md"


def program(part: str) -> str:
    """The one block of Python that has this text."""
    (found,) = [one.text for one in blocks(PAGE) if one.language == "python" and part in one.text]
    return found


@contextmanager
def running(text: str) -> Iterator[list[str]]:
    """A program as a process of its own, and the lines that it has printed."""
    lines: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-u", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        reading = threading.Thread(target=lines.extend, args=(iter(process.stdout.readline, ""),))
        reading.start()
        try:
            yield lines
        finally:
            process.terminate()
            reading.join(10)


def test_the_client_of_the_websocket_prints_who_is_there() -> None:
    server = WebSocket(Address(HOST, free_port()))
    text = program("websockets.sync.client").replace("127.0.0.1:8765", str(server.address))
    with running(text) as lines:
        hand_over_until(lambda: "[(7, 40.0)]\n" in lines, server, track(7, 40.0))
        server.close()


def test_the_receiver_of_osc_prints_who_is_there() -> None:
    port = free_port(SOCK_DGRAM)
    text = program("BlockingOSCUDPServer").replace("9002", str(port))
    output = Osc(Address(HOST, port), lambda _: None)
    with running(text) as lines:
        hand_over_until(lambda: "3 40.0 1\n" in lines, output, track(3, 40.0))
    output.close()


def test_every_example_of_the_page_is_there() -> None:
    text = PAGE.read_text("utf-8")
    named = set(re.findall(r"\b(?:examples|tests)/[\w/.]*\w", text))
    assert len(named) >= 5
    for one in named:
        assert (ROOT / one).exists(), one


def test_the_page_has_every_output() -> None:
    text = PAGE.read_text("utf-8")
    for option in ("--json", "--odas", "--odas-potential", "--mqtt", "--websocket", "--osc", "--onnx"):
        assert option in text
