"""--cluster: where it may be, what is refused, and that results are those of one machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers.commands import Tyto
from tests.helpers.states import contents
from tests.helpers.workers import StandIn
from tytoalba.cli import cluster, worker
from tytoalba.cli.cluster import on_cluster
from tytoalba.errors import ClusterError, ClusterLostError, SealError
from tytoalba.learning.cluster import connection, given_keys
from tytoalba.learning.cluster.connection import Address, connected
from tytoalba.storage.keys import make_identity


class Stand(StandIn):
    def any_there(self) -> bool:
        return False


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Clusters that commands connect to, one after another: workers, or errors."""
    waiting: list[Any] = []

    @contextmanager
    def stand_in(_: Address) -> Iterator[Any]:
        found = waiting.pop(0)
        if isinstance(found, Exception):
            raise found
        yield found

    monkeypatch.setattr(connection, "connected", stand_in)
    monkeypatch.setattr(cluster, "PAUSE", 0.0)
    return waiting


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["head:8786"], "a cluster is tls://HOST:PORT, tcp://HOST:PORT or local, got 'head:8786'"),
        (["tls://head"], "a cluster is tls://HOST:PORT"),
        (["tls://head:x"], "a cluster is tls://HOST:PORT"),
        (["tcp://192.0.2.1:8786"], "is not encrypted, and everybody on the way could read the sums"),
        (["tcp://127.0.0.1:1", "--tls-ca", "ca.pem"], "certificates are for tls://"),
        (["tls://head:1", "--tls-ca", "none.pem"], "--tls-ca: no such file: none.pem"),
        (
            ["tls://head:1"],
            "tls:// needs --tls-ca and --tls-cert and --tls-key (files in PEM), or Dask's own",
        ),
        (["local", "--insecure"], "a local cluster makes its own certificates"),
    ],
)
def test_what_is_no_way_to_a_cluster_is_refused(
    options: list[str],
    remedy: str,
    tyto: Tyto,
    home: Path,
    tmp_path: Path,
    simulated: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert home
    monkeypatch.chdir(tmp_path)
    assert tyto("new", tmp_path / "k", "-a", "respeaker-usb-4", "--features", "9").code == 0
    before = (tmp_path / "k").read_bytes()
    (tmp_path / "ca.pem").write_text("")
    assert remedy in tyto("learn", tmp_path / "k", simulated, "--cluster", *options).error
    assert (tmp_path / "k").read_bytes() == before


def test_certificates_alone_say_no_cluster(tyto: Tyto, tmp_path: Path, simulated: Path) -> None:
    error = tyto("learn", tmp_path / "k", simulated, "--insecure").error
    assert "are for --cluster ADDRESS: say which cluster" in error


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    named = r"clusters need the extra 'cluster': pip install 'tytoalba\[cluster\]'"
    with pytest.raises(ImportError, match=named), connected(Address("local")):
        pass
    assert not list(tmp_path.iterdir())


def test_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.pem"
    file.write_text("nothing")
    where = Address("tls://127.0.0.1:1", file, file, file)
    with pytest.raises(ClusterError, match="these certificates cannot be used"), connected(where):
        pass


def test_learning_on_a_cluster_writes_the_same_file(
    tyto: Tyto, home: Path, tmp_path: Path, simulated: Path, stand_ins: list[Any]
) -> None:
    assert home
    for name in ("one", "many"):
        tyto("new", tmp_path / name, "-a", "respeaker-usb-4", "--features", "9", "--seed", "3")
    alone = tyto("learn", tmp_path / "one", simulated)
    stand_ins += [Stand(lost_after=2), ClusterLostError("no scheduler answers"), Stand(1)]
    ran = tyto("learn", tmp_path / "many", simulated, "--cluster", "tcp://127.0.0.1:1")
    assert (ran.code, ran.out) == (0, alone.out)
    assert "waiting for workers of tcp://127.0.0.1:1" in ran.err
    assert "no scheduler answers. Trying again in 0 s" in ran.err
    one, many = (tmp_path / "one").read_bytes(), (tmp_path / "many").read_bytes()
    assert one == many
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_features_simulations_and_benchmarks_on_a_cluster(
    tyto: Tyto, home: Path, tmp_path: Path, simulated: Path, stand_ins: list[Any]
) -> None:
    assert home
    on = ("--cluster", "tcp://127.0.0.1:1")
    assert tyto("features", simulated, "-o", tmp_path / "one", "-j", "1").code == 0
    stand_ins += [Stand(), Stand(), Stand()]
    assert tyto("features", simulated, "-o", tmp_path / "many", *on).code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()
    options = ("-a", "respeaker-usb-4", "--size", "0.03")
    assert tyto("simulate", tmp_path / "data", *options, *on).code == 0
    assert contents(tmp_path / "data") == contents(simulated)
    error = tyto("simulate", tmp_path / "more", *options, "--features", *on).error
    assert "features on a cluster are made by tyto features simulated:quick --cluster" in error
    small = ("--methods", "srp-phat", "--set", "n_phases=2", "--no-report", "-o", tmp_path / "out", *options)
    ran = tyto("bench", "run", "quick", *small, "--cache", tmp_path / "cache", "-j", "1", *on)
    assert ran.code == 0
    assert (tmp_path / "out" / "quick.json").is_file()
    assert not stand_ins
    assert "--jobs is for this machine" in tyto("bench", "run", "quick", "--jobs", "2", *on).error
    assert "give --cache FILE" in _with(stand_ins, tyto, "bench", "run", "quick", "-o", tmp_path / "b", *on)


def _with(stand_ins: list[Any], tyto: Tyto, *arguments: str | Path) -> str:
    stand_ins.append(Stand())
    return tyto(*arguments).error


def test_a_cluster_that_was_never_there_is_not_waited_for(stand_ins: list[Any]) -> None:
    stand_ins += [ClusterLostError("no scheduler answers")]
    with pytest.raises(ClusterLostError, match="no scheduler answers"):
        on_cluster(Address("tcp://127.0.0.1:1"), lambda _: None)
    stand_ins += [Stand()] + [ClusterLostError("gone")] * cluster.TRIES

    def lose(_: Any) -> None:
        raise ClusterLostError("gone")

    with pytest.raises(ClusterLostError, match="gone"):
        on_cluster(Address("tcp://127.0.0.1:1"), lose)


def started(threads: int = 3) -> Any:
    state = SimpleNamespace(total_resources={}, available_resources={}, nthreads=threads)
    worker.dask_setup(SimpleNamespace(state=state))
    return state


def test_workers_are_given_the_keys_of_their_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert home
    try:
        assert not started().total_resources
        assert given_keys.given() is None
        make_identity(tmp_path / "key")
        monkeypatch.setenv("TYTO_IDENTITY", str(tmp_path / "key"))
        state = started()
        assert state.total_resources == state.available_resources == {"tyto-key": 3}
        keys = given_keys.given()
        assert keys
        assert len(keys) == 1
        with pytest.raises(SealError, match="a worker cannot ask for a passphrase"):
            worker._refuse("Passphrase: ")
    finally:
        given_keys.give(None)
