"""`tyto prior-any`: make the network that works for every array."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tytoalba.cli.console import choose_device, out, print_json, progress_bar, say
from tytoalba.cli.options import AsJson, Device, Processes, Results
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tytoalba.learning.prior.shared.judge import Row


def prior_any(
    folder: Annotated[
        Path, typer.Argument(help="Folder for simulated frames and checkpoints; a second run goes on there.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: where tyto looks for priors."),
    ] = None,
    arrays: Annotated[int, typer.Option(help="Arrays drawn at random to learn from.")] = 300,
    held: Annotated[int, typer.Option(help="Other random arrays, to calibrate on.")] = 30,
    rooms: Annotated[int, typer.Option(help="Simulated rooms for each array.")] = 15,
    frames: Annotated[int, typer.Option(help="Frames mixed in the rooms of an array.")] = 600,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 12000,
    width: Annotated[int, typer.Option(help="Channels of the network.")] = 48,
    scenes: Annotated[
        int, typer.Option(help="Calm scenes, and as many wild ones, for each array that is judged.")
    ] = 40,
    speech: Annotated[
        Path | None,
        typer.Option(help="Folder of real speech, one file per speaker, beside the synthetic voice."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
    batch: Annotated[
        str, typer.Option(help="Arrays in a step, and frames of each; 8x128 is for a GPU.")
    ] = "4x48",
    overlap: Annotated[
        bool,
        typer.Option("--overlap", help="Train while arrays are simulated: quicker, never the same bytes."),
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(help="Stop training with a checkpoint after so long; run again to go on.")
    ] = None,
    leave_out: Annotated[
        str | None,
        typer.Option(help="Leave acoustics out (hybrid, anechoic, pyroom), and judge on these alone."),
    ] = None,
    device: Device = "auto",
    processes: Processes = 0,
    results: Results = None,
    ship: Annotated[
        bool,
        typer.Option("--ship", help="In a checkout: install it with its judgement and manifest."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the network for every array: simulate random arrays, train, calibrate, judge.

    It takes about an hour on two cores, and is judged on the built-in arrays, none of which it learned from.
    Commands take it for arrays that have no prior of their own. A run that was stopped goes on in its folder.

    Examples:

      tyto prior-any frames/ --speech ~/speech

      tyto prior-any frames/ --speech ~/speech --batch 8x128 --steps 40000 --overlap --minutes 9
    """
    from tytoalba.learning.prior.manifest import any_file, checkout, ship_any
    from tytoalba.learning.prior.registry import find_prior, own_any
    from tytoalba.learning.prior.shared.make import AnySettings, make_any

    if ship and (output or results):
        raise TytoError("--ship writes into the source of tytoalba: leave -o and --results out")
    if ship and leave_out:
        raise TytoError("what was trained without some acoustics is for judging: leave --ship out")
    training = {"steps": steps, "width": width, "seed": seed, **_batch(batch)}
    settings = AnySettings(arrays, held, rooms, frames, scenes, leave_out=leave_out, training=training)
    how: dict[str, Any] = {
        "speech": speech,
        "own": find_prior,
        "overlap": overlap,
        "minutes": math.inf if minutes is None else minutes,
        "device": choose_device(device),
        "processes": processes,
        "stage": progress_bar,
    }
    if ship:
        path = any_file(checkout())
        command = _command(arrays, held, rooms, frames, steps, width, scenes, seed, batch, overlap, speech)
        made, rows = ship_any(settings, folder, command, **how)
    else:
        path = output or (folder / f"without-{leave_out}-any.safetensors" if leave_out else own_any())
        made, rows = make_any(settings, folder, path, results=results, **how)
    if as_json:
        print_json({"about": made.about, "judged": [row.__dict__ for row in rows]})
    elif rows:
        out.print(comparison(rows, "own: the array's own prior"))
    size = path.stat().st_size / 1e3
    say(f"the network for every array, {size:.0f} kB, written to {path}")


def _batch(text: str) -> dict[str, int]:
    """Arrays and frames of a step."""
    parts = text.split("x")
    if len(parts) != 2 or not all(part.isdigit() and int(part) for part in parts):
        raise TytoError(f"--batch takes arrays and frames of each, such as 8x128, got {text!r}")
    return {"arrays": int(parts[0]), "frames": int(parts[1])}


def _command(*values: Any) -> str:
    """What brings it again, without where things lie on this machine."""
    names = ("arrays", "held", "rooms", "frames", "steps", "width", "scenes", "seed", "batch")
    options = [f"--{name} {value}" for name, value in zip(names, values, strict=False)]
    overlap, speech = values[len(names) :]
    options += ["--overlap"] * bool(overlap) + ["--speech SPEECH"] * (speech is not None)
    return " ".join(["tyto prior-any FRAMES", *options, "--ship"])


def comparison(rows: Sequence[Row], what: str) -> Any:
    """A table of methods side by side. what: says who is who."""
    from rich.table import Table

    table = Table(title="ACC in % / MAE in degrees", caption=f"within 5 degrees; {what}")
    for name in ("array", "scenes", "sources"):
        table.add_column(name)
    names = list(dict.fromkeys(row.who for row in rows))
    for who in names:
        table.add_column(who, justify="right")
    for key in dict.fromkeys((row.array, row.scenes, row.n_sources) for row in rows):
        cells = {row.who: row for row in rows if (row.array, row.scenes, row.n_sources) == key}
        shown = [f"{cells[who].acc:.1f} / {cells[who].mae:.1f}" if who in cells else "" for who in names]
        table.add_row(*map(str, key), *shown)
    return table
