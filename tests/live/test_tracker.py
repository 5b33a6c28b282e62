"""Talkers followed over time: birth, identity, pauses, crossings, ghosts, death, and only the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.errors import TytoError
from tytoalba.live.background import Background
from tytoalba.live.settings import HOP, Settings
from tytoalba.live.tracker import AUTO, Track, Tracker
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import distance, encode, wrap

Frame = np.ndarray


def maps(*paths: Sequence[float], noise: float = 0.05, seed: int = 0) -> list[Frame]:
    """Scores of talkers who are at some degrees in each frame, NaN while they are silent."""
    places = np.array(paths, float).T  # (n_frames, n_talkers)
    rng = np.random.default_rng(seed)
    return [row + noise * rng.random(360) for row in encode(wrap(places))]


def followed(frames: Sequence[Frame | Located | None], tracker: Tracker | None = None) -> list[list[Track]]:
    tracker = tracker or Tracker()
    return [tracker.update(frame, HOP * number) for number, frame in enumerate(frames)]


def names(tracks: Sequence[Track]) -> list[int]:
    return [one.id for one in tracks if one.speaking]


def test_one_who_stands_is_found_soon_and_kept() -> None:
    seen = followed(maps([123.0] * 40))
    first = next(n for n, tracks in enumerate(seen) if tracks)
    assert 2 <= first <= 5  # one frame makes no talker, half a second is enough
    for tracks in seen[first:]:
        assert names(tracks) == [1]
        assert distance(tracks[0].azimuth, 123.0) < 1.5
        assert tracks[0].since == 0.0
    assert seen[-1][0].probability > 0.99


def test_one_who_walks_round_the_array_keeps_its_number() -> None:
    path = [350 + 40 * HOP * n for n in range(100)]
    seen = followed(maps(path))[8:]
    assert all(names(tracks) == [1] for tracks in seen)
    late = [float(distance(tracks[0].azimuth, at)) for tracks, at in zip(seen, path[8:], strict=True)]
    assert max(late[10:]) < 5


def test_a_pause_is_survived_and_the_number_kept() -> None:
    path = [60.0] * 30 + [np.nan] * 30 + [60.0] * 20  # 2.6 seconds of silence
    seen = followed(maps(path))
    assert names(seen[29]) == [1]
    assert names(seen[50]) == []  # he is there, and silent
    assert [one.id for one in seen[50]] == [1]
    assert names(seen[-1]) == [1]


def test_a_pause_without_any_sound_is_survived_too() -> None:
    frames = [*maps([60.0] * 30), *[None] * 30, *maps([66.0] * 20)]
    seen = followed(frames)
    assert names(seen[33]) == []
    assert [one.id for one in seen[50]] == [1]
    assert names(seen[-1]) == [1]
    assert distance(seen[-1][0].azimuth, 66.0) < 2


def test_who_is_silent_for_long_is_gone_and_somebody_else_is_new() -> None:
    silence = [None] * round(40 / HOP)
    seen = followed([*maps([60.0] * 30), *silence, *maps([240.0] * 20)])
    assert seen[29]
    assert not seen[30 + round(15 / HOP)]  # not reported
    assert [one.id for one in seen[-1]] == [2]
    again = followed([*maps([60.0] * 30), *silence, *maps([60.0] * 20)])
    assert [one.id for one in again[-1]] == [2]  # forgotten for good


@pytest.mark.parametrize("height", [1.0, 50.0])
@pytest.mark.parametrize("n_frames", [1, 2])
def test_a_click_however_loud_makes_no_track(height: float, n_frames: int) -> None:
    quiet = maps([np.nan] * 60)
    quiet[20 : 20 + n_frames] = [height * encode([200.0])[0].astype(float)] * n_frames  # frames overlap
    assert not any(followed(quiet))


def test_noise_makes_no_track() -> None:
    rng = np.random.default_rng(1)
    assert not any(followed([rng.random(360) for _ in range(150)]))


def test_two_are_told_apart() -> None:
    seen = followed(maps([100.0] * 40, [140.0] * 40))
    assert names(seen[-1]) == [1, 2]
    assert sorted(round(one.azimuth, -1) for one in seen[-1]) == [100, 140]


def test_two_that_cross_keep_their_numbers() -> None:
    n = 80
    left, right = [60 + 25 * HOP * k for k in range(n)], [180 - 25 * HOP * k for k in range(n)]
    seen = followed(maps(left, right))
    early, late = ({one.id: one.azimuth for one in seen[k]} for k in (20, n - 1))
    assert set(early) == set(late) == {1, 2}
    for name in early:
        walker = left if distance(early[name], left[20]) < 10 else right
        assert distance(late[name], walker[-1]) < 8


def test_two_that_come_to_share_a_place_become_one() -> None:
    first, second = [100.0] * 120, [max(160 - 20 * HOP * k, 103.0) for k in range(120)]
    seen = followed(maps(first, second))
    assert [one.id for one in seen[25]] == [1, 2]
    assert [one.id for one in seen[-1]] == [1]  # the older


@given(st.integers(0, 359), st.integers(0, 2**16))
@settings(max_examples=5)
def test_turning_all_maps_turns_all_tracks(turn: int, seed: int) -> None:
    n = 40
    frames = maps([30 + 2.0 * k for k in range(n)], [250.0] * 20 + [np.nan] * 20, noise=0.3, seed=seed)
    straight = followed(frames)
    turned = followed([np.roll(one, turn) for one in frames])
    for before, after in zip(straight, turned, strict=True):
        assert [(o.id, o.since, o.speaking) for o in before] == [(o.id, o.since, o.speaking) for o in after]
        for one, other in zip(before, after, strict=True):
            assert distance(one.azimuth + turn, other.azimuth) < 0.02
            assert one.probability == pytest.approx(other.probability, abs=1e-3)


@given(st.integers(1, 39), st.integers(0, 2**16))
@settings(max_examples=5)
def test_what_comes_later_never_changes_what_was_said(cut: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames = maps([30 + 2.0 * k for k in range(40)], noise=0.3, seed=seed)
    others = [None if rng.random() < 0.3 else rng.random(360) for _ in range(40)]
    assert followed([*frames[:cut], *others[cut:]])[:cut] == followed(frames)[:cut]


def test_a_fan_is_left_out_once_it_is_known() -> None:
    fan = 0.8 * encode([80.0])[0]
    frames = [np.maximum(one, fan) for one in maps([np.nan] * 25 + [200.0] * 30)]
    heard = followed(frames)
    assert any(distance(one.azimuth, 80.0) < 5 for tracks in heard for one in tracks)  # a ghost, without
    learned = followed(frames, Tracker(background=20 * HOP))
    assert not any(learned[:25])
    assert [round(one.azimuth, -1) for one in learned[-1]] == [200]
    given_ = followed(frames, Tracker(background=Background.learned(frames[:20])))
    assert [one.id for one in given_[-1]] == [1]
    assert round(given_[-1][0].azimuth, -1) == 200


def test_a_fan_is_left_out_by_itself_and_a_talker_is_not() -> None:
    rng = np.random.default_rng(0)
    fan = 0.8 * encode([80.0])[0]
    frames = [np.maximum(one, fan) for one in maps([np.nan] * 25 + [200.0] * 30)]
    levels = [*(-40 + rng.random(25)), *(-28 + 8 * rng.random(30))]
    tracker = Tracker(background=AUTO)
    seen = [tracker.update(*one) for one in zip(frames, HOP * np.arange(55), levels, strict=True)]
    assert not any(one.speaking for tracks in seen[20:25] for one in tracks)
    assert [round(one.azimuth, -1) for one in seen[-1] if one.speaking] == [200]
    assert not any(distance(one.azimuth, 80.0) < 5 and one.speaking for one in seen[-1])


def test_what_was_located_can_be_followed() -> None:
    found = [Located(HOP * k, (40.0, 200.0), (1.0, 0.7), (0.95, 0.8)) for k in range(20)]
    seen = followed(found)
    assert sorted(round(one.azimuth) for one in seen[-1]) == [40, 200]
    assert not followed([Located(HOP * k, (40.0,), (1.0,), (0.05,)) for k in range(20)])[-1]


def test_frames_may_be_missing() -> None:
    tracker = Tracker()
    for number in range(20):
        tracker.update(maps([50.0])[0], HOP * number)
    assert [one.id for one in tracker.update(maps([52.0])[0], HOP * 30)] == [1]
    assert not tracker.update(None, 1000.0)


@pytest.mark.parametrize("time", [1.0, 0.5, np.nan, np.inf])
def test_time_must_rise(time: float) -> None:
    tracker = Tracker()
    tracker.update(None, 1.0)
    with pytest.raises(TytoError, match="time must rise"):
        tracker.update(None, time)


def test_a_background_needs_maps() -> None:
    with pytest.raises(TytoError, match="maps, not a Located"):
        Tracker(background=1.0).update(Located(0.1, (40.0,), (1.0,)), 0.1)
    with pytest.raises(TytoError, match="seconds above 0"):
        Tracker(background=-1.0)
    with pytest.raises(TytoError, match='must be "auto", seconds'):
        Tracker(background="fan")
    with pytest.raises(TytoError, match="needs the level"):
        Tracker(background=AUTO).update(None, 0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"drift": 0.0},
        {"even": 1.0},
        {"shown": 2},
        {"memory": np.inf},
        {"lead": -0.1},
        {"most": 1.0},
        {"kept": 0.9},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TytoError, match=next(iter(wrong))):
        Settings(**wrong)
