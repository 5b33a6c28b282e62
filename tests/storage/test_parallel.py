"""Several processes: the same results in the same order, errors that surface, one thread each.

The processes are spawned and know nothing of this file, so the work is text for `eval`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tytoalba.storage.parallel import available_cores, parallel_map, threaded_map

# sums of a matrix product that depend on the order of additions, and so on the number of BLAS threads
PRODUCT = "(lambda r: float((r.random((300, 300)) @ r.random((300, 300))).sum()).hex())"
RANDOM = "__import__('numpy').random.default_rng"
# BLAS loaded by the work itself, and how many threads each library would use
THREADS = (
    "(__import__('numpy'), __import__('scipy.linalg'), "
    "[b['num_threads'] for b in __import__('threadpoolctl').threadpool_info()])[-1]"
)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What the work returns or raises; a failure, not a hang, if it takes longer."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(("returned", work()))
        except BaseException as error:
            outcome.append(("raised", error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"still running after {seconds} s"
    kind, value = outcome[0]
    if kind == "raised":
        raise value
    return value


def test_results_order_and_threads_are_the_same_on_any_number_of_processes() -> None:
    # the first pieces are the slowest: whoever gives results as they finish gives them in another order
    items = [
        f"({THREADS}, __import__('time').sleep({0.2 if seed < 2 else 0.0}), {PRODUCT}({RANDOM}({seed})))"
        for seed in range(14)
    ]
    serial = list(parallel_map(eval, items, 1))
    assert len({value for *_, value in serial}) == 14
    for threads, *_ in serial:
        assert threads
        assert set(threads) == {1}
    for processes in (2, 3):
        results = within(60, lambda: list(parallel_map(eval, items, processes)))  # noqa: B023 - called at once
        assert [value for *_, value in results] == [value for *_, value in serial]
        assert [set(threads) for threads, *_ in results] == [{1}] * 14


@pytest.mark.parametrize("processes", [1, 2])
def test_error_surfaces_and_the_rest_is_cancelled(processes: int, tmp_path: Path) -> None:
    items = ["1 + 1", "1 / 0", *(f"open({str(tmp_path / str(i))!r}, 'x').close()" for i in range(60))]
    results = parallel_map(eval, items, processes)

    def consume() -> None:
        assert next(results) == 2
        with pytest.raises(ZeroDivisionError):
            next(results)

    within(60, consume)
    assert len(list(tmp_path.iterdir())) <= (0 if processes == 1 else 4 * processes)
    assert list(results) == []  # an ended iterator stays ended


def test_process_that_dies_is_an_error_and_not_a_hang() -> None:
    items = ["1 + 1", "__import__('os')._exit(3)", "2 + 2", "3 + 3"]
    with pytest.raises(BrokenProcessPool):
        within(60, lambda: list(parallel_map(eval, items, 2)))


def test_results_can_be_left_unread() -> None:
    def first_only() -> Any:
        results = parallel_map(eval, ["__import__('os').getpid()"] * 50, 2)
        first = next(results)
        results.close()  # type: ignore[attr-defined]
        return first

    assert within(60, first_only) != os.getpid()


def test_no_work_and_little_work_start_no_process() -> None:
    start = time.perf_counter()
    assert list(parallel_map(eval, [], 8)) == []
    own = os.getpid()
    assert list(parallel_map(eval, ["__import__('os').getpid()"], 8)) == [own]
    assert time.perf_counter() - start < 5


def test_zero_processes_is_one_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_cores() >= 1
    monkeypatch.setattr("tytoalba.storage.parallel.available_cores", lambda: 1)
    own = os.getpid()
    assert list(parallel_map(eval, ["__import__('os').getpid()"] * 2, 0)) == [own] * 2


def test_threads_keep_the_order_and_read_two_items_ahead_each() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for k in range(50):
            taken.append(k)
            yield k

    def slow(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return k

    found = []
    for result in threaded_map(slow, items(), threads=2):
        found.append(result)
        assert len(taken) <= len(found) + 5
    assert found == taken == list(range(50))


def test_threads_raise_what_the_work_or_the_reading_raised() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        within(20, lambda: list(threaded_map(abs, broken(), threads=2)))
    with pytest.raises(ZeroDivisionError):
        within(20, lambda: list(threaded_map(lambda k: 1 // k, iter([1, 0, 2]), threads=2)))
    assert list(threaded_map(abs, iter([]))) == []


def test_threads_share_memory() -> None:
    data = np.zeros(10)
    list(threaded_map(lambda k: data.__setitem__(k, k), range(10), threads=3))
    assert data.tolist() == list(range(10))
