"""Tables with the paper's numbers beside ours, and names that try to break out of them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import test_results as sample
from tytoalba.bench import cells as cells
from tytoalba.bench import fair_tables as fair_tables
from tytoalba.bench import figures as figures
from tytoalba.bench import formats as formats
from tytoalba.bench import paper as paper
from tytoalba.bench import results as results
from tytoalba.bench import summary as summary
from tytoalba.bench import tables as tables
from tytoalba.bench.cells import Table

HOSTILE = [
    "a|b",
    "[5pt]",
    "*x",
    r"\input{/etc/passwd}",
    "}$&%#_^~",
    "<script>x</script>",
    "`x`",
    "=1+1",
    "![a](b)",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Table], list[summary.Summary]]:
    runs = results.load(sample.saved(tmp_path_factory.mktemp("tables"), sample.document()))
    summaries = summary.summarise(runs)
    return tables.tables(runs, summaries), summaries


def by_name(made: list[Table], name: str) -> Table:
    return next(table for table in made if table.name == name)


def line(table: Table, label: str) -> dict[str, str]:
    """Cells of one row by column; the paper's are called "paper <column before>"."""
    row = next(row for row in table.rows if row[0] == label)
    names = [
        f"paper {table.header[j - 1]}" if name == cells.PAPER else name for j, name in enumerate(table.header)
    ]
    return dict(zip(names, row, strict=True))


def test_table_1(made: tuple[list[Table], list[summary.Summary]]) -> None:
    table = by_name(made[0], "table1")
    assert [row[0] for row in table.rows] == [
        *(
            "SRP-PHAT",
            "MLP-GCC",
            "Joint",
            "Fine-tune",
            "LwF",
            "SS-IL",
            "iCaRL",
            "iCaRL (output)",
            "SSL-CIL",
            "mine",
        )
    ]
    ours = next(s for s in made[1] if s.label == "SSL-CIL" and s.condition == "clean")
    row = line(table, "SSL-CIL")
    assert row["paper overall (86:14)"] == "5.04 / 90.9"
    assert row["paper human N=2"] == "6.44 / 70.6"
    mae, acc = ours.overall.mae, ours.overall.acc
    assert row["overall"] == f"{mae.mean:.2f} ± {mae.std:.2f} / {acc.mean:.1f} ± {acc.std:.1f}"
    assert (row["keeps"], row["carries"]) == ("nothing", "4.0 MB")
    icarl = line(table, "iCaRL")
    assert (icarl["keeps"], icarl["carries"]) == ("exemplars", "8.4 MB")
    assert line(table, "iCaRL (output)")["paper overall (86:14)"] == cells.NONE
    assert line(table, "LwF")["overall"] == cells.NONE
    assert line(table, "LwF")["paper overall (86:14)"] == "37.06 / 46.0"
    assert "Compare the order" in table.note


def test_noise_and_variants(made: tuple[list[Table], list[summary.Summary]]) -> None:
    white = by_name(made[0], "noise-white")
    assert line(white, "SSL-CIL")["paper -10 dB"] == "39.90 / 25.7"
    assert line(white, "SSL-CIL")["paper overall"] == "30.00 / 40.4"
    errors = [s.overall.mae for s in made[1] if s.label == "Joint" and s.noise]
    assert line(white, "Joint")["overall"].startswith(f"{sum(e.mean for e in errors) / 4:.2f} ± ")
    babble = by_name(made[0], "noise-babble")
    assert cells.PAPER not in babble.header
    assert [row[0] for row in babble.rows] == ["SSL-CIL"]
    expansion = by_name(made[0], "variant-n_features")
    assert [(row[1], row[-1]) for row in expansion.rows] == [
        ("1000", "6.68 / 88.0"),
        ("20000", "5.04 / 90.9"),
    ]
    assert [row[-1] for row in by_name(made[0], "variant-eta").rows] == ["5.04 / 90.9", "5.58 / 90.1"]
    assert by_name(made[0], "variant-order").header[-1] == "overall"


def test_one_seed_has_no_spread_and_missing_subsets_no_column(tmp_path: Path) -> None:
    rows = [sample.row("joint", 0), sample.row("joint", 0, "human", 1)]
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows, "data": {"name": "sslr"}}))
    table = by_name(tables.tables(runs, summary.summarise(runs)), "table1")
    assert "human N=2" not in table.header
    assert "±" not in "".join(cell for row in table.rows for cell in row)
    assert "Compare the order" not in table.note


def test_summary_for_the_terminal(tmp_path: Path) -> None:
    run = results.load_results(sample.saved(tmp_path, sample.document(2)))
    table = tables.summary(run)
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert [row[0] for row in table.rows][:3] == ["Joint", "Fine-tune", "iCaRL"]
    joint = line(table, "Joint")
    assert joint["paper overall"] == "94.0"
    assert (joint["keeps"], line(table, "iCaRL")["keeps"]) == ("all", "some")
    widths = [max(len(cell) for cell in column) for column in zip(table.header, *table.rows, strict=True)]
    assert sum(widths) + len(widths) - 1 <= 80
    for words in ("MAE in degrees / ACC in %", "Forgets: ", "Keeps: ", "other data: compare the order only"):
        assert words in table.note
    assert run.data_name in table.title
    real = tables.summary(replace(run, data={"name": "sslr"}))
    assert "other data" not in real.note


def test_both_weightings_of_overall(tmp_path: Path) -> None:
    """By our frames, and by the paper's: 178 000 with one source, 29 000 with two."""
    rows = [sample.row("joint", 0), sample.row("joint", 0, n_sources=2)]
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows}))
    (found,) = summary.summarise(runs)
    one, two = (found.subsets["test", n].acc.mean for n in (1, 2))
    assert found.overall_86_14.acc.mean == pytest.approx((178 * one + 29 * two) / 207)
    assert found.overall.acc.mean != pytest.approx(found.overall_86_14.acc.mean)
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows[:1]}))
    (alone,) = summary.summarise(runs)
    assert math.isnan(alone.overall_86_14.acc.mean)
    assert line(tables.after_table([alone]), "Joint")["overall (86:14)"] == cells.NONE


def test_one_system_has_one_name(tmp_path: Path) -> None:
    """What files call `tyto` is three systems, of which one answers with taught directions only."""
    with_prior = {"kept_bytes": {"G": 8, "prior": 64}}
    alone = {"variant": "learns=False, answers=anywhere", "options": {"learns": False, "answers": "anywhere"}}
    rows = [
        sample.row("tyto", 0) | {"kept_bytes": {"G": 8}, "options": {}},
        sample.row("tyto", 1) | with_prior | {"options": {}},
        sample.row("tyto", 2) | with_prior | alone,
    ]
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows}))
    summaries = summary.summarise(runs)
    assert [(s.label, s.masked) for s in summaries] == [
        ("tyto without prior", False),
        ("tyto", True),
        ("prior alone", False),
    ]
    made = by_name(tables.tables(runs, summaries), "table1")
    assert "Only directions taught so far are answered by tyto." in made.note


def test_csv(made: tuple[list[Table], list[summary.Summary]]) -> None:
    rows = list(csv.DictReader(io.StringIO(formats.csv_rows(made[1]))))
    assert len(rows) == sum(len(s.subsets) + 1 for s in made[1])
    row = next(r for r in rows if r["method"] == "ssl-cil" and r["part"] == "overall" and not r["variant"])
    assert float(row["paper_acc"]) == paper.OVERALL["sslcil"].acc
    assert row["n_seeds"] == "3"
    assert {r["paper_acc"] for r in rows if r["condition"] != "clean" or r["decision"]} == {""}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    rows = [sample.row(name, 0) for name in HOSTILE]
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows}))
    summaries = summary.summarise(runs)
    made = tables.tables(runs, summaries)
    for block in formats.markdown(made).split("## ")[1:]:
        bars = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines() if row.startswith("|")}
        assert len(bars) == 1
        assert "<script" not in block
        assert not re.search(r"(?<!\\)[`*\[]", block)
    tex = formats.latex(made)
    assert r"\input" not in tex
    for row in tex.splitlines():
        assert not re.match(r"[\[*]", row)
        if row.endswith(r"\\"):
            assert len(re.findall(r"(?<!\\)&", row)) in {len(table.header) - 1 for table in made}
    assert tex.count("{") - tex.count(r"\{") == tex.count("}") - tex.count(r"\}")
    methods = [row["method"] for row in csv.DictReader(io.StringIO(formats.csv_rows(summaries)))]
    assert "'=1+1" in methods
    assert not any(name.startswith("=") for name in methods)


def test_a_method_keeps_its_colour(made: tuple[list[Table], list[summary.Summary]]) -> None:
    plain = fair_tables.plain(made[1])
    whole = dict(zip([s.label for s in plain], figures.styles(plain), strict=True))
    fewer = [s for s in plain if s.method in ("ssl-cil", "mine")]
    assert [whole[s.label] for s in fewer] == figures.styles(fewer)
    assert whole["iCaRL"].colour == whole["iCaRL (output)"].colour
    assert len(set(whole.values())) == len(whole)


def test_document_is_json() -> None:
    assert json.loads(json.dumps(sample.document()))["version"] == 1
