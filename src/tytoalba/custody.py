"""How states and models are kept: one writer at a time, sealed if they were, every step in a signed ledger.

A step is written to the ledger first, then the state takes its new name in one move. A process that is
killed leaves the old state or the new one; a step that the ledger has and the state has not is taken back by
the next one who writes. Without the extra 'privacy' there are no seals and no ledger, and states say so.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tytoalba.agefile import Identity
from tytoalba.errors import FileError, MissingExtraError, TytoError
from tytoalba.identities import default_recipients, find_identities
from tytoalba.ledger import Ledger, UnfinishedStepError, keyed_id, ledger_path
from tytoalba.localizer import Change, Localizer
from tytoalba.locks import locked
from tytoalba.sealing import is_sealed, read_secret, write_secret
from tytoalba.signers import SigningKey, TrustStore, find_signing_key
from tytoalba.signing import sign_file, signature_path, verify_bytes

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
    for taken in (path, ledger_path(path)):
        if os.path.lexists(taken):
            raise FileError(f"{taken} is there already and stays as it is; choose another name")
    recipients = own_recipients() if sealed else None
    key = find_signing_key() if has_extra() else None
    owl = owl.owned_by(key.fingerprint if key else "")
    data = owl.to_bytes()
    with locked(path):
        if key:
            Ledger.open(ledger_path(path), key).append("created", _digest(data), owl.n_frames)
        try:
            write_secret(path, data, recipients)
        except BaseException:
            ledger_path(path).unlink(missing_ok=True)
            raise
    return owl


def read(path: str | Path, keys: Any = None) -> Localizer:
    """A state or model, checked against its ledger if it has an owner; nothing is changed."""
    data = read_secret(path, keys)
    owl = Localizer.from_bytes(data, str(path))
    if owl.owner and has_extra():
        with suppress(UnfinishedStepError):  # the state before that step is whole
            _ledger(path, owl).check_state(_digest(data))
    return owl


@contextmanager
def changing(path: str | Path, keys: Any = None) -> Iterator[Step]:
    """Change a state: it is written when the block ends well, and stays as it was when it does not."""
    path = Path(path).resolve()
    with locked(path):
        was_sealed = is_sealed(path)
        data = read_secret(path, keys)
        owl = Localizer.from_bytes(data, str(path))
        ledger = _writable_ledger(path, owl, _digest(data)) if owl.owner else None
        recipients = own_recipients(keys) if was_sealed else None
        step = Step(owl)
        yield step
        new = step.owl.to_bytes()
        if new == data:
            return
        if ledger is None:
            write_secret(path, new, recipients)
            return
        assert ledger.key
        lesson = keyed_id(ledger.key, "".join(step.change.lessons).encode()) if step.change.lessons else ""
        ledger.append(step.what, _digest(new), step.change.n_frames, lesson)
        try:
            write_secret(path, new, recipients)
        except BaseException:
            with suppress(TytoError, OSError):
                ledger.repair(_digest(data))
            raise


def incoming(path: str | Path, keys: Any = None, unsigned: bool = False) -> Localizer:
    """A state from elsewhere, to be merged: signed (FILE.sig, or its ledger) by somebody who is trusted.

    unsigned: take it as it is.
    """
    path = Path(path)
    data = read_secret(path, keys)
    owl = Localizer.from_bytes(data, str(path))
    if unsigned:
        return owl
    if signature_path(path).exists():
        verify_bytes(path.read_bytes(), signature_path(path).read_bytes(), path.name, "state")
    elif owl.owner and ledger_path(path).exists():
        with suppress(UnfinishedStepError):
            Ledger.open(ledger_path(path), trusted=TrustStore()).check_state(_digest(data))
    else:
        raise FileError(
            f"nobody signed {path}: its owner can, with `tyto sign {path.name}`, or send its ledger along; "
            "--unsigned takes it as it is"
        )
    return owl


def export(owl: Localizer, path: str | Path, reasons: Sequence[str] = ()) -> Path | None:
    """Write a model that may be shared, signed if that is possible; returns the signature's path.

    reasons: why it should not be released (`attacks.release_gate`); written into the signature.
    """
    path = Path(path)
    data = owl.model.to_bytes()
    with locked(path):
        write_secret(path, data)
        path.chmod(0o644)
        if not has_extra():
            return None
        about: dict[str, str | int | float] = {"frames": owl.n_frames}
        if reasons:
            about["released against"] = "; ".join(reasons)[:500]
        return sign_file(path, find_signing_key(), "model", about=about)


def own_recipients(keys: Any = None) -> list[str]:
    """For whom a state is sealed again: the keys at hand, and everyone in recipients.txt."""
    if not has_extra():
        raise MissingExtraError("seals", "privacy")
    found = find_identities() if keys is None else keys
    own = [key.public for key in found if isinstance(key, Identity) and key.public]
    recipients = list(dict.fromkeys([*own, *default_recipients()]))
    if not recipients:
        raise TytoError("there is no key to seal for; make one with `tyto keygen`")
    return recipients


def steps(path: str | Path, owl: Localizer) -> tuple[list[dict[str, Any]], str]:
    """What the ledger beside a state says, and whether that was verified."""
    if not ledger_path(path).exists():
        return [], "there is no ledger" + ("; it is missing" if owl.owner else "")
    ledger = Ledger.open(ledger_path(path), trusted=_trusted(owl) if has_extra() else None)
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


def _trusted(owl: Localizer) -> list[str]:
    return [owl.owner, *TrustStore()]


def _ledger(path: str | Path, owl: Localizer, key: SigningKey | None = None) -> Ledger:
    beside = ledger_path(path)
    if not beside.exists():
        raise FileError(
            f"{path} belongs to a ledger, and {beside.name} is not beside it: put it back; "
            "without it nobody can say whether this state is the newest"
        )
    return Ledger.open(beside, key, trusted=_trusted(owl))


def _writable_ledger(path: Path, owl: Localizer, digest: str) -> Ledger:
    if not has_extra():
        raise MissingExtraError("states that have a ledger", "privacy")
    ledger = _ledger(path, owl, find_signing_key())
    try:
        ledger.check_state(digest)
    except UnfinishedStepError:
        ledger.repair(digest)
    return ledger
