"""How fast a Dask cluster of this machine's own processes learns, with one worker and with several."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tytoalba.bench.speed.rows import Row, memory_peak
from tytoalba.data.folder import write_array, write_recording
from tytoalba.data.source import FolderSource
from tytoalba.learning.cluster.connection import LOCAL, Address, DaskWorkers, connected
from tytoalba.learning.cluster.part_file import PartFile
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.shards import learn_on
from tytoalba.signal.array import load_array
from tytoalba.storage.parallel import available_cores

ARRAY = "respeaker-usb-4"
FIRST = 8
"""Recordings that are learned before, so that every worker has begun."""
PATIENCE = 120.0
"""Seconds to wait for all workers."""


def measure_workers(
    numbers: Sequence[int],
    n_recordings: int,
    n_features: int,
    machine_busy: bool = False,
    seconds: float = 5.0,
    repeats: int = 2,
) -> list[Row]:
    """Frames per second from sound files to sums, with so many workers; none without the extra `cluster`.

    machine_busy: counts the seconds of the CPU of the worker that had most to do, in place of the clock. It
    says how evenly the work is divided and what dividing costs, as if each worker had a core of its own.
    """
    if importlib.util.find_spec("distributed") is None:
        return []
    rates, peak = dict[int, float](), 0
    with tempfile.TemporaryDirectory() as folder:
        data = _write_lessons(Path(folder) / "data", n_recordings, seconds)
        for n in numbers:
            with connected(Address(LOCAL, processes=n)) as workers:
                workers.client.wait_for_workers(n, timeout=PATIENCE)
                _seconds(workers, FolderSource(data, "first"), n_features, seed=0)  # imports, tables
                for repeat in range(1, repeats + 1):
                    before = workers.client.run(time.process_time)
                    n_frames, took = _seconds(workers, FolderSource(data, "train"), n_features, repeat)
                    after = workers.client.run(time.process_time)
                    computed = max(after[one] - before[one] for one in after)
                    rates[n] = max(rates.get(n, 0.0), n_frames / (computed if machine_busy else took))
                peak = max(peak, *workers.client.run(memory_peak).values())
    task = f"learning on a cluster of this machine, D = {n_features}"
    note = "by the CPU of the busiest worker" if machine_busy else f"on {available_cores()} cores"
    rows = [
        Row(task, f"Dask, {n} worker{'s' * (n > 1)}", rate, "frames/s", rate / rates[numbers[0]], n, note)
        for n, rate in rates.items()
    ]
    return [*rows, Row(task, "peak of memory of a worker", peak / 1e9, "GB", None, 1)]


def _seconds(workers: DaskWorkers, source: FolderSource, n_features: int, seed: int) -> tuple[int, float]:
    """Frames of a data set, and how long the cluster takes to learn them; another seed is other work."""
    localizer, done = Localizer.new(ARRAY, n_features=n_features, seed=seed), PartFile(source.root / "part")
    start = time.perf_counter()
    change = learn_on(workers, localizer, source, done)
    took = time.perf_counter() - start
    done.remove()
    return change.n_frames, took


def _write_lessons(root: Path, n_recordings: int, seconds: float) -> Path:
    """Recordings of noise: a few to begin with, and those that are timed."""
    array, rng = load_array(ARRAY), np.random.default_rng(0)
    hop = array.frame_length // 2
    write_array(root, array)
    for number in range(n_recordings + FIRST):
        samples = 0.1 * rng.standard_normal((array.n_mics, round(seconds * array.sample_rate)))
        n_frames = samples.shape[1] // hop - 1
        part = "first" if number < FIRST else "train"
        azimuth = np.full((n_frames, 1), number * 10.0 % 360.0)
        write_recording(
            root, part, f"r{number}", samples.astype(np.float32), array, np.arange(n_frames), azimuth
        )
    return root
