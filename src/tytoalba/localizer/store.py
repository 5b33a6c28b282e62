"""How states and models are kept: one writer at a time, sealed if they were, every step in a signed ledger.

The ledger says what the localizer recorded while it was changed (`Localizer.on_change`), once that was
compared with the state before and after. A step is written to the ledger first, then the state takes its new
name in one move. A process that is killed leaves the old state or the new one, and at most one unfinished
file (.NAME.new), which the next writer removes; a step that the ledger has and the state has not is then
taken back, by a line of its own. Whose ledger it is must be trusted: a state cannot say itself who vouches
for it. A state or ledger that is older than one that this user has seen is refused (`history`), and so is a
file that lost its signature (`signed`); `restore` accepts it on purpose. Without the extra 'privacy' there
are no seals and no ledger, and states say so.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import inf, isfinite
from pathlib import Path
from typing import Any

from tytoalba.errors import (
    FileError,
    LedgerError,
    LockedError,
    MissingExtraError,
    RolledBackError,
    SignatureError,
    TytoError,
    TytoWarning,
    UnfinishedStepError,
    WrongKeyError,
)
from tytoalba.localizer.budget import (
    BUDGET,
    DELTA,
    EPSILON,
    LARGEST_BUDGET,
    budget_in,
    epsilon_of,
    has_accounting,
    spent_in,
)
from tytoalba.localizer.export import (
    AS_MODEL,
    Exported,
    Facts,
    Form,
    Source,
    check_private,
    write_exact,
    write_private,
)
from tytoalba.localizer.history import (
    History,
    accept,
    acceptance,
    forget_place,
    ledger_beside,
    place_of,
    refuse_older,
    remembered_facts,
)
from tytoalba.localizer.localizer import Change, Localizer
from tytoalba.localizer.model import KIND as MODEL
from tytoalba.localizer.release import Unit
from tytoalba.localizer.signed import check_signature, described, refuse_unsigned, sign, spent_by_signature
from tytoalba.localizer.state import State
from tytoalba.storage.age import Identity, Keys, Recipient, is_sealed, open_bytes, seal_bytes
from tytoalba.storage.files import locked, read_whole
from tytoalba.storage.keys import default_recipients, recipients_path
from tytoalba.storage.ledger import Ledger, keyed_id, ledger_path, new_id
from tytoalba.storage.remembered import Memory, recall
from tytoalba.storage.sealed import opened
from tytoalba.storage.signatures import TrustStore, find_signing_key, signature_path
from tytoalba.storage.steps import START
from tytoalba.storage.tensors import kind_of
from tytoalba.storage.writing import remove_unfinished, require_writable, write_whole

WAIT = 5.0  # seconds for another tyto that is writing a state which somebody reads


@dataclass
class Store:
    """A state or model in a file, as `open_store` gives it. localizer: as it was last read or written."""

    path: Path
    keys: Keys
    localizer: Localizer
    unsigned: bool = False

    @contextmanager
    def edit(self) -> Iterator[Localizer]:
        """Change the state: written when the block ends well, with a line in its ledger for what was done.

        An error in the block, or while writing, leaves the file as it was. Nobody else can change it
        meanwhile. Calls of one kind (teach, learn; forget; merge) after each other are one line. Where the
        path is a link, the file that it points to is changed, with the ledger beside that file, and the link
        stays; a ledger or signature that is a link itself is refused.
        """
        with edit(self.path, self.keys, self.unsigned) as localizer:
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
        path, localizer, beside = self.path, self.localizer, ledger_beside(self.path)
        if not beside.exists():
            return [], "there is no ledger" + ("; it is missing" if localizer.owner else "")
        rows = [
            {"sequence": e.sequence, "time": e.time, "what": e.what, "n_frames": e.n_frames}
            | ({"about": dict(e.about)} if e.about else {})
            for e in Ledger.open(beside).entries
        ]
        if not has_extra():
            return rows, "not verified: that needs the extra 'privacy'"
        try:
            history = History.open(path, localizer.owner, recall())
            notes = history.ledger.verify()
            history.check(_digest(localizer.to_bytes()))
        except UnfinishedStepError as error:
            return rows, f"verified, but for the last step: {error}"
        except TytoError as error:
            return rows, f"NOT TRUE: {error}"
        return rows, "; ".join(["verified", *notes])

    def remembered(self) -> dict[str, Any]:
        """What this user remembers of the ledger: its newest step, and the newest with its state in place."""
        beside = ledger_beside(self.path)
        return remembered_facts(Ledger.open(beside)) if beside.exists() and has_extra() else {}

    def budget(self) -> dict[str, Any]:
        """Epsilon that private releases may spend and have spent together; None: it cannot be reckoned."""
        beside = ledger_beside(self.path)
        steps = Ledger.open(beside).entries if beside.exists() else ()
        spent = spent_in(steps)
        epsilon = epsilon_of(spent, DELTA) if has_accounting() else None
        return {
            "budget": budget_in(steps),
            "spent": None if epsilon is None or not isfinite(epsilon) else round(epsilon, 4),
            "delta": DELTA,
            "known": isfinite(spent),
        }

    def signature(self) -> str:
        """What the signature of the file says, in words."""
        if not has_extra():
            return "not looked at: that needs the extra 'privacy'"
        return described(
            self.path, self.path.read_bytes(), MODEL if not self.localizer.can_learn else "state"
        )


def open_store(path: str | Path, keys: Keys = None, unsigned: bool = False) -> Store:
    """Open a localizer that is kept in a file, sealed or plain, to use or to change it.

    Parameters
    ----------
    path : str or Path
        A state (`tyto new`), or a model (`tyto export`), which can be read and not changed.
    keys : sequence of identities, optional
        What to open a sealed file with; a plain one needs none.
    unsigned : bool
        Also take a file that has neither ledger nor signature, such as a state that `Localizer.save` wrote.
        One that had them when it was last seen is refused all the same (`tyto restore`).

    Returns
    -------
    Store
        `store.localizer` locates. `with store.edit() as localizer:` teaches and forgets. `store.steps()`
        lists what was done.

    Raises
    ------
    FileError
        The file is missing, damaged or something else, or nobody signed it.
    SealError
        It is sealed, and none of the keys opens it.
    LedgerError, SignatureError
        It is not what its ledger or its signature says, or older than one that was seen before, or these
        are of somebody who is not trusted.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from tytoalba import Localizer, open_store
    >>> noise = np.random.default_rng(0).standard_normal((4, 16000)) * 0.1
    >>> with TemporaryDirectory() as folder:
    ...     Localizer.new("respeaker-usb-4", n_features=50, seed=0).save(f"{folder}/kitchen.tyto")
    ...     store = open_store(f"{folder}/kitchen.tyto", unsigned=True)
    ...     with store.edit() as localizer:
    ...         change = localizer.teach(noise, 135.0)
    ...     change.what, change.n_frames, store.localizer.n_frames
    ('learned', 10, 10)
    """
    return Store(Path(path), keys, read(path, keys, unsigned), unsigned)


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
    if localizer.spent and not key:
        raise MissingExtraError(
            "a ledger, to remember what private models of a merged state have spent,", "privacy"
        )
    localizer = localizer.owned_by(key.fingerprint if key else "")
    data = localizer.to_bytes()
    with locked(path):
        ledger = Ledger.open(ledger_path(path), key)
        history = History(path, ledger, recall().ledgers.get(ledger.identity)) if key else None
        is_left = history is not None and _is_left(history)
        for taken in (path, *([] if is_left else [ledger.path])):
            if os.path.lexists(taken):
                raise FileError(f"{taken} is there already and stays as it is; choose another name")
        n_before = ledger.length
        if history:
            if n_before and ledger.entries[-1].state != START:
                ledger.repair("", history.seen)
            about = {"budget": float(budget)} | _told(localizer.spent)
            history.begin("created", _digest(data), localizer.n_frames, new_id(), about)
        try:
            _write(path, data, recipients)
        except BaseException:
            if not path.exists() and not n_before:
                ledger.path.unlink(missing_ok=True)
            raise
        if history:
            history.finish(_digest(data))
    return localizer


def _told(spent: float) -> dict[str, float]:
    """What was spent of what was merged, as a line of a ledger says it; -1: everything."""
    return {"spent": spent if isfinite(spent) else -1.0} if spent else {}


def _is_left(history: History) -> bool:
    """Whether a ledger is what a killed `new` left: no state of it was ever there."""
    try:
        history.ledger.check_state("", history.seen)
    except UnfinishedStepError:
        pass
    except TytoError:
        return False
    return True


def read(path: str | Path, keys: Keys = None, unsigned: bool = False) -> Localizer:
    """A state or model, as its ledger or its signature says; the file is not changed.

    unsigned: also take one that has neither, unless it had one when it was last seen.
    """
    path = Path(path)
    memory = recall() if has_extra() else Memory()  # before the rest: another tyto may write meanwhile
    raw, data = _contents(path, keys)
    localizer = Localizer.from_bytes(data, str(path))
    if not has_extra():
        _say_unchecked(path, localizer)
        return localizer
    try:
        _require_vouched(path, raw, data, localizer, memory, unsigned)
    except (LedgerError, SignatureError) as error:
        if isinstance(error, RolledBackError) and error.again is not None:
            with suppress(LockedError), locked(path, wait=WAIT):  # another tyto may be at that very step
                pass
        if path.read_bytes() == raw and recall() == memory:
            raise
        return read(path, keys, unsigned)  # another tyto wrote meanwhile
    return localizer


def _require_vouched(
    path: Path, raw: bytes, data: bytes, localizer: Localizer, memory: Memory, unsigned: bool
) -> None:
    """Refuse a file that neither its ledger nor its signature vouches for."""
    place, kind = place_of(path), kind_of(data)
    if unsigned and place not in memory.paths and place not in memory.places:
        refuse_older(path, _digest(data), memory)
        return
    is_signed = os.path.lexists(signature_path(path))
    has_ledger = os.path.lexists(ledger_beside(path))
    is_kept = has_ledger or place in memory.paths or (localizer.owner and not is_signed)
    if is_kept and not (kind == MODEL and is_signed):
        with suppress(UnfinishedStepError):  # the state before a step that did not finish is whole
            History.open(path, localizer.owner, memory).check(_digest(data))
    elif is_signed:
        check_signature(path, raw, kind, memory, unsigned)
    else:
        refuse_unsigned(path, kind, memory, unsigned)


def _say_unchecked(path: Path, localizer: Localizer) -> None:
    if localizer.owner or os.path.lexists(signature_path(path)) or os.path.lexists(ledger_beside(path)):
        warnings.warn(
            f"{path} has a ledger or a signature, and nobody looked at it: that needs "
            "pip install 'tytoalba[privacy]'",
            TytoWarning,
            stacklevel=3,
        )


@contextmanager
def edit(path: str | Path, keys: Keys = None, unsigned: bool = False) -> Iterator[Localizer]:
    """Change a state: it is written when the block ends well, and stays as it was when it does not.

    The ledger gets what the localizer says that it did, if that is what happened to the state; else nothing
    is written. Changes of one kind after each other are one step. unsigned: see `read`; such a state gets no
    ledger by this. One that was signed without a ledger is signed again, by who changed it.

    A link to a state is that state: what it points to is locked, changed and has the ledger beside it, and
    the link stays. New files (`create`, models, keys) are never written where a link is.
    """
    path = Path(path).resolve()
    if not path.is_dir():
        require_writable(path)  # a pipe would keep it waiting
    with locked(path):
        memory = recall() if has_extra() else Memory()
        raw, data = _contents(path, keys)
        localizer = Localizer.from_bytes(data, str(path))
        history = _history_to_change(path, localizer, _digest(data), memory)
        if history is None and has_extra():
            _require_vouched(path, raw, data, localizer, memory, unsigned)
        recipients = own_recipients(keys) if is_sealed(raw) else None
        remove_unfinished(path)
        before, made = localizer.state.copy(), list[tuple[Change, State]]()
        localizer.on_change = partial(_note, made)
        try:
            yield localizer
        finally:
            localizer.on_change = None
        _require_recorded(path, localizer, made, before, data)
        if history is None:
            _refuse_to_lose(path, made)
        for change, state in made if history else made[-1:]:
            new = state.to_bytes()
            if new == data:
                continue
            if history:
                lessons, about = _lesson_id(history.ledger, change), _told(change.spent) or None
                history.begin(change.what, _digest(new), change.n_frames, lessons, about)
            try:
                content = _write(path, new, recipients)
            except BaseException:
                with suppress(TytoError, OSError):
                    if history and path.read_bytes() == raw:  # an interruption may come after it was written
                        history.take_back(_digest(data))
                raise
            if history:
                history.finish(_digest(new))
            elif has_extra() and os.path.lexists(signature_path(path)):
                sign(path, "state")
            raw, data = content, new


def _history_to_change(path: Path, localizer: Localizer, digest: str, memory: Memory) -> History | None:
    """The history of a state that has a ledger; None: it has none, and never had."""
    if not (localizer.owner or os.path.lexists(ledger_beside(path)) or place_of(path) in memory.paths):
        return None
    if not has_extra():
        raise MissingExtraError("states that have a ledger", "privacy")
    return History.to_change(path, localizer.owner, digest, memory, find_signing_key())


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


def _refuse_to_lose(path: Path, made: Sequence[tuple[Change, State]]) -> None:
    """Refuse changes of a state without a ledger that only a ledger could remember what was spent of."""
    if spent := max((change.spent for change, _ in made), default=0.0):
        released = (
            "private models were released" if isfinite(spent) else "private models may have been released"
        )
        raise LedgerError(
            f"{released} of a state that is merged, and {path.name} has no ledger to remember what they have "
            f"spent, so nothing was changed. A new state has one: `tyto new NEW --like {path.name}`, then "
            f"merge both into it: `tyto merge NEW {path.name} OTHER --unsigned`"
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

    unsigned: take it as it is, unless it was signed or had a ledger when it was last seen.
    """
    path = Path(path)
    if not has_extra():
        if not unsigned:
            raise MissingExtraError(
                "states from elsewhere, unless --unsigned takes them as they are,", "privacy"
            )
        localizer = read(path, keys)
        localizer.spent = inf if localizer.owner else 0.0  # nobody looked at its ledger
        return localizer
    memory = recall()
    raw, data = _contents(path, keys)
    localizer = Localizer.from_bytes(data, str(path))
    assert localizer.state  # a model is refused
    refuse_older(path, _digest(data), memory)  # or the last releases, which change no state, could be missing
    spent = _spent(path, localizer, _digest(data))
    localizer.spent = inf if spent is None else spent
    if unsigned and place_of(path) not in {*memory.paths, *memory.places}:
        return localizer
    if os.path.lexists(signature_path(path)):
        manifest = check_signature(path, raw, "state", memory, unsigned)
        localizer.spent = spent_by_signature(manifest, spent)
    elif localizer.owner and os.path.lexists(ledger_beside(path)):
        _require_vouched(path, raw, data, localizer, memory, unsigned)
    else:
        refuse_unsigned(path, "state", memory, unsigned)
    return localizer


def _spent(path: Path, localizer: Localizer, digest: str) -> float | None:
    """What private releases of a state have spent, as its ledger says; None if that is missing or not right.

    A state that nobody owns was never released privately.
    """
    if not localizer.owner:
        return 0.0
    beside, known = ledger_beside(path), TrustStore()
    try:
        others = [entry.signer for entry in Ledger.open(beside).entries if entry.signer in known]
        ledger = Ledger.open(beside, trusted=[localizer.owner, *others])
        ledger.verify()
        with suppress(UnfinishedStepError):
            ledger.check_state(digest)
    except TytoError:
        return None
    return spent_in(ledger.entries)


def restore(path: str | Path, agrees: Callable[[str], bool], keys: Keys = None) -> dict[str, Any]:
    """Accept a state or model that is refused because it is older, or lost its ledger or signature.

    agrees: is told in words what is accepted, and says whether that is wanted. The ledger gets a line of its
    own, "restored", with what was undone. Returns these facts.
    """
    path = Path(path).resolve()
    if not has_extra():
        raise MissingExtraError("ledgers and signatures", "privacy")
    with locked(path):
        memory = recall()
        _, data = _contents(path, keys)
        localizer = Localizer.from_bytes(data, str(path))
        if kind_of(data) == MODEL or not (localizer.owner or os.path.lexists(ledger_beside(path))):
            if place_of(path) not in {*memory.paths, *memory.places}:
                raise TytoError(f"{path} never had a ledger or signature: there is nothing to restore")
            _require_agreed(
                agrees,
                f"{path.name} lost the ledger or signature that it had. From now on it counts as a file that "
                "nobody ever signed, which is read with --unsigned",
            )
            forget_place(path)
            return {"file": str(path), "restored": "unsigned"}
        digest = _digest(data)
        found = acceptance(path, localizer.owner, digest, memory, find_signing_key())
        _require_agreed(agrees, found.words)
        entry = accept(path, digest, found)
        return {"file": str(path), "restored": "state", "sequence": entry.sequence, **entry.about}


def _require_agreed(agrees: Callable[[str], bool], words: str) -> None:
    if not agrees(words):
        raise TytoError("nothing was changed")


def export_private(
    state: str | Path,
    output: str | Path,
    *,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    unit: Unit = "lesson",
    keys: Keys = None,
    form: Form = AS_MODEL,
) -> Exported:
    """Write a private model of a state (`release.private_model`), signed; what it spends is in the ledger.

    Refused beyond the budget, and of a state without a ledger: nobody could say what was spent before.
    form: how it is written.
    """
    if not has_extra():
        raise MissingExtraError("private releases", "privacy")
    output = Path(output)
    check_private(output, epsilon, delta, unit, keys, form)
    with _to_export(Path(state).resolve(), keys) as source:
        signed = partial(sign_model, counter=ledger_beside(state))
        return write_private(source, output, epsilon, delta, unit, keys, signed, form)


def export_exact(
    localizer: Localizer,
    output: str | Path,
    *,
    plain: bool = False,
    keys: Keys = None,
    form: Form = AS_MODEL,
) -> Exported:
    """Write the exact model, for one's own devices: as secret as the state, sealed unless `plain`.

    A sealed one has the suffix .age, which is added where it is missing. form: how it is written.
    """
    if not (plain or has_extra()):
        raise MissingExtraError("sealed models, unless --plain writes an open one,", "privacy")
    recipients = None if plain else own_recipients(keys)
    return write_exact(localizer, Path(output), recipients, keys, sign_model, form)


@contextmanager
def _to_export(path: Path, keys: Keys) -> Iterator[Source]:
    with locked(path):
        memory = recall()
        _, data = _contents(path, keys)
        localizer, digest = Localizer.from_bytes(data, str(path)), _digest(data)
        localizer.state  # noqa: B018 - a model is refused, in words
        history = _history_to_change(path, localizer, digest, memory)
        if history is None:
            raise TytoError(
                f"{path.name} has no ledger, so nobody can say what private releases of it have spent. A new "
                f"state has one: `tyto new NEW --like {path.name}`, then `tyto merge NEW {path.name} "
                "--unsigned`. --exact makes a model for your own devices without one"
            )

        def spend(about: Facts) -> None:
            history.begin("exported", digest, about=about)
            history.finish(digest)

        yield Source(localizer, history.ledger.entries, spend)


def sign_model(path: Path, about: Facts, counter: Path | None = None) -> Path | None:
    """Sign a model. counter: a ledger, which no later signature has fewer exports of.

    Not its length: that tells how many lessons there were, which a private model hides.
    """
    at_least = Ledger.open(counter).seen().n_exports if counter else 0
    return sign(path, MODEL, dict(about), at_least) if has_extra() else None


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


def _contents(path: Path, keys: Keys) -> tuple[bytes, bytes]:
    """What a file holds, and the same opened if it is sealed, of one reading."""
    raw = read_whole(path)
    return raw, opened(raw, keys, str(path))


def _write(path: Path, data: bytes, recipients: Sequence[Recipient] | None) -> bytes:
    """Write a state whole or not at all; returns what is in the file. The lock is held.

    Of all who are killed at most one unfinished file is left, and a lesson in it is gone with the next
    change, as forgetting wants it.
    """
    path = path.resolve()
    content = data if recipients is None else seal_bytes(data, recipients)
    try:
        write_whole(path, content, private=True)
    except OSError as error:
        why = f"{error.strerror}; nothing was written and what was there stays as it was"
        raise OSError(error.errno, why, str(path)) from error
    return content
