"""Property tests have no deadline on shared machines; the profile "steady" gives the same examples always.

And the fixture with which tests run the command, and the one thread that all of them have.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import settings
from threadpoolctl import threadpool_limits

from tests.helpers.commands import Ran, Tyto
from tytoalba.cli import app as cli
from tytoalba.cli.console import err, out

settings.register_profile("exploring", deadline=None)
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "exploring"))


LONG = frozenset(Path(__file__).with_name("long.txt").read_text(encoding="utf-8").splitlines())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of long.txt, which `make durations` writes."""
    for item in items:
        if item.nodeid.partition("[")[0] in LONG:
            item.add_marker("long")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other take ten times as long on arrays this small."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    with threadpool_limits(1):
        if torch:
            torch.set_num_threads(1)
        yield
        if torch:
            torch.set_num_threads(before)


@cache
def _command() -> Any:
    """The command, put together once: typer does it anew, and slowly, for every call."""
    return typer.main.get_command(cli.app)


@pytest.fixture
def tyto(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tyto:
    """Run the command in this process, as its entry point does."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")  # nobody's settings
    monkeypatch.delenv("TYTO_ARRAY", raising=False)
    monkeypatch.setattr(cli, "app", _command())
    for console in (out, err):  # a worker without a terminal may be of any width
        monkeypatch.setattr(console, "width", 160)

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tyto", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        else:
            code = 0
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run
