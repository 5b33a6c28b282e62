"""`tyto prior`: what an array hears, learned from simulations before anyone uses it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tytoalba import __version__
from tytoalba.cli.console import choose_device, err, out, print_json, progress_bar, write_json
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.data.features import FeatureSet
    from tytoalba.data.simulation.stems import Stems
    from tytoalba.data.simulation.voice import Voices
    from tytoalba.learning.prior.make import Judgement
    from tytoalba.signal.array import MicArray

    Kept = TypeVar("Kept", FeatureSet, Stems)


def prior(
    array: Annotated[str, typer.Argument(help="Built-in array, or a TOML file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; else where tyto looks for priors by itself."),
    ] = None,
    scenes: Annotated[int, typer.Option(help="Simulated rooms, each with four places for talkers.")] = 1000,
    frames: Annotated[int, typer.Option(help="Frames mixed in them, others for every second epoch.")] = 40000,
    width: Annotated[int, typer.Option(help="Channels of the network; 32 is quick, 96 the best.")] = 64,
    blocks: Annotated[int, typer.Option(help="How deep the network is; with --start it may grow.")] = 4,
    epochs: Annotated[int, typer.Option(help="How often so many frames are learned from.")] = 8,
    start: Annotated[
        str | None,
        typer.Option(
            help="Prior to go on from, as wide: a file, or an array whose prior comes with tyto. It may be "
            "of other microphones; with --epochs 0 it is only calibrated, for these or anew."
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Learning rate to begin with; else 0.002, with --start 0.0005.")
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
        typer.Option(help="Folder of real speech, one file a speaker, beside the synthetic voice."),
    ] = None,
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Also judge the recipe on acoustics it was not taught.")
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for the simulated scenes: with it another width simulates nothing anew."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of scenes, mixes, initial weights and the order of frames.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "auto",
    processes: Annotated[int, typer.Option("--processes", "-j", help="0: one a core.")] = 0,
    results: Annotated[Path | None, typer.Option(help="Write the judgement to this file as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Judgement as JSON on standard output.")] = False,
) -> None:
    """Make the prior of an array: simulate, mix, train, calibrate, judge.

    It takes minutes on a GPU. On a CPU take fewer --scenes and --frames, such as 400 and 10000, and --start
    from the prior of another array, or a smaller --width, such as 32. The learner `tyto` finds it from then
    on; arrays that come with tyto have one already.

    Examples:

      tyto prior my-array.toml

      tyto prior my-array.toml --start respeaker-usb-4 --scenes 400 --frames 10000

      tyto prior pepper --scenes 4000 --frames 320000 --width 96 --epochs 84 --speech ~/speech

      tyto prior pepper --start pepper --seed 1 --frames 320000 --speech ~/speech
    """
    from tytoalba.data.features import FeatureSet
    from tytoalba.data.simulation.acoustics import FAMILIES
    from tytoalba.data.simulation.mixer import Mixer
    from tytoalba.data.simulation.stems import Stems, gather_stems
    from tytoalba.data.simulation.voice import SyntheticVoices, choose_voices
    from tytoalba.learning.prior.make import (
        FURTHER,
        RECIPE,
        TURNS,
        by_family,
        calibrated,
        judge,
        school,
        simulate,
    )
    from tytoalba.learning.prior.make import leave_one_out as judge_recipe
    from tytoalba.learning.prior.prior import Prior, prior_gcc
    from tytoalba.learning.prior.registry import prior_folder, same_places, shipped_priors
    from tytoalba.signal.array import load_array

    mics = load_array(array)
    turns = tuple(families.replace(" ", "").split(",")) if families else TURNS
    if unknown := [name for name in turns if name not in FAMILIES]:
        raise TytoError(f"no acoustics called {unknown[0]!r}; known: {', '.join(FAMILIES)}")
    if scenes < 10 * len(turns) or min(frames, width, blocks) < 1 or min(seed, processes, epochs) < 0:
        raise TytoError(
            f"--scenes must be at least {10 * len(turns)}, --frames, --width and --blocks at least 1, "
            "--epochs, --seed and --processes not negative"
        )
    if not epochs and not start:
        raise TytoError("--epochs 0 learns nothing: that needs --start")
    if rate is not None and not 0 < rate < math.inf:
        raise TytoError(f"--rate must be a positive number, got {rate:g}")
    begun = Prior.load(shipped_priors().get(start, Path(start))) if start else None
    at_home = begun is not None and same_places(begun.array, mics)
    if begun and not at_home:
        begun = begun.moved(mics)
    if begun and leave_one_out:
        raise TytoError("--leave-one-out judges priors that start anew, --start knows all acoustics already")
    if leave_one_out and len(set(turns)) < 2:
        raise TytoError("--leave-one-out needs at least two families of acoustics")
    if output is None and Path(mics.name).name != mics.name:
        raise TytoError(f"an array called {mics.name!r} gives no name for a file; choose one with -o")
    path = output or prior_folder() / f"{mics.name}.safetensors"
    for file in (path, results):
        if file and file.is_dir():
            raise TytoError(f"{file} is a directory, not a file to write")
    if cache:
        if cache.exists() and not cache.is_dir():
            raise TytoError(f"{cache} is a file, not a folder to keep scenes in")
        cache.mkdir(parents=True, exist_ok=True)
    synthetic = SyntheticVoices()
    real = choose_voices(speech)
    voices = (real, synthetic) if speech else (synthetic,)
    where = choose_device(device)
    _refuse_too_many(frames, prior_gcc(mics).n_features, where)
    recipe = FURTHER if begun else RECIPE
    how: dict[str, Any] = {
        "width": width,
        "n_blocks": blocks,
        "recipe": replace(recipe, epochs=epochs, lr=rate or recipe.lr),
        "seed": seed,
    }
    few = max(100, min(400, scenes // 8))
    simulated = partial(_simulated, mics, turns, processes, cache)
    if begun and at_home and not epochs:  # nothing is learned: all stays but how far it is trusted
        made = replace(begun, array=mics)
    else:
        lessons = simulated(Stems, gather_stems, "rooms to mix in", voices, scenes, "train", 3 * seed, calm)
        with progress_bar("epochs") as steps:
            mixer = Mixer(lessons, prior_gcc(mics), seed=seed, device=where)
            made = school(mixer, frames, start=begun, on_progress=steps, **how)
            del mixer  # gigabytes of a GPU
        made.about.update(
            families=list(turns),
            n_scenes=scenes,
            calm=calm,
            speech="real and synthetic" if speech else "synthetic",
        )
    n_held = max(200, few)  # fewer calibrate badly
    held = simulated(FeatureSet, simulate, "scenes to calibrate on", (real,), n_held, "valid", 3 * seed + 1)
    made = calibrated(made, held, where)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    strange = simulated(FeatureSet, simulate, "scenes to judge on", (real,), 3 * few, "test", 3 * seed + 2)
    judged = {name: judge(made, part, where) for name, part in by_family(strange, turns).items()}
    told: dict[str, Any] = {"array": mics.name, "about": made.about, "judged": _plain(judged)}
    if leave_one_out:
        with progress_bar("families left out") as steps:
            hold, meet = by_family(held, turns), by_family(strange, turns)
            left = judge_recipe(lessons, frames, hold, meet, device=where, on_progress=steps, **how)
        told["left_out"] = _plain(left)
    if results:
        write_json(told, results)
    if as_json:
        print_json(told)
    else:
        out.print(_table("Acoustics it was taught, other scenes and speakers", judged))
        if leave_one_out:
            out.print(_table("Acoustics that each was not taught", left))
    err.print(f"{made.n_weights} weights, {path.stat().st_size / 1e6:.1f} MB, written to {path}")


def _refuse_too_many(n_frames: int, n_features: int, device: str) -> None:
    """Say so before minutes of simulation, not after."""
    import torch

    try:
        torch.empty(n_frames, n_features, device=device)
    except RuntimeError:
        size = 4e-9 * n_frames * n_features
        raise TytoError(f"{n_frames} frames take {size:.0f} GB, more than there is: fewer --frames") from None


def _simulated(
    array: MicArray,
    turns: tuple[str, ...],
    processes: int,
    cache: Path | None,
    kind: type[Kept],
    make: Callable[..., Kept],
    what: str,
    voices: tuple[Voices, ...],
    n: int,
    speakers: str,
    seed: int,
    calm: float = 0.0,
) -> Kept:
    """What some scenes give; with a cache from there, if the same was simulated before."""
    from tytoalba.learning.prior.make import scenes_of

    spoken = [(voice, voice.n_speakers) for voice in voices]
    told = (__version__, kind.__name__, array.to_toml(), turns, n, speakers, seed, calm, spoken)
    name = f"{speakers}-{n}-{sha256(repr(told).encode()).hexdigest()[:16]}.safetensors"
    if cache and (cache / name).exists():
        return kind.load(cache / name)
    with progress_bar(what) as steps:
        scenes = scenes_of(array, voices, families=turns, speakers=speakers, seed=seed, calm=calm)
        made = make(scenes, n, processes=processes, on_progress=steps)
    if cache:
        made.save(cache / name)
    return made


def _plain(judged: dict[str, list[Judgement]]) -> dict[str, Any]:
    return {name: [asdict(row) for row in rows] for name, rows in judged.items()}


def _table(title: str, judged: dict[str, list[Judgement]]) -> Any:
    from rich.table import Table

    table = Table(title=title, caption="ACC in % (within 5 degrees) / MAE in degrees")
    table.add_column("acoustics")
    table.add_column("sources", justify="right")
    for who in ("SRP-PHAT", "prior", "both, by confidence"):
        table.add_column(who, justify="right")
    for name, rows in judged.items():
        for n in sorted({row.n_sources for row in rows}):
            cells = [f"{row.acc:.1f} / {row.mae:.1f}" for row in rows if row.n_sources == n]
            table.add_row(name, str(n), *cells)
    return table
