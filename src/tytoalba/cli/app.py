"""The command `tyto`. Each command imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
import warnings

import typer

from tytoalba.cli import (
    array,
    audit,
    bench,
    check,
    info,
    localizer,
    locate,
    prior,
    score,
    seal,
    sign,
    simulate,
    speed,
    teaching,
)
from tytoalba.cli.console import print_error, print_warning
from tytoalba.errors import TytoError

app = typer.Typer(
    name="tyto",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Where does a sound come from? Locate it, simulate it, measure it.\n\n"
    "Azimuth is degrees: 0 is the array's front, 90 its left. Start with: "
    "[bold]tyto simulate out/quick[/] and [bold]tyto score out/quick[/].",
)
app.add_typer(array.app, name="array")
app.command("locate")(locate.locate)
app.command("new")(localizer.new)
app.command("learn")(localizer.learn)
app.command("teach")(localizer.teach)
app.command("forget")(localizer.forget)
app.command("merge")(localizer.merge)
app.command("export")(localizer.export)
app.command("info")(info.info)
app.command("audit")(audit.audit)
app.command("check")(check.check)
app.command("keygen")(seal.keygen)
app.command("seal")(seal.seal)
app.command("open")(seal.unseal)
app.command("rewrap")(seal.rewrap)
app.command("sign")(sign.sign)
app.command("trust")(sign.trust)
app.command("simulate")(simulate.simulate)
app.command("score")(score.score)
app.command("prior")(prior.prior)
app.command("teaching")(teaching.teaching)
app.command("speed")(speed.speed)
app.command("bench")(bench.bench)
app.command("report")(bench.report)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and stop.", is_eager=True),
) -> None:
    if version:
        from tytoalba import __version__

        typer.echo(f"tyto {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command; what is refused is said in one line, without a traceback."""
    warnings.showwarning = print_warning
    try:
        app(prog_name="tyto")
    except (TytoError, OSError) as error:
        print_error(str(error))
        sys.exit(2)
