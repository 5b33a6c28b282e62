"""How states and models are kept: one writer at a time, sealed if they were, every step in a signed ledger.

A step is written to the ledger first, then the state takes its new name in one move. A process that is
killed leaves the old state or the new one, and at most one file that was not finished (.NAME.new), which the
next one who writes removes; a step that the ledger has and the state has not is then taken back. Whose ledger
it is must be trusted: a state cannot say itself who vouches for it. Without the extra 'privacy' there are no
seals and no ledger, and states say so.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tytoalba.errors import (
    FileError,
    LedgerError,
    LockedError,
    MissingExtraError,
    TytoError,
    UnfinishedStepError,
    UntrustedSignerError,
    WrongKeyError,
)
from tytoalba.localizer.localizer import Change, Localizer
from tytoalba.localizer.model import KIND as MODEL
from tytoalba.storage.age import Identity
from tytoalba.storage.files import written_whole
from tytoalba.storage.keys import default_recipients, find_identities, recipients_path
from tytoalba.storage.ledger import Ledger, keyed_id, ledger_path
from tytoalba.storage.locks import locked
from tytoalba.storage.sealed import Recipient, is_sealed, open_bytes, seal_bytes, write_secret
from tytoalba.storage.signatures import read_manifest, sign_file, signature_path, verify_bytes
from tytoalba.storage.signers import SigningKey, TrustStore, find_signing_key, signing_key_path
from tytoalba.storage.tensors import kind_of

SEALED_SUFFIX = ".age"


@dataclass
class Step:
    """A state that is being changed. change: what was done to it, as the ledger shall have it."""

    owl: Localizer
    what: str = "learned"
    change: Change = field(default_factory=lambda: Change(0, ()))


def has_extra() -> bool:
    """Whether the extra 'privacy' is installed."""
    return all(find_spec(name) is not None for name in ("pyrage", "cryptography"))


def create(path: str | Path, owl: Localizer, sealed: bool = False) -> Localizer:
    """Write a new state, never over an old one; with a ledger if that is possible. Returns it as written."""
    path = Path(path)
    recipients = own_recipients() if sealed else None
    key = find_signing_key() if has_extra() else None
    owl = owl.owned_by(key.fingerprint if key else "")
    data = owl.to_bytes()
    with locked(path):
        ledger = Ledger.open(ledger_path(path), key)
        is_left = key is not None and len(ledger.entries) < 2  # of a `new` that was killed
        for taken in (path, *([] if is_left else [ledger.path])):
            if os.path.lexists(taken):
                raise FileError(f"{taken} is there already and stays as it is; choose another name")
        if key:
            if ledger.entries:
                ledger.repair("")
            ledger.append("created", _digest(data), owl.n_frames)
        try:
            _write(path, data, recipients)
        except BaseException:
            if not path.exists():
                ledger.path.unlink(missing_ok=True)
            raise
    return owl


def read(path: str | Path, keys: Any = None) -> Localizer:
    """A state or model, as its ledger or its signature says if it has one; nothing is changed."""
    path = Path(path)
    raw, data = _contents(path, keys)
    owl = Localizer.from_bytes(data, str(path))
    beside = signature_path(path)
    if not has_extra():
        return owl
    if owl.owner or os.path.lexists(_beside(path)):  # or a state without an owner could take its place
        try:
            _check(path, owl, data)
        except LedgerError:
            if path.read_bytes() == raw:
                raise
            return read(path, keys)  # another tyto wrote meanwhile
    elif kind_of(data) == MODEL and os.path.lexists(beside):
        _check_signature(path, raw, MODEL)
    return owl


@contextmanager
def changing(path: str | Path, keys: Any = None) -> Iterator[Step]:
    """Change a state: it is written when the block ends well, and stays as it was when it does not."""
    path = Path(path).resolve()
    with locked(path):
        raw, data = _contents(path, keys)
        owl = Localizer.from_bytes(data, str(path))
        is_kept = owl.owner or os.path.lexists(_beside(path))
        ledger = _writable_ledger(path, owl, _digest(data)) if is_kept else None
        recipients = own_recipients(keys) if is_sealed(raw) else None
        _unfinished(path).unlink(missing_ok=True)
        step = Step(owl)
        yield step
        new = step.owl.to_bytes()
        if new == data:
            return
        if ledger is None:
            _write(path, new, recipients)
            return
        assert ledger.key
        lesson = keyed_id(ledger.key, "".join(step.change.lessons).encode()) if step.change.lessons else ""
        ledger.append(step.what, _digest(new), step.change.n_frames, lesson)
        try:
            _write(path, new, recipients)
        except BaseException:
            with suppress(TytoError, OSError):
                if path.read_bytes() == raw:  # an interruption may come after the state was written
                    ledger.repair(_digest(data))
            raise


def incoming(path: str | Path, keys: Any = None, unsigned: bool = False) -> Localizer:
    """A state from elsewhere, to be merged: signed (FILE.sig, or its ledger) by somebody who is trusted.

    unsigned: take it as it is.
    """
    path = Path(path)
    raw, data = _contents(path, keys)
    owl = Localizer.from_bytes(data, str(path))
    if unsigned:
        return owl
    if os.path.lexists(signature_path(path)):
        _check_signature(path, raw, "state")
    elif owl.owner and os.path.lexists(_beside(path)):
        _check(path, owl, data)
    else:
        raise FileError(
            f"nobody signed {path}: its owner can, with `tyto sign {path.name}`, or send its ledger along; "
            "--unsigned takes it as it is"
        )
    return owl


def export(owl: Localizer, path: str | Path, reasons: Sequence[str] = ()) -> Path | None:
    """Write a model that may be shared, signed if that is possible; returns the signature's path.

    reasons: why it should not be released (`attacks.release_gate`); written into the signature. An older
    model is replaced, anything else that is there is not: it may be the state itself.
    """
    path = Path(path)
    data = owl.model.coarse().to_bytes()
    with locked(path):
        if os.path.lexists(path) and not (path.is_file() and kind_of(path.read_bytes()) == MODEL):
            raise FileError(f"{path} is there already, is no model and stays as it is; choose another name")
        write_secret(path, data)
        path.chmod(0o644)
        if not has_extra():
            return None
        about: dict[str, str | int | float] = {"frames": owl.n_frames}
        if reasons:
            about["released against"] = "; ".join(reasons)[:500]
        return sign(path, MODEL, about)


def sign(path: Path, kind: str, about: dict[str, str | int | float] | None = None) -> Path:
    """Sign a file for others. Its sequence is the time: who has met a newer one notices an older one."""
    return sign_file(path, find_signing_key(), kind, int(time.time()), about)


def own_recipients(keys: Any = None) -> list[str]:
    """For whom a state is sealed again: the keys at hand, and everyone in recipients.txt."""
    if not has_extra():
        raise MissingExtraError("seals", "privacy")
    found = find_identities() if keys is None else keys
    own = [key.public for key in found if isinstance(key, Identity) and key.public]
    recipients = list(dict.fromkeys([*own, *default_recipients()]))
    if not recipients:
        raise TytoError("there is no key to seal for; make one with `tyto keygen`")
    if not own and found:  # ssh keys do not tell their public key
        try:
            open_bytes(seal_bytes(b"", recipients), found, "it")
        except WrongKeyError:
            raise TytoError(
                "your key could not open what is sealed now: add its public key to recipients.txt "
                f"({recipients_path()})"
            ) from None
    return recipients


def steps(path: str | Path, owl: Localizer) -> tuple[list[dict[str, Any]], str]:
    """What the ledger beside a state says, and whether that was verified."""
    beside = _beside(path)
    if not beside.exists():
        return [], "there is no ledger" + ("; it is missing" if owl.owner else "")
    ledger = _ledger(path, owl) if has_extra() else Ledger.open(beside)
    told = [
        {"sequence": e.sequence, "time": e.time, "what": e.what, "n_frames": e.n_frames}
        for e in ledger.entries
    ]
    if not has_extra():
        return told, "not verified: that needs the extra 'privacy'"
    try:
        notes = ledger.verify()
        ledger.check_state(_digest(owl.to_bytes()))
    except UnfinishedStepError as error:
        return told, f"verified, but for the last step: {error}"
    except TytoError as error:
        return told, f"NOT TRUE: {error}"
    return told, "; ".join(["verified", *notes])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _beside(path: str | Path) -> Path:
    """The ledger of a state, also where the state is a link."""
    return ledger_path(Path(path).resolve())


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _contents(path: Path, keys: Any) -> tuple[bytes, bytes]:
    """What a file holds, and the same opened if it is sealed, of one reading."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FileError(
            f"{path} cannot be read: {error.strerror}; check its spelling, its folder and its permissions"
        ) from error
    if not is_sealed(raw):
        return raw, raw
    return raw, open_bytes(raw, find_identities() if keys is None else keys, str(path))


def _write(path: Path, data: bytes, recipients: Sequence[Recipient] | None) -> None:
    """Write a state whole or not at all. The lock is held.

    There is one writer, so the unfinished file has one name: of all who are killed one file is left, and a
    lesson in it is gone with the next change, as forgetting wants it.
    """
    path = path.resolve()
    temporary = _unfinished(path)
    content = data if recipients is None else seal_bytes(data, recipients)
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        why = f"{error.strerror}; nothing was written and what was there stays as it was"
        raise OSError(error.errno, why, str(path)) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check(path: Path, owl: Localizer, data: bytes) -> None:
    """Refuse a state that its ledger does not have; the one before an unfinished step is whole."""
    with suppress(UnfinishedStepError):
        _ledger(path, owl).check_state(_digest(data))


def _check_signature(path: Path, raw: bytes, kind: str) -> None:
    """Refuse what is not as it was signed, and what is older than what came by that name before."""
    signature = signature_path(path).read_bytes()
    signer = read_manifest(signature).signer
    _require_trusted([signer], path)
    with _seen() as newest:
        name = f"{signer} {kind} {path.name}"
        manifest = verify_bytes(
            raw, signature, path.name, kind, trusted=[signer], at_least=newest.get(name, 0)
        )
        newest[name] = manifest.sequence


@contextmanager
def _seen() -> Iterator[dict[str, int]]:
    """The newest sequence of each signed file that was met, kept beside the trusted keys."""
    path = TrustStore().path.with_name("seen.json")
    known: dict[str, int] = {}
    if path.exists():
        try:
            known = {str(name): int(number) for name, number in json.loads(path.read_bytes()).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise FileError(f"{path} is damaged ({error}); remove it, and older files pass once") from error
    before = dict(known)
    yield known
    if known != before:
        with suppress(OSError, LockedError), locked(path, wait=5), written_whole(path, private=True) as new:
            new.write_text(json.dumps(known), encoding="utf-8")


def _require_trusted(signers: Iterable[str], path: str | Path) -> None:
    """Refuse what others than the user, and those whom the user trusts, vouch for."""
    known = TrustStore()
    for signer in dict.fromkeys(signers):
        if signer in known:
            continue
        if not os.path.lexists(signing_key_path()) or signer != find_signing_key(create=False).fingerprint:
            raise UntrustedSignerError(
                f"{path} is signed by {signer}, a key that you do not trust; ask its owner to read it to "
                f"you, and if it is the same: `tyto trust {signer}`"
            )


def _ledger(path: str | Path, owl: Localizer, key: SigningKey | None = None) -> Ledger:
    beside = _beside(path)
    if not os.path.lexists(beside):
        plain = ledger_path(beside.with_suffix("").with_suffix(""))
        raise FileError(
            f"{path} belongs to a ledger, and {beside.name} is not beside it: put it back"
            + (f" (is it {plain.name}?)" if plain != beside and plain.exists() else "")
            + "; without it nobody can say whether this state is the newest"
        )
    ledger = Ledger.open(beside, key)
    signers = [name for name in (owl.owner, *(entry.signer for entry in ledger.entries)) if name]
    _require_trusted(signers, path)
    return Ledger.open(beside, key, trusted=signers)


def _writable_ledger(path: Path, owl: Localizer, digest: str) -> Ledger:
    if not has_extra():
        raise MissingExtraError("states that have a ledger", "privacy")
    ledger = _ledger(path, owl, find_signing_key())
    try:
        ledger.check_state(digest)
    except UnfinishedStepError:
        ledger.repair(digest)
    return ledger
