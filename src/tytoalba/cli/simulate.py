"""`tyto simulate`: a realistic data set where there is none."""

from __future__ import annotations

import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tytoalba.cli.console import err, parse_band, progress_bar
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.data.simulation.recordings import Simulation


def simulate(
    output: Annotated[Path, typer.Argument(help="Folder to write to; must be new or empty.")],
    preset: Annotated[str, typer.Option(help="quick, twin (of SSLR) or hard.")] = "quick",
    array: Annotated[str, typer.Option("--array", "-a", help="Built-in array, or a TOML file.")] = "pepper",
    features: Annotated[
        bool, typer.Option("--features", help="Write GCC-PHAT features, one file a part, and no sound.")
    ] = False,
    layout: Annotated[
        str,
        typer.Option(help="How sound and labels are laid out: sslr (four microphones at 48 kHz) or folder."),
    ] = "folder",
    speech: Annotated[
        Path | None, typer.Option(help="Folder of real speech, one file a speaker; else a synthetic voice.")
    ] = None,
    band: Annotated[
        list[str] | None, typer.Option(help="With --features: LOW-HIGH in Hz; repeat for several bands.")
    ] = None,
    size: Annotated[float, typer.Option(help="Times as many recordings as the preset has.")] = 1.0,
    moving: Annotated[
        float, typer.Option(help="Talkers walk around the array, degrees a second at most.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data, to the bit.")] = 0,
    processes: Annotated[int, typer.Option("--processes", "-j", help="0: one a core.")] = 0,
) -> None:
    """Simulate rooms, talkers and noise for an array: labelled recordings, or features directly.

    The sound has reverberation, directional microphones and talkers, diffuse noise, one or two talkers,
    unseen rooms and speakers in each part.

    Examples:

      tyto simulate out/quick

      tyto simulate out/twin --preset twin --features --band 100-8000 --speech ~/speech
    """
    from dataclasses import replace

    from tytoalba.data.simulation.presets import PRESETS
    from tytoalba.data.simulation.recordings import Simulation
    from tytoalba.data.simulation.voice import choose_voices
    from tytoalba.signal.array import load_array

    if preset not in PRESETS:
        raise TytoError(f"no preset called {preset!r}; known: {', '.join(PRESETS)}")
    if layout not in ("sslr", "folder"):
        raise TytoError(f"no layout called {layout!r}; known: sslr, folder (or --features)")
    if not (0 < size < inf and 0 <= moving < inf and processes >= 0 and seed >= 0):
        raise TytoError("--size must be positive; --moving, --processes and --seed cannot be negative")
    if band and not features:
        raise TytoError("--band belongs to --features: sound has all its frequencies")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise TytoError(f"{output} is not empty; choose a new folder, so that nothing is mixed or lost")
    recipe = replace(PRESETS[preset].scaled(size), speed=moving)
    simulation = Simulation(recipe, load_array(array), choose_voices(speech), seed)
    bands = [parse_band(text, simulation.array.sample_rate) for text in band or []]
    _announce(simulation, processes)
    output.mkdir(parents=True, exist_ok=True)
    if features:
        _write_features(simulation, output, bands, processes)
    else:
        _write_sound(simulation, output, layout, processes)
    err.print(f"written to {output}")


def _announce(simulation: Simulation, processes: int) -> None:
    """Say what will be made and how long it takes, by timing one recording."""
    from tytoalba.storage.parallel import available_cores

    simulation.recording((0, 0))  # fills the caches, as the first recording of each process does
    start = time.perf_counter()
    made = simulation.recording((0, 0))
    each = time.perf_counter() - start
    n = simulation.preset.n_recordings
    workers = min(processes or available_cores(), n)
    seconds = 1.3 * each * n / workers + (3.0 if workers > 1 else 0.0)  # files; processes start
    frames = n * len(made.frame_ids)
    spent = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    err.print(
        f"{simulation.preset.name}: {n} recordings of {simulation.preset.seconds:g} s, some {frames} frames, "
        f"for {simulation.array.name}; about {spent} on {workers} process{'es' if workers > 1 else ''}"
    )


def _write_features(
    simulation: Simulation, output: Path, bands: list[tuple[float, float]], processes: int
) -> None:
    from tytoalba.data.simulation.features import simulate_features
    from tytoalba.signal.gcc import FULL_BAND, GccPhat

    chosen = bands[0] if len(bands) == 1 else bands or FULL_BAND
    gcc = GccPhat.for_array(simulation.array, simulation.array.frame_length, chosen)
    for part in simulation.preset.parts:
        with progress_bar(part.name) as steps:
            made = simulate_features(simulation, part.name, gcc, processes=processes, on_progress=steps)
        made.save(output / f"{part.name}.safetensors")


def _write_sound(simulation: Simulation, output: Path, layout: str, processes: int) -> None:
    from tytoalba.data.simulation.export import write_folder, write_sslr

    write = {"sslr": write_sslr, "folder": write_folder}[layout]
    with progress_bar("recordings") as steps:
        write(simulation, output, processes=processes, on_progress=steps)
