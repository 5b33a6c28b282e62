"""Files written whole or not at all: whoever is killed, or out of disk, leaves the old file or the new one.

Content goes to a file that has no name yet where the system knows such files (Linux), so that a process that
is killed leaves nothing behind. Elsewhere, and for libraries that want a path, it goes to one unfinished file
beside the target, `.NAME.new`, which only its owner reads and the next who writes NAME removes. Then it takes
its name in one step. Links are not written through, and devices, pipes and sockets are never replaced.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tytoalba.errors import FileError, LockedError

if sys.platform != "win32":
    import fcntl

WAIT = 60.0
"""Seconds to wait for another process that is writing the same file under its unfinished name."""
PAUSE = 0.02
"""Seconds between two looks."""
TRIES = 100


@contextmanager
def whole_file(path: str | Path, *, private: bool = False, replace: bool = True) -> Iterator[BinaryIO]:
    """Give a binary file to write to; what was written takes its name only when the block ends well.

    On any error, and when the process is killed, what was at `path` stays as it was. A file that is replaced
    keeps its permissions; a new one gets those that the umask leaves. private: for its owner only, even if
    the one that it replaces was not. replace: False raises FileExistsError if there is anything at `path`,
    now or at the end, and leaves it.
    """
    path = Path(path)
    require_writable(path, replace)
    remove_unfinished(path)
    handle = _nameless(path.parent)
    if handle is None:
        with written_whole(path, private, replace) as temporary, temporary.open("wb") as file:
            yield file
        return
    with os.fdopen(handle, "wb") as file:
        yield file
        file.flush()
        os.chmod(handle, 0o600 if private else _permissions(path))  # noqa: PTH101, it has no path
        os.fsync(handle)
        _give_name(handle, path, replace)
    _settle(path.parent)


def write_whole(path: str | Path, content: bytes, *, private: bool = False, replace: bool = True) -> None:
    """Write a file, whole or not at all, as `whole_file` does."""
    with whole_file(path, private=private, replace=replace) as file:
        file.write(content)


def write_json(value: object, path: str | Path) -> None:
    """Write a JSON file, whole or not at all; its folder is made."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(value, indent=1, allow_nan=False).encode())


@contextmanager
def written_whole(path: str | Path, private: bool = False, replace: bool = True) -> Iterator[Path]:
    """Give an unfinished file beside `path` to write to, for libraries that want a path.

    As `whole_file` otherwise, but a process that is killed leaves the unfinished file, until the next one
    that writes `path` removes it. Its name is `unfinished(path)`: tell libraries the format, they cannot
    guess it. Another process that is writing `path` in this way is waited for.
    """
    path = Path(path)
    require_writable(path, replace)
    temporary = unfinished(path)
    held = _hold(temporary)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o600 if private else _permissions(path))
        if sys.platform == "win32":
            os.close(held)  # an open file cannot be moved there
            held = -1
        _move(temporary, path, replace)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        if held >= 0:
            os.close(held)
    _settle(path.parent)


def unfinished(path: str | Path) -> Path:
    """What a file that is being written is called where it needs a name: .NAME.new.

    >>> unfinished("out/kitchen.tyto").name
    '.kitchen.tyto.new'
    """
    path = Path(path)
    return path.with_name(f".{path.name}.new")


def remove_unfinished(path: str | Path) -> None:
    """Remove what somebody who was killed while writing `path` left; what is being written now stays."""
    if os.path.lexists(unfinished(path)):
        _remove_abandoned(unfinished(path))


def require_writable(path: str | Path, replace: bool = True) -> None:
    """Refuse a path to which no file is written: a link, a device, a pipe, a socket, a folder.

    replace: False refuses anything that is there, with FileExistsError.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except ValueError as error:
        raise FileError(f"{str(path)!r} cannot be the name of a file: {error}") from error
    kind = found.st_mode
    if not replace:
        raise FileExistsError(errno.EEXIST, "is there already and stays as it is", str(path))
    if str(path).startswith("/dev/") or not any(is_kind(kind) for is_kind in (*_PLAIN, stat.S_ISLNK)):
        raise FileError(
            f"{path} is a device, a pipe or a socket, not a file to write; choose another name, or - for "
            "standard output where a command offers it"
        )
    if stat.S_ISLNK(kind):
        raise FileError(
            f"{path} is a link to {os.readlink(path)}, and nothing is written through links; "  # noqa: PTH115
            "give the file itself, or remove the link"
        )
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file to write", str(path))


_PLAIN = (stat.S_ISREG, stat.S_ISDIR)


# ---- without a name (Linux) ----


def _nameless(folder: Path) -> int | None:
    """A new file in a folder, for its owner only, that has no name; None where there are none such."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS):
            return None  # a file system, or a kernel, without them
        raise
    if Path(_path_of(handle)).exists():
        return handle
    os.close(handle)
    return None


def _path_of(handle: int) -> str:
    return f"/proc/self/fd/{handle}"


def _give_name(handle: int, path: Path, replace: bool) -> None:
    """Give a file without a name one: in one step where nothing has that name, else by way of another."""
    with suppress(*([FileExistsError] if replace else [])):
        _link(handle, path)
        return
    temporary = unfinished(path)
    for _ in range(TRIES):  # more than one only where another process replaces the same file just now
        with suppress(FileExistsError, FileNotFoundError):
            temporary.unlink(missing_ok=True)
            _link(handle, temporary)
            try:
                temporary.replace(path)
            except BaseException as error:
                if not isinstance(error, FileNotFoundError):
                    temporary.unlink(missing_ok=True)
                raise
            return
    raise LockedError(f"others keep writing {path}; wait until they have finished, then try again")


def _link(handle: int, path: Path) -> None:
    # with a folder's descriptor, which it does not need, Python asks the system to follow the source
    os.link(_path_of(handle), path, src_dir_fd=handle, follow_symlinks=True)


# ---- with a name ----


def _hold(temporary: Path) -> int:
    """The descriptor of a new unfinished file, locked against others who would take it for a stray one."""
    give_up = time.monotonic() + WAIT
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        try:
            handle = os.open(temporary, flags, 0o600)
        except FileExistsError as error:
            if not _remove_abandoned(temporary):
                if time.monotonic() >= give_up:
                    raise LockedError(
                        f"another tyto is writing {temporary}; wait until it has finished, then try again"
                    ) from error
                time.sleep(PAUSE)
            continue
        if _lock(handle) and _is_still(handle, temporary):
            return handle
        os.close(handle)


def _remove_abandoned(temporary: Path) -> bool:
    """Remove an unfinished file unless somebody is writing it; whether it is gone."""
    try:
        if not temporary.is_symlink() and temporary.is_file() and sys.platform != "win32":
            handle = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if not _lock(handle):
                    return False
                if not _is_still(handle, temporary):
                    return True  # another has removed it, and may have begun
                temporary.unlink(missing_ok=True)
            finally:
                os.close(handle)
        else:
            temporary.unlink(missing_ok=True)
    except FileNotFoundError:
        return True
    except OSError as error:
        if sys.platform == "win32" and isinstance(error, PermissionError):
            return False  # in use, as Windows says it
        raise FileError(
            f"{temporary} is in the way and cannot be removed: {error.strerror}; is it somebody else's?"
        ) from error
    return True


def _lock(handle: int) -> bool:
    """Whether this file is ours now; on Windows a file that is open cannot be removed, which does as well."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody can say
        return True
    return True


def _is_still(handle: int, path: Path) -> bool:
    """Whether an open file is the one that others find under its name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _move(temporary: Path, path: Path, replace: bool) -> None:
    """Give an unfinished file its name."""
    if replace:
        temporary.replace(path)
    elif sys.platform == "win32":
        temporary.rename(path)  # which refuses there if the name is taken
    else:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links, such as that of USB sticks
            require_writable(path, replace=False)
            temporary.rename(path)
        else:
            temporary.unlink()


def _settle(folder: Path) -> None:
    """Have a folder written, so that a new name is there after a power cut; as far as the system can."""
    if os.name == "posix":
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _permissions(path: Path) -> int:
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
