"""Keys and sealed bytes for tests, and a writer of age's passphrase form after its specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tytoalba.storage import keys as identities
from tytoalba.storage.age import Identity
from tytoalba.storage.keys import make_identity, parse_identities

Keys = tuple[Identity, Identity, Identity]
posix = pytest.mark.skipif(os.name != "posix", reason="signals, forks and permission bits of POSIX")

CHUNK = 65536
"""Bytes that age authenticates at a time."""


def new_key(folder: Path, name: str = "key.txt") -> Identity:
    """A key whose file is folder/name."""
    make_identity(folder / name)
    (key,) = parse_identities((folder / name).read_text(), name)
    return key


def public(key: Identity) -> str:
    assert key.public is not None
    return key.public


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, not made yet: no keys, no variable, no keyring, no terminal, nothing remembered."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    for name in ("TYTO_IDENTITY", "TYTO_SIGNING_KEY", "TYTO_TRUSTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    identities._unlocked.cache_clear()
    return folder / "tytoalba"


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    a, b, c = (new_key(folder, name) for name in "abc")
    return a, b, c


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(str(entry.relative_to(folder)) for entry in folder.rglob("*") if not entry.is_dir())


def sealed_with_passphrase(data: bytes, passphrase: str, armored: bool = False, log_n: int = 8) -> bytes:
    """Up to CHUNK bytes, sealed in a few milliseconds: pyrage takes a second for each, on purpose."""
    file_key, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    salted = b"age-encryption.org/v1/scrypt" + salt
    wrapping = hashlib.scrypt(passphrase.encode(), salt=salted, n=2**log_n, r=8, p=1, dklen=32)
    wrapped = ChaCha20Poly1305(wrapping).encrypt(bytes(12), file_key, None)
    header = b"age-encryption.org/v1\n-> scrypt %s %d\n%s\n---" % (_base64(salt), log_n, _base64(wrapped))
    mac = hmac.digest(_derived(file_key, b"", b"header"), header, "sha256")
    only = ChaCha20Poly1305(_derived(file_key, nonce, b"payload")).encrypt(bytes(11) + b"\x01", data, None)
    sealed = header + b" " + _base64(mac) + b"\n" + nonce + only
    if not armored:
        return sealed
    text = base64.b64encode(sealed)
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    edges = (b"-----BEGIN AGE ENCRYPTED FILE-----", b"-----END AGE ENCRYPTED FILE-----")
    return b"\n".join([edges[0], *lines, edges[1], b""])


@pytest.fixture
def quick_passphrases(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - after it
    """A terminal where "words" is typed, and passphrases that do not take their second."""
    monkeypatch.setattr("pyrage.passphrase.encrypt", sealed_with_passphrase)
    monkeypatch.setattr("getpass.getpass", lambda _: "words")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))


WRITES: list[str] = []
"""Paths that Python opened for writing since this was cleared."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and not isinstance(arguments[0], int):  # a number is a pipe, open already
        path, _, flags = arguments
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
            WRITES.append(os.fsdecode(path))


sys.addaudithook(_watch)


def _base64(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _derived(key: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt or None, info).derive(key)
