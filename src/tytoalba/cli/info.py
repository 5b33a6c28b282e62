"""`tyto info`: what a localizer knows, and everything that it stores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tytoalba.cli.console import out, print_json, say
from tytoalba.cli.keys import keys_at_hand
from tytoalba.cli.options import AsJson, IdentityFile, Plot
from tytoalba.texts.printing import plural

if TYPE_CHECKING:
    from tytoalba.localizer.store import Store

OLDER_PRIOR = (
    "prior: not the one that tyto has for this array today. It keeps the one that it was made with, and "
    "locates, learns and forgets as ever. Only a new state (`tyto new`) has today's: teach it the lessons "
    "again, from their recordings"
)
SECTOR = 30
"""Degrees of a line of the table of directions."""


def info(
    model: Annotated[Path, typer.Argument(help="A state or a model, sealed or plain.")],
    plot: Plot = None,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a localizer knows, what its ledger says, and everything that its file holds.

    Example:

      tyto info kitchen.tyto --plot kitchen.png
    """
    from tytoalba.localizer.store import open_store

    store = open_store(model, keys_at_hand(identity), unsigned=True)
    facts = _described(store)
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    if plot is not None:
        from tytoalba.bench.plots import plot_evidence, save_figure

        save_figure(plot_evidence(store.localizer.evidence, f"{model.name}: taught frames"), plot)
        say(f"drawn: {plot}")


def _described(store: Store) -> dict[str, Any]:
    from tytoalba.learning.prior.decisions import known
    from tytoalba.storage.age import is_sealed

    path, localizer = store.path, store.localizer
    kind = "state" if localizer.can_learn else "model"
    facts: dict[str, Any] = {
        "file": str(path),
        "kind": kind,
        "sealed": is_sealed(path),
        "bytes": path.stat().st_size,
        "array": localizer.array.name,
        "n_frames": localizer.n_frames,
        "prior_is_newest": localizer.prior_is_newest,
        "stored": [
            {
                "name": name,
                "shape": list(values.shape),
                "dtype": str(values.dtype),
                "bytes": values.nbytes,
                "purpose": why,
            }
            for name, values, why in localizer.inventory()
        ],
    }
    if kind == "state":
        state = localizer.state
        facts["options"] = {name: value for name, value in state.options.items() if name != "seed"}
        facts["lessons"] = len(state.lessons)
        facts["kept"] = [
            {"who": k.who, "azimuth": list(k.azimuth), "time": k.time, "n_frames": state.lessons[name]}
            for name, k in state.kept.items()
        ]
        facts["evidence"] = localizer.evidence.tolist()
        facts["directions_known"] = int(known([float(a) for a in range(360)], localizer.evidence, 5.0).sum())
        facts["steps"], facts["ledger"] = store.steps()
        facts["remembered"], facts["budget"] = store.remembered(), store.budget()
    else:
        facts["signature"] = store.signature()
        facts["private"] = localizer.model.private
    return facts


def _print(facts: dict[str, Any]) -> None:
    sealed = "sealed " if facts["sealed"] else ""
    _say(f"{facts['file']}: {sealed}{facts['kind']} for {facts['array']}, {facts['bytes'] / 1e6:.1f} MB")
    if not facts["prior_is_newest"]:
        _say(OLDER_PRIOR)
    if facts["kind"] == "state":
        _say(
            f"{plural(facts['n_frames'], 'frame')} in {plural(facts['lessons'], 'lesson')}, "
            f"{len(facts['kept'])} of them kept; "
            f"{facts['directions_known']} of 360 degrees taught"
        )
        _print_directions(facts["evidence"])
        for kept in facts["kept"]:
            where = ", ".join(f"{a:g}" for a in kept["azimuth"])
            who = kept["who"] or "(no name)"
            _say(f"kept: {who} at {where}, {plural(kept['n_frames'], 'frame')}, {_date(kept['time'])}")
        _say(f"ledger: {facts['ledger']}")
        if facts["remembered"]:
            _say(f"remembered: step {facts['remembered']['newest_step']} is the newest that you have seen")
        if facts["steps"]:
            _say(f"budget of private models: {_budget(facts['budget'])}")
        for step in facts["steps"]:
            done = f"{step['what']}, {plural(step['n_frames'], 'frame')}"
            _say(f"  {step['sequence']:>4}  {_date(step['time'])}  {done}")
        _print_table(facts)
        return
    _say(f"signature: {facts['signature']}")
    if facts["private"]:
        about = facts["private"]
        hidden = f"unit {about['unit']}, epsilon {about['epsilon']:g}, delta {about['delta']:g}"
        _say(f"private: {hidden}; safe to share as far as that goes")
    else:
        _say("exact: as secret as the state that it is from; for your own devices")
    _print_table(facts)


def _budget(facts: dict[str, Any]) -> str:
    if not facts["known"]:
        return f"epsilon {facts['budget']:g}, and nobody knows how much was spent: nothing is left"
    if facts["spent"] is None:
        return f"epsilon {facts['budget']:g}; what was spent needs the extra 'privacy' to reckon"
    return f"epsilon {facts['spent']:.2f} of {facts['budget']:g} spent (delta {facts['delta']:g})"


def _print_table(facts: dict[str, Any]) -> None:
    table = Table("stored", "shape", "bytes", "purpose", title="Everything that the file holds")
    inside = [row for row in facts["stored"] if not row["name"].startswith("prior.")]
    prior = [row for row in facts["stored"] if row["name"].startswith("prior.")]
    for row in inside:
        table.add_row(
            _shown(row["name"]), " x ".join(map(str, row["shape"])), str(row["bytes"]), row["purpose"]
        )
    if prior:
        total = str(sum(row["bytes"] for row in prior))
        table.add_row(f"prior ({len(prior)} arrays)", "", total, prior[0]["purpose"])
    out.print(table)


def _print_directions(evidence: list[int]) -> None:
    """A bar for each sector of the circle."""
    sums = [sum(evidence[start : start + SECTOR]) for start in range(0, 360, SECTOR)]
    if not any(sums):
        return
    for k, n in enumerate(sums):
        bar = "#" * round(40 * n / max(sums))
        out.print(f"{k * SECTOR:>4}-{(k + 1) * SECTOR - 1:<3} {bar} {n or ''}")


def _say(text: str) -> None:
    out.print(_shown(text), soft_wrap=True)


def _shown(text: str) -> str:
    """Text as it is: names in a file from elsewhere can hold letters that steer a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _date(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s after 1970"
