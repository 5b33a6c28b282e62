"""The programs of docs/integrations.md that need a sender are run with one."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from examples import odas_client
from tests.helpers import mosquitto
from tests.helpers.snippets import ROOT, blocks
from tests.helpers.updates import HOST, free_port, hand_over_until, track, wait_until
from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.osc import Osc
from tytoalba.live.outputs.websocket import WebSocket

PAGE = ROOT / "docs" / "integrations.md"


def program(part: str) -> str:
    """The one block of Python that has this text."""
    (found,) = [one.text for one in blocks(PAGE) if one.language == "python" and part in one.text]
    return found


@contextmanager
def running(*arguments: str | Path) -> Iterator[list[str]]:
    """Python as a process of its own, and the lines that it has printed."""
    lines: list[str] = []
    with subprocess.Popen([sys.executable, "-u", *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reading = threading.Thread(target=lines.extend, args=(iter(process.stdout.readline, ""),))
        reading.start()
        try:
            yield lines
        finally:
            process.kill()
            reading.join(10)


def test_the_client_of_the_websocket_prints_who_is_there() -> None:
    server = WebSocket(Address(HOST, free_port()))
    text = program("websockets.sync.client").replace("127.0.0.1:8765", str(server.address))
    with running("-c", text) as lines:
        hand_over_until(lambda: "[(7, 40.0)]\n" in lines, server, track(7, 40.0))
        server.close()


def test_the_receiver_of_osc_prints_who_is_there() -> None:
    port = free_port(socket.SOCK_DGRAM)
    text = program("BlockingOSCUDPServer").replace("9002", str(port))
    output = Osc(Address(HOST, port), lambda _: None)
    with running("-c", text) as lines:
        hand_over_until(lambda: "3 40.0\n" in lines, output, track(3, 40.0))
    output.close()


AZIMUTHS = {
    "JSON": r'"azimuth": ([\d.]+)',
    "ODAS": r"(\d+) degrees",
    "WebSocket": r"\(\d+, ([\d.]+)\)",
    "OSC": r"^\d+ ([\d.]+)$",
    "MQTT": r'"azimuth": (\d+)',
}


def has_both_talkers(way: str, lines: list[str]) -> bool:
    """Whether both of the demo recording were told, at 40 and 250 degrees."""
    found = [float(azimuth) for azimuth in re.findall(AZIMUTHS[way], "".join(lines), re.M)]
    return all(any(abs(one - azimuth) < 5 for one in found) for azimuth in (40, 250))


@pytest.mark.end_to_end
@mosquitto.needs_mosquitto
def test_one_tyto_listen_tells_all_of_them(tmp_path: Path) -> None:
    """A recording at its own speed, again and again, and every way at once."""
    odas, web, osc = (Address(HOST, free_port()) for _ in range(3))
    recording, _ = demo_recording()
    with mosquitto.running(tmp_path) as broker, ExitStack() as stack:
        reader = mosquitto.Subscriber(broker.port)
        stack.callback(reader.close)
        listen = ["-m", "tytoalba", "listen", "--from", str(recording), "--loop", "--json"]
        listen += ["--array", DEMO_ARRAY, "--odas", str(odas), "--websocket", str(web), "--osc", str(osc)]
        listen += ["--mqtt", f"mqtt://{HOST}:{broker.port}/tyto/kitchen"]
        lines = stack.enter_context(running(*listen))
        wait_until(lambda: lines, 60)
        told = {
            "JSON": lines,
            "ODAS": stack.enter_context(running(odas_client.__file__, "--port", str(odas.port))),
            "WebSocket": stack.enter_context(
                running("-c", program("websockets.sync").replace("127.0.0.1:8765", str(web)))
            ),
            "OSC": stack.enter_context(
                running("-c", program("BlockingOSCUDPServer").replace("9002", str(osc.port)))
            ),
        }
        for way, lines in told.items():
            wait_until(lambda way=way, lines=lines: has_both_talkers(way, lines), 60)  # type: ignore[misc]
        wait_until(lambda: has_both_talkers("MQTT", reader.texts("tyto/kitchen/state")), 60)


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
