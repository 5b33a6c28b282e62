"""Secrets at rest: files sealed with age, read and written without their plain content on the disk.

>>> from tempfile import TemporaryDirectory
>>> from tytoalba.storage.keys import make_identity, read_identities
>>> with TemporaryDirectory() as folder:
...     public = make_identity(f"{folder}/identity.txt")
...     write_secret(f"{folder}/state.age", b"who stood where", [public])
...     is_sealed(f"{folder}/state.age")
...     read_secret(f"{folder}/state.age", read_identities(f"{folder}/identity.txt"))
True
b'who stood where'
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tytoalba.errors import FileError, SealError
from tytoalba.storage.age import (
    ARMOR,
    PIECE,
    Keys,
    Recipient,
    Unsealing,
    has_passphrase,
    head_of,
    is_sealed,
    open_bytes,
    open_stream,
    seal_bytes,
    seal_stream,
)
from tytoalba.storage.files import explained, locked, read_whole
from tytoalba.storage.writing import whole_file

Advance = Callable[[int], None]
"""Called with how many bytes were read since the last time."""


def opened(data: bytes, keys: Keys, name: str) -> bytes:
    """Data as it is, or opened with the keys if it is sealed. name: what errors call it."""
    return open_bytes(data, keys, name) if is_sealed(data) else data


def read_secret(path: str | Path, keys: Keys = None) -> bytes:
    """All that a file holds; opened in memory if it is sealed, as it is otherwise."""
    return opened(read_whole(path), keys, str(path))


def write_secret(path: str | Path, data: bytes, recipients: Sequence[Recipient] | None = None) -> None:
    """Write a file that its owner alone can read, whole or not at all; sealed if recipients are given.

    An empty list of recipients is refused: it is more likely a mistake than a wish for plain text.
    """
    if recipients is not None:
        data = seal_bytes(data, recipients)
    with _writing(path) as sink:
        sink.write(data)


def seal_file(
    path: str | Path,
    target: str | Path,
    recipients: Sequence[Recipient],
    *,
    replace: bool = True,
    advance: Advance | None = None,
) -> None:
    """Seal a file of any size into another, whole or not at all.

    replace: False raises FileExistsError if the target is there, and leaves it.
    """
    with _reading(path, advance) as file:
        if is_sealed(file):
            raise SealError(f"{path} is sealed already; to change the recipients: tyto rewrap {path}")
        with _writing(target, replace) as sink:
            seal_stream(file, sink, recipients)


def open_file(
    path: str | Path,
    target: str | Path | BinaryIO,
    keys: Keys = None,
    *,
    replace: bool = True,
    advance: Advance | None = None,
) -> None:
    """Open a sealed file of any size into another, for its owner only, whole or not at all.

    target: also a binary file object; what it got before an error is authentic but incomplete.
    replace: False raises FileExistsError if the target is there, and leaves it.
    """
    with _reading(path, advance) as file:
        if not isinstance(target, str | Path):
            open_stream(file, target, keys, str(path))
            return
        with _writing(target, replace) as sink:
            open_stream(file, sink, keys, str(path))


def rewrap(
    path: str | Path,
    keys: Keys,
    recipients: Sequence[Recipient],
    *,
    advance: Advance | None = None,
) -> None:
    """Seal a file again, for other recipients; whole or not at all, its plain content never on the disk.

    Copies that were made before still open with the old keys.
    """
    path = Path(path).resolve()  # a link stays a link
    with locked(path), _reading(path, advance) as file:  # or a state that is taught meanwhile would be lost
        armored = head_of(file).startswith(ARMOR)
        with _writing(path) as sink, unsealed(file, keys, str(path)) as plain:
            seal_stream(plain, sink, recipients, armored=armored)


def same_content(path: str | Path, sealed: str | Path, keys: Keys) -> bool:
    """Whether a sealed file opens, to its end, to exactly the bytes of a plain one."""
    with _reading(path) as file, _reading(sealed) as other, unsealed(other, keys, str(sealed)) as plain:
        while piece := plain.read(PIECE):
            if file.read(len(piece)) != piece:
                return False
        return not file.read(1)


@contextmanager
def unsealed(file: BinaryIO, keys: Keys, name: str) -> Iterator[BinaryIO]:
    """What a sealed, seekable file holds, to be read from front to back in bounded memory.

    The last read raises if the seal is broken. Sealed with a passphrase, it is held in memory.
    """
    if has_passphrase(head_of(file)):
        yield io.BytesIO(open_bytes(file.read(), keys, name))
        return
    with Unsealing(file, keys, name) as plain:
        yield io.BufferedReader(plain, PIECE)


class _Watched(io.FileIO):
    """A file that tells how far it was read."""

    def __init__(self, path: Path, advance: Advance) -> None:
        super().__init__(path)
        self.advance = advance

    def readinto(self, buffer: object) -> int:
        n_bytes: int = super().readinto(buffer)  # type: ignore[arg-type]
        self.advance(n_bytes)
        return n_bytes


@contextmanager
def _reading(path: str | Path, advance: Advance | None = None) -> Iterator[BinaryIO]:
    with explained(path):
        file = io.BufferedReader(_Watched(Path(path), advance or (lambda _: None)), PIECE)
    with file:
        yield file


@contextmanager
def _writing(path: str | Path, replace: bool = True) -> Iterator[BinaryIO]:
    path = Path(path)
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    with whole_file(path, private=True, replace=replace) as sink:
        yield sink
