"""`tyto serve` as a process that can be killed and started again, and a browser to look at it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from tests.helpers.updates import HOST, free_port, wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")


def environment(folder: Path) -> dict[str, str]:
    """As it is here, but with nobody's keys and settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TYTO_")}
    return own | {"XDG_DATA_HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "config")}


class Served:
    """A server on a port of its own. arguments: those of `tyto serve`."""

    def __init__(self, folder: Path, *arguments: str | Path, token: str | None = None) -> None:
        self.port = free_port()
        self.address = f"http://{HOST}:{self.port}/"
        self.token = token
        self._arguments = [*map(str, arguments), "--port", str(self.port)]
        self._log = folder / f"serve-{self.port}.log"
        self._environment = environment(folder) | ({"TYTO_TOKEN": token} if token else {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it said."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "tytoalba", "serve", *self._arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )
        wait_until(self._answers, 60.0)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log
        try:
            self.get("/api/state")
        except URLError:
            return False
        return True

    def get(self, path: str) -> Any:
        """An answer in JSON."""
        request = urllib.request.Request(self.address.rstrip("/") + path)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@contextmanager
def serving(folder: Path, *arguments: str | Path, token: str | None = None) -> Iterator[Served]:
    server = Served(folder, *arguments, token=token)
    try:
        server.start()
        yield server
    finally:
        server.kill()
