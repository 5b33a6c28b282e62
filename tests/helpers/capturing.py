"""A program that listens to a sound card, as a process of its own, and tells what it hears in lines of JSON.

Run as `python -m tests.helpers.capturing DEVICE ARRAY`, it goes on until it is killed. Each line has
`heard`, seconds of sound so far (silence at the start does not count), `device` and `watch`, the kinds of
faults, and `azimuth` of who speaks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.pulse import Pulse
from tytoalba.live.health import Watch
from tytoalba.live.inputs.devices import choose_device
from tytoalba.live.inputs.soundcard import SoundCard
from tytoalba.live.tracking import Following
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import pick_channels

ROOT = Path(__file__).parents[2]


def listen(device: str, name: str) -> None:
    array = load_array(name)
    card = SoundCard(choose_device(device, array), array)
    used = list(pick_channels(card.n_channels, array, device))
    watch, following = Watch(card.sample_rate, card.n_channels, used), Following(array)
    heard, azimuth = 0, []
    print(json.dumps({"opened": card.n_channels}), flush=True)
    for block in card.blocks():
        if block.samples.size:
            heard += block.samples.shape[1] if heard or block.samples.any() else 0
            watch.feed(block.samples)
            for moment in following.feed(block.samples[used]):
                azimuth = [round(one.azimuth) for one in moment.tracks if one.speaking]
        told = {
            "heard": heard / card.sample_rate,
            "device": [fault.kind for fault in block.faults],
            "watch": {fault.kind: fault.channels for fault in watch.faults},
            "azimuth": azimuth,
            "lost": block.lost,
        }
        print(json.dumps(told), flush=True)


class Listening:
    """What a program of its own has told so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[dict[str, Any]] = []
        self._process, self._n_seen = process, 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            self.lines.extend(map(json.loads, stream))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._reader.join(10)

    def until(self, happened: Callable[[dict[str, Any]], object], seconds: float = 20.0) -> dict[str, Any]:
        """The first line of which something is true, after the one that was given before."""
        give_up = time.monotonic() + seconds
        while True:
            while self._n_seen < len(self.lines):
                line = self.lines[self._n_seen]
                self._n_seen += 1
                if happened(line):
                    return line
            assert time.monotonic() < give_up, f"it did not happen; the last lines: {self.lines[-3:]}"
            assert self._process.poll() is None, "it ended"
            time.sleep(0.01)


@contextmanager
def listening(server: Pulse, device: str, array: str) -> Iterator[Listening]:
    """Listen to a device of a sound server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.capturing", device, array],
        env=server.environment | {"PYTHONPATH": f"{ROOT}/src", "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    told = Listening(process)
    try:
        told.until(lambda line: "opened" in line, 60.0)
        yield told
    finally:
        told.close()


if __name__ == "__main__":
    listen(sys.argv[1], sys.argv[2])
