"""`tyto speed`: GCC-PHAT and SRP-PHAT side by side with their peers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from tytoalba.cli.console import err, out, print_json


def speed(json: Annotated[bool, typer.Option("--json", help="For machines.")] = False) -> None:
    """Measure GCC-PHAT and SRP-PHAT beside plain scipy and pyroomacoustics, on one thread, in one run.

    Look at the ratios: frames a second differ between machines and with what else they do.
    """
    from tytoalba.bench.speed import measure

    with err.status("measuring..."):
        rows = measure()
    if json:
        print_json([asdict(row) for row in rows])
        return
    table = Table("task", "implementation", "frames/s", "times the peer")
    for row in rows:
        table.add_row(row.task, row.name, f"{row.frames_per_second:.0f}", f"{row.ratio:.1f}")
    out.print(table)
    if not any(row.name == "pyroomacoustics" for row in rows):
        err.print("pyroomacoustics is not installed: pip install 'tytoalba[sim]' to compare SRP-PHAT with it")
