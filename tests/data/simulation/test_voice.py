"""Voices: synthetic speakers that are the same everywhere, and folders of real speech."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.signal import welch

from tytoalba.data.simulation.voice import (
    SPEECH_RATE,
    SpeechFolder,
    SyntheticVoices,
    choose_voices,
    split_speakers,
)
from tytoalba.errors import AudioError, DataError, TytoWarning
from tytoalba.storage.soundfiles import write_audio

SECONDS = 5
N = SECONDS * SPEECH_RATE


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def block_levels(speech: NDArray[np.float32]) -> NDArray[np.float64]:
    """RMS of each 20 ms."""
    blocks = speech[: len(speech) // 320 * 320].reshape(-1, 320).astype(np.float64)
    return np.asarray(np.sqrt(np.mean(blocks**2, axis=1)))


def babble(seed: int, n: int = N) -> NDArray[np.float32]:
    """Something like a recording: bursts of noise at a level of its own."""
    noise = rng(seed).standard_normal(n) * (np.arange(n) // 4000 % 2)
    return (0.05 * noise).clip(-1, 1).astype(np.float32)


def test_a_speaker_is_the_same_for_the_same_generator() -> None:
    voices = SyntheticVoices()
    one = voices.speak(3, N, rng(5))
    assert one.shape == (N,)
    assert one.dtype == np.float32
    assert np.isfinite(one).all()
    np.testing.assert_array_equal(one, SyntheticVoices(7).speak(3, N, rng(5)))
    assert not np.array_equal(one, voices.speak(3, N, rng(6)))  # another sentence
    assert not np.array_equal(one, voices.speak(4, N, rng(5)))  # another speaker


def test_speakers_have_pitches_of_their_own() -> None:
    pitches = []
    for speaker in range(8):
        speech = SyntheticVoices().speak(speaker, N, rng(speaker)).astype(np.float64)
        n = 1 << (2 * N).bit_length()
        correlation = np.fft.irfft(np.abs(np.fft.rfft(speech, n)) ** 2)[: SPEECH_RATE // 60]
        pitches.append(SPEECH_RATE / (SPEECH_RATE // 320 + int(correlation[SPEECH_RATE // 320 :].argmax())))
    assert min(pitches) < 130
    assert max(pitches) > 170


@pytest.mark.parametrize("speaker", [0, 17, 47])
def test_speech_is_loud_while_talking_and_pauses(speaker: int) -> None:
    levels = block_levels(SyntheticVoices().speak(speaker, N, rng(speaker)))
    loud = levels[levels >= np.median(levels)]
    assert np.sqrt(np.mean(loud**2)) == pytest.approx(1.0, abs=0.05)
    silent = levels < 0.01  # 40 dB below
    assert 0.03 < silent.mean() < 0.6
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]).astype(int)))
    pauses = [0.02 * (end - start) for start, end in edges.reshape(-1, 2) if start > 0 and end < len(silent)]
    assert sum(pause > 0.11 for pause in pauses) >= 2  # longer than the closure of any plosive


def test_speech_reaches_up_to_8_khz_and_is_mostly_low() -> None:
    powers = np.zeros(257)
    for speaker in range(6):
        hertz, power = welch(SyntheticVoices().speak(speaker, N, rng(speaker)), SPEECH_RATE, nperseg=512)
        powers += power
    share = powers / powers.sum()
    assert share[hertz < 1000].sum() > 0.4
    for low, high in ((1000, 2000), (2000, 4000), (4000, 6000), (6000, 8000)):
        assert share[(hertz >= low) & (hertz < high)].sum() > 0.001


@given(st.integers(3, 500))
def test_speakers_of_the_parts_are_disjoint_and_all_used(n_speakers: int) -> None:
    parts = [set(split_speakers(n_speakers, part)) for part in ("train", "valid", "test")]
    assert all(parts)
    assert len(parts[0] | parts[1] | parts[2]) == sum(map(len, parts)) == n_speakers
    assert parts[0] | parts[1] | parts[2] == set(range(n_speakers))
    assert len(parts[0]) >= len(parts[1]) == len(parts[2])


@pytest.mark.parametrize("n_speakers", [0, 1, 2])
def test_too_few_speakers_are_refused(n_speakers: int) -> None:
    with pytest.raises(DataError, match=f"{n_speakers} speakers are too few"):
        split_speakers(n_speakers, "train")


def test_a_folder_of_speech(tmp_path: Path) -> None:
    write_audio(tmp_path / "b.wav", babble(1), SPEECH_RATE)
    write_audio(tmp_path / "a.FLAC", babble(2), SPEECH_RATE)
    np.save(tmp_path / "c.npy", (32768 * babble(3)).astype(np.int16))
    (tmp_path / "README.txt").write_text("not a speaker")
    voices = SpeechFolder(tmp_path)
    assert [file.name for file in voices.files] == ["a.FLAC", "b.wav", "c.npy"]
    assert voices.n_speakers == 3
    for speaker, seed in ((0, 2), (1, 1), (2, 3)):
        speech = voices.speak(speaker, N // 2, rng(9))
        assert speech.shape == (N // 2,)
        assert speech.dtype == np.float32
        levels = block_levels(speech)
        assert np.sqrt(np.mean(levels[levels > 0.1] ** 2)) == pytest.approx(1.0, rel=0.05)
        whole = babble(seed)
        start = int(rng(9).integers(N))
        stretch = np.take(whole, np.arange(start, start + N // 2), mode="wrap")
        assert np.corrcoef(stretch, speech)[0, 1] > 0.999  # that speaker's own sound
        np.testing.assert_array_equal(speech, voices.speak(speaker, N // 2, rng(9)))
        assert not np.array_equal(speech, voices.speak(speaker, N // 2, rng(10)))


def test_speech_at_another_rate_is_resampled_and_short_speech_repeated(tmp_path: Path) -> None:
    t = np.arange(48000) / 48000
    write_audio(tmp_path / "tone.wav", 0.1 * np.sin(2 * np.pi * 500 * t), 48000)
    speech = SpeechFolder(tmp_path).speak(0, 3 * SPEECH_RATE, rng())
    assert speech.shape == (3 * SPEECH_RATE,)
    hertz = np.fft.rfftfreq(len(speech), 1 / SPEECH_RATE)
    assert hertz[np.abs(np.fft.rfft(speech)).argmax()] == pytest.approx(500, abs=0.5)
    np.testing.assert_array_equal(speech[:SPEECH_RATE], speech[SPEECH_RATE : 2 * SPEECH_RATE])


def test_a_missing_or_empty_folder_is_refused_and_may_be_filled(tmp_path: Path) -> None:
    folder = tmp_path / "speech"
    with pytest.raises(DataError, match="is not a folder; --speech takes a folder of sound files"):
        SpeechFolder(folder)
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing to hear")
    with pytest.raises(DataError, match=r"no speech in .*: expected sound files \(.*\.flac.*\.wav"):
        SpeechFolder(folder)
    np.save(folder / "one.npy", babble(0))
    assert SpeechFolder(folder).n_speakers == 1


def test_silent_speech_is_refused(tmp_path: Path) -> None:
    write_audio(tmp_path / "silence.wav", np.zeros(SPEECH_RATE), SPEECH_RATE)
    voices = SpeechFolder(tmp_path)
    with pytest.warns(TytoWarning, match="digital silence"), pytest.raises(DataError, match="silent"):
        voices.speak(0, 100, rng())


def npy(shape: str) -> bytes:
    """A file of samples whose header says that they have this shape."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(400)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.zeros(4000), "is silent or damaged"),
        (np.array([]), "is silent or damaged"),
        (np.array([0.1, np.nan, 0.2]), "is silent or damaged"),
        (np.ones((2, 1000)), r"expected an array \(n_samples,\).*got float64 \(2, 1000\)"),
        (np.array(["speech"]), r"expected an array \(n_samples,\)"),
        (b"", "cannot read it"),
        (b"\x93NUMPY\x01\x00", "cannot read it"),
        (pickle.dumps({"speech": 1}), "cannot read it"),
        *((npy(shape), "cannot read it") for shape in ("(9" + 14 * "0" + ",)", 4000 * "(", 9000 * "-" + "1")),
    ],
)
def test_damaged_arrays_are_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "speaker.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, np.asarray(content))
    with pytest.raises(DataError, match=message):
        SpeechFolder(tmp_path).speak(0, 100, rng())


def test_a_file_that_is_not_sound_is_named(tmp_path: Path) -> None:
    (tmp_path / "speaker.wav").write_text("<html>not found</html>")
    with pytest.raises(AudioError, match=r"speaker\.wav is a web page"):
        SpeechFolder(tmp_path).speak(0, 100, rng())


def test_real_speech_if_there_is_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "one.npy", babble(0))
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert isinstance(choose_voices(None), SyntheticVoices)
    chosen = choose_voices(f"~/{tmp_path.name}")
    assert isinstance(chosen, SpeechFolder)
    assert chosen.folder == tmp_path
