"""`tyto devices`: the sound cards of this machine, and what each is good for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Column

from tytoalba.cli.console import make_table, note, out, print_json
from tytoalba.cli.options import AsJson

CAPTION = "kHz: rates at which all channels are recorded; *: what the system takes if none is named."


def devices(
    array: Annotated[
        str | None,
        typer.Option(
            "--array", "-a", help="Built-in array or TOML file to judge for; default: all built-in ones."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """List the sound cards that record, and say which array each fits."""
    from tytoalba.live.inputs.devices import held_cards, judge, list_devices
    from tytoalba.signal.array import load_array

    wanted = None if array is None else load_array(array)
    found = list_devices()
    verdicts = [judge(one, found, wanted) for one in found]
    if json:
        print_json(
            [
                asdict(one) | {"is_direct": one.is_direct, "fits": verdict.arrays, "verdict": verdict.text}
                for one, verdict in zip(found, verdicts, strict=True)
            ]
        )
        return
    if found:
        right = [Column(head, justify="right") for head in ("channels", "kHz")]
        table = make_table(Column("number", justify="right"), "sound card", *right, caption=CAPTION)
        for one, verdict in zip(found, verdicts, strict=True):
            mark = "*" if one.is_default else ""
            rates = " ".join(f"{rate / 1000:g}" for rate in one.rates) if one.is_direct else "any"
            channels = str(one.n_channels) if one.is_direct else "any"
            name = f"{one.name}, {one.host_api}\n{verdict.text}"
            table.add_row(f"{one.number}{mark}", name, channels, rates or "-")
        out.print(table)
    else:
        note("no sound card with an input was found; is it plugged in, and may you use it (group audio)?")
    for held in held_cards(found):
        note(f"another program has {held}, so it is not listed; end it, or try pasuspender -- tyto devices")
