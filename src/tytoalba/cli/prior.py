"""`tyto prior`: learn from simulations what an array can locate, before anyone uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tytoalba.cli.console import choose_device, out, print_json, progress_bar, say
from tytoalba.cli.options import AsJson, Device, Processes, Results
from tytoalba.cli.prior_any import comparison
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.learning.prior.judge import Judgement
    from tytoalba.learning.prior.make import PriorSettings


def prior(
    array: Annotated[str, typer.Argument(help="Built-in array (see `tyto array list`) or TOML file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: where tyto looks for priors."),
    ] = None,
    scenes: Annotated[int, typer.Option(help="Simulated rooms, each with four places for talkers.")] = 1000,
    frames: Annotated[
        int, typer.Option(help="Frames to mix in these rooms; new ones every second epoch.")
    ] = 40000,
    width: Annotated[int, typer.Option(help="Channels of the network; 32 is quick, 96 the best.")] = 64,
    blocks: Annotated[int, typer.Option(help="Depth of the network; with --start it may grow.")] = 4,
    epochs: Annotated[int, typer.Option(help="Passes over the frames.")] = 8,
    start: Annotated[
        str | None,
        typer.Option(
            help="Prior to go on from: a file, or an array whose prior comes with tyto. Its microphones "
            "may differ. With --epochs 0 it is only calibrated."
        ),
    ] = None,
    from_any: Annotated[
        bool,
        typer.Option(
            "--from-any",
            help="Fine-tune the network for every array; the result is written only if it is better.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --from-any: write the result even if it is no better.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(help="Learning rate to begin with; 0.002, with --start 0.0005, with --from-any 0.0003."),
    ] = None,
    calm: Annotated[
        float, typer.Option(help="Share of rooms that are quiet, with a well-built device: 0 to 1.")
    ] = 0.5,
    families: Annotated[
        str | None,
        typer.Option(help="Acoustics that scenes take in turn: hybrid, anechoic, pyroom (extra 'sim')."),
    ] = None,
    speech: Annotated[
        Path | None,
        typer.Option(help="Folder of real speech, one file per speaker, beside the synthetic voice."),
    ] = None,
    leave_one_out: Annotated[
        bool,
        typer.Option("--leave-one-out", help="Also judge the recipe on acoustics it was not trained on."),
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder for simulated scenes, which are then not simulated again; with --from-any also for "
            "checkpoints: a run that was stopped goes on there."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of scenes, mixes and training.")] = 0,
    device: Device = "auto",
    processes: Processes = 0,
    results: Results = None,
    ship: Annotated[
        bool,
        typer.Option(
            "--ship",
            help="In a checkout of the source: install the prior into the package, its judgement into "
            "results/priors, and renew the manifest, which names AudioMNIST as the --speech.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the prior of an array: simulate, mix, train, calibrate, judge.

    It takes minutes on a GPU. On a CPU take fewer --scenes and --frames, such as 400 and 10000, and --start
    from the prior of another array, or a smaller --width, such as 32. Every command finds it from then on;
    arrays that come with tyto have one already.

    --from-any starts from the network that all other arrays share and trains it on for this one, without
    changing its size, on frames that are mixed once. It compares both on scenes of its own, and keeps the
    shared network where tuning gained nothing. --width, --blocks, --families, --start, --leave-one-out and
    --ship have no place there.

    Examples:

      tyto prior my-array.toml

      tyto prior my-array.toml --from-any --speech ~/speech --cache scenes/

      tyto prior my-array.toml --start respeaker-usb-4 --scenes 400 --frames 10000

      tyto prior pepper --scenes 4000 --frames 320000 --width 96 --epochs 84 --speech ~/speech

      tyto prior pepper --start pepper --seed 1 --frames 320000 --speech ~/speech --ship
    """
    from tytoalba.learning.prior.files import load_prior
    from tytoalba.learning.prior.make import TURNS, PriorSettings, make_prior
    from tytoalba.learning.prior.manifest import ship_prior
    from tytoalba.learning.prior.registry import shipped_priors

    turns = tuple(families.replace(" ", "").split(",")) if families else TURNS
    settings = PriorSettings(scenes, frames, width, blocks, epochs, rate, calm, turns, seed)
    how: dict[str, Any] = {
        "speech": speech,
        "cache": cache,
        "device": choose_device(device),
        "processes": processes,
        "stage": progress_bar,
    }
    if from_any:
        others = {"--start": start, "--leave-one-out": leave_one_out, "--ship": ship}
        _tune(array, settings, others, how | {"output": output, "results": results, "force": force}, as_json)
        return
    if force:
        raise TytoError("--force is for --from-any: other priors are always written")
    how["leave_out"] = leave_one_out
    how["start"] = load_prior(shipped_priors().get(start, Path(start))) if start else None
    if ship:
        if output or results:
            raise TytoError("--ship writes into the source of tytoalba: leave -o and --results out")
        command = _command(array, settings, start, speech is not None, leave_one_out)
        made = ship_prior(array, settings, command, **how)
    else:
        made = make_prior(array, settings, output=output, results=results, **how)
    if as_json:
        print_json(made.to_dict())
    else:
        out.print(_table("Acoustics it was trained on, other scenes and speakers", made.judged))
        if made.left_out is not None:
            out.print(_table("Acoustics that each was not trained on", made.left_out))
    size = made.path.stat().st_size / 1e6
    say(f"{made.prior.n_weights} weights, {size:.1f} MB, written to {made.path}")


def _tune(
    array: str, settings: PriorSettings, others: dict[str, Any], how: dict[str, Any], as_json: bool
) -> None:
    """Fine-tune the network for every array. others: options that have no place there."""
    from tytoalba.learning.prior.make import PriorSettings
    from tytoalba.learning.prior.shared.tuning import TuneSettings
    from tytoalba.learning.prior.tune import tune_prior

    usual = PriorSettings()
    for name in ("width", "blocks", "families"):
        others[f"--{name}"] = getattr(settings, name) != getattr(usual, name)
    if given := [name for name, value in others.items() if value]:
        raise TytoError(f"--from-any keeps the network that all arrays share: leave {', '.join(given)} out")
    names = ("scenes", "frames", "epochs", "rate", "calm", "seed")
    tuned = tune_prior(array, TuneSettings(**{name: getattr(settings, name) for name in names}), **how)
    if as_json:
        print_json(tuned.to_dict())
    else:
        out.print(comparison(tuned.judged, "any: the network as all share it; tuned: for this array"))
    gain, (low, high) = tuned.gain.points, tuned.gain.interval
    say(f"on the scenes to compare on, tuning gained {gain:+.1f} points of ACC ({low:+.1f} to {high:+.1f})")
    if tuned.written:
        say(f"the tuned prior, {tuned.path.stat().st_size / 1e3:.0f} kB, written to {tuned.path}")
    else:
        say(
            "that may be chance, so nothing was written: the array keeps the network that all share (--force)"
        )


def _command(array: str, settings: PriorSettings, start: str | None, speech: bool, left_out: bool) -> str:
    """What brings a prior again, without where things lie on this machine."""
    from tytoalba.learning.prior.make import PriorSettings

    usual, parts = PriorSettings(), ["tyto", "prior", array]
    for name in ("scenes", "frames", "width", "blocks", "epochs", "rate", "calm", "seed"):
        value = getattr(settings, name)
        if value != getattr(usual, name):
            parts += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    if settings.families != usual.families:
        parts += ["--families", ",".join(settings.families)]
    parts += ["--start", Path(start).name] if start else []
    parts += ["--speech", "SPEECH"] if speech else []
    return " ".join([*parts, *(["--leave-one-out"] if left_out else []), "--ship"])


def _table(title: str, judged: dict[str, list[Judgement]]) -> Any:
    from rich.table import Table

    table = Table(title=title, caption="ACC in % (within 5 degrees) / MAE in degrees")
    table.add_column("acoustics")
    table.add_column("sources", justify="right")
    for who in ("SRP-PHAT", "prior"):
        table.add_column(who, justify="right")
    for name, rows in judged.items():
        for n in sorted({row.n_sources for row in rows}):
            cells = [f"{row.acc:.1f} / {row.mae:.1f}" for row in rows if row.n_sources == n]
            table.add_row(name, str(n), *cells)
    return table
