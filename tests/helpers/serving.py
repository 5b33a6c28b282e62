"""A server of the page for tests: real sound, played or handed over block by block, and a small state.

`python -m tests.helpers.serving 8010` serves the demo recording, again and again, with a state to teach.
"""

from __future__ import annotations

import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.helpers.updates import HOST
from tytoalba.cli.check import check_samples
from tytoalba.data.demo import demo_recording
from tytoalba.live.inputs.input import Block, Input
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.rates import Rates
from tytoalba.live.tracking import Following
from tytoalba.live.update import Fault
from tytoalba.live.web.app import make_app
from tytoalba.live.web.guard import Guard
from tytoalba.live.web.hosts import Hosts
from tytoalba.live.web.server import Server, Tls, open_port
from tytoalba.live.web.sessions import Sessions
from tytoalba.live.web.sound import LiveSound
from tytoalba.live.web.station import Parts, Station
from tytoalba.live.web.stored import Stored
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import read_audio

ARRAY = "respeaker-usb-4"
RATE = 16000
HOP = 1365
"""Samples of a block."""


@cache
def demo() -> NDArray[np.float32]:
    """The demo recording, (4, n_samples)."""
    path, _ = demo_recording()
    return read_audio(path, load_array(ARRAY)).samples


class Fed:
    """An input that gives what a test hands over, and nothing else."""

    name, sample_rate, n_channels = "a test", RATE, 4

    def __init__(self) -> None:
        self._blocks: queue.SimpleQueue[Block | None] = queue.SimpleQueue()

    def give(self, samples: NDArray[Any], lost: int = 0, faults: tuple[Fault, ...] = ()) -> None:
        """Hand over samples (4, any length), in blocks as a sound card would."""
        for start in range(0, max(samples.shape[1], 1), HOP):
            piece = np.asarray(samples[:, start : start + HOP], np.float32)
            self._blocks.put(Block(piece, time.monotonic(), lost if not start else 0, faults))

    def blocks(self) -> Iterator[Block]:
        """What was handed over."""
        while (block := self._blocks.get()) is not None:
            yield block

    def close(self) -> None:
        """End."""
        self._blocks.put(None)


class Played:
    """The demo recording at its own speed, or faster, again and again."""

    name, sample_rate, n_channels = "demo.flac", RATE, 4

    def __init__(self, speed: float = 1.0) -> None:
        self._pause, self._closed = HOP / RATE / speed, threading.Event()

    def blocks(self) -> Iterator[Block]:
        """Block after block."""
        began, number, samples = time.monotonic(), 0, demo()
        while True:
            for start in range(0, samples.shape[1] - HOP, HOP):
                number += 1
                if self._closed.wait(max(0.0, began + number * self._pause - time.monotonic())):
                    return
                yield Block(samples[:, start : start + HOP], time.monotonic())

    def close(self) -> None:
        """End."""
        self._closed.set()


def new_state(path: Path, n_features: int = 60) -> Path:
    """A small state without a ledger."""
    Localizer.new(ARRAY, n_features=n_features, seed=1).save(path)
    return path


def station_of(
    source: Input | None = None,
    state: Path | None = None,
    *,
    token: str | None = None,
    say: Callable[[str], None] = print,
    **more: Any,
) -> Station:
    """A station with this sound and this state."""
    stored = Stored(state, unsigned=True) if state else None
    following = Following(stored.localizer) if stored else Following(ARRAY, "srp")
    sound = None if source is None else LiveSound(source, following)
    parts = Parts(following, None if stored else "srp", sound, stored, check_samples, **more)
    return Station(parts, say, needs_token=token is not None)


def app_of(
    station: Station,
    address: Address | None = None,
    *,
    token: str | None = None,
    origins: tuple[str, ...] = (),
    rates: Rates | None = None,
    secure: bool = False,
) -> Guard:
    """The application around a station."""
    hosts = Hosts(address or Address(HOST, 8010), origins, secure=secure)
    return make_app(station, hosts, Sessions(token, secure=secure), rates or Rates(1e6, 10**6))


@contextmanager
def running(station: Station, port: int = 0, tls: Tls | None = None, **more: Any) -> Iterator[Server]:
    """A server in a thread of this process."""
    with open_port(Address(HOST, port)) as taken:
        address = Address(HOST, taken.getsockname()[1])
        server = Server(app_of(station, address, secure=tls is not None, **more), taken, tls)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def main() -> None:
    """Serve until Ctrl-C."""
    with tempfile.TemporaryDirectory() as folder:
        state = new_state(Path(folder) / "kitchen.tyto", 2000)
        with running(station_of(Played(), state), int(sys.argv[1]) if len(sys.argv) > 1 else 8010) as server:
            print(f"http://{HOST}:{server.port}/")
            threading.Event().wait()


if __name__ == "__main__":
    main()
