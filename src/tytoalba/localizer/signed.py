"""Signed models and states: a signature that was there once is missed, and a counter orders the versions.

What came by a name (signer, kind, file name) is remembered with its sequence: an older one is refused. So
is a file without a signature at a path that had one. Files that nobody signed are taken only if the user says
so (`unsigned`). The sequence of a signature is one more than that of the last one: no clock is asked.
"""

from __future__ import annotations

import os
import unicodedata
from math import inf, isfinite
from pathlib import Path

from tytoalba.errors import FileError, SignatureError, TytoError
from tytoalba.localizer.budget import spent_in
from tytoalba.localizer.history import place_of
from tytoalba.storage.files import read_bytes
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.remembered import Memory, recall, remembering
from tytoalba.storage.signatures import (
    LARGEST,
    LARGEST_WHOLE,
    Manifest,
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
SPENT = "spent"
"""What private releases of a signed state have spent (`budget`); -1: everything."""


def check_signature(path: Path, raw: bytes, kind: str, memory: Memory, unsigned: bool = False) -> Manifest:
    """Refuse what is not as it was signed, and what is older than what came by that name before.

    unsigned: who signed this path before need not be trusted any more. Returns what was signed.
    """
    signature = read_bytes(signature_path(path), LARGEST, error=SignatureError, pipes=False)
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
    return manifest


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
        return f"signed by {check_signature(path, raw, kind, recall()).signer}"
    except TytoError as error:
        return f"NOT TRUE: {error}"


def sign(path: Path, kind: str, about: Facts | None = None, at_least: int = 0) -> Path:
    """Sign a file for others. Its sequence is one more than the last: who has met it notices an older one.

    at_least: the sequence is larger than this too, such as the number of exports that a ledger lists. What
    private releases of a state have spent is signed with it, for those who merge it without its ledger.
    """
    key = find_signing_key()
    name = _name(key.fingerprint, kind, path)
    with remembering() as memory:
        before = _signed_before(path, key.fingerprint)
        if kind == "state" and os.path.lexists(beside := ledger_path(path.resolve())):
            ledger = Ledger.open(beside)
            at_least = max(at_least, ledger.length)
            about = {**(about or {}), **_told(spent_in(ledger.entries))}
        elif kind == "state" and before and SPENT in before.about:
            about = {**(about or {}), SPENT: before.about[SPENT]}
        written = before.sequence if before else 0
        last = max(memory.signed.get(name, 0), written, FIRST + at_least - 1)
        if last >= LARGEST_WHOLE:
            raise SignatureError(f"{path.name} was signed with the largest number there is; rename it")
        signature = sign_file(path, key, kind, last + 1, about)
        memory.put(memory.signed, name, last + 1)
        memory.put(memory.places, place_of(path), f"{key.fingerprint} {kind}")
        if kind == "model":
            memory.paths.pop(place_of(path), None)
    return signature


def spent_by_signature(manifest: Manifest, by_ledger: float | None) -> float:
    """What private releases of a state have spent, as its signature and its ledger say; the more counts.

    by_ledger: None where there is no ledger, or none that is right. Infinite where neither says it.
    """
    told = manifest.about.get(SPENT)
    if told is None and by_ledger is not None:
        return by_ledger
    signed = float(told) if isinstance(told, int | float) and told >= 0 else inf
    return signed if by_ledger is None else max(signed, by_ledger)


def _told(spent: float) -> Facts:
    return {SPENT: spent if isfinite(spent) else -1}


def _signed_before(path: Path, signer: str) -> Manifest | None:
    """What the signature beside a file says already; None if it is none of this signer's."""
    try:
        manifest = read_manifest(read_bytes(signature_path(path), LARGEST, error=SignatureError, pipes=False))
    except SignatureError:
        return None
    return manifest if manifest.signer == signer else None


def _name(signer: str, kind: str, path: Path) -> str:
    return f"{signer} {kind} {_nfc(path)}"


def _nfc(path: Path) -> str:
    return unicodedata.normalize("NFC", path.name)
