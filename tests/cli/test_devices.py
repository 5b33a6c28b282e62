"""`tyto devices`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import Tyto
from tests.helpers.soundcards import LAPTOP, PULSE, RESPEAKER, pretend
from tytoalba.cli.console import out
from tytoalba.live.inputs.devices import held_cards


@pytest.fixture(autouse=True)
def no_cards_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(held_cards, "__defaults__", (tmp_path,))


def test_sound_cards_are_listed_with_a_verdict(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, LAPTOP, RESPEAKER, PULSE)
    monkeypatch.setattr(out, "width", 80)
    ran = tyto("devices")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    text = " ".join(ran.out.split())
    assert "0* HDA Intel PCH: ALC257 Analog (hw:0,0), ALSA 2 44.1 48" in text
    assert "6 channels at 16 kHz: fits respeaker-usb-4" in text
    assert "goes through PulseAudio, which may mix channels: use hw:1,0" in text


def test_they_may_be_judged_for_one_array(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, LAPTOP, RESPEAKER)
    ran = tyto("devices", "--array", "pepper")
    assert "too few for pepper" in ran.out
    assert "6 channels, at 16 kHz at most: too low for pepper (48 kHz)" in ran.out


def test_as_json(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, RESPEAKER, PULSE)
    first, second = json.loads(tyto("devices", "--json").out)
    assert first == {
        "number": 0,
        "name": RESPEAKER.name,
        "host_api": "ALSA",
        "n_channels": 6,
        "default_rate": 16000,
        "rates": [16000],
        "is_default": True,
        "is_direct": True,
        "fits": ["respeaker-usb-4"],
        "verdict": "6 channels at 16 kHz: fits respeaker-usb-4",
    }
    assert (second["is_direct"], second["fits"]) == (False, [])


def test_without_any_it_says_what_may_be_wrong(
    tyto: Tyto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch)
    info = tmp_path / "card1" / "pcm0c" / "info"
    info.parent.mkdir(parents=True)
    info.write_text("card: 1\ndevice: 0\nname: USB Audio\n")
    ran = tyto("devices")
    assert (ran.code, ran.out) == (0, "")
    assert "no sound card with an input was found" in ran.err
    assert "another program has hw:1,0 (USB Audio), so it is not listed" in ran.err
    assert json.loads(tyto("devices", "--json").out) == []


def test_without_the_extra_it_is_named(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    ran = tyto("devices")
    assert ran.code == 2
    assert "pip install 'tytoalba[live]'" in ran.err


def test_an_unknown_array_is_refused_first(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert "no array called 'pepperr' (did you mean pepper?)" in tyto("devices", "-a", "pepperr").err
