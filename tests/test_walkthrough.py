"""The walk-through of the docs and the short way of the README, as written: every command, in its order.

`python tests/test_walkthrough.py FOLDER` runs it and puts its pictures there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.commands import Tyto
from tests.helpers.states import settle
from tests.helpers.waves import plane_wave
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.learning.prior import make as schooling
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import write_audio

PAGE = Path(__file__).parents[1] / "docs" / "walkthrough.md"
PICTURES = ("evidence.png", "located.png")


def lines() -> list[list[str]]:
    """The commands of the page, without `tyto`."""
    found = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for block in found for line in block.splitlines() if line]


def test_it_is_walked_through(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path)
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


def test_the_short_way_of_the_readme(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path)
    monkeypatch.setattr(schooling, "Scenes", partial(Scenes, seconds=1.6))  # the audit's
    page = PAGE.parents[1] / "README.md"
    (block,) = re.findall(
        r"^## A localizer of your own.*?```\n(.*?)^```", page.read_text("utf-8"), re.S | re.M
    )
    told = {"a": 0.0, "b": 90.0, "c": 180.0, "d": 270.0, "sofa": 135.0, "talk": 135.0}
    for seed, (name, azimuth) in enumerate(told.items()):
        write_audio(
            tmp_path / f"{name}.wav", plane_wave(load_array("respeaker-usb-4"), azimuth, 2.0, seed), 16000
        )
    ran = {}
    for line in block.splitlines():
        words = shlex.split(line, comments=True)[1:]
        ran[words[0]] = tyto(*words)
        assert ran[words[0]].code == 0, (line, ran[words[0]].err)
    assert not (tmp_path / "sofa.wav").exists()
    assert "135" in ran["locate"].out
    assert "forgot" in ran["forget"].out
    assert "the same to the byte" in ran["audit"].out


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
