"""`tyto audit`: what is stored, and what somebody who gets hold of it finds out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tytoalba.cli.console import out, print_json, progress_bar, say, write_json
from tytoalba.cli.options import AsJson, IdentityFile, Results, Seed
from tytoalba.errors import TytoError


def audit(
    model: Annotated[
        Path | None, typer.Argument(help="A state or a model; default: the methods of the benchmark.")
    ] = None,
    scenes: Annotated[int, typer.Option(help="Simulated lessons to attack with.")] = 24,
    methods: Annotated[
        str | None, typer.Option(help="Without a model: only these methods, separated by commas.")
    ] = None,
    seed: Seed = 0,
    results: Results = None,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """List everything that is stored, and attack it.

    A state is attacked as somebody would who stole it: which lessons were learned (by leverage and by loss),
    what two consecutive states say, where people stood. Lessons are simulated, so that we know the truth;
    the file is not changed. Without a model, every method of the benchmark is attacked: the table of
    docs/privacy.md.

    Examples:

      tyto audit kitchen.tyto

      tyto audit --methods joint,icarl,tyto
    """
    if scenes < 6:
        raise TytoError(f"--scenes must be at least 6, got {scenes}")
    told = (
        _of_methods(methods, as_json) if model is None else _of_model(model, identity, scenes, seed, as_json)
    )
    if results:
        write_json(told, results)
    if as_json:
        print_json(told)


def _of_model(path: Path, identity: Path | None, scenes: int, seed: int, as_json: bool) -> dict[str, Any]:
    from tytoalba.cli.keys import keys_at_hand
    from tytoalba.localizer.store import read
    from tytoalba.privacy.audit import audit as attacked

    owl = read(path, keys_at_hand(identity))
    with progress_bar("simulated lessons") as steps:
        told = {
            "file": str(path),
            **attacked(owl, n_scenes=scenes, seed=seed, processes=0, on_progress=steps),
        }
    if not as_json:
        _print(told)
    return told


def _of_methods(methods: str | None, as_json: bool) -> dict[str, Any]:
    from tytoalba.bench.config import load_config
    from tytoalba.bench.data import load_benchdata
    from tytoalba.bench.privacy import privacy_rows, privacy_table

    config = load_config("privacy")
    chosen = methods.replace(" ", "").split(",") if methods else None
    with progress_bar("recordings") as steps:
        data = load_benchdata(
            config.data, bands=config.bands, announce=lambda _, done, total: steps(done, total)
        )
    with progress_bar("methods") as steps:
        rows = privacy_rows(data, config, methods=chosen, on_method=steps)
    if not as_json:
        out.print(privacy_table(rows))
    return {"data": data.name, "rows": rows}


def _print(told: dict[str, Any]) -> None:
    stored = Table("stored", "bytes", "purpose", title=f"Everything that {told['file']} holds")
    inside = [row for row in told["stored"] if not row["name"].startswith("prior.")]
    for row in inside:
        stored.add_row(row["name"], str(row["bytes"]), row["purpose"])
    of_prior = sum(row["bytes"] for row in told["stored"]) - sum(row["bytes"] for row in inside)
    stored.add_row("prior", str(of_prior), "from simulations; no user's sound")
    out.print(stored)
    if told["places"]:
        where = ", ".join(f"{key} {value}" for key, value in told["places"].items())
        out.print(f"where people stood: {where}")
    if "taught" not in told:
        say("a model has no sums to attack; audit the state that it is from")
        return
    table = Table(
        "attack", "AUC (95 %)", "members found at 1 % false alarms", title="Was this lesson learned?"
    )
    for when in ("taught", "forgotten"):
        for name, found in (told[when] or {}).items():
            low, high = found["auc_interval"]
            attack = f"{name.replace('_', ' ')}, {'after forgetting' if when == 'forgotten' else 'taught'}"
            table.add_row(attack, f"{found['auc']:.2f} ({low:.2f}-{high:.2f})", f"{100 * found['tpr']:.0f} %")
    out.print(table)
    same = "the same to the byte" if told["same_bytes_after_forgetting"] else "NOT the same"
    out.print(f"the state after forgetting them is {same} as before")
    two = told["two_states"]
    found = "is found" if two["found"] else "is not found"
    out.print(f"one frame learned between two states {found} among {two['candidates']}")
    for reason in told["release"]:
        out.print(f"not to be released: {reason}")
