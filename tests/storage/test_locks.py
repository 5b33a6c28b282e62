"""Only one at a time: threads, real processes, processes that are killed, links, and folders in the way."""

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

from tytoalba.errors import LockedError, TytoError
from tytoalba.storage.locks import locked

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and permission bits of POSIX")
HOLD = """
import sys, time
from tytoalba.storage.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
COUNT = """
import sys
from pathlib import Path
from tytoalba.storage.locks import locked
path = Path(sys.argv[1])
for _ in range(50):
    with locked(path, wait=60):
        path.write_text(str(int(path.read_text()) + 1))
"""


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
        assert (tmp_path / ".state.lock").stat().st_mode & 0o777 == 0o600


@posix
def test_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("tytoalba.storage.locks._take", refuse)
    with pytest.raises(LockedError, match="No locks available; keep it on a file system with locks"):
        locked(tmp_path / "state").__enter__()
