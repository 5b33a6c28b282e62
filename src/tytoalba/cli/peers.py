"""`tyto bench peers`: other people's localizers beside ours, on the same recordings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column

from tytoalba.cli.console import make_table, out, parse_band, print_json, progress_bar, write_json
from tytoalba.cli.options import AsJson, IdentityFile, Processes, Results
from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from tytoalba.bench.peers import PeerScore

LEGEND = (
    "N: sources at a time. ACC: sources found within 5 degrees, in % of all, with 95 % intervals over "
    "recordings; @10: within 10. Answered: sources with an azimuth, in %. MAE: degrees, over frames "
    "answered in full."
)


def peers(
    data: Annotated[
        Path, typer.Option(help="Folder of labelled recordings: your own, SSLR, or from `tyto simulate`.")
    ],
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME=COMMAND",
            help="A program that reads {wav} and prints lines: seconds, then azimuths; may be repeated.",
        ),
    ] = None,
    odas: Annotated[
        str | None, typer.Option(metavar="BINARY", help="ODAS's localizer and tracker: path of odaslive.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Ours: srp, music, prior, separated by commas.")
    ] = "srp,music,prior",
    part: Annotated[
        str, typer.Option(help="Only parts whose name begins with this; test also takes human.")
    ] = "test",
    band: Annotated[str, typer.Option(help="Frequencies of ours, LOW-HIGH in Hz, or full.")] = "100-8000",
    processes: Processes = 0,
    results: Results = None,
    identity: IdentityFile = None,
    json: AsJson = False,
) -> None:
    """Measure other people's localizers beside ours, on the same frames of your recordings.

    A peer is your own copy of any program. {wav} in its command becomes the recording, {array} the array's
    TOML file, {sources} the most sources at a time. It prints a line per frame: seconds, then azimuths in our
    convention (0 front, 90 left), strongest first. examples/peer_pyroomacoustics.py is such a program. While
    it runs, the recording, a sealed one too, is a plain file in a temporary folder.

    Examples:

      tyto bench peers --data home --odas ~/odas/build/bin/odaslive

      tyto bench peers --data home --peer 'theirs=python my_hook.py {wav} {array} {sources}'
    """
    from tytoalba.bench.peers import Answer, Peer, measure_peers, odas_peers
    from tytoalba.bench.score import recordings_of
    from tytoalba.cli.keys import keys_at_hand

    programs: dict[str, Answer] = odas_peers(odas) if odas else {}
    for text in peer or []:
        name, equals, command = text.partition("=")
        if not equals or not name.strip():
            raise TytoError(f"a peer is NAME=COMMAND, such as 'theirs=./hook {{wav}}'; got {text[:80]!r}")
        if name.strip() in programs:
            raise TytoError(f"two peers are called {name.strip()!r}: give one another name")
        programs[name.strip()] = Peer.of(command)
    if not programs:
        raise TytoError("nobody to measure beside ours: give --odas BINARY or --peer NAME=COMMAND")
    with progress_bar("recordings") as steps:
        recordings = recordings_of(data, part, keys_at_hand(identity))
        rows = measure_peers(
            recordings,
            programs,
            [name for name in methods.split(",") if name],
            band=parse_band(band, recordings[0].array.sample_rate),
            processes=processes,
            on_progress=lambda name, done, total: steps(done, total, name),
        )
    measured: dict[str, Any] = {
        "data": data.name,
        "part": part,
        "array": recordings[0].array.name,
        "recordings": len(recordings),
        "rows": [_as_json(row) for row in rows],
    }
    if results:
        write_json(measured, results)
    if json:
        print_json(measured)
        return
    heads = ("N", "frames", "ACC (%)", "@10", "answered", "MAE")
    table = make_table("method", *(Column(head, justify="right", no_wrap=True) for head in heads))
    table.padding = (0, 1, 0, 0)
    for row in rows:
        table.add_row(row.name, str(row.n_sources), str(row.n_frames), *_cells(row))
    out.print(table)
    out.print(LEGEND)


def _cells(row: PeerScore) -> list[str]:
    acc = f"{row.acc.value:.1f}"
    if not math.isnan(row.acc.low):
        acc += f" [{row.acc.low:.1f}, {row.acc.high:.1f}]"
    mae = "" if math.isnan(row.mae) else f"{row.mae:.1f}"
    return [acc, f"{row.acc_10:.1f}", f"{row.answered:.1f}", mae]


def _as_json(row: PeerScore) -> dict[str, Any]:
    def number(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    return {
        "name": row.name,
        "n_sources": row.n_sources,
        "n_frames": row.n_frames,
        "acc": number(row.acc.value),
        "acc_interval": [number(row.acc.low), number(row.acc.high)],
        "acc_10": number(row.acc_10),
        "answered": number(row.answered),
        "mae": number(row.mae),
    }
