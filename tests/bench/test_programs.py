"""Other people's programs: whatever they do, there is what they printed or a clear error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.odaslive import program
from tytoalba.bench.programs import find_program, run_program
from tytoalba.errors import TytoError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts with a #! line")


def test_what_it_prints_comes_back_without_its_complaints(tmp_path: Path) -> None:
    hello = program(tmp_path, "import sys\nprint('1 2')\nprint('hm', file=sys.stderr)", "hello")
    assert run_program([hello], tmp_path, 30) == "1 2\n"


def test_it_runs_where_it_is_told_to(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = program(tmp_path, "import os\nprint(os.getcwd())", "where")
    assert run_program([where], tmp_path, 30).strip() == str(tmp_path.resolve())
    assert run_program([where], tmp_path, 30, where=elsewhere).strip() == str(elsewhere.resolve())


def test_it_gets_its_words_as_they_are(tmp_path: Path) -> None:
    echo = program(tmp_path, "import sys\nprint(sys.argv[1:])", "echo")
    words = ["$HOME; rm x", "a b", "*"]
    assert run_program([echo, *words], tmp_path, 30).strip() == str(words)


def test_a_failure_tells_what_it_complained_of(tmp_path: Path) -> None:
    fails = program(tmp_path, "print('fine so far')\nraise SystemExit('no such model')", "fails")
    with pytest.raises(TytoError, match=r"fails failed with exit status 1: it said 'no such model'; a hint"):
        run_program([fails], tmp_path, 30, hint="; a hint")


def test_an_argument_that_no_program_can_get_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TytoError, match="cannot run"):
        run_program([program(tmp_path, ""), "a\0b"], tmp_path, 30)


def test_a_link_to_a_program_stays_a_link(tmp_path: Path) -> None:
    """Python finds the packages of an environment by the link that it was started by."""
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert find_program(link) == link
