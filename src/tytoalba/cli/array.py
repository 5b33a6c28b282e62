"""`tyto array`: the built-in microphone arrays, and arrays of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column

from tytoalba.cli.console import make_table, out, print_json, say
from tytoalba.cli.options import AsJson, Command, Group, Plot
from tytoalba.texts.printing import shown, without_secrets

CAPTION = "mm: largest distance between two microphones. `tyto array show NAME` tells more of one."

app = typer.Typer(cls=Group, no_args_is_help=True, help="List microphone arrays, show one, import your own.")


@app.command("list", cls=Command)
def list_arrays(json: AsJson = False) -> None:
    """List the arrays that come with tytoalba."""
    from tytoalba.signal.array import builtin_arrays

    arrays = builtin_arrays()
    if json:
        print_json(
            [{"name": a.name, "n_mics": a.n_mics, "sample_rate": a.sample_rate} for a in arrays.values()]
        )
        return
    numbers = [Column(head, justify="right") for head in ("microphones", "Hz", "mm")]
    table = make_table("name", *numbers, "cannot tell", caption=CAPTION)
    for array in arrays.values():
        unsure = ", ".join(text.split(":")[0] for text in array.ambiguities)
        across = f"{1000 * array.aperture:.0f}"
        table.add_row(array.name, str(array.n_mics), str(array.sample_rate), across, unsure)
    out.print(table)


@app.command(cls=Command)
def show(
    name: Annotated[str, typer.Argument(help="Name of a built-in array, or a TOML file.")],
    plot: Plot = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print its file, to start your own from.")] = False,
    json: AsJson = False,
) -> None:
    """Show one array: where its microphones are, its channels, and what it cannot tell."""
    from tytoalba.signal.array import load_array

    if plot is not None:
        from tytoalba.bench.plots import check_picture, plot_array, save_figure

        check_picture(plot)
    array = load_array(name)
    if toml:
        print(without_secrets(array.to_toml()), end="")
    elif json:
        print_json(
            {
                "name": array.name,
                "positions": array.positions,
                "channels": array.channels,
                "sample_rate": array.sample_rate,
                "yaw": array.yaw,
                "pattern": array.pattern,
                "max_delay_samples": round(array.max_delay, 3),
                "ambiguities": array.ambiguities,
            }
        )
    else:
        out.print(shown(f"{array.name}  {array.description}"))
        table = make_table("microphone", "channel", "x front (mm)", "y left (mm)", "z up (mm)")
        for number, (xyz, channel) in enumerate(zip(array.positions, array.channels, strict=True)):
            table.add_row(str(number), str(channel), *(f"{1000 * value:.2f}" for value in xyz))
        out.print(table)
        out.print(_sketch(array.coordinates[:, :2].tolist()))
        out.print(
            f"{array.sample_rate} Hz, {array.n_pairs} pairs, largest delay {array.max_delay:.1f} samples, "
            f"features keep lags -{array.max_lag}..{array.max_lag}, yaw {array.yaw:g}"
        )
        for ambiguity in array.ambiguities:
            out.print(f"cannot tell {ambiguity}")
    if plot is not None:
        save_figure(plot_array(array), plot)
        say(f"drawn: {plot}")


@app.command("import", cls=Command)
def import_array(
    file: Annotated[Path, typer.Argument(help="An ODAS configuration (.cfg) or a TOML file to check.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="TOML file to write.")] = None,
) -> None:
    """Read the microphones of an ODAS configuration (or check a TOML file) and write an array file."""
    from tytoalba.signal.array import import_odas, load_array
    from tytoalba.storage.writing import write_whole

    array = load_array(file) if file.suffix == ".toml" else import_odas(file)
    if output is None:
        print(without_secrets(array.to_toml()), end="")
        return
    write_whole(output, array.to_toml().encode())
    say(f"{array.n_mics} microphones written to {output}; tyto array show {output} draws them")


def _sketch(points: list[list[float]], width: int = 37, height: int = 15) -> str:
    """The array from above in characters: front is up."""
    reach = max(max(abs(value) for value in point) for point in points) * 1.15
    cells = [[" "] * width for _ in range(height)]
    cells[height // 2][width // 2] = "+"
    for number, (x, y) in enumerate(points):
        row = round((1 - x / reach) / 2 * (height - 1))
        column = round((1 - y / reach) / 2 * (width - 1))
        cells[row][column] = format(number, "x")
    lines = ["".join(row).rstrip() for row in cells]
    return "\n".join(["front".center(width), *lines])
