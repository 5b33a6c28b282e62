"""`tyto export`: models to share, private by default, and ONNX files for other programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tytoalba.cli.console import chosen_array, err, note, out, print_json, say
from tytoalba.cli.keys import keys_at_hand
from tytoalba.cli.options import AsJson, IdentityFile, Unsigned
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.localizer.export import Exported
    from tytoalba.storage.age import Keys


def export(
    state: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="A state that `tyto new` made; with --onnx also a model."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Argument(metavar="[OUTPUT]", help="Model to write: it locates and cannot be taught."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="The same as OUTPUT, as an option.")
    ] = None,
    unit: Annotated[
        str,
        typer.Option(
            help="Whose presence is hidden: lesson (one recording that was taught, however long), frame (one "
            "of 171 ms: weak), or person (all lessons of one --who; those without a name are one person)."
        ),
    ] = "lesson",
    epsilon: Annotated[
        float,
        typer.Option(help="How well: it changes chances by a factor of at most exp(epsilon). 1 is strong."),
    ] = 3.0,
    delta: Annotated[float, typer.Option(help="Chance that this promise does not hold.")] = 1e-6,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="All that was learned, for your own devices: as secret as the state."),
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="With --exact: do not seal it for your keys.")
    ] = False,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write an ONNX file, for other programs: sound in, scores out.")
    ] = False,
    precision: Annotated[
        str | None,
        typer.Option(help="With --onnx: same (the scores of tyto; default) or fast (float32, nearly so)."),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            "--array",
            "-a",
            help="With --onnx and no state: the prior of this array alone; default: TYTO_ARRAY, then "
            "`tyto config array`.",
        ),
    ] = None,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a model to share: private, so that nobody can tell whether any one lesson was taught.

    A private model corrects by how many degrees this device's answers are off, and reveals nothing else.
    Noise hides each lesson; with few lessons it hides everything, and the untaught prior is as good. The
    command reports what the model is worth on simulated frames. Each private model spends some of the budget
    of the state (`tyto new --budget`) for good.

    --exact writes the weights as they are. Whoever has that file can find out as much as from the state
    itself. It is for your own devices, and sealed for your keys (docs/privacy.md).

    --onnx writes a graph for onnxruntime, by the same rules and out of the same budget (docs/onnx.md). It
    also takes a model that was exported before, which spends nothing more. With --array and no state it
    writes the prior alone, which is public.

    Examples:

      tyto export kitchen.tyto kitchen.model

      tyto export kitchen.tyto kitchen.model --unit person --epsilon 1

      tyto export kitchen.tyto kitchen.model.age --exact

      tyto export --onnx --array respeaker-usb-4 -o respeaker.onnx

      tyto export kitchen.tyto --onnx -o kitchen.onnx
    """
    if not onnx and (precision is not None or array is not None):
        raise TytoError("--precision and --array are for --onnx; a model has the array of its state")
    if plain and not exact:
        raise TytoError("--plain is for --exact: private models are never sealed")
    alone = array is not None or (onnx and state is None)
    if alone and state is not None and output is None and to is None:
        state, output = None, state
    target = _target(output, to)
    if alone:
        if state is not None or exact:
            raise TytoError(
                "--array is for the prior alone, which is public: leave out the state and --exact"
            )
        _export_prior(array, target, precision or "same", as_json)
        return
    if state is None:
        raise TytoError("say which state to export, and where to: tyto export kitchen.tyto kitchen.model")
    keys = keys_at_hand(identity)
    wanted = {"unit": unit, "epsilon": epsilon, "delta": delta}
    written = _exported(
        state, target, wanted, exact, plain, precision or "same" if onnx else None, unsigned, keys
    )
    if as_json:
        print_json(_facts(written))
    else:
        _print_exported(written)


def _target(output: Path | None, to: Path | None) -> Path:
    if output is not None and to is not None:
        raise TytoError("say once where to write: OUTPUT or --output")
    target = output or to
    if target is None:
        raise TytoError("say where to write, such as -o kitchen.model, or kitchen.onnx with --onnx")
    return target


def _export_prior(array: str | None, target: Path, precision: Any, as_json: bool) -> None:
    from tytoalba.localizer.onnx.files import write_prior
    from tytoalba.localizer.onnx.graph import PUBLIC

    path = write_prior(chosen_array(array), target, precision)
    if as_json:
        print_json({"model": str(path), "secrecy": PUBLIC})
    else:
        say(f"{path}: {_size(path)}, {PUBLIC}")


def _exported(
    state: Path,
    target: Path,
    wanted: dict[str, Any],
    exact: bool,
    plain: bool,
    precision: Any,
    unsigned: bool,
    keys: Keys,
) -> Exported:
    """What was written. precision: of an ONNX file; None for a model."""
    from tytoalba.localizer.export import AS_MODEL
    from tytoalba.localizer.store import export_exact, export_private, read

    form = AS_MODEL
    if precision is not None:
        from tytoalba.localizer.onnx.files import as_onnx, write_model

        form = as_onnx(precision)
        localizer = read(state, keys, unsigned)
        if not localizer.can_learn:
            return write_model(localizer, target, exact=exact, plain=plain, keys=keys, precision=precision)
    if exact:
        return export_exact(read(state, keys, unsigned), target, plain=plain, keys=keys, form=form)
    with err.status("drawing noise, and trying the model on simulated frames..."):
        return export_private(state, target, **wanted, keys=keys, form=form)


def _facts(written: Exported) -> dict[str, Any]:
    about: dict[str, Any] = {
        "model": str(written.path),
        "private": written.model.private,
        "signature": str(written.signature) if written.signature else None,
    }
    if written.worth is None:
        return about | {"advice": list(written.advice)}
    worth = asdict(written.worth) | {"better": written.worth.is_better}
    spent = {"spent": round(written.spent, 4), "budget": written.budget, "weaker": list(written.weaker)}
    return about | {"worth": worth, **spent}


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


def _print_exported(written: Exported) -> None:
    from tytoalba.localizer.budget import DELTA
    from tytoalba.localizer.release import GATE_COUNTS, UNITS

    size = _size(written.path)
    signed = f", signed: {written.signature}" if written.signature else ""
    promise, worth = written.model.private, written.worth
    if promise is None:
        say(f"{written.path}: {size}, exact{signed}")
        note(
            "this file is as secret as the state: the sums follow from its weights. For your own devices only"
        )
        for reason in written.advice:
            note(f"all the more so: {reason}")
        note(GATE_COUNTS)
        return
    say(f"{written.path}: {size}, private{signed}")
    out.print(
        f"hidden: {UNITS[promise['unit']]}; epsilon {promise['epsilon']:g}, delta {promise['delta']:g}",
        soft_wrap=True,
    )
    if worth is None:  # a private model in another form
        out.print("spent: nothing more than the model itself")
        return
    at = f" (at delta {DELTA:g}, as budgets are)" if promise["delta"] > DELTA else ""
    out.print(f"spent, with all releases before: epsilon {written.spent:.2f} of {written.budget:g}{at}")
    for weaker in written.weaker:
        note(f"an earlier release hid a {weaker} only: together they promise no more than that")
    on = f"on {worth.n_frames} simulated frames of devices that are off as the noisy sums say"
    if worth.is_better:
        out.print(
            f"worth, {on}: {worth.release:.1f} % within 5 degrees, {worth.release - worth.prior:+.1f} points "
            f"over the untaught prior (90 %: {worth.low:+.1f} to {worth.high:+.1f}); without noise it would "
            f"be {worth.without_noise:.1f} %",
            soft_wrap=True,
        )
    else:
        out.print(
            f"NOT better than the untaught prior, {on}: noise hides what was taught. This file is the prior; "
            "ship that, and save the budget until more was taught",
            soft_wrap=True,
        )
