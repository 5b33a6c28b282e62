"""Learning on many machines: lessons computed where the workers are, added up there, learned here.

A worker gets a recipe, which is all of a state but what it was taught, and names of recordings, which it
reads itself. It answers with sums. These are the integers that learning here gives, so the state is the same
to the bit, whoever computed which part of it, in which order and how often.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tytoalba.data.recording import Listed
from tytoalba.data.source import FolderSource, described_source
from tytoalba.errors import ClusterError, DataError, TytoError
from tytoalba.learning.cluster.adding import Shard, Work, add_up
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.cluster.given_keys import given
from tytoalba.learning.cluster.mapping import Asked, in_order
from tytoalba.learning.cluster.part_file import PartFile
from tytoalba.learning.cluster.partial_sums import NAME, PartialSums, Shapes
from tytoalba.learning.cluster.workers import Workers
from tytoalba.learning.triangles import packed, square
from tytoalba.learning.tyto import Lesson, Sums
from tytoalba.localizer.lessons import Gathered, gather
from tytoalba.localizer.localizer import Change, Localizer
from tytoalba.localizer.offsets import N_SUMS, Offsets
from tytoalba.localizer.state import State
from tytoalba.storage.tensors import Arrays

READ_AT_ONCE = 32
"""Recordings whose digests are one task."""
LARGEST_SHARD = 64 * 2**20
"""Bytes of sound that are worked on together: about ten minutes of four microphones."""
SHARDS_PER_THREAD = 8
"""Of small data sets at least that many, so that nobody waits for long at the end."""
ROWS = 4096
"""Rows that are added to the sums together."""


class Found(NamedTuple):
    """A recording as a worker sees it. name: digest of what it is and holds; size: bytes of its files."""

    listed: Listed
    name: bytes
    size: int
    sealed: bool


def learn_on(
    workers: Workers,
    localizer: Localizer,
    source: FolderSource,
    done: PartFile,
    on_progress: Callable[[int, int], None] | None = None,
) -> Change:
    """Learn all recordings of a source on a cluster: all of them, or none.

    done: remembers finished shards, for the next time if this is interrupted; to be removed by who has
    written the state. The source must be there for the workers, under the same path.
    """
    state = localizer.state
    recipe = state.recipe()
    digest = hashlib.sha256(recipe).hexdigest()
    found = list(_found(workers, source))
    n_done = 0

    def advance(n: int) -> None:
        nonlocal n_done
        n_done += n
        if on_progress:
            on_progress(n_done, len(found))

    names = frozenset(one.name for one in found)
    if len(names) != len(found):
        raise DataError("two recordings of this data set have one name")
    shapes = _shapes(state)
    total = done.read(shapes, digest, len(found), names)
    if total is not None:
        advance(len(total.shards))
    known = total.shards if total else frozenset()
    shards = _cut([one for one in found if one.name not in known], workers.n_threads)
    told = json.dumps(source.described())
    work = Work(learn_shard, digest, shapes, len(found), (_passed_on(workers, recipe, digest), told))
    for part in add_up(workers, work, shards, advance):
        total = part if total is None else total.plus(part)
        done.write(total)
    if total is None or not total.lessons:
        raise TytoError("there is nothing to learn: no frame has a source")
    return localizer.learn_sums([(name.hex(), n) for name, n in total.lessons], *_read(state, total))


def _found(workers: Workers, source: FolderSource) -> Iterator[Found]:
    """All recordings; workers compute the digests of their files."""
    listed = source.listed()
    told = json.dumps(source.described())

    def calls() -> Iterator[Asked]:
        for first in range(0, len(listed), READ_AT_ONCE):
            some = [(one.subset, one.file) for one in listed[first : first + READ_AT_ONCE]]
            stamps = [
                file.stat() for one in listed[first : first + READ_AT_ONCE] for file in source.files(one)
            ]
            name = repr((told, some, [(stamp.st_size, stamp.st_mtime_ns) for stamp in stamps]))
            yield Asked(name, (told, json.dumps(some)))

    for number, data in enumerate(in_order(workers, digests, calls())):
        some = listed[number * READ_AT_ONCE : (number + 1) * READ_AT_ONCE]
        _, arrays = read_answer(data, "digests", 2**16)
        n = len(some)
        wanted = {"names": ("uint8", (n, NAME)), "sizes": ("int64", (n,)), "sealed": ("bool", (n,))}
        right = {name: (str(values.dtype), values.shape) for name, values in arrays.items()} == wanted
        if not right or (arrays["sizes"] < 0).any():
            raise ClusterError("a worker answered with other recordings: are all of one version?")
        for k, one in enumerate(some):
            name, size, sealed = (arrays[of][k] for of in ("names", "sizes", "sealed"))
            yield Found(one, name.tobytes(), int(size), bool(sealed))


def digests(told: str, some: str) -> bytes:
    """On a worker: what recordings are and hold, as digests; nothing is opened."""
    source = _source(told)
    names, sizes, sealed = [], [], []
    for subset, file in json.loads(some):
        listed = Listed(subset, file)
        names.append(np.frombuffer(_name(source, listed), np.uint8))
        sizes.append(sum(path.stat().st_size for path in source.files(listed)))
        sealed.append(source.sealed(listed))
    arrays: Arrays = {"names": np.stack(names), "sizes": np.array(sizes, np.int64)}
    return answer("digests", {}, arrays | {"sealed": np.array(sealed)})


def _name(source: FolderSource, listed: Listed) -> bytes:
    """Digest of what a recording is called and of all its files."""
    name = hashlib.sha256(repr((listed.subset, listed.file)).encode())
    for path in source.files(listed):
        with _there(path).open("rb") as opened:
            name.update(hashlib.file_digest(opened, "sha256").digest())
    return name.digest()


def _there(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} is not there for a worker: every machine needs the data under the same path")
    return path


def _cut(found: Sequence[Found], n_threads: int) -> list[Shard]:
    """Recordings in shards of about the same size, sealed ones by themselves."""
    size = sum(one.size for one in found) / (SHARDS_PER_THREAD * n_threads)
    most = max(1, min(LARGEST_SHARD, size))
    shards: list[list[Found]] = []
    for one in sorted(found, key=lambda one: one.sealed):  # else in their order
        last = shards[-1] if shards else []
        if not last or last[0].sealed != one.sealed or sum(other.size for other in last) + one.size > most:
            shards.append([one])
        else:
            last.append(one)
    return [
        Shard(
            tuple(one.name for one in some),
            (json.dumps([(one.listed.subset, one.listed.file, one.name.hex()) for one in some]),),
            some[0].sealed,
        )
        for some in shards
    ]


def _passed_on(workers: Workers, recipe: bytes, digest: str) -> object:
    """The recipe as a task, so that it is sent once, and is made again when its worker dies."""
    return workers.submit(same, recipe, name=f"tyto-recipe-{digest}", urgent=2)


def same(recipe: bytes) -> bytes:
    """On a worker: the recipe."""
    return recipe


@lru_cache(maxsize=2)
def _state(recipe: bytes) -> State:
    return State.of_recipe(recipe, "the recipe")


def learn_shard(recipe: bytes, told: str, some: str) -> bytes:
    """On a worker: the sums of some recordings, which it opens with the keys that it was given."""
    state, source, keys = _state(recipe), _source(told), given()
    localizer = Localizer(state)
    total, shards = _Total(state), set[bytes]()
    for subset, file, name in json.loads(some):
        listed = Listed(subset, file)
        phases = localizer.phases(source.recording(listed, keys))
        if phases:
            total.add(gather(state.learner, phases, state.options["seed"], state.frontend))
        if _name(source, listed).hex() != name:
            raise DataError(f"{listed.name} was changed while it was read: try again when nobody writes it")
        shards.add(bytes.fromhex(name))
    digest = hashlib.sha256(recipe).hexdigest()
    return PartialSums(digest, frozenset(shards), tuple(total.lessons), total.sums()).to_bytes()


def _source(told: str) -> FolderSource:
    source = described_source(json.loads(told))
    if not isinstance(source, FolderSource):
        raise ClusterError("lessons are recordings in a folder, not simulations")
    return source


class _Total:
    """The sums of lessons; rows of short ones are added together, which is much faster."""

    def __init__(self, state: State) -> None:
        self._learner = state.learner
        self._rows: list[Lesson] = []
        self._sums: Sums | None = None
        self._release = Offsets.none()
        self.lessons: list[tuple[bytes, int]] = []

    def add(self, lesson: Gathered) -> None:
        self.lessons.append((bytes.fromhex(lesson.name), lesson.n_frames))
        self._release = self._release.plus(lesson.release)
        if isinstance(lesson.part, Lesson):
            self._rows.append(lesson.part)
            if sum(len(part.H) for part in self._rows) >= ROWS:
                self._flush()
        elif self._sums is None:
            self._sums = lesson.part
        else:
            head = self._sums.head.merge(lesson.part.head)
            self._sums = Sums(head, self._sums.counts + lesson.part.counts)

    def _flush(self) -> None:
        if self._rows:
            H, Y, counts = zip(*self._rows, strict=True)
            rows = Lesson(np.concatenate(H), np.concatenate(Y), np.sum(counts, axis=0, dtype=np.int64))
            self._sums, self._rows = self._learner.sums(rows, self._sums), []

    def sums(self) -> dict[str, Any]:
        """All of it, as `PartialSums` has it."""
        self._flush()
        whole = self._sums or self._learner.no_sums()
        arrays = packed(whole.head.memory())
        return {
            **{name: np.asarray(arrays[name], np.int64).reshape(arrays[name].shape or 1) for name in arrays},
            "counts": whole.counts,
            "release.lessons": self._release.lessons,
            "release.frames": self._release.frames,
        }


def _shapes(state: State) -> Shapes:
    """Of the sums of a state, by name."""
    D, C = state.learner.n_features, state.learner.n_outputs
    n = len(state.learner.counts)
    release = {f"release.{kind}": (N_SUMS,) for kind in Offsets._fields}
    return {"G": (D * (D + 1) // 2,), "Q": (D, C), "y2": (C,), "n": (1,), "counts": (n,), **release}


def _read(state: State, total: PartialSums) -> tuple[Sums, Offsets]:
    """What to add to a state; what no lessons can have is refused."""
    sums = total.sums
    memory = {name: sums[name] for name in ("Q", "y2", "counts")}
    memory |= {"G": square(sums["G"], state.learner.n_features), "n": np.array(int(sums["n"][0]))}
    return state.learner.read_sums(memory), Offsets(sums["release.lessons"], sums["release.frames"])
