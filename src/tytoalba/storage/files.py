"""Small files read within limits, and one writer at a time; `writing` writes them."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from tytoalba.errors import FileError, LockedError, TytoError
from tytoalba.texts.parsing import LARGEST_TOML, parse_json, parse_toml

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PAUSE = 0.02  # seconds between two tries to lock


def user_folder(kind: Literal["data", "config"] = "data") -> Path:
    """The user's folder: XDG_DATA_HOME or XDG_CONFIG_HOME, or their usual places, and tytoalba in it."""
    variable, usual = {"data": ("XDG_DATA_HOME", ".local/share"), "config": ("XDG_CONFIG_HOME", ".config")}[
        kind
    ]
    return Path(os.environ.get(variable) or Path.home() / usual) / "tytoalba"


def read_bytes(
    path: str | Path,
    limit: int,
    *,
    forbidden: int = 0,
    error: type[TytoError] = FileError,
    pipes: bool = True,
) -> bytes:
    """All that a small file holds.

    limit: bytes; a longer file is refused. forbidden: permission bits that it must not have; 0o077 for
    secrets, 0o022 for what only its owner may write. error: what is raised. pipes: False for files that the
    user did not name: who plants a pipe there would have us wait for ever. What was opened is judged, not
    its name.
    """
    try:
        if not (Path(path).is_file() or (pipes and Path(path).is_fifo())):
            raise error(f"{path} is not a file; check its spelling and the folder")
        waiting = 0 if pipes else getattr(os, "O_NONBLOCK", 0)
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | waiting)
        with os.fdopen(handle, "rb") as file:
            kind = os.fstat(handle).st_mode
            if not (pipes or stat.S_ISREG(kind)):
                raise error(f"{path} is not a file; check its spelling and the folder")
            mode = stat.S_IMODE(kind)
            if mode & forbidden and sys.platform != "win32":
                raise error(
                    f"{path} is open to others (mode {mode:o}): chmod 600 {path}. "
                    "If somebody else may have used it, make a new one"
                )
            content = file.read(limit + 1)
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from problem
    if len(content) > limit:
        raise error(f"{path} is larger than {limit} bytes: this is not what it should be; check the path")
    return content


def read_toml(path: str | Path, error: type[TytoError] = FileError) -> dict[str, Any]:
    """The table of a TOML file, hostile or not: too large, too deep or something else is refused."""
    data = read_bytes(path, LARGEST_TOML, error=error)
    try:
        return parse_toml(data.decode("utf-8"))
    except ValueError as why:
        raise error(f"{path} is not valid TOML: {why}") from why


def read_json(path: str | Path, limit: int = 2**20, error: type[TytoError] = FileError) -> Any:
    """The value of a JSON file, hostile or not: too large (bytes), too deep or something else is refused."""
    data = read_bytes(path, limit, error=error)
    try:
        return parse_json(data)
    except ValueError as why:
        raise error(f"{path}: not a JSON file in UTF-8 ({why}); was it cut short?") from why


@contextmanager
def explained(name: str | Path, error: type[TytoError] = FileError) -> Iterator[None]:
    """What the system says of a file that cannot be opened or read, as `error`, with what to do."""
    try:
        yield
    except FileNotFoundError as why:
        raise error(f"{name}: no such file; check its spelling and the folder, {Path.cwd()}") from why
    except IsADirectoryError as why:
        raise error(f"{name} is a folder; give the files in it") from why
    except (OSError, ValueError) as why:
        raise error(f"{name} cannot be read: {why}; check its permissions") from why


def read_whole(path: str | Path) -> bytes:
    """All that a file holds, as long as memory can hold it; devices, some of which never end, are refused."""
    with explained(path):
        kind = Path(path).stat().st_mode
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
        raise FileError(f"{path} is a device, not a file; check the path")
    try:
        with explained(path):
            return Path(path).read_bytes()
    except MemoryError as why:
        raise FileError(f"{path} does not fit into memory, as no such file should; check the path") from why


@contextmanager
def locked(path: str | Path, wait: float = 0.0) -> Iterator[None]:
    """Keep every other `locked(path)` out, in this process and in others, until the block ends.

    A file that is locked already is an error at once, or after `wait` seconds of trying. `path` itself is
    not touched and need not exist: the lock is a small file beside it, `.NAME.lock`, because a file that is
    written whole is another file afterwards. The system takes the lock back when a process dies, however it
    dies. A process that forks while it holds a lock shares it with its child.

    The lock is advisory: it keeps out those that ask for it, and nobody else.
    """
    path = Path(path).resolve()  # a link and what it points to are one file
    lock = path.with_name(f".{path.name}.lock")
    handle = _hold(path, lock, wait)
    try:
        yield
    finally:
        _release(handle, lock)


def _hold(path: Path, lock: Path, wait: float) -> int:
    """The descriptor of the lock file, locked."""
    give_up = time.monotonic() + wait
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            raise LockedError(
                f"cannot lock {path}: {error.strerror}; is {path.parent} a folder that you may write to?"
            ) from error
        try:
            _take(handle)
            if _is_still(handle, lock):
                return handle
        except (BlockingIOError, PermissionError) as error:  # the second is how Windows says it
            os.close(handle)
            if time.monotonic() >= give_up:
                raise LockedError(
                    f"another tyto is writing {path}; wait until it has finished, then try again"
                ) from error
            time.sleep(PAUSE)
        except OSError as error:
            os.close(handle)
            raise LockedError(
                f"cannot lock {path}: {error.strerror}; keep it on a file system with locks (a local disk)"
            ) from error
        else:
            os.close(handle)  # its last holder has just left and removed it: the next try makes a new one


def _take(handle: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        # flock, not lockf: it holds between threads too, and survives that somebody closes the file
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _release(handle: int, lock: Path) -> None:
    with suppress(OSError):  # a lock file that cannot be removed does no harm; on Windows it always stays
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
        elif _is_still(handle, lock):
            lock.unlink()
    os.close(handle)


def _is_still(handle: int, lock: Path) -> bool:
    """Whether the file that was locked is the one that others will find."""
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False
