"""Learning on a cluster gives the state that learning here gives, to the bit; or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.states import ARRAY, wave
from tests.helpers.workers import Job, StandIn
from tytoalba.data.datasets import open_dataset
from tytoalba.data.folder import write_array, write_recording
from tytoalba.data.source import FolderSource
from tytoalba.errors import ClusterError, ClusterLostError, DataError, FileError, SealError, TytoError
from tytoalba.learning.cluster import given_keys
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.cluster.part_file import PartFile
from tytoalba.learning.triangles import packed
from tytoalba.learning.tyto import Sums
from tytoalba.localizer import shards
from tytoalba.localizer.lessons import gather
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.offsets import Offsets
from tytoalba.localizer.shards import learn_on
from tytoalba.localizer.state import State
from tytoalba.signal.array import load_array
from tytoalba.storage.keys import make_identity, read_identities
from tytoalba.storage.sealed import seal_file

MICS = load_array(ARRAY)
N = 9


def fresh() -> Localizer:
    return Localizer.new(ARRAY, n_features=60, seed=3)


def write_lessons(root: Path, n: int = N, seconds: float = 0.4) -> Path:
    """Short recordings, one of them without a source."""
    write_array(root, MICS)
    for k in range(n):
        where = 40.0 * k % 360
        samples = wave(where, seconds, k).astype(np.float32)
        azimuth = np.full((2, 2), np.nan)
        if k != 4:
            azimuth[:, 0] = where
        write_recording(root, "train" if k % 3 else "test", f"r{k}", samples, MICS, np.arange(2), azimuth)
    return root


@pytest.fixture(scope="module")
def lessons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lessons(tmp_path_factory.mktemp("lessons") / "data")


@pytest.fixture(scope="module")
def alone(lessons: Path) -> bytes:
    """The state that one machine learns."""
    localizer = fresh()
    localizer.learn(open_dataset(lessons))
    return localizer.to_bytes()


def part_file(folder: Path) -> PartFile:
    return PartFile(folder / "state.tyto.part")


@pytest.mark.parametrize("seed", range(3))
def test_the_state_is_that_of_one_machine(
    seed: int, lessons: Path, alone: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "ROWS", (4096, 8, 1)[seed])
    localizer, seen = fresh(), list[tuple[int, int]]()
    change = learn_on(
        StandIn(seed, n_threads=1 + seed, twice=True),
        localizer,
        FolderSource(lessons),
        part_file(tmp_path),
        lambda *step: seen.append(step),
    )
    assert localizer.to_bytes() == alone
    assert (change.what, change.n_frames, len(change.lessons)) == ("learned", 16, N - 1)
    assert seen[-1] == (N, N)
    assert sorted(seen) == seen


def test_a_part_and_long_recordings_and_what_was_taught_before(tmp_path: Path) -> None:
    root, sound = (write_lessons(tmp_path / "data", 3), wave(33.0, 4.0, 9).astype(np.float32))
    write_recording(root, "train", "long", sound, MICS, np.arange(44), np.full((44, 1), 33.0))
    one, many = (Localizer.new(ARRAY, n_features=8, seed=3) for _ in range(2))  # so that sums are smaller
    for localizer in (one, many):
        localizer.teach(wave(300.0, 0.4, 77), 300.0, who="anna", keep=True, when=1)
    one.learn([r for r in open_dataset(root) if r.subset == "train"])
    learn_on(StandIn(5), many, FolderSource(root, "train"), part_file(tmp_path))
    assert one.n_frames == 3 + 2 + 2 + 44
    assert many.to_bytes() == one.to_bytes()


def test_goes_on_where_the_cluster_was_lost(lessons: Path, alone: bytes, tmp_path: Path) -> None:
    localizer, done = fresh(), part_file(tmp_path)
    untaught = localizer.to_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tytoalba.learning.cluster.adding.LARGEST_TREE", 2)
        patch.setattr("tytoalba.learning.cluster.adding.TREES", 1)
        with pytest.raises(ClusterLostError):
            learn_on(StandIn(lost_after=9), localizer, FolderSource(lessons), done)
        assert localizer.to_bytes() == untaught
        workers = StandIn(1)
        learn_on(workers, localizer, FolderSource(lessons), done)
    assert 0 < workers.count("shard") < N
    assert localizer.to_bytes() == alone
    with pytest.raises(ClusterError, match="begun with other recordings, or for another state"):
        learn_on(StandIn(), Localizer.new(ARRAY, n_features=60, seed=4), FolderSource(lessons), done)
    with pytest.raises(ClusterError, match="begun with other recordings, or for another state"):
        learn_on(StandIn(), fresh(), FolderSource(lessons, "test"), done)


def test_nothing_is_learned_twice(lessons: Path, alone: bytes, tmp_path: Path) -> None:
    taught = Localizer.from_bytes(alone)
    with pytest.raises(TytoError, match="this was taught already"):
        learn_on(StandIn(), taught, FolderSource(lessons), part_file(tmp_path))
    assert taught.to_bytes() == alone
    root = write_lessons(tmp_path / "data", 3)
    for suffix in (".wav", ".csv"):
        (root / "train" / f"again{suffix}").write_bytes((root / "train" / f"r1{suffix}").read_bytes())
    localizer = fresh()
    with pytest.raises(TytoError, match="this was taught already"):
        learn_on(StandIn(), localizer, FolderSource(root), PartFile(tmp_path / "other.part"))
    assert localizer.n_frames == 0


def seal_all(root: Path, public: str) -> None:
    for file in [*(root / "train").iterdir(), root / "array.toml"]:
        seal_file(file, file.with_name(file.name + ".age"), [public])
        file.unlink()


def test_only_workers_with_a_key_open_sealed_recordings(tmp_path: Path, alone: bytes) -> None:
    root = write_lessons(tmp_path / "data")
    seal_all(root, make_identity(tmp_path / "key"))
    localizer, source = fresh(), FolderSource(root)
    with pytest.raises(ClusterError, match="none of the workers was given a key"):
        learn_on(StandIn(has_keys=False), localizer, source, part_file(tmp_path))
    with pytest.raises(SealError, match="sealed"):  # a worker that says it has a key, and has none
        learn_on(StandIn(), localizer, source, part_file(tmp_path))
    assert localizer.n_frames == 0
    assert not part_file(tmp_path).path.exists()
    given_keys.give(read_identities(tmp_path / "key"))
    try:
        learn_on(StandIn(), localizer, source, part_file(tmp_path))
    finally:
        given_keys.give(None)
    assert localizer.to_bytes() == alone


def test_what_is_wrong_is_said_and_nothing_is_learned(tmp_path: Path) -> None:
    root, localizer = write_lessons(tmp_path / "data", 3), fresh()

    def learn(workers: StandIn | None = None) -> None:
        learn_on(workers or StandIn(), localizer, FolderSource(root), part_file(tmp_path))

    wav = root / "train" / "r1.wav"
    content = wav.read_bytes()

    def rewritten(job: Job, data: bytes) -> bytes:
        if job.function is shards.digests:
            wav.write_bytes(content[:-8] + bytes(8))
        return data

    with pytest.raises(DataError, match="r1 was changed while it was read"):
        learn(StandIn(change=rewritten))
    wav.write_bytes(content[:2000])
    with pytest.raises(TytoError, match=r"r1\.wav is cut short"):
        learn()
    wav.write_bytes(content)
    for change in (fewer, *map(otherwise, DIGESTS)):
        with pytest.raises(ClusterError, match="other recordings"):
            learn(StandIn(change=change))
    write_array(root, load_array("respeaker-6mic"))
    with pytest.raises(TytoError, match="recorded by another array"):
        learn()
    write_array(root, MICS)
    for table in root.rglob("*.csv"):
        table.write_text("frame,azimuth\n0,\n")
    part_file(tmp_path).remove()
    with pytest.raises(TytoError, match="nothing to learn: no frame has a source"):
        learn()
    assert localizer.n_frames == 0


def fewer(job: Job, data: bytes) -> bytes:
    """Digests of one recording instead of all."""
    if job.function is not shards.digests:
        return data
    told, some = job.arguments
    return shards.digests(told, json.dumps(json.loads(some)[:1]))


Arrays = dict[str, Any]
DIGESTS: list[Callable[[Arrays], Arrays]] = [
    lambda a: {name: a[name] for name in ("names", "sizes")},
    lambda a: a | {"names": a["names"].astype(np.int64)},
    lambda a: a | {"sizes": -a["sizes"]},
    lambda a: a | {"sealed": a["sealed"].astype(np.uint8)},
    lambda a: a | {"more": a["sizes"]},
]
"""What a worker may say of recordings instead of what it should."""


def otherwise(alter: Callable[[Arrays], Arrays]) -> Callable[[Job, bytes], bytes]:
    def change(job: Job, data: bytes) -> bytes:
        if job.function is not shards.digests:
            return data
        return answer("digests", {}, alter(read_answer(data, "digests", 2**16)[1]))

    return change


def test_a_recipe_holds_nothing_that_was_taught(alone: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    taught = State.from_bytes(alone)
    assert taught.recipe() == fresh().state.recipe()
    again = State.of_recipe(taught.recipe())
    assert (again.options, again.array, again.constants) == (taught.options, taught.array, taught.constants)
    assert again.n_frames == 0
    with pytest.raises(FileError, match="no recipe of tytoalba but tytoalba-state"):
        State.of_recipe(alone)
    recipe = taught.recipe()
    monkeypatch.setattr("tytoalba.localizer.state.__version__", "9.9")
    with pytest.raises(FileError, match=r"is of tytoalba 0\.1\.0, and here is 9\.9: install one version"):
        State.of_recipe(recipe)


def test_sums_that_no_lessons_can_have_are_refused(lessons: Path) -> None:
    localizer = fresh()
    state = localizer.state
    recording = open_dataset(lessons)[0]
    lesson = gather(state.learner, localizer.phases(recording), 3, state.frontend)
    part = state.learner.sums(lesson.part)  # type: ignore[arg-type]
    untaught = state.to_bytes()
    huge = Offsets(*(values + 10**9 for values in lesson.release))
    for lessons_of, sums, release in (
        ([(lesson.name, 3)], part, lesson.release),
        ([(lesson.name, 2), ("a", 1)], part, lesson.release),
        ([(lesson.name, 2)], Sums(part.head, part.counts * 0), lesson.release),
        ([(lesson.name, 2)], part, huge),
    ):
        with pytest.raises(FileError, match="these sums belong to no such lessons"):
            state.add_sums(lessons_of, sums, release)
    with pytest.raises(TytoError, match="taught already"):
        state.add_sums([(lesson.name, 1), (lesson.name, 1)], part, lesson.release)
    assert state.to_bytes() == untaught
    state.add_sums([(lesson.name, 2)], part, lesson.release)
    one = fresh()
    one.learn([recording])
    assert state.to_bytes() == one.to_bytes()
    assert packed(part.head.memory())["G"].dtype == np.int32
