"""Independent pieces of work on several processes or threads: the same results in the same order as on one.

Each piece runs with one BLAS thread: processes that each start a thread per core fight over the cores and
collapse to a tenth of the speed, and the number of threads must not change a single bit.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], processes: int = 1
) -> Iterator[Result]:
    """function(item) for each item, in order, on `processes` processes (0: one per core).

    The function and the items must be picklable. What a piece of work raises is raised here, and the
    rest is cancelled. At most a few results a process wait in memory, and items that come one by one are
    taken no faster than that.

    >>> list(parallel_map(abs, [-2, 3]))
    [2, 3]
    """
    processes = processes or available_cores()
    if isinstance(items, Sized):
        processes = min(processes, len(items))
    if processes <= 1:
        yield from (single_threaded(function, item) for item in items)
        return
    # spawn: safe beside torch, CUDA and threads; no initialiser: one that raises respawns for ever
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        work = partial(_in_worker, function)
        waiting: list[Future[Result]] = []
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= 4 * processes:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()


def threaded_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int = 0
) -> Iterator[Result]:
    """function(item) for each item, in order, on `threads` threads (0: one per core), which share memory.

    For work that numpy does in large pieces, and so without Python's lock: nothing is copied or pickled.
    While they work, items are read ahead, two per thread at most, so memory is bounded. What the work, or
    reading an item, raises is raised here. Until the last result is taken, BLAS has one thread.

    >>> list(threaded_map(abs, iter([-2, 3]), threads=2))
    [2, 3]
    """
    import scipy.linalg  # noqa: F401 - only a BLAS that is loaded can be limited: numpy's and scipy's
    from threadpoolctl import threadpool_limits

    threads = threads or available_cores()
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def available_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def _in_worker(function: Callable[[Item], Result], item: Item) -> Result:
    """In a process of our own, libraries that the work loads later (torch) get one thread too."""
    os.environ["OMP_NUM_THREADS"] = "1"
    return single_threaded(function, item)


def single_threaded(function: Callable[[Item], Result], item: Item) -> Result:
    """function(item) with one BLAS thread."""
    import scipy.linalg  # noqa: F401 - only a BLAS that is loaded can be limited: numpy's and scipy's
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(item)
