"""`tyto new`, `learn`, `teach`, `forget`, `merge`, `export`, `info`, `sign`, `trust`, from end to end."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.helpers.commands import Tyto
from tests.helpers.localizers import features
from tests.helpers.releases import simulate_nothing
from tests.helpers.states import ARRAY, contents, move_in, settle, wave, write_wave
from tytoalba.cli.keys import VARIABLE, keys_at_hand
from tytoalba.cli.localizer import _time
from tytoalba.data.folder import write_array, write_recording
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import load_array
from tytoalba.storage.keys import (
    add_default_recipients,
    identity_path,
    make_identity,
    make_key_folder,
)
from tytoalba.storage.ledger import ledger_path
from tytoalba.storage.sealed import read_secret, seal_file
from tytoalba.storage.signatures import signature_path
from tytoalba.storage.soundfiles import write_audio

NEW = ("--array", ARRAY, "--features", "40", "--seed", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A key; a.wav from 135 degrees and b.wav from 77, plain and sealed; k.tyto, which was taught a.wav."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        settle(patch, folder)
        make_key_folder()
        add_default_recipients([public := make_identity(identity_path())])
        for name, azimuth in (("a.wav", 135.0), ("b.wav", 77.0)):
            seal_file(write_wave(folder / name, azimuth, 0.5), folder / f"{name}.age", [public])
        store.create(folder / "k.tyto", Localizer.new(ARRAY, n_features=40, seed=1))
        with store.edit(folder / "k.tyto") as localizer:
            localizer.teach(folder / "a.wav", 135.0)
        yield folder


@pytest.fixture
def unchanged(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, for commands that change nothing."""
    settle(monkeypatch, made)
    return made


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    move_in(made, tmp_path)
    settle(monkeypatch, tmp_path)
    return tmp_path


def informed(tyto: Tyto, *arguments: str | Path) -> dict[str, Any]:
    ran = tyto("info", *arguments, "--json")
    assert ran.code == 0, ran.err
    facts: dict[str, Any] = json.loads(ran.out)
    return facts


# ---- a day with a localizer ----


def test_how_much_simulations_count_can_be_chosen(
    tyto: Tyto, tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    answers = set()
    for prior_frames, simulated in ((1.0, 0), (1e6, 0), (1e6, 3)):
        chosen = ("--prior-frames", prior_frames, "--simulated", simulated)
        state = f"{prior_frames:g}-{simulated}.tyto"
        assert tyto("new", state, *NEW, *chosen).code == 0
        options = informed(tyto, state)["options"]
        assert (options["prior_frames"], options["simulated"]) == (prior_frames, simulated)
        assert tyto("teach", state, made / "a.wav", "--at", "250").code == 0  # where it does not come from
        answers.add(store.read(Path(state)).model.scores(features(2)).tobytes())
    assert len(answers) == 3


def test_a_session_is_the_same_plain_and_sealed(
    tyto: Tyto, tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    for name in ("a.wav", "b.wav"):
        shutil.copy(made / name, tmp_path)
    monkeypatch.setattr("tytoalba.localizer.localizer.time.time", lambda: 1.8e9)
    assert tyto("keygen").out.startswith("public key: age1")
    assert tyto("seal", "a.wav", "b.wav").code == 0
    states = {"k.tyto": "", "s.age": ".age"}
    empty: dict[str, bytes] = {}
    for state in states:
        ran = tyto("new", state, *NEW)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err == f"{state}: {ARRAY}, 40 features, nothing taught yet\n"
        empty[state] = read_secret(state, keys_at_hand())
    assert empty["k.tyto"] == empty["s.age"]
    for state, suffix in states.items():
        ran = tyto("teach", state, f"a.wav{suffix}", "--at", "135", "--who", "monday")
        assert (ran.code, ran.out) == (0, "learned 4 frames in 1 lesson\n")
    assert read_secret("k.tyto") == read_secret("s.age", keys_at_hand())
    for state, suffix in states.items():
        ran = tyto("teach", state, f"b.wav{suffix}", "--at", "77", "--json")
        assert json.loads(ran.out) == {"model": state, "learned": 4, "lessons": 1}
    assert read_secret("k.tyto") == read_secret("s.age", keys_at_hand())
    facts = [informed(tyto, state) for state in states]
    assert [one.pop("sealed") for one in facts] == [False, True]
    kept = [{"who": "monday", "azimuth": [135.0], "time": 1800000000, "n_frames": 4}]
    for one, state in zip(facts, states, strict=True):
        assert one["bytes"] == Path(state).stat().st_size
        assert (one["kind"], one["array"], one["n_frames"], one["lessons"]) == ("state", ARRAY, 8, 2)
        assert (one["kept"], one["ledger"]) == (kept, "verified")
        assert [step["what"] for step in one["steps"]] == ["created", "learned", "learned"]
        assert (one["evidence"][77], one["evidence"][135], sum(one["evidence"])) == (4, 4, 8)
        assert "seed" not in one["options"]
    assert facts[0]["stored"] == facts[1]["stored"]
    for state in states:
        ran = tyto("forget", state, "--who", "monday", "--json")
        assert json.loads(ran.out) == {"model": state, "forgot": 4, "lessons": 1}
    for state, suffix in states.items():
        assert tyto("forget", state, f"b.wav{suffix}", "--at", "77").out == "forgot 4 frames in 1 lesson\n"
        assert read_secret(state, keys_at_hand()) == empty[state]
        assert informed(tyto, state)["ledger"] == "verified"
    assert (tmp_path / "s.age").read_bytes().startswith(b"age-encryption.org/")


def test_merging_is_learning_both(tyto: Tyto, folder: Path) -> None:
    assert tyto("new", "s.age", "--like", "k.tyto").code == 0
    assert tyto("teach", "s.age", "b.wav.age", "--at", "77").code == 0
    shutil.copy("k.tyto", "both.tyto")
    shutil.copy("k.tyto.ledger", "both.tyto.ledger")
    assert "is a copy of" in tyto("teach", "both.tyto", "b.wav", "--at", "77").error
    assert tyto("restore", "both.tyto", "--yes").code == 0
    assert tyto("teach", "both.tyto", "b.wav", "--at", "77").code == 0
    other = (folder / "s.age").read_bytes()
    assert json.loads(tyto("merge", "k.tyto", "s.age", "--json").out)["merged"] == 4
    assert read_secret("k.tyto") == read_secret("both.tyto")
    assert (folder / "s.age").read_bytes() == other
    assert "which count only once" in tyto("merge", "k.tyto", "s.age").error


@pytest.mark.usefixtures("folder")
def test_learning_a_sealed_folder_and_forgetting_it(tyto: Tyto) -> None:
    array = load_array(ARRAY)
    write_array("rec", array)
    for part, azimuth in (("train", 20.0), ("test", 200.0)):
        samples = wave(azimuth, 0.5, array=array)
        write_recording("rec", part, "one", samples, array, np.arange(3), np.full((3, 1), azimuth))
    shutil.copytree("rec", "sealed")
    assert tyto("seal", "sealed", "--remove").code == 0
    assert not [file for file in Path("sealed").rglob("*") if file.is_file() and file.suffix != ".age"]
    before = read_secret("k.tyto")
    shutil.copy("k.tyto", "p.tyto")
    shutil.copy("k.tyto.ledger", "p.tyto.ledger")
    assert tyto("restore", "p.tyto", "--yes").code == 0
    learned = json.loads(tyto("learn", "k.tyto", "sealed", "--json").out)
    assert learned == {"model": "k.tyto", "learned": 6, "lessons": 2}
    assert tyto("learn", "p.tyto", "rec").out == "learned 6 frames in 2 lessons\n"
    assert read_secret("k.tyto") == read_secret("p.tyto")
    assert "was taught already" in tyto("learn", "p.tyto", "rec", "--part", "train").error
    assert "no recordings of part 'nights'" in tyto("learn", "p.tyto", "rec", "--part", "nights").error
    assert tyto("forget", "p.tyto", "--data", "rec", "--part", "test").code == 0
    assert informed(tyto, "p.tyto")["evidence"][200] == 0
    assert tyto("forget", "p.tyto", "--data", "rec", "--part", "train").code == 0
    assert tyto("forget", "k.tyto", "--data", "sealed").out == "forgot 6 frames in 2 lessons\n"
    assert read_secret("k.tyto") == read_secret("p.tyto") == before


@pytest.mark.usefixtures("folder")
def test_one_file_a_microphone_is_the_same_lesson(tyto: Tyto) -> None:
    array = load_array(ARRAY)
    files = [f"mic{n}.wav" for n in range(array.n_mics)]
    for name, samples in zip(files, wave(135.0, 0.5), strict=True):
        write_audio(name, samples, array.sample_rate)
    assert tyto("seal", *files, "--remove").code == 0
    before = read_secret("k.tyto")
    assert "was taught already" in tyto("teach", "k.tyto", *(f"{f}.age" for f in files), "--at", "135").error
    assert tyto("forget", "k.tyto", *(f"{f}.age" for f in files), "--at", "135").code == 0
    assert tyto("teach", "k.tyto", "a.wav", "--at", "135").code == 0
    assert read_secret("k.tyto") == before


@pytest.mark.usefixtures("folder")
def test_kept_lessons_are_forgotten_by_time_and_place(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_secret("k.tyto")
    with monkeypatch.context() as patch:
        patch.setattr("tytoalba.localizer.localizer.time.time", lambda: float(_time("2026-11-14T12:00")))
        assert tyto("teach", "k.tyto", "b.wav", "--at", "77", "--keep").code == 0
    assert "none of the kept lessons (1) is meant" in tyto("forget", "k.tyto", "--since", "2026-11-15").error
    assert "none of the kept lessons (1)" in tyto("forget", "k.tyto", "--since", "2026-11-14T12:01").error
    unkept = tyto("forget", "k.tyto", "--at", "135").error
    assert "4 frames were taught there without keeping" in unkept
    assert "give it again, with its azimuth" in unkept
    assert tyto("forget", "k.tyto", "--since", "2026-11-14").code == 0
    assert read_secret("k.tyto") == before
    assert tyto("teach", "k.tyto", "b.wav", "--at", "77", "--keep").code == 0
    assert tyto("forget", "k.tyto", "--at", "77").code == 0
    assert read_secret("k.tyto") == before


@pytest.mark.usefixtures("folder")
def test_two_talkers_at_once(tyto: Tyto) -> None:
    assert tyto("teach", "k.tyto", "b.wav", "--at", "77", "--at", "200").code == 0
    evidence = informed(tyto, "k.tyto")["evidence"]
    assert (evidence[77], evidence[200], evidence[135]) == (4, 4, 4)


# ---- who is trusted ----


def test_states_of_others_are_merged_when_they_are_signed_and_trusted(
    tyto: Tyto, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    localizer = store.read("k.tyto")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "their home"))
    store.create("theirs.tyto", Localizer.like(localizer))
    assert tyto("teach", "theirs.tyto", "b.wav", "--at", "77").code == 0
    signed = tyto("sign", "theirs.tyto")
    assert (signed.code, signed.err) == (0, "signed: theirs.tyto.sig\n")
    fingerprint = signed.out.strip()
    ledger_path("theirs.tyto").rename("theirs.ledger.away")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "home"))
    before = contents(folder)
    assert f"`tyto trust {fingerprint}`" in tyto("merge", "k.tyto", "theirs.tyto").error
    signature_path("theirs.tyto").rename("sig.away")
    assert "nobody signed theirs.tyto" in tyto("merge", "k.tyto", "theirs.tyto").error
    Path("theirs.ledger.away").rename(ledger_path("theirs.tyto"))
    assert f"`tyto trust {fingerprint}`" in tyto("merge", "k.tyto", "theirs.tyto").error
    ledger_path("theirs.tyto").rename("theirs.ledger.away")
    Path("sig.away").rename(signature_path("theirs.tyto"))
    assert contents(folder) == before
    shutil.copy("k.tyto", "k2.tyto")
    shutil.copy("k.tyto.ledger", "k2.tyto.ledger")
    assert tyto("restore", "k2.tyto", "--yes").code == 0
    assert (
        tyto("trust", fingerprint, "--name", "Anna [/b]").out.splitlines()[-1] == f"{fingerprint}  Anna [/b]"
    )
    merged = tyto("merge", "k.tyto", "theirs.tyto")
    assert merged.out == "merged 4 frames in 1 lesson\n"
    assert "what theirs.tyto learned is in two states now, each with a budget of its own" in merged.err
    assert json.loads(tyto("trust", "--json").out)[fingerprint] == "Anna [/b]"
    assert fingerprint not in tyto("trust", fingerprint, "--remove").out
    assert "tyto trust" in tyto("merge", "k2.tyto", "theirs.tyto").error
    assert tyto("merge", "k2.tyto", "theirs.tyto", "--unsigned").code == 0
    assert read_secret("k.tyto") == read_secret("k2.tyto")


def test_who_is_trusted(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path)
    ran = tyto("trust")
    assert (ran.code, ran.out) == (0, "")
    assert "nobody is trusted yet" in ran.err
    assert "say whom" in tyto("trust", "--remove").error
    assert "is not a key; expected tyto-ed25519:" in tyto("trust", "anna").error


@pytest.mark.usefixtures("folder")
def test_only_states_and_models_are_signed_and_all_or_none(tyto: Tyto) -> None:
    assert "a.wav is neither a state nor a model: nothing was signed" in tyto("sign", "k.tyto", "a.wav").error
    assert not signature_path("k.tyto").exists()
    assert "no such file" in tyto("sign", "k.tyto", "gone.tyto").error
    assert not signature_path("k.tyto").exists()


def test_without_the_extra_its_name_is_printed_whole(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    monkeypatch.setattr(store, "has_extra", lambda: False)
    ran = tyto("new", "n.tyto", *NEW)
    assert ran.code == 0
    assert "no ledger and no seal: these need pip install 'tytoalba[privacy]'\n" in ran.err
    assert "which array?" in tyto("new", "m.tyto").error


# ---- models ----


def megabytes(name: str) -> str:
    """Most of it is the prior, whose size is not ours to say."""
    return f"{Path(name).stat().st_size / 1e6:.1f}"


@pytest.mark.usefixtures("folder")
def test_an_export_is_private_and_says_what_it_hides_and_is_worth(
    tyto: Tyto, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate_nothing(monkeypatch)
    ran = tyto("export", "k.tyto", "m.model", "--epsilon", "2")
    assert ran.code == 0
    assert f"m.model: {megabytes('m.model')} MB, private, signed: m.model.sig\n" in ran.err
    assert "hidden: one lesson (one recording that was taught) more or less" in ran.out
    assert "epsilon 2, delta 1e-06" in ran.out
    assert "spent, with all releases before: epsilon 2.00 of 10\n" in ran.out
    assert "NOT better than the untaught prior" in ran.out
    facts = informed(tyto, "m.model")
    assert (facts["kind"], facts["n_frames"]) == ("model", 0)
    assert {row["name"].split(".")[0] for row in facts["stored"]} == {"W", "weight", "prior", "offset"}
    assert facts["private"]["epsilon"] == 2.0
    told = json.loads(tyto("export", "k.tyto", "m.model", "--unit", "frame", "--json").out)
    assert (told["private"]["unit"], told["budget"], told["worth"]["better"]) == ("frame", 10.0, False)
    assert 3.0 < told["spent"] < 4.0
    refusal = tyto("export", "k.tyto", "n.model", "--epsilon", "9.9").error
    assert "this release is beyond the budget" in refusal
    assert "still fits" in refusal
    assert not Path("n.model").exists()
    assert "--plain is for --exact" in tyto("export", "k.tyto", "n.model", "--plain").error


def test_the_budget_of_a_state_is_chosen_when_it_is_made(
    tyto: Tyto, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate_nothing(monkeypatch)
    assert tyto("new", "b.tyto", *NEW, "--budget", "1").code == 0
    assert "of 1 " in tyto("export", "b.tyto", "b.model").error
    assert tyto("export", "b.tyto", "b.model", "--epsilon", "1").code == 0
    assert "a budget is an epsilon from 0" in tyto("new", "c.tyto", *NEW, "--budget", "-1").error
    assert folder.exists()


def test_an_exact_model_is_sealed_and_as_secret_as_the_state(tyto: Tyto, folder: Path) -> None:
    ran = tyto("export", "k.tyto", "m.model", "--exact")
    assert (ran.code, ran.out) == (0, "")
    assert f"m.model.age: {megabytes('m.model.age')} MB, exact, signed: m.model.age.sig\n" in ran.err
    assert "this file is as secret as the state" in ran.err
    assert "all the more so: 4 frames are fewer than 20 for each of the 40 features" in ran.err
    assert "the release gate counts frames, not people" in ran.err
    assert not Path("m.model").exists()
    ran = tyto("export", "k.tyto", "m.model", "--exact", "--plain")
    assert ran.code == 0
    facts = informed(tyto, "m.model")
    assert (facts["kind"], facts["n_frames"]) == ("model", 4)
    assert {row["name"].split(".")[0] for row in facts["stored"]} == {"W", "weight", "prior"}
    assert "steps" not in facts
    before = contents(folder)
    for command in (
        ("teach", "m.model", "b.wav", "--at", "77"),
        ("forget", "m.model", "--who", "monday"),
        ("merge", "m.model", "k.tyto"),
        ("merge", "k.tyto", "m.model", "--unsigned"),
        ("new", "n.tyto", "--like", "m.model"),
        ("export", "m.model", "m2.model"),
    ):
        assert "this is a model: it locates and cannot learn" in tyto(*command).error
    assert contents(folder) == before


# ---- what is refused ----


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("teach k.tyto b.wav", "say where the sound came from: --at AZIMUTH"),
        ("teach gone.tyto b.wav --at 77", "no such file; check its spelling"),
        ("forget k.tyto a.wav", "say where the sound came from: --at"),
        ("forget k.tyto a.wav --at 135 --who monday", "leave out --who and --since"),
        ("forget k.tyto --since yesterday", "--since takes a date such as 2026-11-15"),
        ("forget k.tyto --data rec --who monday", "--data is forgotten as a whole"),
        ("forget k.tyto --who monday --part train", "say which, with --data"),
        ("learn k.tyto nowhere", "nowhere"),
        ("new n.tyto --like k.tyto --seed 3", "takes array, options and seed from the other"),
        ("new n.tyto --like k.tyto --prior-frames 5", "takes array, options and seed from the other"),
        ("new n.tyto --array pepper --prior-frames 0", r"prior_frames must be from 1e-06 to 1e\+09, got 0"),
        ("info k.tyto --plot k.gif", "the name of a picture ends in"),
    ],
)
def test_refusals_name_the_remedy_and_touch_nothing(
    tyto: Tyto, unchanged: Path, command: str, why: str
) -> None:
    before = contents(unchanged)
    ran = tyto(*command.split())
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert re.search(why, ran.err), ran.err
    assert contents(unchanged) == before


def test_tampering_is_refused_by_every_command(tyto: Tyto, folder: Path) -> None:
    data = bytearray((folder / "k.tyto").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "k.tyto").write_bytes(data)
    before = contents(folder)
    for command in (
        "info k.tyto",
        "teach k.tyto b.wav --at 77",
        "locate a.wav --model k.tyto",
        "new n --like k.tyto",
    ):
        assert "was altered or is damaged" in tyto(*command.split()).error
    assert contents(folder) == before


# ---- info ----


def test_info_tells_in_words_and_in_a_picture(tyto: Tyto, folder: Path) -> None:
    ran = tyto("info", "k.tyto", "--plot", "k.png")
    assert (ran.code, ran.err) == (0, "drawn: k.png\n")
    assert (folder / "k.png").read_bytes().startswith(b"\x89PNG")
    assert f"k.tyto: state for {ARRAY}, {megabytes('k.tyto')} MB\n" in ran.out
    assert "\n4 frames in 1 lesson, 0 of them kept; 11 of 360" in ran.out
    assert " 120-149 ######################################## 4\n" in ran.out
    assert "ledger: verified\n" in ran.out
    assert "learned, 4 frames" in ran.out
    assert "Everything that the file holds" in ran.out


def test_a_state_behind_an_older_prior_says_so_and_goes_on(
    tyto: Tyto, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is another prior of the array one day: the state keeps its own, learns, forgets and merges."""
    assert "prior:" not in tyto("info", "k.tyto").out
    assert informed(tyto, "k.tyto")["prior_is_newest"] is True
    before = Path("k.tyto").read_bytes()
    prior = store.read("k.tyto").state.prior
    weights = prior.weights | {"leave": prior.weights["leave"] + np.int16(1)}
    (folder / "priors").mkdir()
    replace(prior, weights=weights).save(folder / "priors" / "newer.safetensors")
    monkeypatch.setenv("TYTO_PRIORS", str(folder / "priors"))
    assert "prior: not the one that tyto has for this array today" in tyto("info", "k.tyto").out
    assert informed(tyto, "k.tyto")["prior_is_newest"] is False
    assert tyto("new", "like.tyto", "--like", "k.tyto").code == 0
    assert tyto("teach", "like.tyto", "b.wav", "--at", "77").code == 0
    assert tyto("merge", "k.tyto", "like.tyto").code == 0
    assert tyto("forget", "k.tyto", "b.wav", "--at", "77").code == 0
    assert Path("k.tyto").read_bytes() == before
    assert tyto("locate", "a.wav", "--model", "k.tyto").code == 0
    assert tyto("new", "today.tyto", "--array", ARRAY).code == 0
    assert informed(tyto, "today.tyto")["prior_is_newest"] is True
    refused = tyto("merge", "today.tyto", "like.tyto", "--unsigned").error
    assert "seed" in refused or "differ in their prior: each keeps the one" in refused


def test_names_from_elsewhere_are_shown_and_not_obeyed(tyto: Tyto, folder: Path) -> None:
    localizer = store.read("k.tyto").owned_by("")
    localizer.teach(folder / "b.wav", 77.0, who="eve", keep=True, when=10**17)
    kept = localizer.state.kept
    kept |= {name: replace(lesson, who="[/x] \x1b[2J[red]eve") for name, lesson in kept.items()}
    Path("evil.tyto").write_bytes(localizer.to_bytes())
    ran = tyto("info", "evil.tyto")
    assert ran.code == 0
    assert "kept: [/x] ?[2J[red]eve at 77, 4 frames, 100000000000000000 s after 1970" in ran.out
    assert "\x1b[2J" not in ran.out
    assert informed(tyto, "evil.tyto")["kept"][0]["who"] == "[/x] \x1b[2J[red]eve"


@pytest.mark.usefixtures("folder")
def test_a_state_knows_how_its_array_is_mounted(tyto: Tyto) -> None:
    Path("turned.toml").write_text(replace(load_array(ARRAY), yaw=90.0).to_toml())
    assert tyto("new", "t.tyto", "--array", "turned.toml", "--features", "40", "--seed", "1").code == 0
    assert tyto("teach", "t.tyto", "a.wav", "--at", "225").code == 0
    assert informed(tyto, "t.tyto")["evidence"][225] == 4
    assert "differ in their array or how it is mounted" in tyto("merge", "k.tyto", "t.tyto").error


# ---- keys ----


def test_another_identity_opens_and_seals(tyto: Tyto, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tyto("keygen", "-o", "other.txt").code == 0
    assert tyto("new", "n.age", "--like", "k.tyto", "--identity", "other.txt").code == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "empty home"))
    assert "--identity FILE" in tyto("info", "n.age").error
    shutil.copytree("home", "empty home")
    identity_path().unlink()
    assert "--identity FILE" in tyto("teach", "n.age", "a.wav", "--at", "135").error
    assert tyto("teach", "n.age", "a.wav", "--at", "135", "--identity", "other.txt").code == 0
    assert informed(tyto, "n.age", "--identity", "other.txt")["n_frames"] == 4
    assert VARIABLE not in os.environ


# ---- what another program may read otherwise


def test_a_lossy_or_resampled_recording_is_remarked_on(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    assert not tyto("new", "k.tyto", *NEW).code
    write_audio("a.ogg", wave(135.0, 0.5), 16000, "VORBIS")
    write_audio("b.wav", np.repeat(wave(77.0, 0.5), 2, axis=1), 32000)
    for name, why in (
        ("a.ogg", "was decoded from Vorbis, a lossy format: another version"),
        ("b.wav", "was resampled from 32000 to 16000 Hz: another version"),
    ):
        result = tyto("teach", "k.tyto", name, "--at", "50")
        assert not result.code
        assert why in flat(result.err)
        assert "(--keep)" in flat(result.err)
        refused = tyto("forget", "k.tyto", name, "--at", "60")
        assert refused.code
        assert "not taught here" in flat(refused.err)
        assert why in flat(refused.err)
        assert not tyto("forget", "k.tyto", name, "--at", "50").code
    write_wave(Path("c.wav"), 77.0, 0.5)
    assert "another version" not in flat(tyto("teach", "k.tyto", "c.wav", "--at", "50").err)
    assert "another version" not in flat(tyto("forget", "k.tyto", "c.wav", "--at", "60").err)


def flat(text: str) -> str:
    """Without line breaks of the terminal."""
    return " ".join(text.split())
