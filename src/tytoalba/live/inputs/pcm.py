"""Sound without a header, as it comes through a pipe: from arecord, ffmpeg, GStreamer, another machine."""

from __future__ import annotations

import os
import queue
import select
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

from tytoalba.errors import AudioError, TytoWarning
from tytoalba.live.inputs.input import Block
from tytoalba.live.update import Fault
from tytoalba.storage.soundfiles import ENCODINGS, PIECE, check_raw, decode_raw

LONGEST_QUEUE = 64
"""Pieces that wait to be taken, of `PIECE` bytes at most; then the pipe fills, and its writer waits."""
LOOK = 0.125
"""Seconds between two looks whether it was closed."""
MOST_WAIT = 2.0
"""Seconds that the end waits for the reading thread, which looks every `LOOK` whether it shall go on."""
STALLED, TELL = 1.0, 0.25
"""Seconds without sound until that is a fault, and between two blocks that say so."""


class PcmInput:
    """Raw samples of all channels in turn, as an `Input`.

    stream: a binary stream; encoding: one of s16le, s24le, s32le, f32le. sample_rate: Hz. name: what people
    call it. Nothing is lost: who writes faster than the sound is taken waits.
    """

    def __init__(
        self,
        stream: BinaryIO,
        encoding: str = "s16le",
        *,
        n_channels: int,
        sample_rate: int,
        name: str = "standard input",
    ) -> None:
        check_raw(encoding, n_channels, sample_rate, name)
        self._stream, self._encoding, self._name = stream, encoding, name
        self._n_channels, self._sample_rate = n_channels, sample_rate
        self._waiting: queue.Queue[tuple[bytes, float]] = queue.Queue(LONGEST_QUEUE)
        self._closed = threading.Event()
        self._error: OSError | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return self._name

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._sample_rate

    @property
    def n_channels(self) -> int:
        """Channels of its blocks."""
        return self._n_channels

    def blocks(self) -> Iterator[Block]:
        """The sound, as soon as it is there; AudioError where there is none at all."""
        reader = threading.Thread(target=self._read, name=f"reads {self._name}", daemon=True)
        reader.start()
        try:
            yield from self._taken()
        finally:  # nobody reads any more, or the next to open a file may lose what comes through it
            self._closed.set()
            with suppress(ValueError):  # it was closed meanwhile
                if _descriptor(self._stream) is not None:
                    reader.join(MOST_WAIT)

    def _taken(self) -> Iterator[Block]:
        """Blocks of what was read."""
        size = ENCODINGS[self._encoding] * self._n_channels
        rest, found = b"", False
        came = told = time.monotonic()
        while not self._closed.is_set():
            try:
                data, arrived = self._waiting.get(timeout=LOOK)
            except queue.Empty:
                now = time.monotonic()
                if now - came >= STALLED and now - told >= TELL:
                    told = now
                    yield self._nothing(now)
                continue
            came = arrived
            if not data:
                self._end(found, bool(rest))
                return
            data = rest + data
            whole = len(data) // size * size
            rest = data[whole:]
            if whole:
                found = True
                yield Block(decode_raw(data[:whole], self._encoding, self._n_channels), arrived)

    def close(self) -> None:
        """Stop; `blocks` ends within a moment, also where nothing comes. The stream stays open."""
        self._closed.set()

    def _nothing(self, now: float) -> Block:
        """A block without samples, as nothing has come for a while."""
        text = f"nothing comes through {self._name}; has the program that records stopped?"
        empty = np.zeros((self._n_channels, 0), np.float32)
        return Block(empty, now, faults=(Fault("stalled", (), text),))

    def _end(self, found: bool, rest: bool) -> None:
        if self._error is not None:
            raise AudioError(f"{self._name} cannot be read: {self._error}") from self._error
        if not found:
            raise AudioError(f"{self._name} holds no samples: was anything recorded?")
        if rest:
            message = f"{self._name} ends in the middle of a sample: are encoding and channels right?"
            warnings.warn(message, TytoWarning, stacklevel=2)

    def _read(self) -> None:
        """Keep reading, with the time at which each piece came; an empty piece is the end."""
        try:
            while not self._closed.is_set():
                if (data := self._piece()) is not None:
                    self._put(data)
                    if not data:
                        return
        except (OSError, ValueError) as error:  # ValueError: somebody closed the stream
            self._error = error if isinstance(error, OSError) else OSError(str(error))
            self._put(b"")

    def _piece(self) -> bytes | None:
        """What is there; None where nothing came for a while."""
        descriptor = _descriptor(self._stream)
        if descriptor is None:
            stream: Any = self._stream
            data: bytes = getattr(stream, "read1", stream.read)(PIECE)
            return data
        if not select.select([descriptor], [], [], LOOK)[0]:
            return None
        return os.read(descriptor, PIECE)

    def _put(self, data: bytes) -> None:
        piece = data, time.monotonic()
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._waiting.put(piece, timeout=LOOK)
                return


def _descriptor(stream: BinaryIO) -> int | None:
    """What the system can wait for; None where it cannot, and a read waits."""
    if sys.platform == "win32":
        return None
    try:
        return stream.fileno()
    except (OSError, AttributeError):
        return None
