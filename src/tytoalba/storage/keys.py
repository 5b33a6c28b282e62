"""Files of keys and of recipients, and the user's folder of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
from tytoalba.storage.files import read_bytes, user_folder, written_whole

SECRET = "AGE-SECRET-KEY-"
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
                f"{name}, line {number} is no secret key; expected AGE-SECRET-KEY-1..., as tyto keygen and "
                "age-keygen write it"
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


def add_default_recipients(publics: Iterable[str]) -> None:
    """Add public keys to those for which everything is sealed by default."""
    path, known = recipients_path(), default_recipients()
    new = [public for public in dict.fromkeys(publics) if public not in known]
    old = _text(_read(path, secret=False), str(path)) if known else "# Everything is sealed for these.\n"
    make_key_folder()
    with written_whole(path, private=True) as temporary:
        temporary.write_text(old.rstrip("\n") + "\n" + "".join(f"{public}\n" for public in new))


def make_identity(path: str | Path, passphrase: Passphrase | None = None) -> str:
    """Make a key and write it as age-keygen does, for its owner only; returns the public key.

    What is at `path` is never replaced. passphrase: seals the file itself.
    """
    path, key = Path(path), load_pyrage().x25519.Identity.generate()
    public, now = str(key.to_public()), datetime.now().astimezone().isoformat(timespec="seconds")
    data = f"# created: {now}\n# public key: {public}\n{key}\n".encode()
    if passphrase:
        data = seal_bytes(data, [passphrase], armored=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # the name is ours, or refused
    except FileExistsError as error:
        raise SealError(f"{path} is there already and stays; a lost key cannot be replaced") from error
    except OSError as error:
        raise SealError(f"cannot write {path}: {error.strerror}; does its folder exist?") from error
    try:
        with written_whole(path, private=True) as temporary:
            temporary.write_bytes(data)
    except BaseException:
        path.unlink()
        raise
    return public


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
