"""docs/results.md is made from the result files it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import results_pages
from tools.results_pages import MARK, NOTHING, PAGE, ROOT, Report, named, rendered

from tests.bench import test_results as sample
from tytoalba.bench.cells import NONE
from tytoalba.bench.fair_tables import plain
from tytoalba.bench.formats import markdown_table
from tytoalba.bench.results import MASKS, load_results

PARTS = [
    *("reduced fair", "reduced fair masked", "reduced fair last", "reduced after", "reduced separation"),
    *("reduced directions", "reduced memory"),
    *("fair", "fair last", "agreement", "directions", "separation", "context", "noise"),
    *("orders", "phases", "streams", "one source", "expansion", "eta", "after", "terms", "memory", "files"),
]


@pytest.mark.long
def test_the_page_is_made_from_the_files_it_names() -> None:
    """`make results` renews it."""
    page = PAGE.read_text("utf-8")
    report = Report([load_results(path) for path in named(page)])
    assert rendered(page, report) == page
    assert [found[2] for found in MARK.finditer(page)] == PARTS
    every = (ROOT / "docs" / "results" / "tables.md").read_text("utf-8")
    for table in report.tables.values():
        assert markdown_table(table) in every, table.name


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report, a stream and two numbers of phases."""
    monkeypatch.setattr(results_pages, "ROOT", tmp_path)
    data = {"name": "simulated:twin", "n_train": 100, "n_test": {"test, clean": 50, "test, fan 0 dB": 9}}
    whole = sample.fair() | {"data": data}
    order = [sample.row("ssl-cil", 0, variant=f"order={order}") for order in ("shuffled", "interleaved")]
    noisy = [sample.row("joint", 0, condition="white 0 dB"), sample.row("joint", 0, condition="context 4")]
    noisy.append(sample.row("srp-phat", 0, part="human"))
    small = sample.two_phases(sample.tiny(), sample.tiny(n=2))
    made = {
        "table1": whole | {"rows": [*whole["rows"], *order, *noisy]},
        "streams": sample.fair() | {"name": "streams", "config": {"overlap": 0.3, "imbalance": 10.0}},
        "one-source": sample.fair() | {"name": "one-source", "config": {"max_sources": 1}},
        "ss-il-terms": sample.fair() | {"name": "ss-il-terms", "config": {"judged_on": "valid"}},
        "phases-10": sample.fair() | {"name": "phases-10"},
        "phases-2": small | {"name": "phases-2"},
    }
    return Report([load_results(sample.saved(tmp_path, one, f"{name}.json")) for name, one in made.items()])


def made(name: str, report: Report) -> list[list[str]]:
    """The rows of a part, its first line the header."""
    text = results_pages.part(name, report)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


def test_each_part_shows_its_files(report: Report) -> None:
    assert [run.name for run in report.main] == ["table1"]
    rows = made("streams", report)
    assert rows[0] == ["row", "mean over the phases", "after the last phase", "forgetting"]
    shown = ["Joint", "Joint, from the prior", "Fine-tune", "prior alone", "tyto"]
    assert [row[0] for row in rows[1:]] == shown
    assert "30 % of a phase's frames" in results_pages.part("streams", report)
    rows = made("one source", report)
    assert [row[0] for row in rows[1:]] == shown
    assert all(row[2] == row[3] for row in rows[1:])  # the sample has the same numbers with and without
    rows = made("terms", report)
    assert rows[0] == ["row", "overall", "after the last phase", "newest", "older"]
    assert [row[0] for row in rows[1:] if "=" in row[0]] == ["SSL-CIL, eta=1"]
    rows = made("phases", report)
    assert rows[0] == ["row", "2 phases", "10 phases"]
    assert ["iCaRL", "78.1 / 56.2", NONE] in rows
    assert [row[0] for row in made("orders", report)[1:]] == ["SSL-CIL", "SSL-CIL"]
    assert made("eta", report)[1][:2] == ["SSL-CIL", "1"]
    assert made("noise", report)[0][:2] == ["method", "0 dB"]
    assert made("context", report)[0][-1] == "4 on each side"
    assert results_pages.part("expansion", report) == NOTHING
    assert "100 training frames, 50 (test) test frames" in results_pages.part("files", report)
    for name in PARTS:
        for line in results_pages.part(name, report).splitlines():
            assert len(line) <= 400


def test_places_beside_the_paper(report: Report) -> None:
    """The sample's Fine-tune is below its Joint, as in the paper."""
    rows = made("agreement", report)
    assert [(row[0], row[2], row[4]) for row in rows[1:]] == [("Joint", "1", "1"), ("Fine-tune", "2", "2")]
    assert "1 of 1 pairs of rows" in results_pages.part("agreement", report)


def test_text_between_and_numbers_in_the_text(report: Report) -> None:
    page = (
        "<!-- files:\nold.json\n-->\n\nBy hand.\n<!-- made: fair -->\nold\n<!-- end -->\nMore.\n"
        "<!-- made: eta -->\n<!-- end -->\n"
        "tyto has <!-- acc: last_overall of tyto -->0<!-- end --> %, masked "
        "<!-- masked acc: n2 of Joint, from the prior --><!-- end -->.\n"
    )
    new = rendered(page, report)
    assert "\nBy hand.\n<!-- made: fair -->\n| row |" in new
    assert "<!-- end -->\nMore.\n<!-- made: eta -->\n| method | eta |" in new
    assert "old" not in new
    assert new.startswith("<!-- files:\ntable1.json\nstreams.json\none-source.json\nss-il-terms.json\n")
    rows = {mask: {s.label: s for s in plain(report.summaries, mask)} for mask in MASKS}
    assert f"-->{rows['']['tyto'].last.acc.mean:.1f}<!-- end --> %" in new
    masked = rows["taught"]["Joint, from the prior"].measures["n2"].acc.mean
    assert f"from the prior -->{masked:.1f}<!-- end -->." in new
    assert rendered(new, report) == new
    assert named(new) == [run.path for run in report.runs]
