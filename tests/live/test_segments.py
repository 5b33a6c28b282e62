"""Segments: when they begin and end, where they are, in words and in the formats of others."""

from __future__ import annotations

import numpy as np
import pytest

from tytoalba.live.segments import (
    BRIDGE,
    Moment,
    Segment,
    in_words,
    label_line,
    mean_azimuth,
    place_in_words,
    rttm_line,
    segments,
)
from tytoalba.live.settings import HOP
from tytoalba.live.tracker import Track


def moments(talking: str, azimuth: float = 40.0, step: float = 0.0, since: float = 0.0) -> list[Moment]:
    """A talker who talks (x), is silent (.) or is not there (a space) in each frame."""
    found = []
    for number, what in enumerate(talking):
        there = Track(1, (azimuth + step * number) % 360, 0.9, since, what == "x")
        found.append(Moment(round(HOP * number, 4), -30.0, () if what == " " else (there,)))
    return found


def test_a_segment_is_as_long_as_somebody_talks() -> None:
    (one,) = segments(moments("   xxxxxxxxxx...........", since=HOP * 2))
    assert one.start == pytest.approx(HOP * 1.5, abs=1e-3)  # when he was first heard
    assert one.end == pytest.approx(HOP * 12.5, abs=1e-3)
    assert (one.id, one.azimuth, one.moved) == (1, 40.0, 0.0)


def test_short_pauses_are_bridged_and_long_ones_not() -> None:
    short, long = round(BRIDGE / HOP) - 1, round(BRIDGE / HOP) + 2
    assert len(list(segments(moments("xxxx" + "." * short + "xxxx")))) == 1
    assert len(list(segments(moments("xxxx" + "." * long + "xxxx")))) == 2
    first, second = segments(moments("xxxx" + "." * 60 + "xxxx"))
    assert first.end < second.start
    assert second.start == pytest.approx(HOP * 63.5, abs=1e-3)  # not when he was first heard


def test_segments_come_as_soon_as_they_end() -> None:
    waiting = iter(moments("xxxx" + "." * 60 + "xxxx"))
    next(segments(waiting))
    assert len(list(waiting)) > 40


def test_who_walks_has_a_start_and_an_end() -> None:
    (one,) = segments(moments("x" * 30, azimuth=350.0, step=2.0))
    assert one.first == 350.0
    assert one.last == 48.0
    assert one.moved == 58.0
    assert one.azimuth == pytest.approx(19.0, abs=1.5)
    assert place_in_words(one) == "350 to 48"


def test_the_summary_says_who_where_and_how_long() -> None:
    assert in_words([], 10.0) == "nobody"
    found = [Segment(7, 0.0, 2.0, 359.0, 359.0, 1.0), Segment(7, 5.0, 6.0, 2.0, 1.0, 2.0)]
    assert in_words(found, 10.0) == "one person: 0 degrees for 30 % of the time"
    many = [Segment(k, k, k + 1, 40.0 * k, 40.0 * k, 40.0 * k) for k in range(8)]
    assert in_words(many, 8.0).startswith("8 people: 0 degrees for 12 % of the time, 40 degrees for 12 %")


def test_azimuths_are_averaged_around_the_circle() -> None:
    assert mean_azimuth([359.96, 0.0]) == 0.0
    assert mean_azimuth([350.0, 30.0], [3.0, 1.0]) == pytest.approx(359.6, abs=0.5)
    assert not np.isnan(mean_azimuth([0.0, 180.0]))


def test_other_programs_get_their_lines() -> None:
    one = Segment(3, 1.0, 2.5, 10.0, 350.0, 30.0)
    assert rttm_line(one, "/talks/my long talk.wav.age").split() == [
        "SPEAKER", "my_long_talk", "1", "1.000", "1.500", "<NA>", "<NA>", "talker3", "<NA>", "<NA>",
    ]  # fmt: skip
    assert rttm_line(one, "-").split()[1] == "-"
    assert label_line(one).split("\t") == ["1.000000", "2.500000", "talker 3: 350 to 30 degrees"]
