"""How states and models are kept: one writer at a time, sealed if they were, every step in a signed ledger.

The ledger says what the localizer recorded while it was changed (`Localizer.on_change`), once that was
compared with the state before and after. A step is written to the ledger first, then the state takes its new
name in one move. A process that is killed leaves the old state or the new one, and at most one unfinished
file (.NAME.new), which the next writer removes; a step that the ledger has and the state has not is then
taken back. Whose ledger it is must be trusted: a state cannot say itself who vouches for it. Without the
extra 'privacy' there are no seals and no ledger, and states say so.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

from tytoalba.errors import (
    FileError,
    LedgerError,
    LockedError,
    MissingExtraError,
    SignatureError,
    TytoError,
    UnfinishedStepError,
    WrongKeyError,
)
from tytoalba.localizer.budget import BUDGET, DELTA, EPSILON, LARGEST_BUDGET, spent_in
from tytoalba.localizer.export import (
    Exported,
    Facts,
    Source,
    check_private,
    write_exact,
    write_private,
)
from tytoalba.localizer.localizer import Change, Localizer
from tytoalba.localizer.model import KIND as MODEL
from tytoalba.localizer.release import Unit
from tytoalba.localizer.state import State
from tytoalba.storage.age import Identity, Keys, Recipient, is_sealed, open_bytes, seal_bytes
from tytoalba.storage.files import locked, read_bytes, written_whole
from tytoalba.storage.keys import default_recipients, recipients_path
from tytoalba.storage.ledger import Ledger, keyed_id, ledger_path
from tytoalba.storage.sealed import opened, write_secret
from tytoalba.storage.signatures import (
    LARGEST,
    SigningKey,
    TrustStore,
    find_signing_key,
    read_manifest,
    require_trusted,
    sign_file,
    signature_path,
    verify_bytes,
)
from tytoalba.storage.tensors import kind_of


@dataclass
class Store:
    """A state or model in a file, as `open_store` gives it. localizer: as it was last read or written."""

    path: Path
    keys: Keys
    localizer: Localizer

    @contextmanager
    def edit(self) -> Iterator[Localizer]:
        """Change the state: written when the block ends well, with a line in its ledger for what was done.

        An error in the block, or while writing, leaves the file as it was. Nobody else can change it
        meanwhile. Calls of one kind (teach, learn; forget; merge) after each other are one line.
        """
        with edit(self.path, self.keys) as localizer:
            yield localizer
        self.localizer = localizer

    def export(
        self,
        output: str | Path,
        *,
        epsilon: float = EPSILON,
        delta: float = DELTA,
        unit: Unit = "lesson",
        exact: bool = False,
        plain: bool = False,
    ) -> Exported:
        """Write a model: a private one, which anybody may have, or with `exact` one for your own devices.

        See `export_private` and `export_exact`.
        """
        if exact:
            return export_exact(self.localizer, output, plain=plain, keys=self.keys)
        return export_private(self.path, output, epsilon=epsilon, delta=delta, unit=unit, keys=self.keys)

    def steps(self) -> tuple[list[dict[str, Any]], str]:
        """What the ledger says, a row per step, and whether that was verified."""
        path, localizer, beside = self.path, self.localizer, _beside(self.path)
        if not beside.exists():
            return [], "there is no ledger" + ("; it is missing" if localizer.owner else "")
        ledger = _ledger(path, localizer) if has_extra() else Ledger.open(beside)
        rows = [
            {"sequence": e.sequence, "time": e.time, "what": e.what, "n_frames": e.n_frames}
            for e in ledger.entries
        ]
        if not has_extra():
            return rows, "not verified: that needs the extra 'privacy'"
        try:
            notes = ledger.verify()
            ledger.check_state(_digest(localizer.to_bytes()))
        except UnfinishedStepError as error:
            return rows, f"verified, but for the last step: {error}"
        except TytoError as error:
            return rows, f"NOT TRUE: {error}"
        return rows, "; ".join(["verified", *notes])


def open_store(path: str | Path, keys: Keys = None) -> Store:
    """Open a localizer that is kept in a file, sealed or plain, to use or to change it.

    Parameters
    ----------
    path : str or Path
        A state (`tyto new`), or a model (`tyto export`), which can be read and not changed.
    keys : sequence of identities, optional
        What to open a sealed file with; a plain one needs none.

    Returns
    -------
    Store
        `store.localizer` locates. `with store.edit() as localizer:` teaches and forgets. `store.steps()`
        lists what was done.

    Raises
    ------
    FileError
        The file is missing, damaged or something else.
    SealError
        It is sealed, and none of the keys opens it.
    LedgerError, SignatureError
        It is not what its ledger or its signature says, or these are of somebody who is not trusted.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from tytoalba import Localizer, open_store
    >>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1
    >>> with TemporaryDirectory() as folder:
    ...     Localizer.new("respeaker-usb-4", n_features=50, seed=0).save(f"{folder}/kitchen.tyto")
    ...     store = open_store(f"{folder}/kitchen.tyto")
    ...     with store.edit() as localizer:
    ...         change = localizer.teach(noise, 135.0)
    ...     change.what, change.n_frames, open_store(f"{folder}/kitchen.tyto").localizer.n_frames
    ('learned', 10, 10)
    """
    return Store(Path(path), keys, read(path, keys))


def has_extra() -> bool:
    """Whether the extra 'privacy' is installed."""
    return all(find_spec(name) is not None for name in ("pyrage", "cryptography"))


def create(
    path: str | Path,
    localizer: Localizer,
    sealed: bool = False,
    keys: Keys = None,
    budget: float = BUDGET,
) -> Localizer:
    """Write a new state, never over an old one; with a ledger if that is possible. Returns it as written.

    sealed: for the keys, and everyone in recipients.txt. budget: epsilon that all private releases of this
    state may spend together, over its whole life; it stands in the first line of the ledger.
    """
    path = Path(path)
    if not (isinstance(budget, int | float) and 0 <= budget <= LARGEST_BUDGET):
        raise TytoError(f"a budget is an epsilon from 0 to {LARGEST_BUDGET:g}, got {budget}")
    recipients = own_recipients(keys) if sealed else None
    key = find_signing_key() if has_extra() else None
    localizer = localizer.owned_by(key.fingerprint if key else "")
    data = localizer.to_bytes()
    with locked(path):
        ledger = Ledger.open(ledger_path(path), key)
        is_left = key is not None and len(ledger.entries) < 2  # of a `new` that was killed
        for taken in (path, *([] if is_left else [ledger.path])):
            if os.path.lexists(taken):
                raise FileError(f"{taken} is there already and stays as it is; choose another name")
        if key:
            if ledger.entries:
                ledger.repair("")
            ledger.append("created", _digest(data), localizer.n_frames, about={"budget": float(budget)})
        try:
            _write(path, data, recipients)
        except BaseException:
            if not path.exists():
                ledger.path.unlink(missing_ok=True)
            raise
    return localizer


def read(path: str | Path, keys: Keys = None) -> Localizer:
    """A state or model, as its ledger or its signature says if it has one; nothing is changed."""
    path = Path(path)
    raw, data = _contents(path, keys)
    localizer = Localizer.from_bytes(data, str(path))
    beside = signature_path(path)
    if not has_extra():
        return localizer
    if localizer.owner or os.path.lexists(_beside(path)):  # or a state without an owner could take its place
        try:
            _check(path, localizer, data)
        except LedgerError:
            if path.read_bytes() == raw:
                raise
            return read(path, keys)  # another tyto wrote meanwhile
    elif kind_of(data) == MODEL and os.path.lexists(beside):
        _check_signature(path, raw, MODEL)
    return localizer


@contextmanager
def edit(path: str | Path, keys: Keys = None) -> Iterator[Localizer]:
    """Change a state: it is written when the block ends well, and stays as it was when it does not.

    The ledger gets what the localizer says that it did, if that is what happened to the state; else nothing
    is written. Changes of one kind after each other are one step.
    """
    path = Path(path).resolve()
    with locked(path):
        raw, data = _contents(path, keys)
        localizer = Localizer.from_bytes(data, str(path))
        is_kept = localizer.owner or os.path.lexists(_beside(path))
        ledger = _writable_ledger(path, localizer, _digest(data)) if is_kept else None
        recipients = own_recipients(keys) if is_sealed(raw) else None
        _unfinished(path).unlink(missing_ok=True)
        before, made = localizer.state.copy(), list[tuple[Change, State]]()
        localizer.on_change = partial(_note, made)
        try:
            yield localizer
        finally:
            localizer.on_change = None
        _require_recorded(path, localizer, made, before, data)
        for change, state in made if ledger else made[-1:]:
            new = state.to_bytes()
            if new == data:
                continue
            if ledger:
                about = {"spent": change.spent if isfinite(change.spent) else -1} if change.spent else None
                ledger.append(change.what, _digest(new), change.n_frames, _lesson_id(ledger, change), about)
            try:
                content = _write(path, new, recipients)
            except BaseException:
                with suppress(TytoError, OSError):
                    if ledger and path.read_bytes() == raw:  # an interruption may come after it was written
                        ledger.repair(_digest(data))
                raise
            raw, data = content, new


def _note(made: list[tuple[Change, State]], change: Change, state: State) -> None:
    """Write down a change; one that follows its like is one with it."""
    if made and made[-1][0].what == change.what:
        last, _ = made.pop()
        n_frames, lessons = last.n_frames + change.n_frames, last.lessons + change.lessons
        change = Change(change.what, n_frames, lessons, max(last.spent, change.spent))
    made.append((change, state))


def _require_recorded(
    path: Path, localizer: Localizer, made: Sequence[tuple[Change, State]], before: State, data: bytes
) -> None:
    """Refuse a state to which something else happened than what was recorded. data: its bytes before."""
    right = localizer.state is made[-1][1] if made else localizer.to_bytes() == data
    for change, after in made:
        right = right and _is_true(change, before, after)
        before = after
    if not right:
        raise LedgerError(
            f"{path}: what happened to this state is not what its localizer recorded, so nothing was "
            "written; change it with teach, learn, forget and merge of the localizer that edit() gives"
        )


def _is_true(change: Change, before: State, after: State) -> bool:
    """Whether a change is what happened between two states: these lessons came or went, and nothing else."""
    old, new = before.lessons.items(), after.lessons.items()
    came, went, grown = new - old, old - new, after.learner.counts - before.learner.counts
    if change.what == "forgot":
        came, went, grown = went, came, -grown
    same = all(getattr(before, name) == getattr(after, name) for name in ("array", "options", "owner"))
    return (
        same
        and before.prior is after.prior
        and not went
        and sorted(name for name, _ in came) == sorted(change.lessons)
        and sum(n for _, n in came) == change.n_frames
        and after.n_frames == after.learner.n_frames
        and bool(grown.min() >= 0)
        and int(grown.sum()) >= change.n_frames
    )


def _lesson_id(ledger: Ledger, change: Change) -> str:
    assert ledger.key
    return keyed_id(ledger.key, "".join(change.lessons).encode()) if change.lessons else ""


def incoming(path: str | Path, keys: Keys = None, unsigned: bool = False) -> Localizer:
    """A state from elsewhere, to be merged: signed (FILE.sig, or its ledger) by somebody who is trusted.

    unsigned: take it as it is.
    """
    path = Path(path)
    raw, data = _contents(path, keys)
    localizer = Localizer.from_bytes(data, str(path))
    if os.path.lexists(_beside(path)):  # or nobody knows what private releases of it have spent
        localizer.spent = spent_in(Ledger.open(_beside(path)).entries)
    if unsigned:
        return localizer
    if os.path.lexists(signature_path(path)):
        _check_signature(path, raw, "state")
    elif localizer.owner and os.path.lexists(_beside(path)):
        _check(path, localizer, data)
    else:
        raise FileError(
            f"nobody signed {path}: its owner can, with `tyto sign {path.name}`, or send its ledger along; "
            "--unsigned takes it as it is"
        )
    return localizer


def export(localizer: Localizer, path: str | Path, reasons: Sequence[str] = ()) -> Path | None:
    """Write a model that may be shared, signed if that is possible; returns the signature's path.

    reasons: why it should not be released (`attacks.release_gate`); written into the signature. An older
    model is replaced, anything else that is there is not: it may be the state itself.
    """
    path = Path(path)
    data = localizer.model.coarse().to_bytes()
    with locked(path):
        if os.path.lexists(path) and not (path.is_file() and kind_of(path.read_bytes()) == MODEL):
            raise FileError(f"{path} is there already, is no model and stays as it is; choose another name")
        write_secret(path, data)
        path.chmod(0o644)
        if not has_extra():
            return None
        about: dict[str, str | int | float] = {"frames": localizer.n_frames}
        if reasons:
            about["released against"] = "; ".join(reasons)[:500]
        return sign(path, MODEL, about)


def export_private(
    state: str | Path,
    output: str | Path,
    *,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    unit: Unit = "lesson",
    keys: Keys = None,
) -> Exported:
    """Write a private model of a state (`release.private_model`), signed; what it spends is in the ledger.

    Refused beyond the budget, and of a state without a ledger: nobody could say what was spent before.
    """
    if not has_extra():
        raise MissingExtraError("private releases", "privacy")
    output = Path(output)
    check_private(output, epsilon, delta, unit, keys)
    with _to_export(Path(state).resolve(), keys) as source:
        return write_private(source, output, epsilon, delta, unit, keys, _sign_model)


def export_exact(
    localizer: Localizer, output: str | Path, *, plain: bool = False, keys: Keys = None
) -> Exported:
    """Write the exact model, for one's own devices: as secret as the state, sealed unless `plain`.

    A sealed one has the suffix .age, which is added where it is missing.
    """
    if not (plain or has_extra()):
        raise MissingExtraError("sealed models (--plain writes an open one)", "privacy")
    return write_exact(localizer, Path(output), None if plain else own_recipients(keys), keys, _sign_model)


@contextmanager
def _to_export(path: Path, keys: Keys) -> Iterator[Source]:
    with locked(path):
        _, data = _contents(path, keys)
        localizer, digest = Localizer.from_bytes(data, str(path)), _digest(data)
        localizer.state  # noqa: B018 - a model is refused, in words
        if not (localizer.owner or os.path.lexists(_beside(path))):
            raise TytoError(
                f"{path.name} has no ledger, so nobody can say what private releases of it have spent. A new "
                f"state has one: `tyto new NEW --like {path.name}`, then `tyto merge NEW {path.name} "
                "--unsigned`. --exact makes a model for your own devices without one"
            )
        ledger = _writable_ledger(path, localizer, digest)

        def spend(about: Facts) -> None:
            ledger.append("exported", digest, about=about)

        yield Source(localizer, ledger.entries, spend)


def _sign_model(path: Path, about: Facts) -> Path | None:
    return sign(path, MODEL, dict(about)) if has_extra() else None


def sign(path: Path, kind: str, about: dict[str, str | int | float] | None = None) -> Path:
    """Sign a file for others. Its sequence is the time: who has met a newer one notices an older one."""
    return sign_file(path, find_signing_key(), kind, int(time.time()), about)


def own_recipients(keys: Keys = None) -> list[str]:
    """For whom a state is sealed again: the keys that open it, and everyone in recipients.txt."""
    if not has_extra():
        raise MissingExtraError("seals", "privacy")
    own = [key.public for key in keys or () if isinstance(key, Identity) and key.public]
    recipients = list(dict.fromkeys([*own, *default_recipients()]))
    if not recipients:
        raise TytoError("there is no key to seal for; make one with `tyto keygen`")
    if not own and keys:  # ssh keys do not tell their public key
        try:
            open_bytes(seal_bytes(b"", recipients), keys, "it")
        except WrongKeyError:
            raise TytoError(
                "your key could not open what is sealed now: add its public key to recipients.txt "
                f"({recipients_path()})"
            ) from None
    return recipients


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _beside(path: str | Path) -> Path:
    """The ledger of a state, also where the state is a link."""
    return ledger_path(Path(path).resolve())


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _contents(path: Path, keys: Keys) -> tuple[bytes, bytes]:
    """What a file holds, and the same opened if it is sealed, of one reading."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FileError(
            f"{path} cannot be read: {error.strerror}; check its spelling, its folder and its permissions"
        ) from error
    return raw, opened(raw, keys, str(path))


def _write(path: Path, data: bytes, recipients: Sequence[Recipient] | None) -> bytes:
    """Write a state whole or not at all; returns what is in the file. The lock is held.

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
        return content
    except OSError as error:
        temporary.unlink(missing_ok=True)
        why = f"{error.strerror}; nothing was written and what was there stays as it was"
        raise OSError(error.errno, why, str(path)) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check(path: Path, localizer: Localizer, data: bytes) -> None:
    """Refuse a state that its ledger does not have; the one before an unfinished step is whole."""
    with suppress(UnfinishedStepError):
        _ledger(path, localizer).check_state(_digest(data))


def _check_signature(path: Path, raw: bytes, kind: str) -> None:
    """Refuse what is not as it was signed, and what is older than what came by that name before."""
    signature = read_bytes(signature_path(path), LARGEST, error=SignatureError)
    signer = read_manifest(signature).signer
    require_trusted(signer, None, str(path))
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


def _ledger(path: str | Path, localizer: Localizer, key: SigningKey | None = None) -> Ledger:
    beside = _beside(path)
    if not os.path.lexists(beside):
        plain = ledger_path(beside.with_suffix("").with_suffix(""))
        raise FileError(
            f"{path} belongs to a ledger, and {beside.name} is not beside it: put it back"
            + (f" (is it {plain.name}?)" if plain != beside and plain.exists() else "")
            + "; without it nobody can say whether this state is the newest"
        )
    ledger = Ledger.open(beside, key)
    signers = [name for name in (localizer.owner, *(entry.signer for entry in ledger.entries)) if name]
    for signer in dict.fromkeys(signers):
        require_trusted(signer, None, str(path))
    return Ledger.open(beside, key, trusted=signers)


def _writable_ledger(path: Path, localizer: Localizer, digest: str) -> Ledger:
    if not has_extra():
        raise MissingExtraError("states that have a ledger", "privacy")
    ledger = _ledger(path, localizer, find_signing_key())
    try:
        ledger.check_state(digest)
    except UnfinishedStepError:
        ledger.repair(digest)
    return ledger
