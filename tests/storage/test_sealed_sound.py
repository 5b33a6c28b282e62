"""Sound sealed while it comes: the same samples, gaps with their time, whole or not at all, bounded."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

pytest.importorskip("pyrage")

from tests.helpers.seals import Keys, names, public
from tests.helpers.updates import wait_until
from tytoalba.errors import SealError
from tytoalba.signal.array import load_array
from tytoalba.storage import sealed_sound, soundfiles
from tytoalba.storage.age import is_sealed, open_bytes, seal_stream
from tytoalba.storage.sealed_sound import SealedSound, to_bytes, w64_header, wav_header
from tytoalba.storage.soundfiles import read_audio, stream_audio

SOUND = (np.random.default_rng(0).integers(-(2**15), 2**15, (3, 20000)) / 2.0**15).astype(np.float32)


@pytest.mark.parametrize("name", ["talk.wav.age", "TALK.W64.AGE"])
def test_what_was_added_is_in_it_to_the_bit(tmp_path: Path, keys: Keys, name: str) -> None:
    recording = SealedSound(tmp_path / name, 3, 16000, [public(keys[0]), public(keys[1])])
    for start in range(0, 20000, 777):
        recording.add(SOUND[:, start : start + 777])
    assert not names(tmp_path)
    assert recording.finish()
    assert names(tmp_path) == [name]
    assert is_sealed(tmp_path / name)
    assert (tmp_path / name).stat().st_mode & 0o077 == 0
    for key in keys[:2]:
        found = read_audio(tmp_path / name, keys=[key])
        assert found.sample_rate == 16000
        assert np.array_equal(found.samples, SOUND)


@pytest.mark.parametrize("suffix", [".wav.age", ".w64.age"])
def test_a_long_one_streams(tmp_path: Path, keys: Keys, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = SealedSound(tmp_path / f"talk{suffix}", 3, 16000, [public(keys[0])])
    recording.add(SOUND)
    recording.finish()
    monkeypatch.setattr(soundfiles, "IN_MEMORY", 1000)
    blocks = list(stream_audio(tmp_path / f"talk{suffix}", block=3000, keys=[keys[0]]))
    assert len(blocks) > 3
    assert np.array_equal(np.concatenate(blocks, axis=1), SOUND)


def test_other_programs_read_what_is_inside(tmp_path: Path, keys: Keys) -> None:
    SealedSound(tmp_path / "empty.wav.age", 3, 16000, [public(keys[0])]).abandon()
    for header in (wav_header, w64_header):
        plain = header(3, 16000) + to_bytes(SOUND)
        samples, rate = soundfile.read(io.BytesIO(plain), dtype="float32")
        assert rate == 16000
        assert np.array_equal(samples.T, SOUND)


def test_gaps_are_said_and_kept_as_silence(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_sound, "LONGEST_SILENCE", 1.0)
    said: list[str] = []
    recording = SealedSound(tmp_path / "talk.wav.age", 3, 16000, [public(keys[0])], said.append)
    recording.add(SOUND)
    recording.add(SOUND[:, :0], lost=8000)
    recording.add(SOUND, lost=0)
    recording.add(SOUND, lost=160000)
    recording.finish()
    found = read_audio(tmp_path / "talk.wav.age", keys=[keys[0]]).samples
    gap, long = np.zeros((3, 8000), np.float32), np.zeros((3, 16000), np.float32)
    assert np.array_equal(found, np.concatenate([SOUND, gap, SOUND, long, SOUND], axis=1))
    assert said == [
        "the recording has a gap at 1.25 s: 0.50 s of sound are missing",
        "the recording has a gap at 3.00 s: 10.00 s of sound are missing, of which 1 s are kept as silence",
    ]


def test_a_disk_that_is_too_slow_costs_sound_and_no_memory(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_sound, "WAITING", 200_000)
    go_on = threading.Event()

    def slowly(reader: Any, *others: Any) -> None:
        reader.read(0)
        go_on.wait(10)
        seal_stream(reader, *others)

    monkeypatch.setattr(sealed_sound, "seal_stream", slowly)
    said: list[str] = []
    recording = SealedSound(tmp_path / "talk.wav.age", 3, 16000, [public(keys[0])], said.append)
    recording.add(SOUND)
    recording.add(SOUND)  # 180 000 bytes each: this one is missing
    go_on.set()
    wait_until(lambda: not recording._waiting._n_bytes)
    recording.add(SOUND)
    recording.finish()
    found = read_audio(tmp_path / "talk.wav.age", keys=[keys[0]]).samples
    assert np.array_equal(found, np.concatenate([SOUND, 0 * SOUND, SOUND], axis=1))
    assert said == ["the recording has a gap at 1.25 s: 1.25 s of sound are missing"]


def test_a_full_one_is_whole(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_sound, "WAV_ROOM", 9 * 25000)
    said: list[str] = []
    recording = SealedSound(tmp_path / "talk.wav.age", 3, 16000, [public(keys[0])], said.append)
    for _ in range(3):
        recording.add(SOUND)
    assert recording.finish()
    assert "the recording is full" in said[0]
    assert np.array_equal(read_audio(tmp_path / "talk.wav.age", keys=[keys[0]]).samples, SOUND)


def test_nothing_is_left_of_what_was_abandoned_or_is_empty(tmp_path: Path, keys: Keys) -> None:
    recording = SealedSound(tmp_path / "talk.wav.age", 3, 16000, [public(keys[0])])
    recording.add(SOUND)
    recording.abandon()
    assert not SealedSound(tmp_path / "talk.wav.age", 3, 16000, [public(keys[0])]).finish()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(reader: Any, *_: Any) -> None:
        reader.read(10)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealed_sound, "seal_stream", full)

    def record() -> None:
        recording = SealedSound(tmp_path / "talk.wav.age", 3, 16000, [public(keys[0])])
        recording._thread.join()  # the disk may be full before it is begun, or after
        recording.add(SOUND)

    with pytest.raises(SealError, match=r"talk\.wav\.age cannot be written \(No space left.*disk full"):
        record()
    assert not list(tmp_path.iterdir())


def test_a_name_that_cannot_be_is_refused_at_once(tmp_path: Path, keys: Keys) -> None:
    (tmp_path / "old.wav.age").write_bytes(b"precious")
    for name, why in {
        "talk.wav": "is called NAME.wav.age",
        "talk.flac.age": "is called NAME.wav.age",
        "old.wav.age": "is there already and stays",
        "none/talk.wav.age": "there is no folder",
    }.items():
        with pytest.raises(SealError, match=why):
            SealedSound(tmp_path / name, 3, 16000, [public(keys[0])])
    with pytest.raises(SealError, match="nobody to seal for"):
        SealedSound(tmp_path / "talk.wav.age", 3, 16000, [])
    with pytest.raises(SealError, match="is not a recipient"):
        SealedSound(tmp_path / "talk.wav.age", 3, 16000, ["me"])
    assert (tmp_path / "old.wav.age").read_bytes() == b"precious"


KILLED = """
import os, signal, sys, numpy as np
from tytoalba.storage.sealed_sound import SealedSound
recording = SealedSound(sys.argv[1], 3, 16000, [sys.argv[2]])
sound = np.frombuffer(b"PLAINPLAIN12" * 40000, "<i2").astype(np.float32).reshape(3, -1) / 2**15
for _ in range(200):
    recording.add(sound[:, :4000])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.end_to_end
def test_who_is_killed_leaves_no_sound(tmp_path: Path, keys: Keys) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "talk.wav.age"), public(keys[0])]
    assert subprocess.run(command, check=False, timeout=60).returncode == -9
    assert "talk.wav.age" not in names(tmp_path)
    for left in tmp_path.iterdir():  # a file system without nameless files keeps the sealed beginning
        assert b"PLAIN" not in left.read_bytes()


def test_what_was_recorded_is_located(tmp_path: Path, keys: Keys) -> None:
    from tests.helpers.waves import plane_wave
    from tytoalba.localizer.locate import locate

    array = load_array("respeaker-usb-4")
    recording = SealedSound(tmp_path / "talk.wav.age", 4, 16000, [public(keys[0])])
    recording.add(plane_wave(array, 130.0, 1.0))
    recording.finish()
    found = list(locate(tmp_path / "talk.wav.age", array, keys=[keys[0]]))
    assert {one.azimuth for one in found} == {(130.0,)}
    data = (tmp_path / "talk.wav.age").read_bytes()
    assert open_bytes(data, [keys[0]]).startswith(b"RIFF")
