"""Files of keys and of recipients, and the user's folder of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from tytoalba.errors import SealError
from tytoalba.storage.age import (
    Identity,
    Passphrase,
    Prompt,
    has_passphrase,
    is_sealed,
    load_pyrage,
    native_recipient,
    open_bytes,
    seal_bytes,
)
from tytoalba.storage.files import locked, read_bytes, user_folder
from tytoalba.storage.writing import write_whole

SECRET = "AGE-SECRET-KEY-"
LENGTH = 74
"""Letters of a secret key."""
LARGEST = 2**20
"""Bytes. No file of keys is larger."""


def key_folder() -> Path:
    """The user's folder of keys, beside that of the priors."""
    return user_folder() / "keys"


def identity_path() -> Path:
    """The user's own secret keys, as `tyto keygen` makes them."""
    return key_folder() / "identity.txt"


def recipients_path() -> Path:
    """Public keys for which everything is sealed unless asked otherwise: one's own and a recovery key."""
    return key_folder() / "recipients.txt"


def read_identities(path: str | Path, prompt: Prompt | None = None) -> list[Identity]:
    """The keys of an identity file: of age-keygen, sealed with a passphrase (age -p), or of OpenSSH.

    Others must not be able to read it. prompt: asks for the passphrase of a sealed one.
    """
    data = _read(Path(path), secret=True)
    if is_sealed(data):
        return parse_identities(_unlocked(data, str(path), prompt), str(path))
    return parse_identities(_text(data, str(path)), str(path))


def parse_identities(text: str, name: str) -> list[Identity]:
    """The secret keys of a text: AGE-SECRET-KEY-1... on lines, or one OpenSSH key. Errors show none of it."""
    pyrage = load_pyrage()
    if text.lstrip().startswith("-----BEGIN"):
        try:
            pyrage.ssh.Identity.from_buffer(text.encode())
            return [Identity(text, None)]
        except pyrage.IdentityError as error:
            raise SealError(
                f"{name}: this ssh key cannot be used ({error}); ed25519 and rsa without a passphrase can"
            ) from error
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            secret = pyrage.x25519.Identity.from_str(line)
        except pyrage.IdentityError as error:
            raise SealError(
                f"{name}, line {number} is not a secret key; expected AGE-SECRET-KEY-1..., as tyto keygen "
                "and age-keygen write it"
            ) from error
        found.append(Identity(line, str(secret.to_public())))
    if not found:
        raise SealError(f"{name} holds no key; make one: tyto keygen")
    return found


def parse_recipients(words: Iterable[str | Path]) -> list[str]:
    """Public keys out of "age1...", "ssh-ed25519 ...", or files with one per line and # comments."""
    found: list[str] = []
    for word in words:
        if isinstance(word, str) and word.strip().startswith(("age1", "ssh-", SECRET)):
            native_recipient(word)
            found.append(word.strip())
        else:
            found += _recipients_of(Path(word))
    return list(dict.fromkeys(found))


def default_recipients() -> list[str]:
    """Those of recipients.txt in the user's folder, the recovery key among them; empty if there is none."""
    return _recipients_of(recipients_path()) if os.path.lexists(recipients_path()) else []


def listed_recipients() -> list[str]:
    """Those of recipients.txt; empty if there is no such file, or if it was left without any."""
    path = recipients_path()
    if not os.path.lexists(path):
        return []
    return _recipients_of(path) if _lines(_text(_read(path, secret=False), str(path))) else []


def add_default_recipients(publics: Iterable[str]) -> None:
    """Add public keys to those for which everything is sealed by default; nobody else is dropped."""
    make_key_folder()
    path = recipients_path()
    with locked(path, wait=10):
        old = _text(_read(path, secret=False), str(path)) if os.path.lexists(path) else ""
        known = listed_recipients()
        new = [public for public in dict.fromkeys(publics) if public not in known]
        old = old.rstrip("\n") or "# Everything is sealed for these."
        write_whole(path, "\n".join([old, *new, ""]).encode(), private=True)


def make_identity(path: str | Path, passphrase: Passphrase | None = None) -> str:
    """Make a key and write it as age-keygen does, for its owner only; returns the public key.

    What is at `path` is never replaced, but for a file that holds no key (`holds_no_key`): left by
    somebody who was killed. passphrase: seals the file itself.
    """
    path, key = Path(path), load_pyrage().x25519.Identity.generate()
    public, now = str(key.to_public()), datetime.now().astimezone().isoformat(timespec="seconds")
    data = f"# created: {now}\n# public key: {public}\n{key}\n".encode()
    if passphrase:
        data = seal_bytes(data, [passphrase], armored=True)
    if not path.parent.is_dir():
        raise SealError(f"cannot write {path}: there is no folder {path.parent}; does its folder exist?")
    with locked(path, wait=10):
        _remove_strays(path)
        try:
            write_whole(path, data, private=True, replace=holds_no_key(path))
        except FileExistsError as error:
            raise SealError(f"{path} is there already and stays; a lost key cannot be replaced") from error
    return public


def holds_no_key(path: str | Path) -> bool:
    """Whether a file is the beginning of what `make_identity` writes and no more: nothing, or cut short.

    An older tyto that was killed, or had no disk left, could leave that. Anything else is worth keeping.
    """
    path, begins = Path(path), ("# created: ", "# public key: age1", f"{SECRET}1")
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1000:
        return False
    try:
        *whole, last = path.read_bytes().decode().split("\n")
    except (OSError, UnicodeDecodeError):
        return False
    if len(whole) > 2 or len(last) >= LENGTH:
        return False
    begin = begins[len(whole)]
    return all(map(str.startswith, whole, begins)) and (last.startswith(begin) or begin.startswith(last))


def _remove_strays(path: Path) -> None:
    """Remove secret keys that an older tyto left in .STEM.RANDOM.SUFFIX when it was killed."""
    stray = re.compile(rf"\.{re.escape(path.stem)}\.[a-z0-9_]{{8}}{re.escape(path.suffix)}")
    for entry in path.parent.iterdir():
        if stray.fullmatch(entry.name) and entry.is_file() and not entry.is_symlink():
            with suppress(OSError):
                if not (content := entry.read_bytes()) or b"# public key: age1" in content:
                    entry.unlink()


def make_key_folder() -> None:
    """Make the user's folder of keys, which only the user enters."""
    key_folder().mkdir(mode=0o700, parents=True, exist_ok=True)


@lru_cache(maxsize=8)
def _unlocked(sealed: bytes, name: str, prompt: Prompt | None) -> str:
    """The text of a sealed identity file; a person is asked only once for it."""
    if not has_passphrase(sealed):
        raise SealError(f"{name} is sealed for another key; an identity file is sealed with a passphrase")
    if prompt is None:
        raise SealError(f"{name} is sealed with a passphrase, and there is no terminal to ask for it")
    return _text(open_bytes(sealed, [Passphrase(prompt)], name), name)


def _lines(text: str) -> list[str]:
    """What a file of keys says: its lines without remarks."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _recipients_of(path: Path) -> list[str]:
    found = []
    for number, line in enumerate(_text(_read(path, secret=False), str(path)).splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            native_recipient(line)
        except SealError as error:
            raise SealError(f"{path}, line {number}: {error}") from error
        found.append(line)
    if not found:
        raise SealError(f"{path} names no recipient; expected one age1... per line")
    return found


def _read(path: Path, *, secret: bool) -> bytes:
    """A file of keys; one with secrets must be closed to others."""
    if not path.exists():
        what = "identity file" if secret else "recipient or file of recipients"
        raise SealError(f"no {what} {str(path)!r}; check its spelling, or make a key: tyto keygen")
    return read_bytes(path, LARGEST, forbidden=0o077 if secret else 0, error=SealError)


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SealError(f"{name} is not text; expected keys, one per line") from error
