"""Updates and moments for tests of what is handed to other programs, and peers that read them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from hypothesis import strategies as st

from tytoalba.live.outputs.output import Output
from tytoalba.live.segments import Moment
from tytoalba.live.tracker import Track
from tytoalba.live.update import Fault, Update

HOST = "127.0.0.1"


def track(number: int, azimuth: float = 40.0, speaking: bool = True, probability: float = 0.9) -> Track:
    return Track(number, azimuth, probability, 0.0, speaking)


def frame(number: int, *tracks: Track) -> Moment:
    """A frame every 64 ms, with scores that peak at its tracks."""
    scores = np.zeros(360, np.float32)
    for one in tracks:
        scores[round(one.azimuth) % 360] = one.probability
    return Moment(round(0.064 * number, 4), -30.0, tracks, scores)


def hand_over(output: Output, n_frames: int, *tracks: Track, pause: float = 0.0, first: int = 0) -> None:
    """Send frames, each with the same tracks."""
    for number in range(first, first + n_frames):
        moment = frame(number, *tracks)
        output.send(Update.of(moment, latency=0.01), moment)
        if pause:
            time.sleep(pause)


def tracks() -> st.SearchStrategy[Track]:
    return st.builds(
        Track,
        id=st.integers(1, 2**31 - 1),
        azimuth=st.floats(0, 359.99).map(lambda angle: round(angle, 2)),
        probability=st.floats(0, 1).map(lambda share: round(share, 4)),
        since=st.floats(0, 1e6).map(lambda seconds: round(seconds, 4)),
        speaking=st.booleans(),
    )


def updates() -> st.SearchStrategy[Update]:
    """Whatever may be told of a frame, with texts of any letters."""
    faults = st.builds(
        Fault,
        kind=st.sampled_from(["unplugged", "muted", "copied", "mixed", "clipping", "rate"]),
        channels=st.lists(st.integers(0, 63), max_size=4).map(tuple),
        text=st.text(max_size=40),
    )
    return st.builds(
        Update,
        time=st.floats(0, 1e7).map(lambda seconds: round(seconds, 4)),
        tracks=st.lists(tracks(), max_size=7, unique_by=lambda one: one.id).map(tuple),
        level=st.floats(-200, 30).map(lambda level: round(level, 1)),
        dropped=st.integers(0, 2**40),
        latency=st.none() | st.floats(0, 100),
        faults=st.lists(faults, max_size=3).map(tuple),
    )


def hand_over_until(
    happened: Callable[[], object], output: Output, *tracks: Track, n_frames: int = 1
) -> None:
    """Send frames until something has happened, in another thread or process."""
    number = 0

    def happened_now() -> object:
        nonlocal number
        hand_over(output, n_frames, *tracks, first=number)
        number += n_frames
        return happened()

    wait_until(happened_now)


def wait_until(happened: Callable[[], object], seconds: float = 10.0, pause: float = 0.005) -> None:
    """Wait for something that another thread or process does."""
    give_up = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(pause)


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind((HOST, 0))
        port: int = one.getsockname()[1]
    return port


class TcpReader:
    """A program that waits on a port and reads what comes, as the clients of odaslive do."""

    def __init__(self, port: int = 0) -> None:
        self._server = socket.create_server((HOST, port))
        self.port: int = self._server.getsockname()[1]
        self.text = ""
        self.n_connections = 0
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                self._connection, _ = self._server.accept()
            except OSError:
                return
            self.n_connections += 1
            with self._connection:
                try:
                    while data := self._connection.recv(4096):
                        self.text += data.decode()
                except OSError:
                    continue

    def close(self) -> None:
        for one in (self._server, self._connection):
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        self._thread.join()
