"""A real cluster over TLS: workers die, lag and answer twice, all restarts; the state has the same bits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.certificates import Certificates, make_certificates
from tests.helpers.clusters import Processes, address, local_cluster, nobody
from tests.helpers.commands import process
from tests.helpers.states import contents, settle
from tests.localizer.test_shards import fresh, seal_all, write_lessons
from tytoalba.cli import cluster as of_commands
from tytoalba.cli.cluster import on_cluster
from tytoalba.data.datasets import open_dataset
from tytoalba.data.source import FolderSource
from tytoalba.errors import ClusterError, ClusterLostError, SealError
from tytoalba.learning.cluster import adding, connection
from tytoalba.learning.cluster.answers import read_answer
from tytoalba.learning.cluster.connection import Address, DaskWorkers, connected
from tytoalba.learning.cluster.part_file import PartFile
from tytoalba.learning.cluster.workers import Task
from tytoalba.localizer import shards
from tytoalba.localizer.shards import learn_on
from tytoalba.storage.keys import make_identity

pytestmark = pytest.mark.end_to_end
N = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def files(folder: Path) -> Certificates:
    return make_certificates(folder)


@pytest.fixture(scope="module")
def lessons(folder: Path) -> Path:
    return write_lessons(folder / "data", N)


@pytest.fixture(scope="module")
def alone(lessons: Path) -> bytes:
    """The state that one machine learns."""
    localizer = fresh()
    localizer.learn(open_dataset(lessons))
    return localizer.to_bytes()


@pytest.fixture(scope="module")
def four(files: Certificates, folder: Path) -> Iterator[Address]:
    """A cluster of four workers without keys."""
    with local_cluster(files, 4, folder) as cluster:
        yield address(cluster.scheduler_address, files)


class Twice(DaskWorkers):
    """Delivers an answer twice to every sum."""

    def submit(self, function: Callable[..., bytes], *arguments: Any, **options: Any) -> Task:
        if function is adding.add:
            arguments = (*arguments, arguments[-1])
        return super().submit(function, *arguments, **options)


def test_a_death_a_slow_one_and_an_answer_twice(
    four: Address, lessons: Path, alone: bytes, tmp_path: Path
) -> None:
    localizer, seen, timers = fresh(), list[tuple[int, int]](), list[threading.Timer]()
    with connected(four) as workers:
        victim, slow, *_ = workers.client.run(os.getpid).values()

        def trouble(*step: int) -> None:
            if not seen:
                os.kill(victim, signal.SIGKILL)
                os.kill(slow, signal.SIGSTOP)
                timers.append(threading.Timer(2.0, os.kill, (slow, signal.SIGCONT)))
                timers[0].start()
            seen.append(step)  # type: ignore[arg-type]

        try:
            learn_on(
                Twice(workers.client), localizer, FolderSource(lessons), PartFile(tmp_path / "p"), trouble
            )
        finally:
            for timer in timers:
                timer.join()
        assert victim not in workers.client.run(os.getpid).values()
    assert localizer.to_bytes() == alone
    assert seen[0][0] < N
    assert seen[-1] == (N, N)


def test_workers_without_a_key_learn_nothing(
    four: Address, lessons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WAIT_FOR_KEYS", 0.5)
    root = tmp_path / "sealed"
    shutil.copytree(lessons, root)
    seal_all(root, make_identity(tmp_path / "key"))
    localizer, source, done = fresh(), FolderSource(root), PartFile(tmp_path / "p")
    untaught = localizer.to_bytes()
    with connected(four) as workers:
        with pytest.raises(ClusterError, match="none of the 4 workers was given a key"):
            learn_on(workers, localizer, source, done)

        class Careless(DaskWorkers):
            def submit(self, *arguments: Any, **options: Any) -> Task:
                return super().submit(*arguments, **options | {"sealed": False})

        with pytest.raises(SealError, match="is sealed, and no key was given"):
            learn_on(Careless(workers.client), localizer, source, done)
    assert localizer.to_bytes() == untaught
    assert not done.path.exists()


def test_strangers_are_refused(four: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 2.0)
    others = make_certificates(tmp_path)
    with (
        pytest.raises(ClusterLostError, match="are the certificates of one authority"),
        connected(address(four.address, others)),
    ):
        pass


def test_goes_on_when_everything_was_restarted(
    files: Certificates, lessons: Path, alone: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_commands, "PAUSE", 0.2)
    monkeypatch.setattr(adding, "LARGEST_TREE", 4)
    monkeypatch.setattr(adding, "TREES", 1)
    root = tmp_path / "data"
    shutil.copytree(lessons, root)
    seal_all(root, make_identity(tmp_path / "key"))
    processes, localizer, done = (Processes(files, tmp_path), fresh(), PartFile(tmp_path / "p"))
    computed = list[int]()

    def begin() -> None:
        processes.start_scheduler()
        processes.start_worker(nobody(tmp_path))
        processes.start_worker(nobody(tmp_path) | {"TYTO_IDENTITY": str(tmp_path / "key")})

    def restart(n: int, _: int) -> None:
        computed.append(n)
        if n >= N // 2 and done.path.exists() and len(restarted) == 0:
            processes.kill()
            begin()
            restarted.append(len(computed))

    restarted = list[int]()
    begin()
    try:
        on_cluster(
            address(processes.place, files),
            lambda workers: learn_on(workers, localizer, FolderSource(root), done, restart),
        )
    finally:
        processes.kill()
    assert localizer.to_bytes() == alone
    again = computed[restarted[0] :]
    assert 1 < again[0] <= N  # it began with what was remembered
    assert again[-1] == N


def test_a_task_is_a_name_and_an_answer_is_bytes(four: Address) -> None:
    with connected(four) as workers:
        task = workers.submit(
            shards.digests, '{"folder": "/nowhere", "part": null}', '[["a", "b.wav"]]', name="x"
        )
        assert workers.finished() is task
        found = workers.answer(task)
        assert isinstance(found, bytes)
        with pytest.raises(Exception, match="/nowhere is not a folder"):
            read_answer(found, "digests", 100)


def test_a_local_cluster_does_what_one_machine_does(
    lessons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    for name in ("one", "many"):
        options = ("-a", "respeaker-usb-4", "--features", "9", "--seed", "3")
        assert process("new", tmp_path / name, *options).code == 0
    assert process("learn", tmp_path / "one", lessons).code == 0
    ran = process("learn", tmp_path / "many", lessons, "--cluster", "local")
    assert ran.code == 0, ran.err
    assert ran.out == "learned 46 frames in 23 lessons\n"
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()
    assert not (tmp_path / "many.part").exists()


def test_every_command_works_on_a_cluster_over_tls(
    four: Address, lessons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    on = ("--cluster", four.address, "--tls-ca", four.ca, "--tls-cert", four.cert, "--tls-key", four.key)
    size = ("-a", "respeaker-usb-4", "--size", "0.03")
    bench = ("srp-phat", "--set", "n_phases=2", "--no-report", *size, "--cache", tmp_path / "cache")
    for name, where in (("one", ()), ("many", on)):
        folder = tmp_path / name
        folder.mkdir()
        for command in (
            ("new", folder / "state", "-a", "respeaker-usb-4", "--features", "9", "--seed", "3"),
            ("learn", folder / "state", lessons, *where),
            ("features", lessons, "-o", folder / "features", *where),
            ("simulate", folder / "homes", *size, *where),
            ("bench", "run", "quick", "--methods", *bench, "-o", folder / "bench", *where),
        ):
            ran = process(*command)
            assert ran.code == 0, ran.err
    one, many = contents(tmp_path / "one"), contents(tmp_path / "many")
    for found in (one, many):
        del found["bench/quick.json"], found["state.ledger"]  # they have times
    assert one == many
    assert {"state", "features"} < one.keys()
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "many") != []


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a benchmark, but for the seconds that learning and answering took."""
    rows = json.loads((folder / "bench" / "quick.json").read_text("utf-8"))["rows"]
    seconds = {"learn_seconds", "answer_seconds"}
    return [{key: value for key, value in row.items() if key not in seconds} for row in rows]
