"""The command `tyto` as tests run it; the fixture `tyto` is in conftest.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Ran:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The refusal: one line on standard error, exit code 2, nothing on standard output."""
        assert self.code == 2, self.err
        assert self.out == ""
        assert "Traceback" not in self.err
        (line,) = [line for line in self.err.splitlines() if line.startswith("error:")]
        assert self.err.strip().endswith(line)
        return line


Tyto = Callable[..., Ran]


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """Start the command as a process of its own, with pipes."""
    command = [sys.executable, "-m", "tytoalba", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def process(*arguments: str | Path, stdin: bytes = b"") -> Ran:
    """Run the command as a process of its own."""
    command = [sys.executable, "-m", "tytoalba", *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def words(text: str) -> str:
    """Text without boxes and line breaks."""
    return " ".join("".join(" " if c in "│╭╮╰╯─" else c for c in text).split())
