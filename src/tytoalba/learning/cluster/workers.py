"""What is asked of a cluster: take a task by its name, say which are finished, give the bytes of one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

Task = Hashable
"""Work that was handed in."""


class Workers(Protocol):
    """Who does the work: a Dask cluster (`connection`), or a stand-in in tests."""

    def submit(
        self,
        function: Callable[..., bytes],
        *arguments: Any,
        name: str,
        sealed: bool = False,
        urgent: int = 0,
    ) -> Task:
        """Hand in a task. arguments: plain ones, or other tasks, whose answers it gets.

        name: what tells it from all others; the same name is the same work. sealed: only who was given keys
        can do it. urgent: what is more so comes first.
        """

    def finished(self) -> Task:
        """Wait for a task that is finished and was not told of before. Answers of others are not kept."""

    def answer(self, task: Task) -> object:
        """What a finished task gave. It is forgotten then, like all tasks that nothing refers to."""

    @property
    def n_threads(self) -> int:
        """Tasks that can be worked on at a time; at least 1."""
