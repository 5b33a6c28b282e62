"""Sums on a cluster: each shard once, in any order, checked when they arrive."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.workers import Job, StandIn
from tytoalba.errors import ClusterError, ClusterLostError, DataError, FileError, MissingExtraError, SealError
from tytoalba.learning.cluster import adding
from tytoalba.learning.cluster.adding import Shard, Work, add_up
from tytoalba.learning.cluster.answers import answer, perform, read_answer, refusal
from tytoalba.learning.cluster.mapping import Asked, in_order
from tytoalba.learning.cluster.part_file import PartFile
from tytoalba.learning.cluster.partial_sums import PartialSums
from tytoalba.storage.keys import make_identity, read_identities
from tytoalba.storage.tensors import pack

SHAPES = {"G": (6,), "n": (1,)}
RECIPE = "recipe"


def name(k: int) -> bytes:
    return hashlib.sha256(b"%d" % k).digest()


def shard_of(k: int) -> PartialSums:
    rng = np.random.default_rng(k)
    sums = {"G": rng.integers(-(2**40), 2**40, 6), "n": np.array([k + 1])}
    return PartialSums(RECIPE, frozenset([name(k)]), ((name(k)[:16], k + 1),), sums)


def compute(which: str) -> bytes:
    total = None
    for k in map(int, which.split()):
        if k == 999:
            raise DataError("recording 999 is damaged")
        total = shard_of(k) if total is None else total.plus(shard_of(k))
    assert total
    return total.to_bytes()


def expected(numbers: range) -> bytes:
    return compute(" ".join(map(str, numbers)))


def shards(numbers: range, size: int = 1) -> list[Shard]:
    cut = [list(numbers)[first : first + size] for first in range(0, len(numbers), size)]
    return [Shard(tuple(map(name, some)), (" ".join(map(str, some)),)) for some in cut]


def work(n: int) -> Work:
    return Work(compute, RECIPE, SHAPES, n)


def total_of(parts: list[PartialSums]) -> PartialSums:
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_sums_are_the_same_in_any_order(n: int, size: int, seed: int, threads: int, twice: bool) -> None:
    seen = list[int]()
    workers = StandIn(seed, threads, twice=twice)
    parts = list(add_up(workers, work(n), shards(range(n), size), seen.append))
    assert total_of(parts).to_bytes() == expected(range(n))
    assert sum(seen) == n
    assert workers.count("shard") == len(shards(range(n), size))


def test_few_shards_are_in_work_at_a_time() -> None:
    most = 0

    class Watched(StandIn):
        def finished(self) -> object:
            nonlocal most
            most = max(most, sum(job.function is compute for job in self._waiting))
            return super().finished()

    parts = add_up(Watched(), work(200), shards(range(200)))
    assert total_of(list(parts)).to_bytes() == expected(range(200))
    assert most <= adding.TREES * adding.PER_THREAD * 2


def test_sums_of_sealed_shards_are_added_where_there_are_keys() -> None:
    below = dict[str, set[int]]()

    class Watched(StandIn):
        def submit(self, function: Any, *arguments: Any, **options: Any) -> Any:
            job: Any = super().submit(function, *arguments, **options)
            parts = [one for one in arguments if isinstance(one, Job)]
            below[job.name] = (
                set().union(*(below[one.name] for one in parts)) if parts else {int(arguments[0])}
            )
            assert job.sealed == any(k >= 20 for k in below[job.name])
            return job

    some = [replace(one, sealed=k >= 20) for k, one in enumerate(shards(range(40)))]
    parts = list(add_up(Watched(n_threads=9), work(40), some))
    assert total_of(parts).to_bytes() == expected(range(40))
    several = [found for found in below.values() if len(found) > 1]
    assert any(max(found) < 20 for found in several)
    assert any(min(found) < 20 <= max(found) for found in several)


def test_a_shard_that_is_delivered_twice_counts_once() -> None:
    one, two, three = (shard_of(k).to_bytes() for k in range(3))
    both = adding.add('{"G": [6], "n": [1]}', RECIPE, 3, one, two)
    again = adding.add('{"G": [6], "n": [1]}', RECIPE, 3, both, two, one, three, both)
    assert again == expected(range(3))
    with pytest.raises(ClusterError, match="share some of their shards"):
        adding.add(
            '{"G": [6], "n": [1]}', RECIPE, 3, both, adding.add('{"G": [6], "n": [1]}', RECIPE, 3, two, three)
        )


def test_what_goes_wrong_on_a_worker_is_said_here() -> None:
    with pytest.raises(DataError, match="recording 999 is damaged"):
        list(add_up(StandIn(), work(100), shards(range(990, 1000))))
    broken = perform(compute, "no number")
    with pytest.raises(ClusterError, match="a worker failed with ValueError: invalid literal"):
        read_answer(broken, "sums", 100)
    assert perform(compute, broken) == broken  # and is passed on
    for kind, error in (
        ("SealError", SealError),
        ("MissingExtraError", ClusterError),
        ("print", ClusterError),
    ):
        with pytest.raises(error, match="because"):
            read_answer(refusal(kind, "because"), "sums", 100)
    assert not issubclass(ClusterError, MissingExtraError)


def altered(**changes: Any) -> bytes:
    """An answer whose digest is right, and that says something else."""
    arrays: dict[str, Any] = {"sum.G": np.zeros(6, np.int32), "sum.n": np.ones(1, np.int32)}
    arrays |= {"shards": np.zeros((1, 32), np.uint8), "lessons": np.zeros((0, 16), np.uint8)}
    arrays |= {"frames": np.zeros(0, np.int64)} | changes
    return answer("sums", {"recipe": RECIPE}, {k: v for k, v in arrays.items() if v is not None})


@pytest.mark.parametrize(
    "data",
    [
        "text",
        b"",
        b"PK\x03\x04",
        pack("state", 1, {}, {}),
        shard_of(0).to_bytes()[:-1],
        shard_of(0).to_bytes() + bytes(2**20),
        altered(**{"sum.G": np.zeros(5, np.int32)}),
        altered(**{"sum.G": np.zeros(6)}),
        altered(**{"sum.n": None}),
        altered(**{"sum.more": np.zeros(1, np.int32)}),
        altered(shards=np.zeros((2, 32), np.uint8)),
        altered(shards=np.zeros((1, 31), np.uint8)),
        altered(frames=np.zeros(1, np.int64)),
        altered(lessons=np.zeros((1, 16), np.uint8), frames=np.zeros(1, np.int64)),
        altered(shards=None),
        PartialSums(
            "other", frozenset([name(0)]), (), {"G": np.zeros(6, int), "n": np.ones(1, int)}
        ).to_bytes(),
        compute("1"),  # another shard than was asked for
    ],
)
def test_answers_are_checked_when_they_arrive(data: object) -> None:
    def change(job: Job, given: bytes) -> bytes:
        return data if job.function is compute else given  # type: ignore[return-value]

    with pytest.raises((ClusterError, FileError)):  # a TytoError, or that of a digest
        list(add_up(StandIn(change=change), work(1), shards(range(1))))


def test_what_was_done_is_remembered(tmp_path: Path) -> None:
    done = PartFile(tmp_path / "state.part")
    names = frozenset(map(name, range(50)))
    assert done.read(SHAPES, RECIPE, 50, names) is None
    total, lost = None, 0
    for after in (20, 30, 200):
        kept: frozenset[bytes] = total.shards if total else frozenset()
        todo = [shard for shard in shards(range(50)) if shard.names[0] not in kept]
        try:
            for part in add_up(StandIn(after, lost_after=after), work(50), todo):
                total = part if total is None else total.plus(part)
                done.write(total)
        except ClusterLostError:
            lost += 1
        total = done.read(SHAPES, RECIPE, 50, names)
    assert lost == 2
    assert total
    assert total.to_bytes() == expected(range(50)) == done.path.read_bytes()
    with pytest.raises(ClusterError, match=r"begun with other recordings.*remove state\.part to begin anew"):
        done.read(SHAPES, RECIPE, 50, names - {name(3)})
    with pytest.raises(ClusterError, match="for another state"):
        done.read(SHAPES, "other", 50, names)
    done.path.write_bytes(b"nonsense")
    with pytest.raises(ClusterError, match="for another state"):
        done.read(SHAPES, RECIPE, 50, names)
    done.remove()
    done.remove()
    assert not list(tmp_path.iterdir())


def test_what_is_remembered_of_sealed_states_is_sealed(tmp_path: Path) -> None:
    public = make_identity(tmp_path / "key")
    done = PartFile(tmp_path / "part", read_identities(tmp_path / "key"), [public])
    done.write(shard_of(0))
    assert b"tytoalba" not in done.path.read_bytes()
    found = done.read(SHAPES, RECIPE, 1, frozenset([name(0)]))
    assert found
    assert found.to_bytes() == shard_of(0).to_bytes()
    with pytest.raises(SealError):
        PartFile(done.path).read(SHAPES, RECIPE, 1, frozenset([name(0)]))


def echo(header: str, k: int) -> bytes:
    return answer("echo", {"k": k, "header": header}, {})


@pytest.mark.parametrize("seed", range(5))
def test_answers_come_in_order_and_calls_are_taken_no_faster(seed: int) -> None:
    taken, workers = list[int](), StandIn(seed, 2)

    def calls() -> object:
        for k in range(40):
            taken.append(k)
            yield Asked(str(k), (k,))

    for k, data in enumerate(in_order(workers, echo, calls(), "h")):  # type: ignore[arg-type]
        header, _ = read_answer(data, "echo", 10**4)
        assert (header["k"], header["header"]) == (k, "h")
        assert len(taken) <= k + 1 + 4 * 2 + 1
    assert taken == list(range(40))
    assert list(in_order(workers, echo, [], "h")) == []
    with pytest.raises(ClusterLostError):
        list(
            in_order(
                StandIn(seed, lost_after=3),
                echo,
                (Asked(str(Random(k).random()), (k,)) for k in range(9)),
                "h",
            )
        )
