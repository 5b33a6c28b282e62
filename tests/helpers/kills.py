"""Forks of this process that do something, and are killed before the n-th call that changes the disk."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

WRITES = {"open", "write", "fsync", "truncate", "chmod", "link", "replace", "rename", "unlink", "mkdir"}
"""Functions of the operating system, and of files, that change what is on the disk."""


def start_child(do: Callable[[], object]) -> int:
    """Fork a process that does something and ends, without clean-up; returns its id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        do()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def in_child(do: Callable[[], object]) -> bool:
    """Do something in a fork of this process; whether it was killed."""
    status = os.waitpid(start_child(do), 0)[1]
    assert os.WIFSIGNALED(status) or not os.WEXITSTATUS(status), "it failed; see its traceback"
    return os.WIFSIGNALED(status)


def kill_points(do: Callable[[], object], every: int = 1, most: int = 300) -> Iterator[int]:
    """Do something again and again, killed before its first change of the disk, its second, ...

    Gives the number of each after it was killed, until it came to its end. every: leaves others out.
    """
    for number in range(1, most, every):
        if not in_child(partial(_dying, number, do)):
            return
        yield number
    raise AssertionError(f"more than {most} changes of the disk")


def _dying(number: int, do: Callable[[], object]) -> None:
    n_done = 0

    def watch(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal n_done
        if event == "c_call" and called.__name__ in WRITES and not isinstance(called.__self__, io.BytesIO):
            n_done += 1
            if n_done == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    do()
    sys.setprofile(None)
