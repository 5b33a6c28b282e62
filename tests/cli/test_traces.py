"""What sealed work leaves on the disk and on the screen: no sound, no features, no state, no key."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tests.helpers.states import ARRAY, settle, wave
from tytoalba.data.folder import write_array, write_recording
from tytoalba.localizer import store
from tytoalba.localizer.frontend import FrontEnd
from tytoalba.localizer.localizer import Localizer, _phase
from tytoalba.signal.array import load_array
from tytoalba.storage.keys import add_default_recipients, identity_path, make_identity, make_key_folder
from tytoalba.storage.sealed import read_secret, seal_file
from tytoalba.storage.soundfiles import read_audio, write_audio

WATCHED = """
import json, os, sys
from pathlib import Path

evidence, seen = Path(sys.argv[1]), []
busy = False

def keep(path):
    global busy
    if not busy and isinstance(path, (str, bytes, os.PathLike)) and os.path.isfile(path):
        busy = True
        (evidence / f"gone-{len(list(evidence.iterdir()))}").write_bytes(Path(os.fsdecode(path)).read_bytes())
        busy = False

def watch(event, arguments):
    if busy:
        return
    if event == "open" and not isinstance(arguments[0], int):
        path, mode, flags = arguments
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
            seen.append(os.path.abspath(os.fsdecode(path)))
    elif event in ("os.remove", "os.rename", "os.truncate"):
        keep(arguments[0])  # before it goes
    elif event.startswith(("tempfile.", "shutil.")):
        seen.append(event)

sys.addaudithook(watch)
from tytoalba.cli.app import main

for command in json.loads(sys.argv[2]):
    sys.argv = ["tyto", *command]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
(evidence / "seen.json").write_text(json.dumps(seen))
"""


def pieces(values: NDArray[Any], n: int) -> list[bytes]:
    """n runs of 64 bytes out of an array, spread over all of it."""
    data = values.tobytes()
    starts = np.linspace(0, len(data) - 64, n).astype(int) // values.itemsize * values.itemsize
    return [data[start : start + 64] for start in starts]


def needles(sound: Path, localizer: Localizer, azimuth: float) -> dict[str, list[bytes]]:
    """What must not be found: sound as integers and floats, features, codes, the state, the keys."""
    array = load_array(ARRAY)
    samples = read_audio(sound, array).samples
    whole = np.round(samples * 32768).astype("<i2")
    X = FrontEnd(array, localizer.state.prior).lesson(sound)
    lesson = localizer.state.learner.lesson(_phase(X, np.array([azimuth])))
    secret = next(line for line in identity_path().read_text().splitlines() if line.startswith("AGE"))
    pem = (identity_path().parents[1] / "signing.pem").read_text().splitlines()[1]
    return {
        "sound": [*pieces(np.ascontiguousarray(whole.T), 12), *pieces(whole, 12)],
        "floats": [*pieces(np.ascontiguousarray(samples.T), 12), *pieces(samples, 12)],
        "features": pieces(X, 12),
        "codes": pieces(lesson.H, 12),
        "state": [b"tytoalba-state"],
        "keys": [secret.encode(), pem.encode()],
    }


def found(wanted: dict[str, list[bytes]], texts: Iterable[bytes]) -> set[str]:
    held = list(texts)
    return {name for name, runs in wanted.items() if any(run in text for run in runs for text in held)}


def test_sealed_work_leaves_nothing_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, work, evidence = (tmp_path / name for name in ("secret", "work", "evidence"))
    temporary, home = tmp_path / "temporary", tmp_path / "work" / "home"
    for folder in (secret, work, evidence, temporary):
        folder.mkdir()
    settle(monkeypatch, work)
    monkeypatch.setenv("HOME", str(work / "user"))
    make_key_folder()
    add_default_recipients([public := make_identity(identity_path())])
    array = load_array(ARRAY)
    write_audio(secret / "a.wav", wave(135.0, 0.5), array.sample_rate)
    write_array(secret / "rec", array)
    heard = wave(20.0, 0.5, 1)
    write_recording(secret / "rec", "train", "one", heard, array, np.arange(4), np.full((4, 1), 20.0))
    for file in (path for path in secret.rglob("*") if path.is_file()):
        target = work / file.relative_to(secret)
        target.parent.mkdir(parents=True, exist_ok=True)
        seal_file(file, target.with_name(file.name + ".age"), [public])
    with threadpool_limits(1):
        localizer = Localizer.new(ARRAY, n_features=100, seed=1)
        store.create(work / "s.age", localizer, sealed=True)
        wanted = needles(secret / "a.wav", localizer, 135.0)
        learned = needles(secret / "rec" / "train" / "one.wav", localizer, 20.0)
    wanted = {name: [*runs, *learned[name]] for name, runs in wanted.items()}
    kept = (path for path in home.rglob("*") if path.is_file() and path.name != "remembered.json")
    mine = {path: path.read_bytes() for path in kept}
    commands = [
        ["learn", "s.age", "rec"],
        ["teach", "s.age", "a.wav.age", "--at", "135", "--who", "monday"],
        ["locate", "a.wav.age", "--model", "s.age", "--json"],
        ["locate", "a.wav.age", "--model", "s.age", "--sources", "auto", "--context", "2"],
        ["info", "s.age"],
        ["forget", "s.age", "--who", "monday"],
        ["teach", "s.age", "a.wav.age", "--at", "135"],
        ["forget", "s.age", "a.wav.age", "--at", "135"],
    ]
    surroundings = {**os.environ, "TMPDIR": str(temporary), "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "160"}
    ran = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED, str(evidence), json.dumps(commands)],
        env=surroundings,
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.count(b'"azimuth"') == 4

    written = {Path(path) for path in json.loads((evidence / "seen.json").read_text()) if path[0] == "/"}
    inside = {path for path in written if path.is_relative_to(work) or path == Path(os.devnull)}
    assert written == inside
    assert {path.name for path in written if path.parent == work} <= {
        *(".s.age.new", ".s.age.lock", ".s.age.ledger.lock", "s.age.ledger"),
    }
    assert not list(temporary.iterdir())
    left = {path: path.read_bytes() for path in work.rglob("*") if path.is_file() and path not in mine}
    gone = [path.read_bytes() for path in evidence.iterdir() if path.name.startswith("gone")]
    assert len([one for one in gone if one.startswith(b"age-encryption.org/")]) >= 5  # the state, each time
    assert found(wanted, [*left.values(), *gone, ran.stdout, ran.stderr]) == set()
    assert {path: path.read_bytes() for path in mine} == mine
    shutil.rmtree(evidence)


def test_the_search_finds_what_lies_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same needles, in files that hold them."""
    settle(monkeypatch, tmp_path)
    make_key_folder()
    add_default_recipients([make_identity(identity_path())])
    sound = tmp_path / "a.wav"
    write_audio(sound, wave(135.0, 0.5), load_array(ARRAY).sample_rate)
    with threadpool_limits(1):
        localizer = store.create(tmp_path / "k.tyto", Localizer.new(ARRAY, n_features=100, seed=1))
        wanted = needles(sound, localizer, 135.0)
        with store.edit(tmp_path / "k.tyto") as localizer:
            localizer.teach(sound, 135.0, keep=True)
    assert found(wanted, [sound.read_bytes()]) == {"sound"}
    assert found(wanted, [read_audio(sound, load_array(ARRAY)).samples.tobytes()]) == {"floats"}
    assert found(wanted, [read_secret(tmp_path / "k.tyto")]) == {"state", "codes"}
    assert found(wanted, [identity_path().read_bytes()]) == {"keys"}
    assert all(len(set(runs)) == len(runs) for runs in wanted.values())
