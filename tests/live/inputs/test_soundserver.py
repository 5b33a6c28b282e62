"""What a sound server says of a recording, read from a program that stands in for pactl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tytoalba.live.inputs.soundserver import ask_server
from tytoalba.live.update import Fault

FOUR = "front-left,front-right,rear-left,rear-right"
SIX = f"{FOUR},front-center,lfe"


@pytest.fixture
def pactl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a program pactl that prints the file named as what is listed."""
    program = tmp_path / "pactl"
    program.write_text('#!/bin/sh\n[ "$1 $2 $3" = "-f json list" ] && cat "$(dirname "$0")/$4"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def says(folder: Path, recording: dict[str, Any], source: dict[str, Any], process: object = 77) -> None:
    mine = {"source": 3, "properties": {"application.process.id": process}, "mute": False} | recording
    another = mine | {"properties": {}, "channel_map": "mono"}
    (folder / "source-outputs").write_text(json.dumps([another, mine]))
    mute = {"index": 1, "name": "other", "channel_map": "mono", "mute": True}
    here = {"index": 3, "name": "usb", "mute": False} | source
    (folder / "sources").write_text(json.dumps([mute, here]))


def told(faults: tuple[Fault, ...] | None) -> list[tuple[str, str]]:
    assert faults is not None
    return [(fault.kind, fault.text) for fault in faults]


def test_the_same_channels_are_fine(pactl: Path) -> None:
    says(pactl, {"channel_map": SIX}, {"channel_map": SIX}, "77")
    assert ask_server(6, 77) == ()


def test_fewer_channels_are_mixed(pactl: Path) -> None:
    says(pactl, {"channel_map": FOUR}, {"channel_map": SIX})
    [(kind, text)] = told(ask_server(4, 77))
    assert kind == "mixed"
    assert "6 channels (front-left, front-right" in text
    assert "gives 4 (front-left" in text
    assert "mixes them or leaves some out, so directions are wrong; open the hardware" in text


def test_another_order_is_told(pactl: Path) -> None:
    says(pactl, {"channel_map": FOUR}, {"channel_map": "rear-left,rear-right,front-left,front-right"})
    [(kind, text)] = told(ask_server(4, 77))
    assert kind == "mixed"
    assert "gives them in another order" in text


@pytest.mark.parametrize("where", [0, 1])
def test_what_is_muted_there_is_told(pactl: Path, where: int) -> None:
    entries: list[dict[str, Any]] = [{"channel_map": FOUR}, {"channel_map": FOUR}]
    entries[where]["mute"] = True
    says(pactl, *entries)
    assert told(ask_server(4, 77)) == [
        ("muted", "the sound server has muted usb; unmute it, as in pavucontrol")
    ]


def test_nobody_knows_of_other_recordings(pactl: Path) -> None:
    says(pactl, {"channel_map": FOUR}, {"channel_map": SIX})
    assert ask_server(4, 78) is None
    assert ask_server(6, 77) is None
    assert ask_server(4) is None


@pytest.mark.parametrize("answer", ["", "Connection failure: refused", "[1, null]", '{"a": 1}', "[" * 10000])
def test_answers_that_make_no_sense_are_none(pactl: Path, answer: str) -> None:
    for what in ("sources", "source-outputs"):
        (pactl / what).write_text(answer)
    assert ask_server(4, 77) is None


def test_without_the_program_there_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_server(4) is None
