"""docs/cluster.md: Dask takes the lines for a server, for SLURM and for Kubernetes as they are shown."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers.snippets import ROOT, blocks

PAGE = ROOT / "docs" / "cluster.md"
FILES = ("ca", "head", "head-key", "node", "node-key", "me", "me-key")


@pytest.fixture
def parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What Dask makes of a command: its parameters by name. Certificates are files of these names."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / f"{name}.pem").write_text("")

    def parse(words: list[str]) -> dict[str, Any]:
        program, what, *options = words
        assert program == "dask"
        main = importlib.import_module(f"distributed.cli.dask_{what}").main
        given: dict[str, Any] = main.make_context(what, options).params
        assert {Path(given[name]).parent for name in ("tls_ca_file", "tls_cert", "tls_key")} == {tmp_path}
        return given

    return parse


def shown(language: str, begin: str) -> str:
    """The only block of the page with such a beginning."""
    (found,) = [one.text for one in blocks(PAGE) if one.language == language and one.text.startswith(begin)]
    return found


def test_a_server(parsed: Any) -> None:
    scheduler, worker = (
        parsed(shlex.split(line)) for line in shown("sh", "dask scheduler").strip().splitlines()
    )
    assert (scheduler["protocol"], scheduler["dashboard"]) == ("tls", False)
    assert (worker["scheduler"], worker["n_workers"], worker["nthreads"]) == ("tls://head:8786", "16", 1)
    assert list(worker["preload"]) == ["tytoalba.cli.worker"]


def test_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but SLURM itself: what dask-jobqueue is told, and whether Dask knows its words."""
    told: dict[str, Any] = {}

    class Cluster:
        scheduler_address = "tls://login:8786"

        def __init__(self, **options: Any) -> None:
            told.update(options)

        def adapt(self, maximum_jobs: int) -> None:
            told["jobs"] = maximum_jobs

    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=Cluster))
    monkeypatch.setattr("builtins.input", lambda _: "")
    exec(compile(shown("python", "from dask_jobqueue"), PAGE.name, "exec"), {})
    assert (told["protocol"], told["jobs"], told["cores"]) == ("tls://", 20, told["processes"])
    security = told["security"]
    assert security.require_encryption is True
    for side in ("scheduler", "worker", "client"):
        assert getattr(security, f"tls_{side}_cert") == "/home/me/me.pem"
        assert getattr(security, f"tls_{side}_key") == "/home/me/me-key.pem"
    worker = importlib.import_module("distributed.cli.dask_worker").main
    assert worker.make_context("worker", ["tls://login:8786", *told["worker_extra_args"]]).params["preload"]


def test_kubernetes(parsed: Any, tmp_path: Path) -> None:
    """The description is YAML, its parts fit together, and Dask takes its commands."""
    yaml: Any = importlib.import_module("yaml")
    text = re.sub(r"/tls/", f"{tmp_path}/", shown("text", "apiVersion:"))
    described = yaml.safe_load(text)
    parts = {name: described["spec"][name] for name in ("worker", "scheduler")}
    given = {}
    for name, part in parts.items():
        (container,) = part["spec"]["containers"]
        given[name] = parsed(container["args"])
        volumes = {volume["name"] for volume in part["spec"]["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes == {"tls", "homes"}
    assert given["scheduler"]["protocol"] == "tls"
    (port,) = parts["scheduler"]["service"]["ports"]
    (environment,) = parts["worker"]["spec"]["containers"][0]["env"]
    name = described["metadata"]["name"]
    assert environment == {
        "name": "DASK_SCHEDULER_ADDRESS",
        "value": f"tls://{name}-scheduler:{port['port']}",
    }
    assert parts["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
    assert list(given["worker"]["preload"]) == ["tytoalba.cli.worker"]
