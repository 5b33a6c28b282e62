"""Which sound cards are there, which arrays they fit, and which one is meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.soundcards import LAPTOP, PULSE, RESPEAKER, Card, pretend
from tytoalba.errors import TytoError
from tytoalba.live.inputs import devices
from tytoalba.live.inputs.devices import (
    Device,
    channels_to_open,
    choose_device,
    held_cards,
    judge,
    list_devices,
)
from tytoalba.signal.array import MicArray, load_array

USB = load_array("respeaker-usb-4")
OWN = MicArray("mine", ((0.05, 0.0, 0.0), (-0.05, 0.0, 0.0), (0.0, 0.05, 0.0)), sample_rate=16000)


@pytest.fixture(autouse=True)
def no_cards_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(devices, "PROC", tmp_path)
    monkeypatch.setattr(held_cards, "__defaults__", (tmp_path,))


def listed(monkeypatch: pytest.MonkeyPatch, *cards: Card) -> list[Device]:
    pretend(monkeypatch, *cards)
    return list_devices()


def test_cards_with_inputs_are_listed_with_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(monkeypatch, LAPTOP, Card("HDMI (hw:0,3)", 0), RESPEAKER, PULSE)
    assert [(one.number, one.n_channels, one.rates, one.is_default) for one in found] == [
        (0, 2, (44100, 48000), True),
        (2, 6, (16000,), False),
        (3, 32, PULSE.rates, False),
    ]
    assert [one.is_direct for one in found] == [True, True, False]
    assert [one.hardware for one in found] == ["hw:0,0", "hw:1,0", None]


@pytest.mark.parametrize(
    ("card", "said", "arrays"),
    [
        (RESPEAKER, "6 channels at 16 kHz: fits respeaker-usb-4", ("respeaker-usb-4",)),
        (LAPTOP, "2 channels: none of the built-in arrays", ()),
        (
            Card("8 (hw:2,0)", 8, (16000, 48000)),
            "8 channels at 16 kHz: fits respeaker-6mic or respeaker-core-v2; at 48 kHz: fits matrix-voice or "
            "minidsp-uma8",
            ("matrix-voice", "minidsp-uma8", "respeaker-6mic", "respeaker-core-v2"),
        ),
        (
            Card("USB (hw:2,0)", 6, (44100, 48000)),
            "6 channels, resampled from 48 kHz: fits respeaker-usb-4",
            ("respeaker-usb-4",),
        ),
        (
            Card("slow (hw:2,0)", 6, (8000,)),
            "6 channels, at 8 kHz at most: too low for respeaker-usb-4 (16 kHz)",
            (),
        ),
        (
            Card("busy (hw:2,0)", 6, ()),
            "6 channels, but it cannot be opened: is another program recording?",
            (),
        ),
        (PULSE, "goes through PulseAudio, which may mix channels: use hw:1,0", ()),
        (replace(PULSE, name="pipewire"), "goes through PipeWire, which may mix channels: use hw:1,0", ()),
        (
            Card("Microphone Array", 6, (16000,), api=1),
            "goes through a sound server, which may mix channels: use hw:1,0",
            (),
        ),
    ],
)
def test_each_card_has_a_verdict(
    monkeypatch: pytest.MonkeyPatch, card: Card, said: str, arrays: tuple[str, ...]
) -> None:
    found = listed(monkeypatch, card, RESPEAKER)
    verdict = judge(found[0], found)
    assert (verdict.text, verdict.arrays) == (said, arrays)


def test_a_verdict_may_be_for_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(monkeypatch, RESPEAKER, LAPTOP, PULSE)
    assert judge(found[0], found, OWN).text == "6 channels at 16 kHz: fits mine"
    assert judge(found[1], found, OWN).text == (
        "2 channels: too few for mine, whose microphones are on channels 0, 1, 2"
    )
    assert judge(found[2], found, OWN).arrays == ("mine",)
    assert judge(found[2], found[1:], OWN).text.endswith("no hardware that fits is listed")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1", RESPEAKER.name),
        ("hw:1", RESPEAKER.name),
        ("hw:1,0", RESPEAKER.name),
        ("respeaker", RESPEAKER.name),
        ("PULSE", "pulse"),
        (None, RESPEAKER.name),
    ],
)
def test_a_card_is_meant_by_number_name_or_part_of_it(
    monkeypatch: pytest.MonkeyPatch, text: str | None, name: str
) -> None:
    cards = LAPTOP, RESPEAKER, PULSE, Card("hw:10 (hw:10,0)", 1)
    assert choose_device(text, USB, listed(monkeypatch, *cards)).name == name


def test_without_hardware_that_fits_the_default_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(monkeypatch, PULSE, LAPTOP)
    assert choose_device(None, USB, found).name == "pulse"


def test_the_card_of_the_array_is_preferred_to_one_that_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    more, slower = Card("8 (hw:3,0)", 8), Card("6 (hw:4,0)", 6, (48000,))
    assert choose_device(None, USB, listed(monkeypatch, more, slower, RESPEAKER)).name == RESPEAKER.name
    assert choose_device(None, USB, listed(monkeypatch, more, slower)).name == slower.name
    assert choose_device(None, USB, listed(monkeypatch, more)).name == more.name


@pytest.mark.parametrize(
    ("text", "cards", "said"),
    [
        ("pulze", (LAPTOP, PULSE), r"no sound card 'pulze' \(did you mean pulse\?\); there are 0: HDA"),
        ("9", (LAPTOP,), "no sound card '9'; there are 0: HDA"),
        ("hw", (LAPTOP, RESPEAKER), "may be several sound cards; give the number: 0: HDA.*; 1: ReSpeaker"),
        (None, (RESPEAKER, replace(RESPEAKER)), "several sound cards fit respeaker-usb-4; which"),
        (None, (LAPTOP,), r"no sound card here fits respeaker-usb-4 \(6 channels at 16 kHz\)"),
        (None, (), "no sound card with an input was found"),
    ],
)
def test_what_is_not_clear_is_asked(
    monkeypatch: pytest.MonkeyPatch, text: str | None, cards: tuple[Card, ...], said: str
) -> None:
    with pytest.raises(TytoError, match=said):
        choose_device(text, USB, listed(monkeypatch, *cards))


def test_all_channels_of_hardware_are_opened_and_those_of_the_array_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hardware, server, laptop = listed(monkeypatch, Card("8 (hw:3,0)", 8), PULSE, LAPTOP)
    assert channels_to_open(hardware, OWN) == 8
    assert channels_to_open(server, USB) == 6
    assert channels_to_open(server, OWN) == 3
    with pytest.raises(TytoError, match="has 2 channels; array 'respeaker-usb-4' has its microphones on"):
        channels_to_open(laptop, USB)


def test_it_may_have_another_number_when_it_is_plugged_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = listed(monkeypatch, RESPEAKER, LAPTOP)
    after = listed(monkeypatch, LAPTOP, replace(RESPEAKER, name=RESPEAKER.name.replace("hw:1", "hw:2")))
    assert [one.is_same(before) for one in after] == [False, True]


def test_cards_that_another_program_has_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "card1" / "pcm0c" / "info"
    info.parent.mkdir(parents=True)
    info.write_text("card: 1\ndevice: 0\nstream: CAPTURE\nid: USB Audio\nname: USB Audio\n")
    (tmp_path / "card1" / "pcm0p").mkdir()
    assert held_cards([], tmp_path) == ["hw:1,0 (USB Audio)"]
    assert held_cards(listed(monkeypatch, RESPEAKER), tmp_path) == []
    with pytest.raises(TytoError, match=r"Another program has hw:1,0 \(USB Audio\): end it"):
        choose_device("respeaker", USB, listed(monkeypatch, LAPTOP))
