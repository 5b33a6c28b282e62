"""The harness itself: it finds what is planted, goes on where it stopped, and forgets no command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer.main

from tests.slow import mutate, points, pool, run, table
from tests.slow.kinds import KINDS, Kind, require
from tests.slow.pool import Job, work_through
from tests.slow.progress import Progress, is_finding, summary
from tests.slow.scenes import NO_SCENE, SCENES
from tests.slow.work import outcome, outcomes
from tytoalba.cli.app import app
from tytoalba.errors import DataError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


def test_an_input_is_the_same_whenever_it_is_made() -> None:
    for kind in KINDS.values():
        again = replace(kind)
        for number in (0, 3, 71, 12_345):
            if not kind.missing:
                assert kind.input(number) == again.input(number)


def test_every_kind_is_damaged_in_many_ways() -> None:
    rng = Random(0)
    for change in (*mutate.BYTES, mutate.of_text, mutate.of_json, mutate.of_tensors, mutate.of_pickle):
        made = {change(b'{"a": [1, 2.5, "x"], "b": null}', [b"other seed"], rng) for _ in range(40)}
        assert len(made) > 5, change


def _planted(path: Path, _how: str) -> None:
    text = path.read_bytes()
    if text.startswith(b"raise"):
        raise KeyError("planted")
    if text.startswith(b"refuse"):
        raise DataError(f"{path}: 17 is not 'right'")
    if text.startswith(b"long"):
        raise DataError("x" * 10_000)
    if text.startswith(b"hang"):
        while True:
            pass
    if text.startswith(b"memory"):
        bytearray(2**34)
    if text.startswith(b"write"):
        path.with_name("more").write_text("x")
    if text.startswith(b"change"):
        path.write_bytes(b"other ")
    require(not text.startswith(b"accept"), "forged")


PLANTED = Kind("planted", 10, _planted, seconds=0.2)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"fine", "read"),
        (b"refuse", "refused"),
        (b"raise", "exception"),
        (b"long", "long message"),
        (b"hang", "hang"),
        (b"memory", "memory"),
        (b"write", "changed"),
        (b"change", "changed"),
        (b"accept", "invalid"),
    ],
)
def test_what_is_planted_is_found(text: bytes, wanted: str, tmp_path: Path) -> None:
    from tests.slow.work import limited

    with limited(0.2):
        found, shape = outcome(PLANTED, text, "none", tmp_path)
    assert found == wanted
    assert is_finding(found) == (wanted not in ("read", "refused"))
    assert str(tmp_path) not in shape


def _deadly(job: Job, _folder: Path, tell: Any) -> list[int]:
    done = []
    for number in range(job.start, job.stop):
        tell(number)
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 9:
            time.sleep(1000)
        done.append(number)
    return done


def test_a_process_that_dies_or_hangs_is_a_finding_and_the_rest_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 0.5)
    found = list(work_through([Job("a", 0, 8), Job("a", 8, 12)], _deadly, 2))
    done = sorted(number for _, numbers, how in found if not how for number in numbers)
    assert done == [0, 1, 2, 3, 4, 6, 7, 8, 10, 11]
    ends = {job.start: how for job, _, how in found if how}
    assert ends == {5: f"crash ({-signal.SIGKILL})", 9: "hang"}


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share = 600 / KINDS["labels"].number
    run.run(["labels"], tmp_path, 1, minutes=0.0, share=share)
    assert Progress.read(tmp_path, "labels").pieces == {}
    run.run(["labels"], tmp_path, 1, minutes=5.0, share=share)
    first = Progress.read(tmp_path, "labels")
    assert list(first.pieces) == ["0-500", "500-600"]
    assert first.counts.total() == 600
    assert first.left(run.jobs_of("labels", share)) == []
    run.run(["labels"], tmp_path, 1, minutes=5.0, share=share)
    assert Progress.read(tmp_path, "labels") == first
    merged = tmp_path / "merged"
    run.main(["--merge", str(tmp_path), str(tmp_path), "--out", str(merged)])
    assert summary(merged, {}, {})["kinds"]["labels"]["done"] == 600
    assert "labels" in capsys.readouterr().out


ORPHAN = """
import sys, time
from pathlib import Path
from tests.slow import pool
def do(job, folder, tell):
    Path(sys.argv[1]).write_text(str(folder.parent))
    return time.sleep(0.5)
pool.LOOK = 0.1
print([*pool.work_through([pool.Job("a", i, i + 1) for i in range(1000)], do, 2)])
"""


def test_who_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    told, give_up = tmp_path / "folder", time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", ORPHAN, str(told)]) as run_of_it:
        while not (told.exists() and told.read_text()):
            assert time.monotonic() < give_up
            time.sleep(0.05)
        run_of_it.kill()
    folder = Path(told.read_text())
    while folder.exists():  # its process removes it when it ends
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_a_range_says_how_each_ended(tmp_path: Path) -> None:
    told: list[int] = []
    found = outcomes(KINDS["odas"], 0, 50, tmp_path, told.append)
    assert told == list(range(50))
    assert found.counts.total() == 50
    assert found.counts["read"] > 0 < found.counts["refused"]


def test_every_command_has_a_scene_or_a_reason() -> None:
    """A new command that writes is noticed here."""
    commands = set()

    def walk(command: Any, path: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*path, name))
        if not hasattr(command, "commands"):
            commands.add(" ".join(path))

    walk(typer.main.get_command(app), ())
    assert commands - killed(commands) == set(NO_SCENE)


def killed(commands: set[str]) -> set[str]:
    """Commands that have a scene."""
    begins = {" ".join(scene.command[:n]) for scene in SCENES.values() for n in (1, 2)}
    return commands & begins


def test_a_command_whose_name_only_begins_like_another_has_no_scene() -> None:
    found = killed({"new", "ne", "array import", "array imp", "listener", "list"})
    assert found == {"new", "array import"}


def test_figures_of_the_docs_are_those_that_were_measured() -> None:
    page, whole = table.PAGE.read_text("utf-8"), json.loads(table.RESULTS.read_text("utf-8"))
    assert page == table.page_with(page, table.figures(whole)), "run: python -m tests.slow.table"
    assert not set(whole["kinds"]) - {*KINDS, *points.names()}
    assert set(KINDS) == set(table.WORDS)
