"""The state in its file, as the page sees and changes it: one writer at a time, every step in its ledger."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tytoalba.errors import FileError, LedgerError, SealError, SignatureError, TytoError
from tytoalba.live.web.refusals import Refusal, told
from tytoalba.localizer.localizer import Change, Localizer
from tytoalba.localizer.store import Store, open_store
from tytoalba.signal.audio import Samples
from tytoalba.storage.age import Keys

SECTOR = 5
"""Degrees of one number of the evidence."""
MOST_STEPS = 50
"""Lines of the ledger that are told."""

Stamp = tuple[int, int, int]
"""What tells one version of a file from another."""


@dataclass(frozen=True)
class Changed:
    """What was done: frames, and the state's digest (SHA-256 in hex) before and after."""

    n_frames: int
    before: str
    digest: str
    lessons: tuple[str, ...]


class Stored:
    """A state or model in a file. on_change: called with the localizer after each change, by who changed it.

    All of this may wait for the disk: it is for threads, not for an event loop.
    """

    def __init__(self, path: Path, keys: Keys = None, *, unsigned: bool = False) -> None:
        self._store: Store = open_store(path, keys, unsigned)
        self.on_change: Callable[[Localizer], None] = lambda _: None
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._facts: tuple[Stamp, dict[str, Any]] | None = None
        self._stamp = self._newest()

    @property
    def localizer(self) -> Localizer:
        """As it was last read or written here."""
        return self._store.localizer

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self._store.path.name

    @property
    def why_not_teach(self) -> str | None:
        """Why it cannot be taught; None: it can."""
        if self.localizer.can_learn:
            return None
        return f"{self.name} is a model: it locates and cannot learn; serve a state (`tyto new`)"

    def teach(
        self, samples: Samples, azimuth: float, who: str, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Changed:
        """Learn that this sound, (n_mics, n_samples) at the array's rate, comes from there; kept by name."""

        def learn(localizer: Localizer) -> Change:
            change = localizer.teach(samples, azimuth, who=who, keep=True)
            if is_cancelled():
                raise Refusal(409, "the lesson was cancelled: nothing was changed")
            return change

        return self._change(learn)

    def forget(self, who: str | None = None, lesson: str | None = None) -> Changed:
        """Forget kept lessons exactly: all under a name, or one by its id."""

        def forget(localizer: Localizer) -> Change:
            kept = localizer.state.kept
            if not any(lesson in (None, name) and who in (None, one.who) for name, one in kept.items()):
                raise Refusal(404, "no lesson that was kept is meant: see the list of lessons")
            return localizer.forget(who=who, lesson=lesson)

        return self._change(forget)

    def _change(self, do: Callable[[Localizer], Change]) -> Changed:
        if why := self.why_not_teach:
            raise Refusal(409, why)
        if not self._writing.acquire(blocking=False):
            raise Refusal(409, "the localizer is being changed: try again in a moment")
        try:
            with _explained(), self._store.edit() as localizer:
                before = digest_of(localizer)
                change = do(localizer)
            self._stamp = self._newest()
            self.on_change(self.localizer)
            return Changed(change.n_frames, before, digest_of(self.localizer), change.lessons)
        finally:
            self._writing.release()

    def facts(self) -> dict[str, Any]:
        """What is stored, read anew if the file has changed."""
        with self._reading, _explained():
            stamp = self._newest()
            if self._facts is None or self._facts[0] != stamp:
                if stamp != self._stamp:
                    self._reread(stamp)
                self._facts = stamp, self._described()
            return self._facts[1]

    def _reread(self, stamp: Stamp) -> None:
        """Take over what another program wrote, such as `tyto teach`."""
        with self._writing:
            fresh = open_store(self._store.path, self._store.keys, self._store.unsigned)
            if fresh.localizer.array != self.localizer.array:
                raise Refusal(409, "the file is of another array now: start tyto serve again")
            self._store, self._stamp = fresh, stamp
            self.on_change(fresh.localizer)

    def _newest(self) -> Stamp:
        about = self._store.path.stat()
        return about.st_mtime_ns, about.st_size, about.st_ino

    def _described(self) -> dict[str, Any]:
        store, localizer = self._store, self.localizer
        facts: dict[str, Any] = {
            "file": self.name,
            "kind": "state" if localizer.can_learn else "model",
            "digest": digest_of(localizer),
            "bytes": store.path.stat().st_size,
            "n_frames": localizer.n_frames,
            "n_lessons": 0,
            "evidence": localizer.evidence.reshape(-1, SECTOR).sum(axis=1).tolist(),
            "lessons": [],
            "budget": None,
            "steps": [],
            "ledger": None,
        }
        if not localizer.can_learn:
            return facts
        state = localizer.state
        steps, verdict = store.steps()
        kept = sorted(state.kept.items(), key=lambda item: item[1].time)
        return facts | {
            "n_lessons": len(state.lessons),
            "lessons": [
                {
                    "id": name,
                    "who": one.who,
                    "azimuth": list(one.azimuth),
                    "n_frames": state.lessons[name],
                    "when": one.time,
                }
                for name, one in kept
            ],
            "budget": store.budget() if steps else None,
            "steps": [
                {"sequence": s["sequence"], "what": s["what"], "when": s["time"], "frames": s["n_frames"]}
                for s in steps[-MOST_STEPS:]
            ],
            "ledger": told(TytoError(verdict)),
        }


def digest_of(localizer: Localizer) -> str:
    """SHA-256 of what the file holds, once it is opened: the same lessons, the same digest."""
    return hashlib.sha256(localizer.to_bytes()).hexdigest()


@contextmanager
def _explained() -> Iterator[None]:
    """A file that cannot be used is nothing that the client did."""
    try:
        yield
    except (FileError, LedgerError, SealError, SignatureError) as error:
        raise Refusal(503, str(error)) from error
    except OSError as error:
        raise Refusal(503, f"the localizer's file cannot be used: {error.strerror or error}") from error
