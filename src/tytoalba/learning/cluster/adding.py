"""Shards added up on the workers, in trees of a bounded number of shards: few of them wait at a time.

A tree has a few shards per worker. Its leaves are shards, each inner task adds a few answers, and only the
last sum travels to who asked. Two trees are in work at a time, so that nobody waits for the slowest shard of
one of them, and no more than that is ever in the memory of the workers. What came from sealed recordings is
added on workers that were given a key, and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tytoalba.errors import ClusterError
from tytoalba.learning.cluster.partial_sums import PartialSums, Shapes
from tytoalba.learning.cluster.workers import Task, Workers

FAN_IN = 4
"""Answers that are added by one task."""
PER_THREAD = 4
"""Shards of a tree for each thread of the workers."""
LARGEST_TREE = 256
TREES = 2
"""Trees in work at a time."""


@dataclass(frozen=True)
class Shard:
    """Some recordings that are worked on together. names: of each (32 bytes); arguments: what the task gets.

    sealed: whether it needs a worker that was given keys.
    """

    names: tuple[bytes, ...]
    arguments: tuple[object, ...]
    sealed: bool = False

    @property
    def name(self) -> str:
        """A digest of the names of its recordings."""
        return hashlib.sha256(b"".join(self.names)).hexdigest()


@dataclass
class Work:
    """What to do with shards. compute: gives the sums of one, as bytes. total: of all recordings.

    header: arguments of `compute` before those of the shard, such as a task that gives the recipe.
    """

    compute: Callable[..., bytes]
    recipe: str
    shapes: Shapes
    total: int
    header: tuple[object, ...] = ()


@dataclass
class _Tree:
    shards: list[Shard]
    waiting: dict[Task, int] = field(default_factory=dict)  # leaves, with their recordings
    root: Task | None = None


class _Sum(NamedTuple):
    """A shard or a sum of some. sealed: whether any of it is; sums tell of what they were made from."""

    name: str
    task: Task
    sealed: bool


def add_up(
    workers: Workers,
    work: Work,
    shards: Sequence[Shard],
    on_done: Callable[[int], None] = lambda _: None,
) -> Iterator[PartialSums]:
    """The sums of all shards, tree by tree. on_done: called with the number of recordings of each shard."""
    todo, trees = deque(shards), list[_Tree]()
    while todo or trees:
        while todo and len(trees) < TREES:
            size = min(LARGEST_TREE, max(FAN_IN, PER_THREAD * workers.n_threads))
            trees.append(_submitted(workers, work, [todo.popleft() for _ in range(min(size, len(todo)))]))
        task = workers.finished()
        tree = next((one for one in trees if task in one.waiting or task is one.root), None)
        if tree is None:  # a sum on its way up
            continue
        for n in [tree.waiting.pop(task, 0)] if task is not tree.root else [*tree.waiting.values()]:
            on_done(n)
        if task is tree.root:
            trees.remove(tree)
            yield _checked(workers.answer(task), work, tree)


def _submitted(workers: Workers, work: Work, shards: list[Shard]) -> _Tree:
    tree = _Tree(shards)
    level: list[_Sum] = []
    for shard in shards:
        name = f"tyto-shard-{hashlib.sha256((work.recipe + shard.name).encode()).hexdigest()}"
        task = workers.submit(work.compute, *work.header, *shard.arguments, name=name, sealed=shard.sealed)
        tree.waiting[task] = len(shard.names)
        level.append(_Sum(name, task, shard.sealed))
    shapes = json.dumps({name: list(shape) for name, shape in work.shapes.items()})
    while len(level) > 1:
        above: list[_Sum] = []
        for first in range(0, len(level), FAN_IN):
            some = level[first : first + FAN_IN]
            if len(some) == 1:
                above += some
                continue
            name = f"tyto-sum-{hashlib.sha256(''.join(one.name for one in some).encode()).hexdigest()}"
            sealed, parts = any(one.sealed for one in some), [one.task for one in some]
            task = workers.submit(
                add, shapes, work.recipe, work.total, *parts, name=name, sealed=sealed, urgent=1
            )
            above.append(_Sum(name, task, sealed))
        level = above
    (top,) = level
    tree.root = top.task
    return tree


def add(shapes: str, recipe: str, most: int, *parts: bytes) -> bytes:
    """The sum of some answers, on a worker."""
    wanted = json.loads(shapes)
    total = PartialSums.from_bytes(parts[0], wanted, recipe, most)
    for part in parts[1:]:
        total = total.plus(PartialSums.from_bytes(part, wanted, recipe, most))
    return total.to_bytes()


def _checked(data: object, work: Work, tree: _Tree) -> PartialSums:
    found = PartialSums.from_bytes(data, work.shapes, work.recipe, work.total)
    if found.shards != {name for shard in tree.shards for name in shard.names}:
        raise ClusterError("a worker answered with the sums of other shards: are all of one version?")
    return found
