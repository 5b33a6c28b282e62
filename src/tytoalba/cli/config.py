"""`tyto config`: what commands use where nothing is given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.console import print_json, put, say
from tytoalba.cli.options import AsJson
from tytoalba.cli.settings import KNOWN, read_settings, settings_file, write_settings
from tytoalba.errors import TytoError


def config(
    key: Annotated[str | None, typer.Argument(help="What to set or show: array.")] = None,
    value: Annotated[str | None, typer.Argument(help="What to set it to.")] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Remove the setting.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set what commands use by default, or list the settings.

    Examples:

      tyto config array respeaker-usb-4

      tyto config

      tyto config array --unset
    """
    settings = read_settings()
    if key is not None and key not in KNOWN:
        raise TytoError(f"no setting called {key!r}; known: {', '.join(KNOWN)}")
    if unset and (key is None or value is not None):
        raise TytoError("--unset takes the name of one setting and no value: tyto config array --unset")
    if key is not None and unset:
        settings.pop(key, None)
        write_settings(settings)
        say(f"{key} is not set any more")
    elif key is not None and value is not None:
        settings[key] = _array(value)
        write_settings(settings)
        say(f"{key} = {settings[key]}, written to {settings_file()}")
    elif as_json:
        print_json(settings)
    else:
        for name, about in KNOWN.items():
            if key in (None, name):
                put(f"{name} = {settings.get(name, '(not set)')}  # {about}")


def _array(value: str) -> str:
    """The name of a built-in array, or the whole path of a file that holds one."""
    from tytoalba.signal.array import builtin_arrays, load_array

    load_array(value)
    return value if value in builtin_arrays() else str(Path(value).resolve())
