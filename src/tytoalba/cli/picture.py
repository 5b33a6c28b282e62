"""One picture of who is where now, for a terminal of any size: compass, last seconds, table, health."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tytoalba.cli.canvas import COLOURS, PEOPLE, Canvas
from tytoalba.live.tracker import Track
from tytoalba.live.update import Update
from tytoalba.signal.angles import Float

SHOWN = 20.0
"""Seconds that the strip shows."""
NARROWEST, LOWEST = 56, 16
"""Columns and lines from which there is a compass; below, a table alone."""
WITH_SINCE = 36
"""Columns from which the table says since when."""
QUIETEST = -72.0
"""dB of full scale where the level meter begins."""
INSIDE = 0.6
"""Radius of the ring, as a share of that of the highest score."""
BACK, LEFT = 180.0, 90.0

Past = Sequence[tuple[float, Sequence[Track]]]
"""Times in seconds, and who was there."""


@dataclass(frozen=True)
class View:
    """What is to be seen.

    title: of what. past: the last seconds, also now. remark: the last thing that was said, if it is new.
    """

    title: str
    update: Update
    scores: Float | None = None
    past: Past = ()
    remark: str = ""


def picture(view: View, width: int, height: int) -> Canvas:
    """Draw it for a terminal of so many columns and lines."""
    canvas = Canvas(max(width, 1), max(height, 1))
    _head(canvas, view)
    if width < NARROWEST or height < LOWEST:
        n_below = 1 if height < 6 else 3
        _table(canvas, view.update.tracks, 0, 1, max(height - 1 - n_below, 0))
        _health(canvas, view, height - n_below)
        return canvas
    strip = 5 if height < 20 else 6 if height < 30 else 9
    compass = height - strip - 4
    across = _compass(canvas, view, 1, compass)
    _table(canvas, view.update.tracks, across + 2, 2, compass - 1)
    _strip(canvas, view, 1 + compass, strip)
    _health(canvas, view, height - 3)
    return canvas


def colour_of(track: Track) -> str:
    """The colour of a talker."""
    return PEOPLE[(track.id - 1) % len(PEOPLE)]


def clock(seconds: float) -> str:
    """Time as people read it.

    >>> clock(7.4), clock(754), clock(7540)
    ('0:07', '12:34', '2:05:40')
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def _head(canvas: Canvas, view: View) -> None:
    time = clock(max(view.update.time, 0.0))
    canvas.text(0, 0, view.title, COLOURS["bold"], canvas.width - len(time) - 1)
    canvas.text(canvas.width - len(time), 0, time)


def _compass(canvas: Canvas, view: View, top: int, height: int) -> int:
    """The circle seen from above: scores outside of a ring, talkers inside; the columns that it takes."""
    rows = height - 2
    columns = 2 * rows
    left, first = 4, top + 1
    outer = min(2 * columns, 4 * rows) / 2 - 0.5
    middle = 2 * left + columns - 0.5, 4 * first + 2 * rows - 0.5

    def place(azimuth: float, radius: float) -> tuple[float, float]:
        angle = math.radians(azimuth)
        return middle[0] - radius * math.sin(angle), middle[1] - radius * math.cos(angle)

    heights = _heights(view.scores)
    ring = INSIDE * outer
    for azimuth in np.arange(0.0, 360.0, min(2.0, math.degrees(0.85 / outer))).tolist():  # a dot beside a dot
        x, y = place(azimuth, ring)
        canvas.dot(round(x), round(y), COLOURS["dim"])
        for step in np.arange(ring + 1, ring + heights[int(azimuth)] * (outer - ring), 0.7):
            x, y = place(azimuth, float(step))
            canvas.dot(round(x), round(y), COLOURS["green"])
    for track in view.update.tracks:
        if track.speaking:
            for radius in np.arange(1.0, 0.35 * outer, 0.7):
                x, y = place(track.azimuth, float(radius))
                canvas.dot(round(x), round(y), colour_of(track))
        x, y = place(track.azimuth, 0.45 * outer)
        name = str(track.id)
        style = f"1;{colour_of(track)}" if track.speaking else f"2;{colour_of(track)}"
        canvas.text(round(x / 2 - len(name) / 2), int(y) // 4, name, style)
    centre = left + columns // 2
    canvas.text(centre - 1, top, "0", COLOURS["dim"])
    canvas.text(left - 3, first + rows // 2, "90", COLOURS["dim"])
    canvas.text(left + columns + 1, first + rows // 2, "270", COLOURS["dim"])
    canvas.text(centre - 2, top + height - 1, "180", COLOURS["dim"])
    return left + columns + 4


def _heights(scores: Float | None) -> Float:
    """Scores (360,) from 0 to 1; the highest of neighbours, so that no peak falls between two dots."""
    if scores is None:
        return np.zeros(360)
    finite = np.where(np.isfinite(scores), np.maximum(scores, 0.0), 0.0)
    finite = finite / max(float(finite.max()), 1.0)
    return np.asarray(np.max([np.roll(finite, by) for by in (-1, 0, 1)], axis=0))


def _table(canvas: Canvas, tracks: Sequence[Track], left: int, top: int, height: int) -> None:
    """Who is there: number, azimuth, probability, since when, whether speaking."""
    if height <= 0:
        return
    since = canvas.width - left >= WITH_SINCE
    heads = f"{'id':>3} {'azimuth':>8} {'prob.':>6}" + f" {'since':>7}" * since
    canvas.text(left, top, heads, COLOURS["dim"])
    room = height - 1
    named = list(tracks) if len(tracks) <= room else list(tracks)[: max(room - 1, 0)]
    for number, track in enumerate(named, 1):
        row = f"{track.id:>3} {round(track.azimuth) % 360:>8} {track.probability:>6.2f}"
        row += f" {clock(track.since):>7}" * since + "  speaks" * track.speaking
        style = colour_of(track) if track.speaking else f"2;{colour_of(track)}"
        canvas.text(left, top + number, row, style)
    if len(named) < len(tracks) and room > 0:
        canvas.text(left, top + len(named) + 1, f"    and {len(tracks) - len(named)} more")
    if not tracks and room > 0:
        canvas.text(left, top + 1, "    nobody", COLOURS["dim"])


def _strip(canvas: Canvas, view: View, top: int, height: int) -> None:
    """Azimuth over time: front in the middle, left above it, back at both edges."""
    rows = height - 1
    left = 4
    across, down = 2 * (canvas.width - left), 4 * rows
    for azimuth in (BACK, LEFT, 0.0, -LEFT, -BACK):
        y = _strip_row(azimuth, down)
        if rows >= 5 or azimuth in (BACK, 0.0, -BACK):
            canvas.text(0, top + y // 4, f"{azimuth % 360:>3.0f}", COLOURS["dim"])
    now = view.update.time
    for column in range(left, canvas.width, 4):
        canvas.dot(2 * column, 4 * top + _strip_row(0.0, down), COLOURS["dim"])
    for time, tracks in view.past:
        x = 2 * left + round((time - now + SHOWN) / SHOWN * (across - 1))
        if x < 2 * left:
            continue
        for track in tracks:
            if track.speaking:
                away = (track.azimuth + BACK) % 360 - BACK
                canvas.dot(x, 4 * top + _strip_row(away, down), colour_of(track))
    canvas.text(left, top + rows, f"-{SHOWN:.0f} s", COLOURS["dim"])
    canvas.text(canvas.width - 3, top + rows, "now", COLOURS["dim"])


def _strip_row(azimuth: float, down: int) -> int:
    """The row of dots of an azimuth from -180 to 180."""
    return round((BACK - azimuth) / 360 * (down - 1))


def _health(canvas: Canvas, view: View, top: int) -> None:
    """Level, losses and latency in one line; below it faults, or what was said last, as far as they fit."""
    update = view.update
    level = f"{update.level:4.0f} dB" if update.level > -120 else "no sound"
    share = min(max((update.level - QUIETEST) / -QUIETEST, 0.0), 1.0)
    meter = "█" * round(10 * share) + "·" * (10 - round(10 * share))
    late = "" if update.latency is None else f"  latency {1000 * update.latency:.0f} ms"
    lost = f"  lost {update.dropped}{late}"
    fits = len(f"level {level:>8} {meter}{lost}") <= canvas.width
    canvas.text(0, top, f"level {level:>8} {meter}{lost}" if fits else f"level {level.strip()}{lost}")
    room = canvas.height - top - 1
    texts = [f"! {fault.text}" for fault in update.faults]
    if len(texts) > room > 0:
        hidden = len(texts) - room
        texts = [*texts[: room - 1], f"{texts[room - 1]} (and {hidden} more)"]
    for row, text in enumerate(texts[:room], top + 1):
        canvas.text(0, row, text, COLOURS["red"])
    if not texts and room > 0:
        canvas.text(0, top + 1, view.remark or "Ctrl-C ends", COLOURS["dim"])
