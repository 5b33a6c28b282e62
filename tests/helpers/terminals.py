"""A terminal that tests look at: a pseudo-terminal with a size, and a program in it."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.updates import wait_until

needs_terminals = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")


class Terminal:
    """Both ends; what is written to it is kept in `text`."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        import pty

        self.master, self.slave = pty.openpty()
        self._data, self._ended = b"", False
        self.resize(columns, lines)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace")

    def resize(self, columns: int, lines: int) -> None:
        import fcntl
        import termios

        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def settings(self) -> list[object]:
        """What stty would say."""
        import termios

        return list(termios.tcgetattr(self.slave))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def wait_for(self, text: str, seconds: float = 20.0) -> None:
        wait_until(lambda: text in self.text, seconds)

    def start(
        self, *arguments: str | Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Run the command `tyto` in it."""
        return self.run(sys.executable, "-m", "tytoalba", *arguments, environment=environment)

    def run(
        self, *command: str | Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Run a program in it, as its own."""
        return subprocess.Popen(
            [*map(str, command)],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            preexec_fn=self._enter,
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
        )

    def _enter(self) -> None:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C in it goes to this process

    def _read(self) -> None:
        while not self._ended:
            if select.select([self.master], [], [], 0.02)[0]:
                try:
                    self._data += os.read(self.master, 65536)
                except OSError:  # nobody has the other end
                    return

    def hang_up(self) -> None:
        """Close it, as a window is closed; programs in it get SIGHUP."""
        self._ended = True
        self._thread.join(5)
        os.close(self.slave)
        os.close(self.master)


@contextmanager
def terminal(columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    one = Terminal(columns, lines)
    try:
        yield one
    finally:
        one.hang_up()
