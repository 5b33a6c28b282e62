"""Who talked when and where: tracks of frames as segments, a summary in words, RTTM, Audacity labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tytoalba.live.settings import HOP
from tytoalba.live.tracker import Track
from tytoalba.signal.angles import Float, distance, signed_difference, wrap

BRIDGE = 0.5
"""Seconds: a shorter pause does not end a segment."""
WALKED = 10.0
"""Degrees: who moved by less stands."""
NUMBERS = ("nobody", "one person", "two people", "three people", "four people", "five people", "six people")


@dataclass(frozen=True)
class Moment:
    """One frame: its middle in seconds, its level in dB of full scale, and who is there.

    scores: (360,), what the method says of each direction, as the array is mounted; None in silence.
    """

    time: float
    level: float
    tracks: tuple[Track, ...]
    scores: Float | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Segment:
    """Somebody talks for a while.

    Parameters
    ----------
    id : int
        Who: the number of the track.
    start, end : float
        Seconds.
    azimuth : float
        Degrees in [0, 360): the mean over the segment.
    first, last : float
        Degrees at the start and at the end; they differ where somebody walks.

    Examples
    --------
    >>> Segment(1, 0.5, 2.0, 10.0, 350.0, 30.0).moved
    40.0
    """

    id: int
    start: float
    end: float
    azimuth: float
    first: float
    last: float

    @property
    def moved(self) -> float:
        """Degrees to the left from start to end, in [-180, 180)."""
        return float(signed_difference(self.last, self.first))

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.end - self.start


def segments(moments: Iterable[Moment], hop: float = HOP) -> Iterator[Segment]:
    """Segments of tracks, each as soon as it has ended, so in the order of their ends.

    A segment begins when a talker was first heard, which is a little before he is sure to be one. hop:
    seconds between frames.
    """
    talking: dict[int, list[tuple[float, float]]] = {}  # time and azimuth of the open segments
    for moment in moments:
        for track in moment.tracks:
            if track.speaking:
                begun = talking.setdefault(track.id, [])
                if not begun and moment.time - track.since <= LATEST:
                    begun.append((track.since, track.azimuth))
                begun.append((moment.time, track.azimuth))
        for name in [n for n, open_ in talking.items() if moment.time - open_[-1][0] > BRIDGE]:
            yield _segment(name, talking.pop(name), hop)
    for name in sorted(talking, key=lambda n: talking[n][-1][0]):
        yield _segment(name, talking[name], hop)


LATEST = 1.5
"""Seconds: how long before its first report a talker may have begun."""


def _segment(name: int, heard: Sequence[tuple[float, float]], hop: float) -> Segment:
    times, angles = zip(*heard, strict=True)
    start, end = max(times[0] - hop / 2, 0.0), times[-1] + hop / 2
    return Segment(name, round(start, 3), round(end, 3), mean_azimuth(angles), angles[0], angles[-1])


def mean_azimuth(azimuth: Sequence[float], weight: Sequence[float] | None = None) -> float:
    """Circular mean of azimuths in degrees.

    >>> mean_azimuth([350.0, 20.0])
    5.0
    """
    angle = np.deg2rad(np.asarray(azimuth, np.float64))
    shares = np.ones(len(angle)) if weight is None else np.asarray(weight, np.float64)
    mean = np.rad2deg(np.arctan2(shares @ np.sin(angle), shares @ np.cos(angle)))
    return float(wrap(np.round(wrap(mean), 1)))


def in_words(found: Sequence[Segment], seconds: float) -> str:
    """Who was there, in one sentence. seconds: length of the recording.

    >>> in_words([Segment(1, 0.0, 7.1, 145.0, 145.0, 146.0), Segment(2, 7.0, 9.0, 30.0, 10.0, 50.0)], 10.0)
    'two people: 145 degrees for 71 % of the time, 10 to 50 degrees for 20 %'
    """
    parts = []
    for number, name in enumerate(dict.fromkeys(one.id for one in sorted(found, key=lambda one: one.start))):
        own = sorted((one for one in found if one.id == name), key=lambda one: one.start)
        share = 100 * sum(one.seconds for one in own) / max(seconds, 1e-9)
        of_the_time = " of the time" if not number else ""
        parts.append(f"{_where(own)} for {min(share, 100):.0f} %{of_the_time}")
    people = NUMBERS[len(parts)] if len(parts) < len(NUMBERS) else f"{len(parts)} people"
    return f"{people}: {', '.join(parts)}" if parts else people


def _where(own: Sequence[Segment]) -> str:
    places = [angle for one in own for angle in (one.first, one.azimuth, one.last)]
    middle = mean_azimuth([one.azimuth for one in own], [one.seconds for one in own])
    if max(float(distance(angle, middle)) for angle in places) <= WALKED:
        return f"{middle % 360:.0f} degrees"
    return f"{own[0].first:.0f} to {own[-1].last:.0f} degrees"


def place_in_words(one: Segment) -> str:
    """Degrees of a segment, or from where to where somebody walked.

    >>> place_in_words(Segment(1, 0.0, 1.0, 20.0, 0.0, 40.0))
    '0 to 40'
    """
    return f"{one.azimuth:.0f}" if abs(one.moved) <= WALKED else f"{one.first:.0f} to {one.last:.0f}"


def rttm_line(one: Segment, name: str) -> str:
    """A line of RTTM, which has who and when; it has no place for a direction.

    >>> rttm_line(Segment(2, 0.5, 2.0, 10.0, 10.0, 10.0), "my talk.wav")
    'SPEAKER my_talk 1 0.500 1.500 <NA> <NA> talker2 <NA> <NA>'
    """
    stem = name.rpartition("/")[2].partition(".")[0] or "audio"
    return (
        f"SPEAKER {'_'.join(stem.split())} 1 {one.start:.3f} {one.seconds:.3f} <NA> <NA> talker{one.id} "
        "<NA> <NA>"
    )


def label_line(one: Segment) -> str:
    r"""A line of an Audacity label track: start, end and text, with tabs.

    >>> label_line(Segment(2, 0.5, 2.0, 10.0, 10.0, 10.0))
    '0.500000\t2.000000\ttalker 2: 10 degrees'
    """
    return f"{one.start:.6f}\t{one.end:.6f}\ttalker {one.id}: {place_in_words(one)} degrees"
