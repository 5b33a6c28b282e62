"""What `odaslive` writes, tracks and potential sources: read within limits, it is somebody else's program."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

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


class Heard(NamedTuple):
    """Potential sources after so many hops: pairs (azimuth in degrees [0, 360), energy)."""

    hop: int
    sources: tuple[tuple[float, float], ...]


AnyReport = TypeVar("AnyReport", Report, Heard)


def parse_tracks(text: str) -> list[Report]:
    """Reports in the order in which they were written; TytoError where the text is damaged.

    >>> parse_tracks('{"timeStamp": 3, "src": [{"id": 1, "x": 0.0, "y": 1.0, "z": 0.0, "activity": 1.0}]}')
    [Report(hop=3, tracks=(OdasTrack(id=1, azimuth=90.0, activity=1.0),))]
    """
    return _parsed(text, _report)


def parse_potential(text: str) -> list[Heard]:
    """Potential sources, hop after hop; as `parse_tracks`.

    >>> parse_potential('{"timeStamp": 3, "src": [{"x": 0.0, "y": -1.0, "z": 0.0, "E": 0.4}]}')
    [Heard(hop=3, sources=((270.0, 0.4),))]
    """
    return _parsed(text, _heard)


def _parsed(text: str, report_of: Callable[[Any], AnyReport]) -> list[AnyReport]:
    found: list[AnyReport] = []
    for number, one in enumerate(_objects(text), 1):
        try:
            report = report_of(one)
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
    hop, sources = _checked(one)
    return Report(hop, tuple(_track(source) for source in sources if source["id"] != 0))


def _heard(one: dict[str, Any]) -> Heard:
    hop, sources = _checked(one)
    return Heard(hop, tuple(_placed(source, "E") for source in sources))


def _checked(one: dict[str, Any]) -> tuple[int, list[Any]]:
    hop, sources = one["timeStamp"], one["src"]
    if not isinstance(hop, int) or isinstance(hop, bool) or hop < 0 or len(sources) > MOST_TRACKS:
        raise ValueError(f"timeStamp {hop!r} with {len(sources)} sources")
    return hop, sources


def _track(source: dict[str, Any]) -> OdasTrack:
    name = source["id"]
    if not isinstance(name, int) or name < 0:
        raise ValueError(f"track {name!r}")
    return OdasTrack(name, *_placed(source, "activity"))


def _placed(source: dict[str, Any], key: str) -> tuple[float, float]:
    """Azimuth, and a number beside it."""
    x, y, value = (float(source[name]) for name in ("x", "y", key))
    if not all(map(math.isfinite, (x, y, value))):
        raise ValueError(f"a source at {x}, {y} with {key} {value}")
    return math.degrees(math.atan2(y, x)) % 360.0, value
