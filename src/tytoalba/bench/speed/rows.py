"""Rows of the table of speeds, and how they are timed: in turns, the best turn of each, threads stated."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from tytoalba.learning.sums import import_torch

_clock: ContextVar[Callable[[], float]] = ContextVar("clock", default=time.perf_counter)


def now() -> float:
    """Seconds, by the clock; those that this process computed, within `busy`."""
    return _clock.get()()


@contextmanager
def busy(machine: bool) -> Iterator[None]:
    """On a machine that is busy with other things, count the seconds of the CPU. They mean one thread."""
    before = _clock.set(time.process_time if machine else time.perf_counter)
    try:
        yield
    finally:
        _clock.reset(before)


@dataclass(frozen=True)
class Row:
    """One measurement. ratio: how many times as good as the peer of its task (None: it has none)."""

    task: str
    name: str
    value: float
    unit: str
    ratio: float | None
    threads: int
    note: str = ""


@dataclass(frozen=True)
class Exponent:
    """How the time of a task grows with a size: seconds ~ size ** exponent, fitted to those measured."""

    task: str
    against: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    exponent: float

    @classmethod
    def fitted(cls, task: str, against: str, seconds: Mapping[int, float]) -> Exponent:
        """By least squares in logarithms.

        >>> Exponent.fitted("a square", "its side", {1: 2.0, 2: 8.0, 4: 32.0}).exponent
        2.0
        """
        sizes, times = tuple(seconds), tuple(seconds.values())
        slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        return cls(task, against, sizes, times, round(slope, 3))


@dataclass(frozen=True)
class Ceiling:
    """What a task reaches of what this machine can do: both in `unit`, measured in the same run."""

    task: str
    ceiling: str
    reached: float
    possible: float
    unit: str

    @property
    def share(self) -> float:
        """Of what is possible, 0 to 1."""
        return self.reached / self.possible


def best_of(contenders: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of the best turn of each; they take turns, so that a busy machine hurts all alike."""
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(repeats):
        for name, run in contenders.items():
            start = now()
            run()
            best[name] = min(best[name], now() - start)
    return best


def compared(
    task: str, seconds: Mapping[str, float], amount: float, unit: str, threads: int, peer: float | None = None
) -> list[Row]:
    """Rows of `amount` per second; the first is the peer, unless `peer` says how many seconds it takes."""
    against = peer or next(iter(seconds.values()))
    return [Row(task, name, amount / took, unit, against / took, threads) for name, took in seconds.items()]


@contextmanager
def using(threads: int, torch: bool = False) -> Iterator[None]:
    """So many threads for BLAS, and for torch where it takes part."""
    import scipy.linalg  # noqa: F401 - only a BLAS that is loaded can be limited

    before = import_torch().get_num_threads() if torch else 0
    with threadpool_limits(threads):
        if torch:
            import_torch().set_num_threads(threads)
        try:
            yield
        finally:
            if torch:
                import_torch().set_num_threads(before)


def median_and_tail(seconds: Sequence[float]) -> tuple[float, float]:
    """Milliseconds that half, and 99 of 100, stay below.

    >>> median_and_tail([0.001, 0.002, 0.003])
    (2.0, 2.98)
    """
    p50, p99 = np.percentile(np.asarray(seconds) * 1000.0, [50, 99])
    return float(p50), float(p99)


def memory_peak() -> int:
    """Bytes that this process has had in memory at most."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says counts the process that started this one, too
        line = next(line for line in status.read_text("utf-8").splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
