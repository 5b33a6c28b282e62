"""A real MQTT broker on loopback, and somebody who reads all of it."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.updates import HOST, free_port, wait_until

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")

needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="needs mosquitto: apt install mosquitto")


class Mosquitto:
    """A broker that can be stopped and started again. settings: lines of its configuration."""

    def __init__(self, folder: Path, settings: str = "allow_anonymous true") -> None:
        self.port = free_port()
        self._file = folder / "mosquitto.conf"
        whose = f"user {getpass.getuser()}"  # root's broker would become somebody who cannot read the folder
        self._file.write_text(f"listener {self.port} {HOST}\npersistence false\n{whose}\n{settings}\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert MOSQUITTO is not None
        log = self._file.with_suffix(".log").open("ab")
        self._process = subprocess.Popen([MOSQUITTO, "-c", self._file], stdout=log, stderr=log)
        log.close()
        wait_until(self._answers)

    def _answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex((HOST, self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


@contextmanager
def running(folder: Path, settings: str = "allow_anonymous true") -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, settings)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


class Subscriber:
    """Keeps every message of a broker: (topic, text, retained) in order."""

    def __init__(
        self,
        port: int,
        *,
        user: str | None = None,
        password: str | None = None,
        authorities: Path | None = None,
    ) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self.messages: list[tuple[str, str, bool]] = []
        subscribed = threading.Event()
        client = self._client = Client(CallbackAPIVersion.VERSION2)
        if user:
            client.username_pw_set(user, password)
        if authorities:
            client.tls_set(str(authorities))
        client.on_connect = self._subscribe
        client.on_subscribe = lambda *_: subscribed.set()
        client.on_message = self._keep
        client.connect(HOST, port)
        client.loop_start()
        assert subscribed.wait(10)

    def _subscribe(self, client: Any, *_: Any) -> None:
        client.subscribe("#", 1)

    def _keep(self, _client: Any, _data: Any, message: Any) -> None:
        self.messages.append((message.topic, message.payload.decode(), message.retain))

    def texts(self, topic: str) -> list[str]:
        return [text for name, text, _ in self.messages if name == topic]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
