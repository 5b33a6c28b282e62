"""How the command speaks: results on standard output, everything else on standard error."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape

from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from rich.progress import Progress

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)
NARROWEST = 50.0
"""Hz: the narrowest band; every method has a frequency in it."""


def print_error(message: str) -> None:
    """A refusal, on standard error, in one line however long."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def print_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """A warning, on standard error; takes the place of `warnings.showwarning`."""
    err.print(f"[bold yellow]warning:[/] {escape(str(message))}", soft_wrap=True)


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(value, allow_nan=False))


def write_json(value: Any, path: Path) -> None:
    """A JSON file, whole or not at all; its folder is made."""
    from tytoalba.storage.files import written_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, allow_nan=False), encoding="utf-8")


def print_csv(header: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    """A table for machines on standard output."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def bars() -> Progress:
    """Progress bars on standard error with the time left, as measured so far."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=not err.is_terminal,
    )


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """One bar; gives a function to call with (done, total)."""
    with bars() as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def keys_from(identity: Path | None) -> Iterator[None]:
    """Open sealed files with the key in this file, wherever they are read meanwhile; None: as usual."""
    from tytoalba.storage.keys import VARIABLE

    before = os.environ.get(VARIABLE)
    if identity is not None:
        os.environ[VARIABLE] = str(identity)
    try:
        yield
    finally:
        if identity is not None:
            os.environ.pop(VARIABLE)
            os.environ.update({VARIABLE: before} if before is not None else {})


def parse_band(text: str, sample_rate: int) -> tuple[float, float]:
    """Read "100-8000" (Hz) or "full", for sound of this sample rate."""
    if text == "full":
        return (0.0, float("inf"))
    try:
        low, high = (float(edge) for edge in text.split("-"))
    except ValueError:
        raise TytoError(f"a band is LOW-HIGH in Hz, such as 100-8000, or 'full'; got {text!r}") from None
    if not (low >= 0 and low + NARROWEST <= min(high, sample_rate / 2)):
        highest = f"{sample_rate / 2:g} Hz, the highest frequency at {sample_rate} Hz"
        raise TytoError(
            f"no band {text!r}: LOW must be at least {NARROWEST:g} Hz below HIGH and below {highest}"
        )
    return low, high


def choose_device(name: str) -> str:
    """A torch device that is there; "auto" is a GPU where there is one."""
    try:
        import torch
    except ImportError:
        return "cpu" if name == "auto" else name
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:  # the latter from a torch built without CUDA
        raise TytoError(f"no device {name!r} here; try cpu ({str(error).splitlines()[0]})") from error
    return name
