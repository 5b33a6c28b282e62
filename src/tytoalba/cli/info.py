"""`tyto info`: what a localizer knows, and everything that it stores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tytoalba.cli.console import err, keys_from, out, print_json
from tytoalba.cli.localizer import IdentityFile, counted

if TYPE_CHECKING:
    from tytoalba.localizer.store import Store

SECTOR = 30
"""Degrees of a line of the table of directions."""


def info(
    model: Annotated[Path, typer.Argument(help="A state or a model, sealed or plain.")],
    plot: Annotated[Path | None, typer.Option(help="Draw what was taught where into this picture.")] = None,
    identity: IdentityFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Tell what a localizer knows, what is written about it, and every array that its file holds.

    Example:

      tyto info kitchen.tyto --plot kitchen.png
    """
    from tytoalba.localizer.store import open_store

    with keys_from(identity):
        store = open_store(model)
    owl = store.localizer
    told = _described(store)
    if as_json:
        print_json(told)
    else:
        _print(told)
    if plot is not None:
        from tytoalba.bench.plots import plot_evidence, save_figure

        save_figure(plot_evidence(owl.evidence, f"{model.name}: taught frames"), plot)
        err.print(f"drawn: {plot}", soft_wrap=True)


def _described(store: Store) -> dict[str, Any]:
    from tytoalba.learning.prior.decisions import known
    from tytoalba.storage.age import is_sealed

    path, owl = store.path, store.localizer
    kind = "state" if owl.can_learn else "model"
    told: dict[str, Any] = {
        "file": str(path),
        "kind": kind,
        "sealed": is_sealed(path),
        "bytes": path.stat().st_size,
        "array": owl.array.name,
        "n_frames": owl.n_frames,
        "stored": [
            {
                "name": name,
                "shape": list(values.shape),
                "dtype": str(values.dtype),
                "bytes": values.nbytes,
                "purpose": why,
            }
            for name, values, why in owl.inventory()
        ],
    }
    if kind == "state":
        state = owl.state
        told["options"] = {name: value for name, value in state.options.items() if name != "seed"}
        told["lessons"] = len(state.lessons)
        told["kept"] = [
            {"who": k.who, "azimuth": list(k.azimuth), "time": k.time, "n_frames": state.lessons[name]}
            for name, k in state.kept.items()
        ]
        told["evidence"] = owl.evidence.tolist()
        told["directions_known"] = int(known([float(a) for a in range(360)], owl.evidence, 5.0).sum())
        told["steps"], told["ledger"] = store.steps()
    return told


def _print(told: dict[str, Any]) -> None:
    sealed = "sealed " if told["sealed"] else ""
    _say(f"{told['file']}: {sealed}{told['kind']} for {told['array']}, {told['bytes'] / 1e6:.1f} MB")
    if told["kind"] == "state":
        _say(
            f"{counted(told['n_frames'], 'frame')} in {counted(told['lessons'], 'lesson')}, "
            f"{len(told['kept'])} of them kept; "
            f"{told['directions_known']} of 360 degrees taught"
        )
        _print_directions(told["evidence"])
        for kept in told["kept"]:
            where = ", ".join(f"{a:g}" for a in kept["azimuth"])
            who = kept["who"] or "(no name)"
            _say(f"kept: {who} at {where}, {counted(kept['n_frames'], 'frame')}, {_date(kept['time'])}")
        _say(f"ledger: {told['ledger']}")
        for step in told["steps"]:
            done = f"{step['what']}, {counted(step['n_frames'], 'frame')}"
            _say(f"  {step['sequence']:>4}  {_date(step['time'])}  {done}")
    table = Table("stored", "shape", "bytes", "purpose", title="Everything that the file holds")
    inside = [row for row in told["stored"] if not row["name"].startswith("prior.")]
    prior = [row for row in told["stored"] if row["name"].startswith("prior.")]
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
