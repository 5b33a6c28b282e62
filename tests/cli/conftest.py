"""A data set, and an empty home, for the tests of several commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.seals import home as home
from tests.helpers.seals import quick_passphrases as quick_passphrases
from tytoalba.cli.app import app


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `tyto simulate` wrote for a ReSpeaker."""
    root = tmp_path_factory.mktemp("simulated") / "data"
    arguments = ["simulate", str(root), "--array", "respeaker-usb-4", "--size", "0.03", "-j", "1"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "4 recordings of 4 s written to" in result.stderr
    assert result.stdout == ""
    return root
