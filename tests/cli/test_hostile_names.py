"""Whatever a file or an argument is called, no command prints what steers a terminal, nor a secret key.

Every command is run with hostile text for each of its arguments and options, as it finds them in the app: a
new command is here by itself.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tests.helpers.commands import Ran, Tyto
from tests.helpers.seals import posix
from tytoalba.cli import app as cli
from tytoalba.cli.app import app
from tytoalba.cli.console import err, make_table, note, out, print_json, progress_bar, put, say
from tytoalba.errors import TytoWarning

STEER = "x\x1b]0;gone\x07\x1b[31m\u202e\x9b2J\nerror: all is lost"
SECRET = "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54KHCE6M"
PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIASECRETSECRETSECRET\n-----END PRIVATE KEY-----"
SLOW = {"speed", "prior", "prior-any", "simulate", "bench run", "features", "bench fans", "bench confidence"}
"""Commands that would do long work with what is hostile here; they get an option that does not exist, too."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command of the app, by name."""

    def visit(command: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
        children = getattr(command, "commands", {})
        if not children:
            yield " ".join(path), command
        for name, child in children.items():
            yield from visit(child, [*path, name])

    return visit(typer.main.get_command(app), [])


def arguments(command: Any, text: str) -> list[list[str]]:
    """Ways to call a command with hostile text: in its arguments, and in one option after another."""
    given = [text for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and not param.is_flag]
    return [given, [*given, f"--{text}"], *([*given, option.opts[0], text] for option in options)]


def require_clean(ran: Ran) -> None:
    text = ran.out + ran.err
    assert all(c.isprintable() or c == "\n" for c in text), text
    assert "\nerror: all is lost" not in text
    assert "Traceback" not in text, text
    for secret in (SECRET[16:], PEM.splitlines()[1]):
        assert not any(secret[k : k + 12] in text for k in range(len(secret) - 12)), text


COMMANDS = dict(commands())


def test_all_commands_are_found() -> None:
    assert {"locate", "teach", "array show", "open", "trust", "export", "info"} <= set(COMMANDS)


@posix
@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.usefixtures("home")
def test_hostile_arguments(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    both, refused = f"{STEER} {SECRET}", ["--none"] if name in SLOW else []
    for given in [*arguments(COMMANDS[name], both), arguments(COMMANDS[name], PEM)[0]]:
        require_clean(tyto(*name.split(), *given, *refused))
    for text in (both, PEM):  # files that are there, and hold it
        (tmp_path / text).write_bytes(text.encode())
        require_clean(tyto(*name.split(), *arguments(COMMANDS[name], text)[0], *refused))


HOSTILE_ARRAY = """
name = "a\\u001b[31m\\u009b\\u202e {name}"
description = "b\\u001b]0;gone\\u0007\\nerror: all is lost"
sample_rate = 16000
positions = [[0.05, 0.05], [-0.05, 0.05], [-0.05, -0.05], [0.05, -0.05]]
"""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", ["mine", SECRET])
def test_names_in_an_array_file(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(HOSTILE_ARRAY.replace("{name}", name))
    for command in (
        ["array", "show", "a.toml"],
        ["array", "show", "a.toml", "--json"],
        ["array", "show", "a.toml", "--toml"],
        ["array", "import", "a.toml"],
        ["new", "k.tyto", "--array", "a.toml", "--features", "20"],
        ["info", "k.tyto"],
        ["new", "l.tyto", "--like", "k.tyto"],
        ["locate", "a.toml", "--array", "a.toml"],
    ):
        require_clean(tyto(*command))


def test_every_way_to_say_something(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(err, "_force_terminal", False)
    hostile = f"{STEER} {SECRET}"
    table = make_table("a", hostile, title=hostile)
    table.add_row(hostile, SECRET)
    for speak in (say, note, put, out.print, err.print, print_json):
        speak(hostile)
    out.print(table, width=30)
    print_json({hostile: [hostile, PEM]})
    with progress_bar(hostile) as steps:
        monkeypatch.setattr(steps, "_told", -100.0)
        steps(1, 2, f"now {hostile}")
    printed = capsys.readouterr()
    require_clean(Ran(0, "", printed.err.replace("\nerror: all", "")))
    require_clean(Ran(0, printed.out.replace("\nerror: all", ""), ""))


@posix
def test_what_is_unexpected_and_what_warns(
    tyto: Tyto, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tracebacks and warnings quote what they were given."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)

    def fail(**_: Any) -> None:
        warnings.warn(f"odd: {STEER} {SECRET}", TytoWarning, stacklevel=1)
        raise RuntimeError(f"{STEER} {SECRET}")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr(warnings, "filters", [])
    with pytest.raises(RuntimeError) as caught:
        tyto("locate")
    sys.excepthook(caught.type, caught.value, caught.tb)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    text = capsys.readouterr().err
    assert text.count("RuntimeError: x") >= 2
    assert all(c.isprintable() or c == "\n" for c in text)
    assert SECRET[20:40] not in text


@posix
def test_names_that_are_no_text(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in another encoding ended in a traceback when it was printed."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.wav")
    (tmp_path / name).write_bytes(b"RIFF")
    ran = tyto("locate", name, "--array", "pepper")
    assert ran.code == 2
    assert r"caf\udce9.wav" in ran.err
