"""Files are read within limits and have one writer at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.seals import mode, posix
from tytoalba.errors import FileError, KeyFileError, LockedError, TytoError
from tytoalba.storage.files import locked, read_bytes, read_whole, user_folder

HOLD = """
import sys, time
from tytoalba.storage.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
COUNT = """
import sys
from pathlib import Path
from tytoalba.storage.files import locked
path = Path(sys.argv[1])
for _ in range(50):
    with locked(path, wait=60):
        path.write_text(str(int(path.read_text()) + 1))
"""


# ---- read within limits


def test_small_files_are_read_and_large_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == read_bytes(str(path), 9) == b"12345"
    with pytest.raises(FileError, match="small is larger than 4 bytes"):
        read_bytes(path, 4)
    for missing in (tmp_path, tmp_path / "none", Path(os.devnull), Path("\0")):
        with pytest.raises(KeyFileError, match="is not a file; check its spelling"):
            read_bytes(missing, 4, error=KeyFileError)


@posix
def test_what_never_ends_and_what_is_too_large_for_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"12345")
    assert read_whole(path) == b"12345"
    with path.open("r+b") as file:
        file.truncate(2**43)  # 8 TiB, of which the disk holds nothing
    for wrong, why in (
        (path, "does not fit into memory"),
        (tmp_path / "none", "no such file"),
        (tmp_path, "is a folder"),
        ("/dev/zero", "is a device, not a file"),
        ("nul\0byte", "cannot be read"),
    ):
        with pytest.raises(FileError, match=why):
            read_whole(wrong)


@posix
def test_files_that_others_may_open_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"secret")
    for bits, forbidden, refused in ((0o640, 0o077, True), (0o640, 0o022, False), (0o620, 0o022, True)):
        path.chmod(bits)
        if refused:
            with pytest.raises(FileError, match=rf"open to others \(mode {bits:o}\): chmod 600 .*key"):
                read_bytes(path, 9, forbidden=forbidden)
        else:
            assert read_bytes(path, 9, forbidden=forbidden) == b"secret"


def test_the_users_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert user_folder() == tmp_path / ".local" / "share" / "tytoalba"
    assert user_folder("config") == tmp_path / ".config" / "tytoalba"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    assert user_folder("config") == tmp_path / "elsewhere" / "tytoalba"


# ---- one writer at a time


def test_second_is_kept_out_and_comes_in_later(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with locked(path):
        with pytest.raises(LockedError, match=r"another tyto is writing .*state; wait"), locked(path):
            raise AssertionError("two at a time")
        with locked(tmp_path / "other"):
            pass
    with locked(str(path)):
        pass
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / "state"):
        raise KeyboardInterrupt
    with locked(tmp_path / "state"):
        pass


def test_waits_as_long_as_told(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with locked(path):
        began = time.monotonic()
        with pytest.raises(LockedError), locked(path, wait=0.2):
            pass
        assert time.monotonic() - began >= 0.2
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path):
            held.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    threading.Timer(0.1, leave.set).start()
    with locked(path, wait=10):
        assert leave.is_set()
    thread.join()


@posix
def test_link_and_file_are_one(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    (tmp_path / "link").symlink_to("state")
    with locked(tmp_path / "state"), pytest.raises(LockedError), locked(tmp_path / "link"):
        pass


@posix
def test_killed_process_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match="another tyto"), locked(path):
            pass
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with locked(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_processes_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    command = [sys.executable, "-c", COUNT, str(path)]
    others = [subprocess.Popen(command) for _ in range(3)]
    assert [other.wait() for other in others] == [0, 0, 0]
    assert path.read_text() == "150"


@posix
def test_lock_that_somebody_removed_does_not_unlock_the_next(tmp_path: Path) -> None:
    """Who left must not remove the lock of who came after the lock file was deleted by hand."""
    path, lock = tmp_path / "state", tmp_path / ".state.lock"
    first = locked(path)
    first.__enter__()
    lock.unlink()
    with locked(path):
        first.__exit__(None, None, None)
        assert lock.exists()
        with pytest.raises(LockedError), locked(path):
            pass


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TytoError, match="folder that you may write to"), locked(tmp_path / "none" / "state"):
        pass


@posix
def test_does_not_write_through_a_planted_link(tmp_path: Path) -> None:
    (tmp_path / ".state.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(LockedError, match="cannot lock"), locked(tmp_path / "state"):
        pass
    assert not (tmp_path / "precious").exists()


@posix
def test_lock_file_is_private(tmp_path: Path) -> None:
    with locked(tmp_path / "state"):
        assert mode(tmp_path / ".state.lock") == 0o600


@posix
def test_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("tytoalba.storage.files._take", refuse)
    with pytest.raises(LockedError, match="No locks available; keep it on a file system with locks"):
        locked(tmp_path / "state").__enter__()
