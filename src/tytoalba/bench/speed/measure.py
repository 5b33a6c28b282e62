"""All of `tyto speed` in one run: rows, exponents, ceilings, and the machine they were measured on."""

from __future__ import annotations

import datetime
import importlib.util
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tytoalba.bench.speed import learning, localizers, sound, workers
from tytoalba.bench.speed.rows import Ceiling, Exponent, Row, busy
from tytoalba.learning.products import INT8, fastest
from tytoalba.storage.parallel import available_cores

FORMAT = "tytoalba-speed"
Progress = Callable[[int, int, str], None]
"""Called with (done, total, what comes next)."""


@dataclass(frozen=True)
class Sizes:
    """What is measured: the sizes of `tyto speed`, or smaller ones."""

    frames: int = 48
    repeats: int = 7
    file_seconds: float = 120.0
    sums: tuple[int, int] = (5000, 16_000)
    learning: tuple[int, ...] = (1000, 2000, 5000)
    learned: int = 100_000
    batches: int = 40
    slow_batches: int = 4
    lesson: tuple[int, int] = (5000, 60)
    growth_frames: tuple[int, ...] = (4000, 8000, 16_000, 32_000)
    growth_widths: tuple[int, ...] = (1000, 2000, 4000)
    phases: tuple[int, ...] = (1, 4, 16, 64)
    microphones: tuple[int, ...] = (2, 4, 8, 16)
    located: int = 200
    located_features: int | None = None
    taught: tuple[int, int] = (5000, 1024)
    memory: tuple[int, int] | None = (20_000, 50_000)
    gpu: tuple[int, int] = (20_000, 131_072)
    workers: tuple[tuple[int, ...], int, int] | None = ((1, 2, 4), 32, 2000)


QUICK = Sizes(
    frames=4,
    repeats=1,
    file_seconds=3.0,
    sums=(200, 500),
    learning=(60,),
    learned=1000,
    batches=2,
    slow_batches=1,
    lesson=(520, 5),
    growth_frames=(100, 200),
    growth_widths=(50, 100),
    phases=(1, 2),
    microphones=(2, 3),
    located=4,
    located_features=50,
    taught=(50, 16),
    memory=(64, 100),
    gpu=(64, 1024),
    workers=((1, 2), 4, 50),
)
"""Seconds in place of minutes: that everything runs, and no number to quote."""


def measure(
    quick: bool = False,
    on_progress: Progress | None = None,
    memory: bool = True,
    machine_busy: bool = False,
) -> dict[str, Any]:
    """Everything, as JSON has it.

    memory: with the peak at D = 20000, which needs 9 GB and a minute. machine_busy: on one thread, in seconds
    of the CPU, whatever else the machine does.
    """
    sizes, threads = QUICK if quick else Sizes(), 1 if machine_busy else available_cores()
    rows: list[Row] = []
    ceilings: list[Ceiling] = []
    exponents: list[Exponent] = []

    def add_sums() -> None:
        found, tops = learning.measure_sums(*sizes.sums, threads)
        rows.extend(found)
        ceilings.extend(tops)

    steps: list[tuple[str, Callable[[], object]]] = [
        ("GCC-PHAT and SRP-PHAT", lambda: rows.extend(sound.measure_sound(sizes.frames, sizes.repeats))),
        ("sound files", lambda: rows.extend(sound.measure_files(sizes.file_seconds, threads))),
        ("sums", add_sums),
        *(
            (f"learning, D = {D}", lambda D=D: rows.extend(_learning(D, sizes, threads)))
            for D in sizes.learning
        ),
        ("lessons", lambda: rows.extend(learning.measure_lesson(*sizes.lesson, threads))),
        (
            "locating",
            lambda: rows.extend(
                localizers.measure_locating(sizes.located, sizes.located_features, machine_busy)
            ),
        ),
        ("teaching", lambda: rows.append(localizers.measure_teaching(*sizes.taught, threads))),
        ("growth", lambda: exponents.extend(_growth(sizes, threads))),
        ("microphones", lambda: exponents.append(sound.measure_microphones(sizes.microphones))),
        ("ceilings", lambda: ceilings.extend(_ceilings(sizes, threads))),
        ("GPU", lambda: rows.extend(_gpu(sizes))),
        ("workers", lambda: rows.extend(_workers(sizes, machine_busy))),
    ]
    if memory and sizes.memory:
        steps.append(("memory", lambda: rows.append(learning.measure_memory(*sizes.memory))))  # type: ignore[misc]
    for number, (name, step) in enumerate(steps):
        if on_progress:
            on_progress(number, len(steps), name)
        with busy(machine_busy):
            step()
    if on_progress:
        on_progress(len(steps), len(steps), "done")
    return {
        "format": FORMAT,
        "date": datetime.date.today().isoformat(),
        "quick": quick,
        "busy": machine_busy,
        "machine": _machine(threads),
        "rows": [asdict(row) for row in rows],
        "exponents": [asdict(exponent) for exponent in exponents],
        "ceilings": [asdict(ceiling) | {"share": ceiling.share} for ceiling in ceilings],
    }


def _workers(sizes: Sizes, machine_busy: bool) -> list[Row]:
    return workers.measure_workers(*sizes.workers, machine_busy) if sizes.workers else []


def _learning(D: int, sizes: Sizes, threads: int) -> list[Row]:
    return learning.measure_learning(D, sizes.learned, threads, sizes.batches, sizes.slow_batches)


def _growth(sizes: Sizes, threads: int) -> list[Exponent]:
    return learning.measure_growth(threads, sizes.growth_frames, sizes.growth_widths, sizes.phases)


def _ceilings(sizes: Sizes, threads: int) -> list[Ceiling]:
    D = sizes.sums[0]
    return [
        sound.fft_ceiling(sizes.frames, sizes.repeats),
        learning.expansion_ceiling(D, sizes.growth_frames[0], threads),
        learning.memory_ceiling(D),
    ]


def _gpu(sizes: Sizes) -> list[Row]:
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    return learning.measure_gpu(*sizes.gpu) if torch.cuda.is_available() else []


def _machine(threads: int) -> dict[str, Any]:
    import numpy as np

    versions = {}
    for name in ("numpy", "scipy", "torch", "pyroomacoustics"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    kind = "int8" if fastest(np.zeros((1, 1), np.int8), learning.ENDLESS) is INT8 else "float32"
    return {"cpu": _processor(), "cores": threads, "sums": kind, "versions": versions}


def _processor() -> str:
    """What the system calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
