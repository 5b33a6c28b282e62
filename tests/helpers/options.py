"""Options of commands, read as the command line reads them, without running the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer.main

from tytoalba.cli.app import app

LISTEN = """--device --from --raw --channels --rate --array --model --method --background --odas
    --odas-potential --mqtt --websocket --osc --record-sealed --seconds --silence"""
"""Those of `tyto listen` that take a value."""


def listen_options(words: Sequence[str]) -> dict[str, Any]:
    """What the options of a `tyto listen` say; an error where there is no such option."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    if "listen" in commands:
        given: dict[str, Any] = commands["listen"].make_context("listen", list(words)).params
        return given
    found = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        assert name in LISTEN.split(), name
        found[name.removeprefix("--").replace("-", "_")] = value
    return found
