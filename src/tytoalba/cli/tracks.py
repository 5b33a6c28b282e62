"""What `tyto locate --tracks` prints: segments, a summary in words, and formats of other programs."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tytoalba.cli.console import csv_line, say
from tytoalba.errors import TytoError
from tytoalba.texts.printing import shown

if TYPE_CHECKING:
    from tytoalba.live.segments import Moment, Segment

CSV_HEAD = ("start", "end", "azimuth", "id", "first", "last")


def print_tracks(
    recordings: Iterable[tuple[str, Any]],
    follow: Callable[[Any], Iterator[Moment]],
    form: str,
    target: TextIO,
    *,
    several: bool,
) -> None:
    """Follow each recording (its name, its sound), print as it goes, and say who was there."""
    from tytoalba.live.segments import in_words, segments

    end = 0.0  # of a recording, in seconds

    def passing(moments: Iterable[Moment], name: str) -> Iterator[Moment]:
        nonlocal end
        for moment in moments:
            end = moment.time
            if form == "json":
                print(json_line(moment, name), file=target, flush=True)
            yield moment

    if form == "csv":
        print(csv_line([*["file"] * several, *CSV_HEAD]), file=target, flush=True)
    for unsafe, sound in recordings:
        name = shown(unsafe)
        kept: list[Segment] = []
        if form == "table":
            print(
                *[name] * several,
                _row("start (s)", "end (s)", "azimuth (degrees)", "id"),
                sep="\n",
                file=target,
            )
        for one in segments(passing(follow(sound), name if several else "")):
            kept.append(one)
            if form != "json":
                print(segment_line(one, form, name, several), file=target, flush=True)
        say(f"{name}: {in_words(kept, end)}")


def json_line(moment: Moment, name: str = "") -> str:
    """One frame as JSON, as `tyto listen` prints it; with a file where there are several."""
    from tytoalba.live.update import Update

    row = Update.of(moment).plain
    return json_text.dumps({"file": name, **row} if name else row, allow_nan=False)


def segment_line(one: Segment, form: str, name: str, several: bool) -> str:
    """One segment in a format of `--tracks`."""
    from tytoalba.live.segments import label_line, place_in_words, rttm_line

    if form == "csv":
        values = (one.start, one.end, one.azimuth, one.id, one.first, one.last)
        return csv_line([*[name] * several, *values])
    if form == "rttm":
        return rttm_line(one, name)
    if form == "labels":
        return label_line(one)
    return _row(f"{one.start:.2f}", f"{one.end:.2f}", place_in_words(one), str(one.id))


def _row(start: str, end: str, azimuth: str, name: str) -> str:
    return f"{start:>9}  {end:>8}  {azimuth:<17}  {name}"


def background_of(text: str | None) -> float | str | None:
    """Seconds, "auto", or a recording that is there."""
    from tytoalba.live.tracker import AUTO

    if text is None or text == AUTO:
        return text
    try:
        seconds = float(text)
    except ValueError:
        if not Path(text).is_file():
            raise TytoError(
                f"--background takes seconds at the start of the recording, such as 2, or {AUTO}, or a "
                f"recording; there is no file {text}"
            ) from None
        return text
    if not 0 < seconds < float("inf"):
        raise TytoError(f"--background takes seconds above 0, got {text}")
    return seconds
