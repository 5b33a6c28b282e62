"""Property tests have no deadline on shared machines; the profile "steady" gives the same examples always.

And the fixture with which tests run the command.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from commands import Ran, Tyto
from tytoalba.cli import main
from tytoalba.cli.console import err, out

settings.register_profile("exploring", deadline=None)
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "exploring"))


@pytest.fixture
def tyto(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tyto:
    """Run the command in this process, as its entry point does."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setenv("COLUMNS", "160")
    for console in (out, err):  # a worker without a terminal may be of any width
        monkeypatch.setattr(console, "width", 160)

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tyto", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        else:
            code = 0
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run
