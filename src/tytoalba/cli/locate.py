"""`tyto locate`: directions out of a recording."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from tytoalba.cli.console import chosen_array, err, note, out, parse_band, print_csv, print_json
from tytoalba.cli.options import ArrayOption, IdentityFile
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.localizer.stream import Located
    from tytoalba.signal.array import MicArray

DCASE_HOP = 0.1
"""Seconds between two lines of the DCASE format."""


def locate(
    files: Annotated[
        list[str],
        typer.Argument(help="A recording, or one mono file a microphone in order; - reads a wav from stdin."),
    ],
    model: Annotated[
        Path | None, typer.Option("--model", "-M", help="A localizer of your own (`tyto new`), or a model.")
    ] = None,
    array: ArrayOption = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", help="Without a model: srp, music, or prior (from simulations)."),
    ] = None,
    sources: Annotated[str, typer.Option(help="How many sources to report, or auto.")] = "1",
    context: Annotated[
        int, typer.Option(help="With a model: frames on each side to hear together; 4 for what stands still.")
    ] = 0,
    at_least: Annotated[
        float, typer.Option(help="With a model: leave out what is right with a smaller chance; 0 to 1.")
    ] = 0.0,
    taught_only: Annotated[
        bool,
        typer.Option("--taught-only", help="With a state: leave out directions where nothing was taught."),
    ] = False,
    band: Annotated[
        str | None, typer.Option(help="Without a model: frequencies to listen to, LOW-HIGH in Hz, or full.")
    ] = None,
    silence: Annotated[
        float, typer.Option(help="Frames below this level (dB of full scale) are silent.")
    ] = -60.0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a frame, one a line.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="A comma-separated table.")] = False,
    dcase: Annotated[
        bool, typer.Option("--dcase", help="Lines as the DCASE challenge has them: every 100 ms.")
    ] = False,
    identity: IdentityFile = None,
    plot: Annotated[Path | None, typer.Option(help="Draw azimuth over time into this picture.")] = None,
) -> None:
    """Tell where the sound of a recording comes from, frame by frame (170 ms, every 85 ms).

    Azimuth is in degrees: 0 is the array's front, 90 its left. Any format that libsndfile reads, sealed or
    plain. Probability is the chance to be within 5 degrees: a prior and a model know it.

    Examples:

      tyto locate talk.wav --array pepper --plot talk.png

      tyto locate talk.wav --model kitchen.tyto --sources auto

      tyto locate talk.wav --model kitchen.tyto --taught-only --at-least 0.5

      tyto locate mic0.wav mic1.wav mic2.wav mic3.wav --array respeaker-4mic-hat --json
    """
    if json + csv + dcase > 1:
        raise TytoError("give one of --json, --csv and --dcase")
    source = files[0] if len(files) == 1 else files
    found = []
    from tytoalba.cli.keys import keys_at_hand

    keys = keys_at_hand(identity)
    if model is not None:
        if method or array or band:
            raise TytoError("a model has its own array and bands: leave out --array, --method and --band")
        mics, stream = _by_model(
            source,
            model,
            sources,
            context=context,
            silence_db=silence,
            at_least=at_least,
            taught_only=taught_only,
            keys=keys,
        )
    else:
        mics, stream = _by_method(
            source,
            array,
            method or "srp",
            sources,
            band,
            context=context,
            silence_db=silence,
            at_least=at_least,
            taught_only=taught_only,
            keys=keys,
        )
    for frame in stream:
        found.append(frame)
        if json:
            print_json({**asdict(frame), "time": round(frame.time, 4)})
    if dcase:
        for line in _dcase(found):
            print(line)
    if csv:
        rows = ((f"{f.time:.4f}", *row) for f in found for row in _columns(f))
        print_csv(("time", "azimuth", "score", "probability"), rows)
    if not (json or csv or dcase):
        table = Table("time (s)", "azimuth (degrees)", "score", "probability")
        nothing = "none" if at_least or taught_only or sources == "auto" else "silent"
        for frame in found:
            angles = ", ".join(f"{a:.0f}" for a in frame.azimuth) or nothing
            numbers = (", ".join(f"{c:.2f}" for c in each or ()) for each in (frame.score, frame.probability))
            table.add_row(f"{frame.time:.2f}", angles, *numbers)
        out.print(table)
    if mics.mirror_axis is not None:
        note(f"{mics.name} cannot tell {mics.ambiguities[0]}")
    if plot is not None:
        from tytoalba.bench.plots import plot_directions, save_figure

        by = model.name if model else method or "srp"
        save_figure(plot_directions(found, f"{Path(files[0]).name} ({mics.name}, {by})"), plot)
        err.print(f"drawn: {plot}", soft_wrap=True)


def _by_method(
    source: str | list[str], array: str | None, method: str, sources: str, band: str | None, **how: Any
) -> tuple[MicArray, Iterator[Located]]:
    from tytoalba.localizer.locate import METHODS
    from tytoalba.localizer.locate import locate as located

    if method not in METHODS:
        raise TytoError(f"no method called {method!r}; known: {', '.join(METHODS)}")
    mics = chosen_array(array, source)
    limits = None if band is None else parse_band(band, mics.sample_rate)
    n_sources = _sources(sources, mics.n_mics)
    return mics, located(source, mics, method, n_sources=n_sources, band=limits, **how)


def _by_model(
    source: str | list[str], model: Path, sources: str, **how: Any
) -> tuple[MicArray, Iterator[Located]]:
    from tytoalba.localizer.locate import locate as located
    from tytoalba.localizer.store import read

    if sources not in ("1", "2", "auto"):
        raise TytoError(f"--sources takes 1, 2 or auto with a model, got {sources!r}")
    owl = read(model, how["keys"])
    n_sources = _sources(sources, 3)
    return owl.array, located(source, owl, n_sources=n_sources, **how)


def _columns(found: Located) -> Iterator[tuple[Any, ...]]:
    chances = found.probability or ("",) * found.n_sources
    return zip(found.azimuth, found.score, chances, strict=True)


def _dcase(found: Sequence[Located]) -> Iterator[str]:
    """Frame of 100 ms, class 0, number of the source, azimuth -180..179 to the left, elevation 0."""
    if not found:
        return
    edges = [(before.time + after.time) / 2 for before, after in pairwise(found)]
    for number in range(int(found[-1].time / DCASE_HOP) + 1):
        nearest = found[bisect_left(edges, (number + 0.5) * DCASE_HOP)]
        for source, azimuth in enumerate(nearest.azimuth):
            yield f"{number},0,{source},{(round(azimuth) + 180) % 360 - 180},0"


def _sources(text: str, n_mics: int) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdigit() or not 1 <= int(text) < n_mics:
        raise TytoError(f"--sources takes auto or a number from 1 to {n_mics - 1}, got {text!r}")
    return int(text)
