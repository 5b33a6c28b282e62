"""Cells of tables as plain text, and the table that holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tytoalba.bench.paper import Reported
from tytoalba.bench.summary import Cell, Spread, Summary

NONE = "\N{EN DASH}"
PAPER = "paper"
WEIGHTED = "overall (86:14)"
FRAMES_KEPT = {"nothing": "none", "exemplars": "some", "everything": "all"}


@dataclass(frozen=True)
class Table:
    """Plain text. name: a key; a column called "paper" holds the paper's numbers for the column before it."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


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


def both(cell: Cell | None) -> str:
    """MAE / ACC."""
    return f"{pm(cell.mae, 2)} / {pm(cell.acc, 1)}" if cell and not math.isnan(cell.acc.mean) else NONE


def short(cell: Cell | None) -> str:
    """MAE / ACC, means only."""
    known = cell is not None and not math.isnan(cell.acc.mean)
    return f"{cell.mae.mean:.2f} / {cell.acc.mean:.1f}" if cell and known else NONE


def pm(spread: Spread, digits: int) -> str:
    """A mean and, with several seeds, its standard deviation."""
    if math.isnan(spread.mean):
        return NONE
    shown = f"{spread.mean:.{digits}f}"
    return shown if math.isnan(spread.std) else f"{shown} ± {spread.std:.{digits}f}"


def pair(mae: float, acc: float) -> str:
    """MAE / ACC of plain numbers."""
    return NONE if math.isnan(acc) else f"{mae:.2f} / {acc:.1f}"


def only_acc(cell: Cell) -> str:
    """ACC, mean only."""
    return NONE if math.isnan(cell.acc.mean) else f"{cell.acc.mean:.1f}"


def milliseconds(seconds: Spread) -> str:
    """Milliseconds, mean only."""
    return NONE if math.isnan(seconds.mean) else f"{1000 * seconds.mean:.3g}"


def ends(s: Summary, measure: str) -> str:
    """The interval of a measure by recording."""
    found = s.interval(measure)
    return f"{found.low:.1f} to {found.high:.1f}" if found else NONE


def with_interval(s: Summary, measure: str) -> str:
    """ACC and its interval: "97.8 (97.1 to 98.3)"."""
    acc, interval = s.measures[measure].acc.mean, s.interval(measure)
    if math.isnan(acc):
        return NONE
    return f"{acc:.1f} ({interval.low:.1f} to {interval.high:.1f})" if interval else f"{acc:.1f}"


def difference(s: Summary, other: Summary, measure: str) -> str:
    """Points and their interval, marked where that excludes 0: "+0.4 (+0.1 to +0.7) *"."""
    points = s.measures[measure].acc.mean - other.measures[measure].acc.mean
    if s is other or math.isnan(points):
        return NONE
    found = s.minus(other, measure)
    if found is None:
        return f"{points:+.1f}"
    mark = " *" if found.clear else ""
    return f"{points:+.1f} ({found.points.low:+.1f} to {found.points.high:+.1f}){mark}"


def reported(cell: Reported | None) -> str:
    """MAE / ACC of the paper."""
    return f"{cell.mae:.2f} / {cell.acc:.1f}" if cell else NONE


def mean_cell(cells: Sequence[Cell | None]) -> Cell | None:
    """The plain mean of several cells, over the seeds that all of them have; none if one is missing."""
    present = [cell for cell in cells if cell]
    seeds = set.intersection(*(set(cell.acc.by_seed) for cell in present)) if present else set()
    if len(present) < len(cells) or not seeds:
        return None

    def mean(spreads: list[Spread]) -> Spread:
        return Spread({seed: sum(s.by_seed[seed] for s in spreads) / len(spreads) for seed in sorted(seeds)})

    return Cell(mean([cell.mae for cell in present]), mean([cell.acc for cell in present]))


def masked(summaries: Sequence[Summary]) -> str:
    """Which rows could only answer with directions taught so far, as a sentence of a note."""
    names = list(dict.fromkeys(s.label for s in summaries if s.masked))
    return f" Only directions taught so far are answered by {', '.join(names)}." if names else ""


def cut(label: str, most: int = 21) -> str:
    """A label that is not wider than some letters."""
    return label if len(label) <= most else f"{label[: most - 1]}…"
