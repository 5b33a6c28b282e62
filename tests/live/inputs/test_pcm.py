"""Raw sound through pipes: every encoding, cut anywhere, at once, bounded, closed while nothing comes."""

from __future__ import annotations

import io
import os
import threading
import time
from typing import BinaryIO

import numpy as np
import pytest

from tests.helpers.updates import wait_until
from tytoalba.errors import AudioError, TytoWarning
from tytoalba.live.inputs import pcm as module
from tytoalba.live.inputs.pcm import LONGEST_QUEUE, PcmInput
from tytoalba.storage.soundfiles import PIECE

SOUND = np.random.default_rng(0).integers(-(2**15), 2**15, (3, 5000)).astype("<i2")
DATA = SOUND.T.tobytes()


def pcm(stream: BinaryIO, encoding: str = "s16le") -> PcmInput:
    return PcmInput(stream, encoding, n_channels=3, sample_rate=16000)


def samples(found: PcmInput) -> np.ndarray:
    return np.concatenate([block.samples for block in found.blocks()], axis=1)


def test_samples_are_those_that_were_written() -> None:
    assert np.array_equal(samples(pcm(io.BytesIO(DATA))), SOUND / np.float32(2**15))
    floats = (SOUND / np.float32(2**15)).T.astype("<f4").tobytes()
    assert np.array_equal(samples(pcm(io.BytesIO(floats), "f32le")), SOUND / np.float32(2**15))


class Pipe:
    """Both ends of a pipe."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self.reading = os.fdopen(reading, "rb")

    def write(self, data: bytes) -> None:
        os.write(self._writing, data)

    def end(self) -> None:
        os.close(self._writing)


def test_what_comes_is_given_at_once_with_its_time() -> None:
    pipe = Pipe()
    found = pcm(pipe.reading)
    blocks = found.blocks()
    for n_bytes in (601, 1, 600):  # cut within a sample
        before = time.monotonic()
        pipe.write(DATA[:n_bytes])
        if n_bytes > 1:
            block = next(blocks)
            assert block.arrived is not None
            assert before <= block.arrived <= time.monotonic()
            assert block.samples.shape == (3, 100)
    pipe.end()
    with pytest.warns(TytoWarning, match="middle of a sample"):
        assert list(blocks) == []
    pipe.reading.close()


def test_it_ends_soon_after_close_though_nothing_comes() -> None:
    pipe = Pipe()
    found = pcm(pipe.reading)
    threading.Timer(0.05, found.close).start()
    began = time.monotonic()
    assert list(found.blocks()) == []
    assert time.monotonic() - began < 1
    pipe.end()
    pipe.reading.close()


def test_a_pipe_that_stalls_is_told_until_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALLED", 0.05)
    pipe = Pipe()
    blocks = pcm(pipe.reading).blocks()
    pipe.write(DATA[:600])
    assert next(one for one in blocks if one.samples.size).samples.shape == (3, 100)
    for _ in range(2):
        block = next(blocks)
        assert block.samples.shape == (3, 0)
        assert [fault.kind for fault in block.faults] == ["stalled"]
    pipe.write(DATA[600:1200])
    block = next(one for one in blocks if one.samples.size)
    assert not block.faults
    assert np.array_equal(block.samples, SOUND[:, 100:200] / np.float32(2**15))
    pipe.end()
    assert list(blocks) == []
    pipe.reading.close()


def test_who_writes_too_fast_waits() -> None:
    class Endless(io.RawIOBase):
        n_reads = 0

        def read1(self, size: int) -> bytes:
            self.n_reads += 1
            return bytes(size)

    endless = Endless()
    found = pcm(endless)  # type: ignore[arg-type]
    blocks = found.blocks()
    next(blocks)
    wait_until(lambda: endless.n_reads >= LONGEST_QUEUE)
    for _ in range(10):
        assert next(blocks).samples.shape[1] <= PIECE
    assert endless.n_reads <= LONGEST_QUEUE + 13
    found.close()


def test_what_cannot_be_right_is_refused() -> None:
    with pytest.raises(AudioError, match="no encoding called 'mp3'"):
        pcm(io.BytesIO(), "mp3")
    with pytest.raises(AudioError, match="holds no samples"):
        list(pcm(io.BytesIO()).blocks())
    closed = Pipe()
    closed.end()
    closed.reading.close()
    with pytest.raises(AudioError, match="standard input cannot be read"):
        list(pcm(closed.reading).blocks())


def test_nobody_reads_after_the_end() -> None:
    """Else a file that gets the same number may lose what comes through it."""
    pipe = Pipe()
    found = pcm(pipe.reading)
    blocks = found.blocks()
    pipe.write(DATA[:600])
    next(blocks)
    readers = [thread for thread in threading.enumerate() if thread.name == f"reads {found.name}"]
    found.close()
    assert list(blocks) == []
    assert not any(thread.is_alive() for thread in readers)
    pipe.write(DATA[600:700])
    assert pipe.reading.read1(100) == DATA[600:700]
    pipe.end()
    pipe.reading.close()
