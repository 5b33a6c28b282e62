"""`tyto teaching`: what five seconds of teaching change, there and elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tytoalba.cli.console import out, print_json, progress_bar, write_json
from tytoalba.errors import TytoError


def teaching(
    array: Annotated[
        str, typer.Argument(help="Built-in array, or a TOML file; it needs a prior.")
    ] = "pepper",
    homes: Annotated[int, typer.Option(help="Devices as built, each in a room of its own.")] = 4,
    directions: Annotated[int, typer.Option(help="Around each device, taught one at a time.")] = 12,
    seconds: Annotated[float, typer.Option(help="Of teaching, and of asking, at each direction.")] = 5.0,
    n_features: Annotated[int, typer.Option("--features", help="Random features of the learner.")] = 2000,
    alpha: Annotated[float, typer.Option(help="Larger: the prior is believed longer.")] = 0.3,
    simulated: Annotated[int, typer.Option(help="How often each simulated frame of the prior counts.")] = 2,
    speech: Annotated[
        Path | None, typer.Option(help="Folder of real speech, one file a speaker; else a synthetic voice.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of homes, voices and random features.")] = 0,
    results: Annotated[Path | None, typer.Option(help="Write the changes to this file as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output.")] = False,
) -> None:
    """Teach the learner one direction for a few seconds in simulated homes; ask it about all directions.

    Examples:

      tyto teaching

      tyto teaching respeaker-usb-4 --homes 8 --seconds 2 --speech ~/speech
    """
    from tytoalba.bench.lessons import summary, teach_everywhere
    from tytoalba.data.simulation.voice import choose_voices
    from tytoalba.signal.array import load_array

    if (
        homes < 1
        or directions < 2
        or not 0.5 <= seconds <= 60
        or n_features < 1
        or not alpha > 0
        or min(seed, simulated) < 0
    ):
        raise TytoError(
            "--homes must be at least 1, --directions at least 2, --seconds from 0.5 to 60, --features at "
            "least 1, --alpha positive, --simulated and --seed not negative"
        )
    if results and results.is_dir():
        raise TytoError(f"{results} is a directory, not a file to write")
    with progress_bar("lessons") as steps:
        changes = teach_everywhere(
            load_array(array),
            choose_voices(speech),
            n_homes=homes,
            n_directions=directions,
            seconds=seconds,
            n_features=n_features,
            alpha=alpha,
            simulated=simulated,
            seed=seed,
            on_progress=steps,
        )
    told: dict[str, Any] = {"array": array, "seconds": seconds, "homes": homes, **summary(changes)}
    if results:
        write_json(told, results)
    if as_json:
        print_json(told)
        return
    out.print(
        f"{seconds:g} s of teaching at a direction, {len(changes)} lessons: accuracy there "
        f"{told['before']:.1f} -> {told['after']:.1f} %, elsewhere {told['others_before']:.1f} -> "
        f"{told['others_after']:.1f} %",
        soft_wrap=True,
    )
    for row in told["by_distance"]:
        out.print(
            f"  {row['degrees']:3.0f} degrees away: {row['change']:+.2f} points ({row['n']} directions)"
        )
