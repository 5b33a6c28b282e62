"""A stand-in for a cluster: tasks in any order, twice, with losses, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tytoalba.errors import ClusterError, ClusterLostError
from tytoalba.learning.cluster.answers import perform
from tytoalba.learning.cluster.workers import Task


@dataclass(eq=False)
class Job:
    function: Callable[..., bytes]
    arguments: tuple[Any, ...]
    name: str
    sealed: bool = False
    answer: bytes | None = None


@dataclass
class StandIn:
    """Does tasks in a random order, or in turn.

    lost_after: breaks down after so many tasks. has_keys: says that it opens sealed files.
    twice: does every task twice, as when a worker dies after it answered. change: alters answers.
    """

    seed: int = 0
    n_threads: int = 2
    lost_after: int | None = None
    has_keys: bool = True
    twice: bool = False
    in_turn: bool = False
    change: Callable[[Job, bytes], bytes] = lambda _, data: data
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random, self._waiting = Random(self.seed), list[Job]()

    def submit(
        self,
        function: Callable[..., bytes],
        *arguments: Any,
        name: str,
        sealed: bool = False,
        urgent: int = 0,
    ) -> Task:
        assert isinstance(urgent, int)
        if sealed and not self.has_keys:
            raise ClusterError("there are sealed recordings, and none of the workers was given a key")
        job = Job(function, arguments, name, sealed)
        self._waiting.append(job)
        return job

    def finished(self) -> Task:
        if self.lost_after == len(self.done):
            raise ClusterLostError("the cluster is gone")
        ready = [job for job in self._waiting if all(_is_done(one) for one in job.arguments)]
        job = ready[0] if self.in_turn else self._random.choice(ready)
        self._waiting.remove(job)
        for one in job.arguments:
            assert isinstance(one, Job | str | bytes | int | float | bool | None), one
        given = [one.answer if isinstance(one, Job) else one for one in job.arguments]
        job.answer = self.change(job, perform(job.function, *given))
        if self.twice:
            assert self.change(job, perform(job.function, *given)) == job.answer
        self.done.append(job.name)
        return job

    def answer(self, task: Any) -> object:
        return task.answer

    def count(self, kind: str) -> int:
        """Tasks of a kind that were done."""
        return sum(name.startswith(f"tyto-{kind}") for name in self.done)


def _is_done(argument: Any) -> bool:
    return not isinstance(argument, Job) or argument.answer is not None
