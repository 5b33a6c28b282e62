"""How long a frame takes until it is answered, one after another, and how much memory that needs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

from tytoalba.bench.speed.rows import Row, best_of, busy, median_and_tail, memory_peak, now, using
from tytoalba.learning.method import Task
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.tyto import Tyto
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import new_stream
from tytoalba.signal.array import load_array

ARRAY = "respeaker-usb-4"
TASK = "locating, frame by frame"


def measure_locating(
    n_frames: int = 200, n_features: int | None = None, machine_busy: bool = False
) -> list[Row]:
    """Time until a frame is answered and memory, of each way in a process of its own, on one thread.

    n_features: of the localizer; None: as many as it has by default.
    """
    rows = []
    for name, way in (("SRP-PHAT", "srp"), ("prior", "prior"), ("Localizer, taught", "localizer")):
        asked = f"report({way!r}, {n_frames}, {n_features}, {machine_busy})"
        program = f"from tytoalba.bench.speed.localizers import report\n{asked}\n"
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        found = json.loads(ran.stdout)
        for what, unit in (("p50", "ms"), ("p99", "ms"), ("memory", "MB")):
            label = "peak of memory" if what == "memory" else f"{what} of a frame"
            rows.append(Row(TASK, f"{name}: {label}", found[what], unit, None, 1))
    return rows


def report(way: str, n_frames: int, n_features: int | None, machine_busy: bool) -> None:
    """Print what `locating_times` found, and the peak of memory of this process, as JSON."""
    with busy(machine_busy):
        p50, p99 = median_and_tail(locating_times(way, n_frames, n_features))
    print(json.dumps({"p50": p50, "p99": p99, "memory": memory_peak() / 1e6}))


def locating_times(way: str, n_frames: int, n_features: int | None = None) -> list[float]:
    """Seconds from the last sample of each frame to its answer; a second of sound goes before."""
    array = load_array(ARRAY)
    hop = array.frame_length // 2
    rng = np.random.default_rng(0)
    with using(1):
        if way == "localizer":
            localizer = Localizer.new(array, n_features=n_features, seed=0)
            localizer.teach(_noise(rng, array.n_mics, 3 * array.sample_rate), azimuth=60.0)
            stream = localizer.new_stream()
        else:
            stream = new_stream(array, way)
        times = []
        for number in range(n_frames + 12):
            block = _noise(rng, array.n_mics, hop)
            start = now()
            answers = stream.feed(block)
            if number >= 12:
                times.append(now() - start)
                assert len(answers) == 1
    return times


def measure_teaching(D: int, n_frames: int, threads: int) -> Row:
    """Frames per second that our learner takes from features to sums, the prior's network included."""
    array = load_array(ARRAY)
    gcc = prior_gcc(array)
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (n_frames, gcc.n_features)).astype(np.float32)
    azimuth = rng.integers(0, 360, (n_frames, 1)).astype(np.float64)
    learner = Tyto(Task(n_inputs=gcc.n_features, array=array, gcc=gcc), n_features=D)
    with using(threads):
        took = best_of({"": lambda: learner.learn(Phase(X, azimuth, np.arange(360)))}, 2)[""]
    return Row(
        "learning from features",
        f"tytoalba, D = {D}, with a prior",
        n_frames / took,
        "frames/s",
        None,
        threads,
    )


def _noise(rng: np.random.Generator, n_mics: int, n: int) -> Any:
    return (0.1 * rng.standard_normal((n_mics, n))).astype(np.float32)
