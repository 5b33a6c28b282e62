"""`tyto simulate`: a realistic data set where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.console import parse_band, progress_bar, say
from tytoalba.cli.options import Processes
from tytoalba.texts.printing import plural


def simulate(
    output: Annotated[Path, typer.Argument(help="Folder to write to; must be new or empty.")],
    preset: Annotated[str, typer.Option(help="quick, twin (of SSLR) or hard.")] = "quick",
    array: Annotated[
        str | None,
        typer.Option("--array", "-a", help="Built-in array or TOML file; default: the preset's (pepper)."),
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Write GCC-PHAT features, one file per part, and no sound.")
    ] = False,
    layout: Annotated[
        str, typer.Option(help="How files are laid out: folder, sslr (four microphones at 48 kHz), features.")
    ] = "folder",
    speech: Annotated[
        Path | None,
        typer.Option(help="Folder of real speech, one file per speaker; default: a synthetic voice."),
    ] = None,
    band: Annotated[
        list[str] | None, typer.Option(help="With --features: LOW-HIGH in Hz; repeat for several bands.")
    ] = None,
    size: Annotated[float, typer.Option(help="Factor on the number of recordings of the preset.")] = 1.0,
    moving: Annotated[
        float, typer.Option(help="Talkers walk around the array, at most this many degrees per second.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of all that is random; the same gives the same data.")] = 0,
    processes: Processes = 0,
) -> None:
    """Simulate rooms, talkers and noise for an array: labelled recordings, or features directly.

    The sound has reverberation, directional microphones and talkers, diffuse noise, one or two talkers,
    unseen rooms and speakers in each part.

    Examples:

      tyto simulate out/quick

      tyto simulate out/twin --preset twin --features --band 100-8000 --speech ~/speech
    """
    from tytoalba.data.simulation.export import write_simulation
    from tytoalba.data.simulation.recordings import Simulation

    simulation = Simulation.of_preset(preset, array, size=size, moving=moving, speech=speech, seed=seed)
    bands = [parse_band(text, simulation.array.sample_rate) for text in band or []]
    recipe = simulation.preset
    with progress_bar(f"{recipe.name} for {simulation.array.name}") as steps:
        n_recordings = write_simulation(
            simulation,
            output,
            "features" if features else layout,
            bands,
            processes=processes,
            on_progress=steps,
        )
    say(f"{plural(n_recordings, 'recording')} of {recipe.seconds:g} s written to {output}")
