"""`tyto score`: how well a method finds the sources of a labelled data set."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column

from tytoalba.cli.console import make_table, out, parse_band, print_json, progress_bar, say
from tytoalba.cli.options import AsJson, IdentityFile, Plot, Processes, Unsigned
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.bench.score import Outcome, Score
    from tytoalba.signal.metrics import Interval

HEADS = ("method", "N", "frames", "MAE (degrees)", "ACC (%)", "ACC@10", "ACC@20", "f/b")
LEGEND = (
    "N: sources at a time. MAE, and ACC (error within 5 degrees), with 95 % intervals over recordings. "
    "ACC@10, ACC@20: within 10 and 20 degrees, in %. f/b: front and back mixed up, in %."
)
TRUST = ("model", "N", "ECE", "ACC of the surer half (%)")


def score(
    data: Annotated[Path, typer.Argument(help="Folder of a data set: SSLR, or what `tyto simulate` wrote.")],
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="srp, music, prior; repeat for several.")
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", "-M", help="A localizer of your own, or a model; repeat for several."),
    ] = None,
    part: Annotated[
        str, typer.Option(help="Only parts whose name begins with this; test also takes human.")
    ] = "test",
    band: Annotated[str, typer.Option(help="Frequencies to use, LOW-HIGH in Hz, or full.")] = "100-8000",
    json: AsJson = False,
    plot: Plot = None,
    reliability: Annotated[
        Path | None, typer.Option(help="Draw how often answers of each probability are right.")
    ] = None,
    unsigned: Unsigned = False,
    identity: IdentityFile = None,
    processes: Processes = 0,
) -> None:
    """Measure methods and models on labelled recordings: MAE in degrees, ACC (error within 5 degrees) in %.

    Intervals are 95 %, by resampling whole recordings: frames of one recording are not independent.
    Models give probabilities. ECE is how far these are from how often the answers are right (0 is best);
    beside it stands the ACC of the surer half of the answers.

    Examples:

      tyto score home -m srp -m prior --plot errors.png

      tyto score home -m srp --model kitchen.tyto --reliability sure.png
    """
    from tytoalba.bench.plots import check_picture, plot_errors, plot_reliability, save_figure
    from tytoalba.bench.score import decisions, recordings_of, score_recordings
    from tytoalba.cli.keys import keys_at_hand
    from tytoalba.localizer.store import read

    models = model or []
    methods = method or ([] if models else ["srp"])
    for picture in filter(None, (plot, reliability)):
        check_picture(picture)
    if reliability and len(models) != 1:
        raise TytoError("--reliability draws how sure one --model is: give one")
    if len({*methods, *(path.name for path in models)}) < len(methods) + len(models):
        raise TytoError("methods and models need different names: rename files")
    keys = keys_at_hand(identity)
    with progress_bar("recordings") as steps:
        recordings = recordings_of(data, part, keys)
        found = score_recordings(
            recordings,
            methods,
            {path.name: read(path, keys, unsigned) for path in models},
            band=parse_band(band, recordings[0].array.sample_rate),
            processes=processes,
            on_progress=lambda name, done, total: steps(done, total, name),
        )
    _print(found, {"data": data.name, "part": part, "band": band}, json)
    alone = {name: outcomes[1] for name, outcomes in found.items() if 1 in outcomes}
    if plot is not None and alone:
        save_figure(plot_errors(alone, f"{data.name}, one source"), plot)
        say(f"drawn: {plot}")
    if reliability is not None:
        name = models[0].name
        save_figure(plot_reliability(*decisions(found[name]), f"{name}, {data.name}"), reliability)
        say(f"drawn: {reliability}")


def _print(found: dict[str, dict[int, Outcome]], about: dict[str, str], as_json: bool) -> None:
    from tytoalba.bench.score import overall, score

    scores = {name: [score(outcome) for outcome in outcomes.values()] for name, outcomes in found.items()}
    if as_json:
        rows = [{"method": name, **_as_json(row)} for name, own in scores.items() for row in own]
        print_json({**about, "rows": rows})
        return
    table = make_table(HEADS[0], *(Column(head, justify="right") for head in HEADS[1:]))
    table.padding = (0, 0, 0, 0)
    trust = make_table(*TRUST)
    for name, own in scores.items():
        for row in own:
            table.add_row(name, *_cells(row))
            if not math.isnan(row.surer_half):
                error, half = f"{row.calibration_error:.3f}", f"{row.surer_half:.1f}"
                trust.add_row(name, str(row.n_sources), error, half)
        mae, acc = overall(own)
        n_frames = str(sum(row.n_frames for row in own))
        table.add_row(name, "all", n_frames, f"{mae:.2f}", f"{acc:.1f}", end_section=True)
    out.print(table)
    out.print(LEGEND)
    if trust.rows:
        out.print(trust)


def _cells(row: Score) -> list[str]:
    confused = "" if math.isnan(row.front_back) else f"{row.front_back:.1f}"
    return [
        str(row.n_sources),
        str(row.n_frames),
        _with_interval(row.mae, 2),
        _with_interval(row.acc, 1),
        f"{row.acc_at[10.0]:.1f}",
        f"{row.acc_at[20.0]:.1f}",
        confused,
    ]


def _with_interval(found: Interval, digits: int) -> str:
    """Value and interval, if there is one: a single recording has none."""
    value, low, high = (f"{number:.{digits}f}" for number in (found.value, found.low, found.high))
    return value if math.isnan(found.low) else f"{value} [{low}, {high}]"


def _as_json(row: Score) -> dict[str, object]:
    def number(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    return {
        "n_sources": row.n_sources,
        "n_frames": row.n_frames,
        "mae": number(row.mae.value),
        "mae_interval": [number(row.mae.low), number(row.mae.high)],
        "acc": number(row.acc.value),
        "acc_interval": [number(row.acc.low), number(row.acc.high)],
        "median": number(row.median),
        "acc_at": {f"{tolerance:g}": number(share) for tolerance, share in row.acc_at.items()},
        "front_back": number(row.front_back),
        "calibration_error": number(row.calibration_error),
        "surer_half": number(row.surer_half),
    }
