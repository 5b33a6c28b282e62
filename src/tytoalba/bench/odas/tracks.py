"""What `odaslive` writes of its tracks, read within limits: it is somebody else's program."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from tytoalba.bench.odas.settings import MOST_TRACKS
from tytoalba.errors import TytoError

LONGEST = 4096
"""Characters of one report; those of eight tracks have a thousand."""


class OdasTrack(NamedTuple):
    """A track of one report: its number, azimuth in degrees [0, 360) and activity, 0 to 1."""

    id: int
    azimuth: float
    activity: float


class Report(NamedTuple):
    """Tracks after so many hops, counted from 1."""

    hop: int
    tracks: tuple[OdasTrack, ...]


def parse_tracks(text: str) -> list[Report]:
    """Reports in the order in which they were written; TytoError where the text is damaged.

    >>> parse_tracks('{"timeStamp": 3, "src": [{"id": 1, "x": 0.0, "y": 1.0, "z": 0.0, "activity": 1.0}]}')
    [Report(hop=3, tracks=(OdasTrack(id=1, azimuth=90.0, activity=1.0),))]
    """
    found: list[Report] = []
    for number, one in enumerate(_objects(text), 1):
        try:
            report = _report(one)
        except (KeyError, TypeError, ValueError, OverflowError) as why:
            raise TytoError(f"report {number} of ODAS is damaged: {type(why).__name__} {why}") from why
        if found and report.hop <= found[-1].hop:
            raise TytoError(f"report {number} of ODAS is of hop {report.hop}, after hop {found[-1].hop}")
        found.append(report)
    return found


def _objects(text: str) -> Iterator[Any]:
    """JSON objects, one after another."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    at, number = 0, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        number += 1
        piece = text[at : at + LONGEST]
        try:
            one, length = decoder.raw_decode(piece)
        except (ValueError, RecursionError) as why:
            raise TytoError(
                f"what ODAS wrote is damaged at report {number}, character {at}: {piece[:40]!r}; did it stop "
                "in the middle, or is the disk full?"
            ) from why
        yield one
        at += length


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _report(one: dict[str, Any]) -> Report:
    hop, sources = one["timeStamp"], one["src"]
    if not isinstance(hop, int) or isinstance(hop, bool) or hop < 0 or len(sources) > MOST_TRACKS:
        raise ValueError(f"timeStamp {hop!r} with {len(sources)} tracks")
    return Report(hop, tuple(_track(source) for source in sources if source["id"] != 0))


def _track(source: dict[str, Any]) -> OdasTrack:
    name = source["id"]
    x, y, activity = (float(source[key]) for key in ("x", "y", "activity"))
    if not isinstance(name, int) or name < 0 or not all(map(math.isfinite, (x, y, activity))):
        raise ValueError(f"track {name!r} at {x}, {y} with activity {activity}")
    return OdasTrack(name, math.degrees(math.atan2(y, x)) % 360.0, activity)
