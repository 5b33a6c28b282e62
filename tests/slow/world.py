"""Commands in a world, one process each, killed or out of disk at the n-th call that changes a file."""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from tests.slow.scenes import Command

PATIENCE = 120.0
"""Seconds for one command."""


class Fault(IntEnum):
    """What happens at the n-th call, as faults.c counts them."""

    NONE = 0
    COUNT = 1
    KILL = 2
    TEAR = 3
    FULL = 4


@dataclass(frozen=True)
class Ran:
    """How a command ended. code: 0 done, 2 refused, below 0 killed by that signal. calls, writes: counted."""

    code: int
    text: str
    calls: int = 0
    writes: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether it did its work, or said in words why not."""
        if "Traceback" in self.text or "Exception ignored" in self.text:
            return False
        return self.code in (0, 1) or (self.code == 2 and "error:" in self.text)

    @property
    def last_line(self) -> str:
        """The last thing that it said."""
        return (self.text.strip().splitlines() or [""])[-1][:300]


def compiler() -> str | None:
    """The C compiler, which builds the faults."""
    return shutil.which("cc") or shutil.which("gcc")


def build(folder: Path) -> Path:
    """The library of faults; it must be loaded before the C library (LD_PRELOAD)."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([str(compiler()), "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def settle(world: Path) -> None:
    """Make a world the user's own: folders of data and settings are in it."""
    for name in [name for name in os.environ if name.startswith("TYTO_")]:
        del os.environ[name]
    os.environ |= {
        "XDG_DATA_HOME": str(world / "home"),
        "XDG_CONFIG_HOME": str(world / "config"),
        "HOME": str(world),
        "COLUMNS": "160",
    }
    os.chdir(world)


def tyto(world: Path, command: Command, fault: Fault = Fault.NONE, at: int = 0) -> Ran:
    """Run a command in a forked process. at: which call the fault is at, from 1."""
    library = ctypes.CDLL(os.environ["LD_PRELOAD"]) if fault else None
    said, says = os.pipe()
    counted, counts = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        os.close(said)
        os.close(counted)
        _in_child(world, command, says, counts, library, fault, at)
    os.close(says)
    os.close(counts)
    text = _all_of(said, child)
    numbers = os.read(counted, 100).split()
    os.close(counted)
    status = os.waitpid(child, 0)[1]
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    calls, writes = map(int, numbers) if numbers else (0, 0)
    return Ran(code, text.decode("utf-8", "replace"), calls, writes)


def _all_of(pipe: int, child: int) -> bytes:
    """All that a process says; one that takes too long is killed."""
    text, give_up = b"", time.monotonic() + PATIENCE
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, give_up - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            text += b"\nit hangs"
            break
        piece = os.read(pipe, 65536)
        if not piece:
            break
        text += piece
    os.close(pipe)
    return text


def _in_child(
    world: Path,
    command: Command,
    says: int,
    counts: int,
    library: ctypes.CDLL | None,
    fault: Fault,
    at: int,
) -> None:
    code = 70
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for new, old in ((nothing, 0), (says, 1), (says, 2)):
            os.dup2(new, old)
        settle(world)
        if library is not None:
            library.tyto_arm(int(fault), ctypes.c_long(at))
        code = called(command)
        sys.stdout.flush()
        sys.stderr.flush()
        if library is not None:
            library.tyto_arm.restype = None
            numbers = library.tyto_count(), library.tyto_writes()
            library.tyto_arm(0, ctypes.c_long(0))
            os.write(counts, b"%d %d" % numbers)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def called(command: Command) -> int:
    """Run a command in this process, as its entry point does; its exit code."""
    from tytoalba.cli.app import main

    sys.argv = ["tyto", *command]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0
