"""`tyto speed` as a whole, and the pages that are made from what it measured."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench.speed import measure as measuring
from tytoalba.bench.speed.pages import MARK, PARTS, rendered
from tytoalba.bench.speed.rows import Row
from tytoalba.bench.speed.scale import Assumed, constants, scale
from tytoalba.bench.speed.workers import measure_workers

ROOT = Path(__file__).parents[3]


def test_pages_are_made_from_the_results() -> None:
    """`python tools/speed_pages.py` renews them."""
    measured = json.loads((ROOT / "results" / "speed.json").read_text("utf-8"))
    for name in ("speed", "scale"):
        page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        assert rendered(page, measured) == page
    marked = {
        found[2]
        for n in ("speed", "scale")
        for found in MARK.finditer((ROOT / "docs" / f"{n}.md").read_text("utf-8"))
    }
    assert marked == set(PARTS)


def test_quick_runs_everything(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyroomacoustics")
    monkeypatch.setattr(measuring, "QUICK", replace(measuring.QUICK, memory=None, workers=None))
    written = tmp_path / "speed.json"
    ran = tyto("speed", "--quick", "--results", str(written))
    assert ran.code == 0
    assert "its numbers say nothing" in ran.err
    measured = json.loads(written.read_text("utf-8"))
    assert measured["format"] == "tytoalba-speed"
    assert measured["quick"] is True
    tasks = " ".join(row["task"] for row in measured["rows"])
    for task in (
        "GCC-PHAT",
        "SRP-PHAT",
        "sound files",
        "sums H'H",
        "learning 1000 frames",
        "a lesson",
        "locating",
    ):
        assert task in tasks
    assert {row["against"] for row in measured["exponents"]} == {
        "frames N",
        "features D",
        "phases before",
        "microphones",
    }
    assert all(row["threads"] >= 1 for row in measured["rows"])
    for part in PARTS.values():
        assert part(measured)
    assert "With `--quick`" in PARTS["when"](measured)


def test_without_dask_no_cluster_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert measure_workers((1, 2), 4, 50) == []


@pytest.mark.end_to_end
@pytest.mark.parametrize("machine_busy", [False, True])
def test_workers_of_a_cluster_are_timed(machine_busy: bool) -> None:
    one, two, memory = measure_workers((1, 2), 4, 50, machine_busy, seconds=1.0)
    assert [(row.name, row.unit, row.threads) for row in (one, two)] == [
        ("Dask, 1 worker", "frames/s", 1),
        ("Dask, 2 workers", "frames/s", 2),
    ]
    assert one.ratio == 1.0
    assert two.ratio == pytest.approx(two.value / one.value)
    assert two.note == one.note
    assert ("CPU" in one.note) is machine_busy
    assert 0.01 < memory.value < 2


def test_without_its_peer_nothing_is_claimed(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Row("GCC-PHAT", "plain scipy", 100.0, "frames/s", 1.0, 1),
        Row("SRP-PHAT", "tytoalba", 50.0, "frames/s", None, 1),
    ]
    measured = {"rows": [asdict(row) for row in rows], "exponents": [], "ceilings": []}
    monkeypatch.setattr(measuring, "measure", lambda *_: measured)
    ran = tyto("speed")
    assert ran.code == 0
    (line,) = [line for line in ran.out.splitlines() if "tytoalba" in line]
    assert line.split()[-3:] == ["50", "frames/s", "1"]
    assert "pip install 'tytoalba[sim]'" in ran.err
    assert json.loads(tyto("speed", "--json").out)["rows"][1]["ratio"] is None


def test_results_are_not_written_over_a_folder(tyto: Tyto, tmp_path: Path) -> None:
    ran = tyto("speed", "--quick", "--results", str(tmp_path))
    assert ran.code != 0
    assert "is a folder" in ran.err


def test_arithmetic_of_scale() -> None:
    """Twice the hours is twice of everything that is counted; more machines only save time."""
    speeds = {"features": 500.0, "learning": 1000.0}
    one, two = scale(speeds, Assumed(hours=1000.0)), scale(speeds, Assumed(hours=2000.0))
    for name in ("storage_bytes", "frames", "features_hours", "learning_hours", "days", "compute_dollars"):
        assert getattr(two, name) == pytest.approx(2 * getattr(one, name))
    assert two.state_bytes == one.state_bytes == 8 * (5000 * 5001 / 2 + 5000 * 720)
    assert one.features_hours == 2.0
    assert one.frames == pytest.approx(1000 * 3600 * 48000 / 4096)
    many = scale(speeds, Assumed(hours=1000.0, machines=10**9))
    assert many.days == one.network_days == many.network_days
    assert many.compute_dollars == one.compute_dollars
    fed = scale(speeds, Assumed(machines=round(one.most_machines)))
    assert fed.read_rate == pytest.approx(Assumed().network, rel=0.01)


def test_constants_come_from_the_rows() -> None:
    rows: list[dict[str, Any]] = [
        {"task": "sound files, 4 microphones", "name": "features of a prior, the same", "value": 600.0},
        {"task": "learning from features", "name": "tytoalba", "value": 700.0},
    ]
    assert constants({"rows": rows}) == {"features": 600.0, "learning": 700.0}
