"""One `tyto listen` and every kind of program that reads it, at once: all get what is printed."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.helpers.commands import start
from tests.helpers.mosquitto import Subscriber, needs_mosquitto, running
from tests.helpers.updates import HOST, TcpReader, free_port, wait_until
from tytoalba.data.demo import DEMO_ARRAY, demo_recording

pytestmark = [pytest.mark.end_to_end, needs_mosquitto]
TOKEN = "a-token-of-many-letters"


def test_all_outputs_get_the_same_updates(tmp_path: Path) -> None:
    client = pytest.importorskip("websockets.sync.client")
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "token").chmod(0o600)
    reader, port = TcpReader(), free_port()
    with (
        running(tmp_path) as broker,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as osc,
    ):
        osc.bind((HOST, 0))
        osc.settimeout(20)
        subscriber = Subscriber(broker.port)
        process = start(
            "listen", "--from", demo_recording()[0], "--loop", "-a", DEMO_ARRAY, "-m", "srp", "--json",
            "--odas", f"{HOST}:{reader.port}", "--mqtt", f"mqtt://{HOST}:{broker.port}/tyto/kitchen",
            "--websocket", f"{HOST}:{port}", "--token-file", tmp_path / "token",
            "--osc", f"{HOST}:{osc.getsockname()[1]}",
        )  # fmt: skip
        assert process.stdout is not None
        printed = [json.loads(process.stdout.readline())]
        with pytest.raises(Exception, match="401"):
            client.connect(f"ws://{HOST}:{port}")
        with client.connect(
            f"ws://{HOST}:{port}", additional_headers={"Authorization": f"Bearer {TOKEN}"}
        ) as socket_:
            got = [json.loads(socket_.recv(20)) for _ in range(5)]
        assert osc.recv(4096).startswith(b"/tyto/")
        wait_until(lambda: '"tag": "dynamic"' in reader.text, 20)
        wait_until(lambda: len(subscriber.texts("tyto/kitchen/update")) > 10, 20)
        published = [json.loads(text) for text in subscriber.texts("tyto/kitchen/update")]
        assert "online" in subscriber.texts("tyto/kitchen/availability")
        process.terminate()
        out, err = process.communicate(timeout=20)
        wait_until(lambda: subscriber.texts("tyto/kitchen/availability")[-1] == "offline")
        subscriber.close()
    reader.close()
    assert process.returncode == 143, err
    printed += [json.loads(line) for line in out.splitlines()]
    for update in (*got, *published):
        assert update in printed
