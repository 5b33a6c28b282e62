"""Benchmarks: what is run, and that a stopped run goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.benches import SMALL, WHITE, frames, one_job, row_of, timeless, toy_config, toy_data
from tytoalba.bench import run as running
from tytoalba.bench.config import Config
from tytoalba.bench.data import CLEAN, BenchData
from tytoalba.bench.job import run_job
from tytoalba.bench.results import load_results
from tytoalba.bench.run import run
from tytoalba.errors import TytoError


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """So small sums are slower on several, above all beside other processes."""
    import torch  # noqa: F401 - only what is loaded can be limited

    with threadpool_limits(1):
        yield


# ---- what is run ----


def test_jobs() -> None:
    config = toy_config(
        methods=("srp-phat", "tyto"),
        seeds=(0, 7),
        orders=("contiguous", "shuffled"),
        variants={"tyto": [{"ridge": 0.5}, {"ridge": 1.0, "sigma": 9.0}]},
    )
    jobs = config.jobs()
    assert len({job.key for job in jobs}) == len(jobs) == 2 * 2 * 3
    assert [job.seed for job in jobs] == [0] * 6 + [7] * 6
    assert [job.variant for job in jobs[:6]] == [
        "order=contiguous", "ridge=0.5, order=contiguous", "ridge=1.0, sigma=9.0, order=contiguous",
        "order=shuffled", "ridge=0.5, order=shuffled", "ridge=1.0, sigma=9.0, order=shuffled",
    ]  # fmt: skip
    assert jobs[2].options == {"n_features": 50, "ridge": 1.0, "sigma": 9.0}
    assert jobs[3].order == "shuffled"
    assert [job.variant for job in toy_config(orders=("shuffled",)).jobs()] == ["", ""]


def test_a_result_file_that_others_can_read(tmp_path: Path) -> None:
    config = toy_config(noises=("white",), snr=(-10.0,), seeds=(0, 1), bands=((0.0, np.inf),))
    told: list[tuple[int, int]] = []
    output = tmp_path / "new" / "toy.json"
    result = run(config, toy_data(), output, command="tyto x", on_job=lambda *news: told.append(news))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert json.loads(output.read_text()) == result
    loaded = load_results(output)
    assert (loaded.name, loaded.command, loaded.data_name) == ("toy", "tyto x", "toy")
    assert loaded.phases == [list(range(k, k + 120)) for k in (0, 120, 240)]
    assert loaded.config["methods"] == ["srp-phat", "tyto"]
    assert loaded.data["n_test"] == {"test, clean": 90, "human, clean": 20, f"test, {WHITE}": 30}
    subsets = {(row.condition, row.part, row.n_sources) for row in loaded.rows}
    assert subsets == {(c, p, n) for c, p in toy_data().tests for n in (1, 2)}
    assert len(loaded.rows) == 2 * 2 * 2 * 6  # methods, seeds, masks, subsets
    for row in loaded.rows:
        assert (row.sectors is not None) == (row.condition == CLEAN)
        assert len(row.learn_seconds) == 3
    tyto = row_of(result["rows"], method="tyto", seed=1, condition=CLEAN, part="test", n_sources=1)
    assert tyto["acc"][2][2] > 0.5  # these frames can be learned
    assert tyto["options"] == {"n_features": 50}
    assert tyto["kept_bytes"]["G"] > 0


def test_conditions_that_were_not_asked_for_are_not_tested() -> None:
    rows = one_job(toy_config(noises=("white",), snr=(0.0,)), toy_data())
    assert {row["condition"] for row in rows} == {CLEAN}


# ---- stopping and going on ----


def stopped_after(n: int) -> Callable[..., list[dict[str, Any]]]:
    """A run_job that fails after n jobs."""
    left = [n]

    def job(*arguments: Any, **options: Any) -> list[dict[str, Any]]:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return run_job(*arguments, **options)

    return job


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, data = toy_config(seeds=(0, 1)), toy_data()
    whole = run(config, data, tmp_path / "whole.json")
    stopped = tmp_path / "stopped.json"
    for _ in range(3):
        monkeypatch.setattr(running, "run_job", stopped_after(1))
        with pytest.raises(KeyboardInterrupt):
            run(config, data, stopped)
        load_results(stopped)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(running, "run_job", stopped_after(1))
    result = run(config, data, stopped, on_job=lambda *news: told.append(news))
    assert told == [(4, 4)]
    assert timeless(result) == timeless(whole)
    assert list(result["rows"][0]) == list(whole["rows"][0])
    monkeypatch.setattr(running, "run_job", stopped_after(0))
    before = stopped.read_bytes()
    assert run(config, data, stopped) == result  # nothing is left to do
    assert stopped.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"whole.json", "stopped.json"}


def test_more_seeds_can_be_added(tmp_path: Path) -> None:
    output = tmp_path / "toy.json"
    run(toy_config(), toy_data(), output)
    result = run(toy_config(seeds=(0, 1)), toy_data(), output)
    assert timeless(result) == timeless(run(toy_config(seeds=(0, 1)), toy_data(), tmp_path / "both.json"))


@pytest.mark.parametrize(
    ("config", "data"),
    [
        (toy_config(n_phases=4), toy_data()),
        (toy_config(options={**SMALL, "tyto": {"n_features": 51}}), toy_data()),
        (toy_config(methods=("tyto",)), toy_data()),
        (toy_config(), toy_data(name="other")),
        (toy_config(), toy_data(train=frames(241, 1))),
    ],
    ids=["phases", "options", "methods", "data", "frames"],
)
def test_another_benchmark_is_not_mixed_in(tmp_path: Path, config: Config, data: BenchData) -> None:
    output = tmp_path / "toy.json"
    run(toy_config(methods=("srp-phat",), options=SMALL), toy_data(), output)
    document = json.loads(output.read_text())
    document["config"]["methods"] = ["srp-phat", "tyto"]  # as if stopped after the first
    output.write_text(json.dumps(document))
    before = output.read_bytes()
    with pytest.raises(TytoError, match="holds another benchmark or other data; choose another --output"):
        run(config, data, output)
    assert output.read_bytes() == before
    assert len(run(toy_config(), toy_data(), output)["rows"]) == 2 * len(document["rows"])


def test_where_the_data_lay_is_not_told_and_may_change(tmp_path: Path) -> None:
    output, done = tmp_path / "toy.json", []
    for folder in ("/home/ann/toy", "/home/bob/toy"):
        config = toy_config(methods=("srp-phat",), data=folder)
        run(config, toy_data(), output, on_job=lambda *news: done.append(news))
        assert "/home/" not in output.read_text()
    assert len(done) == 1  # the second run had nothing left to do


def test_a_result_of_before_there_were_windows_goes_on_without_them(tmp_path: Path) -> None:
    output = tmp_path / "toy.json"
    config = toy_config(methods=("srp-phat",))
    document = run(config, toy_data(), output)
    assert document["config"].pop("parts") == 1
    output.write_text(json.dumps(document))
    assert load_results(output).rows
    assert len(run(replace(config, seeds=(0, 1)), toy_data(), output)["rows"]) == 2 * len(document["rows"])
    output.write_text(json.dumps(document))
    with pytest.raises(TytoError, match="holds another benchmark"):
        run(replace(config, parts=2), toy_data(), output)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "{}", '{"format": "tytoalba-results", "version": 1, "config": 3}', "\udcff"],
)
def test_a_file_that_is_no_result_stays(tmp_path: Path, text: str) -> None:
    output = tmp_path / "toy.json"
    output.write_text(text, encoding="utf-8", errors="surrogateescape")
    before = output.read_bytes()
    with pytest.raises(TytoError, match="is not a result file"):
        run(toy_config(), toy_data(), output)
    assert output.read_bytes() == before


def test_rows_that_are_missing(tmp_path: Path) -> None:
    output = tmp_path / "toy.json"
    document = run(toy_config(methods=("srp-phat",)), toy_data(), output)
    for key in ("rows", "seconds", "data"):
        output.write_text(json.dumps({k: v for k, v in document.items() if k != key}))
        with pytest.raises(TytoError, match=f"is not a result file.*{key}"):
            run(toy_config(methods=("srp-phat",)), toy_data(), output)


@pytest.mark.end_to_end
def test_two_processes_give_the_same_rows(tmp_path: Path) -> None:
    config, data = toy_config(), toy_data()
    one = run(config, data, tmp_path / "one.json")
    two = run(config, data, tmp_path / "two.json", processes=2)
    assert timeless(one) == timeless(two)


@pytest.mark.end_to_end
def test_processes_read_data_that_are_kept_and_write_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, data = toy_config(), toy_data()
    one = run(config, data, tmp_path / "one.json")
    data.save(tmp_path / "kept.bench")

    def save(*_: Any) -> None:
        raise AssertionError("written once more")

    monkeypatch.setattr(BenchData, "save", save)
    two = run(config, data, tmp_path / "two.json", processes=2, kept=tmp_path / "kept.bench")
    assert timeless(one) == timeless(two)


# ---- refused before any work ----


@pytest.mark.parametrize(
    ("missing", "options", "message"),
    [
        ("torch", {}, "networks need the extra 'train'"),
        ("matplotlib", {"methods": ["tyto"]}, "pictures need the extra 'plot'"),
        ("", {"changes": ["options.tyto.depth=3"]}, "tyto cannot be made with options .*depth"),
    ],
)
def test_what_would_fail_late_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, options: dict[str, Any], message: str
) -> None:
    def prepared(*_: Any, **__: Any) -> BenchData:
        raise AssertionError("minutes of simulation")

    monkeypatch.setattr(running, "load_benchdata", prepared)
    monkeypatch.delitem(sys.modules, "tytoalba.learning.network", raising=False)
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(TytoError, match=message):
        running.run_benchmark("quick", output=tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_results_of_another_benchmark_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "load_benchdata", lambda *_, **__: pytest.fail("minutes of simulation"))
    run(toy_config(methods=("srp-phat",)), toy_data(), tmp_path / "quick.json")
    with pytest.raises(TytoError, match="holds another benchmark"):
        running.run_benchmark("quick", output=tmp_path, methods=["srp-phat"])


def test_one_call_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "load_benchdata", lambda *_, **__: toy_data())
    result_file, *written = running.run_benchmark(
        "quick", output=tmp_path, methods=["srp-phat"], seeds=[3], changes=["n_phases=2"]
    )
    found = load_results(result_file)
    assert found.command == "tyto bench quick --methods srp-phat --seeds 3 --set n_phases=2"
    assert {row.seed for row in found.rows} == {3}
    assert {path.parent for path in written} == {tmp_path / "quick"}
    assert "report.html" in {path.name for path in written}
