"""PortAudio is loaded when it is needed, and what is missing is named with its remedy."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.helpers.soundcards import RESPEAKER, pretend
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.inputs.devices import list_devices
from tytoalba.live.inputs.portaudio import close_stream, load_sounddevice, quiet, rescan


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(MissingExtraError, match=r"sound cards need the extra 'live'"):
        load_sounddevice()


@pytest.mark.parametrize(
    ("platform", "remedy"),
    [("linux", "apt install libportaudio2"), ("darwin", "brew install portaudio"), ("aix", "your system")],
)
def test_without_the_library_its_package_is_named(
    monkeypatch: pytest.MonkeyPatch, platform: str, remedy: str
) -> None:
    def import_module(name: str) -> None:
        raise OSError(f"PortAudio library not found by {name}")

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(TytoError, match=f"the library PortAudio, which was not found: .*{remedy}"):
        load_sounddevice()


def test_cards_are_listed_as_they_were_until_they_are_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = pretend(monkeypatch)
    fake.cards.append(RESPEAKER)
    assert list_devices() == []
    rescan()
    assert [one.name for one in list_devices()] == [RESPEAKER.name]


def test_what_libraries_write_is_kept_off_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(2, b"before\n")
    with suppress(KeyError), quiet():
        os.write(2, b"ALSA lib confmisc.c: ...\n")
        raise KeyError
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"


def test_it_works_without_a_standard_error() -> None:
    code = "import os; os.close(2); from tytoalba.live.inputs.portaudio import quiet\nwith quiet(): print(1)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == b"1\n"


def test_a_stream_that_fails_to_close_is_closed() -> None:
    class Gone:
        def abort(self) -> None:
            raise OSError("gone")

        close = abort

    assert close_stream(Gone(), 1.0)
