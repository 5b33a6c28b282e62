"""The age format: bytes and streams sealed for recipients and opened with keys.

age (age-encryption.org/v1) is a standard. What is sealed here opens with the command `age`, and the other way
round. Every 64 KiB are authenticated, so what was altered or cut short is refused, but age does not tell who
sealed it. Plain content stays in memory or in the stream that the caller gave.
"""

from __future__ import annotations

import binascii
import importlib
import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from tytoalba.errors import FileError, MissingExtraError, SealError, WrongKeyError

Prompt = Callable[[str], str]
"""Asks a person the question it is given; returns the answer."""

ARMOR = b"-----BEGIN AGE ENCRYPTED FILE-----"
MAGIC = (b"age-encryption.org/", ARMOR)
HEAD = 128
"""Bytes at the beginning that tell whether and how something is sealed, armored or not."""
PIECE = 65536
"""Bytes that are moved at a time."""
LARGEST_HEADER, MOST_RECIPIENTS = 2**17, 1000
"""Of a sealed file, bytes and entries of the header, which age reads anew for each of them: ten times as many
take a hundred times as long."""
LOOK = 4096
"""Bytes that are read at a time in search of the header's end."""


@dataclass(frozen=True, eq=False)
class Identity:
    """A secret key that opens what was sealed for its public key; it never shows itself.

    text: AGE-SECRET-KEY-1..., or an OpenSSH key. public: "age1...", what others seal for; None for an ssh
    key, whose public key lies beside it.
    """

    text: str = field(repr=False)
    public: str | None

    @property
    def secret(self) -> Any:
        """The key as pyrage has it, which cannot be sent to another process; the text can."""
        pyrage = load_pyrage()
        if self.public is None:
            return pyrage.ssh.Identity.from_buffer(self.text.encode())
        return pyrage.x25519.Identity.from_str(self.text)


class Passphrase:
    """A passphrase, or how to ask for one: asked when first needed, kept until it does not fit.

    It seals (alone, as age has it) and it opens.

    >>> Passphrase("correct horse")
    Passphrase(...)
    """

    def __init__(self, secret: str | Prompt) -> None:
        if secret == "":
            raise SealError("the passphrase is empty; give at least a few words")
        self._known = secret if isinstance(secret, str) else None
        self._prompt = None if isinstance(secret, str) else secret

    def __repr__(self) -> str:
        return "Passphrase(...)"

    def tries(self, name: str) -> Iterator[str]:
        """What may open `name`: what is known, then what is answered now."""
        if self._known is not None:
            yield self._known
        if self._prompt is not None:
            answer = self._prompt(f"Passphrase of {name}: ")
            if not answer:
                raise SealError(f"no passphrase given for {name}")
            self._known = answer
            yield answer


Recipient = str | Passphrase
"""For whom to seal: "age1...", an ssh public key ("ssh-ed25519 ...", "ssh-rsa ..."), or a passphrase."""
Key = Identity | Passphrase
Keys = Sequence[Key] | None
"""What to open with; None: nothing. A sequence may look for its keys only when something is sealed."""
REMEDY = "pass keys=..., or at the command: --identity FILE, or TYTO_IDENTITY"


def is_sealed(what: str | Path | bytes | BinaryIO) -> bool:
    """Whether a file, bytes or a seekable file object begins as age does; its name tells nothing.

    >>> is_sealed(b"age-encryption.org/v1 and so on"), is_sealed(b"RIFF")
    (True, False)
    """
    return head_of(what).startswith(MAGIC)


def has_passphrase(head: bytes) -> bool:
    """Whether what begins with these bytes (HEAD of them) is sealed with a passphrase, not for keys."""
    if head.startswith(ARMOR):
        lines = head.split(b"\n")
        with suppress(binascii.Error):
            head = binascii.a2b_base64(lines[1] if len(lines) > 1 else b"")
    return b"\n-> scrypt " in head[:40]


def head_of(what: str | Path | bytes | BinaryIO) -> bytes:
    """The first HEAD bytes; a file object stays where it is."""
    if isinstance(what, bytes):
        return what[:HEAD]
    try:
        if isinstance(what, str | Path):
            with Path(what).open("rb") as file:
                return file.read(HEAD)
        place = what.tell()
        head = what.read(HEAD)
        what.seek(place)
    except (OSError, AttributeError, ValueError) as error:
        raise FileError(
            f"cannot look into {what} ({error}); give a path, bytes or a seekable file"
        ) from error
    return head


def seal_bytes(data: bytes, recipients: Sequence[Recipient], *, armored: bool = False) -> bytes:
    """Seal bytes; any one of the recipients opens them. armored: as text, a third longer."""
    sealed = io.BytesIO()
    seal_stream(io.BytesIO(data), sealed, recipients, armored=armored)
    return sealed.getvalue()


def open_bytes(data: bytes, keys: Keys, name: str = "the data") -> bytes:
    """Open sealed bytes with the first key that fits. name: what errors call them."""
    plain = io.BytesIO()
    open_stream(io.BytesIO(data), plain, keys, name)
    return plain.getvalue()


def seal_stream(
    reader: BinaryIO, writer: BinaryIO, recipients: Sequence[Recipient], *, armored: bool = False
) -> None:
    """Seal all that reader gives into writer, in bounded memory; with a passphrase, as a whole in memory."""
    pyrage = load_pyrage()
    if not recipients:
        raise SealError("nobody to seal for: give a recipient (age1...), or make a key: tyto keygen")
    source, sink = _Relay(reader), _Relay(writer)
    with _refusing("what is being sealed", source, sink):
        phrases = [one for one in recipients if isinstance(one, Passphrase)]
        if not phrases:
            whom = [native_recipient(one) for one in recipients if isinstance(one, str)]
            pyrage.encrypt_io(source, sink, whom, armored=armored)
        elif len(recipients) > 1:
            raise SealError("a passphrase seals alone; give either a passphrase or recipients")
        else:
            phrase = next(phrases[0].tries("the new file"))
            sink.write(pyrage.passphrase.encrypt(source.read(), phrase, armored=armored))


def open_stream(reader: BinaryIO, writer: BinaryIO, keys: Keys, name: str = "the stream") -> None:
    """Open what reader gives into writer, in bounded memory; sealed with a passphrase, as a whole in memory.

    What was written before an error is authentic but incomplete: drop it.
    """
    source, sink = _Relay(reader), _Relay(writer)
    head = b""
    while len(head) < HEAD and (piece := source.read(HEAD - len(head))):
        head += piece
    if not head:
        raise SealError(f"{name} is empty (0 bytes); was the disk full when it was sealed? Copy it again")
    if not is_sealed(head):
        raise SealError(f"{name} is not sealed: it does not begin as age files do")
    source.before = _with_header(source, head, name)
    pyrage = load_pyrage()
    if has_passphrase(head):
        sink.write(_open_with_passphrase(source.read(), keys, name))
        return
    secrets = [key.secret for key in keys or () if isinstance(key, Identity)]
    if not secrets:
        raise WrongKeyError(f"{name} is sealed, and no key was given: {REMEDY}")
    with _refusing(name, source, sink):
        pyrage.decrypt_io(source, sink, secrets)


def _with_header(source: _Relay, start: bytes, name: str) -> bytes:
    """What is sealed up to the end of its header, and a little more; refused where the header is too long."""
    while True:
        header, end, _ = _unarmored(start).partition(b"\n---")
        is_long = len(header) > LARGEST_HEADER or (not end and len(start) > 2 * LARGEST_HEADER)
        if is_long or header.count(b"\n->") > MOST_RECIPIENTS:
            raise SealError(
                f"{name} is damaged, or made to keep programs busy: its header has more than "
                f"{MOST_RECIPIENTS} recipients or {LARGEST_HEADER} bytes"
            )
        if end or not (piece := source.read(LOOK)):
            return start
        start += piece


def _unarmored(start: bytes) -> bytes:
    """How sealed bytes begin, without their armor if they have one."""
    if not start.startswith(ARMOR):
        return start
    text = b"".join(start[len(ARMOR) :].partition(b"-----END")[0].split())
    with suppress(binascii.Error):
        return binascii.a2b_base64(text[: len(text) // 4 * 4])
    return b""


def open_start(reader: BinaryIO, keys: Keys, size: int, name: str = "the stream") -> bytes:
    """The first `size` bytes of what is sealed, authentic; the rest is not read."""
    start = _Start(size)
    with suppress(_EnoughError):
        open_stream(reader, start, keys, name)
    return start.getvalue()[:size]


class Unsealing(io.RawIOBase):
    """What a sealed file holds, read like a file that cannot seek: a thread opens it into a pipe.

    Memory is bounded and nothing touches the disk. At the end a read raises what was wrong with the seal, so
    what was read to its end is whole. `fileno` is the pipe, for libraries that read descriptors; call
    `finish` after them, they do not see errors. Close it before `reader`.
    """

    def __init__(self, reader: BinaryIO, keys: Keys, name: str) -> None:
        self._pipe, writing = os.pipe()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._open, args=(reader, writing, keys, name), daemon=True)
        self._thread.start()

    def _open(self, reader: BinaryIO, writing: int, keys: Keys, name: str) -> None:
        try:
            with os.fdopen(writing, "wb", buffering=0) as sink:
                open_stream(reader, sink, keys, name)
        except BaseException as error:  # raised again where it is read
            self._error = error

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def fileno(self) -> int:
        """The reading end of the pipe."""
        return self._pipe

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end, if all of it was right."""
        data = os.read(self._pipe, len(buffer))
        buffer[: len(data)] = data
        if not data:
            self.finish()
        return len(data)

    def finish(self) -> None:
        """Read what is left and raise what was wrong with any of it."""
        while os.read(self._pipe, PIECE):
            pass
        self._thread.join()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop; what was not read is not looked at."""
        if not self.closed:
            os.close(self._pipe)  # the thread, if it still writes, finds the pipe broken and ends
            self._thread.join()
        super().close()


def native_recipient(text: str) -> Any:
    """pyrage's recipient of "age1..." or of an ssh public key."""
    pyrage = load_pyrage()
    text = text.strip()
    if text.upper().startswith("AGE-SECRET-KEY-"):
        raise SealError("that is a secret key, to be shown to nobody; seal for its public key, age1...")
    if not text.startswith(("age1", "ssh-")):
        raise SealError(f"{text[:40]!r} is not a recipient; expected age1..., ssh-ed25519 ... or ssh-rsa ...")
    try:
        return (pyrage.ssh if text.startswith("ssh-") else pyrage.x25519).Recipient.from_str(text)
    except pyrage.RecipientError as error:
        raise SealError(f"{text[:80]!r} is not a valid recipient ({error}); was it copied whole?") from error


def load_pyrage() -> Any:
    """The package that knows age, or how to install it."""
    try:
        return importlib.import_module("pyrage")
    except ImportError as error:
        raise MissingExtraError("sealed files", "privacy") from error


class _Relay:
    """A stream as pyrage sees it: keeps what went wrong in it, of which pyrage would leave only words."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.before = b""
        self.error: BaseException | None = None

    def read(self, size: int = -1) -> bytes:
        with self._kept():
            if self.before and size >= 0:
                data, self.before = self.before[:size], self.before[size:]
                return data
            data = self.stream.read(size)
            if not isinstance(data, bytes):
                raise SealError(f"expected bytes, got {type(data).__name__}; open the file in binary mode")
            data, self.before = self.before + data, b""
            return data

    def write(self, data: bytes) -> int:
        with self._kept():
            left = memoryview(data)
            while left:
                left = left[self.stream.write(left) :]
        return len(data)

    def flush(self) -> None:
        with self._kept():
            self.stream.flush()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.error = error
            raise


class _EnoughError(Exception):
    """Ends a stream of which only the start is wanted."""


class _Start(io.BytesIO):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def write(self, data: Any) -> int:
        written = super().write(data)
        if self.tell() >= self.size:
            raise _EnoughError
        return written


@contextmanager
def _refusing(name: str, *relays: _Relay) -> Iterator[None]:
    """Errors of the streams as they were, those of pyrage as a SealError."""
    try:
        yield
    except SealError:
        raise
    except Exception as error:
        for relay in relays:
            if relay.error is not None:
                raise relay.error from None
        raise _refusal(str(error), name) from error


def _refusal(why: str, name: str) -> SealError:
    if why == "No matching keys found":
        return WrongKeyError(
            f"none of your keys opens {name}; it is sealed for other recipients. With another key: {REMEDY}"
        )
    if why.startswith("Unknown age format"):
        return SealError(f"{name} is not age v1; it is damaged, or made by a newer age")
    why = "" if why == "decryption error" else f" ({why.splitlines()[0]})"
    return SealError(f"{name} is damaged: altered or cut short after it was sealed{why}; copy it again")


def _open_with_passphrase(sealed: bytes, keys: Keys, name: str) -> bytes:
    pyrage = load_pyrage()
    phrases = [key for key in keys or () if isinstance(key, Passphrase)]
    if not phrases:
        raise WrongKeyError(
            f"{name} is sealed with a passphrase, and there is no terminal to ask for it; "
            "in Python, pass keys=[Passphrase(...)]"
        )
    for phrase in (text for one in phrases for text in one.tries(name)):
        try:
            plain: bytes = pyrage.passphrase.decrypt(sealed, phrase)
        except pyrage.DecryptError as error:
            if str(error) != "Decryption failed":
                raise _refusal(str(error), name) from error
        else:
            return plain
    raise WrongKeyError(f"the passphrase does not open {name}; check its spelling and the keyboard's layout")
