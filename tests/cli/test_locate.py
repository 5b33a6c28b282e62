"""`tyto locate`: every method and model, every form of output, line by line as the sound comes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.commands import PNG, Ran, Tyto, process, start
from tests.helpers.states import ARRAY, contents, move_in, settle, wave, write_wave
from tests.helpers.waves import plane_wave
from tytoalba.cli.locate import dcase_lines
from tytoalba.data.datasets import open_dataset
from tytoalba.data.demo import demo_recording
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array
from tytoalba.storage.keys import add_default_recipients, identity_path, make_identity, make_key_folder
from tytoalba.storage.sealed import seal_file
from tytoalba.storage.soundfiles import write_audio

PEPPER = load_array("pepper")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """a.wav and a.wav.age from 200 degrees; k.tyto, s.age and m.model, which learned the same.

    other.txt: a key that opens nothing.
    """
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        settle(patch, folder)
        make_key_folder()
        add_default_recipients([public := make_identity(identity_path())])
        make_identity(folder / "other.txt")
        seal_file(write_wave(folder / "a.wav", 200.0, 1.0), folder / "a.wav.age", [public])
        localizer = Localizer.new(ARRAY, n_features=40, seed=1)
        localizer.teach(wave(200.0, 0.4, 1), 200.0)
        store.create(folder / "k.tyto", localizer)
        store.create(folder / "s.age", localizer, sealed=True)
        store.export_exact(localizer, folder / "m.model", plain=True)
        yield folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    move_in(made, tmp_path)
    settle(monkeypatch, tmp_path)
    return tmp_path


def test_states_sealed_states_and_models_answer_alike(tyto: Tyto, folder: Path) -> None:
    before = contents(folder)
    answers = [
        [json.loads(line) for line in tyto("locate", sound, "--model", model, "--json").out.splitlines()]
        for sound, model in (
            ("a.wav", "k.tyto"),
            ("a.wav.age", "s.age"),
            ("a.wav", "m.model"),
            ("a.wav.age", "m.model"),
        )
    ]
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]  # the model is coarser about the prior's weight
    assert [len(rows) for rows in answers] == [10] * 4
    assert answers[0][0]["time"] == 0.0853
    for row in answers[0] + answers[2]:
        assert row["azimuth"] == pytest.approx([200.0], abs=5.0)
        assert 0.5 < row["probability"][0] < 1.0
    assert contents(folder) == before


@pytest.mark.usefixtures("folder")
def test_every_form_says_the_same(tyto: Tyto) -> None:
    by_json = [
        json.loads(line) for line in tyto("locate", "a.wav", "-M", "m.model", "--json").out.splitlines()
    ]
    table = list(csv.DictReader(io.StringIO(tyto("locate", "a.wav", "-M", "m.model", "--csv").out)))
    assert [float(row["time"]) for row in table] == [row["time"] for row in by_json]
    assert [float(row["azimuth"]) for row in table] == [row["azimuth"][0] for row in by_json]
    assert [float(row["probability"]) for row in table] == [row["probability"][0] for row in by_json]
    lines = tyto("locate", "a.wav", "-M", "m.model", "--dcase").out.splitlines()
    assert [line.split(",")[0] for line in lines] == [str(n) for n in range(9)]
    expected = round(by_json[0]["azimuth"][0]) - 360
    assert lines[0] == f"0,0,0,{expected},0"
    assert expected == pytest.approx(-160, abs=5)
    shown = tyto("locate", "a.wav", "-M", "m.model").out
    assert f" {round(by_json[0]['azimuth'][0])} " in shown
    assert "azimuth (degrees)" in shown


def test_dcase_takes_the_nearest_frame_and_leaves_out_silence() -> None:
    frames = [
        Located(0.05, (10.0, 181.0), (0.9, 0.8)),
        Located(0.12, (), ()),
        Located(0.27, (359.6,), (0.9,)),
    ]
    assert list(dcase_lines(frames, "")) == ["0,0,0,10,0", "0,0,1,-179,0", "2,0,0,0,0"]
    assert list(dcase_lines([], "")) == []
    hour = [Located(0.0853 * n, (90.0,), (0.9,)) for n in range(42_000)]  # at once, not after minutes
    assert sum(1 for _ in dcase_lines(hour, "")) == int(hour[-1].time / 0.1) + 1


def test_context_hears_neighbours_together(tyto: Tyto, folder: Path) -> None:
    noisy = wave(200.0, 1.0) + 0.5 * wave(40.0, 1.0, 5)[:, ::-1]
    write_audio(folder / "noisy.wav", noisy / 2, load_array(ARRAY).sample_rate)
    alone, together = (
        [
            json.loads(line)["azimuth"]
            for line in tyto("locate", "noisy.wav", "-M", "k.tyto", "--json", *more).out.splitlines()
        ]
        for more in ((), ("--context", "4"))
    )
    assert len(alone) == len(together) == 10
    assert alone != together
    assert all(azimuth == pytest.approx([200.0], abs=6.0) for azimuth in together)


def test_unsure_and_untaught_answers_are_left_out(tyto: Tyto, folder: Path) -> None:
    def shown(*options: str) -> str:
        return tyto("locate", "a.wav", "--model", "k.tyto", *options).out

    assert shown("--taught-only", "--at-least", "0.1") == shown()
    assert all(
        line.endswith("  unsure") for line in shown("--at-least", "1").splitlines()[1:]
    )  # and no silence
    write_wave(folder / "b.wav", 90.0, 1.0)
    assert tyto("locate", "b.wav", "--model", "k.tyto", "--csv").out.count("\n") > 5
    assert tyto("locate", "b.wav", "--model", "k.tyto", "--csv", "--taught-only").out.count("\n") == 1


def test_several_sources_one_file_a_microphone_and_a_picture(tyto: Tyto, folder: Path) -> None:
    files = [f"mic{n}.wav" for n in range(4)]
    for name, samples in zip(files, wave(200.0, 1.0), strict=True):
        write_audio(name, samples, load_array(ARRAY).sample_rate)
    ran = tyto("locate", *files, "-M", "k.tyto", "--sources", "auto", "--json", "--plot", "where.png")
    assert (ran.code, ran.err) == (0, "mic0.wav: 10 frames, 10 with a direction\ndrawn: where.png\n")
    assert (folder / "where.png").read_bytes().startswith(b"\x89PNG")
    assert ran.out == tyto("locate", "a.wav", "-M", "k.tyto", "--sources", "auto", "--json").out
    two = tyto("locate", "a.wav", "-M", "k.tyto", "--sources", "2", "--json").out.splitlines()
    assert all(len(json.loads(line)["azimuth"]) == 2 for line in two)
    silent = tyto("locate", "a.wav", "-M", "k.tyto", "--silence", "0", "--json").out.splitlines()
    assert [json.loads(line)["azimuth"] for line in silent] == [[]] * 10


@pytest.mark.usefixtures("folder")
def test_sound_through_standard_input(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tyto("locate", "a.wav", "--model", "m.model", "--json").out
    for command in ("cat a.wav", "cat < a.wav.age", None):  # a pipe; a pipe that is sealed; a sealed file
        with ExitStack() as stack:
            if command:
                process = stack.enter_context(subprocess.Popen(command, shell=True, stdout=subprocess.PIPE))
                assert process.stdout
                source: Any = process.stdout
            else:
                source = stack.enter_context(Path("a.wav.age").open("rb"))
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
            ran = tyto("locate", "-", "--model", "m.model", "--json")
        if command == "cat < a.wav.age":
            assert "pipe ffmpeg -i IN -f wav -, or, if it is sealed, tyto open FILE.age -o -" in ran.error
        else:
            assert ran.out == expected


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("a.wav -M m.model --taught-only", "a model does not tell where it was taught: ask the state"),
        ("a.wav -M k.tyto --array pepper", "leave out --array, --method and --band"),
        ("a.wav -M k.tyto --sources 4", "--sources takes auto or a number from 1 to 3, got '4'"),
        ("a.wav -a pepper --sources 4", "--sources takes auto or a number from 1 to 3, got '4'"),
        ("a.wav -a pepper --sources many", "--sources takes auto or a number from 1 to 3"),
        ("a.wav -a pepper --band low", "a band is LOW-HIGH in Hz"),
        ("a.wav -M k.tyto --json --dcase", "give one of --json, --csv, --dcase, --rttm and --labels"),
        ("a.wav -M gone.tyto", "gone.tyto: no such file; check its spelling"),
        ("a.wav -M /dev/zero", "/dev/zero is a device, not a file; check the path"),
        ("a.wav a.wav -M k.tyto", "several files must be mono|is given twice"),
        ("a.wav.age -M m.model --identity other.txt", "none of your keys opens a.wav.age"),
        ("a.wav -M s.age --identity other.txt", "none of your keys opens s.age"),
        ("a.wav -M m.model -o no/x.csv", "cannot write no/x.csv: give a file in a folder that is there"),
        ("a.wav -M m.model --plot x.txt", "the name of a picture ends in .png"),
        ("a.wav a.wav --each -M m.model --dcase", "--plot and --dcase take one recording"),
        ("-M m.model", "no recording; give one, or - for standard input, or try --demo"),
        ("empty -M m.model", "no recordings in empty; sound files end in .wav"),
        ("a.wav --demo", "--demo has its own recording and array"),
    ],
)
def test_refusals_name_the_remedy(
    tyto: Tyto, made: Path, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    settle(monkeypatch, made)
    (made / "empty").mkdir(exist_ok=True)
    before = contents(made)
    refusal = tyto("locate", *command.split()).error
    assert any(part in refusal for part in why.split("|")), refusal
    assert contents(made) == before


def test_altered_models_and_signatures_are_refused(tyto: Tyto, folder: Path) -> None:
    for name in ("m.model", "m.model.sig", "s.age", "s.age.ledger", "k.tyto.ledger"):
        whole = (folder / name).read_bytes()
        model = name.removesuffix(".sig").removesuffix(".ledger")
        flipped = bytes([whole[-30] ^ 1])
        for broken in (whole[: len(whole) // 2], whole[:-30] + flipped + whole[-29:]):
            (folder / name).write_bytes(broken)
            assert tyto("locate", "a.wav", "-M", model, "--json").error
        (folder / name).write_bytes(whole)


# --- without a model --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound from 140 degrees at Pepper, then silence."""
    path = tmp_path_factory.mktemp("sound") / "talk.wav"
    sound = np.concatenate([plane_wave(PEPPER, 140.0), np.zeros((4, 24000), np.float32)], axis=1)
    write_audio(path, sound, 48000)
    return path


def rows_of(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def test_a_table_of_80_columns(tyto: Tyto, recording: Path) -> None:
    ran = tyto("locate", recording, "-a", "pepper")
    head, *rows = ran.out.splitlines()
    assert head.split() == ["time", "(s)", "azimuth", "(degrees)", "score"]
    assert [row.split()[:2] for row in rows[:3]] == [["0.09", "140"], ["0.17", "140"], ["0.26", "140"]]
    assert [row.split()[1:] for row in rows[-3:]] == [["-"]] * 3
    assert ran.err == f"{recording}: 10 frames, 6 with a direction\n"
    auto = tyto("locate", "--demo", "--sources", "3").out.splitlines()
    assert auto[0].split()[-1] == "probability"
    assert max(map(len, auto)) <= 80


def test_json_lines(tyto: Tyto, recording: Path) -> None:
    rows = rows_of(tyto("locate", recording, "-a", "pepper", "--json"))
    assert len(rows) == 10
    assert all(set(row) == {"time", "azimuth", "score", "probability", "unsure"} for row in rows)
    assert rows[0]["time"] == pytest.approx(4096 / 48000, abs=1e-4)
    assert [row["azimuth"] for row in rows[:4]] == [[140.0]] * 4
    assert [row["azimuth"] for row in rows[-3:]] == [[]] * 3
    two = rows_of(tyto("locate", recording, "-a", "pepper", "--json", "--sources", "2"))
    assert [len(row["azimuth"]) for row in two[:4]] == [2] * 4
    music = ("--sources", "auto", "--method", "music", "--band", "500-4000")
    auto = rows_of(tyto("locate", recording, "-a", "pepper", "--json", *music))
    assert auto[0]["azimuth"][0] == pytest.approx(140.0, abs=1)


def test_csv_and_files_that_are_written(tyto: Tyto, recording: Path, tmp_path: Path) -> None:
    by_csv = tyto("locate", recording, "-a", "pepper", "--csv").out
    rows = list(csv.DictReader(io.StringIO(by_csv)))
    assert 5 <= len(rows) <= 7  # a silent frame has no row
    assert {row["azimuth"] for row in rows[:4]} == {"140.0"}
    for row in rows[:4]:
        assert 0.8 < float(row["score"]) <= 1
        assert len(row["score"]) <= 6
    for name, option in (("x.csv", "--csv"), ("x.JSON", "--json"), ("x.txt", "--dcase")):
        ran = tyto("locate", recording, "-a", "pepper", "-o", tmp_path / name, option)
        assert ran.out == ""
        assert ran.err.endswith(f"written to {tmp_path / name}\n")
        assert (tmp_path / name).read_text() == tyto("locate", recording, "-a", "pepper", option).out
    tyto("locate", recording, "-a", "pepper", "-o", tmp_path / "y.csv")
    assert (tmp_path / "y.csv").read_text() == by_csv
    broken = recording.read_bytes()[:-1000]
    (tmp_path / "cut.wav").write_bytes(broken)
    assert tyto("locate", tmp_path / "cut.wav", "-a", "pepper", "-o", tmp_path / "y.csv").code == 2
    assert (tmp_path / "y.csv").read_text() == by_csv  # whole or not at all


def test_a_folder_and_each(tyto: Tyto, recording: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    one, two = tmp_path / "in" / "one.wav", tmp_path / "two.wav"
    one.write_bytes(recording.read_bytes())
    write_audio(two, plane_wave(PEPPER, 33.0), 48000)
    (tmp_path / "in" / "notes.txt").write_text("no sound")
    rows = rows_of(tyto("locate", one, two, "--each", "-a", "pepper", "--json"))
    assert {(row["file"], row["azimuth"][0]) for row in rows if row["azimuth"]} == {
        (str(one), 140.0),
        (str(two), 33.0),
    }
    assert rows == rows_of(tyto("locate", tmp_path / "in", two, "-a", "pepper", "--json"))
    table = list(csv.DictReader(io.StringIO(tyto("locate", tmp_path, "-a", "pepper", "--csv").out)))
    assert {row["file"] for row in table} == {str(one), str(two)}
    alone = tyto("locate", tmp_path / "in", "-a", "pepper")
    assert alone.out.splitlines()[0] == str(one)


def test_it_draws_and_asks_for_matplotlib_first(
    tyto: Tyto, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    ran = tyto("locate", recording, "-a", "pepper", "--csv", "--silence", "0", "--plot", tmp_path / "a.png")
    assert ran.out == "time,azimuth,score,probability\n"
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = tyto("locate", recording, "-a", "pepper", "--plot", tmp_path / "b.png").error
    assert "pip install 'tytoalba[plot]'" in refused
    assert "plot" in tyto("array", "show", "pepper", "--plot", tmp_path / "b.png").error


def test_it_says_what_the_array_cannot_tell(tyto: Tyto, tmp_path: Path) -> None:
    write_audio(tmp_path / "four.wav", plane_wave(PEPPER, 33.0), 48000)
    assert "linear-4 cannot tell front/back" in tyto("locate", tmp_path / "four.wav", "-a", "linear-4").err


def test_the_demo_is_located_where_it_was_made(tyto: Tyto) -> None:
    ran = tyto("locate", "--demo", "--json")
    assert "tyto locate demo.flac --array respeaker-usb-4 --method prior --sources auto" in ran.err
    rows = rows_of(ran)
    _, truth = demo_recording()
    talking = [row for row in rows if truth[0].start + 0.1 < row["time"] < truth[0].end - 0.1]
    right = [abs(row["azimuth"][0] - truth[0].azimuth) <= 5 for row in talking if row["azimuth"]]
    assert len(right) > 20
    assert np.mean(right) > 0.9
    both = [row for row in rows if len(row["azimuth"]) == 2]
    assert len(both) > 5
    assert tyto("locate", "--demo", "--method", "srp").code == 0


@pytest.mark.parametrize("form", ["--json", "--csv", "--dcase", "table"])
def test_lines_come_while_the_sound_comes(form: str) -> None:
    raw = np.rint(plane_wave(PEPPER, 140.0, 1.0) * 2**15).astype("<i2").T.tobytes()
    options = [] if form == "table" else [form]
    with start(
        "locate", "-a", "pepper", "--raw", "s16le", "--channels", "4", "--rate", "48000", *options
    ) as run:
        assert run.stdin
        assert run.stdout
        alarm = threading.Timer(60.0, run.kill)  # rather than wait for ever
        alarm.start()
        run.stdin.write(raw)
        run.stdin.flush()
        lines = [run.stdout.readline().decode() for _ in range(8)]  # standard input is still open
        assert all("140" in line for line in lines[1:])
        alarm.cancel()
        run.stdin.close()
        assert run.wait() == 0


def test_sound_without_a_header_from_a_file(tyto: Tyto, tmp_path: Path) -> None:
    sound = plane_wave(PEPPER, 140.0)
    (tmp_path / "talk.raw").write_bytes(np.rint(sound * 2**15).astype("<i2").T.tobytes())
    how = ("--raw", "s16le", "--channels", "4", "--rate", "48000")
    rows = rows_of(tyto("locate", tmp_path / "talk.raw", *how, "-a", "pepper", "--json"))
    assert [row["azimuth"] for row in rows] == [[140.0]] * 4
    asked = tyto("locate", tmp_path / "talk.raw", *how).error
    assert "has 4 channels, 48 kHz: perhaps pepper" in asked
    for wrong, why in (
        (how[:2], "needs all three: --raw s16le --channels 6 --rate 16000"),
        (("x.raw", *how), "--raw reads one recording"),
        (("--raw", "mp3", *how[2:], "-a", "pepper"), "no encoding called 'mp3'"),
    ):
        assert why in tyto("locate", tmp_path / "talk.raw", *wrong).error


def test_standard_input_and_warnings(recording: Path, tmp_path: Path) -> None:
    ran = process("-q", "locate", "-", "-a", "pepper", "--json", stdin=recording.read_bytes())
    assert (ran.code, ran.err) == (0, "")
    rows = rows_of(ran)
    assert len(rows) == 10
    assert rows[0]["azimuth"] == [140.0]
    sound = plane_wave(PEPPER, 10.0)
    sound[2] = 0.0
    write_audio(tmp_path / "dead.wav", sound, 48000)
    ran = process("-q", "locate", tmp_path / "dead.wav", "-a", "pepper", "--json")
    (line,) = ran.err.splitlines()
    assert line.startswith("warning:")
    assert "channel 2 is dead" in line
    assert len(ran.out.splitlines()) == 4


def test_a_bad_file_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    long = tmp_path / ("a_rather_long_name_" * 6 + ".wav")
    long.write_text("this is no sound at all\n")
    ran = process("locate", long, "-a", "pepper")
    assert str(long) in ran.error
    assert "is text, not sound" in ran.error


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
