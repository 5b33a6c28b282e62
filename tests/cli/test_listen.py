"""`tyto listen` from files and pipes: lines, JSON, refusals before any work, signals, a reader that goes."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Tyto, start
from tests.helpers.updates import HOST, TcpReader, free_port, wait_until
from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.storage.soundfiles import read_audio

DEMO = demo_recording()[0]
FAST = ("listen", "--from", DEMO, "--array", DEMO_ARRAY, "--method", "srp", "--fast")


def updates(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_where_somebody_begins_or_ends_to_speak(tyto: Tyto) -> None:
    ran = tyto(*FAST)
    assert ran.code == 0
    assert ran.out.splitlines()[0].endswith("1 at 40 degrees")
    assert "2 at 25" in ran.out
    assert "nobody" in ran.out
    assert len(ran.out.splitlines()) < 20
    assert "two people: 40 degrees for" in ran.err.splitlines()[-1]


def test_json_has_the_lines_of_locate_with_tracks(tyto: Tyto) -> None:
    found = updates(tyto(*FAST, "--json").out)
    located = tyto("locate", DEMO, "--array", DEMO_ARRAY, "--method", "srp", "--tracks", "--json")
    assert found == updates(located.out)
    assert len(updates(tyto(*FAST, "--json", "--seconds", "1").out)) == 11


def test_the_demo_needs_no_recording_and_no_array(tyto: Tyto) -> None:
    ran = tyto("listen", "--demo", "--method", "srp", "--fast")
    assert ran.code == 0
    assert ran.out == tyto(*FAST).out


def test_a_localizer_listens(tyto: Tyto, tmp_path: Path) -> None:
    tyto("new", tmp_path / "kitchen.tyto", "--array", DEMO_ARRAY)
    how = ("--model", tmp_path / "kitchen.tyto", "--unsigned")
    ran = tyto("listen", "--demo", "--fast", "--seconds", "2", *how)
    assert "1 at 40 degrees" in ran.out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["talk.wav"], "talk.wav is not a source: --from FILE"),
        (["--from", DEMO, "--device", "hw:1"], "one sound at a time"),
        (["--from", DEMO, "--rate", "16000"], "for standard input: say - as well"),
        (["--demo", "--from", DEMO], "--demo has its own recording and array"),
        (["--demo", "--array", DEMO_ARRAY], "--demo has its own recording and array"),
        (["--demo", "--device", "hw:1"], "one sound at a time"),
        (["--device", "1", "--loop"], "--loop is for a recording"),
        (["-", "--raw", "s16le"], "all three: - --raw s16le --channels 6 --rate 16000"),
        (["-", "--raw", "mp3", "--channels", "6", "--rate", "16000"], "no encoding called 'mp3'"),
        (["--from", DEMO], r"demo.flac has 4 channels, 16 kHz: perhaps .* Name it with --array NAME"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--model", "x.tyto"], "a model has its own array"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--json", "--screen"], "leave out one of them"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--screen"], "--screen needs a terminal"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--seconds", "0"], "--seconds takes seconds above 0"),
        (["--from", "none.wav", "-a", DEMO_ARRAY], "none.wav"),
        (["--from", DEMO, "-a", "pepper", "--background", "fan.wav"], "there is no file fan.wav"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--odas", "9000"], "--odas is HOST:PORT"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--mqtt", "home"], "a broker is mqtt://HOST"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--mqtt-ca", "x"], "need --mqtt URL"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--token-file", "x"], "needs --websocket HOST:PORT"),
        (["--from", DEMO, "-a", DEMO_ARRAY, "--websocket", "0.0.0.0:8765"], "needs a token"),
    ],
)
def test_what_cannot_work_is_refused_before_any_work(
    tyto: Tyto, arguments: list[Any], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    assert re.search(why, tyto("listen", *arguments).error)
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken_is_refused(tyto: Tyto) -> None:
    reader = TcpReader()
    try:
        assert "is the port taken?" in tyto(*FAST, "--websocket", f"{HOST}:{reader.port}").error
    finally:
        reader.close()


def test_secrets_are_read_from_closed_files_only(tyto: Tyto, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123\n")
    token.chmod(0o644)
    assert "chmod 600" in tyto(*FAST, "--websocket", "0.0.0.0:1", "--token-file", token).error
    token.chmod(0o600)
    token.write_text("\n")
    assert "is empty" in tyto(*FAST, "--websocket", "0.0.0.0:1", "--token-file", token).error


def test_what_systemd_hands_over_is_a_closed_file(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LoadCredential gives mode 0440 to services with a user of their own; its group has no member."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123\n")
    token.chmod(0o440)
    options = ("--seconds", "0.3", "--websocket", f"{HOST}:{free_port()}", "--token-file", token)
    assert tyto(*FAST, *options).code == 0
    token.chmod(0o444)
    assert "chmod 600" in tyto(*FAST, *options).error
    token.chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path.parent))
    assert "chmod 600" in tyto(*FAST, *options).error


def test_remarks_on_a_broker_are_said(tyto: Tyto) -> None:
    ran = tyto(*FAST, "--seconds", "0.5", "--mqtt", "mqtt://me:secret@192.0.2.1:1")
    assert "seen by everybody on this machine" in ran.err
    assert "in the clear" in ran.err
    assert "me:secret" not in ran.err


def test_outputs_get_what_is_printed(tyto: Tyto) -> None:
    tracked, potential = TcpReader(), TcpReader()
    try:
        addresses = [f"{HOST}:{one.port}" for one in (tracked, potential)]
        tyto("listen", "--from", DEMO, "-a", DEMO_ARRAY, "-m", "srp", "--seconds", "1.2", "--odas",
             addresses[0], "--odas-potential", addresses[1])  # fmt: skip
        wait_until(lambda: '"id": 1, "tag": "dynamic", "x": 0.7' in tracked.text)
        wait_until(lambda: '"E": 0.' in potential.text)
    finally:
        tracked.close()
        potential.close()


def test_raw_sound_on_standard_input(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (read_audio(DEMO).samples[:, :32000].T * 2**15).astype("<i2").tobytes()
    (tmp_path / "talk.raw").write_bytes(data)
    raw = ["--raw", "s16le", "--channels", "4", "--rate", "16000"]
    with (tmp_path / "talk.raw").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        ran = tyto("listen", "-", *raw, "-a", DEMO_ARRAY, "-m", "srp")
    assert "1 at 40 degrees" in ran.out
    assert "one person" in ran.err


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.end_to_end)],
)
def test_signals_end_it_in_good_order(number: signal.Signals, code: int) -> None:
    process = start("listen", "--from", DEMO, "--loop", "-a", DEMO_ARRAY, "-m", "srp", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["time"] > 0
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert all(json.loads(line) for line in out.splitlines())
    assert b" s: " in err
    assert b"Traceback" not in err


@pytest.mark.end_to_end
def test_a_reader_that_goes_ends_it_quietly() -> None:
    process = start("listen", "--from", DEMO, "--loop", "-a", DEMO_ARRAY, "-m", "srp", "--json")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = open(os.devnull, "rb")  # noqa: PTH123, SIM115, for communicate
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert b"Broken pipe" not in err


@pytest.mark.usefixtures("home")
def test_a_sealed_recording_is_what_came(tyto: Tyto, tmp_path: Path) -> None:
    pytest.importorskip("pyrage")
    target = tmp_path / "talk.wav.age"
    assert "tyto keygen" in tyto(*FAST, "--record-sealed", target).error
    assert "--to needs --record-sealed" in tyto(*FAST, "--to", "age1x").error
    tyto("keygen")
    assert "NAME.wav.age" in tyto(*FAST, "--record-sealed", tmp_path / "talk.wav").error
    ran = tyto(*FAST, "--seconds", "3", "--record-sealed", target)
    assert (ran.code, [path.name for path in tmp_path.iterdir()]) == (0, ["talk.wav.age"])
    assert f"recorded: {target}, 3." in ran.err
    assert "is there already and stays" in tyto(*FAST, "--record-sealed", target).error
    assert " 40 " in tyto("locate", target, "--array", DEMO_ARRAY).out
    tyto("open", target)
    sound = read_audio(tmp_path / "talk.wav").samples
    assert sound.shape[1] > 3 * 16000
    assert (sound == read_audio(DEMO).samples[:, : sound.shape[1]]).all()


@pytest.mark.end_to_end
def test_control_c_leaves_a_whole_recording_and_a_kill_leaves_none(tmp_path: Path) -> None:
    pytest.importorskip("pyrage")
    from tests.helpers.seals import new_key, public

    key = new_key(tmp_path.parent)
    for number, kept in ((signal.SIGINT, True), (signal.SIGKILL, False)):
        target = tmp_path / f"{number.name}.wav.age"
        process = start("listen", "--from", DEMO, "--loop", "-a", DEMO_ARRAY, "-m", "srp", "--json",
                        "--record-sealed", target, "--to", public(key))  # fmt: skip
        assert process.stdout is not None
        for _ in range(12):
            process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=20)
        assert [path.name for path in tmp_path.iterdir()] == ["SIGINT.wav.age"]
        assert target.exists() == kept
        if kept:
            sound = read_audio(target, keys=[key]).samples
            assert sound.shape[1] > 16000
            assert (sound == read_audio(DEMO).samples[:, : sound.shape[1]]).all()
