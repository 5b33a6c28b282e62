from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from examples import robot_head
from tests.helpers.updates import HOST, free_port, wait_until
from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.live.web.doa import reachy_angle
from tytoalba.signal.angles import distance, wrap


@contextmanager
def daemon(answers: list[tuple[int, dict[str, Any]]]) -> Iterator[tuple[str, list[str | None]]]:
    """A server that gives these answers in turn, and then the last again; and the tokens it was shown."""
    tokens: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/api/state/doa"
            tokens.append(self.headers["Authorization"])
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}/", tokens
        finally:
            server.shutdown()
            thread.join()


def test_the_head_looks_where_the_sound_is_as_far_as_it_can() -> None:
    for azimuth in np.arange(0.0, 360.0, 2.5):
        yaw = math.degrees(robot_head.yaw_of(reachy_angle(float(azimuth))))
        in_front = azimuth if distance(azimuth, 0.0) <= 90 else wrap(180.0 - azimuth)
        wanted = np.clip((in_front + 180.0) % 360.0 - 180.0, -80.0, 80.0)
        assert yaw == pytest.approx(wanted)


def test_it_turns_while_somebody_speaks_and_no_faster_than_it_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TYTO_TOKEN", "a-long-token-of-a-test")
    naps: list[float] = []
    clock = SimpleNamespace(sleep=naps.append, monotonic=lambda: float(len(naps)))
    monkeypatch.setattr(robot_head, "time", clock)
    left, right = ({"angle": angle, "speech_detected": True} for angle in (math.pi / 4, math.pi))
    pause = {"angle": math.pi, "speech_detected": False}
    told: list[tuple[int, dict[str, Any]]] = [(503, {"error": "nobody yet"}), *[(200, left)] * 9]
    told += [(200, pause), (200, right), (200, pause)]
    with daemon(told) as (url, tokens):
        robot_head.main([url, "--seconds", "14"])
    yaws = [int(text) for text in re.findall(r"head at ([+-]\d+) degrees", capsys.readouterr().out)]
    assert yaws == [6, 12, 18, 24, 30, 36, 42, 45, 39]
    assert naps == [robot_head.STEP] * 14
    assert set(tokens) == {"Bearer a-long-token-of-a-test"}


def test_a_server_that_refuses_ends_it() -> None:
    with daemon([(401, {"error": "show the token"})]) as (url, _), pytest.raises(OSError, match="401"):
        robot_head.main([url])


@pytest.mark.end_to_end
def test_it_looks_at_both_talkers_of_tyto_serve() -> None:
    port = free_port()
    recording, _ = demo_recording()
    serve = ["-m", "tytoalba", "serve", "--from", str(recording), "--array", DEMO_ARRAY, "--port", str(port)]
    server = subprocess.Popen([sys.executable, *serve, "--loop"], stderr=subprocess.DEVNULL)
    found: list[tuple[float, bool] | None] = []

    def seen(azimuth: float) -> bool:
        try:
            found.append(robot_head.direction(f"http://{HOST}:{port}", None))
        except OSError:  # it does not listen yet
            return False
        angles = [one[0] for one in found if one is not None and one[1]]
        return any(abs(angle - reachy_angle(azimuth)) < math.radians(5) for angle in angles)

    try:
        for azimuth in (40.0, 250.0):
            wait_until(lambda azimuth=azimuth: seen(azimuth), 60)  # type: ignore[misc]
    finally:
        server.kill()
        server.wait()
