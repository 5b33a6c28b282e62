"""Tables as files: Markdown, LaTeX and CSV, each of which escapes text in its own way."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Sequence

from tytoalba.bench import paper as paper
from tytoalba.bench.cells import Table
from tytoalba.bench.fair_tables import joint_row, plain, prior_row
from tytoalba.bench.summary import Summary


def markdown(made: Sequence[Table]) -> str:
    """The tables as GitHub Markdown."""
    return "\n".join(
        f"## {markdown_text(table.title)}\n\n{markdown_table(table)}\n\n{markdown_text(table.note)}\n"
        for table in made
    )


def markdown_table(table: Table) -> str:
    """The table alone, without title and note."""
    lines = [table.header, ["---"] + ["---:"] * (len(table.header) - 1)]
    lines += [[markdown_text(cell) for cell in row] for row in table.rows]
    lines[0] = [markdown_text(cell) for cell in table.header]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


def csv_rows(summaries: Sequence[Summary]) -> str:
    """One line for each method, variant, condition and subset; "overall" has no part."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    start = ["run", "method", "decision", "variant", "condition", "mask", "part", "n_sources"]
    start += ["n_frames", "n_seeds", "mae_mean", "mae_std", "acc_mean", "acc_std", "paper_mae", "paper_acc"]
    compared = [
        f"{name}_{end}" for name in ("minus_joint", "minus_prior") for end in ("", "low", "high", "p")
    ]
    writer.writerow([*start, "acc_low", "acc_high", *(name.rstrip("_") for name in compared), "had"])
    for s in summaries:
        known = paper.key(s.method) if s.is_plain and s.condition == "clean" and not s.mask else ""
        lines = [
            (*subset, cell, paper.TABLE_1.get(known, {}).get(subset)) for subset, cell in s.subsets.items()
        ]
        for part, n, cell, theirs in [*lines, ("overall", "", s.overall, paper.OVERALL.get(known))]:
            names = [_no_formula(text) for text in (s.run, s.method, s.decision, s.variant, s.condition)]
            numbers = [cell.mae.mean, cell.mae.std, cell.acc.mean, cell.acc.std, *(theirs or ("", ""))]
            numbers += _sureness(s, summaries) if part == "overall" else [""] * 10
            shown = ["" if x == "" or math.isnan(float(x)) else f"{float(x):.4f}" for x in numbers]
            counts = [cell.n_frames, len(cell.acc.by_seed)]
            writer.writerow([*names, s.mask, part, n, *counts, *shown, "; ".join(s.had)])
    return out.getvalue()


def _sureness(s: Summary, summaries: Sequence[Summary]) -> list[float | str]:
    """Ends of the interval of overall ACC, then the differences to Joint and to the prior: ends, and p."""
    interval = s.interval("overall")
    numbers: list[float | str] = [interval.low, interval.high] if interval else ["", ""]
    beside = plain(summaries, s.mask) if s.condition == "clean" else []
    for other in (joint_row(beside), prior_row(beside)):
        found = s.minus(other, "overall") if other and other is not s else None
        points = [found.points.value, found.points.low, found.points.high, found.p] if found else [""] * 4
        numbers += points
    return numbers


def _no_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
