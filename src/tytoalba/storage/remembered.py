"""What this user has seen, kept outside the folders of states: ledgers, names that were signed, and paths.

A state and its ledger can be put back together to a moment when both were right, and nothing in the two
can tell. So the head and length of every ledger that was seen are remembered in the user's data folder, with
the last step whose state was seen in place. A ledger is known by its first line, not by its path: it may be
moved. Paths are remembered too: which had which ledger, and which had a signature, so that a ledger or a
signature that was removed is missed. Of signed names the newest sequence is kept.

The file is private, written whole, by one writer at a time, and bounded: the longest unused is dropped.
It is a help and no condition: missing, damaged or read-only it is warned about once, and work goes on
without. It holds paths and digests, and nothing that was learned.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tytoalba.errors import TytoError, TytoWarning
from tytoalba.storage.files import locked, read_bytes, user_folder
from tytoalba.storage.signatures import TrustStore, is_hex, is_whole
from tytoalba.storage.writing import write_whole

FORMAT = "tytoalba remembered 1"
LARGEST = 4 * 2**20  # bytes of the file
MOST = 2000  # ledgers, names or paths that are remembered
N_RECENT = 8  # steps of a ledger that can be told in words
WAIT = 5.0  # seconds for another tyto that is writing it
WITHOUT = "a state or ledger that is put back will not be noticed"


@dataclass(frozen=True)
class Seen:
    """What is remembered of one ledger."""

    length: int  # sequence of its last line
    head: str  # SHA-256 of its last line
    done: int = 0  # the last step whose state was seen in place
    state: str = ""  # SHA-256 of that state
    begun: str = ""  # SHA-256 of the last line that this user began to write
    n_exports: int = 0
    recent: tuple[tuple[int, str, int], ...] = ()  # (sequence, what, n_frames) of its last lines

    def __post_init__(self) -> None:
        numbers: list[object] = [self.length, self.done, self.n_exports]
        digests = [self.head, *(each for each in (self.state, self.begun) if each != "")]
        if not all(map(is_whole, numbers)) or not all(is_hex(each, 64) for each in digests):
            raise ValueError("numbers are whole, and digests are hex")
        for sequence, what, n_frames in self.recent:
            if not (is_whole(sequence) and is_whole(n_frames) and isinstance(what, str)):
                raise ValueError("a step is a number, a word and a number")


@dataclass
class Memory:
    """All that is remembered. Each dictionary has what was used last at its end."""

    ledgers: dict[str, Seen] = field(default_factory=dict)  # by the SHA-256 of a first line
    paths: dict[str, str] = field(default_factory=dict)  # path of a state: its ledger
    signed: dict[str, int] = field(default_factory=dict)  # signer, kind and name: newest sequence
    places: dict[str, str] = field(default_factory=dict)  # path of a signed file: its signer and kind
    is_new: bool = False  # there was no file

    def put(self, into: dict[str, Any], name: str, value: object) -> None:
        """Remember something as used last."""
        into.pop(name, None)
        into[name] = value

    def to_bytes(self) -> bytes:
        """The content of the file; what was not used for longest is left out where it would be too much."""
        most = MOST
        while True:
            kept: dict[str, dict[str, Any]] = {
                name: dict(list(vars(self)[name].items())[-most:])
                for name in ("ledgers", "paths", "signed", "places")
            }
            kept["ledgers"] = {name: asdict(seen) for name, seen in kept["ledgers"].items()}
            content = json.dumps({"format": FORMAT, **kept}, indent=0).encode()
            if len(content) <= LARGEST:
                return content
            most //= 2

    @classmethod
    def from_bytes(cls, content: bytes) -> Memory:
        """What a file holds; ValueError for anything else."""
        try:
            fields = json.loads(content)
            if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
                raise ValueError(f"its format is not {FORMAT!r}")
            ledgers = {
                name: Seen(**{**seen, "recent": tuple(map(tuple, seen.get("recent", ())))})
                for name, seen in fields.pop("ledgers").items()
            }
            if fields.keys() != {"paths", "signed", "places"}:
                raise ValueError("parts are missing, or unknown")
            memory = cls(ledgers, dict(fields["paths"]), dict(fields["signed"]), dict(fields["places"]))
        except (TypeError, AttributeError, KeyError, RecursionError) as error:
            raise ValueError(f"not what was written there ({type(error).__name__})") from error
        texts = [*memory.paths.items(), *memory.places.items()]
        if not all(isinstance(text, str) for pair in texts for text in pair):
            raise ValueError("paths belong to texts")
        if not all(map(is_whole, memory.signed.values())):
            raise ValueError("a sequence is a whole number")
        return memory


def remembered_path() -> Path:
    """Where it is kept: remembered.json in the user's data folder."""
    return user_folder() / "remembered.json"


def recall() -> Memory:
    """What is remembered now. What cannot be read is warned about, and nothing is remembered then."""
    path = remembered_path()
    if not os.path.lexists(path):
        return Memory(signed=_old_sequences(), is_new=True)
    try:
        return Memory.from_bytes(read_bytes(path, LARGEST, forbidden=0o022, pipes=False))
    except (ValueError, OSError) as error:
        why = str(error) if isinstance(error, TytoError) else f"{path} is damaged: {error}"
        _warn(f"{why}. What was seen before is not known: {WITHOUT} this time")
        return Memory()


@contextmanager
def remembering() -> Iterator[Memory]:
    """What is remembered, to be changed; written when the block ends well, if that is possible.

    A file that could not be read is kept, with .damaged at the end of its name.
    """
    path, can_write = remembered_path(), True
    with ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(locked(path, wait=WAIT))
        except (TytoError, OSError) as error:
            _warn(f"{path} cannot be written ({error}): {WITHOUT}")
            can_write = False
        memory = recall()
        before = memory.to_bytes()
        yield memory
        content = memory.to_bytes()
        if can_write and (content != before or memory.is_new):
            _write(path, content)


def _write(path: Path, content: bytes) -> None:
    try:
        if os.path.lexists(path):
            try:
                Memory.from_bytes(read_bytes(path, LARGEST, pipes=False))
            except (ValueError, TytoError):
                path.replace(path.with_name(f"{path.name}.damaged"))
        write_whole(path, content, private=True)
    except (TytoError, OSError) as error:
        _warn(f"{path} cannot be written ({getattr(error, 'strerror', None) or error}): {WITHOUT}")


def _old_sequences() -> dict[str, int]:
    """Sequences of signed files as an earlier version remembered them (seen.json beside the trusted keys)."""
    path = TrustStore().path.with_name("seen.json")
    if not os.path.lexists(path):
        return {}
    try:
        known = json.loads(read_bytes(path, LARGEST, pipes=False))
        if not isinstance(known, dict) or not all(map(is_whole, known.values())):
            raise ValueError("not names with whole numbers")
    except (ValueError, OSError, RecursionError) as error:
        _warn(f"{path} is damaged ({str(error)[:80]}): older signed files pass once; remove it")
        return {}
    return known


_told: set[str] = set()


def _warn(message: str) -> None:
    """Say it once in this process."""
    if message not in _told:
        _told.add(message)
        warnings.warn(message, TytoWarning, stacklevel=4)
