"""Signed models and states: a signature that was there once is missed, and a counter orders the versions.

What came by a name (signer, kind, file name) is remembered with its sequence: an older one is refused. So
is a file without a signature at a path that had one. Files that nobody signed are taken only if the user says
so (`unsigned`). The sequence of a signature is one more than that of the last one: no clock is asked.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from tytoalba.errors import FileError, SignatureError, TytoError
from tytoalba.localizer.history import place_of
from tytoalba.storage.files import read_bytes
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.remembered import Memory, recall, remembering
from tytoalba.storage.signatures import (
    LARGEST,
    LARGEST_WHOLE,
    find_signing_key,
    read_manifest,
    require_trusted,
    sign_file,
    signature_path,
    verify_bytes,
)
from tytoalba.storage.steps import Facts

FIRST = 2**31
"""Sequence of the first signature: those of an earlier version were seconds since 1970, and are smaller."""


def check_signature(path: Path, raw: bytes, kind: str, memory: Memory, unsigned: bool = False) -> None:
    """Refuse what is not as it was signed, and what is older than what came by that name before.

    unsigned: who signed this path before need not be trusted any more.
    """
    signature = read_bytes(signature_path(path), LARGEST, error=SignatureError)
    signer = read_manifest(signature).signer
    name, place = _name(signer, kind, path), place_of(path)
    if not (unsigned and memory.places.get(place) == f"{signer} {kind}"):
        require_trusted(signer, None, str(path))
    newest = memory.signed.get(name, 0)
    manifest = verify_bytes(raw, signature, path.name, kind, trusted=[signer], at_least=newest)
    if manifest.sequence > newest or memory.places.get(place) != f"{signer} {kind}":
        with remembering() as memory:
            memory.put(memory.signed, name, max(manifest.sequence, memory.signed.get(name, 0)))
            memory.put(memory.places, place, f"{signer} {kind}")


def refuse_unsigned(path: Path, kind: str, memory: Memory, unsigned: bool = False) -> None:
    """Refuse a file without signature and ledger; one that had them also where unsigned ones are taken."""
    signer = memory.places.get(place_of(path), "").partition(" ")[0]
    if signer:
        raise SignatureError(
            f"{path} was signed by {signer} when it was last seen, and {signature_path(path).name} is not "
            f"there now: put it back, or accept the file on purpose: `tyto restore {path.name}`"
        )
    if place_of(path) in memory.paths:
        raise FileError(
            f"{path} was a state with a ledger when it was last seen, and this is another file: put both "
            f"back, or accept it on purpose: `tyto restore {path.name}`"
        )
    if not unsigned:
        once = [name for name in memory.signed if name.endswith(f" {kind} {_nfc(path)}")]
        raise FileError(
            f"nobody signed {path}: its owner can, with `tyto sign {path.name}`, or send its ledger along; "
            "--unsigned (unsigned=True) takes it as it is"
            + (f". A file of this name was signed by {once[-1].partition(' ')[0]} before" if once else "")
        )


def described(path: Path, raw: bytes, kind: str) -> str:
    """What the signature of a file says, in words."""
    if not os.path.lexists(signature_path(path)):
        return "nobody signed it"
    try:
        check_signature(path, raw, kind, recall())
        return f"signed by {read_manifest(signature_path(path).read_bytes()).signer}"
    except TytoError as error:
        return f"NOT TRUE: {error}"


def sign(path: Path, kind: str, about: Facts | None = None, at_least: int = 0) -> Path:
    """Sign a file for others. Its sequence is one more than the last: who has met it notices an older one.

    at_least: the sequence is larger than this too, such as the length of a ledger that only grows.
    """
    key = find_signing_key()
    name = _name(key.fingerprint, kind, path)
    with remembering() as memory:
        if os.path.lexists(beside := ledger_path(path.resolve())):
            at_least = max(at_least, Ledger.open(beside).length)
        written = _written_sequence(path, key.fingerprint)
        last = max(memory.signed.get(name, 0), written, FIRST + at_least - 1)
        if last >= LARGEST_WHOLE:
            raise SignatureError(f"{path.name} was signed with the largest number there is; rename it")
        signature = sign_file(path, key, kind, last + 1, about)
        memory.put(memory.signed, name, last + 1)
        memory.put(memory.places, place_of(path), f"{key.fingerprint} {kind}")
        if kind == "model":
            memory.paths.pop(place_of(path), None)
    return signature


def _written_sequence(path: Path, signer: str) -> int:
    """Sequence of the signature that is beside a file already; 0 if it is none of this signer's."""
    try:
        manifest = read_manifest(read_bytes(signature_path(path), LARGEST, error=SignatureError))
    except SignatureError:
        return 0
    return manifest.sequence if manifest.signer == signer else 0


def _name(signer: str, kind: str, path: Path) -> str:
    return f"{signer} {kind} {_nfc(path)}"


def _nfc(path: Path) -> str:
    return unicodedata.normalize("NFC", path.name)
