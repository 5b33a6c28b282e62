"""`tyto score`: how well a method finds the sources of a labelled data set."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tytoalba.cli.console import err, keys_from, out, parse_band, print_json, progress_bar
from tytoalba.cli.localizer import IdentityFile
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.bench.score import Outcome, Score

HEADS = ("method", "sources", "frames", "MAE (degrees)", "ACC (%)", "ACC@10", "ACC@20", "front/back (%)")
TRUST = ("model", "sources", "ECE", "ACC of the surer half (%)")


def score(
    data: Annotated[Path, typer.Argument(help="Folder of a data set: SSLR, or what tyto simulate wrote.")],
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="srp, music, prior; repeat for several.")
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", "-M", help="A localizer of your own, or a model; repeat for several."),
    ] = None,
    part: Annotated[
        str, typer.Option(help="Recordings of parts whose name begins so; test: test and human.")
    ] = "test",
    band: Annotated[
        str, typer.Option(help="Frequencies that methods listen to, LOW-HIGH in Hz, or full.")
    ] = "100-8000",
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw errors around the circle into this picture.")
    ] = None,
    reliability: Annotated[
        Path | None, typer.Option(help="Draw how often the model is right when it is how sure.")
    ] = None,
    identity: IdentityFile = None,
    processes: Annotated[int, typer.Option("--processes", "-j", help="0: one a core.")] = 0,
) -> None:
    """Measure methods and models on labelled recordings: MAE in degrees, ACC (error within 5 degrees) in %.

    Intervals are 95 %, by resampling whole recordings: frames of one recording are not independent.
    Models say how sure they are. ECE is how far that is from how often they are right (0 is best); beside it
    stands the ACC of the surer half of their answers.

    Examples:

      tyto score home -m srp -m prior --plot errors.png

      tyto score home -m srp --model kitchen.tyto --reliability sure.png
    """
    from tytoalba.bench.plots import check_picture, plot_errors, plot_reliability, save_figure
    from tytoalba.bench.score import decisions, overall, run_localizer, run_method
    from tytoalba.bench.score import score as score_outcome
    from tytoalba.data.datasets import open_dataset
    from tytoalba.localizer.locate import METHODS
    from tytoalba.localizer.store import read

    for picture in (plot, reliability):
        if picture is not None:
            check_picture(picture)
    models = model or []
    methods = method or ([] if models else ["srp"])
    if unknown := [name for name in methods if name not in METHODS]:
        raise TytoError(f"no method called {unknown[0]!r}; known: {', '.join(METHODS)}")
    if reliability and len(models) != 1:
        raise TytoError("--reliability draws how sure one --model is: give one")
    if len({*methods, *(path.name for path in models)}) < len(methods) + len(models):
        raise TytoError("methods and models need different names to be told apart: rename files")
    with keys_from(identity):
        owls = {path.name: read(path) for path in models}
        recordings = [r for r in open_dataset(data) if _belongs(r.subset, part)]
        if not recordings:
            raise TytoError(f"{data} has no part called {part!r}")
        hertz = parse_band(band, recordings[0].array.sample_rate)
        found: dict[str, dict[int, Outcome]] = {}
        for name in methods:
            with progress_bar(name) as steps:
                found[name] = run_method(recordings, name, band=hertz, processes=processes, on_progress=steps)
        for name, owl in owls.items():
            with progress_bar(name) as steps:
                found[name] = run_localizer(recordings, owl, on_progress=steps)
    table, trust = Table(*HEADS), Table(*TRUST)
    rows = []
    for name, outcomes in found.items():
        scores = [score_outcome(outcome) for outcome in outcomes.values()]
        if not scores:
            raise TytoError(f"{data} has no frame with one or two sources in {part!r}")
        for row in scores:
            table.add_row(name, *_cells(row))
            if not math.isnan(row.surer_half):
                trust.add_row(
                    name, str(row.n_sources), f"{row.calibration_error:.3f}", f"{row.surer_half:.1f}"
                )
            rows.append({"method": name, **_as_json(row)})
        mae, acc = overall(scores)
        table.add_row(
            name, "all", str(sum(s.n_frames for s in scores)), f"{mae:.2f}", f"{acc:.1f}", end_section=True
        )
    if json:
        print_json({"data": data.name, "part": part, "band": band, "rows": rows})
    else:
        out.print(table, *([trust] if trust.rows else []))
    alone = {name: outcomes[1] for name, outcomes in found.items() if 1 in outcomes}
    if plot is not None and alone:
        save_figure(plot_errors(alone, f"{data.name}, one source"), plot)
        err.print(f"drawn: {plot}")
    if reliability is not None:
        name = models[0].name
        save_figure(plot_reliability(*decisions(found[name]), f"{name}, {data.name}"), reliability)
        err.print(f"drawn: {reliability}")


def _belongs(subset: str, part: str) -> bool:
    """SSLR calls its parts lsp_train_*, lsp_test_* and human (a test part)."""
    return subset.removeprefix("lsp_").startswith(part) or (part == "test" and subset == "human")


def _cells(row: Score) -> list[str]:
    confused = "" if math.isnan(row.front_back) else f"{row.front_back:.1f}"
    return [
        str(row.n_sources),
        str(row.n_frames),
        f"{row.mae.value:.2f} [{row.mae.low:.2f}, {row.mae.high:.2f}]",
        f"{row.acc.value:.1f} [{row.acc.low:.1f}, {row.acc.high:.1f}]",
        f"{row.acc_at[10.0]:.1f}",
        f"{row.acc_at[20.0]:.1f}",
        confused,
    ]


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
