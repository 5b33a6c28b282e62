"""How the command speaks: results on standard output, everything else on standard error."""

from __future__ import annotations

import csv
import io
import json
import os
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from tytoalba.errors import ArrayError, TytoError
from tytoalba.texts.printing import plural, shown, without_secrets

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import ConsoleOptions
    from rich.progress import Progress
    from rich.table import Column, Table

    from tytoalba.signal.array import MicArray

LONGEST = 4000
"""Letters of one message; one that quotes a file may have millions."""


class Printer(Console):
    """A console on which nothing is printed that steers a terminal, and no secret key (`shown`).

    File names, names in files, and what libraries say of damaged files come from anywhere.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, text with its secrets removed before it is broken into lines."""
        super().print(*(shown(o, lines=True) if isinstance(o, str) else o for o in objects), **options)

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What everything printed comes down to, also progress bars and cells of tables."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n" or segment.text.isprintable():
                yield segment
            else:
                yield Segment(shown(segment.text, lines=True), segment.style)


# No markup: text such as pip install 'tytoalba[sim]' is printed as it is, in lines and in tables.
out = Printer(highlight=False, emoji=False, markup=False)
err = Printer(stderr=True, highlight=False, emoji=False, markup=False)
NARROWEST = 50.0
"""Hz: the narrowest band; every method has a frequency in it."""
BETWEEN_LINES = 5.0
"""Seconds between two lines of progress where there is no terminal."""


@dataclass
class Talk:
    """How much is said on standard error: `tyto --quiet` and `tyto --verbose`."""

    quiet: bool = False
    verbose: bool = False


talk = Talk()


def say(message: str) -> None:
    """What was done, on standard error, in one line however long; not with --quiet."""
    if not talk.quiet:
        err.print(_one_line(message), soft_wrap=True)


def note(message: str) -> None:
    """What the user should know about the results; not with --quiet."""
    if not talk.quiet:
        _labelled("note", "yellow", message)


def warn(message: str) -> None:
    """What is wrong while it goes on, such as a broker that is gone; also with --quiet."""
    _labelled("warning", "bold yellow", message)


def print_error(error: str | BaseException) -> None:
    """A refusal, on standard error, in one line however long; with --verbose also where it came from."""
    if talk.verbose and isinstance(error, BaseException):
        err.print("".join(traceback.format_exception(error)), soft_wrap=True)
    said = str(error)
    if isinstance(error, OSError) and error.strerror and isinstance(error.filename, str):
        said = f"{error.filename}: {error.strerror}"  # without the number that the system has for it
    _labelled("error", "bold red", said)


def print_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    """A warning, on standard error; takes the place of `warnings.showwarning`."""
    place = f" ({filename}:{lineno})" if talk.verbose else ""
    _labelled("warning", "bold yellow", f"{message}{place}")


def print_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What no command expects, with where it came from; takes the place of `sys.excepthook`."""
    err.print("".join(traceback.format_exception(kind, error, trace)), soft_wrap=True)


def _labelled(label: str, style: str, message: str) -> None:
    err.print(Text.assemble((f"{label}:", style), " ", _one_line(message)), soft_wrap=True)


def _one_line(message: object) -> str:
    text = shown(message)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} letters)"


def put(line: object) -> None:
    r"""A line of a result on standard output, at once; control characters are spelled out, as in \\x1b."""
    print(shown(line), flush=True)


def print_json(value: Any) -> None:
    """One line of JSON on standard output, at once; without secret keys, whoever put them there."""
    text = json.dumps(value, allow_nan=False)
    if text != without_secrets(text):
        text = json.dumps(_redacted(json.loads(text)))
    print(text, flush=True)


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {without_secrets(key): _redacted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return without_secrets(value) if isinstance(value, str) else value


def write_json(value: Any, path: Path) -> None:
    """A JSON file, whole or not at all; its folder is made."""
    from tytoalba.storage import writing

    writing.write_json(value, path)


def csv_line(values: Sequence[Any]) -> str:
    """Values separated by commas, quoted where they need it.

    >>> csv_line(["a, b", 1.5, ""])
    '"a, b",1.5,'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def make_table(*heads: str | Column, title: str = "", caption: str = "") -> Table:
    """A table for people, to be read at 80 columns: few lines, its first column never broken.

    caption: units and what is not plain from the heads.
    """
    from rich import box
    from rich.table import Column, Table

    class Shown(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*(shown(c, lines=True) if isinstance(c, str) else c for c in cells), **options)

    first, *others = heads
    if isinstance(first, str):
        first = Column(first, no_wrap=True)
    return Shown(
        first,
        *others,
        title=shown(title) or None,
        caption=caption or None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )


class Steps:
    """Progress of one piece of work: to be called with (done, total), and with a new title if it changes.

    Where standard error is no terminal, a plain line every few seconds; short work says nothing.
    """

    def __init__(self, title: str) -> None:
        self.title = shown(title)
        self._began = self._told = time.monotonic()
        self._last = (0, 0)

    def __call__(self, done: int, total: int, title: str = "") -> None:
        """So much of so much is done."""
        now = time.monotonic()
        if title and shown(title) != self.title:
            self.title, self._began = shown(title), now
        self._last = (done, total)
        if now - self._told >= BETWEEN_LINES and (done < total or not total):
            self._told = now
            self._tell(done, total, now - self._began)

    def _tell(self, done: int, total: int, spent: float) -> None:
        share = f" of {total} ({100 * done / total:.0f} %)" if total else ""
        left = f", {duration(spent * (total - done) / done)} left" if 0 < done < total else ""
        say(f"{self.title}: {done}{share}{left}")

    def finish(self) -> None:
        """The last line, if there were others."""
        done, total = self._last
        if self._told > self._began and done:
            say(f"{self.title}: {done} of {total}, done in {duration(time.monotonic() - self._began)}")


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(12.3), duration(200), duration(9000)
    ('12 s', '3 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class _Bar(Steps):
    """A bar on a terminal."""

    def __init__(self, title: str, bars: Progress) -> None:
        super().__init__(title)
        self._bars, self._task = bars, bars.add_task(self.title, total=None)

    def __call__(self, done: int, total: int, title: str = "") -> None:
        self.title = shown(title) or self.title
        self._bars.update(self._task, completed=done, total=total, description=self.title)

    def finish(self) -> None:
        """The bar stays as it is."""


@contextmanager
def progress_bar(title: str) -> Iterator[Steps]:
    """Show progress, with a bar on a terminal, else in plain lines: gives a function of (done, total)."""
    if talk.quiet or not err.is_terminal:
        steps = Steps(title)
        yield steps
        steps.finish()
        return
    with bars() as shown:
        yield _Bar(title, shown)


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


def chosen_array(
    option: str | None,
    recording: str | Sequence[str] | None = None,
    shape: tuple[int, int] | None = None,
) -> MicArray:
    """The array of the option --array, else of TYTO_ARRAY, else of `tyto config array`; never a guess.

    recording: what it is for, to say in the refusal which built-in arrays might have recorded it.
    shape: its channels and sample rate (Hz), where no header says so.
    """
    from tytoalba.cli.settings import read_settings, settings_file
    from tytoalba.signal.array import load_array

    if option:
        return load_array(option)
    setting = {"TYTO_ARRAY": os.environ.get("TYTO_ARRAY"), str(settings_file()): read_settings().get("array")}
    for source, name in setting.items():
        if name:
            try:
                return load_array(name)
            except ArrayError as error:
                raise ArrayError(f"{source}: {error}") from error
    hint = _looks_like(recording, shape)
    raise ArrayError(
        f"which array?{hint} Name it with --array NAME (`tyto array list` shows them), or set it once: tyto "
        "config array NAME"
    )


def _looks_like(recording: str | Sequence[str] | None, shape: tuple[int, int] | None) -> str:
    """What a recording could be of: " talk.wav has 6 channels, 16 kHz: perhaps respeaker-usb-4."."""
    import soundfile

    from tytoalba.signal.array import builtin_arrays
    from tytoalba.signal.audio import recorded_channels

    files = [recording] if isinstance(recording, str) else list(recording or ())
    if shape is None:
        try:
            found = soundfile.info(files[0])
        except (IndexError, OSError, RuntimeError, TypeError):
            return ""
        shape = found.channels if len(files) == 1 else len(files), found.samplerate
    n, rate = shape
    arrays = [array for array in builtin_arrays().values() if array.sample_rate == rate]
    as_recorded = [array.name for array in arrays if recorded_channels(array) == n]
    names = as_recorded or [array.name for array in arrays if array.n_mics == n]
    perhaps = f"perhaps {' or '.join(names)}" if names else "no built-in array records that"
    return f" {files[0]} has {plural(n, 'channel')}, {rate / 1000:g} kHz: {perhaps}."


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
