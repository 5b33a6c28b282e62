"""Tuning: every row of a table alike, every trial kept, a stopped search goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.benches import toy_data
from tytoalba.bench import search as searching
from tytoalba.bench.config import load_config, shipped_choices
from tytoalba.bench.job import run_job
from tytoalba.bench.results import load_results
from tytoalba.bench.run import run
from tytoalba.bench.search import (
    Search,
    as_toml,
    chosen_of,
    load_search,
    overall,
    read_search,
    searched,
    shipped_searches,
    table,
)
from tytoalba.bench.summary import summarise
from tytoalba.errors import TytoError
from tytoalba.storage.files import read_toml

ROOT = Path(__file__).parents[2]
SMALL = """
methods = ["fine-tune", "ssl-cil-random", "tyto"]
n_phases = 2
passes = {passes}
[options]
fine-tune = {{ width = 8, epochs = 1, batch = 64 }}
ssl-cil-random = {{ width = 8, n_features = 20 }}
tyto = {{ n_features = 30, answers = "anywhere" }}
[variants]
tyto = [{{}}, {{ name = "one view", views = 1 }}]
[families.network]
rows = ["fine-tune"]
knobs = {{ lr = [1e-3, 1e-2], dropout = [0.0, 0.2] }}
[families.closed]
rows = ["ssl-cil-random", "tyto", "tyto, one view"]
knobs = {{ ridge = [0.1, 1.0, 1e4] }}
start = {{ ridge = 10.0 }}
[own]
tyto = {{ sigma = [4.0, 8.0] }}
"""


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    import torch  # noqa: F401 - only what is loaded can be limited

    with threadpool_limits(1):
        yield


def small(folder: Path, text: str = SMALL, passes: int = 1) -> Search:
    path = folder / "toy.toml"
    path.write_text(text.format(passes=passes))
    return load_search(str(path))


def timeless(result: dict[str, Any]) -> Any:
    clock = ("seconds", "learn_seconds")

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in clock}
        return [strip(v) for v in value] if isinstance(value, list) else value

    return strip(result)


def test_what_is_tried(tmp_path: Path) -> None:
    search = small(tmp_path)
    result = searched(search, toy_data(), tmp_path / "out" / "toy.json", command="tyto bench search toy")
    assert json.loads((tmp_path / "out" / "toy.json").read_text()) == result
    tried = {row: [t["options"] for t in result["trials"] if t["row"] == row] for row in search.rows}
    assert list(tried) == ["fine-tune", "ssl-cil-random", "tyto", "tyto, one view"]
    assert tried["fine-tune"][0] == {"lr": 1e-3, "dropout": 0.2}  # what the method has by itself
    assert [t["ridge"] for t in tried["tyto, one view"]] == [10.0, 0.1, 1.0, 1e4]  # where the family starts
    assert [len(t) for t in tried.values()] == [3, 4, 5, 4]
    for row in result["rows"]:
        found = [t for t in result["trials"] if t["row"] == row["row"]]
        (best,) = [t for t in found if t["options"] == row["chosen"]]
        assert row["acc"] == best["acc"] >= row["start_acc"] == found[0]["acc"]
        assert row["acc"] == max(t["acc"] for t in found)  # of two knobs at most, and one after the other
        assert row["seconds"] == pytest.approx(sum(t["seconds"] for t in found), abs=0.01)
    by_row = {row["row"]: row for row in result["rows"]}
    assert by_row["tyto, one view"]["chosen"] != {"ridge": 1e4}  # which learns nothing
    assert result["data"] == {"name": "toy", "train": 240, "valid": 60}


def test_knobs_are_turned_one_after_another_from_the_best_so_far(tmp_path: Path) -> None:
    search = small(tmp_path, passes=2)
    trials = searched(search, toy_data(), tmp_path / "toy.json", rows=["tyto"])["trials"]
    found = {tuple(t["options"][knob] for knob in ("ridge", "sigma")): t["acc"] for t in trials}
    at: tuple[float, ...] = (10.0, 8.0)
    wanted = [at]
    for _ in range(2):
        for knob, values in enumerate([(0.1, 1.0, 1e4), (4.0, 8.0)]):
            listed = [(*at[:knob], value, *at[knob + 1 :]) for value in values]
            wanted += [options for options in listed if options not in wanted]
            at = max([at, *listed], key=lambda options: found[options])
    assert list(found) == wanted


def test_trials_are_judged_on_validation_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spying(job: Any, config: Any, *rest: Any) -> Any:
        seen.append((config.judged_on, config.noises, config.context, config.verify))
        return run_job(job, config, *rest)

    monkeypatch.setattr(searching, "run_job", spying)
    search = small(tmp_path, "verify = true\nnoises = ['fan']\n" + SMALL)
    without = searched(
        search, toy_data(tests={}), tmp_path / "toy.json", rows=["ssl-cil-random"]
    )  # nothing else is there
    assert set(seen) == {("valid", (), (), False)}
    assert without["trials"]


def test_what_is_judged_is_the_overall_accuracy_of_the_tables(tmp_path: Path) -> None:
    config = load_config("quick", ["methods=['tyto']", "options.tyto={n_features=40}", "n_phases=3"])
    output = tmp_path / "quick.json"
    run(config, toy_data(), output)
    loaded = load_results(output)
    (found,) = [s for s in summarise([loaded]) if s.condition == "clean" and getattr(s, "mask", "") == ""]
    rows = json.loads(output.read_text())["rows"]
    assert 100 * overall(rows) == pytest.approx(found.overall.acc.mean, abs=1e-6)
    assert overall([row for row in rows if row["n_sources"] == 2]) < overall(rows)


def test_a_stopped_search_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search, data, stopped = small(tmp_path), toy_data(), tmp_path / "stopped.json"
    whole = searched(search, data, tmp_path / "whole.json")
    for n in (2, 7):
        left = [n]

        def failing(*arguments: Any, left: list[int] = left, **options: Any) -> Any:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return run_job(*arguments, **options)

        monkeypatch.setattr(searching, "run_job", failing)
        with pytest.raises(KeyboardInterrupt):
            searched(search, data, stopped)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(searching, "run_job", run_job)
    result = searched(search, data, stopped, on_trial=lambda *news: told.append(news))
    assert timeless(result["rows"]) == timeless(whole["rows"])
    tried = [sorted(json.dumps(timeless(t)) for t in one["trials"]) for one in (result, whole)]
    assert tried[0] == tried[1]  # in another order, perhaps: rows that were stopped are behind
    assert [done for done, _ in told] == list(range(10, 17))
    before = stopped.read_bytes()
    monkeypatch.setattr(searching, "run_job", lambda *_, **__: pytest.fail("all is done"))
    searched(search, data, stopped)
    assert timeless(json.loads(stopped.read_bytes())) == timeless(json.loads(before))


def test_rows_can_be_searched_one_after_another(tmp_path: Path) -> None:
    search, data, output = small(tmp_path), toy_data(), tmp_path / "toy.json"
    whole = searched(search, data, tmp_path / "whole.json")
    first = searched(search, data, output, rows=["tyto"])
    assert [row["row"] for row in first["rows"] if row["done"]] == ["tyto"]
    assert {trial["row"] for trial in first["trials"]} == {"tyto"}
    assert as_toml(first).count("# not searched to its end") == 3
    assert chosen_of(first)["fine-tune"] == search.start("fine-tune")  # where it would start
    for row in ("tyto, one view", "fine-tune", "ssl-cil-random"):
        last = searched(search, data, output, rows=[row])
    assert timeless(last["rows"]) == timeless(whole["rows"])
    assert all(row["done"] for row in last["rows"])
    with pytest.raises(TytoError, match="no row called 'joint' is searched; there are: fine-tune; ssl-cil"):
        searched(search, data, output, rows=["joint"])


def test_another_search_is_not_mixed_in(tmp_path: Path) -> None:
    output, search = tmp_path / "toy.json", small(tmp_path)
    searched(search, toy_data(), output, rows=["ssl-cil-random"])
    before = output.read_bytes()
    for other, data in ((small(tmp_path, passes=2), toy_data()), (search, toy_data(name="other"))):
        with pytest.raises(TytoError, match="holds another search or other data"):
            searched(other, data, output)
    assert output.read_bytes() == before
    output.write_text("{}")
    with pytest.raises(TytoError, match="is no result of a search"):
        searched(search, toy_data(), output)


def test_a_damaged_result_is_refused(tmp_path: Path) -> None:
    output, search = tmp_path / "toy.json", small(tmp_path)
    whole = searched(search, toy_data(), output, rows=["ssl-cil-random"])
    for part in ("machine", "passes", "seconds", "data", "rows", "trials"):
        output.write_text(json.dumps({key: value for key, value in whole.items() if key != part}))
        with pytest.raises(TytoError, match="is damaged: a search writes more than it has"):
            searched(search, toy_data(), output)
    for part, key in (("rows", "chosen"), ("rows", "acc"), ("trials", "options"), ("trials", "acc")):
        cut = [{k: v for k, v in one.items() if k != key} for one in whole[part]]
        output.write_text(json.dumps({**whole, part: cut}))
        with pytest.raises(TytoError, match="is damaged"):
            read_search(output)
    output.write_text(json.dumps(whole))
    assert read_search(output) == whole


def test_what_was_chosen_is_taken_by_benchmarks(tmp_path: Path) -> None:
    result = searched(small(tmp_path), toy_data(), tmp_path / "toy.json", command="tyto bench search toy")
    (tmp_path / "chosen.options").write_text(as_toml(result))
    assert read_toml(tmp_path / "chosen.options") == chosen_of(result)
    assert as_toml(result).startswith("# Chosen on validation rooms by: tyto bench search toy\n")
    mine = tmp_path / "mine.toml"
    mine.write_text(
        f'methods = ["tyto"]\noptions_from = {str(tmp_path / "chosen.options")!r}\n'
        '[variants]\ntyto = [{}, { name = "one view", views = 1 }]\n'
    )
    plain, one_view = load_config(str(mine)).jobs()
    assert plain.options == chosen_of(result)["tyto"]
    assert one_view.options == {**chosen_of(result)["tyto, one view"], "views": 1}


def test_a_table_of_it(tmp_path: Path) -> None:
    result = searched(small(tmp_path), toy_data(), tmp_path / "toy.json")
    made = table(result)
    assert [row[0] for row in made.rows] == [row["row"] for row in result["rows"]]
    assert all(len(row) == len(made.header) for row in made.rows)
    assert made.rows[0][-1] == "lr {lr}, dropout {dropout}".format(**result["rows"][0]["chosen"])
    assert "1 pass through" in made.note
    (written,) = searching.render_searches([tmp_path / "toy.json"], tmp_path / "pages")
    assert written.name == "search-toy.md"
    assert "| fine\\-tune |" in written.read_text() or "| fine-tune |" in written.read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('rows = ["fine-tune"]', 'rows = ["tyto"]', "the row 'tyto' is in two families"),
        ('rows = ["fine-tune"]', 'rows = ["nobody"]', "'nobody' is no row in a family; the table has"),
        ("tyto = {{ sigma", "joint = {{ sigma", "'joint' is no row in a family"),
        ("lr = [1e-3, 1e-2]", "speed = [1]", "fine-tune has no option 'speed' to search"),
        ("lr = [1e-3, 1e-2]", "lr = []", "has no knob, or one without values"),
        ("lr = [1e-3, 1e-2]", "lr = 3", "each knob a list"),
        ("passes = {passes}", "passes = 0", "passes must be a whole number from 1"),
        ("n_phases = 2", "seeds = [0, 1]", "a search has one seed and one order"),
        ("start = {{ ridge = 10.0 }}", "start = 3", "start of a family must be a table"),
    ],
)
def test_searches_that_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(TytoError, match=message):
        small(tmp_path, SMALL.replace(old, new))


def test_searches_that_are_not_there() -> None:
    with pytest.raises(TytoError, match="no search called 'nosuch' and no such file; shipped: table1"):
        load_search("nosuch")
    with pytest.raises(TytoError, match=r"no search called 'x{80}' and no such file"):
        load_search("x" * 5000)


# ---- the search that is shipped ----


def test_every_row_that_learns_is_searched_alike() -> None:
    search = load_search("table1")
    assert set(shipped_searches()) == set(shipped_choices())
    jobs = load_config("table1").jobs()
    rows = {f"{job.method}, {job.variant}".removesuffix(", ") for job in jobs}
    assert set(search.rows) == rows - {"srp-phat", "tyto, learns=False"}  # which learn nothing
    assert search.config.judged_on == "valid"
    assert not search.config.chosen
    for row in search.rows:
        assert search.start(row).keys() == search.knobs[row].keys()
    for family in set(search.family.values()):
        shared = [set(search.knobs[row]) for row, own in search.family.items() if own == family]
        assert set.intersection(*shared), family


def test_options_of_the_experiments_are_those_that_were_chosen() -> None:
    """A file of options says that a search made it exactly where the search is committed, and agrees."""
    for name, path in shipped_choices().items():
        committed = ROOT / "results" / "search" / f"{name}.json"
        says_so = path.read_text("utf-8").startswith("# Chosen on validation rooms by: tyto bench search")
        assert says_so == committed.is_file(), name
        if committed.is_file():
            assert path.read_text("utf-8") == as_toml(read_search(committed))
