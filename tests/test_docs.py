"""What README and docs show works: every block is run, page by page, and what it prints is compared.

A `sh` or `python` block is run; a `text` block right after it is its output, in which `...` stands for
anything. A block that is not run says why in a comment above it, and its commands have the options shown.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from tools.draw_architecture import PICTURE, draw

import tytoalba
from tests.helpers.commands import Tyto
from tests.helpers.snippets import PAGES, ROOT, Block, blocks, matches
from tests.helpers.states import settle, write_wave
from tytoalba.bench import paper
from tytoalba.bench.config import Config, load_config, shipped_configs
from tytoalba.bench.odas.settings import BEST, SHIPPED
from tytoalba.bench.results import Run, load_results
from tytoalba.bench.summary import Summary, summarise
from tytoalba.cli.app import app
from tytoalba.cli.console import err, out
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.learning.prior import make
from tytoalba.live.settings import Settings
from tytoalba.signal.array import MicArray, builtin_arrays

RESULTS = sorted(path for part in ("paper", "learner") for path in (ROOT / "results" / part).glob("*.json"))
AROUND = {"a.wav": 0.0, "b.wav": 90.0, "c.wav": 180.0, "d.wav": 270.0}
"""Recordings that a page asks its reader to make, and where the talker stands."""
PRIVATE = r"(?<!barn )\bowls?\b|\bears?\b|\bshelf\b|\bshelves\b|\bso many\b|one a core|\btold\b|\blooks at\b"


def runnable(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    return [block for block in blocks(page) if block.language in ("sh", "python") and not block.not_run]


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=lambda page: page.stem)
def test_every_block_runs(page: Path, tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(make, "Scenes", partial(Scenes, seconds=1.6))  # the audit's
    for console in (out, err):
        monkeypatch.setattr(console, "width", 80)
    if page.stem == "your-array":
        for name, azimuth in AROUND.items():
            write_wave(tmp_path / name, azimuth, seconds=2.0, seed=int(azimuth))
    names: dict[str, Any] = {}
    for block in runnable(page):
        printed = io.StringIO()
        if block.language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, page.name, "exec"), names)
        else:
            for line in block.text.splitlines():
                printed.write(shell(tyto, line))
        assert not block.output or matches(block.output, printed.getvalue()), printed.getvalue()


def shell(tyto: Tyto, line: str) -> str:
    """Run a line as a shell would, in this process; return what it prints."""
    words = shlex.split(line, comments=True)
    assert words[:1] == ["tyto"], line
    target = Path(words[words.index(">") + 1]) if ">" in words else None
    ran = tyto(*(words[1:-2] if target else words[1:]))
    assert ran.code == 0, (line, ran.out, ran.err)
    if target:
        target.write_text(ran.out, encoding="utf-8")
        return ""
    return ran.out


def commands() -> Iterator[tuple[str, list[str]]]:
    """The `tyto` commands that are not run, wherever they stand."""
    for page in PAGES:
        shown = [line for block in blocks(page) if block.not_run for line in block.text.splitlines()]
        shown += re.findall(r"`(tyto [^`]+)`", page.read_text("utf-8"))
        for line in shown:
            command = re.search(r"(?:^|\| )tyto (.*)", line)
            words = shlex.split(command[1], comments=True) if command else []
            if words and not words[0].startswith("-"):
                yield f"{page.name}: {' '.join(words)}", words


@pytest.mark.parametrize(("shown", "words"), [pytest.param(*c, id=c[0]) for c in dict(commands()).items()])
def test_commands_have_the_options_shown(shown: str, words: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    if command.name == "bench" and hasattr(command, "commands") and words:
        assert words[0] in shipped_configs() or words[0] == "NAME", shown
        command = command.commands["run"]
    assert command.name != "tyto", f"{shown}: no such command"
    known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    known |= {"--help", "-h"}
    for word in words:
        if re.match("--?[a-z]", word):
            assert word in known, f"{shown}: {word}"
    if "--array" in words:
        assert words[words.index("--array") + 1] in {*builtin_arrays(), "ARRAY", "NAME"}


def test_the_array_file_of_the_docs_is_one() -> None:
    (block,) = [b for b in blocks(ROOT / "docs" / "your-array.md") if b.language == "toml"]
    assert MicArray.from_toml(block.text).n_mics == 4


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda p: p.stem
)
def test_pages_are_plain(page: Path) -> None:
    text = page.read_text("utf-8")
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
        if not target.startswith("http"):
            there = page.parent / target if target else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), f"{target}#{anchor}"
    assert max(map(len, text.splitlines())) <= 400
    assert not re.findall(PRIVATE, text, re.IGNORECASE)
    assert not re.findall(r"\bcommit [0-9a-f]{7,40}\b", text)
    assert {block.language for block in blocks(page)} <= {"sh", "python", "toml", "text", ""}


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as the pages and GitHub make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_get_started_lists_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    listed = table(ROOT / "docs" / "get-started.md", "| extra | adds | needed for |")
    assert {row[0].strip("`") for row in listed} == set(extras) - {"dev", "end-to-end", "docs"}
    for name, adds, _ in listed:
        needs = [re.split(r"[\[>]", need)[0] for need in extras[name.strip("`")]]
        assert needs == ["tytoalba"] or adds.split(", ") == needs, name


def test_the_glossary_is_in_order() -> None:
    words = [row[0].lower() for row in table(ROOT / "docs" / "glossary.md", "| word | meaning |")]
    assert words == sorted(set(words))


def test_the_reference_lists_the_public_names() -> None:
    listed = re.findall(
        r"^::: tytoalba\.([\w.]+)$", (ROOT / "docs" / "reference.md").read_text("utf-8"), re.M
    )
    names = {name for name in tytoalba.__all__ if not name.endswith(("Error", "Warning"))}
    assert {name.rpartition(".")[2] for name in listed} >= names
    for name in listed:
        assert attrgetter(name)(tytoalba) is not None


def test_the_picture_of_the_architecture_is_that_of_the_code() -> None:
    assert PICTURE.read_text("utf-8") == draw(), "run: python tools/draw_architecture.py"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_committed_results_can_be_read(path: Path) -> None:
    assert committed(path.stem).rows


def test_the_index_of_results_lists_every_file() -> None:
    index = (ROOT / "results" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z0-9-]+)\.json` \|", index, re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in RESULTS)


def of_earlier_files() -> set[str]:
    """Results of TOML files that are gone or have changed since, as the index of results says."""
    index = (ROOT / "results" / "README.md").read_text("utf-8")
    (found,) = re.findall(r"^## Of earlier files\n(.*?)(?=^## )", index, re.M | re.S)
    return set(re.findall(r"^\| `([a-z0-9-]+)\.json` \|", found, re.M))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_committed_results_are_made_by_a_shipped_file(path: Path) -> None:
    """Keys that say what is measured; options that were added or removed since may differ."""
    shipped = path.stem in shipped_configs() and same_keys(path.stem)
    assert shipped != (path.stem in of_earlier_files())
    if shipped:
        ran = {paper.key(row.method) for row in committed(path.stem).rows}  # replay was called rmm
        assert ran <= {paper.key(name) for name in load_config(path.stem).methods}


def same_keys(name: str) -> bool:
    """Whether a result and the shipped file of its name measure the same, on however much data."""
    made, wanted = committed(name).config, load_config(name)
    for key in ("seeds", "n_phases", "orders", "bands", "parts", "scaling", "max_sources"):
        default = getattr(Config("any"), key)
        if json.dumps(made.get(key, default)) != json.dumps(getattr(wanted, key)):
            return False
    return True


@cache
def committed(name: str) -> Run:
    (path,) = [path for path in RESULTS if path.stem == name]
    return load_results(path)


@cache
def clean(name: str) -> dict[str, Summary]:
    """The summaries of a committed result without noise or context, by what the tables call them."""
    run = committed(name)
    found = summarise([replace(run, rows=[row for row in run.rows if row.condition == "clean"])])
    return {f"{s.method} {s.decision} {s.variant}".strip(): s for s in found}


ROWS = {
    "SRP-PHAT": ("table1", "srp-phat"),
    "Fine-tune (lower bound)": ("table1", "fine-tune"),
    "iCaRL": ("table1", "icarl"),
    "SSL-CIL as the paper describes it": ("table1", "ssl-cil"),
    "SSL-CIL, untrained backbone": ("table1", "ssl-cil-random"),
    "Joint, the paper's network (upper bound)": ("table1", "joint"),
    "Joint, the prior's network (strongest bound)": ("joint-network", "joint  network=steered"),
    "tyto without a prior": ("table1", "tyto without prior"),
    "tyto before it is taught (the prior alone)": ("shipped-prior", "prior alone"),
    "**tyto**": ("shipped-prior", "tyto"),
}
"""The rows of the tables of README and Benchmarks: in which file, and how their method's name begins."""


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the table whose heading begins so."""
    (found,) = re.findall(rf"^{re.escape(heading)}.*\n\|[-:|]+\n((?:\|.*\n)+)", page.read_text("utf-8"), re.M)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found.splitlines()]


def row_of(label: str) -> Summary:
    name, begin = ROWS[label]
    found = [s for key, s in clean(name).items() if key == begin or key.startswith(f"{begin},")]
    (summary,) = found
    return summary


def test_results_of_the_readme_are_those_that_were_measured() -> None:
    rows = table(ROOT / "README.md", "| | one source | two sources | overall | overall, 86:14 |")
    assert len(rows) == 7
    for label, *cells in rows:
        s = row_of(label)
        one, two = (s.curves[view]["acc"][0, -1] for view in ("n1", "n2"))
        wanted = [one, two, s.last.acc.mean, s.last_86_14.acc.mean]
        assert cells[:4] == [f"{value:.1f}" for value in wanted], label


def test_results_of_the_benchmark_page_are_those_that_were_measured() -> None:
    rows = table(
        ROOT / "docs" / "benchmarks.md", "| method | one source | two sources | overall | overall, 86:14 |"
    )
    assert [label for label, *_ in rows] == list(ROWS)
    for label, *cells in rows:
        s = row_of(label)
        one, two = (s.curves[view]["acc"][0].mean() for view in ("n1", "n2"))
        spreads = (s.overall, s.overall_86_14, s.last, s.last_86_14)
        assert cells[:6] == [f"{value:.1f}" for value in (one, two, *(c.acc.mean for c in spreads))], label
        assert cells[7] == ("**yes**" if s.masked else "no"), label


@cache
def everything(name: str) -> list[Summary]:
    return summarise([committed(name)])


def test_noise_and_context_of_the_benchmark_page_are_those_that_were_measured() -> None:
    page = ROOT / "docs" / "benchmarks.md"
    files = ["learner", "learner", "joint-network-noise", "shipped-prior", "shipped-prior"]
    for label, *cells in table(page, "| noise | SRP-PHAT"):
        kind, *levels = re.findall(r"white|babble|fan|-?\d+", label)
        for name, cell in zip(files, cells, strict=True):
            found = {(s.condition, f"{s.last.acc.mean:.1f}") for s in everything(name)}
            for level, value in zip(levels, cell.split(" / "), strict=True):
                assert (f"{kind} {level} dB", value) in found
    files = ["learner", "learner", "learner", "joint-network", "shipped-prior", "shipped-prior"]
    for name, (_, *cells) in zip(files, table(page, "| | one frame"), strict=True):
        found = {(s.condition, f"{s.overall.acc.mean:.1f}") for s in everything(name)}
        assert set(zip(("clean", "context 1", "context 4"), cells, strict=True)) <= found


@cache
def measured(name: str, decimals: int) -> set[tuple[str, str]]:
    """MAE and ACC of every row and subset of a committed result without noise, as tables write them."""
    cells = [cell for s in clean(name).values() for cell in (*s.subsets.values(), s.overall, s.last)]
    return {(f"{cell.mae.mean:.{decimals}f}", f"{cell.acc.mean:.1f}") for cell in cells}


def test_tables_of_the_experiments_are_those_that_were_measured() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    tables = re.findall(
        r"^\|[a-z ]*\| one source \| two sources \| overall \| after.*?\n\n", page, re.S | re.M
    )
    expected = [
        ("learner shipped-prior", 6, 2),
        ("rivals-windows joint-network", 4, 2),
        ("ablation", 27, 1),
    ]
    for found, (names, n_rows, decimals) in zip(tables, expected, strict=True):
        pairs = re.findall(r"(\d+\.\d+) / (\d+\.\d)", found)
        assert len(pairs) == 4 * n_rows, names
        assert set(pairs) <= set.union(*(measured(name, decimals) for name in names.split())), names


def judged(name: str, where: str, who: str, n_sources: int, *families: str) -> str:
    """ACC / MAE in `results/priors`, of all frames of these families, or of any, as tables write them."""
    header = json.loads((ROOT / "results" / "priors" / f"{name}.json").read_text("utf-8"))[where]
    rows = [
        row
        for family in families or header
        for row in header[family]
        if row["who"] == who and row["n_sources"] == n_sources
    ]
    acc, mae = (
        np.average([r[m] for r in rows], weights=[r["n_frames"] for r in rows]) for m in ("acc", "mae")
    )
    return f"{acc:.1f} / {mae:.1f}"


def test_priors_of_the_docs_are_those_that_were_judged() -> None:
    page = ROOT / "docs" / "experiments.md"
    priors = table(page, "| array | sources | SRP-PHAT")
    assert len(priors) == 12
    for name, n, srp, before, moved, *taught in priors:
        assert srp == judged(name, "judged", "srp", int(n))
        assert before == judged(f"{name}-before", "judged", "prior", int(n))
        assert moved == "-" or moved == judged(f"{name}-moved", "judged", "prior", int(n))
        assert taught == [judged(name, "judged", who, int(n)) for who in ("prior", "blend")]
    left_out = table(page, "| left out | sources")
    assert len(left_out) == 6
    for family, n, *cells in left_out:
        assert cells == [
            judged(f"{name}-left-out", "left_out", who, int(n), family)
            for name in ("pepper", "respeaker-usb-4", "respeaker-6mic")
            for who in ("srp", "prior", "blend")
        ]


@pytest.mark.parametrize(("page", "part"), [("benchmarks.md", "test"), ("experiments.md", "valid")])
def test_machines_of_the_docs_are_what_was_measured(page: str, part: str) -> None:
    path = ROOT / "results" / "fans" / f"respeaker-usb-4-{part}.json"
    measured = json.loads(path.read_text("utf-8"))
    rows = {
        (
            row["noise"] if row["snr"] is None else f"{row['noise']} {row['snr']:g} dB",
            row["context"],
            row["ignore_steady"],
        ): row
        for row in measured["rows"]
        if row["method"] == "prior"
    }
    shown = table(ROOT / "docs" / page, "| beside | context | located | ignored |")
    assert (measured["part"], len(shown) * 2) == (part, len(rows))
    assert f"{measured['scenes']} scenes of {measured['seconds']:g} s" in (ROOT / "docs" / page).read_text()

    def cell(row: dict[str, Any], name: str) -> str:
        value = row[name]
        return f"{value['value']:.1f} ({value['low']:.0f} to {value['high']:.0f})"

    for beside, context, *cells in shown:
        both = [rows[beside, int(context), ignored] for ignored in (False, True)]
        assert cells == [cell(row, name) for name in ("acc5", "machine_later") for row in both]


def test_how_sure_priors_are_is_what_the_docs_say() -> None:
    measured = json.loads((ROOT / "results" / "confidence" / "test.json").read_text("utf-8"))
    rows = {(row["prior"], row["scenes"], row["context"]): row for row in measured["rows"]}
    found = table(ROOT / "docs" / "benchmarks.md", "| prior | scenes | context | one asked")
    assert len(found) == 8
    for prior, scenes, context, *cells in found:
        row = rows[prior, scenes, int(context)]
        for asked, cell in zip(("1", "2", "3", "auto"), cells, strict=False):
            said, right, error = (row["asked"][asked][name] for name in ("said", "right", "error"))
            assert cell == f"{said:.2f} / {right:.2f} / {error:.3f}"
        assert cells[-1] == " / ".join(f"{100 * share:.0f}" for share in row["counted"])


def test_the_network_for_every_array_is_as_good_as_the_docs_say() -> None:
    rows = json.loads((ROOT / "results" / "priors" / "any.json").read_text("utf-8"))["judged"]
    found = table(ROOT / "docs" / "experiments.md", "| arrays | scenes | sources")
    assert len(found) == 8
    for arrays, scenes, n, *cells in found:
        for who, cell in zip(("srp", "music", "any", "own"), cells, strict=True):
            own = [
                row
                for row in rows
                if row["array"].startswith("random") == (arrays == "random")
                and (row["scenes"], str(row["n_sources"]), row["who"]) == (scenes, n, who)
            ]
            means = [f"{np.mean([row[m] for row in own]):.1f}" for m in ("acc", "mae")] if own else []
            assert cell == (" / ".join(means) or "-")


def test_tracking_of_the_docs_is_what_was_measured() -> None:
    page, folder = ROOT / "docs" / "track.md", ROOT / "results" / "tracking"
    parts = {
        part: json.loads((folder / f"respeaker-usb-4-{part}.json").read_text("utf-8"))
        for part in ("valid", "test")
    }
    best = json.loads((folder / "search.json").read_text("utf-8"))["best"]
    assert best == parts["valid"]["settings"] == parts["test"]["settings"] == asdict(Settings())
    odas = json.loads((folder / "odas-search.json").read_text("utf-8"))
    for part in parts.values():
        assert part["others"] == {"ODAS as shipped": asdict(SHIPPED), "ODAS, best setting": odas["best"]}
    assert odas["best"] == asdict(BEST)
    assert f"{len(odas['trials'])} trials over {len(odas['grid'])} settings" in page.read_text("utf-8")

    def cells(values: dict[str, dict[str, float]], interval: bool) -> list[str]:
        digits = dict.fromkeys(values, 1) | {"delay": 2, "gospa": 2}
        shown = []
        for name, value in values.items():
            one, low, high = (f"{value[key]:.{digits[name]}f}" for key in ("value", "low", "high"))
            shown.append(f"{one} ({low}-{high})" if interval else one)
        return shown

    for part, heading in (("test", "| all test scenes"), ("valid", "| all validation scenes")):
        rows = table(page, heading)
        assert len(rows) == len(parts[part]["rows"]["all"])
        for way, *given in rows:
            assert given == cells(parts[part]["rows"]["all"][way], interval=True), (part, way)
    by_kind = table(page, "| test scenes | way")
    assert len(by_kind) == 36
    for kind, way, *given in by_kind:
        assert given == cells(parts["test"]["rows"][kind][way], interval=False), (kind, way)


def test_listening_of_the_docs_is_what_was_measured() -> None:
    found = json.loads((ROOT / "results" / "listening.json").read_text("utf-8"))
    page = ROOT / "docs" / "listen.md"
    share, held = 100 * found["share of a core"], found["memory MB"]
    assert f"took {share:.1f} % of a core. Memory stayed at {held:.0f} MB" in page.read_text("utf-8")
    assert found["dropped"] == 0
    assert found["grown MB"] < 1
    assert found["cores of the machine"] == 2
    windows = found["every 300 s"]
    few, many = ([one for one in windows if (one["load"] <= 12) is calm] for calm in (True, False))
    for cells, there in zip(table(page, "| programs that wanted"), (few, many), strict=True):
        in_time = np.mean([one["in time"] for one in there])
        latest = max(one["latency 1.0"] for one in there)
        assert cells[1:] == [
            str(5 * len(there)),
            f"{100 * in_time:.1f} %",
            f"{latest:.2f} s",
        ]
    first = json.loads((ROOT / "results" / "listening-priority.json").read_text("utf-8"))
    loads = [round(one["load"]) for one in first["every 300 s"]]
    wanted = (
        f"while {min(loads)} to {max(loads)} programs wanted a core, a few of them with priority too: "
        f"{100 * first['in time']:.1f} % within 105 ms, the latest {first['latency 1.0']:.2f} s, "
        f"{100 * first['share of a core']:.1f} % of a core, nothing lost"
    )
    assert wanted in page.read_text("utf-8")
    assert (first["dropped"], first["cores of the machine"]) == (0, 2)
    assert first["grown MB"] < 1


def test_lessons_of_the_docs_are_those_that_were_measured() -> None:
    for name, *cells in table(ROOT / "docs" / "benchmarks.md", "| array | taught direction"):
        was = json.loads((ROOT / "results" / "lessons" / f"{name}.json").read_text("utf-8"))
        lost = max(-row["change"] for row in was["by_distance"])
        there, elsewhere = (
            f"{was['before']:.1f} → {was['after']:.1f}",
            (was["others_before"], was["others_after"]),
        )
        assert cells == [there, "{:.1f} → {:.1f}".format(*elsewhere), f"{lost:.2f}"]


def attacked(name: str) -> list[dict[str, Any]]:
    rows = json.loads((ROOT / "results" / "privacy" / f"{name}.json").read_text("utf-8"))["rows"]
    assert rows
    return list(rows)


def test_privacy_tables_of_the_docs_are_those_that_were_measured() -> None:
    page = ROOT / "docs" / "privacy.md"
    for row, cells in zip(attacked("size"), table(page, "| frames per feature"), strict=True):
        wanted = [f"{row['ratio']:g}"]
        for who in ("state", "model"):
            found = row[who]
            wanted += [f"{found['auc']:.2f} ({found['alone_auc']:.2f})", f"{found['recording_auc']:.2f}"]
            wanted += [f"{100 * found['tpr']:.0f} %"]
        assert cells == wanted
    for row, cells in zip(attacked("states"), table(page, "| features D"), strict=True):
        n = row["trials"]
        found = [f"{row[key]} of {n}" for key in ("exact", "found_seed", "found_other_seed")]
        cosines = [f"{row[key] + 0.0:.2f}" for key in ("cosine_seed", "cosine_other_seed")]
        assert cells == [str(row["n_features"]), *found, *(c.replace("-0.00", "0.00") for c in cosines)]
    methods = {paper.key(row["method"]): row for row in attacked("methods")}
    shown = {paper.key(cells[0].split("`")[1]): cells for cells in table(page, "| method | keeps")}
    assert shown.keys() == methods.keys()
    for name, row in methods.items():
        assert shown[name][3] == f"{row['answers']['auc']:.2f}"
        assert shown[name][4].startswith(f"{row['memory']['auc']:.2f} (")


def exports_as_shown() -> tuple[list[list[str]], list[list[str]]]:
    """The two tables of attacks on models as docs/privacy.md has them, of `results/privacy/models.json`."""
    *exact, private = attacked("models")
    promise, members, many = private["promise"], private["members"], private["many"]

    def percent(share: float) -> str:
        return f"{100 * share:.1f} %"

    def measured(found: dict[str, Any]) -> str:
        low, high = found["tpr_interval"]
        return f"{percent(found['tpr'])} ({100 * low:.1f}-{100 * high:.1f})"

    def of_all(what: str, cell: Any, last: str) -> list[str]:
        return [what, *(cell(row) for row in exact), last]

    two = private["two_exports"]
    attacks = [
        of_all(
            "lessons, frames",
            lambda r: f"{r['lessons']}, {r['frames']}",
            f"{private['lessons']}, {private['frames']}",
        ),
        of_all(
            "taught degrees found",
            lambda r: f"{r['places']['found']} of {r['places']['taught']}",
            f"{private['places']['found']} of {private['places']['taught']}",
        ),
        of_all("false degrees", lambda r: str(r["places"]["false"]), str(private["places"]["false"])),
        of_all(
            "directions of G determined",
            lambda r: f"{r['sums']['directions']} of {r['features']}",
            str(private["sums"]["directions"]),
        ),
        of_all("error of G there", lambda r: f"{r['sums']['error']:.0e}", "-"),
        of_all(
            "lessons known again: AUC with the state's G",
            lambda r: f"{r['members']['state']['lesson_auc']:.2f}",
            "-",
        ),
        of_all(
            "with the model alone",
            lambda r: f"{r['members']['model']['lesson_auc']:.2f}",
            "-",
        ),
        of_all(
            "lesson between two exports named",
            lambda r: (
                f"{r['two_exports']['ranks'].count(1)} of {len(r['two_exports']['ranks'])} "
                f"(of {r['two_exports']['candidates']})"
            ),
            f"{two['first']} of {two['trials']} (of {two['candidates']})",
        ),
    ]
    found = [
        [
            "1",
            f"{promise['epsilon']:.1f}",
            percent(promise["most_found_by_epsilon"]),
            percent(promise["most_found"]),
            measured(members["worst"]),
            measured(members["median"]),
        ],
        [
            str(many["releases"]),
            f"{many['epsilon']:.1f}",
            percent(many["most_found_by_epsilon"]),
            percent(many["most_found"]),
            measured(many["worst"]),
            "-",
        ],
    ]
    return attacks, found


def test_attacks_on_models_of_the_docs_are_those_that_were_measured() -> None:
    page = ROOT / "docs" / "privacy.md"
    attacks, found = exports_as_shown()
    assert table(page, "| attack | exact") == attacks
    assert table(page, "| private models at") == found
    *exact, private = attacked("models")
    assert exact[-1]["passes_gate"]
    worst = private["members"]["worst"]["tpr"]
    assert worst < private["promise"]["most_found_by_epsilon"]
    said = " ".join(page.read_text("utf-8").split())
    for number in (
        f"all {exact[1]['places']['taught']} taught degrees",
        f"at most {100 * private['promise']['most_found']:.1f} % of lessons",
        f"at most {100 * private['many']['most_found']:.1f} % of lessons",
    ):
        assert number in said
