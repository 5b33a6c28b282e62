"""Jobs on a cluster give the rows that jobs here give, but for the seconds that they took."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.workers import Job, StandIn
from tytoalba.bench import cluster
from tytoalba.bench.cluster import rows_on
from tytoalba.bench.run import run_benchmark
from tytoalba.errors import ClusterError, ClusterLostError, DataError, TytoError
from tytoalba.learning.cluster.answers import answer, perform

CHANGES = ["n_phases=2", "seeds=[0,1]", "bands=[[100,8000],[200,4000]]", "options.tyto.n_features=20"]
METHODS = ["srp-phat", "tyto"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a small benchmark."""
    return tmp_path_factory.mktemp("bench") / "data.safetensors"


def run(output: Path, cache: Path, workers: StandIn | None = None) -> list[dict[str, Any]]:
    worked = None if workers is None else partial(rows_on, workers)
    (result,) = run_benchmark(
        "quick",
        array="respeaker-usb-4",
        methods=METHODS,
        size=0.03,
        changes=CHANGES,
        output=output,
        cache=cache,
        report=False,
        worked=worked,
    )
    rows = json.loads(result.read_text())["rows"]
    return [{key: value for key, value in row.items() if not key.endswith("_seconds")} for row in rows]


def test_the_rows_are_the_same(tmp_path: Path, cache: Path) -> None:
    wanted = run(tmp_path / "one", cache)
    with pytest.raises(ClusterLostError):
        run(tmp_path / "many", cache, StandIn(lost_after=2, in_turn=True))
    workers = StandIn(1)
    assert run(tmp_path / "many", cache, workers) == wanted
    assert 0 < workers.count("rows") < 4
    assert {row["method"] for row in wanted} == set(METHODS)


def test_what_is_wrong_is_said(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(TytoError, match="give --cache FILE on a disk that all machines see"):
        run_benchmark("quick", worked=partial(rows_on, StandIn()))
    with pytest.raises(ClusterError, match="rows of another job"):
        run(tmp_path / "a", cache, StandIn(change=lambda *_: answer(cluster.KIND, {"rows": [{}]}, {})))

    def changed(changes: dict[str, str], job: Job, _: bytes) -> bytes:
        told, number = job.arguments
        return perform(cluster.rows, json.dumps(json.loads(told) | changes), number)

    for change, error, words in (
        ({"data": "/nowhere"}, DataError, "is not there for a worker"),
        ({"digest": "0"}, DataError, "is another file for a worker"),
        ({"program": "9"}, ClusterError, "is of tytoalba 9, and a worker has"),
    ):
        with pytest.raises(error, match=words):
            run(tmp_path / "a", cache, StandIn(change=partial(changed, change)))
