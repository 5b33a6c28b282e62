"""The background learned by itself: from steady, quiet moments, and not from talk."""

from __future__ import annotations

import numpy as np

from tytoalba.live.quiet import ABOVE, MEMORY, OwnBackground
from tytoalba.live.settings import HOP
from tytoalba.signal.angles import encode

FAN, TALK = 0.6 * encode([80.0])[0], encode([200.0])[0]


def heard(frames: list[tuple[np.ndarray | None, float]], own: OwnBackground | None = None) -> OwnBackground:
    """What is known after frames: scores and level."""
    own = own or OwnBackground()
    start = own._last if np.isfinite(own._last) else 0.0
    for number, (scores, level) in enumerate(frames, 1):
        own.hear(scores, level, start + HOP * number)
    return own


def test_what_is_steady_and_quiet_is_learned() -> None:
    assert heard([(FAN, -40.0)] * 5).background.n_frames == 0  # not half a second yet
    known = heard([(FAN, -40.0), (FAN, -41.0), (FAN, -40.5)] * 2).background
    assert known.n_frames == 6
    assert np.allclose(known.mean, FAN)


def test_what_rises_and_falls_is_not() -> None:
    assert heard([(TALK, -30.0), (TALK, -22.0), (TALK, -35.0)] * 20).background.n_frames == 0


def test_talk_over_it_changes_nothing() -> None:
    own = heard([(FAN, -40.0)] * 10)
    own = heard([(TALK, -30.0), (TALK, -22.0)] * 10, own)
    own = heard([(TALK, -25.0)] * 10, own)  # steady, but loud: somebody sings
    assert own.background.n_frames == 10
    assert np.allclose(own.background.mean, FAN)


def test_when_it_gets_quieter_what_was_louder_counts_no_more() -> None:
    own = heard([(TALK, -25.0)] * 10)
    assert own.background.n_frames == 10
    own = heard([(FAN, -40.0)] * 6, own)
    assert own.background.n_frames == 6
    assert np.allclose(own.background.mean, FAN)


def test_a_room_that_got_louder_is_known_after_a_while() -> None:
    own = heard([(np.zeros(360), -60.0)] * 10)
    own = heard([(FAN, -40.0)] * 50, own)
    assert own.background.mean.max() == 0  # may be somebody who holds a tone
    own = heard([(FAN, -40.0)] * 350, own)
    assert np.allclose(own.background.mean, FAN)
    assert own.background.n_frames == MEMORY


def test_silence_is_no_quiet_room() -> None:
    own = heard([(None, -240.0)] * 10 + [(FAN, -40.0)] * 6)
    assert own.background.n_frames == 6


def test_a_frame_counts_once_and_the_last_ones_count() -> None:
    assert heard([(FAN, -40.0)] * 50).background.n_frames == 50
    own = heard([(FAN, -40.0)] * MEMORY + [(2 * FAN, -40.0 + ABOVE / 4)] * MEMORY)
    assert np.allclose(own.background.mean, 2 * FAN)


def test_directions_that_are_ruled_out_hold_nothing() -> None:
    half = np.where(np.arange(360) < 180, FAN, -np.inf)
    known = heard([(half, -40.0)] * 6).background
    assert np.isfinite(known.mean).all()
    assert np.isneginf(known.left(half)[180:]).all()
