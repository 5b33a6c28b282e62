"""The command `tyto`. Each command imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable

import typer

from tytoalba.cli import (
    array,
    audit,
    bench,
    check,
    config,
    devices,
    export,
    features,
    info,
    keygen,
    listen,
    localizer,
    locate,
    prior,
    prior_any,
    restore,
    score,
    seal,
    serve,
    sign,
    simulate,
)
from tytoalba.cli.console import print_error, print_unexpected, print_warning, say, talk
from tytoalba.cli.options import Command, Group
from tytoalba.errors import TytoError

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

app = typer.Typer(
    name="tyto",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Where does a sound come from? Locate it, teach it, measure it.\n\n"
    "Azimuth is in degrees: 0 is the array's front, 90 its left.",
    epilog="Results go to standard output, all else to standard error. Exit codes: 0 done, 1 something wrong "
    "was found, 2 refused, 130 interrupted.",
)
PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Locate": {
        "locate": locate.locate,
        "listen": listen.listen,
        "serve": serve.serve,
        "devices": devices.devices,
        "check": check.check,
        "config": config.config,
    },
    "Your localizer": {
        "new": localizer.new,
        "teach": localizer.teach,
        "forget": localizer.forget,
        "learn": localizer.learn,
        "merge": localizer.merge,
        "export": export.export,
        "info": info.info,
        "restore": restore.restore,
        "audit": audit.audit,
    },
    "Keys and signatures": {
        "keygen": keygen.keygen,
        "seal": seal.seal,
        "open": seal.unseal,
        "rewrap": seal.rewrap,
        "sign": sign.sign,
        "trust": sign.trust,
    },
    "Data": {
        "simulate": simulate.simulate,
        "features": features.features,
        "score": score.score,
    },
    "Science": {
        "report": bench.report,
        "speed": bench.speed,
        "prior": prior.prior,
        "prior-any": prior_any.prior_any,
    },
}
"""Every command, in the groups of the help."""
for panel, commands in PANELS.items():
    for name, function in commands.items():
        app.command(name, rich_help_panel=panel, cls=Command)(function)
app.add_typer(array.app, name="array", rich_help_panel="Locate")
app.add_typer(bench.app, name="bench", rich_help_panel="Science")


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and stop.", is_eager=True),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print results, warnings and errors only."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Also print where errors come from."),
) -> None:
    talk.quiet, talk.verbose = quiet, verbose
    if version:
        from tytoalba import __version__

        typer.echo(f"tyto {__version__}")
        raise typer.Exit


def _print_from_thread(what: threading.ExceptHookArgs) -> None:
    if what.exc_value is not None and what.exc_type is not SystemExit:
        print_unexpected(what.exc_type, what.exc_value, what.exc_traceback)


def main() -> None:
    """Run the command; what is refused is said in one line, without a traceback."""
    warnings.showwarning = print_warning
    sys.excepthook = print_unexpected
    threading.excepthook = _print_from_thread
    try:
        app(prog_name="tyto")
    except (TytoError, OSError) as error:
        print_error(error)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            say("interrupted")
        raise
