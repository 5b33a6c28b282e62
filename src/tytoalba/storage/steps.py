"""Lines of a ledger: what one says, how it is spelt, and how it is read back, hostile or not.

Lines of format 1 have no `about`; both formats may stand in one ledger, one after the other. New lines are of
format 2. A line is canonical JSON: there is one spelling of a step, and no changed byte goes unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path

from tytoalba.errors import LedgerError
from tytoalba.storage.signatures import canonical, is_about, is_fingerprint, is_hex, is_whole, read_canonical

FORMAT, VERSION = "tytoalba ledger", 2
STEPS = {
    1: ("created", "learned", "forgot", "merged", "restored"),
    2: ("created", "learned", "forgot", "merged", "exported", "recovered", "restored", "summary"),
}
"""What a line can say was done, by the version of its format."""
WRITING = ("created", "learned", "forgot", "merged")
"""Steps after which a state is written; it is there already when the others are."""
FORMATS = {f"{FORMAT} {version}": version for version in STEPS}
START = "0" * 64  # what the first line has for the line before it, and the digest of no state
LONGEST_LINE = 8192
PUT_BACK = "put back a copy of the ledger and the state that belong together"
IN_WORDS = {
    "created": "made it",
    "learned": "learned {}",
    "forgot": "forgot {}",
    "merged": "merged {}",
    "exported": "exported a model",
    "recovered": "took back a step that did not finish",
    "restored": "put an older state back",
    "summary": "summed up the lines before it",
}
Facts = Mapping[str, str | int | float]


@dataclass(frozen=True)
class Entry:
    """One step. The signature is over all the rest."""

    sequence: int  # 1, 2, 3, ...
    time: int  # seconds since 1970, UTC
    what: str  # one of STEPS of its version
    n_frames: int
    id: str  # of what was learned or forgotten, hex; see ledger.keyed_id
    state: str  # SHA-256 of the state file after the step, hex
    previous: str  # SHA-256 of the line before, hex
    signer: str  # fingerprint of the owner's key
    signature: str = ""
    about: Facts = field(default_factory=dict)  # more facts; none in version 1
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
            (
                self.what == "summary" and not is_hex(self.about.get("first"), 64),
                "a summary names the first line of all",
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

    def __str__(self) -> str:
        return in_words(self.sequence, self.what, self.n_frames)


def in_words(sequence: int, what: str, n_frames: int) -> str:
    """A step as messages name it.

    >>> in_words(7, "forgot", 12)
    'step 7, which forgot 12 frames'
    """
    frames = f"{n_frames} frame{'s' * (n_frames != 1)}"
    return f"step {sequence}, which {IN_WORDS.get(what, 'did something').format(frames)}"


def undone(steps: Iterable[tuple[int, str, int]]) -> str:
    """Which of some steps (sequence, what, n_frames) matters most to who would undo them, in words.

    The first that forgot something, or the first of all.
    """
    steps = list(steps)
    forgot = [step for step in steps if step[1] == "forgot"]
    return in_words(*(forgot or steps)[0])


def parsed(path: Path, content: bytes) -> list[Entry]:
    """The steps in the lines of a file; signatures are not looked at."""
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
