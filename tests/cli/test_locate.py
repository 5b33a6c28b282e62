"""`tyto locate --model`: a state, a sealed state and a model give the same answers, in every form."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.commands import Tyto
from tests.helpers.states import ARRAY, contents, settle, wave, write_wave
from tytoalba.cli.locate import _dcase
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.stream import Located
from tytoalba.signal.array import load_array
from tytoalba.storage.keys import add_default_recipients, identity_path, make_identity, make_key_folder
from tytoalba.storage.sealed import seal_file
from tytoalba.storage.soundfiles import write_audio


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
        owl = Localizer.new(ARRAY, n_features=40, seed=1)
        owl.teach(wave(200.0, 0.4, 1), 200.0)
        store.create(folder / "k.tyto", owl)
        store.create(folder / "s.age", owl, sealed=True)
        store.export(owl, folder / "m.model")
        yield folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
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
    assert list(_dcase(frames)) == ["0,0,0,10,0", "0,0,1,-179,0", "2,0,0,0,0"]
    assert list(_dcase([])) == []
    hour = [Located(0.0853 * n, (90.0,), (0.9,)) for n in range(42_000)]  # at once, not after minutes
    assert sum(1 for _ in _dcase(hour)) == int(hour[-1].time / 0.1) + 1


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
    assert "none" in shown("--at-least", "1")
    assert "silent" not in shown("--at-least", "1")
    write_wave(folder / "b.wav", 90.0, 1.0)
    assert tyto("locate", "b.wav", "--model", "k.tyto", "--csv").out.count("\n") > 5
    assert tyto("locate", "b.wav", "--model", "k.tyto", "--csv", "--taught-only").out.count("\n") == 1


def test_several_sources_one_file_a_microphone_and_a_picture(tyto: Tyto, folder: Path) -> None:
    files = [f"mic{n}.wav" for n in range(4)]
    for name, samples in zip(files, wave(200.0, 1.0), strict=True):
        write_audio(name, samples, load_array(ARRAY).sample_rate)
    ran = tyto("locate", *files, "-M", "k.tyto", "--sources", "auto", "--json", "--plot", "where.png")
    assert (ran.code, ran.err) == (0, "drawn: where.png\n")
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
        ("a.wav -a pepper --at-least 0.5", "at_least needs a method that knows its chance to be right"),
        ("a.wav -a pepper --taught-only", "taught_only needs a Localizer"),
        ("a.wav -M k.tyto --at-least 2", "at_least must be a chance from 0 to 1, got 2"),
        ("a.wav -M m.model --taught-only", "a model does not tell where it was taught: ask the state"),
        ("a.wav -M k.tyto --array pepper", "leave out --array, --method and --band"),
        ("a.wav -M k.tyto --method srp", "leave out --array, --method and --band"),
        ("a.wav -M k.tyto --sources 3", "--sources takes 1, 2 or auto with a model, got '3'"),
        ("a.wav -M k.tyto --context -1", "context must be 0 or more frames, got -1"),
        ("a.wav -M k.tyto --json --dcase", "give one of --json, --csv and --dcase"),
        ("a.wav -M gone.tyto", "gone.tyto cannot be read: No such file or directory; check its spelling"),
        ("a.wav -M a.wav", "neither a state nor a model of tytoalba; `tyto new` makes one"),
        ("gone.wav -M k.tyto", "gone.wav: no such file; check its spelling"),
        ("a.wav a.wav -M k.tyto", "several files must be mono|is given twice"),
        ("a.wav.age -M m.model --identity other.txt", "none of your keys opens a.wav.age"),
        ("a.wav -M s.age --identity other.txt", "none of your keys opens s.age"),
    ],
)
def test_refusals_name_the_remedy(
    tyto: Tyto, made: Path, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    settle(monkeypatch, made)
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
