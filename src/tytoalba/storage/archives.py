"""Lines of a full ledger: where they are kept, and what the line that stands for them says."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tytoalba.storage.steps import STEPS, VERSION, Entry

COUNTED = frozenset(STEPS[VERSION]) - {"summary"}


def summed_up(entries: Sequence[Entry], identity: str, budget: float | None) -> dict[str, str | int | float]:
    """What a summary says about the lines that it stands for.

    spent: the sum of 1 / noise^2 of what was exported, which budgets are reckoned in; -1: no noise was added
    or nobody knows, and all is spent.
    """
    counts, spent = Counter(entry.what for entry in entries if entry.what != "summary"), 0.0
    if entries[0].what == "summary":
        counts.update({name: int(n) for name, n in entries[0].about.items() if name in COUNTED})
    for entry in entries:
        if "spent" in entry.about:
            told = float(entry.about["spent"])
            spent = max(spent, told if told >= 0 else math.inf)
        elif entry.what == "exported" and "noise" in entry.about:
            noise = float(entry.about["noise"])
            spent += noise**-2 if noise > 0 else math.inf
    about: dict[str, str | int | float] = {"first": identity, "lines": entries[-1].sequence, **counts}
    about["spent"] = spent if math.isfinite(spent) else -1
    if budget is not None:
        about["budget"] = budget
    return about


def archive(path: Path, number: int) -> Path:
    """LEDGER.1, LEDGER.2, ...: where lines of a ledger are kept that a summary stands for."""
    return path.with_name(f"{path.name}.{number}")


def archives(path: Path) -> list[Path]:
    """The archives of a ledger, oldest first."""
    found = list[Path]()
    while os.path.lexists(file := archive(path, len(found) + 1)):
        found.append(file)
    return found
