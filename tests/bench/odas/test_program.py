"""`odaslive` is somebody else's program: whatever it does, there is a result or a clear error."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.odaslive import FAKE, program
from tytoalba.bench import programs as module
from tytoalba.bench.odas.program import find_odas, run_odas
from tytoalba.bench.odas.settings import SHIPPED
from tytoalba.errors import TytoError
from tytoalba.signal.array import load_array

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts with a #! line")

ARRAY = load_array("respeaker-usb-4")
SOUND = np.zeros((4, 1280), np.float32)


def test_its_tracks_are_read(tmp_path: Path) -> None:
    reports = run_odas(program(tmp_path, FAKE), ARRAY, SOUND, SHIPPED)
    assert [report.hop for report in reports] == list(range(1, 12))
    assert [(one.id, one.azimuth) for one in reports[0].tracks] == [(7, 270.0)]


def test_it_gets_16_bits_of_every_channel(tmp_path: Path) -> None:
    text = """
import struct
first = struct.unpack("<8h", open("sound.raw", "rb").read(16))
open("tracks.json", "w").write('{"timeStamp": 99, "src": [%s]}' % ", ".join(
    '{"id": %d, "x": 1, "y": 0, "z": 0, "activity": 1}' % (one + 32769) for one in first))
"""
    sound = SOUND.copy()
    sound[:, 0], sound[:, 1] = (0.5, -0.25, 2.0, -2.0), 3 / 32768
    (report,) = run_odas(program(tmp_path, text), ARRAY, sound, SHIPPED)
    assert [one.id - 32769 for one in report.tracks] == [16384, -8192, 32767, -32768, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("print('no such key\\x1b[2J')\nraise SystemExit(3)", r"exit status 3: it said 'no such key.x1b.2J'"),
        ("import os\nos.kill(os.getpid(), 11)", "failed with signal 11"),
        ("", "wrote no tracks"),
        ("open('tracks.json', 'w').write('{\"timeStamp\": 1, \"src\": []}')", "reported 1 of 10 hops"),
        ("open('tracks.json', 'w').write('{\"timeStamp\": 1, \"sr')", "damaged at report 1"),
        ("open('tracks.json', 'wb').write(b'\\xff')", "is not text"),
        ("open('tracks.json', 'w')", "reported 0 of 10 hops"),
        ("open('tracks.json', 'w').write(' ' * 100_000)", "wrote more than 49152 bytes|writes without end"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TytoError, match=says):
        run_odas(program(tmp_path, text), ARRAY, SOUND, SHIPPED)


def test_one_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    text = f"import os, time\nopen({str(pid)!r} + '~', 'w').write(str(os.getpid()))\n"
    text += f"os.rename({str(pid)!r} + '~', {str(pid)!r})\nwhile True: time.sleep(1)"
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) * 100.0 * pid.exists())  # flies once it runs
    with pytest.raises(TytoError, match=r"was not done after 30 s, and was stopped"):
        run_odas(program(tmp_path, text), ARRAY, SOUND, SHIPPED)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_one_that_floods_the_disk_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SAID", 10_000)
    flood = program(tmp_path, "while True: print('x' * 1000, flush=True)")
    with pytest.raises(TytoError, match="writes without end"):
        run_odas(flood, ARRAY, SOUND, SHIPPED)


def test_a_program_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TytoError, match="build it from introlab/odas"):
        find_odas(tmp_path / "odaslive")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(TytoError, match=r"chmod \+x"):
        find_odas(tmp_path / "text")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(TytoError, match=r"is it made for this machine|failed with"):
        run_odas(find_odas(tmp_path / "text"), ARRAY, SOUND, SHIPPED)


@pytest.mark.parametrize("sound", [SOUND[:3], SOUND[:, :100], SOUND * np.nan])
def test_sound_that_does_not_fit_is_refused(sound: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(TytoError, match="ODAS needs 4 channels and 256 samples"):
        run_odas(tmp_path / "never run", ARRAY, sound, SHIPPED)
