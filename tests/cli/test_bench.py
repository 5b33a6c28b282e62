"""`tyto bench` and `tyto report`: from a name to tables, pictures and a page, and refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench.config import shipped_configs
from tytoalba.bench.data import BenchData
from tytoalba.bench.results import load_results

METHODS = "srp-phat,ssl-cil-random,tyto"
TINY = (
    "--size", "0.05", "-j", "1", "--device", "cpu", "--methods", METHODS, "--set", "n_phases=3",
    "--set", "options.tyto.n_features=50",
    "--set", "options.ssl-cil-random={plain=true, n_features=50, width=8}",
)  # fmt: skip
TEXTS = ["report.html", "rows.csv", "tables.md", "tables.tex"]
PICTURES = ["accuracy.png", "accuracy.svg", "matrix.png", "polar.png"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture
def cache(shared: Path) -> Path:
    """The prepared data, made by the first test that runs."""
    return shared / "data.safetensors"


def test_listing(tyto: Tyto) -> None:
    ran = tyto("bench", "list")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in ran.out.splitlines() if line] == list(shipped_configs())
    assert "a first look in a few minutes" in ran.out


def test_from_a_name_to_tables_pictures_and_a_page(tyto: Tyto, tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    ran = tyto("bench", "quick", *TINY, "-o", out, "--cache", cache)
    assert ran.code == 0, ran.err
    assert sorted(path.name for path in (out / "quick").iterdir()) == sorted(TEXTS + PICTURES)
    run = load_results(out / "quick.json")
    assert [row.method for row in run.rows[::4]] == METHODS.split(",")
    assert run.command.startswith("tyto bench quick --size 0.05")
    to_paste = "'options.ssl-cil-random={plain=true, n_features=50, width=8}'"  # quoted for a shell
    assert to_paste in run.command
    assert str(tmp_path) not in (out / "quick.json").read_text()  # whose machine it was is not told
    assert (run.data_name, len(run.phases)) == ("simulated:quick", 3)
    assert run.rows[-1].options == {"n_features": 50}
    for name in ("SRP-PHAT", "SSL-CIL, untrained", "tyto"):
        assert name in ran.out
        assert name in (out / "quick" / "tables.md").read_text().replace("\\", "")
        assert name in (out / "quick" / "report.html").read_text()
    assert "\\begin{tabular}" in (out / "quick" / "tables.tex").read_text()
    for name in PICTURES:
        assert (out / "quick" / name).read_bytes().startswith(b"<?xml" if name.endswith("svg") else PNG)
    assert str(out / "quick" / "report.html") in "".join(ran.err.split("\n"))

    again = tyto("bench", "quick", *TINY, "-o", out, "--cache", cache)  # all is done: only the tables
    assert again.code == 0
    assert load_results(out / "quick.json").seconds == run.seconds

    report = tyto("report", out / "quick.json", "-o", tmp_path / "report")
    assert report.code == 0
    assert report.out == ran.out
    for name in TEXTS + PICTURES:
        assert (tmp_path / "report" / name).read_bytes() == (out / "quick" / name).read_bytes(), name


def test_for_machines(tyto: Tyto, tmp_path: Path, cache: Path) -> None:
    command = ("bench", "quick", *TINY, "--methods", "srp-phat", "--cache", cache, "-o", tmp_path, "--json")
    ran = tyto(*command, "--no-report")
    assert ran.code == 0, ran.err
    results = [str(tmp_path / "quick.json")]
    assert json.loads(ran.out) == {"results": results, "written": []}
    assert [path.name for path in tmp_path.iterdir()] == ["quick.json"]
    ran = tyto(*command)
    told = json.loads(ran.out)
    assert told["results"] == results
    assert sorted(Path(path).name for path in told["written"]) == sorted(TEXTS + PICTURES)
    ran = tyto("report", tmp_path / "quick.json", "-o", tmp_path / "report", "--json")
    assert json.loads(ran.out)["written"] == [path.replace("/quick/", "/report/") for path in told["written"]]


def test_windows_and_whole_frames(tyto: Tyto, tmp_path: Path) -> None:
    band = ("--set", "bands=[[100, 8000]]")
    seen = "variants.ssl-cil-random=[{plain=false, windows=false}, {plain=false}, {}]"
    windows = (*band, "--set", "parts=2", "--set", seen)
    command = ("bench", "quick", *TINY, "--methods", "srp-phat,ssl-cil-random", *windows)
    ran = tyto(*command, "--cache", tmp_path / "cut", "-o", tmp_path, "--no-report")
    assert ran.code == 0, ran.err
    prepared = BenchData.load(tmp_path / "cut")
    assert prepared.n_inputs == 4 * 306
    rows = load_results(tmp_path / "quick.json").rows
    whole, cut, plain = [
        row for row in rows if (row.method, row.n_sources, row.mask) == ("ssl-cil-random", 1, "")
    ]
    assert [row.variant for row in (whole, cut, plain)] == ["plain=False, windows=False", "plain=False", ""]
    assert np.array_equal(whole.mae, plain.mae, equal_nan=True)  # of one band
    assert not np.array_equal(whole.mae, cut.mae, equal_nan=True)
    other = ("--cache", tmp_path / "cut", "-o", tmp_path / "other")
    refused = tyto("bench", "quick", *TINY, *band, *other).error
    assert "has frames in 2 parts, not 4" in refused


def test_without_a_report_it_says_how_to_make_one(tyto: Tyto, tmp_path: Path, cache: Path) -> None:
    ran = tyto(
        "bench", "quick", *TINY, "--seeds", "2,3", "--methods", "srp-phat", "--cache", cache, "-o", tmp_path,
        "--no-report", "--jobs", "1",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.out == ""
    assert f"tyto report {tmp_path / 'quick.json'}" in ran.err.replace("\n", "")
    assert {row.seed for row in load_results(tmp_path / "quick.json").rows} == {2, 3}


def test_ones_own_file_and_a_stopped_run(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('methods = ["srp-phat"]\nn_phases = 2\nsize = 0.05\n')
    command = ("bench", tmp_path / "mine.toml", "-j", "1", "-o", tmp_path, "--no-report")
    assert tyto(*command).code == 0
    assert load_results(tmp_path / "mine.json").name == "mine"
    assert tyto(*command, "--seeds", "0,1").code == 0  # goes on
    assert {row.seed for row in load_results(tmp_path / "mine.json").rows} == {0, 1}
    refused = tyto(*command, "--set", "n_phases=3").error
    assert "mine.json holds another benchmark or other data" in refused


def test_a_cache_of_other_data_is_refused(tyto: Tyto, tmp_path: Path, cache: Path) -> None:
    if not cache.exists():
        tyto("bench", "quick", *TINY, "--cache", cache, "-o", tmp_path, "--no-report")
    assert BenchData.load(cache).name == "simulated:quick"
    other = tmp_path / "other"
    error = tyto("bench", "quick", *TINY, "--data", "simulated:twin", "--cache", cache, "-o", other).error
    assert "holds simulated:quick, not simulated:twin" in error
    for change, why in (
        ("bands=[[500,4000]]", "has the bands"),
        ("parts=2", "has frames in 4 parts, not 2"),
        ("noises=['fan']", "lacks the noise 'fan"),
    ):
        assert why in tyto("bench", "quick", *TINY, "--set", change, "--cache", cache, "-o", other).error
    broken = tmp_path / "broken"
    broken.write_bytes(b"hello")
    assert "is damaged" in tyto("bench", "quick", *TINY, "--cache", broken, "-o", other).error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "no benchmark called 'nosuch' and no such file; shipped: ablation"),
        (["quick", "--seeds", "one"], "--seeds takes numbers such as 0,1,2; got 'one'"),
        (["quick", "--seeds", "-1"], "seeds must be whole numbers from 0"),
        (["quick", "--set", "seeds"], "a change is KEY=VALUE"),
        (["quick", "--set", "parts=5000"], "these frames have no such GCC-PHAT"),
        (["quick", "--set", "options.tyto.depth=3"], "tyto cannot be made with options {'n_features': 1000"),
        (["quick", "--size", "0"], "size must be a positive factor; got 0"),
        (["quick", "--data", "/no/such/folder"], "/no/such/folder is not a folder"),
        (["quick", "--data", ".", "-a", "pepper"], "names its array itself: leave out the array 'pepper'"),
        (["quick", "--speech", "/no/such/folder"], "/no/such/folder is not a folder"),
        (["quick", "--device", "abacus"], "no device 'abacus' here; try cpu"),
    ],
)
def test_refusals(tyto: Tyto, tmp_path: Path, arguments: list[str], message: str) -> None:
    assert message in tyto("bench", *arguments, "-o", tmp_path / "out").error
    assert not (tmp_path / "out").exists()


def test_results_that_cannot_be_shown(tyto: Tyto, tmp_path: Path) -> None:
    assert "is not a file" in tyto("report", tmp_path / "nothing.json").error
    (tmp_path / "x.json").write_text("{}")
    assert "lacks 'format'" in tyto("report", tmp_path / "x.json", "-o", tmp_path / "out").error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["--fast"], ["--size", "big"], ["quick", "twin"], ["--jobs", "x"]])
def test_words_that_the_command_does_not_know(tyto: Tyto, arguments: list[str]) -> None:
    ran = tyto("bench", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: tyto bench" in ran.err


# ---- search ----

TUNED = """
base = "quick"
methods = ["tyto", "ssl-cil-random"]
n_phases = 2
[options]
tyto = { n_features = 30 }
ssl-cil-random = { n_features = 20, width = 8 }
[families.closed-form]
rows = ["tyto", "ssl-cil-random"]
knobs = { ridge = [0.1, 1.0] }
"""


def test_a_search_from_its_file_to_options(tyto: Tyto, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine.toml").write_text(TUNED)
    given = ("bench", "search", tmp_path / "mine.toml", "--size", "0.05", "-j", "1", "--device", "cpu")
    told = (*given, "--cache", cache, "-o", tmp_path / "out", "--write", tmp_path / "chosen.options")
    first = tyto(*told, "--row", "tyto")
    assert first.code == 0, first.err
    assert "Tuning" in first.out
    ran = tyto(*told, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert [(row["row"], row["done"]) for row in found["rows"]] == [("tyto", True), ("ssl-cil-random", True)]
    kept = json.loads((tmp_path / "out" / "mine.json").read_text())
    assert kept["command"] == "tyto bench search mine.toml --size 0.05"
    assert str(tmp_path) not in json.dumps(kept)
    assert len(kept["trials"]) == 3 + 2  # 0.3 is what tyto has by itself, 0.1 the other
    assert "ridge" in (tmp_path / "chosen.options").read_text()
    report = tyto("report", tmp_path / "out" / "mine.json", "-o", tmp_path / "pages")
    assert report.code == 0, report.err
    assert (tmp_path / "pages" / "search-mine.md").read_text().startswith("## Tuning")


def test_searches_that_are_refused_at_once(tyto: Tyto, tmp_path: Path) -> None:
    link = tmp_path / "chosen.toml"
    link.symlink_to(tmp_path / "elsewhere.toml")
    for words, message in (
        (("nosuch",), "no search called 'nosuch'"),
        (("table1", "--row", "nobody"), "no row called 'nobody'"),
        (("table1", "--write", tmp_path), "is a directory, not a file to write"),
        (("table1", "--write", link), "nothing is written through links"),
    ):
        ran = tyto("bench", "search", *words, "-o", tmp_path / "out", "--device", "cpu")
        assert ran.code == 2
        assert message in ran.err.replace("\n", " ")


def test_a_damaged_search_is_named_in_a_line(tyto: Tyto, tmp_path: Path) -> None:
    cut = {"format": "tytoalba-search", "version": 1, "rows": [], "trials": []}
    (tmp_path / "cut.json").write_text(json.dumps(cut))
    ran = tyto("report", tmp_path / "cut.json", "-o", tmp_path / "pages")
    assert ran.code == 2
    assert "cut.json is damaged: a search writes more than it has" in ran.err.replace("\n", " ")
