"""`tyto check`: from files to findings, a corrected array file, exit codes, and refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tests.helpers.waves import plane_wave
from tytoalba.diagnose.wiring import Wiring
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.soundfiles import write_audio

SQUARE = load_array("respeaker-4mic-hat")
SWAPPED = Wiring((0, 2, 1, 3))
AROUND = (0, 90, 200, 290)


def record(folder: Path, array: MicArray, azimuth: float) -> Path:
    """A second and a half of noise from a direction."""
    path = folder / f"{azimuth:g}.wav"
    sound = plane_wave(array, azimuth, 1.5, round(azimuth), 0.1, level=0.05)
    write_audio(path, sound, array.sample_rate)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> list[str]:
    """FILE@AZIMUTH of an array that is as its file says."""
    return [f"{record(tmp_path, SQUARE, a)}@{a}" for a in AROUND]


@pytest.fixture
def swapped(tmp_path: Path) -> list[str]:
    """The same with channels 1 and 2 swapped."""
    return [f"{record(tmp_path, SWAPPED.applied(SQUARE), a)}@{a}" for a in AROUND]


def test_nothing_wrong_is_exit_code_0(tyto: Tyto, plain: list[str], tmp_path: Path) -> None:
    ran = tyto("check", *plain, "-a", "respeaker-4mic-hat", "-o", tmp_path / "new.toml")
    assert ran.code == 0
    assert "no fault found" in ran.out
    assert "nothing to correct" in ran.err
    assert not (tmp_path / "new.toml").exists()


def test_swapped_channels_are_exit_code_1_and_a_corrected_file(
    tyto: Tyto, swapped: list[str], tmp_path: Path
) -> None:
    new = tmp_path / "new.toml"
    ran = tyto("check", *swapped, "-a", "respeaker-4mic-hat", "-o", new)
    assert ran.code == 1
    assert "another order" in ran.out
    assert str(new) in ran.err.replace("\n", "")
    assert load_array(new).positions == SWAPPED.applied(SQUARE).positions
    assert load_array(new).name == "new"
    swap = "channel 1 has the microphone of channel 2, channel 2 has the microphone of channel 1"
    assert swap in " ".join(ran.out.split())
    again = tyto("check", *swapped, "-a", new, "--json")
    assert again.code == 0
    assert json.loads(again.out)["corrected"] is None
    mine = tmp_path / "mine.tyto"
    assert tyto("new", mine, "-a", new).code == 0  # the prior is found in the order that was
    for recording in swapped:
        path, azimuth = recording.split("@")
        rows = [json.loads(line) for line in tyto("locate", path, "-M", mine, "--json").out.splitlines()]
        assert np.median(distance([row["azimuth"][0] for row in rows], float(azimuth))) < 5


def test_json_says_all(tyto: Tyto, swapped: list[str]) -> None:
    ran = tyto("check", *swapped, "-a", "respeaker-4mic-hat", "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert found["faulty"] is True
    assert found["channels"] == [0, 1, 2, 3]
    assert found["verdict"]["sure"] is True
    assert found["verdict"]["alternatives"][0] == {"order": [0, 2, 1, 3], "mirrored": False, "turn": 0.0}
    assert MicArray.from_toml(found["corrected"]).positions == SWAPPED.applied(SQUARE).positions
    assert {"kind", "what", "evidence", "confidence", "remedy"} == set(found["findings"][0])
    assert found["written"] is None


def test_what_the_command_can_do_next_is_said(tyto: Tyto, swapped: list[str], tmp_path: Path) -> None:
    hat = ("-a", "respeaker-4mic-hat")
    assert "-o FILE writes" in tyto("check", *swapped, *hat).err
    files = [text.rpartition("@")[0] for text in swapped]
    assert "a.wav@0 b.wav@90" in tyto("check", *files, *hat).err
    turned = [f"{record(tmp_path, Wiring((1, 0, 2, 3), turn=45.0).applied(SQUARE), a)}@{a}" for a in AROUND]
    assert "--turned looks for that" in tyto("check", *turned, *hat).err
    assert "--turned" not in tyto("check", *turned, *hat, "--turned").err


def test_too_little_speech_is_said_and_has_no_number(tyto: Tyto, plain: list[str]) -> None:
    words = tyto("check", plain[0], "-a", "respeaker-4mic-hat")
    assert words.code == 0
    assert "confidence: too little speech" in words.out
    assert "standard errors" not in words.out
    found = json.loads(tyto("check", plain[0], "-a", "respeaker-4mic-hat", "--json").out)
    assert (found["verdict"]["margin"], found["verdict"]["enough_speech"]) == (None, False)


def test_free_speech_and_a_csv(tyto: Tyto, swapped: list[str], tmp_path: Path) -> None:
    files = [text.rpartition("@")[0] for text in swapped]
    free = tyto("check", *files, "-a", "respeaker-4mic-hat", "--json", "-o", tmp_path / "new.toml")
    assert free.code == 1
    assert json.loads(free.out)["verdict"]["directions_known"] is False
    assert "no correction is sure" in free.err
    assert not (tmp_path / "new.toml").exists()
    rows = "".join(f"{Path(file).name}, {a}\n" for file, a in zip(files, AROUND, strict=True))
    (tmp_path / "list.csv").write_text("file,azimuth\n" + rows)
    listed = tyto("check", "--list", tmp_path / "list.csv", "-a", "respeaker-4mic-hat", "--json")
    assert listed.code == 1
    assert json.loads(listed.out)["verdict"]["alternatives"][0]["order"] == [0, 2, 1, 3]


def test_a_file_with_an_at_in_its_name(tyto: Tyto, tmp_path: Path) -> None:
    path = record(tmp_path, SQUARE, 0).rename(tmp_path / "me@home.wav")
    assert tyto("check", path, "-a", "respeaker-4mic-hat", "--json").code == 0
    assert tyto("check", f"{path}@0", "-a", "respeaker-4mic-hat", "--json").code == 0


def test_refusals(tyto: Tyto, plain: list[str], tmp_path: Path) -> None:
    file = plain[0].rpartition("@")[0]
    hat = ("-a", "respeaker-4mic-hat")
    assert "no recordings" in tyto("check", *hat).error
    assert "'left' is not a direction" in tyto("check", f"{file}@left", *hat).error
    assert "-360 to 360" in tyto("check", f"{file}@nan", *hat).error
    assert "folder that is there" in tyto("check", file, *hat, "-o", tmp_path / "no" / "new.toml").error
    assert "give no files" in tyto("check", file, *hat, "--evaluate", "3").error
    assert "--mixup takes" in tyto("check", *hat, "--evaluate", "3", "--mixup", "cables").error
    listed = tmp_path / "list.csv"
    for content, why in (
        (b"a.wav,90,3\n", "a line is file,azimuth"),
        (b"a.wav,front\n", "'front' is not a direction"),
        (b"\xff\xfe\x00", "is not a CSV"),
    ):
        listed.write_bytes(content)
        assert why in tyto("check", "--list", listed, *hat).error


def test_a_dead_channel_is_a_finding_not_a_warning(tyto: Tyto, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sound = 0.1 * rng.standard_normal((4, 24000))
    sound[2] = 0
    write_audio(tmp_path / "dead.wav", sound, 16000)
    ran = tyto("check", tmp_path / "dead.wav", "-a", "respeaker-4mic-hat")
    assert ran.code == 1
    assert "channel 2 is dead" in ran.out
    assert "warning" not in ran.err


def test_an_evaluation_in_words_and_json(tyto: Tyto) -> None:
    words = tyto("check", "--evaluate", "1", "-a", "respeaker-4mic-hat", "--seed", "3")
    assert words.code == 0
    assert "1 of 1 right, 0 wrong, 0 cannot tell" in words.out
    found = json.loads(
        tyto("check", "--evaluate", "1", "-a", "respeaker-4mic-hat", "--seed", "3", "--json").out
    )
    assert (found["right"], found["trials"], found["mixup"], found["seconds"]) == (1, 1, "order", 3.0)
    hat = ("-a", "respeaker-4mic-hat")
    short = tyto("check", "--evaluate", "1", *hat, "--seed", "3", "--seconds", "1", "--json")
    assert json.loads(short.out)["seconds"] == 1.0
    assert "1 to 60 seconds" in tyto("check", "--evaluate", "1", *hat, "--seconds", "0.2").error
