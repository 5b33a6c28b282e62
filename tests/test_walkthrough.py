"""The walk-through of the docs, as it is written: every command, in its order.

`python tests/test_walkthrough.py FOLDER` runs it and puts its pictures there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from commands import Tyto

PAGE = Path(__file__).parents[1] / "docs" / "walkthrough.md"
PICTURES = ("evidence.png", "located.png")


def lines() -> list[list[str]]:
    """The commands of the page, without `tyto`."""
    found = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for block in found for line in block.splitlines() if line]


def test_it_is_walked_through(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("TYTO_IDENTITY", "TYTO_SIGNING_KEY", "TYTO_TRUSTED", "TYTO_PRIORS"):
        monkeypatch.delenv(name, raising=False)
    assert len(lines()) > 15
    printed = {}
    for words in lines():
        ran = tyto(*words)
        assert ran.code == (1 if words[0] == "check" and "wrong" in ran.out else 0), (words, ran.err)
        printed[" ".join(words[:2])] = ran
    for name in PICTURES:
        assert (tmp_path / name).stat().st_size > 5000
    assert not list((tmp_path / "home" / "train").glob("*.wav"))  # sealed, and the plain ones are gone
    assert "verified" in printed["info kitchen.age"].out
    assert "the same to the byte" in printed["audit kitchen.age"].out
    assert "forgot" in printed["forget kitchen.age"].out
    assert b"tytoalba-state" not in (tmp_path / "kitchen.age").read_bytes()


def main() -> None:
    """Run it as a user would, and keep the pictures."""
    target = Path(sys.argv[1]).resolve()
    with TemporaryDirectory() as folder:
        settings = {**os.environ, "XDG_DATA_HOME": str(Path(folder) / "data")}
        for words in lines():
            command = [sys.executable, "-m", "tytoalba", *words]
            subprocess.run(command, cwd=folder, env=settings, check=words[0] != "check")
        for name in PICTURES:
            (target / name).write_bytes((Path(folder) / name).read_bytes())


if __name__ == "__main__":
    main()
