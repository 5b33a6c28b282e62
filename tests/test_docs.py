"""What README and docs show works: Python blocks run, and every `tyto` command has the options shown."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

from tytoalba.bench.config import Config, load_config, shipped_configs
from tytoalba.bench.results import Run, load_results
from tytoalba.bench.summary import summarise
from tytoalba.cli.app import app
from tytoalba.data.simulation.presets import PRESETS
from tytoalba.signal.array import MicArray, builtin_arrays
from tytoalba.storage.soundfiles import write_audio

ROOT = Path(__file__).parents[1]
RESULTS = sorted(path for part in ("paper", "learner") for path in (ROOT / "results" / part).glob("*.json"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for kind, text in found if kind == language]


def commands() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        for block in blocks(page, ""):
            for line in block.splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["tyto"]:
                    yield f"{page.name}: {line.split('#')[0].strip()}", words[1:]


def test_the_docs_show_commands() -> None:
    assert len(list(commands())) > 20


@pytest.mark.parametrize(("shown", "words"), [pytest.param(*c, id=c[0]) for c in commands()])
def test_commands_have_the_options_shown(shown: str, words: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    assert not hasattr(command, "commands"), f"{shown}: no such command"
    words = words[: words.index(">")] if ">" in words else words
    context = command.make_context("tyto", list(words), resilient_parsing=True)
    known = {name: p for p in command.params for name in (*p.opts, *p.secondary_opts)}
    for word in words:
        if word.startswith("-") and word != "-":
            assert word in known, f"{shown}: {word}"
    chosen = context.params
    if preset := chosen.get("preset"):
        assert preset in PRESETS
    if (array := chosen.get("array")) and command.name in ("locate", "simulate"):
        assert array in builtin_arrays()
    if command.name == "bench" and not chosen.get("listing"):
        assert chosen["name"] in shipped_configs()


@pytest.mark.parametrize(
    ("name", "code"),
    [pytest.param(page.name, code, id=page.name) for page in PAGES for code in blocks(page, "python")],
)
def test_python_runs(name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sound = 0.1 * np.random.default_rng(0).standard_normal((4, 48000))
    write_audio("talk.wav", sound, 48000)
    exec(compile(code, name, "exec"), {})


def test_the_array_file_of_the_docs_is_one() -> None:
    (text,) = blocks(ROOT / "docs" / "arrays.md", "toml")
    assert MicArray.from_toml(text).n_mics == 4


def test_pictures_and_links_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_committed_results_can_be_read(path: Path) -> None:
    assert committed(path.stem).rows


def test_the_index_of_results_lists_every_file() -> None:
    index = (ROOT / "results" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z0-9-]+)\.json` \|", index, re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in RESULTS)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_committed_results_are_made_by_a_shipped_file(path: Path) -> None:
    """Keys that say what is measured; options that were added or removed since may differ."""
    if path.stem == "streams-balance":  # two options of it are gone
        assert "removed" in (ROOT / "results" / "README.md").read_text("utf-8")
        return
    made, wanted = committed(path.stem).config, load_config(path.stem)
    for key in ("seeds", "n_phases", "orders", "bands", "parts", "scaling", "size", "max_sources"):
        default = getattr(Config("any"), key)
        assert json.dumps(made.get(key, default)) == json.dumps(getattr(wanted, key)), key
    assert {row.method for row in committed(path.stem).rows} <= set(wanted.methods)


@cache
def committed(name: str) -> Run:
    (path,) = [path for path in RESULTS if path.stem == name]
    return load_results(path)


@cache
def measured(name: str, decimals: int = 2) -> set[tuple[str, str]]:
    """MAE and ACC of every row and subset of a committed result without noise, as tables write them."""
    run = committed(name)
    cells = [
        cell
        for summary in summarise([replace(run, rows=[row for row in run.rows if "dB" not in row.condition])])
        for cell in (*summary.subsets.values(), summary.overall, summary.last)
    ]
    return {(f"{cell.mae.mean:.{decimals}f}", f"{cell.acc.mean:.1f}") for cell in cells}


def test_results_of_the_readme_are_those_that_were_measured() -> None:
    (table,) = re.findall(r"\n\| \| one source.*?\n\n", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    numbers = re.findall(r"(\d+\.\d+) / (\d+\.\d)", table)
    assert len(numbers) == 10 * 3
    assert set(numbers) <= measured("table1") | measured("learner") | measured("shipped-prior")


def test_the_learner_of_the_docs_is_the_one_that_was_measured() -> None:
    page = (ROOT / "docs" / "learner.md").read_text("utf-8")
    tables = re.findall(
        r"\n\|[a-z ]*\| one source \| two sources \| overall \| after.*?\n\n", page, re.DOTALL
    )
    expected = [
        ("learner shipped-prior", 6, 2),
        ("rivals-windows joint-network", 4, 2),
        ("ablation", 27, 1),
    ]
    for table, (names, n_rows, decimals) in zip(tables, expected, strict=True):
        pairs = re.findall(r"(\d+\.\d+) / (\d+\.\d)", table)
        assert len(pairs) == 4 * n_rows, names
        assert set(pairs) <= set.union(*(measured(name, decimals) for name in names.split())), names


def judged(name: str, where: str, who: str, n_sources: int, *families: str) -> str:
    """ACC / MAE in `results/priors`, of all frames of these families, or of any, as tables write them."""
    told = json.loads((ROOT / "results" / "priors" / f"{name}.json").read_text("utf-8"))[where]
    rows = [
        row
        for family in families or told
        for row in told[family]
        if row["who"] == who and row["n_sources"] == n_sources
    ]
    acc, mae = (
        np.average([r[m] for r in rows], weights=[r["n_frames"] for r in rows]) for m in ("acc", "mae")
    )
    return f"{acc:.1f} / {mae:.1f}"


def test_priors_of_the_docs_are_those_that_were_judged() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "learner.md").read_text("utf-8").splitlines()
        if re.match(r"\| [a-z0-9-]+ \| [12] \|", line)
    ]
    priors = [row for row in rows if row[0] in builtin_arrays()]
    assert len(priors) == 12
    for name, n, srp, before, moved, *taught in priors:
        assert srp == judged(name, "judged", "srp", int(n))
        assert before == judged(f"{name}-before", "judged", "prior", int(n))
        assert moved == "-" or moved == judged(f"{name}-moved", "judged", "prior", int(n))
        assert taught == [judged(name, "judged", who, int(n)) for who in ("prior", "blend")]
    left_out = [row for row in rows if row not in priors]
    assert len(left_out) == 6
    for family, n, *cells in left_out:
        assert cells == [
            judged(f"{name}-left-out", "left_out", who, int(n), family)
            for name in ("pepper", "respeaker-usb-4", "respeaker-6mic")
            for who in ("srp", "prior", "blend")
        ]
