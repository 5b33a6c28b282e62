"""Options of commands, read as the command line reads them, without running the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer.main

from tytoalba.cli.app import app


def listen_options(words: Sequence[str]) -> dict[str, Any]:
    """What the options of a `tyto listen` say; an error where there is no such option."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    given: dict[str, Any] = commands["listen"].make_context("listen", list(words)).params
    return given
