"""Sound that is sealed while it comes: nothing plain ever touches the disk, and memory is bounded.

Inside is WAV, or W64, which has room for more than 4 GB, with 24 bits per sample. The file has its name only
when it is whole; a process that is killed leaves none.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import SealError
from tytoalba.storage.age import load_pyrage, native_recipient, seal_stream
from tytoalba.storage.writing import require_writable, whole_file

BYTES = 3
"""Of a sample: what sound cards have is kept to the bit."""
WAV_ROOM = 2**32 - 2**16
"""Bytes of sound that fit into WAV."""
WAITING = 2**23
"""Bytes of sound that wait for the disk at most; what comes then is missing."""
LONGEST_SILENCE = 60.0
"""Seconds of silence at most for sound that was lost; after that, time in the recording is shorter."""
SUFFIXES = (".wav.age", ".w64.age")
PATIENCE = 60.0
"""Seconds that the disk may take for what waits at the end."""


class SealedSound:
    """A sealed recording that grows.

    Parameters
    ----------
    path : str or Path
        It ends in .wav.age or .w64.age, and is not there yet.
    n_channels, sample_rate : int
        Of the sound; Hz.
    recipients : sequence of str
        Public keys ("age1...", "ssh-..."): each opens it.
    say : callable
        Tells people of gaps, and when it is full.

    Raises
    ------
    SealError
        The name is taken or cannot be written to, or there is nobody to seal for.
    """

    def __init__(
        self,
        path: str | Path,
        n_channels: int,
        sample_rate: int,
        recipients: Sequence[str],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path = checked_target(path)
        load_pyrage()
        if not recipients:
            raise SealError("nobody to seal for: give a recipient (age1...), or make a key: tyto keygen")
        for recipient in recipients:
            native_recipient(recipient)
        self._recipients, self._say = tuple(recipients), say
        self._size, self._rate = n_channels * BYTES, sample_rate
        self.n_samples = 0
        """Samples per channel that are in it."""
        self._full = False
        self._missing = 0
        is_wav = self.path.name.lower().endswith(".wav.age")
        self._room = WAV_ROOM // self._size if is_wav else 2**60
        self._waiting = _Waiting((wav_header if is_wav else w64_header)(n_channels, sample_rate))
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name=f"seals {self.path.name}", daemon=True)
        self._thread.start()
        self._waiting.wait_for_reader(self._thread)
        self._raise()

    @property
    def seconds(self) -> float:
        """Length so far."""
        return self.n_samples / self._rate

    @property
    def room(self) -> float:
        """Seconds for which there is room, as far as the format knows."""
        return self._room / self._rate

    def add(self, samples: NDArray[np.float32], lost: int = 0) -> None:
        """Take a block (n_channels, any length) in [-1, 1]; lost: samples that are missing before it.

        Never waits for the disk. SealError where it cannot be written any more.
        """
        self._raise()
        if self._full:
            return
        lost += self._missing
        self._missing = 0
        if lost:
            self._skip(lost)
        n = samples.shape[1]
        if self.n_samples + n > self._room:
            self._full = True
            self._waiting.end()
            self._say(
                f"the recording is full after {self.seconds / 3600:.1f} h, 4 GB; it is whole, and what comes "
                "now is not recorded. A name that ends in .w64.age has room for more"
            )
        elif not n:
            return
        elif self._waiting.put(to_bytes(samples)):
            self.n_samples += n
        else:
            self._missing = n

    def finish(self) -> bool:
        """Write what waits, and give the file its name; whether there is any sound in it."""
        if not self.n_samples:
            self.abandon()
            return False
        self._waiting.end()
        self._thread.join(PATIENCE)
        self._raise()
        if self._thread.is_alive():
            raise SealError(f"the disk takes too long to write {self.path}; it is not whole, and not kept")
        return True

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._waiting.abandon()
        self._thread.join(PATIENCE)

    def _skip(self, lost: int) -> None:
        """Silence for what is missing, so that time stays true."""
        at, silence = (
            self.seconds,
            min(lost, round(LONGEST_SILENCE * self._rate), self._room - self.n_samples),
        )
        self._waiting.put_silence(silence * self._size)
        self.n_samples += silence
        shorter = "" if silence == lost else f", of which {silence / self._rate:.0f} s are kept as silence"
        self._say(
            f"the recording has a gap at {at:.2f} s: {lost / self._rate:.2f} s of sound are missing{shorter}"
        )

    def _write(self) -> None:
        try:
            with whole_file(self.path, private=True, replace=False) as sink:
                seal_stream(self._waiting, sink, self._recipients)  # type: ignore[arg-type]
        except _AbandonedError:
            pass
        except BaseException as error:  # raised again where sound is added
            self._error = error
        finally:
            self._waiting.abandon()

    def _raise(self) -> None:
        if isinstance(self._error, OSError):
            why = self._error.strerror or str(self._error)
            raise SealError(
                f"{self.path} cannot be written ({why}), and nothing of it is kept: is the disk full?"
            ) from self._error
        if self._error is not None:
            raise self._error


def checked_target(path: str | Path) -> Path:
    """Where a sealed recording may be written, or a SealError that says why not; nothing is written yet."""
    path = Path(path)
    if not path.name.lower().endswith(SUFFIXES):
        raise SealError(
            f"{path}: a sealed recording is called NAME.wav.age, or NAME.w64.age for more than 4 GB"
        )
    if not path.parent.is_dir():
        raise SealError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    try:
        require_writable(path, replace=False)
    except FileExistsError as error:
        raise SealError(f"{path} is there already and stays; choose another name") from error
    return path


class _AbandonedError(Exception):
    """Nothing is to be kept."""


class _Waiting:
    """Bytes on their way from who hears to who seals, read like a file; bounded.

    Silence is kept as its number of bytes.
    """

    def __init__(self, header: bytes) -> None:
        self._pieces: deque[bytes | int] = deque([header])
        self._n_bytes = 0
        self._ended = self._abandoned = self._read = False
        self._changed = threading.Condition()

    def put(self, data: bytes) -> bool:
        """Let bytes wait; False where too many do already."""
        with self._changed:
            if self._n_bytes + len(data) > WAITING and self._n_bytes:
                return False
            self._n_bytes += len(data)
            self._pieces.append(data)
            self._changed.notify_all()
        return True

    def put_silence(self, n_bytes: int) -> None:
        """Let so many zeros wait."""
        with self._changed:
            if n_bytes:
                self._pieces.append(n_bytes)
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing comes after this."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Whoever reads is to stop."""
        with self._changed:
            self._abandoned = True
            self._pieces.clear()
            self._changed.notify_all()

    def wait_for_reader(self, thread: threading.Thread) -> None:
        """Until the first read, or until the thread that should read has ended."""
        with self._changed:
            while not self._read and not self._abandoned and thread.is_alive():
                self._changed.wait(0.1)

    def read(self, size: int = -1) -> bytes:
        """Some bytes, at most `size`, as soon as there are any; none at the end."""
        with self._changed:
            self._read = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._pieces or self._ended or self._abandoned)
            if self._abandoned:
                raise _AbandonedError
            if not self._pieces:
                return b""
            piece = self._pieces.popleft()
            if isinstance(piece, int):
                n = piece if size < 0 else min(piece, size)
                if n < piece:
                    self._pieces.appendleft(piece - n)
                return bytes(n)
            if 0 <= size < len(piece):
                self._pieces.appendleft(piece[size:])
                piece = piece[:size]
            self._n_bytes = max(self._n_bytes - len(piece), 0)
            return piece


def to_bytes(samples: NDArray[np.float32]) -> bytes:
    """Samples (n_channels, n) as 24 bits each, little-endian, all channels in turn.

    >>> to_bytes(np.array([[0.5], [-1.0]], np.float32)).hex()
    '000040000080'
    """
    whole = np.rint(np.clip(samples.T.astype(np.float64) * 2.0**23, -(2.0**23), 2.0**23 - 1)).astype("<i4")
    return np.ascontiguousarray(whole).view(np.uint8).reshape(-1, 4)[:, :BYTES].tobytes()


def wav_header(n_channels: int, sample_rate: int) -> bytes:
    """The beginning of a WAV file of unknown length, as programs write it to a pipe."""
    return (
        b"RIFF\xff\xff\xff\xffWAVEfmt "
        + struct.pack("<I", 16)
        + _format(n_channels, sample_rate)
        + b"data\xff\xff\xff\xff"
    )


def w64_header(n_channels: int, sample_rate: int) -> bytes:
    """The same of Sony's Wave64, whose chunks have long names and long lengths."""
    riff = b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00"
    wave, form, data = (name + b"\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a" for name in _W64)
    length = 2**60 // (n_channels * BYTES) * n_channels * BYTES  # more than there will be
    return (
        riff
        + struct.pack("<Q", length + 104)
        + wave
        + form
        + struct.pack("<Q", 40)
        + _format(n_channels, sample_rate)
        + data
        + struct.pack("<Q", length + 24)
    )


_W64 = (b"wave", b"fmt ", b"data")


def _format(n_channels: int, sample_rate: int) -> bytes:
    """What both say of the sound: integers of 24 bits."""
    size = n_channels * BYTES
    return struct.pack("<HHIIHH", 1, n_channels, sample_rate, sample_rate * size, size, 8 * BYTES)
