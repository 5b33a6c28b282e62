"""Sound that goes in comes out; what is wrong with it is said, never a NaN or a foreign exception."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import threading
import tracemalloc
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.errors import AudioError, TytoWarning, WrongKeyError
from tytoalba.signal import audio as audio
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import Framer, check, pick_channels, resample, rms
from tytoalba.storage.soundfiles import read_audio, stream_audio, write_audio

PAIR = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), sample_rate=16000)
RESPEAKER = load_array("respeaker-usb-4")


def noise(n_channels: int, n_samples: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (n_channels, n_samples)).astype(np.float32)


def on_16_bits(samples: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(np.rint(samples * 32768) / 32768, np.float32)


def encoded(
    samples: NDArray[np.float32], rate: int = 16000, kind: str = "WAV", subtype: str = "PCM_16"
) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples.T, rate, format=kind, subtype=subtype)
    return file.getvalue()


def joined(source: Any, **options: Any) -> NDArray[np.float32]:
    return np.concatenate(list(stream_audio(source, **options)), axis=1)


# Round trips


@pytest.mark.parametrize(
    ("suffix", "subtype", "error"),
    [("wav", "PCM_16", 0), ("flac", "PCM_16", 0), ("wav", "FLOAT", 0), ("ogg", "VORBIS", 0.05)],
)
def test_what_is_written_is_read(tmp_path: Path, suffix: str, subtype: str, error: float) -> None:
    tones = np.sin(np.arange(100_000) * np.array([[0.05], [0.08], [0.11]])) / 2
    samples, path = on_16_bits(tones), tmp_path / f"sound.{suffix}"
    write_audio(path, samples, 48000, subtype)
    sound = read_audio(path)
    assert sound.samples.dtype == np.float32
    assert sound.samples.flags.c_contiguous
    assert (sound.sample_rate, sound.duration) == (48000, 100_000 / 48000)
    assert rms(sound.samples - samples, None) <= error * rms(samples, None)
    assert np.array_equal(joined(path, block=7777), sound.samples)


def test_full_scale_survives_16_bits(tmp_path: Path) -> None:
    write_audio(tmp_path / "sound.wav", np.array([-1.0, 0.0, 32767 / 32768, 0.5]), 16000)
    assert read_audio(str(tmp_path / "sound.wav")).samples.tolist() == [[-1.0, 0.0, 32767 / 32768, 0.5]]


def test_one_mono_file_a_microphone(tmp_path: Path) -> None:
    samples = on_16_bits(noise(4, 5000))
    paths = [tmp_path / f"mic{i}.wav" for i in range(4)]
    for path, channel in zip(paths, samples, strict=True):
        write_audio(path, channel, 16000)
    assert np.array_equal(read_audio(paths, RESPEAKER).samples, samples)
    assert np.array_equal(joined([str(path) for path in paths], array=RESPEAKER, block=999), samples)
    assert np.array_equal(read_audio(paths[:1]).samples, samples[:1])


def test_channel_map_of_the_respeaker() -> None:
    samples = on_16_bits(noise(6, 300))
    assert np.array_equal(read_audio(io.BytesIO(encoded(samples)), RESPEAKER).samples, samples[1:5])
    assert np.array_equal(read_audio(io.BytesIO(encoded(samples[:4])), RESPEAKER).samples, samples[:4])
    sparse = replace(PAIR, channels=(0, 5))
    assert pick_channels(6, sparse, "recording") == [0, 5]
    assert pick_channels(2, sparse, "recording") == range(2)
    with pytest.raises(AudioError, match=r"came: 5;.*drops channels"):
        pick_channels(5, sparse, "recording")
    for few in (1, 2, 3):
        with pytest.raises(AudioError, match=rf"came: {few};.* 5 or more .*exactly 4 .*six-channel firmware"):
            pick_channels(few, RESPEAKER, "recording")
    with pytest.raises(AudioError, match="stereo mix-down"):
        next(stream_audio(io.BytesIO(encoded(samples[:2])), RESPEAKER))


class Unseekable(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def seek(self, *_: Any) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize("kind", [io.BytesIO, Unseekable])
def test_file_objects(kind: type[io.BytesIO]) -> None:
    samples = on_16_bits(noise(2, 3000))
    for data in (encoded(samples), encoded(samples, kind="FLAC")):
        assert np.array_equal(read_audio(kind(data)).samples, samples)
        assert np.array_equal(joined(kind(data), block=100), samples)
    end = io.BytesIO()
    end.write(encoded(samples))  # left at its end, as after writing
    assert np.array_equal(read_audio(end).samples, samples)


def promising(data: bytes, n_bytes: int) -> bytes:
    return data[:40] + struct.pack("<I", n_bytes) + data[44:]


TWO = on_16_bits(noise(2, 40_000))
PIPED = encoded(TWO)


@pytest.mark.parametrize(
    ("data", "ways"),
    [
        (PIPED, "read stream"),
        (promising(PIPED, 0xFFFFFFFF), "read stream"),  # as ffmpeg does on a pipe
        (promising(PIPED, 0x7FFFF000), "read stream"),  # as sox does
        (encoded(TWO, kind="FLAC"), "read"),
    ],
)
def test_standard_input(data: bytes, ways: str) -> None:
    script = (
        "import sys; from tytoalba.storage.soundfiles import *; import numpy as np;"
        "whole = sys.argv[1] == 'read';"
        "got = read_audio('-').samples if whole else np.concatenate(list(stream_audio('-')), axis=1);"
        "sys.stdout.buffer.write(got.tobytes())"
    )
    for way in ways.split():
        run = subprocess.run([sys.executable, "-c", script, way], input=data, capture_output=True)
        assert np.array_equal(np.frombuffer(run.stdout, np.float32), TWO.ravel()), run.stderr


def test_a_pipe_streams_before_it_ends() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as sink:
        impatience = threading.Timer(5.0, sink.close)  # rather than wait for ever for the end
        impatience.start()
        sink.write(promising(PIPED, 0xFFFFFFFF)[: 44 + 4 * 1000])
        blocks = stream_audio(source, block=1000)
        assert np.array_equal(next(blocks), TWO[:, :1000])
        assert not sink.closed
        impatience.cancel()
        sink.write(PIPED[44 + 4 * 1000 : 44 + 4 * 3000])
        sink.close()
        assert np.array_equal(np.concatenate(list(blocks), axis=1), TWO[:, 1000:3000])


@pytest.mark.parametrize(
    ("data", "why"), [(PIPED[:4044], "cut short, it holds 1000 of 40000 samples"), (b"fLaC", "is not WAV")]
)
def test_a_pipe_of_another_kind(data: bytes, why: str) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        with os.fdopen(writing, "wb") as sink:
            sink.write(data)
        with pytest.raises(AudioError, match=why):
            joined(source)


# Streams are what the whole is

RATES = st.sampled_from([None, 8000, 16000, 44100, 48000])


@settings(max_examples=40, deadline=None)
@given(n=st.integers(10, 5000), block=st.integers(1, 6000), rate=RATES, kind=st.sampled_from(["WAV", "FLAC"]))
def test_stream_is_the_whole(n: int, block: int, rate: int | None, kind: str) -> None:
    assume(block > 50 or n < 500)
    data = encoded(noise(3, n), kind=kind)
    whole = read_audio(io.BytesIO(data), sample_rate=rate)
    pieces = list(stream_audio(io.BytesIO(data), sample_rate=rate, block=block))
    assert np.array_equal(np.concatenate(pieces, axis=1), whole.samples)
    if rate in (None, 16000):
        assert max(piece.shape[1] for piece in pieces) <= block


def test_stream_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    write_audio(path, noise(4, 500_000), 48000)  # 8 MB of float32
    next(stream_audio(path, sample_rate=16000))  # what is imported does not count
    tracemalloc.start()
    framer = Framer(2048, 1024)
    n_frames = sum(len(framer.add(b)) for b in stream_audio(path, sample_rate=16000, block=4096))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_frames == (500_000 // 3 - 2048) // 1024 + 1
    assert peak < 1_000_000
    assert max(piece.shape[1] for piece in stream_audio(path, sample_rate=96_000, block=10_000)) < 15_000


# Resampling


def test_reading_takes_the_rate_of_the_array() -> None:
    data = encoded(noise(2, 4800), rate=48000)
    sound = read_audio(io.BytesIO(data), PAIR)
    assert (sound.sample_rate, sound.samples.shape) == (16000, (2, 1600))
    assert read_audio(io.BytesIO(data), PAIR, sample_rate=24000).samples.shape == (2, 2400)
    with pytest.raises(AudioError, match="kHz instead of Hz"):
        read_audio(io.BytesIO(data), sample_rate=48)
    for read in (read_audio, joined):
        with pytest.raises(AudioError, match="too short to resample"):
            read(io.BytesIO(encoded(noise(2, 1), rate=48000)), sample_rate=16000)
    with pytest.raises(AudioError, match="float32 or float64"):
        resample(np.zeros((2, 10), np.int16), 16000, 8000)


# What is suspicious


def warned(samples: NDArray[Any], block: int | None = None, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if block is None:
            check(samples)
        else:
            joined(io.BytesIO(encoded(samples, subtype="FLOAT")), block=block, **options)
    assert all(issubclass(warning.category, TytoWarning) for warning in caught)
    return [str(warning.message).split(": ", 1)[1] for warning in caught]


@settings(max_examples=60, deadline=None)
@given(runs=st.lists(st.integers(0, 6), max_size=12), sign=st.sampled_from([1, -1]), block=st.integers(1, 50))
def test_clipping_counts_runs_of_three(runs: list[int], sign: int, block: int) -> None:
    clean = np.array([0.25, *(x for run in runs for x in [1.0] * run + [0.1])], np.float32)
    samples = np.stack([noise(1, len(clean))[0], sign * clean])
    clipped = sum(run for run in runs if run >= 3)
    expected = [f"clipped, {clipped / len(clean):.2%} of channel 1; lower the input gain"] if clipped else []
    assert warned(samples) == expected
    assert warned(samples, block) == expected


@pytest.mark.parametrize("block", [None, 100, 65536])
def test_suspicious_channels(block: int | None) -> None:
    one = noise(4, 1000)
    assert warned(one, block) == []
    [silent] = warned(np.zeros((4, 1000), np.float32), block)
    assert "digital silence" in silent
    [dead] = warned(one * np.array([[1], [0], [1], [0]], np.float32), block)
    assert dead.startswith("channel 1, 3 is dead")
    [alike] = warned(one[[0, 1, 0, 1]], block)
    assert alike.startswith("channels 0, 2; 1, 3 are identical")
    [integers] = warned(one * 32768, block)
    assert "were integers not divided" in integers
    late = np.concatenate([np.zeros((4, 500), np.float32), one], axis=1)  # alike only while silent
    assert warned(late, block) == []


def test_channels_are_named_as_in_the_file() -> None:
    samples = noise(6, 500)
    samples[[3, 5]] = 0.0  # channel 5 is playback, not a microphone: its silence is fine
    [dead] = warned(samples, 100, array=RESPEAKER)
    assert dead.startswith("channel 3 is dead")


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (np.zeros((2, 0)), "empty"),
        (np.zeros(10), "channels first"),
        (np.zeros((2, 2, 2)), "channels first"),
        (np.zeros((2, 10), np.int16), "divide int16 by 32768"),
        (
            np.array([[0.0, 1.0, np.inf], [0.0, np.nan, np.nan]]),
            "3 samples are NaN or infinite, the first at 1;",
        ),
        (np.array([[0.0, 0.0, np.inf]]), "1 sample is NaN or infinite, the first at 2;"),
        (np.array([[0.0, 1e30]]), "wrong sample format"),
    ],
)
def test_check_refuses(samples: NDArray[Any], why: str) -> None:
    with pytest.raises(AudioError, match=why):
        check(samples)
    if samples.ndim == 2:
        with pytest.raises(AudioError, match=why):
            write_audio("never.wav", samples, 16000)
    with pytest.raises(AudioError):
        rms(samples[..., :0])


# What cannot be read

WAV = encoded(noise(2, 400))
NAN = encoded(np.array([[0.0] * 150 + [np.nan, np.nan]], np.float32), subtype="FLOAT")
FLAC = encoded(noise(2, 40000), kind="FLAC")
BAD_FILES = {
    "empty.wav": (b"", "is empty .0 bytes.*stopped before"),
    "text.wav": (b"time,azimuth\n0,90\n", "is text, not sound"),
    "page.wav": (b"<!DOCTYPE html><html>", "download probably failed"),
    "pointer.wav": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "voice.m4a": (b"\0\0\0\x20ftypM4A \0\0\0\0", "ffmpeg -i IN OUT.wav"),
    "random.wav": (b"\x01\x02\x80\x90" * 50, "is not wav, flac"),
    "sound.raw": (b"\0" * 400, "has no header"),
    "header.wav": (WAV[:20], "damaged or cut short"),
    "half.wav": (WAV[: len(WAV) // 2], "cut short, it holds [0-9]+ of 1600 bytes"),
    "half.flac": (FLAC[: len(FLAC) // 2], "cut short"),
    "piped.flac": (FLAC[:21] + bytes([FLAC[21] & 0xF0, 0, 0, 0, 0]) + FLAC[26:], "does not say how long"),
    "nothing.wav": (encoded(np.zeros((2, 0), np.float32)), "holds no samples"),
    "nan.wav": (NAN, "2 samples are NaN or infinite, the first at 150"),
    "slow.wav": (WAV[:24] + struct.pack("<I", 3) + WAV[28:], "damaged header"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(tmp_path: Path, name: str) -> None:
    content, why = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_audio, joined):
        with pytest.raises(AudioError, match=rf"{name}.*{why}"):
            read(path)
        if name != "sound.raw":
            with pytest.raises(AudioError, match=f"the file object.*{why}"):
                read(io.BytesIO(content))


def test_bad_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, closed = tmp_path / "folder.wav", io.BytesIO(WAV)
    folder.mkdir()
    closed.close()
    sources: list[tuple[Any, str]] = [
        (tmp_path / "none.wav", "none.wav: no such file; check"),
        (folder, "is a folder"),
        ("nul\0byte.wav", "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read"),
        ([], "no file given"),
        (closed, "is it closed"),
        (io.StringIO("text"), "opened in binary mode"),
        (7, "cannot read sound from int"),
        (np.zeros((2, 3)), "cannot read sound from ndarray"),
    ]
    for source, why in sources:
        for read in (read_audio, joined):
            with pytest.raises(AudioError, match=why):
                read(source)
    with pytest.raises(AudioError, match="block must be at least 1"):
        joined(io.BytesIO(WAV), block=0)
    monkeypatch.setattr(sys, "stdin", None)  # as under pythonw
    with pytest.raises(AudioError, match="cannot read sound"):
        read_audio("-")

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read a file without permissions
    with pytest.raises(
        AudioError, match=r"locked.wav cannot be read.*Permission denied.*check its permissions"
    ):
        read_audio("locked.wav")


def test_mono_files_must_agree(tmp_path: Path) -> None:
    good = [tmp_path / f"{i}.wav" for i in range(3)]
    for i, path in enumerate(good):
        write_audio(path, noise(1, 100, seed=i), 16000)
    for name, samples, rate, why in [
        ("long.wav", noise(1, 101), 16000, "has 101 samples, the others 100"),
        ("fast.wav", noise(1, 100), 48000, "has 48000 Hz, the others 16000"),
        ("stereo.wav", noise(2, 100), 16000, "has 2 channels, but several files must be mono"),
    ]:
        odd = tmp_path / name
        write_audio(odd, samples, rate)
        for read in (read_audio, joined):
            for paths in ([*good, odd], [odd, *good]):
                with pytest.raises(AudioError, match=f"{name} {why}"):
                    read(paths)
    with pytest.raises(AudioError, match=r"0.wav is given twice"):
        read_audio([good[0], good[0]])


def usable(samples: NDArray[np.float32]) -> bool:
    return samples.size > 0 and bool(np.isfinite(samples).all())


def survives(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TytoWarning)
        for source in (path, io.BytesIO(data)):
            with suppress(AudioError, WrongKeyError):  # bytes may begin as sealed files do
                assert usable(read_audio(source, sample_rate=16000).samples)
            with suppress(AudioError, WrongKeyError):
                assert usable(joined(source, block=500))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "sound"


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200), start=st.sampled_from([b"", b"RIFF", b"fLaC", WAV[:36], WAV[:44]]))
def test_random_bytes(scratch: Path, data: bytes, start: bytes) -> None:
    survives(start + data, scratch)


VALID = {kind: encoded(noise(2, 600), 48000, kind) for kind in ("WAV", "FLAC", "AIFF")}
VALID["float"] = encoded(noise(2, 600), 48000, subtype="FLOAT")
PLACES = st.one_of(st.integers(0, 60), st.integers(0, 2000))


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(sorted(VALID)),
    changes=st.lists(st.tuples(PLACES, st.integers(0, 255)), max_size=6),
    length=st.one_of(st.none(), st.integers(0, 5000)),
)
def test_damaged_files(scratch: Path, kind: str, changes: list[tuple[int, int]], length: int | None) -> None:
    data = bytearray(VALID[kind])
    for place, value in changes:
        data[place] = value
    survives(bytes(data[:length]), scratch)


# Writing


@pytest.mark.parametrize("fault", ["disk", "rename"])
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    path = tmp_path / "sound.wav"
    write_audio(path, noise(2, 1000), 16000)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise AssertionError if fault == "disk" else OSError(28, "No space left on device")

    if fault == "disk":
        monkeypatch.setattr(soundfile.SoundFile, "write", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(AudioError, match=r"is the disk full\?|No space left"):
        write_audio(path, noise(2, 2000), 16000)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["sound.wav"]  # noqa: PTH208


def test_writing_refuses(tmp_path: Path) -> None:
    samples = noise(2, 100)
    cases: list[tuple[str, Any, int, str, str]] = [
        ("loud.wav", 3 * samples, 16000, "PCM_16", "would clip; divide"),
        ("loud.wav", 3 * samples, 16000, "FLOAT", "would clip"),
        ("rate.wav", samples, 0, "PCM_16", "sample rate must be"),
        ("kind.xyz", samples, 16000, "PCM_16", "use .wav, .flac or .ogg"),
        ("kind", samples, 16000, "PCM_16", "use .wav, .flac or .ogg"),
        ("sound.ogg", samples, 16000, "PCM_16", "takes:.* VORBIS"),
        ("wide.wav", samples.T.repeat(20, axis=0), 16000, "PCM_16", "2000 channels"),
        ("no/folder.wav", samples, 16000, "PCM_16", "there is no folder"),
    ]
    for name, sound, rate, subtype, why in cases:
        with pytest.raises(AudioError, match=why):
            write_audio(tmp_path / name, sound, rate, subtype)
    (tmp_path / "folder.wav").mkdir()
    with pytest.raises(AudioError, match="cannot write"):
        write_audio(tmp_path / "folder.wav", samples, 16000)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.wav"]


def test_importing_is_light() -> None:
    script = "import sys, tytoalba.storage.soundfiles; print({'soundfile', 'soxr'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
    assert audio.BLOCK == 65536
