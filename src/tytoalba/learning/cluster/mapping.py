"""Independent tasks on a cluster, their answers in order, and few of them in work at a time."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tytoalba.learning.cluster.workers import Task, Workers

AHEAD = 4
"""Tasks in work, or waiting for their turn, for each thread of the workers."""


class Asked(NamedTuple):
    """One call: its name, which no other has, and plain arguments. sealed: only for who was given keys."""

    name: str
    arguments: tuple[object, ...]
    sealed: bool = False


def in_order(
    workers: Workers, function: Callable[..., bytes], calls: Iterable[Asked], *header: object
) -> Iterator[object]:
    """The answers to calls of a function, in their order; calls are taken no faster than they are answered.

    header: arguments before those of each call.
    """
    todo, waiting, finished = iter(calls), deque[Task](), set[Task]()
    more = True
    while more or waiting:
        while more and len(waiting) < AHEAD * workers.n_threads:
            call = next(todo, None)
            if call is None:
                more = False
                break
            name = f"tyto-{function.__name__}-{hashlib.sha256(call.name.encode()).hexdigest()}"
            waiting.append(workers.submit(function, *header, *call.arguments, name=name, sealed=call.sealed))
        while waiting and waiting[0] in finished:
            task = waiting.popleft()
            finished.remove(task)
            yield workers.answer(task)
        if waiting and waiting[0] not in finished:
            finished.add(workers.finished())
            finished &= set(waiting)
