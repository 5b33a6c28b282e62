"""The command `tyto` as tests run it; the fixture `tyto` is in conftest.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
