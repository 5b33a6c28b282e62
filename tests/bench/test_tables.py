"""Tables with the paper's numbers beside ours, and names that try to break out of them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
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


def test_the_papers_numbers_stand_beside_no_variant(tmp_path: Path) -> None:
    """Joint from a prior is no row of the paper, though it has a name and no setting that is varied."""
    rows = [sample.row("joint", 0), sample.row("joint", 1) | {"variant": "from the prior"}]
    rows += [row | {"condition": "white 0 dB"} for row in rows]
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows}))
    summaries = summary.summarise(runs)
    found = tables.tables(runs, summaries)
    for name, column in (("table1", "paper loudsp. N=1"), ("noise-white", "paper 0 dB")):
        assert line(by_name(found, name), "Joint")[column] != cells.NONE
        assert line(by_name(found, name), "Joint, from the prior")[column] == cells.NONE
    listed = csv.DictReader(io.StringIO(formats.csv_rows(summaries)))
    known = {(row["variant"], bool(row["paper_acc"])) for row in listed if row["condition"] == "clean"}
    assert known == {("", True), ("from the prior", False)}


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


# ---- the fair tables ----


@pytest.fixture(scope="module")
def fair(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Table], list[summary.Summary]]:
    runs = results.load(sample.saved(tmp_path_factory.mktemp("fair"), sample.fair()))
    summaries = summary.summarise(runs)
    return tables.tables(runs, summaries), summaries


FAIR = ["Joint", "Joint, from the prior", "Fine-tune", "prior alone", "tyto"]


def test_the_fair_tables_come_first_and_have_the_same_rows(
    fair: tuple[list[Table], list[summary.Summary]],
) -> None:
    assert [table.name for table in fair[0][:4]] == ["fair", "fair-masked", "fair-last", "table1"]
    for table in fair[0][:3]:
        assert [row[0] for row in table.rows] == FAIR
        assert "interval of 95 % by recording" in table.note
        assert "Data: simulated:twin." in table.note
    for table in fair[0][3:]:
        assert "from the prior" not in "".join(table.header)


def test_a_fair_row_is_what_was_measured(fair: tuple[list[Table], list[summary.Summary]]) -> None:
    for name, mask, when in (("fair", "", ""), ("fair-masked", "taught", ""), ("fair-last", "", "last_")):
        table = by_name(fair[0], name)
        rows = {s.label: s for s in fair_tables.plain(fair[1], mask)}  # type: ignore[arg-type]
        for label, s in rows.items():
            row = line(table, label)
            for column, view in (("one source", "n1"), ("overall (86:14)", "overall_86_14")):
                interval = s.interval(f"{when}{view}")
                assert interval is not None
                acc = s.measures[f"{when}{view}"].acc.mean
                assert row[column] == f"{acc:.1f} ({interval.low:.1f} to {interval.high:.1f})"
            assert (row["had"], row["keeps"]) == ("W B", "all" if s.method == "joint" else "none")
        assert (
            line(table, "Joint")["minus Joint"]
            == line(table, "prior alone")["minus prior alone"]
            == cells.NONE
        )
        found = rows["Fine-tune"].minus(rows["Joint"], f"{when}overall")
        assert found is not None
        points = found.points
        shown = f"{points.value:+.1f} ({points.low:+.1f} to {points.high:+.1f})"
        marked = line(table, "Fine-tune")["minus Joint"]
        assert marked == shown + (" *" if found.clear else "")
        assert found.clear == (points.low > 0 or points.high < 0)
    everything = "".join(cell for table in fair[0][:3] for row in table.rows for cell in row)
    assert " *" in everything


def test_where_rows_err(fair: tuple[list[Table], list[summary.Summary]]) -> None:
    around = by_name(fair[0], "directions")
    s = next(s for s in fair_tables.plain(fair[1]) if s.label == "tyto")
    row = line(around, "tyto")
    assert row["front for back"] == "7.5 ± 0.0"
    front = [
        (r["sectors"]["acc"][i], r["sectors"]["frames"][i])
        for r in sample.fair()["rows"]
        if (r["method"], r["variant"], r["n_sources"], r["mask"]) == ("tyto", "", 1, "")
        for i in (21, 22, 23, 0, 1, 2)
        if r["sectors"]["acc"][i] is not None
    ]
    wanted = 100 * sum(a * n for a, n in front) / sum(n for _, n in front)
    assert s.quadrants["acc"][0] == pytest.approx(wanted)
    assert row["front"].endswith(f" / {wanted:.1f}")
    apart = by_name(fair[0], "separation")
    assert apart.header == ["method", "15 to 30", "30 to 45", "45 to 90", "90 to 180"]  # nothing nearer
    assert line(apart, "tyto")["15 to 30"] == "9.00 / 50.0"


def test_time_and_settings_have_their_numbers(fair: tuple[list[Table], list[summary.Summary]]) -> None:
    memory = line(by_name(fair[0], "memory"), "tyto")
    s = next(s for s in fair_tables.plain(fair[1]) if s.label == "tyto")
    assert (memory["ACC"], memory["learns (s)"]) == (f"{s.last.acc.mean:.1f}", "15.0 ± 0.0")
    assert memory["answers (ms)"] == "0.2"
    eta = by_name(fair[0], "variant-eta")
    assert eta.header[4:6] == ["95 %, last", "95 %, overall"]
    assert len(eta.rows) == 1
    assert re.fullmatch(r"\d+\.\d to \d+\.\d", eta.rows[0][5])


def test_intervals_and_differences_in_the_csv(fair: tuple[list[Table], list[summary.Summary]]) -> None:
    rows = list(csv.DictReader(io.StringIO(formats.csv_rows(fair[1]))))
    whole = [row for row in rows if row["part"] == "overall" and not row["variant"]]
    assert {row["mask"] for row in whole} == {"", "taught"}
    for row in whole:
        assert float(row["acc_low"]) <= float(row["acc_mean"]) <= float(row["acc_high"])
        assert (row["minus_joint"] == "") == (row["method"] == "joint")
        if row["minus_joint"]:
            low, middle, high, p = (float(row[f"minus_joint{end}"]) for end in ("_low", "", "_high", "_p"))
            assert low <= middle <= high
            assert 0 < p <= 1
        assert row["had"] == "windows; bands"
    assert {row["acc_low"] for row in rows if row["part"] != "overall"} == {""}


def test_files_without_hits_have_no_intervals(made: tuple[list[Table], list[summary.Summary]]) -> None:
    names = [table.name for table in made[0]]
    assert names[:3] == ["fair", "fair-last", "table1"]
    row = line(by_name(made[0], "fair"), "iCaRL")
    assert re.fullmatch(r"\d+\.\d", row["overall"])
    assert re.fullmatch(r"[-+]\d+\.\d", row["minus Joint"])
    assert "interval" not in by_name(made[0], "fair").note
    assert "separation" not in names


def test_many_rows_take_seconds(tmp_path: Path) -> None:
    """Ten rows of 300 recordings, two seeds."""
    rng = np.random.default_rng(0)
    phase = np.sort(rng.integers(10, size=300))
    frames = np.full(300, 40)
    counts = np.bincount(phase, frames, 10)
    kept = {"number": list(range(300)), "phase": phase.tolist(), "frames": frames.tolist()}
    rows = []
    for method, seed, n in product(range(10), range(2), (1, 2)):
        hits = rng.integers(10 * n, 40 * n + 1, size=(300, 10))
        sums = np.stack([np.bincount(phase, after, 10) for after in hits.T])
        acc = [
            [round(sums[i, j] / (n * counts[j]), 4) if j <= i else None for j in range(10)] for i in range(10)
        ]
        after = [own[first:].tolist() for own, first in zip(hits, phase, strict=True)]
        row = sample.row(f"m{method}", seed, n_sources=n, counts=counts.astype(int).tolist(), acc=acc)
        mae = [[None if cell is None else 1.0 for cell in line] for line in acc]
        rows.append(row | {"mae": mae, "recordings": kept | {"hits": after}})
    runs = results.load(sample.saved(tmp_path, sample.document(1) | {"rows": rows}))
    start = time.process_time()
    assert len(tables.tables(runs, summary.summarise(runs))[0].rows) == 10
    assert time.process_time() - start < 10
