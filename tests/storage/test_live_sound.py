"""Sound that comes live: every frame is answered with its last sample, raw sound, warnings in time."""

from __future__ import annotations

import io
import os
import re
import select
import socket
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.waves import plane_wave
from tytoalba.errors import AudioError, TytoWarning
from tytoalba.localizer.locate import locate
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import stream_audio, stream_raw

ARRAY = load_array("respeaker-usb-4")
HOP = ARRAY.frame_length // 2
RATE = ARRAY.sample_rate
SOUND = plane_wave(ARRAY, 75.0, 1.0)
ENDLESS_WAV = b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 4, RATE, 8 * RATE, 8, 16)
ENDLESS_WAV += b"data\xff\xff\xff\xff"
"""As ffmpeg writes it into a pipe."""
SCRIPT = """
import sys
from tytoalba import locate
from tytoalba.storage.soundfiles import stream_raw
source, context = sys.argv[1], int(sys.argv[2])
if source == "raw":
    source = stream_raw("-", "s16le", channels=4, sample_rate=16000)
for found in locate(source, "respeaker-usb-4", context=context):
    print(found.time, *found.azimuth, flush=True)
"""


def as_bytes(sound: NDArray[np.float32]) -> bytes:
    return np.rint(sound * 2**15).astype("<i2").T.tobytes()


def lines_within(stream: Any, seconds: float) -> list[str]:
    """All lines that come, until none comes for a while."""
    found = b""
    while select.select([stream], [], [], seconds)[0] and (data := os.read(stream.fileno(), 4096)):
        found, seconds = found + data, 0.5
    return found.decode().splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="select takes no pipes there")
@pytest.mark.parametrize(
    ("way", "context"), [("pipe", 0), ("pipe", 2), ("fifo", 0), ("socket", 0), ("raw", 0)]
)
def test_a_line_comes_with_the_last_sample_of_its_frame(way: str, context: int, tmp_path: Path) -> None:
    fifo = tmp_path / "sound.wav"
    os.mkfifo(fifo)
    ours, theirs = socket.socketpair()
    source = {"fifo": str(fifo), "raw": "raw"}.get(way, "-")
    stdin = theirs.fileno() if way == "socket" else subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, source, str(context)], stdin=stdin, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout
        theirs.close()
        sinks: dict[str, Callable[[], Any]] = {
            "fifo": lambda: fifo.open("wb", buffering=0),
            "socket": lambda: ours.makefile("wb", buffering=0),
        }
        sink: Any = sinks[way]() if way in sinks else run.stdin
        data, first = as_bytes(SOUND), 8 * (2 + context) * HOP
        sink.write(b"" if way == "raw" else ENDLESS_WAV)
        sink.write(data[:first])
        sink.flush()
        (line,) = lines_within(run.stdout, 30.0)  # and nothing more was written
        assert line.split() == [str(HOP / RATE), "75.0"]
        sink.write(data[first : first + 8 * (HOP - 1)])
        sink.flush()
        assert lines_within(run.stdout, 0.5) == []
        sink.write(data[first + 8 * (HOP - 1) : first + 8 * HOP])
        sink.flush()
        (line,) = lines_within(run.stdout, 10.0)
        assert line.split() == [str(2 * HOP / RATE), "75.0"]
        sink.close()
        ours.close()
        assert len(lines_within(run.stdout, 10.0)) == context
        assert run.wait(10) == 0


class Broken(io.RawIOBase):
    """A line that breaks in the middle."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self.data.readinto(buffer)
        if not n:
            raise OSError("the line broke")
        return n


def test_what_breaks_is_said() -> None:
    broken = Broken(ENDLESS_WAV + as_bytes(SOUND))
    with pytest.raises(AudioError, match="the file object cannot be read: the line broke"):
        list(stream_audio(broken, ARRAY))  # type: ignore[arg-type]
    with pytest.raises(AudioError, match="cannot be read: the line broke"):
        list(stream_raw(Broken(as_bytes(SOUND)), channels=4, sample_rate=RATE))  # type: ignore[arg-type]


# ---- raw sound


def encoded(sound: NDArray[np.float32], encoding: str) -> bytes:
    if encoding == "f32le":
        return sound.T.astype("<f4").tobytes()
    bits = int(encoding[1:3])
    whole = np.rint(sound.T.astype(np.float64) * 2 ** (bits - 1)).astype("<i4")
    if bits == 24:
        return bytes(np.ascontiguousarray(whole).view(np.uint8).reshape(-1, 4)[:, :3].tobytes())
    return bytes(whole.astype(f"<i{bits // 8}").tobytes())


@pytest.mark.parametrize("encoding", ["s16le", "s24le", "s32le", "f32le"])
@pytest.mark.parametrize("way", ["path", "file", "unbuffered"])
def test_raw_sound_is_the_sound(encoding: str, way: str, tmp_path: Path) -> None:
    grid = np.rint(SOUND * 2**15) / 2**15
    sound = grid.astype(np.float32)
    sound[0, :2] = -1.0, 0.5
    path = tmp_path / "sound.raw"
    path.write_bytes(encoded(sound, encoding))
    opened = path.open("rb", buffering=0 if way == "unbuffered" else -1)
    with opened as file:
        source: Any = path if way == "path" else file
        blocks = list(stream_raw(source, encoding, channels=4, sample_rate=RATE))
    assert np.array_equal(np.concatenate(blocks, axis=1), sound)
    assert blocks[0].dtype == np.float32


def test_raw_sound_of_a_device_is_located() -> None:
    six = np.zeros((6, SOUND.shape[1]), np.float32)
    six[1:5] = SOUND
    six[[0, 5]] = 0.1
    expected = [found.azimuth for found in locate(SOUND, ARRAY)]
    pieces = stream_raw(io.BytesIO(as_bytes(six)), channels=6, sample_rate=RATE, array=ARRAY)
    assert [found.azimuth for found in locate(pieces, ARRAY)] == expected
    faster = stream_raw(io.BytesIO(as_bytes(six)), channels=6, sample_rate=2 * RATE, array=ARRAY)
    assert np.concatenate(list(faster), axis=1).shape == (4, SOUND.shape[1] // 2)


def test_raw_sound_that_cannot_be_right_is_refused() -> None:
    def raw(data: bytes = b"", encoding: str = "s16le", channels: int = 4, rate: int = RATE) -> Iterator[Any]:
        return stream_raw(io.BytesIO(data), encoding, channels=channels, sample_rate=rate, array=ARRAY)

    for source, why in (
        (raw(encoding="mp3"), "no encoding called 'mp3'; known: s16le, s24le, s32le, f32le"),
        (raw(channels=0), "at least 1, got 0"),
        (raw(channels=2), "channels that came: 2"),
        (raw(rate=16), "kHz instead of Hz"),
        (raw(), "holds no samples"),
        (raw(encoded(SOUND * np.nan, "f32le"), "f32le"), "NaN or infinite"),
        (stream_raw("no-such.raw", channels=4, sample_rate=RATE), "no-such.raw cannot be read"),
    ):
        with pytest.raises(AudioError, match=why):
            list(source)
    with pytest.warns(TytoWarning, match="ends in the middle of a sample"):
        assert sum(block.shape[1] for block in raw(as_bytes(SOUND) + b"abc")) == SOUND.shape[1]


# ---- warnings


@pytest.mark.parametrize(
    "what", ["channel 2 is dead", "channels 1, 2 are identical", "clipped, .* channel 2"]
)
def test_channels_are_warned_of_in_time_and_once(what: str) -> None:
    sound = np.tile(SOUND, 8)
    if "dead" in what:
        sound[2] = 0.0
    elif "identical" in what:
        sound[2] = sound[1]
    else:
        sound[2, 3 * RATE : 3 * RATE + 100] = 1.0
    sound[:, : 2 * RATE] = 0.0  # silence says nothing about channels
    data = as_bytes(sound.clip(-1, 1 - 2**-15))
    pipe = (data[start : start + RATE] for start in range(0, len(data), RATE))  # eighths of a second
    source = cast("BinaryIO", SimpleNamespace(read=lambda _: next(pipe, b"")))
    blocks = stream_raw(source, channels=4, sample_rate=RATE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warned = [len(caught) for _ in blocks]
    assert warned == [0] * 39 + [1] * 25  # three seconds after the sound began, and never again
    assert re.search(what, str(caught[0].message))
