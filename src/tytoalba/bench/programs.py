"""Other people's programs, run for a limited time and with limited output."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tytoalba.errors import TytoError

MOST_SAID = 2**20
"""Bytes that a program may print, unless it is allowed more."""
LOOK = 0.02
"""Seconds between two looks at whether it is still running."""
SAID, COMPLAINED = "said.txt", "complained.txt"
_NONE: Mapping[str, int] = {}


def find_program(binary: str | Path, hint: str = "is it installed, and is its path right?") -> Path:
    """A program by its path or its name; TytoError with the hint where there is none that can be run."""
    found = shutil.which(str(binary))
    if found is None:
        why = "it is not executable: chmod +x it" if Path(binary).is_file() else hint
        raise TytoError(f"no program {str(binary)[:80]!r}: {why}")
    return Path(found).absolute()  # not resolved: a link to Python in an environment is that environment


def run_program(
    command: Sequence[str | Path],
    folder: Path,
    seconds: float,
    *,
    where: Path | None = None,
    most_said: int | None = None,
    most_written: Mapping[str, int] = _NONE,
    hint: str = "",
) -> str:
    """What a program prints on its standard output; TytoError where it fails.

    command: the program and its arguments; no shell is involved. folder: of its output meanwhile. where: the
    folder it runs in, if another. seconds: how long it may take. most_said: bytes that it may print;
    most_written: bytes of files of the folder that it may write. hint: ends the message where it fails.
    Whatever it has started ends with it.
    """
    name = Path(command[0]).name
    limits = {SAID: most_said or MOST_SAID, COMPLAINED: MOST_SAID, **most_written}
    with (folder / SAID).open("wb") as out, (folder / COMPLAINED).open("wb") as complaints:
        try:
            process = subprocess.Popen(
                [str(word) for word in command],
                cwd=where or folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=complaints,
                start_new_session=True,
            )
        except (OSError, ValueError) as why:  # ValueError: a NUL byte in an argument
            reason = getattr(why, "strerror", None) or why
            raise TytoError(f"cannot run {command[0]}: {reason}; is it made for this machine?") from why
    try:
        code = _wait(process, seconds, lambda: any(_size(folder / file) > n for file, n in limits.items()))
    except TytoError as why:
        raise TytoError(f"{name} {why}{_last_words(folder)}") from why
    finally:
        _end(process)
    if code:
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        raise TytoError(f"{name} failed with {how}{_last_words(folder)}{hint}")
    for file, most in limits.items():
        if _size(folder / file) > most:
            raise TytoError(f"{name} wrote more than {most} bytes to {file}")
    return (folder / SAID).read_bytes().decode("utf-8", "replace")


def _wait(process: subprocess.Popen[bytes], allowed: float, too_much: Callable[[], bool]) -> int:
    end = time.monotonic() + allowed
    while True:
        try:
            return process.wait(LOOK)
        except subprocess.TimeoutExpired:
            pass
        if too_much():
            raise TytoError("writes without end, and was stopped")
        if time.monotonic() > end:
            raise TytoError(f"was not done after {allowed:.0f} s, and was stopped")


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _last_words(folder: Path) -> str:
    """The end of what it complained of, or else of what it said."""
    for file in (COMPLAINED, SAID):
        words = " ".join((folder / file).read_bytes()[-300:].decode("utf-8", "replace").split())
        if words:
            return f": it said {words!r}"
    return ""
