"""Real files through a real sound server into `tyto listen`: labelled directions, faults by their names."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.pulse import Pulse, needs_pulse, pulse
from tests.helpers.updates import wait_until
from tytoalba.data.simulation.presets import TRACKING
from tytoalba.data.simulation.recordings import SimulatedRecording, Simulation
from tytoalba.data.simulation.voice import choose_voices
from tytoalba.signal.angles import distance, wrap
from tytoalba.signal.array import load_array

pytestmark = [pytest.mark.end_to_end, needs_pulse]
ARRAY = load_array("respeaker-usb-4")
RATE = ARRAY.sample_rate
HOP = ARRAY.frame_length // 2 / RATE
RIGHT = 10.0
"""Degrees: a nearer track is right, as in `tyto bench tracking`."""


def simulated(kind: str) -> SimulatedRecording:
    """A scene of 12 s with labels: nobody for a moment, then one talker or two, who stand."""
    return Simulation(TRACKING[kind], ARRAY, choose_voices(None), 0).recording((1, 0))


def on_the_device(microphones: NDArray[np.float32]) -> NDArray[np.float32]:
    """The six channels of the device: beamformed sound, four microphones, playback."""
    return np.concatenate([microphones.mean(axis=0, keepdims=True), microphones, 0 * microphones[:1]])


def labels(made: SimulatedRecording) -> list[float]:
    """Azimuths of the talkers."""
    x, y = made.positions[0, :, 0], made.positions[0, :, 1]
    return sorted(np.asarray(wrap(np.rad2deg(np.arctan2(y, x)))).tolist())


class Listening:
    """`tyto listen --json` on a sound card; its lines."""

    def __init__(self, server: Pulse, device: str, *options: str) -> None:
        command = [sys.executable, "-m", "tytoalba", "listen", "--device", device, "-a", ARRAY.name, "--json"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*command, *options], env=server.environment, stdout=pipe, stderr=pipe, text=True
        )
        self.updates: list[dict[str, Any]] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.updates.append(json.loads(line))

    def wait_for(self, happened: Callable[[dict[str, Any]], object], seconds: float = 20.0) -> dict[str, Any]:
        """The first line from now on of which it is true."""
        start = len(self.updates)

        def met() -> bool:
            assert self.process.poll() is None, self.process.communicate()[1]
            return any(happened(one) for one in self.updates[start:])

        wait_until(met, seconds)
        return next(one for one in self.updates[start:] if happened(one))

    def end(self) -> str:
        """Ctrl-C; what it said on standard error."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        self.thread.join(20)
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        assert self.process.returncode == 130, said
        return said


@contextmanager
def listening(server: Pulse, device: str = "respeaker", *options: str) -> Iterator[Listening]:
    one = Listening(server, device, *options)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(20)
        one.thread.join(20)
        for stream in (one.process.stdout, one.process.stderr):
            assert stream is not None
            stream.close()


def kinds(update: dict[str, Any]) -> set[str]:
    return {fault["kind"] for fault in update["faults"]}


def test_labelled_directions_are_found() -> None:
    with pulse("respeaker") as server:
        server.plug_in("respeaker", 6, RATE)
        with listening(server) as one:
            one.wait_for(bool, 40)
            for kind in ("one", "two"):
                made = simulated(kind)
                wanted, start = labels(made), len(one.updates)
                server.play("respeaker", on_the_device(made.samples), RATE).wait(40)
                found = one.updates[start:]
                spoken = [t["azimuth"] for update in found for t in update["tracks"] if t["speaking"]]
                near = [min(float(distance(azimuth, label)) for label in wanted) for azimuth in spoken]
                assert np.mean(np.array(near) < RIGHT) > 0.9, (kind, wanted, spoken)
                for label in wanted:
                    share = np.mean([distance(azimuth, label) < RIGHT for azimuth in spoken])
                    assert share > 0.5 / len(wanted), (kind, label)
                # between two files come zeros, as from a device that was unplugged
                assert set().union(*map(kinds, found)) <= {"unplugged"}, found[-1]
            latency = np.array([update["latency"] for update in one.updates])
            assert one.updates[-1]["dropped"] == 0
            assert np.median(latency) < HOP + 0.020  # how late the latest are, tests/slow measures
            assert "people" in one.end()


def test_each_fault_is_named_and_survived() -> None:
    made = simulated("one")
    sound = on_the_device(made.samples[:, 3 * RATE :])
    with pulse("respeaker") as server:
        server.plug_in("respeaker", 6, RATE)
        with listening(server) as one:
            one.wait_for(bool, 40)
            player = server.play("respeaker", sound, RATE)
            one.wait_for(lambda update: update["tracks"] and not update["faults"])
            player.kill()

            zeroed = sound.copy()
            zeroed[3] = 0
            player = server.play("respeaker", zeroed, RATE)
            told = one.wait_for(lambda update: "muted" in kinds(update))
            assert [3] in [fault["channels"] for fault in told["faults"] if fault["kind"] == "muted"]
            player.kill()

            mixing = np.eye(6, dtype=np.float32)
            # what PulseAudio makes of six channels
            mixing[2:4, :4] = [[0.75, 0, 0.25, 0], [0, 0.75, 0, 0.25]]
            player = server.play("respeaker", mixing @ sound, RATE)
            one.wait_for(lambda update: "mixed" in kinds(update))
            player.kill()

            server.plug_out("respeaker")
            told = one.wait_for(lambda update: "unplugged" in kinds(update))
            later = one.wait_for(lambda update: update["time"] > told["time"] + 1)
            assert "unplugged" in kinds(later)
            server.plug_in("respeaker", 6, RATE)
            player = server.play("respeaker", np.tile(sound, 3), RATE)
            one.wait_for(lambda update: update["tracks"] and not update["faults"], 40)
            said = one.end()
    times = [update["time"] for update in one.updates]
    assert all(later > before for before, later in pairwise(times))
    for word in ("muted", "mixed", "gone"):
        assert word in said


def test_a_server_that_remixes_channels_is_noticed() -> None:
    """PulseAudio's default order of six channels is not that of ALSA: channels arrive mixed."""
    sound = on_the_device(simulated("one").samples[:, 3 * RATE :])
    with pulse("respeaker") as server:
        server.plug_in("respeaker", 6, RATE, channel_map="")
        with listening(server) as one:
            one.wait_for(bool, 40)
            server.play("respeaker", np.tile(sound, 2), RATE)
            told = one.wait_for(lambda update: kinds(update) & {"mixed", "copied", "muted"})
            assert told["faults"]
