"""`tyto locate --tracks`: segments, words, JSON, RTTM, labels, and what does not go together."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.helpers.commands import Tyto
from tests.helpers.localizers import ARRAY
from tests.helpers.waves import plane_wave
from tytoalba.storage.soundfiles import write_audio

SRP = ("--array", ARRAY.name, "--method", "srp", "--tracks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """talk.wav: from 200 degrees; fan.wav: from 80 degrees; both.wav: the fan, then both."""
    made = tmp_path_factory.mktemp("sound")
    talk, fan = plane_wave(ARRAY, 200.0, 1.5, level=0.2), plane_wave(ARRAY, 80.0, 2.5, seed=3)
    both = fan.copy()
    both[:, -talk.shape[1] :] += talk
    for name, sound in (("talk", talk), ("fan", fan), ("both", both)):
        write_audio(made / f"{name}.wav", sound, ARRAY.sample_rate)
    return made


def test_the_demo_is_told_in_segments_and_in_words(tyto: Tyto) -> None:
    ran = tyto("locate", "--demo", "--tracks", "--method", "srp")
    assert ran.code == 0, ran.err
    head, *rows = ran.out.splitlines()
    assert head.split() == ["start", "(s)", "end", "(s)", "azimuth", "(degrees)", "id"]
    assert [round(float(row.split()[2]), -1) for row in rows] == [40, 250, 40]
    assert [row.split()[3] for row in rows] == ["1", "2", "1"]
    assert "demo.flac --array respeaker-usb-4 --method srp --tracks" in ran.err
    assert re.search(r"two people: \d\d degrees for \d\d % of the time, 2\d\d degrees for \d\d %", ran.err)


def test_json_has_one_object_per_frame_of_one_schema(tyto: Tyto, folder: Path) -> None:
    ran = tyto("locate", folder / "talk.wav", *SRP, "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert len(rows) == 16
    assert all(list(row) == ["time", "tracks", "level", "dropped", "latency", "faults"] for row in rows)
    last = rows[-1]["tracks"][0]
    assert list(last) == ["id", "azimuth", "probability", "since", "speaking"]
    assert last["id"] == 1
    assert last["azimuth"] == pytest.approx(200, abs=3)
    assert last["speaking"] is True


def test_other_formats_and_endings(tyto: Tyto, folder: Path, tmp_path: Path) -> None:
    talk = folder / "talk.wav"
    (row,) = csv.DictReader(io.StringIO(tyto("locate", talk, *SRP, "--csv").out))
    assert float(row["azimuth"]) == pytest.approx(200, abs=3)
    assert row["id"] == "1"
    assert tyto("locate", talk, *SRP, "--rttm").out.startswith("SPEAKER talk 1 0.")
    assert tyto("locate", talk, *SRP, "--labels").out.endswith("talker 1: 200 degrees\n")
    assert tyto("locate", talk, *SRP, "-o", tmp_path / "talk.rttm").code == 0
    assert (tmp_path / "talk.rttm").read_text().split()[7] == "talker1"


def test_several_recordings_have_their_names(tyto: Tyto, folder: Path) -> None:
    ran = tyto("locate", folder / "talk.wav", folder / "fan.wav", "--each", *SRP, "--csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [Path(row["file"]).name for row in rows] == ["talk.wav", "fan.wav"]
    assert {row["id"] for row in rows} == {"1"}  # each begins anew
    assert "one person" in ran.err


@pytest.mark.parametrize("background", ["0.9", "fan.wav"])
def test_a_background_is_left_out(
    tyto: Tyto, folder: Path, monkeypatch: pytest.MonkeyPatch, background: str
) -> None:
    monkeypatch.chdir(folder)
    with_fan = tyto("locate", "both.wav", *SRP, "--csv")
    assert any(abs(float(row["azimuth"]) - 80) < 10 for row in csv.DictReader(io.StringIO(with_fan.out)))
    ran = tyto("locate", "both.wav", *SRP, "--background", background, "--csv")
    (row,) = csv.DictReader(io.StringIO(ran.out))
    assert float(row["azimuth"]) == pytest.approx(200, abs=12)


def test_a_background_is_learned_by_itself(tyto: Tyto, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    ends = []
    for options in ((), ("--background", "auto")):
        rows = csv.DictReader(io.StringIO(tyto("locate", "both.wav", *SRP, *options, "--csv").out))
        ends.append([float(row["end"]) for row in rows if abs(float(row["azimuth"]) - 80) < 10][-1])
    assert ends[1] < ends[0] - 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tracks", "--sources", "2"), "leave out --sources"),
        (("--tracks", "--context", "4"), "leave out --context"),
        (("--tracks", "--dcase"), "leave out --dcase"),
        (("--tracks", "--plot", "x.png"), "leave out --plot"),
        (("--tracks", "--rttm", "--labels"), "give one of"),
        (("--rttm",), "say --tracks as well"),
        (("--background", "2"), "say --tracks as well"),
        (("--tracks", "--background", "0"), "above 0"),
        (("--tracks", "--background", "no.wav"), "no file no.wav"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tyto: Tyto, folder: Path, options: tuple[str, ...], message: str
) -> None:
    ran = tyto("locate", folder / "talk.wav", "--array", ARRAY.name, *options)
    assert ran.code != 0
    assert message in ran.err
    assert not ran.out
