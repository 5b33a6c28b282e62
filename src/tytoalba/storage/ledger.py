"""What was learned and forgotten, one signed line per step, each chained to the line before it.

The ledger lies beside the state (STATE.ledger), for its owner only. It holds no content: what was done, how
many frames, when, the SHA-256 of the state afterwards, and an opaque id that only the owner's key can make
from a recording. A step is written here first and to the state second, so that whoever is killed between the
two leaves a ledger that is one step ahead; `check_state` tells this from every other disagreement.

What is noticed: a changed, removed, added or reordered line; lines of another owner; a state that is not the
one of the last line. What is not noticed:

- State and ledger rolled back together, to a moment when both were right; or the last lines removed and the
  state of that moment put back. Nothing in the two files can tell. An anchor outside them can: write down the
  last sequence number, or better the `head`, on paper or on another machine, and give it to `verify`.
- Both replaced by those of another state of the same owner. The `head` tells.
- A state put back by exactly one step looks like a step that did not finish. `repair` then drops that step,
  but writes "restored" in its place, with its id: it can be seen, and it cannot be done twice in a row.
- Steps that were never written here, and anything done by somebody who has the owner's key.
- The times are those of the owner's clock.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path

from tytoalba.errors import LedgerChangedError, LedgerError, UnfinishedStepError
from tytoalba.storage.files import locked, read_bytes, written_whole
from tytoalba.storage.signatures import (
    SigningKey,
    canonical,
    holds,
    is_about,
    is_fingerprint,
    is_hex,
    is_whole,
    read_canonical,
    require_trusted,
)

FORMAT, VERSION = "tytoalba ledger", 2
STEPS = {
    1: ("created", "learned", "forgot", "merged", "restored"),
    2: ("created", "learned", "forgot", "merged", "exported", "recovered", "restored", "summary"),
}
"""What a line can say was done, by the version of its format. Lines of both may stand in one ledger."""
FORMATS = {f"{FORMAT} {version}": version for version in STEPS}
START = "0" * 64  # what the first line has for the line before it
CLOCK_TOLERANCE = 300  # seconds by which a clock may be set back without a word
LARGEST = 64 * 2**20  # bytes; about 140 000 steps
LONGEST_LINE = 8192
PURPOSE = "ledger entry"
PUT_BACK = "put back a copy of the ledger and the state that belong together"


@dataclass(frozen=True)
class Entry:
    """One step. The signature is over all the rest."""

    sequence: int  # 1, 2, 3, ...
    time: int  # seconds since 1970, UTC
    what: str  # one of STEPS of its version
    n_frames: int
    id: str  # of what was learned or forgotten, hex; see keyed_id
    state: str  # SHA-256 of the state file after the step, hex
    previous: str  # SHA-256 of the line before, hex
    signer: str  # fingerprint of the owner's key
    signature: str = ""
    about: Mapping[str, str | int | float] = field(default_factory=dict)  # more facts; none in version 1
    version: int = VERSION  # of the line's format

    def __post_init__(self) -> None:
        numbers: list[object] = [self.sequence, self.time, self.n_frames]
        hexes: list[object] = [self.state, self.previous]
        texts: list[object] = [self.id, self.signer, self.signature]
        wrong = [
            (not all(map(is_whole, numbers)), "sequence, time and n_frames are whole numbers from 0 to 2^53"),
            (self.version not in STEPS, f"its format is {FORMAT} and one of {', '.join(map(str, STEPS))}"),
            (self.what not in STEPS.get(self.version, ()), f"what is one of {', '.join(STEPS[VERSION])}"),
            (not all(is_hex(digest, 64) for digest in hexes), "a SHA-256 is 64 hex digits in small letters"),
            (not all(isinstance(text, str) for text in texts), "id, signer and signature are texts"),
            (not is_fingerprint(str(self.signer)), "signer is a public key"),
            (not is_hex(self.id, len(str(self.id))) or len(self.id) > 128, "id is up to 128 hex digits"),
            (
                not is_about(self.about) or (self.version == 1 and bool(self.about)),
                "about is up to 32 short names with texts or finite numbers",
            ),
        ]
        for is_wrong, expected in wrong:
            if is_wrong:
                raise LedgerError(f"this cannot be a step in a ledger: {expected}")

    def line(self) -> bytes:
        """The line in the file, without its end."""
        fields = {"format": f"{FORMAT} {self.version}", **vars(self), "about": dict(self.about)}
        del fields["version"]
        if self.version == 1:
            del fields["about"]
        return canonical(fields)

    def digest(self) -> str:
        """SHA-256 of the line, in hex."""
        return hashlib.sha256(self.line()).hexdigest()


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
        self._entries = _parsed(path, self._content)
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

    def verify(
        self, trusted: Collection[str] | None = None, at_least: int = 0, head: str | None = None
    ) -> list[str]:
        """Refuse a ledger whose chain, numbers or signatures are not right; return what is only suspicious.

        trusted: fingerprints whose steps are accepted; None: those of `open`. at_least: a sequence number
        that was seen before; head: one that was seen before. Both notice that the end was cut off.
        """
        previous = START
        for number, entry in enumerate(self._entries, start=1):
            if entry.sequence != number or entry.previous != previous:
                raise LedgerError(
                    f"{self.path}, line {number}: it does not follow the line before it: lines were removed, "
                    f"added or moved; {PUT_BACK}"
                )
            if not holds(entry.signature, replace(entry, signature="").line(), PURPOSE, entry.signer):
                raise LedgerError(
                    f"{self.path}, line {number}: the signature does not hold: it was altered; {PUT_BACK}"
                )
            previous = entry.digest()
        for signer in {entry.signer for entry in self._entries}:
            require_trusted(signer, self._trusted if trusted is None else trusted, str(self.path))
        is_cut = head is not None and head not in {START, *(entry.digest() for entry in self._entries)}
        if is_cut or len(self._entries) < at_least:
            raise LedgerError(
                f"{self.path} ends at step {len(self._entries)} and lacks a step that was seen before: it "
                "was rolled back; look for the newer ledger and state"
            )
        self._is_verified = self._is_verified or trusted is None
        return self._suspicions()

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

    def check_state(self, digest: str) -> None:
        """Refuse a state (SHA-256 of its file in hex; "": there is none) that is not the last step's.

        The ledger itself is verified before.
        """
        self._require_verified()
        states = ["", *(entry.state for entry in self._entries)]
        if digest == states[-1]:
            return
        if len(states) > 1 and digest == states[-2]:
            last = self._entries[-1]
            raise UnfinishedStepError(
                f"the last step (number {last.sequence}, {last.what}, {last.n_frames} frames) is in "
                f"{self.path} but not in the state: it did not finish, or the state was put back by one "
                "step; drop the step from the ledger (repair), then do it again"
            )
        if not digest:
            why = (
                f"there is no state, but {self.path} is at step {len(self._entries)}: it was removed or moved"
            )
        elif len(states) == 1:
            why = f"there is a state, but {self.path} has no step: the ledger was removed or moved"
        elif digest in states:
            step = max(number for number, state in enumerate(states) if state == digest)
            why = (
                f"this state is older than {self.path} says, step {step} of {len(self._entries)}: it was "
                "rolled back"
            )
        else:
            why = f"this state is not what {self.path} says: it was altered, or the ledger was rolled back"
        raise LedgerError(f"{why}; {PUT_BACK}")

    def append(
        self,
        what: str,
        state_digest: str,
        n_frames: int = 0,
        id: str = "",  # noqa: A002
        about: Mapping[str, str | int | float] | None = None,
    ) -> Entry:
        """Write one step, signed, and wait until the disk has it; write the state after that.

        state_digest: SHA-256 of the state's file as it will be, in hex. about: more facts, short. The ledger
        is verified before, and must be as it was read: another process that wrote meanwhile makes this an
        error.
        """
        self._require_verified()
        entry = self._signed(self._entries, what, state_digest, n_frames, id, about or {})
        line = entry.line() + b"\n"
        if len(self._content) + len(line) > LARGEST:
            raise LedgerError(f"{self.path} is full ({LARGEST} bytes); start a new state and ledger")
        with locked(self.path):
            self._require_unchanged()
            _write_at(self.path, len(self._content), line)
        self._content += line
        self._entries.append(entry)
        self.torn = False
        return entry

    def repair(self, state_digest: str) -> Entry:
        """Drop the last step, which the state (its SHA-256 in hex; "": none) does not have; return that step.

        "restored" takes its place, with its id, so that a dropped step can be seen. Only a step that
        `check_state` calls unfinished is dropped.
        """
        try:
            self.check_state(state_digest)
        except UnfinishedStepError:
            pass
        else:
            raise LedgerError(f"{self.path}: the last step is in the state; there is nothing to repair")
        *kept, dropped = self._entries
        trace = self._signed(kept, "restored", state_digest or START, 0, dropped.id, {})
        kept += [trace] if kept else []  # before the first state there is nothing that was restored
        content = b"".join(entry.line() + b"\n" for entry in kept)
        with locked(self.path):
            self._require_unchanged()
            with written_whole(self.path, private=True) as temporary:
                temporary.write_bytes(content)
        self._content, self._entries, self.torn = content, kept, False
        return dropped

    def _signed(
        self,
        after: list[Entry],
        what: str,
        state: str,
        n_frames: int,
        id: str,  # noqa: A002
        about: Mapping[str, str | int | float],
    ) -> Entry:
        """A step that follows others."""
        if self.key is None:
            raise LedgerError(f"{self.path} was opened for reading; open it with a signing key to write")
        previous, signer = after[-1].digest() if after else START, self.key.fingerprint
        number, now = len(after) + 1, int(time.time())
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


def keyed_id(key: SigningKey, data: bytes) -> str:
    """The id of what was learned, 64 hex digits: nobody without the key can test whether it is listed."""
    return hmac.new(key.derived("ledger id"), data, hashlib.sha256).hexdigest()


def _read(path: Path) -> bytes:
    return read_bytes(path, LARGEST, error=LedgerError) if os.path.lexists(path) else b""


def _parsed(path: Path, content: bytes) -> list[Entry]:
    entries = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            entries.append(_step(line))
        except ValueError as error:
            raise LedgerError(
                f"{path}, line {number}: not a step ({error}): it was altered, or this is another file or of "
                f"a newer tyto; {PUT_BACK}"
            ) from error
    return entries


def _step(line: bytes) -> Entry:
    if len(line) > LONGEST_LINE:
        raise ValueError("too long")
    fields = read_canonical(line)
    form = fields.pop("format", None)
    version = FORMATS.get(form) if isinstance(form, str) else None
    if version is None:
        raise ValueError(f"its format is {str(form)[:40]!r}, expected {' or '.join(FORMATS)}")
    lacks = {"version"} if version > 1 else {"version", "about"}
    if set(fields) != {field.name for field in dataclass_fields(Entry)} - lacks:
        raise ValueError("fields are missing, or unknown")
    return Entry(**fields, version=version)


def _write_at(path: Path, end: int, line: bytes) -> None:
    """Put a line at `end`, over a torn one if there is any; on an error the file ends there again."""
    is_new = not path.exists()
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "rb+", buffering=0) as file:
        path.chmod(0o600)
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
