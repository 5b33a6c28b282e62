"""`tyto locate`: directions out of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from tytoalba.cli.console import err, out, parse_band, print_csv, print_json
from tytoalba.errors import TytoError


def locate(
    files: Annotated[
        list[str],
        typer.Argument(help="A recording, or one mono file a microphone in order; - reads a wav from stdin."),
    ],
    array: Annotated[str, typer.Option("--array", "-a", help="Built-in array, or a TOML file.")] = "pepper",
    method: Annotated[
        str, typer.Option("--method", "-m", help="srp, music, or prior: learned from simulations.")
    ] = "srp",
    sources: Annotated[str, typer.Option(help="How many sources to report, or auto.")] = "1",
    band: Annotated[
        str, typer.Option(help="Frequencies to listen to, LOW-HIGH in Hz, or full.")
    ] = "100-8000",
    silence: Annotated[
        float, typer.Option(help="Frames below this level (dB of full scale) are silent.")
    ] = -60.0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a frame, one a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="A comma-separated table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw azimuth over time into this picture.")] = None,
) -> None:
    """Tell where the sound of a recording comes from, frame by frame (170 ms, every 85 ms).

    Azimuth is in degrees: 0 is the array's front, 90 its left. Any format that libsndfile reads.

    Examples:

      tyto locate talk.wav --array pepper --plot talk.png

      tyto locate mic0.wav mic1.wav mic2.wav mic3.wav --array respeaker-4mic-hat --json
    """
    from tytoalba.geometry import load_array
    from tytoalba.locating import METHODS
    from tytoalba.locating import locate as locate_frames

    if json and csv:
        raise TytoError("give --json or --csv, not both")
    if method not in METHODS:
        raise TytoError(f"no method called {method!r}; known: {', '.join(METHODS)}")
    mics = load_array(array)
    found = []
    stream = locate_frames(
        files[0] if len(files) == 1 else files,
        mics,
        method,
        n_sources=_sources(sources, mics.n_mics),
        band=parse_band(band, mics.sample_rate),
        silence_db=silence,
    )
    for frame in stream:
        found.append(frame)
        if json:
            row = {"time": round(frame.time, 4), "azimuth": frame.azimuth, "confidence": frame.confidence}
            print_json(row)
    if csv:
        rows = ((f.time, a, c) for f in found for a, c in zip(f.azimuth, f.confidence, strict=True))
        print_csv(("time", "azimuth", "confidence"), ((f"{t:.4f}", a, c) for t, a, c in rows))
    if not json and not csv:
        table = Table("time (s)", "azimuth (degrees)", "confidence")
        for frame in found:
            angles = ", ".join(f"{a:.0f}" for a in frame.azimuth) or "silent"
            table.add_row(f"{frame.time:.2f}", angles, ", ".join(f"{c:.2f}" for c in frame.confidence))
        out.print(table)
    if mics.mirror_axis is not None:
        err.print(f"[yellow]note:[/] {mics.name} cannot tell {mics.ambiguities[0]}")
    if plot is not None:
        from tytoalba.report import plot_directions, save_figure

        save_figure(plot_directions(found, f"{Path(files[0]).name} ({mics.name}, {method})"), plot)
        err.print(f"drawn: {plot}")


def _sources(text: str, n_mics: int) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdigit() or not 1 <= int(text) < n_mics:
        raise TytoError(f"--sources takes auto or a number from 1 to {n_mics - 1}, got {text!r}")
    return int(text)
