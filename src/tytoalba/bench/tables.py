"""Tables of what was measured, with the paper's numbers beside ours: Markdown, LaTeX and CSV.

A `Table` holds plain text; each format escapes it in its own way, so that a method may have any name.
"""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tytoalba.bench import paper as paper
from tytoalba.bench.paper import Reported
from tytoalba.bench.results import Run
from tytoalba.bench.summary import Cell, Spread, Summary, summarise

NONE = "\N{EN DASH}"
PAPER = "paper"
_SUBSET_NAMES = {("test", 1): "loudsp. N=1", ("test", 2): "loudsp. N=2"} | {
    ("human", n): f"human N={n}" for n in (1, 2)
}
_WEIGHTED = "overall (86:14)"
_FRAMES_KEPT = {"nothing": "none", "exemplars": "some", "everything": "all"}
_EXPANSION_NAMES = ("n_features", "n_expanded", "expansion", "D")


@dataclass(frozen=True)
class Table:
    """Plain text. name: a key; a column called "paper" holds the paper's numbers for the column before it."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


def tables(runs: Sequence[Run], summaries: Sequence[Summary]) -> list[Table]:
    """Every table that the results can fill, table 1 first."""
    found = [table_1(summaries), after_table(summaries), memory_table(summaries)]
    found += [*noise_tables(summaries), *variant_tables(summaries)]
    full = [table for table in found if table.rows]
    if _is_sslr(runs[0]):
        return full
    data = runs[0].data_name
    caution = f"Ours: {data or 'data of unknown name'}. The paper: SSLR. Compare the order, not the digits."
    return [
        Table(t.name, t.title, t.header, t.rows, f"{t.note} {caution}") if PAPER in t.header else t
        for t in full
    ]


def summary(run: Run) -> Table:
    """One run at a glance, for a terminal: every method and variant in clean sound, a line each."""
    found = summarise([run])
    clean = [s for s in found if s.condition == "clean"] or found
    rows = []
    for s in clean:
        theirs = paper.OVERALL.get(paper.key(s.method)) if not s.variant and not s.decision else None
        cells = [_short(s.subsets.get(("test", n))) for n in (1, 2)]
        forgotten = NONE if math.isnan(s.forgetting.mean) else f"{s.forgetting.mean:.1f}"
        paper_acc = f"{theirs.acc:.1f}" if theirs else NONE
        rows.append([_cut(s.label), *cells, _short(s.overall), paper_acc, forgotten, _FRAMES_KEPT[s.keeps]])
    n_seeds = max(len(s.seeds) for s in clean)
    note = (
        f"MAE in degrees / ACC in % (within 5 degrees): mean over {len(run.phases)} phases of the test on "
        f"all directions learned so far; {n_seeds} seed{'s' * (n_seeds > 1)}. Forgets: points of ACC lost on "
        "earlier phases. Keeps: training frames kept from phase to phase."
    )
    note += "" if _is_sslr(run) else " Paper: its overall ACC on SSLR, other data: compare the order only."
    header = ["method", "one source", "two sources", "overall", PAPER, "forgets", "keeps"]
    return Table("summary", f"{run.path.stem}: {run.data_name}", header, rows, f"{note}{_masked(clean)}")


def plain(summaries: Sequence[Summary]) -> list[Summary]:
    """The methods themselves: clean sound, no variant."""
    return [s for s in summaries if s.condition == "clean" and not s.variant]


def table_1(summaries: Sequence[Summary]) -> Table:
    """Mean over the phases on each subset: the paper's rows in its order, then the methods only we have."""
    own = plain(summaries)
    present = [subset for subset in paper.SUBSETS if any(subset in s.subsets for s in own)]
    rows = []
    for label, key, s in _lines(own, paper.TABLE_1):
        theirs = paper.TABLE_1.get(key, {})
        pairs = [(_both(s.subsets.get(n) if s else None), _reported(theirs.get(n))) for n in present]
        ours = [_both(cell) for cell in ((s.overall, s.overall_86_14) if s else (None, None))]
        keeps = [s.keeps, size(sum(s.kept_bytes.values()))] if s else [NONE, NONE]
        cells = [cell for pair in pairs for cell in pair]
        rows.append([label, *cells, *ours, _reported(paper.OVERALL.get(key)), *keeps])
    header = [part for subset in present for part in (_SUBSET_NAMES[subset], PAPER)]
    note = (
        "MAE in degrees / ACC in % (within 5 degrees), mean over the phases of the test on the phases 0..k, "
        "mean ± standard deviation over seeds. Overall weights the subsets by their frames; overall (86:14) "
        "weights one and two sources as the paper's frames do. Keeps: of the training data, from phase to "
        "phase. Carries: all that the method has after the last phase, its model included."
    )
    header = ["method", *header, "overall", _WEIGHTED, PAPER, "keeps", "carries"]
    return Table("table1", "Accuracy and error", header, rows if own else [], f"{note}{_masked(own)}")


def after_table(summaries: Sequence[Summary]) -> Table:
    """What is left after the last phase."""
    rows = [
        [
            s.label,
            _both(s.last),
            _both(s.last_86_14),
            _pm(s.forgetting, 1),
            _pm(s.transfer, 1),
            str(len(s.seeds)),
        ]
        for s in plain(summaries)
    ]
    note = (
        "MAE in degrees / ACC in % on all phases after the last, weighted by our frames and as the paper's "
        "(86:14); forgetting (from the best before the last phase) and backward transfer in points of ACC."
    )
    header = ["method", "overall", _WEIGHTED, "forgetting", "backward transfer", "seeds"]
    return Table("after", "After the last phase", header, rows, f"{note}{_masked(plain(summaries))}")


def memory_table(summaries: Sequence[Summary]) -> Table:
    """What each method carries from phase to phase."""
    rows = []
    for s in plain(summaries):
        largest = sorted(s.kept_bytes.items(), key=lambda item: -item[1])[:4]
        names = ", ".join(f"{name} {size(n)}" for name, n in largest) or NONE
        more = f", {len(s.kept_bytes) - 4} more" if len(s.kept_bytes) > 4 else ""
        rows.append([s.label, s.keeps, size(sum(s.kept_bytes.values())), names + more])
    note = (
        "Keeps: what of the training data itself is carried from phase to phase. In all: everything that the "
        "method's memory lists after the last phase, model and statistics included."
    )
    return Table("memory", "Memory and privacy", ["method", "keeps", "in all", "largest"], rows, note)


def noise_tables(summaries: Sequence[Summary]) -> list[Table]:
    """One table for each kind of noise: methods by SNR."""
    kinds: dict[str, dict[tuple[str, str], dict[float, Summary]]] = {}
    for s in summaries:
        if s.noise and not s.variant:
            kind, snr = s.noise
            kinds.setdefault(kind, {}).setdefault((s.method, s.decision), {})[snr] = s
    return [_noise_table(kind, by_method) for kind, by_method in kinds.items()]


def _noise_table(kind: str, by_method: dict[tuple[str, str], dict[float, Summary]]) -> Table:
    """Overall MAE and ACC at each SNR, and their plain mean over the SNRs, as the paper has it."""
    snrs = sorted({snr for own in by_method.values() for snr in own})
    theirs = paper.NOISE if kind == paper.NOISE_KIND else {}
    rows = []
    for label, key, first in _lines([next(iter(own.values())) for own in by_method.values()], theirs):
        own = by_method[first.method, first.decision] if first else {}
        cells = [own[snr].overall if snr in own else None for snr in snrs]
        shown = [_both(cell) for cell in (*cells, _mean_cell(cells))]
        if theirs:
            same = theirs.get(key, {})
            whole = paper.NOISE_OVERALL.get(key) if set(snrs) == set(paper.SNRS) else None
            beside = [*(same.get(int(snr)) if snr == int(snr) else None for snr in snrs), whole]
            shown = [x for ours, cell in zip(shown, beside, strict=True) for x in (ours, _reported(cell))]
        rows.append([label, *shown])
    columns = [*(f"{snr:g} dB" for snr in snrs), "overall"]
    header = [part for column in columns for part in ([column, PAPER] if theirs else [column])]
    note = (
        "Learned clean, tested in noise: MAE in degrees / ACC in %; overall is the plain mean over the SNRs."
    )
    if theirs:
        note += " The paper does not say which noise it used; we read it as white."
    return Table(f"noise-{kind}", f"Noise: {kind}", ["method", *header], rows, note)


def variant_tables(summaries: Sequence[Summary]) -> list[Table]:
    """One table for each setting that was varied: expansion, eta, order of the phases..."""
    varied = [s for s in summaries if s.variant and s.condition == "clean"]
    names = dict.fromkeys(s.setting[0] for s in varied)
    return [_variant_table(name, [s for s in varied if s.setting[0] == name]) for name in names]


def _variant_table(name: str, varied: list[Summary]) -> Table:
    expansion = name in _EXPANSION_NAMES
    theirs = paper.EXPANSION if expansion else paper.ETA if name in ("ridge", "eta") else {}
    methods = [(s.method, s.decision) for s in varied]
    rows = []
    for s in sorted(varied, key=lambda s: (methods.index((s.method, s.decision)), _rank(s.setting[1]))):
        value = _number(s.setting[1]) if paper.key(s.method) == "sslcil" and not s.decision else None
        known = theirs.get(value) if value is not None else None
        label = s.label.removesuffix(f", {s.variant}")
        row = [label, s.setting[1], _both(s.last), _pm(s.forgetting, 1), _both(s.overall), _reported(known)]
        rows.append(row if theirs else row[:-1])
    header = ["method", name, "after the last phase", "forgetting", "overall", PAPER]
    title = "Size of the expansion" if expansion else name[:1].upper() + name[1:]
    note = (
        "MAE in degrees / ACC in %, mean ± standard deviation over seeds. Overall: mean over the phases, "
        "subsets weighted by frames. Forgetting in points of ACC."
    )
    return Table(f"variant-{name}", title, header if theirs else header[:-1], rows, note)


def csv_rows(summaries: Sequence[Summary]) -> str:
    """One line for each method, variant, condition and subset; "overall" has no part."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    start = ["run", "method", "decision", "variant", "condition", "part", "n_sources", "n_frames", "n_seeds"]
    writer.writerow([*start, "mae_mean", "mae_std", "acc_mean", "acc_std", "paper_mae", "paper_acc"])
    for s in summaries:
        known = paper.key(s.method) if s in plain(summaries) and not s.decision else ""
        lines = [
            (*subset, cell, paper.TABLE_1.get(known, {}).get(subset)) for subset, cell in s.subsets.items()
        ]
        for part, n, cell, theirs in [*lines, ("overall", "", s.overall, paper.OVERALL.get(known))]:
            names = [_no_formula(text) for text in (s.run, s.method, s.decision, s.variant, s.condition)]
            numbers = [cell.mae.mean, cell.mae.std, cell.acc.mean, cell.acc.std, *(theirs or ("", ""))]
            shown = ["" if x == "" or math.isnan(float(x)) else f"{float(x):.4f}" for x in numbers]
            writer.writerow([*names, part, n, cell.n_frames, len(cell.acc.by_seed), *shown])
    return out.getvalue()


def markdown(made: Sequence[Table]) -> str:
    """The tables as GitHub Markdown."""
    parts = []
    for table in made:
        lines = [table.header, ["---"] + ["---:"] * (len(table.header) - 1)]
        lines += [[markdown_text(cell) for cell in row] for row in table.rows]
        lines[0] = [markdown_text(cell) for cell in table.header]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"## {markdown_text(table.title)}\n\n{body}\n\n{markdown_text(table.note)}\n")
    return "\n".join(parts)


def latex(made: Sequence[Table]) -> str:
    """The tables as LaTeX floats; they need the packages booktabs and graphicx."""
    parts = ["% Made by tytoalba. Needs \\usepackage{booktabs,graphicx}.\n"]
    for table in made:
        lines = [" & ".join(latex_text(cell) for cell in row) + r" \\" for row in table.rows]
        head = " & ".join(latex_text(cell) for cell in table.header) + r" \\"
        columns = "l" + "r" * (len(table.header) - 1)
        parts.append(
            "\\begin{table}\n\\centering\n"
            f"\\caption{{{latex_text(table.title)}. {latex_text(table.note)}}}\n"
            f"\\resizebox{{\\linewidth}}{{!}}{{%\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head}\n\\midrule\n"
            + "\n".join(lines)
            + "\n\\bottomrule\n\\end{tabular}}\n\\end{table}\n"
        )
    return "\n".join(parts)


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it is, in a table too.

    >>> markdown_text("a|b_c <i>")
    'a\\|b\\_c &lt;i&gt;'
    """
    escaped = re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", " ".join(text.split()))
    return html.escape(escaped, quote=False)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "\N{EN DASH}": "--",
    "°": r"$^{\circ}$",
    # after the end of a row, LaTeX reads [ and * as its arguments
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}


def latex_text(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> latex_text("50% of n_x")
    '50\\% of n\\_x'
    """
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def size(n_bytes: int) -> str:
    """Bytes for people.

    >>> size(0), size(1500), size(3_200_000_000)
    ('0 B', '1.5 kB', '3.2 GB')
    """
    amount, unit = float(n_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 999.5 or unit == "TB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.5 else f"{amount:.1f} {unit}"


def _lines(own: Sequence[Summary], known: Collection[str]) -> list[tuple[str, str, Summary | None]]:
    """Label, key and summary: the paper's rows in its order, ours or not, then those that only we have.

    The paper's numbers stand beside a method's own decision only: the key of any other is "".
    """
    lines: list[tuple[str, str, Summary | None]] = []
    for key in known:
        ours = [s for s in own if paper.key(s.method) == key]
        lines += [(s.label, "" if s.decision else key, s) for s in ours]
        if all(s.decision for s in ours):
            lines.insert(len(lines) - len(ours), (paper.name(key), key, None))
    return lines + [(s.label, "", s) for s in own if paper.key(s.method) not in known]


def _is_sslr(run: Run) -> bool:
    return "sslr" in run.data_name.lower()


def _masked(summaries: Sequence[Summary]) -> str:
    """Which rows could only answer with directions taught so far, as a sentence of a note."""
    names = list(dict.fromkeys(s.label for s in summaries if s.masked))
    return f" Only directions taught so far are answered by {', '.join(names)}." if names else ""


def _cut(label: str, most: int = 21) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"


def _short(cell: Cell | None) -> str:
    """MAE / ACC, means only."""
    known = cell is not None and not math.isnan(cell.acc.mean)
    return f"{cell.mae.mean:.2f} / {cell.acc.mean:.1f}" if cell and known else NONE


def _both(cell: Cell | None) -> str:
    """MAE / ACC."""
    return f"{_pm(cell.mae, 2)} / {_pm(cell.acc, 1)}" if cell and not math.isnan(cell.acc.mean) else NONE


def _reported(cell: Reported | None) -> str:
    return f"{cell.mae:.2f} / {cell.acc:.1f}" if cell else NONE


def _pm(spread: Spread, digits: int) -> str:
    if math.isnan(spread.mean):
        return NONE
    shown = f"{spread.mean:.{digits}f}"
    return shown if math.isnan(spread.std) else f"{shown} ± {spread.std:.{digits}f}"


def _mean_cell(cells: Sequence[Cell | None]) -> Cell | None:
    """The plain mean of several cells, over the seeds that all of them have; none if one is missing."""
    present = [cell for cell in cells if cell]
    seeds = set.intersection(*(set(cell.acc.by_seed) for cell in present)) if present else set()
    if len(present) < len(cells) or not seeds:
        return None

    def mean(spreads: list[Spread]) -> Spread:
        return Spread({seed: sum(s.by_seed[seed] for s in spreads) / len(spreads) for seed in sorted(seeds)})

    return Cell(mean([cell.mae for cell in present]), mean([cell.acc for cell in present]))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rank(text: str) -> tuple[float, str]:
    """Numbers by size, then words."""
    number = _number(text)
    return (math.inf if number is None or math.isnan(number) else number, text)


def _no_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
