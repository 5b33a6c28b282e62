"""Scores of tracks, on reports whose answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tytoalba.bench.track_scores import COLUMNS, Truth, linked, scored, summarised

NAN = float("nan")


def truth(azimuth: list[list[float]], talking: list[list[bool]]) -> Truth:
    return Truth(np.arange(len(azimuth)) * 0.1, np.array(azimuth), np.array(talking), 6.0)


def test_a_perfect_report_is_perfect() -> None:
    known = truth([[10.0, 200.0]] * 20, [[True, k >= 10] for k in range(20)])
    report = [[(1, 10.0)] if k < 10 else [(1, 10.0), (2, 200.0)] for k in range(20)]
    assert scored(known, report) == {
        "acc5": (30.0, 30.0),
        "right": (30.0, 30.0),
        "ghosts": (0.0, 0.1),
        "switches": (0.0, 0.1),
        "delay": (0.0, 2.0),
        "gospa": (0.0, 20.0),
    }


def test_each_fault_is_counted_where_it_belongs() -> None:
    known = truth([[10.0]] * 20, [[True]] * 20)
    late = scored(known, [[]] * 5 + [[(1, 10.0)]] * 15)
    assert late["delay"] == pytest.approx((0.5, 1.0))
    assert late["right"] == (15.0, 20.0)
    assert late["gospa"][0] == pytest.approx(5 * 10.0)  # half of the cutoff for each miss
    off = scored(known, [[(1, 18.0)]] * 20)
    assert (off["acc5"][0], off["right"][0]) == (0.0, 20.0)
    assert off["gospa"][0] == pytest.approx(20 * 8.0)
    ghost = scored(known, [[(1, 10.0), (2, 100.0)]] * 20)
    assert ghost["ghosts"][0] == 1.0
    assert ghost["gospa"][0] == pytest.approx(20 * 10.0)
    renamed = scored(known, [[(1, 10.0)]] * 10 + [[(2, 10.0)]] * 10)
    assert renamed["switches"][0] == 1.0
    never = scored(known, [[]] * 20)
    assert never["delay"] == (6.0, 1.0)


def test_a_track_at_somebody_silent_is_no_ghost_but_costs() -> None:
    known = truth([[10.0]] * 10, [[False]] * 10)
    there = scored(known, [[(1, 12.0)]] * 10)
    assert there["ghosts"][0] == 0.0
    assert there["gospa"][0] == pytest.approx(100.0)
    assert there["delay"] == (0.0, 0.0)  # he never talked


def test_two_that_swap_names_switch_twice() -> None:
    known = truth([[10.0, 90.0]] * 10, [[True, True]] * 10)
    report = [[(1, 10.0), (2, 90.0)]] * 5 + [[(2, 10.0), (1, 90.0)]] * 5
    assert scored(known, report)["switches"][0] == 2.0
    with_pause = scored(known, [*report[:3], [], [], *report[:5]])
    assert with_pause["switches"][0] == 0.0


def test_directions_are_linked_to_the_nearest_just_before() -> None:
    report = linked([[10.0, 100.0], [95.0, 12.0], [], [12.0], [355.0, 14.0]])
    assert report == [
        [(1, 10.0), (2, 100.0)],
        [(2, 95.0), (1, 12.0)],
        [],
        [(3, 12.0)],
        [(4, 355.0), (3, 14.0)],
    ]


def test_scenes_are_added_up_before_any_ratio() -> None:
    row = dict.fromkeys(COLUMNS, (1.0, 1.0))
    other = dict.fromkeys(COLUMNS, (0.0, 3.0))
    found = summarised([row, other])
    assert found["acc5"].value == 25.0  # %
    assert found["gospa"].value == 0.25
    assert found["gospa"].low == 0.0
    assert found["gospa"].high == 1.0


def test_frames_must_agree() -> None:
    with pytest.raises(ValueError, match="3 frames were reported and 10 are known"):
        scored(truth([[10.0]] * 10, [[True]] * 10), [[]] * 3)
