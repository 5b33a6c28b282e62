"""Options that several commands have, each with one name and one wording, and the look of the help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tytoalba.texts.printing import shown


def _to_write(path: Path | None) -> Path | None:
    """A file that is written after minutes of work: refused before where it cannot be."""
    if path is not None:
        from tytoalba.storage.writing import require_writable

        require_writable(path)
    return path


ArrayOption = Annotated[
    str | None,
    typer.Option(
        "--array",
        "-a",
        help="Built-in array (see `tyto array list`) or TOML file; default: TYTO_ARRAY, then "
        "`tyto config array`.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Processes = Annotated[
    int, typer.Option("--processes", "-j", min=0, help="Processes to use; 0: one per core.")
]
IgnoreSteady = Annotated[
    bool,
    typer.Option(
        "--ignore-steady",
        help="Treat steady noise from one place, such as a fan, as silence after a second.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all that is random.")]
IdentityFile = Annotated[
    Path | None,
    typer.Option("--identity", "-i", help="File with your secret key; default: TYTO_IDENTITY, then yours."),
]
Unsigned = Annotated[
    bool,
    typer.Option("--unsigned", help="Also accept a state or model that nobody you trust has signed."),
]
Speech = Annotated[
    Path | None,
    typer.Option("--speech", help="Folder of real speech, one file per speaker; default: a synthetic voice."),
]
Band = Annotated[str | None, typer.Option("--band", help="Frequencies to use, LOW-HIGH in Hz, or full.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto: a GPU where there is one.")]
Results = Annotated[
    Path | None,
    typer.Option("--results", callback=_to_write, help="Also write the results to this JSON file."),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", callback=_to_write, help="Draw into this picture (png, svg, pdf, jpg)."),
]


class Command(TyperCommand):
    """A command whose help fills its lines, and does not call a switch `<bool>`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.help = re.sub(r"(?<=\S)\n(?=\S)", " ", cleandoc(self.help or ""))

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters; switches have nothing to fill in."""
        return _plain_switches(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands, with help as `Command` has it; its refusals show no key and steer no terminal."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read its own options."""
        with _shown_refusals():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command and run it."""
        with _shown_refusals():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters; switches have nothing to fill in."""
        return _plain_switches(super().get_params(ctx))


@contextmanager
def _shown_refusals() -> Iterator[None]:
    """Refusals of arguments quote them: their texts as they may be printed."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # click's, or that of the click within typer
            for name, value in vars(error).items():
                if isinstance(value, str):
                    setattr(error, name, shown(value, lines=True))
        raise


def _plain_switches(params: list[Any]) -> list[Any]:
    for param in params:
        if param.param_type_name == "option" and param.metavar is None:
            if param.is_flag:
                param.metavar = ""
            elif param.multiple:
                param.metavar = "..."
    return params
