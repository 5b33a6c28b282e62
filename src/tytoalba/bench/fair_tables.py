"""The fair tables: every row with what it had, how sure its numbers are, and where it errs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tytoalba.bench import paper as paper
from tytoalba.bench.cells import (
    FRAMES_KEPT,
    NONE,
    WEIGHTED,
    Table,
    difference,
    masked,
    pair,
    pm,
    with_interval,
)
from tytoalba.bench.results import SEPARATIONS, Mask
from tytoalba.bench.summary import Summary
from tytoalba.learning.method import HAD

LETTERS: dict[str, str] = {word: word[0].upper() for word in HAD}
"""Of what a row had."""
_SURE = "; in brackets the interval of 95 % by recording"
_PAIRED = ", paired by recording; * where the interval excludes 0"


def plain(summaries: Sequence[Summary], mask: Mask = "") -> list[Summary]:
    """The rows themselves: clean sound, no setting that was varied."""
    return [s for s in summaries if s.condition == "clean" and not s.swept and s.mask == mask]


def fair_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Every row with what it had: answers anywhere, at taught directions only, and after the last phase."""
    anywhere, taught = plain(summaries), plain(summaries, "taught")
    words = ", ".join(f"{letter} {word}" for word, letter in LETTERS.items())
    had = f"Had, beside the frames of the phases: {words}. " if any(s.had for s in anywhere) else ""
    sure = any(s.recordings for s in anywhere)
    note = (
        f"ACC in % (within 5 degrees), mean over seeds{_SURE if sure else ''}. Overall weights one and two "
        "sources by our frames, 86:14 as the paper's. Differences are points of overall ACC (our frames)"
        f"{_PAIRED if sure else ''}. {had}Keeps: training frames kept from phase to phase."
    )
    phases = "Mean over the phases of the test on the directions learned so far."
    made = [
        _fair_table("fair", "Any direction may be answered", anywhere, "", f"{phases} {note}"),
        _fair_table(
            "fair-masked",
            "Only directions learned so far may be answered, by any row",
            taught,
            "",
            f"{phases} Scores of all other directions are left out before the answer is read. {note}",
        ),
    ]
    last = f"All directions are learned, so a mask changes nothing. {note}"
    return [*made, _fair_table("fair-last", "After the last phase", anywhere, "last_", last)]


def _fair_table(name: str, title: str, own: list[Summary], when: str, note: str) -> Table:
    others = [(f"minus {other.label}", other) for other in (joint_row(own), prior_row(own)) if other]
    views = {"one source": "n1", "two sources": "n2", "overall": "overall", WEIGHTED: "overall_86_14"}
    measures = {column: f"{when}{view}" for column, view in views.items()}
    said = (
        [[" ".join(LETTERS[word] for word in s.had) or NONE] for s in own] if any(s.had for s in own) else []
    )
    rows = [
        [
            s.label,
            *(said[i] if said else ()),
            FRAMES_KEPT[s.keeps],
            *(with_interval(s, measure) for measure in measures.values()),
            *(difference(s, other, f"{when}overall") for _, other in others),
        ]
        for i, s in enumerate(own)
    ]
    header = ["row", *(["had"] if said else ()), "keeps", *measures, *(label for label, _ in others)]
    itself = "" if when else masked([s for s in own if not s.mask])
    return Table(name, title, header, rows, f"{note}{itself}")


def joint_row(own: Sequence[Summary]) -> Summary | None:
    """The first row of joint training: the paper's network, where files begin with it."""
    return next((s for s in own if paper.key(s.method) == "joint"), None)


def prior_row(own: Sequence[Summary]) -> Summary | None:
    """The prior before it is taught."""
    return next((s for s in own if s.method == "prior alone"), None)


def direction_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Where a row errs after the last phase: around the circle, front for back, two sources side by side."""
    own = plain(summaries)
    around = [
        [
            s.label,
            *(pair(mae, acc) for mae, acc in zip(s.quadrants["mae"], s.quadrants["acc"], strict=True)),
            pm(s.front_back, 1),
        ]
        for s in own
        if not all(map(math.isnan, s.quadrants["acc"]))
    ]
    note = (
        "One source, after the last phase: MAE in degrees / ACC in % by where it truly is, 90 degrees wide "
        "each. Front for back: % of sources found nearer to their mirror image, of those further than 10 "
        "degrees from the line between left and right."
    )
    header = ["method", "front", "left", "back", "right", "front for back"]
    circle = Table("directions", "Around the circle", header, around, note)
    bins = [f"{low} to {high}" for low, high in pairwise(SEPARATIONS)]
    seen = [i for i in range(len(bins)) if any(not math.isnan(s.separation["acc"][i]) for s in own)]
    rows = [
        [s.label, *(pair(s.separation["mae"][i], s.separation["acc"][i]) for i in seen)]
        for s in own
        if not all(map(math.isnan, s.separation["acc"]))
    ]
    note = "Two sources, after the last phase: MAE in degrees / ACC in % by the degrees between the two."
    apart = Table(
        "separation", "Two sources, by how far apart", ["method", *(bins[i] for i in seen)], rows, note
    )
    return [circle, apart]
