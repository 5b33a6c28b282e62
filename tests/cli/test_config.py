"""`tyto config`, and which array a command takes: the option, TYTO_ARRAY, the setting, never a guess."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.cli.console import chosen_array
from tytoalba.cli.settings import read_settings, settings_file, write_settings
from tytoalba.errors import ArrayError, FileError
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import write_audio


@pytest.fixture(autouse=True)
def home(tmp_path: Path, tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001, after tyto's own
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_settings_are_set_shown_and_removed(tyto: Tyto, home: Path) -> None:
    assert "(not set)" in tyto("config").out
    assert tyto("config", "array", "respeaker-usb-4").code == 0
    assert settings_file() == home / "config" / "tytoalba" / "config.toml"
    assert settings_file().read_text() == 'array = "respeaker-usb-4"\n'
    assert json.loads(tyto("config", "--json").out) == {"array": "respeaker-usb-4"}
    assert tyto("config", "array").out.startswith("array = respeaker-usb-4  #")
    assert tyto("config", "array", "--unset").code == 0
    assert read_settings() == {}


def test_an_array_file_is_remembered_by_its_whole_path(
    tyto: Tyto, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    Path('my "ärray".toml').write_text(load_array("pepper").to_toml())
    assert tyto("config", "array", 'my "ärray".toml').code == 0
    monkeypatch.chdir("/")
    assert chosen_array(None) == load_array("pepper")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["colour"], "no setting called 'colour'; known: array"),
        (["array", "violin"], "no array called 'violin'"),
        (["--unset"], "--unset takes the name of one setting"),
    ],
)
def test_wrong_settings_are_refused(tyto: Tyto, arguments: list[str], why: str) -> None:
    assert why in tyto("config", *arguments).error
    assert not settings_file().exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [("array =", "is not valid TOML"), ("hue = 'red'", "unknown key 'hue'"), ("array = 4", "must be text")],
)
def test_a_damaged_file_is_refused_by_name(tyto: Tyto, text: str, why: str) -> None:
    write_settings({})
    settings_file().write_text(text)
    with pytest.raises(FileError, match=why) as refused:
        read_settings()
    assert str(settings_file()) in str(refused.value)
    assert why in tyto("new", "x.tyto").error


def test_the_option_wins_over_the_environment_and_that_over_the_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_settings({"array": "pepper"})
    assert chosen_array(None).name == "pepper"
    monkeypatch.setenv("TYTO_ARRAY", "linear-4")
    assert chosen_array(None).name == "linear-4"
    assert chosen_array("matrix-voice").name == "matrix-voice"
    monkeypatch.setenv("TYTO_ARRAY", "violin")
    with pytest.raises(ArrayError, match="TYTO_ARRAY: no array called 'violin'"):
        chosen_array(None)


@pytest.mark.parametrize(
    ("n_channels", "rate", "says"),
    [
        (6, 16000, "has 6 channels, 16 kHz: perhaps respeaker-usb-4."),
        (4, 16000, "has 4 channels, 16 kHz: perhaps linear-4 or respeaker-4mic-hat."),
        (1, 44100, "has 1 channel, 44.1 kHz: no built-in array records that."),
    ],
)
def test_no_array_is_guessed(tyto: Tyto, home: Path, n_channels: int, rate: int, says: str) -> None:
    sound = 0.1 * np.random.default_rng(0).standard_normal((n_channels, rate))
    write_audio(home / "talk.wav", np.clip(sound, -1, 1), rate)
    for command in (["locate", "talk.wav"], ["check", "talk.wav@90"]):
        name = str(home / command[1])
        refusal = tyto(command[0], name).error
        assert says in refusal
        assert "tyto config array NAME" in refusal
    files = [str(home / "talk.wav")] * n_channels
    if n_channels == 1:
        return
    with pytest.raises(ArrayError, match="perhaps .*linear-4" if n_channels == 4 else "which array"):
        chosen_array(None, files)


def test_commands_without_a_recording_ask_too(tyto: Tyto, home: Path) -> None:
    for arguments in (["new", home / "k.tyto"], ["locate", home / "gone.wav"], ["locate", "-"]):
        assert "which array? Name it with --array NAME" in tyto(*arguments).error
