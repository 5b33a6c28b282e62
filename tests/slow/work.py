"""Read a range of mutated inputs of one kind in this process, and say what came of each.

Clean is what was read and holds, and what was refused with one of our errors. Everything else is a finding:
another exception, a reading that takes more than two seconds of the processor or a gigabyte, files that
changed, something accepted that cannot be right. That this process died is for `pool` to notice.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tests.slow.kinds import InvalidError, Kind
from tytoalba.errors import TytoError, TytoWarning

CLEAN = ("read", "refused")
MEMORY = 2**30
"""Bytes that reading may take beyond what the process has."""
LONGEST_MESSAGE = 4000
"""Characters. A message is for people."""
MOST_FINDINGS = 200
"""Findings of a range that are told one by one."""


class Hang(BaseException):
    """Reading took too long. Not an Exception: nobody may swallow it."""


@dataclass
class Outcomes:
    """What came of a range of inputs.

    counts: by outcome. shapes: for each message that was met, the smallest input that brings it, as
    (bytes, number). findings: what was not clean.
    """

    counts: Counter[str] = field(default_factory=Counter)
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, number: int, size: int, how: str, outcome: str, shape: str) -> None:
        """One input more."""
        self.counts[outcome] += 1
        known = self.shapes.get(shape)
        if known is None or size < known[0]:
            self.shapes[shape] = (size, number)
        if outcome not in CLEAN and len(self.findings) < MOST_FINDINGS:
            self.findings.append({"number": number, "mutation": how, "outcome": outcome, "what": shape})


def outcomes(kind: Kind, start: int, stop: int, folder: Path, tell: Callable[[int], None]) -> Outcomes:
    """Read inputs from start to before stop. folder: an empty one; tell: called with each number before."""
    found = Outcomes()
    with limited(kind.seconds):
        for number in range(start, stop):
            tell(number)
            data, how = kind.input(number)
            found.add(number, len(data), how, *outcome(kind, data, how, folder))
    return found


def outcome(kind: Kind, data: bytes, how: str, folder: Path) -> tuple[str, str]:
    """What came of one input, and the shape of what was said."""
    path = folder / f"input{kind.suffix}"
    path.write_bytes(data)
    path.chmod(kind.mode)
    try:
        signal.setitimer(signal.ITIMER_PROF, kind.seconds)
        kind.read(path, how)
        found, why = "read", "read"
    except TytoError as error:
        found, why = "refused", shape_of(error, path)
        if len(str(error)) > LONGEST_MESSAGE:
            found, why = "long message", f"{len(str(error)) // 1000} kB: {why}"
    except Hang:
        found, why = "hang", "hang"
    except MemoryError as error:
        found, why = "memory", shape_of(error, path)
    except InvalidError as error:
        found, why = "invalid", str(error)
    except Exception as error:
        found, why = "exception", f"{shape_of(error, path)} {_where(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if os.listdir(folder) != [path.name] or path.stat().st_size != len(data) or path.read_bytes() != data:  # noqa: PTH208
        found, why = "changed", f"files changed; {why}"
        for entry in folder.iterdir():
            entry.unlink()
    return found, why


def shape_of(error: BaseException, path: Path) -> str:
    """An error without what differs from input to input: names, numbers, quotations."""
    text = str(error)[:400].replace(str(path), "FILE")
    text = re.sub(r"'[^']*'|\"[^\"]*\"|b'.*?'", "'_'", text)
    text = re.sub(r"[^ -~]+", "?", text)
    text = re.sub(r"[-+]?\d[\d.,e+]*", "0", text)
    text = re.sub(r"\b[0-9a-fA-F]{8,}\b", "0", text)
    return f"{type(error).__name__}: {text[:100]}"


def _where(error: BaseException) -> str:
    """The innermost place in our own files."""
    place, frame = "", error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if "tytoalba" in name:
            place = f"({Path(name).name}:{frame.tb_lineno})"
        frame = frame.tb_next
    return place


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A limit on memory and on the time of one reading; warnings of other programs are errors."""

    def too_long(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # again, if somebody swallows it
        raise Hang

    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    old = signal.signal(signal.SIGPROF, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, before[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", TytoWarning)
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
        resource.setrlimit(resource.RLIMIT_AS, before)


def digest(data: bytes) -> str:
    """How an input is called in the corpus."""
    return hashlib.sha256(data).hexdigest()[:12]
