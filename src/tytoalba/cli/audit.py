"""`tyto audit`: what is stored, and what somebody who gets hold of it finds out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tytoalba.cli.console import make_table, out, print_json, progress_bar, say, write_json
from tytoalba.cli.options import AsJson, IdentityFile, Results, Seed
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.bench.privacy import TableName

HEADS = ("method", "kB", "frames", "answers", "memory", "TPR", "recording", "places", "found")
EXPORT_ROWS = (
    "places found",
    "directions of G",
    "its error there",
    "lessons known again: AUC",
    "found at 1 % false alarms",
    "most that noise allows",
    "lesson between two named",
)
LEGEND = (
    "kB, frames: what the method keeps, and how many training frames are in it. AUC of the best attack on "
    "single frames with the method's answers and with all of its memory (0.5: chance), share of members "
    "found at 1 % false alarms (TPR), AUC for whole recordings, AUC of where people stood (places), and how "
    "often the one frame between two states is found. --json has attacks and intervals."
)


def audit(
    model: Annotated[
        Path | None, typer.Argument(help="A state or a model; default: the methods of the benchmark.")
    ] = None,
    scenes: Annotated[int, typer.Option(help="Simulated lessons to attack with.")] = 24,
    methods: Annotated[
        str | None, typer.Option(help="Without a model: only these methods, separated by commas.")
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            help="Without a model: methods (what each gives away), size (members by the number of frames), "
            "states (the frame between two states) or models (exact and private ones)."
        ),
    ] = "methods",
    seed: Seed = 0,
    results: Results = None,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """List everything that is stored, and attack it.

    A state is attacked as a thief would attack it: which lessons were learned (by leverage and by loss), what
    two consecutive states reveal, where people stood. Then models of it, made in memory, are attacked.
    Lessons are simulated, so that the truth is known; the file is not changed. A model is attacked with what
    is in the file: places and sums from its weights. Without a model, the methods of the benchmark are
    attacked: the tables of docs/privacy.md.

    Examples:

      tyto audit kitchen.tyto

      tyto audit exported.tyto

      tyto audit --methods joint,icarl,tyto
    """
    if scenes < 6:
        raise TytoError(f"--scenes must be at least 6, got {scenes}")
    if model is None:
        report = _of_methods(cast("TableName", table), methods, seed)
    else:
        report = _of_model(model, identity, scenes, seed)
    if results:
        write_json(report, results)
    if as_json:
        print_json(report)
    elif model is None:
        _print_rows(report["rows"], table)
    else:
        _print(report)


def _of_model(path: Path, identity: Path | None, scenes: int, seed: int) -> dict[str, Any]:
    from tytoalba.cli.keys import keys_at_hand
    from tytoalba.localizer.store import read
    from tytoalba.privacy.audit import audit as attacked

    localizer = read(path, keys_at_hand(identity), unsigned=True)
    with progress_bar("simulated lessons") as steps:
        found = attacked(localizer, n_scenes=scenes, seed=seed, processes=0, on_progress=steps)
    return {"file": str(path), **found}


def _of_methods(table: TableName, methods: str | None, seed: int) -> dict[str, Any]:
    from tytoalba.bench.privacy import audit_methods

    with progress_bar("recordings") as steps:
        return audit_methods(
            table,
            methods.replace(" ", "").split(",") if methods else None,
            seed=seed,
            on_data=lambda what, done, total: steps(done, total, f"recordings: {what}"),
            on_method=lambda done, total: steps(done, total, "methods"),
        )


def _print_rows(rows: list[dict[str, Any]], table: str) -> None:
    if table == "models":
        print_exports({_name_of(row): row for row in rows})
        return
    if table != "methods":
        for row in rows:
            print_json(row)
        return
    shown = make_table(*HEADS)
    shown.padding = (0, 0, 0, 0)
    for row in rows:
        shown.add_row(*_cells(row))
    out.print(shown)
    out.print(LEGEND)


def _cells(row: Mapping[str, Any]) -> list[str]:
    memory, places, states = row["memory"], row["places"], row["two_states"]
    aucs = [row["answers"]["auc"], memory["auc"], memory["tpr"], memory["recording_auc"]]
    return [
        row["method"],
        f"{row['bytes'] / 1000:.0f}",
        str(row["frames_kept"]),
        *(f"{value:.2f}" for value in aucs),
        f"{places['auc']:.2f}" if places else "",
        f"{states['found']} of {states['trials']}" if states else "",
    ]


def _print(report: dict[str, Any]) -> None:
    stored = make_table("stored", "bytes", "purpose", title=f"Everything that {report['file']} holds")
    inside = [row for row in report["stored"] if not row["name"].startswith("prior.")]
    for row in inside:
        stored.add_row(row["name"], str(row["bytes"]), row["purpose"])
    of_prior = sum(row["bytes"] for row in report["stored"]) - sum(row["bytes"] for row in inside)
    stored.add_row("prior", str(of_prior), "from simulations; no user's sound")
    out.print(stored)
    if report["kind"] == "model":
        _print_model(report)
    else:
        _print_state(report)


def _print_model(report: dict[str, Any]) -> None:
    """What the file alone gives away."""
    attacks, private = report["attacks"], report["private"]
    if not attacks["possible"]:
        out.print(f"the weights cannot be attacked here: {attacks['why']}")
        say("that is no proof: somebody else may have it")
    else:
        degrees, sums = attacks["places"]["degrees"], attacks["sums"]
        shown = ", ".join(f"{degree:g}" for degree in degrees)
        out.print(f"places from the weights: {len(degrees)} degrees{f' ({shown})' if degrees else ''}")
        out.print(
            f"G from labels nobody uses: {sums['directions']} of {sums['features']} directions determined"
        )
    if private:
        out.print(
            f"private: unit {private['unit']}, epsilon {private['epsilon']:g}, delta {private['delta']:g}. "
            f"At {_percent(private['fpr'])} false alarms nobody finds more than "
            f"{_percent(private['most_found_by_epsilon'])} by epsilon, {_percent(private['most_found'])} by "
            f"its noise; measured on {private['releases']} releases of the worst {private['unit']}: "
            f"{_found(private['measured'])}"
        )
        if private["kept"] is False:
            say("this file does not keep its promise: too little noise, or more in it than it may hold")
    elif attacks["possible"] and not attacks["places"]["degrees"] and not attacks["sums"]["directions"]:
        out.print(
            "these attacks found nothing, which proves nothing: exact weights are as secret as the state"
        )
    else:
        out.print("exact weights are as secret as the state that they are from")


def _print_state(report: dict[str, Any]) -> None:
    from tytoalba.localizer.release import GATE_COUNTS

    if report["places"]:
        where = ", ".join(f"{key} {value}" for key, value in report["places"].items())
        out.print(f"where people stood: {where}")
    table = make_table(
        "attack", "AUC (95 %)", "members found at 1 % false alarms", title="Was this lesson learned?"
    )
    for when in ("taught", "forgotten"):
        for name, found in (report[when] or {}).items():
            low, high = found["auc_interval"]
            attack = f"{name.replace('_', ' ')}, {'after forgetting' if when == 'forgotten' else 'taught'}"
            table.add_row(attack, f"{found['auc']:.2f} ({low:.2f}-{high:.2f})", f"{100 * found['tpr']:.0f} %")
    out.print(table)
    same = "the same to the byte" if report["same_bytes_after_forgetting"] else "NOT the same"
    out.print(f"the state after forgetting them is {same} as before")
    two = report["two_states"]
    found = "is found" if two["found"] else "is not found"
    out.print(f"one frame learned between two states {found} among {two['candidates']}")
    print_exports(report["exports"])
    for reason in report["release"]:
        out.print(f"not to be released: {reason}")
    proof = "" if report["release"] else ". It has nothing against this state, which proves nothing"
    out.print(GATE_COUNTS + proof)


def print_exports(exports: Mapping[str, Mapping[str, Any]]) -> None:
    """Attacks on models side by side."""
    table = make_table("attack", *exports, title="What models give away")
    columns = [_private_cells(f) if "promise" in f else _exact_cells(f) for f in exports.values()]
    for name, *cells in zip(EXPORT_ROWS, *columns, strict=True):
        table.add_row(name, *cells)
    out.print(table)
    n = next(iter(exports.values()))["two_exports"]["candidates"]
    out.print(
        "models are made in memory: nothing is written, no budget is spent. "
        f"exact: by what the weights give; private: by the noisy sums, of the lesson that shows most, to who "
        f"knows all others. The lesson between two exports is one of {n} candidates, or fewer."
    )


def _exact_cells(found: Mapping[str, Any]) -> list[str]:
    """What attacks on an exact export found, in the order of `EXPORT_ROWS`."""
    sums, model, ranks = found["sums"], found["members"]["model"], found["two_exports"]["ranks"]
    return [
        _places(found["places"]),
        f"{sums['directions']} of {found['features']}" if sums["found"] else "0",
        f"{sums['error']:.0e}" if sums["found"] else "-",
        f"{model['lesson_auc']:.2f}" if sums["found"] else "-",
        _percent(model["tpr"]) if sums["found"] else "-",
        "-",
        f"{ranks.count(1)} of {len(ranks)}",
    ]


def _private_cells(found: Mapping[str, Any]) -> list[str]:
    """The same of private releases: the best attack on the worst lesson."""
    promise, worst, two = found["promise"], found["members"]["worst"], found["two_exports"]
    return [
        _places(found["places"]),
        str(found["sums"]["directions"]),
        "-",
        f"{worst['auc']:.2f}",
        _percent(worst["tpr"]),
        _percent(promise["most_found"]),
        f"{two['first']} of {two['trials']}",
    ]


def _name_of(row: Mapping[str, Any]) -> str:
    if row["export"] == "private":
        return f"private, {row['promise']['epsilon']:g}"
    return f"exact, D {row['features']}{', gate' if row['passes_gate'] else ''}"


def _places(found: Mapping[str, int]) -> str:
    return f"{found['found']} of {found['taught']}" + (f", {found['false']} false" if found["false"] else "")


def _found(members: Mapping[str, Any]) -> str:
    low, high = members["tpr_interval"]
    return f"{_percent(members['tpr'])} ({_percent(low)}-{_percent(high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
