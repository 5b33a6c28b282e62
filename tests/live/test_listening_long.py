"""An hour of listening: flat memory, nothing lost, little of a core, and answers in time.

`python -m tests.live.test_listening_long MINUTES [RESULTS.json]` tells what is measured in so many minutes of
sound, first as fast as it can, then at real speed; what the file gets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tytoalba.data.simulation.presets import TRACKING
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.voice import choose_voices
from tytoalba.live.inputs.input import Block
from tytoalba.live.listening import Listener
from tytoalba.live.tracking import Following
from tytoalba.signal.array import load_array

ARRAY = load_array("respeaker-usb-4")
RATE = ARRAY.sample_rate
HOP = ARRAY.frame_length // 2 / RATE
SETTLED = 0.2
"""Share of the time after which memory must not grow any more."""
WINDOW = 300
"""Seconds of which lateness is told beside the load of the machine."""

pytestmark = pytest.mark.slow


@cache
def scenes() -> NDArray[np.float32]:
    """A minute and more of simulated talkers: one, two, walking, pausing, near a fan."""
    made = [Simulation(TRACKING[kind], ARRAY, choose_voices(None), 0).recording((1, 0)) for kind in TRACKING]
    return np.concatenate([one.samples for one in made], axis=1)


class Simulated:
    """So many seconds of simulated scenes, one after another, as fast as they are taken."""

    name, sample_rate, n_channels = "simulated scenes", RATE, 4

    def __init__(self, seconds: float) -> None:
        self._left = round(seconds * RATE)

    def blocks(self) -> Iterator[Block]:
        sound, at = scenes(), 0
        while self._left > 0:
            piece = sound[:, at : at + 341]
            at = (at + 341) % (sound.shape[1] - 341)
            self._left -= piece.shape[1]
            yield Block(piece)

    def close(self) -> None:
        self._left = 0


def resident(process: int | str = "self") -> int:
    """Bytes of memory that a process has now."""
    with open(f"/proc/{process}/statm") as file:  # noqa: PTH123, read often
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(held: list[int]) -> dict[str, float]:
    """The most memory there was, and by how much it grew once it had settled, in MB."""
    settled = held[round(SETTLED * len(held)) :]
    return {"memory MB": max(held) / 1e6, "grown MB": (float(np.mean(settled[-10:])) - settled[0]) / 1e6}


def listened(minutes: float) -> dict[str, float]:
    """Simulated minutes, faster than real time: memory, losses, and how much of a core it would take."""
    n_frames, dropped, held = 0, 0, []
    began, used = time.monotonic(), time.process_time()
    with Listener(Simulated(60 * minutes), Following(ARRAY)) as listener:
        for update, _ in listener:
            n_frames, dropped = n_frames + 1, update.dropped
            if not n_frames % 100:
                held.append(resident())
    return {
        "minutes": minutes,
        "frames": n_frames,
        "dropped": dropped,
        **memory(held),
        "share of a core": (time.process_time() - used) / (60 * minutes),
        "times real time": 60 * minutes / (time.monotonic() - began),
    }


class Look(NamedTuple):
    """Bytes of memory that a process has, and how many processes want to run on the machine."""

    resident: int
    load: float


def in_real_time(seconds: float) -> dict[str, Any]:
    """`tyto listen` at real speed: memory, CPU, and how late its lines are."""
    import resource

    from tytoalba.data.demo import DEMO_ARRAY, demo_recording

    command = [sys.executable, "-m", "tytoalba", "listen", "--from", str(demo_recording()[0]), "--loop"]
    command += ["-a", DEMO_ARRAY, "--json", "--seconds", f"{seconds:g}"]
    before, looks = resource.getrusage(resource.RUSAGE_CHILDREN), list[Look]()
    with tempfile.TemporaryFile() as lines:
        process = subprocess.Popen(command, stdout=lines)
        while process.poll() is None:
            looks.append(Look(resident(process.pid), os.getloadavg()[0]))
            time.sleep(min(10.0, seconds / 100))
        assert process.returncode == 0
        lines.seek(0)
        updates: list[dict[str, Any]] = [json.loads(line) for line in lines]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return told(updates, [look for look in looks if look.resident], used)


def told(updates: list[dict[str, Any]], looks: list[Look], used: float) -> dict[str, Any]:
    """What updates of live sound, and looks at its process meanwhile, say. used: seconds of a core."""
    times, latency = (np.array([one[key] for one in updates]) for key in ("time", "latency"))
    shares = []
    for start in range(0, round(times[-1]), WINDOW):
        there = (times >= start) & (times < start + WINDOW)
        of_all = np.array([start, start + WINDOW]) / times[-1] * len(looks)
        load = [look.load for look in looks[round(of_all[0]) : round(of_all[1])]]
        shares.append({"load": round(float(np.mean(load)), 1)} | lateness(latency[there]))
    return {
        "seconds": times[-1],
        "frames": len(updates),
        "dropped": updates[-1]["dropped"],
        **memory([look.resident for look in looks]),
        "share of a core": used / times[-1],
        **lateness(latency),
        "cores of the machine": os.cpu_count(),
        f"every {WINDOW} s": shares,
    }


def lateness(latency: NDArray[np.float64]) -> dict[str, float]:
    """How late updates were, in seconds, and the share of those in time."""
    quantiles = {f"latency {share}": float(np.quantile(latency, share)) for share in (0.5, 0.99, 1.0)}
    return quantiles | {"in time": float(np.mean(latency <= HOP + 0.020))}


def test_an_hour_of_listening_takes_no_more_memory_and_loses_nothing() -> None:
    found = listened(60)
    assert found["frames"] == pytest.approx(60 * 60 / HOP, abs=3)
    assert found["dropped"] == 0
    assert found["grown MB"] < 4, found
    assert found["share of a core"] < 0.25, found


def test_lines_come_in_time_and_take_little_of_a_core() -> None:
    found = in_real_time(180)
    assert found["dropped"] == 0
    assert found["grown MB"] < 4, found
    assert found["share of a core"] < 0.25, found
    assert found["in time"] > 0.99, found


def main() -> None:
    """Measure, print, and write to a file if one is named."""
    length, *results = sys.argv[1:]
    minutes = float(length)
    found: dict[str, Any] = {"fast": listened(minutes), "at real speed": in_real_time(60 * minutes)}
    print(json.dumps(found, indent=1))
    if results:
        text = json.dumps(found["at real speed"], indent=1)
        Path(results[0]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
