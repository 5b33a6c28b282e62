"""Renew docs/results.md and docs/results/ from result files: `python tools/results_pages.py [FILE...]`.

Without files: from those that the page names. What stands between the page's marks is made anew, the text
around them is written by hand. Files of one number of phases are one report; those called phases-NUMBER and
those that change what is learned or judged (streams, one source, validation rooms) have a table each.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from tytoalba.bench import paper as paper
from tytoalba.bench.cells import NONE, Table, only_acc, pm, with_interval
from tytoalba.bench.fair_tables import plain
from tytoalba.bench.formats import markdown_table, markdown_text
from tytoalba.bench.page import render
from tytoalba.bench.results import Run, load_results
from tytoalba.bench.summary import Summary, summarise
from tytoalba.bench.tables import tables

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
FILES = re.compile(r"(<!-- files:\n).*?(\n-->)", re.DOTALL)
MARK = re.compile(r"(<!-- made: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
VALUE = re.compile(r"(<!-- (masked )?acc: (\w+) of ([^>]+?) -->).*?(<!-- end -->)")
NOTHING = "*Not measured in these files.*"
WIDTH = 160


@dataclass(frozen=True)
class Report:
    """The result files of the page, by what they show."""

    runs: Sequence[Run]

    @cached_property
    def main(self) -> list[Run]:
        """Those that are one report."""
        apart = (*self.streams, *self.phases, *self.one_source, *self.on_validation, *self.reduced)
        return [run for run in self.runs if run not in apart]

    @cached_property
    def reduced(self) -> list[Run]:
        """Those on a part of the data, where others are on all of it."""
        part = [run for run in self.runs if run.config.get("size", 1) < 1]
        return part if len(part) < len(self.runs) else []

    @cached_property
    def streams(self) -> list[Run]:
        """Those whose directions come back, or whose phases differ widely in length."""
        return [
            run for run in self.runs if run.config.get("overlap", 0) or run.config.get("imbalance", 1) != 1
        ]

    @cached_property
    def one_source(self) -> list[Run]:
        """Those that learn without frames of two sources."""
        return [run for run in self.runs if run.config.get("max_sources", 2) == 1]

    @cached_property
    def on_validation(self) -> list[Run]:
        """Those that are judged on validation rooms, such as the terms of SS-IL."""
        return [run for run in self.runs if run.config.get("judged_on", "test") == "valid"]

    @cached_property
    def phases(self) -> list[Run]:
        """Those of several numbers of phases, fewest first."""
        found = [run for run in self.runs if re.fullmatch(r"phases-\d+", run.name)]
        return sorted(found, key=lambda run: len(run.phases))

    @cached_property
    def summaries(self) -> list[Summary]:
        """Of the report."""
        return summarise(self.main)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Of the report, by name."""
        return {table.name: table for table in tables(self.main, self.summaries)}


def rendered(page: str, report: Report) -> str:
    """The page with all that stands between its marks made anew, and the files named."""
    paths = "\n".join(str(run.path.resolve().relative_to(ROOT)) for run in report.runs)
    page = FILES.sub(lambda found: found[1] + paths + found[2], page)
    page = MARK.sub(lambda found: f"{found[1]}{part(found[2], report)}\n{found[3]}", page)
    return VALUE.sub(lambda found: found[1] + value(report, *found.groups()[1:4]) + found[5], page)


def part(name: str, report: Report) -> str:
    """What stands between a pair of marks; "reduced NAME": of the runs on a part of the data."""
    if name.startswith("reduced "):
        return part(name.removeprefix("reduced "), Report(report.reduced)) if report.reduced else NOTHING
    made: dict[str, Callable[[Report], str]] = {
        "files": _origin, "agreement": _agreement, "orders": _orders, "expansion": _expansion, "eta": _eta,
        "noise": _noise, "streams": _streams, "phases": _phases, "one source": _one_source, "terms": _terms,
    }  # fmt: skip
    return made[name](report) if name in made else _shown(report.tables.get(name.replace(" ", "-")))


def value(report: Report, masked: str | None, measure: str, label: str) -> str:
    """One accuracy in the text, such as "acc: last_overall of tyto"."""
    (found,) = [s for s in plain(report.summaries, "taught" if masked else "") if s.label == label]
    return only_acc(found.measures[measure])


def _shown(*found: Table | None) -> str:
    """Tables with their notes, titles in bold where there are several."""
    known = [table for table in found if table and table.rows]
    parts = []
    for table in known:
        title = f"**{markdown_text(table.title)}**\n\n" if len(known) > 1 else ""
        note = textwrap.fill(markdown_text(table.note), WIDTH, break_long_words=False)
        parts.append(f"{title}{markdown_table(table)}\n\n{note}")
    return "\n\n".join(parts) or NOTHING


def _origin(report: Report) -> str:
    lines = []
    for run in report.runs:
        seeds = ", ".join(str(seed) for seed in sorted({row.seed for row in run.rows}))
        path = run.path.resolve().relative_to(ROOT)
        made = f"- `{path}`, seeds {seeds}, {markdown_text(run.machine)}: {markdown_text(run.command)}"
        lines.append(
            textwrap.fill(made, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    first = report.main[0]
    n_test = dict(first.data.get("n_test", {}))
    tested = ", ".join(f"{n} ({name.split(',')[0]})" for name, n in n_test.items() if name.endswith("clean"))
    facts = f"Data: {first.data_name}; {first.data.get('n_train')} training frames, {tested} test frames."
    return "\n".join(lines) + f"\n\n{markdown_text(facts)}"


def _agreement(report: Report) -> str:
    """Rows that the paper has too, each by its place, and the pairs that stand the other way round."""
    own = {paper.key(s.method): s for s in plain(report.summaries) if not s.decision and not s.variant}
    known = [(key, own[key]) for key in paper.OVERALL if key in own]
    known = [(key, s) for key, s in known if not np.isnan(s.overall_86_14.acc.mean)]
    if len(known) < 2:
        return NOTHING
    ours = {key: s.overall_86_14.acc.mean for key, s in known}
    theirs = {key: paper.OVERALL[key].acc for key, _ in known}
    by_key = dict(known)
    rows = [
        [
            by_key[key].label,
            with_interval(by_key[key], "overall_86_14"),
            _place(ours, key),
            f"{theirs[key]:.1f}",
            _place(theirs, key),
        ]
        for key in sorted(ours, key=lambda key: -ours[key])
    ]
    pairs = [sorted(pair, key=lambda key: -ours[key]) for pair in combinations(ours, 2)]
    swapped = [f"{paper.name(a)} is above {paper.name(b)} here" for a, b in pairs if theirs[a] < theirs[b]]
    note = (
        "Overall ACC in %, one and two sources weighted as in the paper, mean over the phases. "
        f"{len(pairs) - len(swapped)} of {len(pairs)} pairs of rows stand in the paper's order"
        f"{'; not these: ' if swapped else ''}{'; '.join(swapped)}."
    )
    header = ["row", "overall (86:14)", "place", "paper", "place"]
    return _shown(Table("agreement", "Beside the paper", header, rows, note))


def _place(acc: dict[str, float], key: str) -> str:
    return str(sorted(acc.values(), reverse=True).index(acc[key]) + 1)


def _orders(report: Report) -> str:
    return _shown(*(table for name, table in report.tables.items() if re.match("variant-.*order", name)))


def _expansion(report: Report) -> str:
    names = ("n_features", "n_expanded", "expansion", "D")
    return _shown(*(report.tables.get(f"variant-{name}") for name in names))


def _eta(report: Report) -> str:
    return _shown(*(report.tables.get(f"variant-{name}") for name in ("ridge", "eta")))


def _noise(report: Report) -> str:
    return _shown(*(table for name, table in report.tables.items() if name.startswith("noise-")))


def _streams(report: Report) -> str:
    made = []
    for run in report.streams:
        rows = [
            [s.label, with_interval(s, "overall"), with_interval(s, "last_overall"), pm(s.forgetting, 1)]
            for s in plain(summarise([run]))
        ]
        overlap, imbalance = 100 * run.config.get("overlap", 0), run.config.get("imbalance", 1)
        note = (
            f"{overlap:g} % of a phase's frames come from other phases; the largest phase has {imbalance:g} "
            "times the frames of the smallest. ACC in %, subsets by their frames, forgetting in points."
        )
        header = ["row", "mean over the phases", "after the last phase", "forgetting"]
        made.append(Table(run.name, run.name.capitalize(), header, rows, note))
    return _shown(*made)


def _one_source(report: Report) -> str:
    """The same rows with and without frames of two sources in training."""
    beside = {s.label: s for s in plain(report.summaries)}
    made = []
    for run in report.one_source:
        rows = [
            [
                s.label,
                only_acc(s.measures["n1"]),
                only_acc(s.overall),
                _overall(beside.get(s.label)),
                pm(s.forgetting, 1),
            ]
            for s in plain(summarise([run]))
        ]
        header = ["row", "one source", "overall", "overall, with them", "forgetting"]
        note = (
            "Learned from frames of one source alone. ACC in %, mean over the phases; forgetting in points."
        )
        made.append(Table(run.name, run.name.capitalize(), header, rows, note))
    return _shown(*made)


def _overall(s: Summary | None) -> str:
    return only_acc(s.overall) if s else NONE


def _terms(report: Report) -> str:
    """Each option by itself, on validation rooms: the newest phase beside the older ones."""
    made = []
    for run in report.on_validation:
        rows = [
            [s.label, only_acc(s.overall), only_acc(s.last), pm(s.newest, 1), pm(s.older, 1)]
            for s in summarise([run])
            if s.condition == "clean" and not s.mask
        ]
        note = (
            "Validation rooms; ACC in %, subsets by their frames. Newest: on the phase just learned; older: "
            "on those before it; both means over the phases."
        )
        header = ["row", "overall", "after the last phase", "newest", "older"]
        made.append(Table(run.name, run.name.capitalize(), header, rows, note))
    return _shown(*made)


def _phases(report: Report) -> str:
    found = {len(run.phases): {s.label: s for s in plain(summarise([run]))} for run in report.phases}
    labels = dict.fromkeys(label for own in found.values() for label in own)
    rows = [[label, *(_overall_and_last(own.get(label)) for own in found.values())] for label in labels]
    note = "Overall ACC in %, subsets by their frames: mean over the phases / after the last phase."
    header = ["row", *(f"{n} phases" for n in found)]
    return _shown(Table("phases", "Numbers of phases", header, rows, note))


def _overall_and_last(s: Summary | None) -> str:
    return f"{only_acc(s.overall)} / {only_acc(s.last)}" if s else NONE


def named(page: str) -> list[Path]:
    """The result files that a page names."""
    found = FILES.search(page)
    assert found is not None, "the page names no files"
    return [ROOT / line for line in found[0].splitlines()[1:-1]]


def main(*given: str) -> None:
    """Write the page, and the tables, pictures and interactive page in docs/results/."""
    page = PAGE.read_text("utf-8")
    report = Report([load_results(path) for path in given or named(page)])
    PAGE.write_text(rendered(page, report), encoding="utf-8")
    render([run.path for run in report.main], ROOT / "docs" / "results")


if __name__ == "__main__":
    main(*sys.argv[1:])
