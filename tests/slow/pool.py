"""Processes that work through jobs side by side; one that dies or hangs is a finding, not the end.

A job is a range of inputs of one kind. Where a process dies, the input that it was at is written down, and
the rest of the range is done by a new one.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 90.0
"""Seconds without a new input after which a process hangs. Most inputs take a millisecond."""
LOOK = 5.0
"""Seconds between two looks whether who started a process is still there."""
FORK = multiprocessing.get_context("fork")


class Job(NamedTuple):
    """Inputs from start to before stop of one kind."""

    kind: str
    start: int
    stop: int


Done = Callable[[Job, Path, Callable[[int], None]], Any]
"""Does a job in an empty folder, and says before each input which it is."""


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    at: Any
    folder: Path
    job: Job | None = None
    seen: int = -1
    since: float = 0.0

    @property
    def is_stuck(self) -> bool:
        """Whether it has been at one input for too long."""
        if self.job is None or self.at[0] != self.seen:
            self.seen, self.since = self.at[0], time.monotonic()
        return self.job is not None and time.monotonic() - self.since > PATIENCE


def work_through(
    jobs: Iterable[Job], do: Done, n_processes: int, until: float = float("inf")
) -> Iterator[tuple[Job, Any, str]]:
    """Do jobs, and give each with what it brought; or with None and how its process ended at its first input.

    until: time.monotonic() after which no further job is begun.
    """
    left, workers = deque(jobs), list[_Worker]()
    try:
        while left or any(worker.job for worker in workers):
            for worker in workers:
                if worker.job is None and left and time.monotonic() < until:
                    _give(worker, left.popleft())
            if left and len(workers) < n_processes and time.monotonic() < until:
                workers.append(_started(do))
                continue
            busy = [worker for worker in workers if worker.job]
            if not busy:
                return
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                yield from _looked_at(worker, workers, left)
    finally:
        for worker in workers:
            _end(worker)


def _looked_at(worker: _Worker, workers: list[_Worker], left: deque[Job]) -> Iterator[tuple[Job, Any, str]]:
    """What a worker brought, if anything; if it died, its job is divided at the input that killed it."""
    job = worker.job
    assert job is not None
    try:
        if worker.pipe.poll():
            found = worker.pipe.recv()
            worker.job = None
            yield job, found, ""
            return
    except (EOFError, OSError):
        pass
    if worker.process.is_alive() and not worker.is_stuck:
        return
    stuck = worker.process.is_alive()
    _end(worker)
    workers.remove(worker)
    at = min(max(worker.at[0], job.start), job.stop - 1)
    how = "hang" if stuck else f"crash ({worker.process.exitcode})"
    left.extendleft(Job(job.kind, a, b) for a, b in ((job.start, at), (at + 1, job.stop)) if a < b)
    yield Job(job.kind, at, at + 1), None, how


def _started(do: Done) -> _Worker:
    ours, theirs = FORK.Pipe()
    at = RawArray("q", 1)
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="tyto-slow-", dir=shared))
    process = FORK.Process(target=_serve, args=(theirs, at, folder, do), daemon=False)
    process.start()
    theirs.close()
    return _Worker(process, ours, at, folder)


def _serve(pipe: Connection, at: Any, folder: Path, do: Done) -> None:
    def tell(number: int) -> None:
        at[0] = number

    parent = os.getppid()
    while True:
        while not pipe.poll(LOOK):
            if os.getppid() != parent:  # killed: nobody will send anything
                shutil.rmtree(folder, ignore_errors=True)
                return
        if (job := pipe.recv()) is None:
            return
        at[0] = job.start
        work = Path(tempfile.mkdtemp(dir=folder))
        pipe.send(do(job, work, tell))
        shutil.rmtree(work)


def _give(worker: _Worker, job: Job) -> None:
    worker.at[0], worker.seen = job.start, -1
    worker.job = job
    worker.pipe.send(job)


def _end(worker: _Worker) -> None:
    if worker.process.is_alive() and worker.job is None:
        worker.pipe.send(None)
        worker.process.join(5)
    if worker.process.is_alive():
        worker.process.kill()
    worker.process.join()
    worker.pipe.close()
    shutil.rmtree(worker.folder, ignore_errors=True)
