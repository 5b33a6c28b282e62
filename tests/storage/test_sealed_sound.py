"""Sealed sound is the same sound, opened in memory, piece by piece where it is WAV."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

pytest.importorskip("pyrage")

from tests.helpers.seals import CHUNK, WRITES, Keys, names, public
from tytoalba.data import folder as folders
from tytoalba.errors import AudioError, SealError, TytoError, WrongKeyError
from tytoalba.signal.array import load_array
from tytoalba.storage import soundfiles as soundfiles
from tytoalba.storage.age import Identity
from tytoalba.storage.sealed import seal_file, write_secret
from tytoalba.storage.soundfiles import read_audio, stream_audio, write_audio

pytestmark = pytest.mark.usefixtures("no_threads_left")


@pytest.fixture
def own(keys: Keys) -> Identity:
    return keys[0]


@pytest.fixture(autouse=True)
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short recordings stream too, as long ones do."""
    monkeypatch.setattr(soundfiles, "IN_MEMORY", 0)


def test_short_ones_are_opened_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: Identity
) -> None:
    monkeypatch.setattr(soundfiles, "IN_MEMORY", 10**6)
    monkeypatch.setattr("tytoalba.storage.age.Unsealing", None)  # there is no need to stream
    write_audio(tmp_path / "a.wav", noise(2, 4000), 16000)
    seal_file(tmp_path / "a.wav", tmp_path / "a.wav.age", [public(own)])
    plain, opened = (joined(tmp_path / name, keys=[own]) for name in ("a.wav", "a.wav.age"))
    assert np.array_equal(plain, opened)


def noise(n_channels: int, n_samples: int) -> NDArray[np.float32]:
    grid = np.random.default_rng(0).integers(-9000, 9000, (n_channels, n_samples))
    return (grid / 32768).astype(np.float32)


def seal_in_place(path: Path, key: Identity) -> Path:
    target = path.with_name(path.name + ".age")
    seal_file(path, target, [public(key)])
    path.unlink()
    return target


def joined(source: Any, **options: Any) -> NDArray[np.float32]:
    return np.concatenate(list(stream_audio(source, **options)), axis=1)


@pytest.mark.parametrize(
    ("suffix", "kind"), [("wav", "WAV"), ("wav", "RF64"), ("flac", "FLAC"), ("ogg", "OGG"), ("aiff", "AIFF")]
)
def test_sealed_sound_is_the_same_sound(tmp_path: Path, own: Identity, suffix: str, kind: str) -> None:
    path = tmp_path / f"talk.{suffix}"
    soundfile.write(path, noise(4, 70000).T, 16000, format=kind)
    expected = read_audio(path)
    sealed = seal_in_place(path, own)
    WRITES.clear()
    np.testing.assert_array_equal(read_audio(sealed, keys=[own]).samples, expected.samples)
    np.testing.assert_array_equal(joined(sealed, block=999, keys=[own]), expected.samples)
    np.testing.assert_array_equal(
        joined(sealed, sample_rate=8000, keys=[own]), read_audio(sealed, None, 8000, [own]).samples
    )
    with sealed.open("rb") as file:
        np.testing.assert_array_equal(joined(file, keys=[own]), expected.samples)
        np.testing.assert_array_equal(read_audio(file, keys=[own]).samples, expected.samples)
    renamed = sealed.rename(tmp_path / "talk.bin")  # the name tells nothing
    np.testing.assert_array_equal(joined(str(renamed), keys=[own]), expected.samples)
    assert WRITES == []
    assert names(tmp_path) == ["talk.bin"]


def test_one_sealed_file_a_channel(tmp_path: Path, own: Identity) -> None:
    samples, paths = noise(3, 40000), []
    for i, suffix in enumerate(("wav", "flac", "wav")):
        write_audio(tmp_path / f"{i}.{suffix}", samples[i], 16000)
        paths.append(tmp_path / f"{i}.{suffix}")
    paths[:2] = [seal_in_place(path, own) for path in paths[:2]]
    np.testing.assert_array_equal(read_audio(paths, keys=[own]).samples, samples)
    np.testing.assert_array_equal(joined(paths, block=1000, keys=[own]), samples)


def test_wav_with_words_after_the_sound(tmp_path: Path, own: Identity) -> None:
    file = io.BytesIO()
    soundfile.write(file, noise(2, 5000).T, 16000, format="WAV")
    path = tmp_path / "x.age"
    write_secret(path, file.getvalue() + b"LIST\x04\0\0\0INFO" + bytes(3 * CHUNK), [public(own)])
    np.testing.assert_array_equal(joined(path, keys=[own]), noise(2, 5000))
    path.write_bytes(path.read_bytes()[:-1])  # after the sound, and yet altered
    with pytest.raises(SealError, match="damaged"):
        joined(path, keys=[own])


@pytest.mark.parametrize("unknown_length", [False, True])
def test_sealed_wav_that_breaks_later(tmp_path: Path, own: Identity, unknown_length: bool) -> None:
    path = tmp_path / "x.wav"
    write_audio(path, noise(2, 200000), 16000)
    if unknown_length:
        data = path.read_bytes()
        path.write_bytes(data[:40] + b"\xff\xff\xff\xff" + data[44:])
    sealed = bytearray(seal_in_place(path, own).read_bytes())
    sealed[-CHUNK * 2] ^= 1
    (tmp_path / "x.wav.age").write_bytes(sealed)
    for attempt in (read_audio, joined):
        with pytest.raises(SealError, match=r"x\.wav\.age is damaged"):
            attempt(tmp_path / "x.wav.age", keys=[own])
    (tmp_path / "x.wav.age").write_bytes(sealed[: -CHUNK * 4])
    with pytest.raises(SealError, match=r"x\.wav\.age is damaged"):
        joined([tmp_path / "x.wav.age"], keys=[own])


def test_sealed_for_others_or_not_sound(tmp_path: Path, keys: Keys) -> None:
    own, other, _ = keys
    write_secret(tmp_path / "x.wav.age", b"a voice", [public(other)])
    write_secret(tmp_path / "y.wav.age", b"a voice", [public(own)])
    for attempt in (read_audio, joined):
        with pytest.raises(WrongKeyError, match="no key was given: pass keys="):
            attempt(tmp_path / "x.wav.age")
        with pytest.raises(WrongKeyError, match=r"none of your keys opens .*x\.wav\.age"):
            attempt(tmp_path / "x.wav.age", keys=[own])
        with pytest.raises(AudioError, match="is text, not sound"):
            attempt(tmp_path / "y.wav.age", keys=[own])


def test_sealed_wav_streams_in_bounded_memory(tmp_path: Path, own: Identity) -> None:
    write_audio(tmp_path / "long.wav", noise(4, 16000 * 120), 16000)  # 15 MB
    sealed = seal_in_place(tmp_path / "long.wav", own)
    size, loud = 0, 0.0
    tracemalloc.start()
    for block in stream_audio(sealed, block=16000, keys=[own]):
        size, loud = size + block.shape[1], max(loud, float(block[0, 0]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 16000 * 120
    assert peak < 3e6
    stopped = cast("Generator[Any]", stream_audio(sealed, block=1000, keys=[own]))
    next(stopped)
    stopped.close()


def test_sealed_folder(tmp_path: Path, own: Identity) -> None:
    array = load_array("respeaker-usb-4")
    folders.write_array(tmp_path, array)
    frame_ids, azimuth = np.array([0, 2]), np.array([[10.0, np.nan], [20.0, 30.0]])
    for name in ("hall", "kitchen"):
        folders.write_recording(tmp_path, "test", name, noise(4, 9000), array, frame_ids, azimuth)
    for name in ("hall.wav", "hall.csv"):
        seal_in_place(tmp_path / "test" / name, own)
    write_secret(tmp_path / "test" / "kitchen.wav.age", b"of another day", [public(own)])
    seal_in_place(tmp_path / "array.toml", own)
    recordings = folders.open_folder(tmp_path, keys=[own])
    assert [r.name for r in recordings] == ["hall", "kitchen"]  # there twice, it counts once, plain
    for recording in recordings:
        assert recording.array == array.plain_channels()
        np.testing.assert_array_equal(recording.azimuth, azimuth)
        np.testing.assert_array_equal(recording.load(), noise(4, 9000))
    (tmp_path / "test" / "hall.csv.age").unlink()
    with pytest.raises(TytoError, match=r"hall\.csv is missing"):
        folders.open_folder(tmp_path, keys=[own])
