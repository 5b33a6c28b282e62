"""What the ledger beside a state says of it, compared with what this user has seen of both before.

The rules are those of `storage.ledger`; here they get what is remembered (`storage.remembered`), and what is
seen is remembered in turn. A step goes: what is begun is remembered, the line is written, the state is
written (`store`), and that it is in place is remembered.
"""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tytoalba.errors import (
    FileError,
    LedgerError,
    RolledBackError,
    TytoError,
    TytoWarning,
    UnfinishedStepError,
)
from tytoalba.storage.ledger import Ledger, ledger_path, new_id
from tytoalba.storage.remembered import Memory, Seen, recall, remembered_path, remembering
from tytoalba.storage.signatures import SigningKey, require_trusted, signing_key_path
from tytoalba.storage.steps import START, Entry, Facts, undone
from tytoalba.texts.printing import plural


def ledger_beside(path: str | Path) -> Path:
    """The ledger of a state, also where the state is a link."""
    return ledger_path(Path(path).resolve())


def place_of(path: str | Path) -> str:
    """How a path is remembered."""
    return str(Path(path).resolve())


@dataclass
class History:
    """The ledger of a state, verified, and what is remembered of it."""

    path: Path  # of the state
    ledger: Ledger
    seen: Seen | None
    again: Entry | None = None  # a step that must be done again before anything else

    @classmethod
    def open(cls, path: Path, owner: str, memory: Memory, key: SigningKey | None = None) -> History:
        """Refuse a ledger that is missing, altered, of a stranger, another one, or older than remembered.

        owner: fingerprint in the state. memory: as it was before state and ledger were read, or who reads
        while another writes would call it a rollback. key: needed to write.
        """
        ledger = _trusted_ledger(path, owner, memory, key)
        seen = memory.ledgers.get(ledger.identity)
        known = memory.paths.get(place_of(path))
        if known not in (None, ledger.identity):
            raise RolledBackError(
                f"{path} had another ledger when it was last seen: state and ledger were replaced by others; "
                f"put the right ones back, or accept these on purpose: `tyto restore {path.name}`"
            )
        if seen:
            _refuse_rolled_back(path, ledger, seen)
        elif memory.is_new:
            _say_missing(path, ledger)
        return cls(path, ledger, seen)

    @classmethod
    def to_change(cls, path: Path, owner: str, digest: str, memory: Memory, key: SigningKey) -> History:
        """The history of a state (SHA-256 in hex) that is to be changed; an unfinished step is taken back."""
        history = cls.open(path, owner, memory, key)
        if (other := _original(path, history.ledger, memory)) is not None:
            raise LedgerError(
                f"{path} is a copy of {other}, ledger and all: if both were changed, each would look rolled "
                f"back to the other. Change that one, or make this one of its own: `tyto restore {path.name}`"
            )
        try:
            history.check(digest)
        except UnfinishedStepError:
            step = history.take_back(digest)
            if step.what == "forgot":
                warnings.warn(
                    f"{step}, did not finish: that is still in {path.name}; forget it again",
                    TytoWarning,
                    stacklevel=4,
                )
        except RolledBackError as error:
            if not isinstance(error.again, Entry):
                raise
            history.again = error.again
        return history

    def check(self, digest: str) -> None:
        """Refuse a state (SHA-256 in hex) that is not the ledger's last; remember one that is."""
        try:
            self.ledger.check_state(digest, self.seen)
        except UnfinishedStepError:
            self._remember(done=self.seen.done if self.seen else 0)
            raise
        self.finish(digest)

    def begin(
        self,
        what: str,
        digest: str,
        n_frames: int = 0,
        id: str = "",  # noqa: A002
        about: Facts | None = None,
    ) -> None:
        """Write a step (see `Ledger.append`); the state is written next, then `finish`."""
        if self.again is not None:
            if digest != self.again.state:
                self.ledger.check_state(self.ledger.entries[-2].state, self.seen)  # which refuses
            self.again = None  # the line is there already
            return
        entry = self.ledger.prepared(what, digest, n_frames, id, about)
        if self.ledger.entries:
            before = self.ledger.entries[-1]
            self._remember(done=before.sequence, state=before.state, begun=entry.digest())
        self.ledger.add(entry)

    def finish(self, digest: str) -> None:
        """Remember that the state (SHA-256 in hex) of the last step is in place."""
        self._remember(done=self.ledger.length, state=digest, place=True)

    def take_back(self, digest: str) -> Entry:
        """Say in the ledger that its last step did not finish, and that the state is still this one."""
        step = self.ledger.repair(digest, self.seen)
        self.finish(digest)
        return step

    def _remember(self, done: int, state: str = "", begun: str = "", place: bool = False) -> None:
        old, ledger = self.seen, self.ledger
        if old and done <= old.done:
            done, state = old.done, old.state
        seen = ledger.seen(done, state, begun or (old.begun if old else ""))
        self.seen = seen
        name, path = ledger.identity, place_of(self.path)
        now = recall()
        if place and now.paths.get(path) != name:  # who reads a copy does not make the original one
            place = _original(self.path, ledger, now) is None
        if now.ledgers.get(name) == seen and (not place or now.paths.get(path) == name):
            return
        with remembering() as memory:
            if name not in memory.ledgers or memory.ledgers[name].length <= seen.length:
                memory.put(memory.ledgers, name, seen)
            if place:
                memory.put(memory.paths, path, name)
                memory.places.pop(path, None)


def _trusted_ledger(path: Path, owner: str, memory: Memory, key: SigningKey | None) -> Ledger:
    beside = ledger_beside(path)
    if not os.path.lexists(beside):
        plain = ledger_path(beside.with_suffix("").with_suffix(""))
        known = memory.paths.get(place_of(path))
        seen = memory.ledgers.get(known) if known else None
        raise FileError(
            f"{path} belongs to a ledger, and {beside.name} is not beside it: put it back"
            + (f" (is it {plain.name}?)" if plain != beside and plain.exists() else "")
            + (f" (it had {plural(seen.length, 'step')} when it was last seen)" if seen else "")
            + "; without it nobody can say whether this state is the newest. To go on without: "
            f"`tyto restore {path.name}`"
        )
    ledger = Ledger.open(beside, key)
    signers = [name for name in (owner, *(entry.signer for entry in ledger.entries)) if name]
    for signer in dict.fromkeys(signers):
        require_trusted(signer, None, str(path))
    ledger = Ledger.open(beside, key, trusted=signers)
    ledger.verify()
    return ledger


def _refuse_rolled_back(path: Path, ledger: Ledger, seen: Seen) -> None:
    with suppress(RolledBackError):
        ledger.verify(at_least=seen.length, head=seen.head)
        return
    lost = [step for step in seen.recent if step[0] > ledger.length]
    what = (
        f"the ledger of {path} is from before {undone(lost)}: it was put back, with the state or without"
        if lost
        else f"the ledger of {path} has another step {seen.length} than when it was last seen: it was put "
        "back and went on from an earlier step"
    )
    raise RolledBackError(f"{what}; find the newest, or accept these on purpose: `tyto restore {path.name}`")


def refuse_older(path: Path, digest: str, memory: Memory) -> None:
    """Refuse a state (SHA-256 in hex) or a ledger that is older than this user has seen, wherever they lie.

    Nothing else is looked at, such as who signed it: not even who takes unsigned files wants these.
    """
    try:
        beside = ledger_beside(path)
        ledger = Ledger.open(beside)
        if (seen := memory.ledgers.get(ledger.identity)) is None:
            return
        ledger = Ledger.open(beside, trusted={entry.signer for entry in ledger.entries})
        ledger.verify()
        _refuse_rolled_back(path, ledger, seen)
        ledger.check_state(digest, seen)
    except RolledBackError:
        raise
    except (TytoError, OSError):
        return


def _original(path: Path, ledger: Ledger, memory: Memory) -> Path | None:
    """Where the ledger lies of which this one is a copy; None: it is none, or was moved here."""
    for place, name in memory.paths.items():
        beside = ledger_path(place)
        if name != ledger.identity or place == place_of(path) or not beside.is_file():
            continue
        with suppress(OSError, TytoError):
            if not beside.samefile(ledger.path) and Ledger.open(beside).identity == name:
                return Path(place)
    return None


def _say_missing(path: Path, ledger: Ledger) -> None:
    """Warn who has used this ledger before, and whose memory of it is gone."""
    own = signing_key_path()
    if ledger.length < 2 or not os.path.lexists(own):
        return
    if SigningKey.load(own).fingerprint in {entry.signer for entry in ledger.entries}:
        with remembering():  # makes it
            pass
        warnings.warn(
            f"{remembered_path()} is missing: whether {path.name} was put back cannot be told this time",
            TytoWarning,
            stacklevel=4,
        )


# ---- accepted on purpose ----


@dataclass(frozen=True)
class Acceptance:
    """What it means to accept a state as it is: in words, and as facts for the ledger."""

    words: str
    about: dict[str, str | int | float]
    ledger: Ledger


def acceptance(path: Path, owner: str, digest: str, memory: Memory, key: SigningKey) -> Acceptance:
    """What would be undone by accepting a state (SHA-256 in hex) that is refused; TytoError: it is not."""
    beside = ledger_beside(path)
    known = memory.ledgers.get(memory.paths.get(place_of(path), ""))
    if not os.path.lexists(beside):
        n_lost = known.length if known else 0
        words = (
            f"{beside.name} is missing{', and had ' + plural(n_lost, 'step') if n_lost else ''}. A new one "
            "begins here. What was forgotten or exported before is not known, so nothing more can be released"
        )
        about: dict[str, str | int | float] = {"step": 0, "lost": n_lost, "spent": -1}
        return Acceptance(words, about, Ledger.open(beside, key))
    ledger = _trusted_ledger(path, owner, memory, key)
    seen = memory.ledgers.get(ledger.identity)
    if (other := _original(path, ledger, memory)) is not None:
        words = (
            f"{path.name} is a copy of {other}, and becomes a state of its own. What both know is released "
            "from that one only"
        )
        step = ledger.step_of(digest) or 0
        return Acceptance(words, {"copy": 1, "step": step, "spent": -1}, ledger)
    try:
        history = History.open(path, owner, memory, key)
        history.check(digest)
    except UnfinishedStepError as error:
        raise TytoError(f"there is nothing to restore: {error}") from error
    except LedgerError:
        return _undoing(path, ledger, seen, digest)
    raise TytoError(f"{path} is what its ledger says: there is nothing to restore")


def _undoing(path: Path, ledger: Ledger, seen: Seen | None, digest: str) -> Acceptance:
    step = ledger.step_of(digest)
    gone = ledger.since(step) if step is not None else []
    lost: list[tuple[int, str, int]] = []
    if seen:
        with suppress(RolledBackError):
            ledger.verify(at_least=seen.length, head=seen.head)
            seen = None
    if seen:
        lost = [each for each in seen.recent if each[0] > ledger.length]
    n_forgotten = sum(n_frames for _, what, n_frames in [*gone, *lost] if what == "forgot")
    about: dict[str, str | int | float] = {
        "step": step or 0,
        "undone": len(gone),
        "lost": max(0, seen.length - ledger.length) if seen else 0,
        "forgotten": n_forgotten,
    }
    words = [
        f"{path.name} is the state of step {step} of {ledger.length}"
        if step
        else f"{path.name} is in no line of its ledger: nobody can say what it is"
    ]
    if gone or lost:
        words.append(f"it is from before {undone([*gone, *lost])}")
    if n_forgotten:
        frames = plural(n_forgotten, "frame that was", "frames that were")
        words.append(f"{frames} forgotten since would be there again")
    if seen:
        words.append(f"its ledger was seen with {plural(seen.length, 'step')} and has {ledger.length}")
        if seen.n_exports > ledger.seen().n_exports:
            about["spent"] = -1  # nobody knows how much, so all
            words.append("models were exported since, so nothing more can be released privately")
    return Acceptance("; ".join(words), about, ledger)


def accept(path: Path, digest: str, accepted: Acceptance) -> Entry:
    """Write the line that says so, and remember the ledger as it is now, whatever was seen before."""
    ledger = accepted.ledger
    name = new_id() if "copy" in accepted.about or not ledger.entries else ""
    entry = ledger.append("restored", digest or START, id=name, about=accepted.about)
    with remembering() as memory:
        seen = ledger.seen(ledger.length, digest)
        memory.put(memory.ledgers, ledger.identity, seen)
        memory.put(memory.paths, place_of(path), ledger.identity)
        memory.places.pop(place_of(path), None)
    return entry


def forget_place(path: Path) -> None:
    """Remember no more that this path had a ledger or a signature."""
    with remembering() as memory:
        for known in (memory.paths, memory.places):
            known.pop(place_of(path), None)


def remembered_facts(ledger: Ledger) -> dict[str, Any]:
    """What is remembered of a state's ledger, for `tyto info`."""
    seen = recall().ledgers.get(ledger.identity)
    return {"newest_step": seen.length, "in_place": seen.done, "file": str(remembered_path())} if seen else {}
