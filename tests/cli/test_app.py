"""The command: results on standard output, everything else on standard error, refusals in one line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

from tests.helpers.commands import Ran, Tyto
from tests.helpers.waves import plane_wave
from tytoalba import __version__
from tytoalba.cli.app import app
from tytoalba.data.datasets import open_dataset
from tytoalba.signal.angles import distance
from tytoalba.signal.array import builtin_arrays, load_array
from tytoalba.storage.soundfiles import write_audio

PEPPER, RESPEAKER = load_array("pepper"), load_array("respeaker-usb-4")
PNG = b"\x89PNG\r\n\x1a\n"
ODAS = """
# Configuration of a robot
raw: { fS = 16000; }
mapping: { map: (2, 1); }
general: {
  mics = (
    { mu = ( -0.02, +0.00, 0.01 ); },
    { mu = ( +0.02, +0.00, 0.01 ); }
  );
}
"""


def process(*arguments: str | Path, stdin: bytes = b"") -> Ran:
    """Run the command as a process of its own."""
    command = [sys.executable, "-c", "from tytoalba.cli.app import main; main()", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound from 140 degrees, then silence."""
    path = tmp_path_factory.mktemp("sound") / "talk.wav"
    sound = np.concatenate([plane_wave(PEPPER, 140.0), np.zeros((4, 24000), np.float32)], axis=1)
    write_audio(path, sound, 48000)
    return path


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `tyto simulate` wrote for a ReSpeaker."""
    root = tmp_path_factory.mktemp("simulated") / "data"
    arguments = ["simulate", str(root), "--array", "respeaker-usb-4", "--size", "0.03", "-j", "1"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "4 recordings of 4 s written to" in result.stderr
    assert result.stdout == ""
    return root


def words(text: str) -> str:
    """Text without boxes and line breaks."""
    return " ".join("".join(" " if c in "│╭╮╰╯─" else c for c in text).split())


def cells(table: str) -> list[list[str]]:
    """The rows of a table that was printed."""
    rows = [line.split("│")[1:-1] for line in table.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row] for row in rows]


# --- help -------------------------------------------------------------------------------------------------


def test_every_command_says_what_it_does() -> None:
    group: Any = typer.main.get_command(app)
    runner = CliRunner()
    seen = []

    def visit(command: Any, path: list[str]) -> None:
        result = runner.invoke(app, [*path, "--help"], catch_exceptions=False)
        assert result.exit_code == 0
        about = str(command.help).split("\n")[0].replace("[bold]", "").replace("[/]", "")
        assert len(about) > 20
        assert about.split(":")[0][:40] in words(result.stdout)
        assert "Traceback" not in result.output
        seen.append(" ".join(path))
        for name, child in getattr(command, "commands", {}).items():
            visit(child, [*path, name])

    visit(group, [])
    assert {"array list", "array show", "array import", "locate", "simulate", "score", "speed"} <= set(seen)


@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        (
            ["locate"],
            ["--array", "--method", "--sources", "--band", "--json", "--csv", "--plot", "0 is the array"],
        ),
        (["simulate"], ["--preset", "--features", "--layout", "--speech", "--size", "--seed", "--moving"]),
        (["score"], ["--method", "--part", "--json", "MAE in degrees", "resampling whole recordings"]),
        (["array", "show"], ["--toml", "--plot", "cannot tell"]),
        (["array", "import"], ["ODAS", "--output"]),
    ],
)
def test_help_names_the_options(command: list[str], mentions: list[str]) -> None:
    text = words(CliRunner().invoke(app, [*command, "--help"]).stdout)
    for mention in mentions:
        assert mention in text


def test_version_and_no_arguments(tyto: Tyto) -> None:
    assert tyto("--version") == Ran(0, f"tyto {__version__}\n", "")
    nothing = tyto()
    assert "Where does a sound come from?" in nothing.out
    assert "Traceback" not in nothing.err


def test_unknown_commands_and_options_are_refused(tyto: Tyto) -> None:
    for arguments in (["fly"], ["locate"], ["locate", "x.wav", "--lift"], ["simulate", "x", "--size", "big"]):
        ran = tyto(*arguments)
        assert ran.code == 2
        assert "Traceback" not in ran.err
        assert ran.out == ""


# --- arrays -----------------------------------------------------------------------------------------------


def test_arrays_are_listed(tyto: Tyto) -> None:
    table = tyto("array", "list")
    assert table.code == 0
    lines = table.out.splitlines()
    assert len(lines) < len(builtin_arrays()) + 5
    assert max(map(len, lines)) <= 80
    for name, array in builtin_arrays().items():
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line.split()[1:3] == [str(array.n_mics), str(array.sample_rate)]
    listed = json.loads(tyto("array", "list", "--json").out)
    assert {row["name"]: row["n_mics"] for row in listed} == {
        name: array.n_mics for name, array in builtin_arrays().items()
    }


def test_an_array_is_shown(tyto: Tyto, tmp_path: Path) -> None:
    shown = tyto("array", "show", "pepper")
    assert "48000 Hz, 6 pairs, largest delay 12.6 samples" in shown.out
    assert "cannot tell up/down" in shown.out
    sketch = shown.out[shown.out.index("front".center(37).rstrip()) :].splitlines()
    rows = {digit: i for i, line in enumerate(sketch[:16]) for digit in "0123" if digit in line}
    columns = {digit: sketch[row].index(digit) for digit, row in rows.items()}
    assert rows["2"] == rows["3"] < rows["0"] == rows["1"]  # front is up
    assert columns["0"] == columns["2"] < columns["1"] == columns["3"]  # left is left
    facts = json.loads(tyto("array", "show", "pepper", "--json").out)
    assert facts["positions"][0] == [-0.0267, 0.0343, 0.0]
    assert facts["max_delay_samples"] == pytest.approx(12.572, abs=0.001)
    toml = tyto("array", "show", "respeaker-usb-4", "--toml").out
    (tmp_path / "mine.toml").write_text(toml)
    assert load_array(tmp_path / "mine.toml") == RESPEAKER
    assert json.loads(tyto("array", "show", tmp_path / "mine.toml", "--json").out)["channels"] == [1, 2, 3, 4]


def test_an_array_is_drawn(tyto: Tyto, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = tyto("array", "show", "linear-4", "--plot", tmp_path / "array.png")
    assert ran.code == 0
    assert (tmp_path / "array.png").read_bytes().startswith(PNG)
    assert "cannot tell front/back" in ran.out
    tyto("array", "show", "linear-4", "--plot", tmp_path / "array.svg")
    assert "<svg" in (tmp_path / "array.svg").read_text()
    for name in ("array.xyz", "array"):
        error = tyto("array", "show", "linear-4", "--json", "--plot", tmp_path / name)
        assert error.code == 2
        assert "the name of a picture ends in .png, .svg, .pdf" in error.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["array.png", "array.svg"]


def test_names_may_look_like_markup(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(
        "name = 'kit [/b] [red]'\ndescription = '[see] [/i]'\nsample_rate = 8000\n"
        "positions = [[0.0, 0.1], [0.1, 0.0]]\n"
    )
    assert "kit [/b] [red]  [see] [/i]" in tyto("array", "show", tmp_path / "odd.toml").out


def test_an_odas_configuration_is_imported(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "robot.cfg").write_text(ODAS)
    printed = tyto("array", "import", tmp_path / "robot.cfg")
    assert printed.code == 0
    written = tyto("array", "import", tmp_path / "robot.cfg", "--output", tmp_path / "robot.toml")
    assert written.out == ""
    assert "2 microphones written to" in words(written.err)
    assert (tmp_path / "robot.toml").read_text() == printed.out
    array = load_array(tmp_path / "robot.toml")
    assert (array.name, array.sample_rate, array.channels) == ("robot", 16000, (1, 0))
    assert array.positions == ((-0.02, 0.0, 0.01), (0.02, 0.0, 0.01))
    assert tyto("array", "import", tmp_path / "robot.toml").out == printed.out  # checks a TOML file


def test_wrong_arrays_are_refused(tyto: Tyto, tmp_path: Path) -> None:
    assert "built in: linear-4" in tyto("array", "show", "salt").error
    (tmp_path / "empty.cfg").write_text("nothing")
    assert "no microphone found" in tyto("array", "import", tmp_path / "empty.cfg").error
    (tmp_path / "cm.toml").write_text("name = 'cm'\nsample_rate = 16000\npositions = [[0, 0], [10, 0]]\n")
    assert "did you give centimetres" in tyto("array", "import", tmp_path / "cm.toml").error
    assert "cannot read" in tyto("array", "import", tmp_path / "none.cfg").error
    (tmp_path / "good.toml").write_text(PEPPER.to_toml())
    nowhere = tyto("array", "import", tmp_path / "good.toml", "-o", tmp_path / "no" / "x.toml")
    assert "No such file or directory" in nowhere.error


# --- locate -----------------------------------------------------------------------------------------------


def test_locate_prints_a_table(tyto: Tyto, recording: Path) -> None:
    ran = tyto("locate", recording, "-a", "pepper")
    assert ran.code == 0
    rows = cells(ran.out)
    assert len(rows) == 10
    assert [row[0] for row in rows[:3]] == ["0.09", "0.17", "0.26"]
    assert [row[1] for row in rows[:4]] == ["140"] * 4
    assert [row[1] for row in rows[-3:]] == ["silent"] * 3


def test_locate_prints_json_lines(tyto: Tyto, recording: Path) -> None:
    lines = [
        json.loads(line) for line in tyto("locate", recording, "-a", "pepper", "--json").out.splitlines()
    ]
    assert len(lines) == 10
    assert all(set(line) == {"time", "azimuth", "score", "probability"} for line in lines)
    assert lines[0]["time"] == pytest.approx(4096 / 48000, abs=1e-4)
    assert [line["azimuth"] for line in lines[:4]] == [[140.0]] * 4
    assert [line["azimuth"] for line in lines[-3:]] == [[]] * 3
    two = [
        json.loads(line)
        for line in tyto("locate", recording, "-a", "pepper", "--json", "--sources", "2").out.splitlines()
    ]
    assert [len(line["azimuth"]) for line in two[:4]] == [2] * 4
    auto = tyto(
        "locate",
        recording,
        "-a",
        "pepper",
        "--json",
        "--sources",
        "auto",
        "--method",
        "music",
        "--band",
        "500-4000",
    )
    assert json.loads(auto.out.splitlines()[0])["azimuth"][0] == pytest.approx(140.0, abs=1)


def test_locate_prints_csv(tyto: Tyto, recording: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tyto("locate", recording, "-a", "pepper", "--csv").out)))
    assert 5 <= len(rows) <= 7  # a silent frame has no row
    assert {row["azimuth"] for row in rows[:4]} == {"140.0"}
    for row in rows[:4]:
        assert 0.8 < float(row["score"]) <= 1
        assert len(row["score"]) <= 6


def test_locate_draws(tyto: Tyto, recording: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = tyto("locate", recording, "-a", "pepper", "--json", "--plot", tmp_path / "talk.png")
    assert (tmp_path / "talk.png").read_bytes().startswith(PNG)
    assert "drawn:" in ran.err
    assert all(json.loads(line) for line in ran.out.splitlines())
    quiet = tyto(
        "locate", recording, "-a", "pepper", "--csv", "--silence", "0", "--plot", tmp_path / "quiet.png"
    )
    assert quiet.out == "time,azimuth,score,probability\n"
    assert (tmp_path / "quiet.png").read_bytes().startswith(PNG)


def test_locate_takes_one_file_a_microphone(tyto: Tyto, tmp_path: Path) -> None:
    paths = [tmp_path / f"mic{i}.wav" for i in range(4)]
    for path, channel in zip(paths, plane_wave(PEPPER, 33.0), strict=True):
        write_audio(path, channel, 48000)
    lines = tyto("locate", *paths, "-a", "pepper", "--json").out.splitlines()
    assert {tuple(json.loads(line)["azimuth"]) for line in lines} == {(33.0,)}


def test_locate_says_what_the_array_cannot_tell(tyto: Tyto, tmp_path: Path) -> None:
    write_audio(tmp_path / "four.wav", plane_wave(PEPPER, 33.0), 48000)
    assert "linear-4 cannot tell front/back" in tyto("locate", tmp_path / "four.wav", "-a", "linear-4").err


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--method", "ears"], "no method called 'ears'; known: srp, music"),
        (["--json", "--csv"], "give one of --json, --csv and --dcase"),
        (["--sources", "4"], "--sources takes auto or a number from 1 to 3, got '4'"),
        (["--sources", "0"], "--sources takes auto or a number from 1 to 3"),
        (["--sources", "many"], "--sources takes auto or a number from 1 to 3"),
        (["--array", "salt"], "no array called 'salt' and no such file; built in:"),
        (["--band", "low"], "a band is LOW-HIGH in Hz, such as 100-8000, or 'full'; got 'low'"),
        (["--band", "8000-100"], "no band '8000-100': LOW must be at least 50 Hz below HIGH"),
        (["--band", "30000-40000"], "below 24000 Hz, the highest frequency at 48000 Hz"),
        (["--band", "nan-100"], "no band 'nan-100'"),
        (["--method", "music", "--band", "100-101"], "at least 50 Hz below HIGH"),
        (["--array", "minidsp-uma8"], "channels that came: 4"),
    ],
)
def test_locate_refuses_with_the_remedy(tyto: Tyto, recording: Path, options: list[str], remedy: str) -> None:
    ran = tyto("locate", recording, "-a", "pepper", *options)
    assert remedy in ran.error
    assert ran.out == ""


def test_locate_reads_standard_input(recording: Path) -> None:
    ran = process("locate", "-", "-a", "pepper", "--json", stdin=recording.read_bytes())
    assert ran.code == 0
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert len(lines) == 10
    assert lines[0]["azimuth"] == [140.0]
    assert ran.err == ""


def test_a_bad_file_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    long = tmp_path / ("a_rather_long_name_" * 6 + ".wav")
    long.write_text("this is no sound at all\n")
    ran = process("locate", long, "-a", "pepper")
    assert str(long) in ran.error
    assert "is text, not sound" in ran.error
    assert ran.out == ""


def test_suspicious_sound_is_warned_of_without_a_traceback(tmp_path: Path) -> None:
    sound = plane_wave(PEPPER, 10.0)
    sound[2] = 0.0
    write_audio(tmp_path / "dead.wav", sound, 48000)
    ran = process("locate", tmp_path / "dead.wav", "-a", "pepper", "--json")
    assert ran.code == 0
    (line,) = ran.err.splitlines()
    assert line.startswith("warning:")
    assert "channel 2 is dead" in line
    assert len(ran.out.splitlines()) == 4


# --- score ------------------------------------------------------------------------------------------------


def test_score_prints_a_table(tyto: Tyto, simulated: Path) -> None:
    ran = tyto("score", simulated, "-m", "srp", "-m", "music", "-j", "1")
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines() if line[:5].strip() in ("srp", "music")]
    overall = [row for row in rows if row[1] == "all"]
    assert [row[0] for row in overall] == ["srp", "music"]
    for _, _, n_frames, mae, acc in overall:
        assert int(n_frames) > 0
        assert 0 <= float(mae) <= 180
        assert 0 <= float(acc) <= 100
    for words in ("N: sources at a time", "95 % intervals", "f/b: front"):
        assert words in ran.out


def test_score_prints_json_and_draws(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = tyto("score", simulated, "--part", "train", "--json", "-j", "1", "--plot", tmp_path / "errors.png")
    result = json.loads(ran.out)
    assert (result["data"], result["part"], result["band"]) == ("data", "train", "100-8000")
    assert {row["method"] for row in result["rows"]} == {"srp"}
    labelled = np.concatenate([r.n_sources for r in open_dataset(simulated) if r.subset == "train"])
    for row in result["rows"]:
        assert row["n_frames"] == (labelled == row["n_sources"]).sum()
        assert row["acc"] == pytest.approx(row["acc_at"]["5"], abs=0.01)
        assert row["acc_interval"][0] <= row["acc"] <= row["acc_interval"][1]
        assert 0 <= row["mae"] <= 180
    assert (tmp_path / "errors.png").read_bytes().startswith(PNG)


def test_score_of_one_recording_has_no_interval(tyto: Tyto, simulated: Path) -> None:
    (row, *_) = json.loads(tyto("score", simulated, "--part", "valid", "--json", "-j", "1").out)["rows"]
    assert row["mae_interval"] == [None, None]
    assert row["acc_interval"] == [None, None]
    table = tyto("score", simulated, "--part", "valid", "-j", "1")
    assert table.code == 0
    assert f"{row['mae']:.2f}" in table.out


def test_score_of_a_model_says_how_far_it_can_be_trusted(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    state = tmp_path / "k.tyto"
    assert tyto("new", state, "-a", "respeaker-usb-4", "--features", "50").code == 0
    before = state.read_bytes()
    ran = tyto("score", simulated, "-m", "srp", "-M", state, "--json", "--reliability", tmp_path / "sure.png")
    rows = json.loads(ran.out)["rows"]
    assert {row["method"] for row in rows} == {"srp", "k.tyto"}
    for row in rows:
        told = row["method"] == "k.tyto"
        assert (row["calibration_error"] is not None) is told
        assert (row["surer_half"] is not None) is told
        if told:
            assert 0 <= row["calibration_error"] <= 1
            assert 0 <= row["surer_half"] <= 100
    assert (tmp_path / "sure.png").read_bytes().startswith(PNG)
    table = tyto("score", simulated, "-M", state)
    assert "srp" not in table.out
    for row in rows[-2:]:
        assert f"{row['surer_half']:.1f}" in table.out
    assert state.read_bytes() == before
    again = tmp_path / "again"
    again.mkdir()
    (again / "k.tyto").write_bytes(before)
    (again / "srp").write_bytes(before)
    for twins in (("-M", state, "-M", again / "k.tyto"), ("-m", "srp", "-M", again / "srp")):
        assert "need different names to be told apart" in tyto("score", simulated, *twins).error
    for models in ((), ("-M", state, "-M", again / "srp")):
        ran = tyto("score", simulated, *models, "--reliability", tmp_path / "no.png")
        assert "--reliability draws how sure one --model is" in ran.error
    assert not (tmp_path / "no.png").exists()
    assert tyto("new", tmp_path / "p.tyto", "-a", "pepper", "--features", "50").code == 0
    assert (
        "was recorded by another array than pepper"
        in tyto("score", simulated, "-M", tmp_path / "p.tyto").error
    )


def test_score_refuses_with_the_remedy(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    assert "tyto simulate makes a data set" in tyto("score", tmp_path / "nowhere").error
    assert "holds no data set that is known" in tyto("score", tmp_path).error
    assert "no method called 'ears'; known: srp, music" in tyto("score", simulated, "-m", "ears").error
    assert "has no part called 'attic'" in tyto("score", simulated, "--part", "attic").error
    assert "no band '8000-100'" in tyto("score", simulated, "--band", "8000-100").error
    for picture, why in (("sure.txt", "the name of a picture ends in .png"), ("no/sure.png", "no folder")):
        for option in ("--plot", "--reliability"):
            assert why in tyto("score", tmp_path / "nowhere", option, tmp_path / picture).error  # said first
    (simulated / "test" / "extra.wav").write_bytes(b"")
    try:
        assert "extra.wav has no labels" in tyto("score", simulated).error
    finally:
        (simulated / "test" / "extra.wav").unlink()


def test_what_is_located_is_what_was_simulated(tyto: Tyto, simulated: Path) -> None:
    """The whole way: simulate, then locate one of its files with the array file beside it."""
    recording = next(r for r in open_dataset(simulated) if r.subset == "train" and r.n_sources.max() == 1)
    sound = simulated / "train" / f"{recording.name}.wav"
    ran = tyto("locate", sound, "--array", simulated / "array.toml", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    talking = recording.n_sources == 1
    found = [lines[frame]["azimuth"][0] for frame in recording.frame_ids[talking]]
    error = distance(found, recording.azimuth[talking, 0])
    assert np.mean(error <= 10) > 0.5
