"""The command as a whole: help, version, and what no command takes."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from tests.helpers.commands import Ran, Tyto, words
from tytoalba import __version__
from tytoalba.cli.app import app


def test_every_command_says_what_it_does() -> None:
    group: Any = typer.main.get_command(app)
    runner = CliRunner()
    seen = []

    def visit(command: Any, path: list[str]) -> None:
        result = runner.invoke(app, [*path, "--help"], catch_exceptions=False)
        assert result.exit_code == 0
        about = str(command.help).split("\n")[0].replace("[bold]", "").replace("[/]", "")
        assert len(about) > 20
        assert about.split(":")[0][:40] in words(result.stdout)
        assert "Traceback" not in result.output
        seen.append(" ".join(path))
        for name, child in getattr(command, "commands", {}).items():
            visit(child, [*path, name])

    visit(group, [])
    assert {"array list", "array show", "array import", "locate", "simulate", "score", "speed"} <= set(seen)


@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        (
            ["locate"],
            ["--array", "--method", "--sources", "--band", "--json", "--csv", "--plot", "0 is the array"],
        ),
        (["simulate"], ["--preset", "--features", "--layout", "--speech", "--size", "--seed", "--moving"]),
        (["score"], ["--method", "--part", "--json", "MAE in degrees", "resampling whole recordings"]),
        (["array", "show"], ["--toml", "--plot", "cannot tell"]),
        (["array", "import"], ["ODAS", "--output"]),
    ],
)
def test_help_names_the_options(command: list[str], mentions: list[str]) -> None:
    text = words(CliRunner().invoke(app, [*command, "--help"]).stdout)
    for mention in mentions:
        assert mention in text


def test_an_option_is_worded_alike_everywhere() -> None:
    wordings: dict[str, set[str]] = defaultdict(set)

    def visit(command: Any) -> None:
        for param in command.params:
            if param.param_type_name == "option":
                wordings[param.opts[0]].add(str(param.help))
        for child in getattr(command, "commands", {}).values():
            visit(child)

    visit(typer.main.get_command(app))
    # --device is a sound card for who listens, and what computes for all others
    for option in ("--identity", "--processes", "--results", "--plot"):
        assert len(wordings[option]) == 1, wordings[option]
    assert wordings["--json"] == {"Print JSON.", "Print JSON, one object per frame."}
    assert all("default: " in text for text in wordings["--array"])


def test_no_help_loses_what_is_in_brackets() -> None:
    """Rich takes [word] for markup."""
    texts = []

    def visit(command: Any) -> None:
        texts.extend([str(command.help or ""), *(str(param.help or "") for param in command.params)])
        for child in getattr(command, "commands", {}).values():
            visit(child)

    visit(typer.main.get_command(app))
    assert len(texts) > 300
    assert not [text for text in texts if re.search(r"(?<!\\)\[[a-z#/@]", text)]


def test_version_and_no_arguments(tyto: Tyto) -> None:
    assert tyto("--version") == Ran(0, f"tyto {__version__}\n", "")
    nothing = tyto()
    assert "Where does a sound come from?" in nothing.out
    assert "Traceback" not in nothing.err


def test_unknown_commands_and_options_are_refused(tyto: Tyto) -> None:
    for arguments in (["fly"], ["locate"], ["locate", "x.wav", "--lift"], ["simulate", "x", "--size", "big"]):
        ran = tyto(*arguments)
        assert ran.code == 2
        assert "Traceback" not in ran.err
        assert ran.out == ""
