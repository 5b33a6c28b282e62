"""What was learned and forgotten, one signed line per step, each chained to the line before it.

The ledger lies beside the state (STATE.ledger), for its owner only. It holds no content: what was done, how
many frames, when, the SHA-256 of the state afterwards, and an opaque id that only the owner's key can make
from a recording. Lines are added and never replaced. A step is written here first and to the state second.

A state that is one step behind its ledger may be of a writer who was killed between the two, or it was put
back. What this user has seen before (`remembered`) tells them apart:

1. The state of the last step was seen in place: this one was put back, and is refused (RolledBackError).
2. This user began that very line and its state was never seen in place: the step did not finish
   (UnfinishedStepError), and `repair` adds "recovered", with the id and number of the step it takes back.
3. Nothing is known, on another machine for instance: the step did not finish, unless it forgot something. A
   "forgot" is never taken back unasked: it is done again, which gives the same state, or `tyto restore` says
   that the old state is wanted.

Every other state that is not the last step's is refused. "restored" is a line that `tyto restore` writes.

What is noticed without anything remembered: a changed, removed, added or reordered line; lines of another
owner; a state that is not the one of the last line. What only shows with what is remembered, or with an
anchor on paper (`verify(head=...)`): state and ledger rolled back together; both replaced by those of
another state of the same owner. What is never noticed: steps that were never written here; anything done by
somebody who has the owner's key; a state put back after its writer was killed in the instant between the
move of the state and the note of it. The times are those of the owner's clock; numbers give the order.

A full ledger is compacted: its lines move to an archive beside it (STATE.ledger.1, .2, ...) and one signed
"summary" stands for them, with how many they were, the digests of the first and the last, counts, and the
budget with what was spent of it. The chain goes on from the last archived line. Archives are never changed;
without them the ledger still verifies, but nobody can look up what its summary stands for.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from tytoalba.errors import LedgerChangedError, LedgerError, RolledBackError, UnfinishedStepError
from tytoalba.storage.archives import archive, archives, summed_up
from tytoalba.storage.files import locked, read_bytes
from tytoalba.storage.remembered import N_RECENT, Seen
from tytoalba.storage.signatures import SigningKey, holds, require_trusted
from tytoalba.storage.steps import (
    LONGEST_LINE,
    PUT_BACK,
    START,
    WRITING,
    Entry,
    Facts,
    parsed,
    undone,
)
from tytoalba.storage.writing import write_whole
from tytoalba.texts.printing import plural

CLOCK_TOLERANCE = 300  # seconds by which a clock may be set back without a word
FULL = 4 * 2**20  # bytes, about 8000 steps, which take a second or two to verify; then it is compacted
LARGEST = 64 * 2**20  # bytes; an earlier version filled as many
PURPOSE = "ledger entry"


class Ledger:
    """The steps of one state. `open` it, `check_state`, `append`; or only read `entries`.

    Steps can be read without the extra `privacy`; they are then not verified. `torn`: the file ends in a line
    that somebody was killed while writing. It never counted, and the next step takes its place.
    """

    def __init__(
        self, path: Path, key: SigningKey | None, content: bytes, trusted: Collection[str] | None
    ) -> None:
        self.path, self.key = path, key
        self._trusted = [trusted] if isinstance(trusted, str) else trusted
        if key is not None:
            self._trusted = [key.fingerprint, *(self._trusted or [])]
        self._content = content[: content.rfind(b"\n") + 1]  # a line without its end was never finished
        self.torn = len(self._content) < len(content)
        self._entries = parsed(path, self._content)
        self._is_verified = False

    @classmethod
    def open(
        cls, path: str | Path, key: SigningKey | None = None, trusted: Collection[str] | None = None
    ) -> Ledger:
        """The ledger in a file, or an empty one; nothing is written, and signatures are not looked at.

        key: needed to append. trusted: fingerprints of others whose steps are accepted, such as the owner's
        former key; without a key, and without this, the user's TrustStore is asked.
        """
        path = Path(path)
        return cls(path, key, _read(path), trusted)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The steps, oldest first."""
        return tuple(self._entries)

    @property
    def head(self) -> str:
        """SHA-256 of the last line: it stands for the whole ledger. Write it down to notice a rollback."""
        return self._entries[-1].digest() if self._entries else START

    @property
    def length(self) -> int:
        """How many steps there were, those that a summary stands for among them."""
        return self._entries[-1].sequence if self._entries else 0

    @property
    def identity(self) -> str:
        """SHA-256 of the very first line, which says which ledger this is, wherever it lies.

        A copy that became a state of its own (`tyto restore`) counts from the line that says so. First lines
        without an id (`new_id`) can be the same in two ledgers; they are told apart by where they lie.
        """
        if not self._entries:
            return START
        first = next((entry for entry in reversed(self._entries) if "copy" in entry.about), self._entries[0])
        if first.what == "summary":
            return str(first.about["first"])
        where = b"" if first.id else b"\n" + str(self.path.resolve()).encode("utf-8", "surrogateescape")
        return hashlib.sha256(first.line() + where).hexdigest()

    @property
    def budget(self) -> float | None:
        """Epsilon that all private releases may spend together; None: the ledger does not say."""
        told = [entry.about["budget"] for entry in self._entries if "budget" in entry.about]
        return float(told[-1]) if told else None

    def seen(self, done: int = 0, state: str = "", begun: str = "") -> Seen:
        """What to remember of this ledger. done, state, begun: see `Seen`."""
        recent = tuple((e.sequence, e.what, e.n_frames) for e in self._entries[-N_RECENT:])
        n_exports = sum(
            int(e.about.get("exported", e.what == "exported"))
            for e in self._entries
            if e.what in ("exported", "summary")
        )
        return Seen(self.length, self.head, done, state, begun, n_exports, recent)

    def verify(
        self, trusted: Collection[str] | None = None, at_least: int = 0, head: str | None = None
    ) -> list[str]:
        """Refuse a ledger whose chain, numbers or signatures are not right; return what is only suspicious.

        trusted: fingerprints whose steps are accepted; None: those of `open`. at_least: a sequence number
        that was seen before; head: one that was seen before. Both notice that the end was cut off.
        """
        if trusted is not None or not self._is_verified:  # what was verified once, and added since, holds
            self._verify_lines(self._trusted if trusted is None else trusted)
        if self.length < at_least or not self._has(head, at_least):
            raise RolledBackError(
                f"{self.path} ends at step {self.length} and lacks a step that was seen before: it was "
                f"rolled back; look for the newer ledger and state, {self._or_accept()}"
            )
        self._is_verified = self._is_verified or trusted is None
        return self._suspicions()

    def _verify_lines(self, trusted: Collection[str] | None) -> None:
        number, previous = 1, START
        for line, entry in enumerate(self._entries, start=1):
            if line == 1 and entry.what == "summary":
                number, previous = entry.sequence, entry.previous
            elif entry.sequence != number or entry.previous != previous or entry.what == "summary":
                raise LedgerError(
                    f"{self.path}, line {line}: it does not follow the line before it: lines were removed, "
                    f"added or moved; {PUT_BACK}"
                )
            if not holds(entry.signature, replace(entry, signature="").line(), PURPOSE, entry.signer):
                raise LedgerError(
                    f"{self.path}, line {line}: the signature does not hold: it was altered; {PUT_BACK}"
                )
            number, previous = number + 1, entry.digest()
        for signer in {entry.signer for entry in self._entries}:
            require_trusted(signer, trusted, str(self.path))

    def _has(self, head: str | None, length: int) -> bool:
        """Whether a line that was the last, at some length, is still there, or is one that was summed up."""
        if head in {None, START, *(entry.digest() for entry in self._entries)}:
            return True
        first = self._entries[0] if self._entries else None
        if first is None or first.what != "summary":
            return False
        if head == first.previous or not (kept := archives(self.path)):
            return head == first.previous or 0 < length < first.sequence - 1  # what they were nobody can tell
        contents = (read_bytes(file, LARGEST, error=LedgerError, pipes=False) for file in kept)
        return any(
            hashlib.sha256(line).hexdigest() == head for each in contents for line in each.splitlines()
        )

    def _require_verified(self) -> None:
        if not self._is_verified:
            self.verify()

    def _suspicions(self) -> list[str]:
        notes = [
            f"step {after.sequence} is dated {before.time - after.time} s before step {before.sequence}: "
            "was the clock set back?"
            for before, after in zip(self._entries, self._entries[1:], strict=False)
            if before.time - after.time > CLOCK_TOLERANCE
        ]
        if self.torn:
            notes.append("the last line was cut off while it was written; it does not count")
        return notes

    def step_of(self, digest: str) -> int | None:
        """The last step after which the state was this one (SHA-256 in hex); None: there is none."""
        found = [entry.sequence for entry in self._entries if entry.state == (digest or START)]
        return max(found, default=None)

    def since(self, step: int) -> list[tuple[int, str, int]]:
        """(sequence, what, n_frames) of the steps after a step, but for those that were taken back."""
        taken = {entry.about.get("step") for entry in self._entries if entry.what == "recovered"}
        return [
            (entry.sequence, entry.what, entry.n_frames)
            for entry in self._entries
            if entry.sequence > step and entry.what != "recovered" and entry.sequence not in taken
        ]

    def check_state(self, digest: str, seen: Seen | None = None) -> None:
        """Refuse a state (SHA-256 of its file in hex; "": there is none) that is not the last step's.

        seen: what is remembered of this ledger; the rules are at the top. The ledger is verified before.
        """
        self._require_verified()
        states = [self._before_first(), *(entry.state for entry in self._entries)]
        digest = digest or START
        if digest == states[-1]:
            return
        last = self._entries[-1] if self._entries else None
        if last and last.what in WRITING and digest == states[-2]:
            self._refuse_one_behind(last, seen)
        if digest == START:
            why = f"there is no state, but {self.path} is at step {self.length}: it was removed or moved"
        elif not last:
            why = f"there is a state, but {self.path} has no step: the ledger was removed or moved"
        elif (step := self.step_of(digest)) is not None:
            self._refuse_old(step)
        else:
            why = f"this state is not what {self.path} says: it was altered, or the ledger was rolled back"
        raise LedgerError(f"{why}; {PUT_BACK}")

    def _refuse_old(self, step: int) -> None:
        if not (since := self.since(step)):
            raise LedgerError(
                f"this state is of step {step} of {self.path}, which was taken back; {PUT_BACK}"
            )
        raise RolledBackError(
            f"this state is older than {self.path} says, of step {step} of {self.length}, before "
            f"{undone(since)}: it was put back; find the newest state, {self._or_accept()}"
        )

    def _or_accept(self) -> str:
        return f"or accept this one on purpose: `tyto restore {self.path.name.removesuffix('.ledger')}`"

    def _before_first(self) -> str:
        """The state before the first line; after a summary nobody knows."""
        return "" if self._entries and self._entries[0].what == "summary" else START

    def _refuse_one_behind(self, last: Entry, seen: Seen | None) -> None:
        """Tell a state whose last step did not finish from one that was put back by one step."""
        if seen and seen.done >= last.sequence:
            raise RolledBackError(
                f"this state is from before {last}, says {self.path}: that step was finished, and an older "
                f"state was put back; find the newest one, {self._or_accept()}"
            )
        began_here = seen is not None and seen.begun == last.digest()
        if last.what != "forgot" or began_here:
            raise UnfinishedStepError(
                f"the last step (number {last.sequence}, {last.what}, {plural(last.n_frames, 'frame')}) is "
                f"in {self.path} but not in the state: it did not finish; the next change takes it back"
            )
        raise RolledBackError(
            f"this state is from before {last}, says {self.path}: that step did not finish, or an older "
            "state was put back, and nothing that is remembered tells which; forget the same again, "
            f"{self._or_accept()}",
            again=last,
        )

    def append(
        self,
        what: str,
        state_digest: str,
        n_frames: int = 0,
        id: str = "",  # noqa: A002
        about: Facts | None = None,
    ) -> Entry:
        """Write one step, signed, and wait until the disk has it; write the state after that.

        state_digest: SHA-256 of the state's file as it will be, in hex. about: more facts, short. The ledger
        is verified before, and must be as it was read: another process that wrote meanwhile makes this an
        error.
        """
        return self.add(self.prepared(what, state_digest, n_frames, id, about))

    def prepared(
        self,
        what: str,
        state_digest: str,
        n_frames: int = 0,
        id: str = "",  # noqa: A002
        about: Facts | None = None,
    ) -> Entry:
        """A signed step that follows the last one, to be added; a full ledger is compacted first."""
        self._require_verified()
        entry = self._signed(self._entries, what, state_digest, n_frames, id, about or {})
        if len(self._content) + len(entry.line()) + 1 > FULL:
            self.compact()
            entry = self._signed(self._entries, what, state_digest, n_frames, id, about or {})
            if len(self._content) + len(entry.line()) + 1 > LARGEST:
                raise LedgerError(f"{self.path} is full ({LARGEST} bytes), and its summary too")
        return entry

    def add(self, entry: Entry) -> Entry:
        """Write a prepared step."""
        if entry.previous != self.head:
            raise LedgerChangedError(f"this step does not follow the last one of {self.path}; do it again")
        line = entry.line() + b"\n"
        with locked(self.path):
            self._require_unchanged()
            _write_at(self.path, len(self._content), line)
        self._content += line
        self._entries.append(entry)
        self.torn = False
        return entry

    def repair(self, state_digest: str, seen: Seen | None = None) -> Entry:
        """Take back the last step, which the state (its SHA-256 in hex; "": none) does not have; return it.

        A line "recovered" says so, with its id and number. Only a step that `check_state` calls unfinished
        is taken back.
        """
        try:
            self.check_state(state_digest, seen)
        except UnfinishedStepError:
            last = self._entries[-1]
        else:
            raise LedgerError(f"{self.path}: the last step is in the state; there is nothing to repair")
        about: Facts = {"step": last.sequence, "what": last.what}
        self.append("recovered", state_digest or START, 0, last.id, about)
        return last

    def compact(self) -> None:
        """Let one signed line stand for all there are, if it is shorter; they move to an archive beside it.

        The archive is written first: whoever is killed between the two leaves the ledger as it was.
        """
        self._require_verified()
        about = summed_up(self._entries, self.identity, self.budget)
        entry = self._signed(self._entries, "summary", self._entries[-1].state, 0, "", about)
        content = entry.line() + b"\n"
        if len(content) >= len(self._content):
            return
        with locked(self.path):
            self._require_unchanged()
            found = archives(self.path)
            if not found or _read(found[-1]) != self._content:
                write_whole(archive(self.path, len(found) + 1), self._content, private=True, replace=False)
            write_whole(self.path, content, private=True)
        self._content, self._entries, self.torn = content, [entry], False

    def _signed(
        self,
        after: list[Entry],
        what: str,
        state: str,
        n_frames: int,
        id: str,  # noqa: A002
        about: Facts,
    ) -> Entry:
        """A step that follows others."""
        if self.key is None:
            raise LedgerError(f"{self.path} was opened for reading; open it with a signing key to write")
        previous, signer = after[-1].digest() if after else START, self.key.fingerprint
        number, now = after[-1].sequence + 1 if after else 1, int(time.time())
        entry = Entry(number, now, what, n_frames, id, state, previous, signer, about=dict(about))
        if len(entry.line()) > LONGEST_LINE - 200:  # the signature is still to come
            raise LedgerError("a line of a ledger is short: say less in `about`")
        return replace(entry, signature=self.key.sign(entry.line(), PURPOSE))

    def _require_unchanged(self) -> None:
        now = _read(self.path)
        if now[: now.rfind(b"\n") + 1] != self._content:
            raise LedgerChangedError(
                f"another tyto has written to {self.path} meanwhile; open it and do the step again"
            )


def ledger_path(state: str | Path) -> Path:
    """STATE.ledger, where the ledger of STATE lies."""
    return Path(state).with_name(Path(state).name + ".ledger")


def new_id() -> str:
    """What makes the first line of a ledger unlike all others, 32 hex digits."""
    return secrets.token_hex(16)


def keyed_id(key: SigningKey, data: bytes) -> str:
    """The id of what was learned, 64 hex digits: nobody without the key can test whether it is listed."""
    return hmac.new(key.derived("ledger id"), data, hashlib.sha256).hexdigest()


def _read(path: Path) -> bytes:
    if not os.path.lexists(path):
        return b""
    return read_bytes(path, LARGEST, error=LedgerError, pipes=False)


def _write_at(path: Path, end: int, line: bytes) -> None:
    """Put a line at `end`, over a torn one if there is any; on an error the file ends there again."""
    if path.is_symlink():
        raise LedgerError(f"{path} is a link, and is not written through: remove it, and {PUT_BACK}")
    is_new = not path.exists()
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "rb+", buffering=0) as file:
        if os.name == "posix":
            os.fchmod(file.fileno(), 0o600)
        file.truncate(end)
        file.seek(end)
        try:
            if file.write(line) != len(line):
                raise OSError(f"{path} could not be written to its end: is the disk full?")
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(end)
            raise
    if is_new and os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # or the name of the new file may not be there after a power cut
        finally:
            os.close(folder)
