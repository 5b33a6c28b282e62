"""What a cluster says of itself, and what is refused before any work is handed in."""

from __future__ import annotations

from typing import Any

import pytest

from tytoalba.errors import ClusterError, ClusterLostError
from tytoalba.learning.cluster import connection
from tytoalba.learning.cluster.connection import Address, DaskWorkers


class Client:
    """Says what the scheduler would say. versions: of tytoalba, by worker; keys: who has some."""

    def __init__(self, keys: str = "", scheduler: str | None = "1", **versions: str | None) -> None:
        self.keys, self.scheduler, self.versions = keys, scheduler, versions
        self.status, self.asked = "running", 0

    def scheduler_info(self, n_workers: int) -> Any:
        assert n_workers == -1
        resources = {name: {"tyto-key": 1} if name in self.keys else {} for name in self.versions}
        return {"workers": {name: {"nthreads": 2, "resources": resources[name]} for name in self.versions}}

    def get_versions(self, packages: list[str]) -> Any:
        self.asked += 1
        (name,) = packages

        def told(version: str | None) -> Any:
            return {"packages": {name: version}}

        workers = {who: told(version) for who, version in self.versions.items()}
        return {"client": told("1"), "scheduler": told(self.scheduler), "workers": workers}


def test_threads_are_counted_and_new_workers_are_asked_for_their_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "LOOK", -1.0)
    client = Client(a="1", b="1")
    workers = DaskWorkers(client)
    assert workers.n_threads == workers.n_threads == 4
    assert workers.any_there()
    assert client.asked == 1
    client.versions["c"] = "2"
    with pytest.raises(ClusterError, match="c has tytoalba 2, and here is 1: install one version on every"):
        workers.any_there()
    nobody = DaskWorkers(Client())
    assert (nobody.n_threads, nobody.any_there()) == (1, False)


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (Client(a="1", b=None), "b has no tytoalba, and here is 1"),
        (Client(a="1", scheduler=None), "the scheduler has no tytoalba"),
    ],
)
def test_other_versions_are_refused(client: Client, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        DaskWorkers(client).any_there()


def test_sealed_work_waits_for_a_key_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOOK", 0.01)
    monkeypatch.setattr(connection, "WAIT_FOR_KEYS", 0.05)
    with pytest.raises(ClusterError, match="none of the 2 workers was given a key"):
        DaskWorkers(Client(a="1", b="1")).submit(bytes, name="x", sealed=True)
    DaskWorkers(Client(keys="b", a="1", b="1"))._require_keys()


def test_a_scheduler_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOOK", 0.01)
    client = Client(a="1")
    client.status = "closed"
    with pytest.raises(ClusterLostError, match="the same command goes on"):
        DaskWorkers(client).finished()
    with pytest.raises(ClusterLostError, match="the cluster is gone"):  # it has no method submit
        DaskWorkers(client).submit(bytes, name="x")


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("[::1]", True), ("localhost", True), ("192.0.2.7", False), ("0.0.0.0", False)],
)
def test_tcp_is_for_this_machine(host: str, is_here: bool) -> None:
    if is_here:
        Address(f"tcp://{host}:1")
    else:
        with pytest.raises(ClusterError, match="is not encrypted"):
            Address(f"tcp://{host}:1")
    Address(f"tcp://{host}:1", insecure=True)
