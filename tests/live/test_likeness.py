"""How alike channels are, of sound whose likeness is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.live.likeness import Alike, Likeness

RATE = 16000


def apart(n_channels: int, seconds: float = 1.0, seed: int = 0) -> NDArray[np.float32]:
    """Channels that share nothing."""
    n = round(seconds * RATE / 512) * 512
    return np.random.default_rng(seed).standard_normal((n_channels, n)).astype(np.float32) * np.float32(0.1)


def judged(sound: NDArray[np.float32], alive: tuple[int, ...] = ()) -> Alike:
    likeness = Likeness(RATE, len(sound))
    likeness.add(sound)
    return likeness.judge(alive or range(len(sound)))


@pytest.mark.parametrize("rate", [8000, 16000, 44100, 48000, 96000])
def test_a_moment_is_some_30_ms_at_any_rate(rate: int) -> None:
    assert 0.02 < Likeness(rate, 2).frame_length / rate < 0.05


@pytest.mark.parametrize("n_channels", [1, 2, 3, 8])
def test_channels_that_share_nothing_are_not_alike(n_channels: int) -> None:
    assert judged(apart(n_channels)) == Alike()


@given(gain=st.floats(0.05, 3).flatmap(lambda size: st.sampled_from([size, -size])), seed=st.integers(0, 99))
@settings(max_examples=10)
def test_a_copy_has_any_gain_and_sign(gain: float, seed: int) -> None:
    sound = apart(4, seed=seed)
    sound[3] = gain * sound[1]
    assert judged(sound).copies == ((1, 3),)


@given(weights=st.lists(st.floats(0.3, 1), min_size=3, max_size=3), seed=st.integers(0, 99))
@settings(max_examples=10)
def test_a_sum_of_any_weights_is_found_with_its_parts(weights: list[float], seed: int) -> None:
    sound = apart(5, seed=seed)
    sound[0] = np.array(weights, np.float32) @ sound[[1, 2, 4]]
    assert judged(sound) == Alike(sums=(0, 1, 2, 4))


@pytest.mark.parametrize(("share", "is_mixed"), [(0.75, True), (0.25, False)])
def test_a_mixture_is_found_if_it_is_mostly_shared(share: float, is_mixed: bool) -> None:
    sound = apart(4)
    sound[2] = share * sound[0] + (1 - share) * sound[2]
    assert judged(sound).mixed == (((0, 2),) if is_mixed else ())


def test_one_direction_is_no_mixture() -> None:
    sound = np.repeat(apart(1), 4, axis=0) + 0.1 * apart(4, seed=1)  # from above: no microphone is nearer
    assert judged(sound) == Alike()


def test_only_some_channels_may_be_compared() -> None:
    sound = apart(4)
    sound[1] = sound[0]
    sound[3] = 0.0
    assert judged(sound, (0, 1, 2)).copies == ((0, 1),)
    assert judged(sound, (1, 2)) == Alike()


def test_nothing_is_said_of_too_little_sound() -> None:
    sound = apart(2, 0.5)
    sound[1] = sound[0]
    assert judged(sound) == Alike()
    quiet = apart(2) * np.float32(1e-5)
    quiet[1] = quiet[0]
    assert judged(quiet) == Alike()


def test_what_was_heard_is_forgotten_after_two_seconds_of_sound() -> None:
    likeness, copied = Likeness(RATE, 2), apart(2)
    copied[1] = copied[0]
    likeness.add(copied)
    likeness.add(0 * copied)  # silence does not count
    assert likeness.judge((0, 1)).copies == ((0, 1),)
    likeness.add(apart(2, 2.1))
    assert likeness.judge((0, 1)) == Alike()
