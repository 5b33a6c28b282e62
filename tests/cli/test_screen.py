"""The screen in a real terminal: drawn within limits, resized, suspended, left as it was found."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import warnings
from pathlib import Path
from typing import TextIO, cast

import pytest

from tests.helpers.inputs import Clock
from tests.helpers.terminals import Terminal, needs_terminals, terminal
from tests.helpers.updates import frame, track, wait_until
from tytoalba.cli.screen import ENTER, LEAVE, Screen
from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.errors import TytoWarning
from tytoalba.live.update import Update

pytestmark = needs_terminals
DEMO = demo_recording()[0]


class Told:
    """A screen on a pseudo-terminal, and frames for it."""

    def __init__(self, one: Terminal) -> None:
        self.clock = Clock()
        self.target = os.fdopen(os.dup(one.slave), "w")
        self.screen = Screen("tyto listen: here", self.target, self.clock)
        self.terminal, self.number = one, 0

    def frames(self, n: int = 1, *, pause: float = 0.1) -> None:
        for _ in range(n):
            self.number += 1
            self.clock.now += pause
            moment = frame(self.number, track(1, 40.0))
            self.screen.tell(Update.of(moment), moment)

    def close(self) -> None:
        self.screen.close()
        self.target.close()


def test_it_enters_another_screen_and_leaves_it_once() -> None:
    with terminal() as one:
        told = Told(one)
        told.frames()
        one.wait_for("azimuth")
        told.screen.close()
        told.close()
        one.wait_for(LEAVE)
        assert one.text.startswith(ENTER)
        assert one.text.count(LEAVE) == 1


def test_it_is_drawn_twelve_times_a_second_and_only_what_changed() -> None:
    with terminal() as one:
        told = Told(one)
        told.frames(60, pause=1 / 60)
        wait_until(lambda: one.text.count("\x1b[?2026l") >= 10)
        told.close()
        one.wait_for(LEAVE)
        assert one.text.count("\x1b[?2026l") <= 13
        assert one.text.count("azimuth") == 1  # the head of the table stays as it is
        assert one.text.count("\x1b[2J") == 2  # entered, and drawn for the first time


def test_what_others_write_across_it_is_drawn_over() -> None:
    with terminal() as one:
        told = Told(one)
        told.frames()
        one.wait_for("azimuth")
        os.write(one.slave, b"\rExpression 'paInternalError' failed\r\n")  # as PortAudio does
        before = one.text.count("azimuth")
        told.frames(3)
        assert one.text.count("azimuth") == before
        told.frames(30)
        wait_until(lambda: one.text.count("azimuth") > before)
        told.close()


def test_a_new_size_is_drawn_anew() -> None:
    with terminal() as one:
        told = Told(one)
        told.frames()
        one.wait_for("\x1b[24;1H")
        one.resize(40, 8)
        before = len(one.text)
        told.frames()
        wait_until(lambda: "\x1b[2J" in one.text[before:] and "level" in one.text[before:])
        told.close()
        one.wait_for(LEAVE)
        rows = [int(row) for row in re.findall(r"\x1b\[(\d+);1H", one.text[before:])]
        assert max(rows) == 8


def test_remarks_are_shown_and_said_again_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with terminal() as one:
        told = Told(one)
        told.screen.say("the broker is gone")
        told.frames()
        one.wait_for("the broker is gone")
        warnings.showwarning(TytoWarning("a dead channel"), TytoWarning, "here.py", 1)
        told.frames()
        one.wait_for("a dead channel")
        told.clock.now += 60
        told.frames()
        one.wait_for("Ctrl-C ends")
        told.close()
    assert warnings.showwarning == before
    assert "the broker is gone" in capsys.readouterr().err


def test_a_terminal_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal() as one:
        told = Told(one)
        told.frames(3)
        told.close()
        one.wait_for(LEAVE)
        assert not re.search(r"\x1b\[[0-9;]+m", one.text.replace(LEAVE, ""))


def test_a_terminal_that_is_gone_is_told_and_can_be_left() -> None:
    one = Terminal()
    told = Told(one)
    one.hang_up()
    with pytest.raises(OSError, match=r"Input/output error|Bad file"):
        told.frames()
    told.close()
    with pytest.raises(OSError, match=r"fileno|file"):
        Screen("no terminal", cast("TextIO", io.StringIO()))


def test_control_c_restores_the_terminal() -> None:
    with terminal() as one:
        before = one.settings()
        process = one.start("listen", "--from", DEMO, "--loop", "-a", DEMO_ARRAY, "-m", "srp")
        one.wait_for("speaks", 40)
        one.type(b"\x03")
        assert process.wait(20) == 130
        one.wait_for("one person")
        assert one.settings() == before
        shown, _, after = one.text.partition(LEAVE)
        assert shown.count(ENTER) == 1
        assert "one person: 40 degrees for" in after  # the summary is on the screen of the shell
        assert "Traceback" not in one.text


@pytest.mark.end_to_end
def test_control_z_gives_the_terminal_back_until_it_goes_on() -> None:
    with terminal() as one:
        shell = one.run("bash", "--norc", "-i", environment={"PS1": "$ "})
        command = [sys.executable, "-m", "tytoalba", "listen", "--from", DEMO, "--loop", "-a", DEMO_ARRAY]
        one.type(f"{shlex.join(map(str, command))}; echo code $?\n".encode())
        one.wait_for("speaks", 40)
        one.type(b"\x1a")
        one.wait_for("Stopped")
        assert one.text.index(LEAVE) < one.text.index("Stopped")
        one.type(b"fg\n")
        wait_until(lambda: one.text.count(ENTER) == 2)
        one.type(b"\x03")
        wait_until(lambda: one.text.count(LEAVE) == 2)
        one.wait_for("interrupted")
        one.type(b"exit 7\n")
        assert shell.wait(20) == 7


@pytest.mark.end_to_end
def test_a_terminal_that_is_closed_ends_it_and_its_recording_is_whole(tmp_path: Path) -> None:
    pytest.importorskip("pyrage")
    from tests.helpers.seals import new_key, public
    from tytoalba.storage.soundfiles import read_audio

    key, target = new_key(tmp_path), tmp_path / "talk.wav.age"
    one = Terminal()
    recording = ("--record-sealed", target, "--to", public(key))
    process = one.start("listen", "--from", DEMO, "--loop", "-a", DEMO_ARRAY, "-m", "srp", *recording)
    one.wait_for("speaks", 40)
    one.hang_up()
    assert process.wait(20) != 0
    sound = read_audio(target, keys=[key]).samples
    wanted = read_audio(DEMO).samples
    assert sound.shape[1] > 3000
    n = min(sound.shape[1], wanted.shape[1])
    assert (sound[:, :n] == wanted[:, :n]).all()
