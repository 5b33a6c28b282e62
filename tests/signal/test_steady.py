"""Steady noise from one place counts less: the same bits however the sound comes, and no harm elsewhere."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.fft
from numpy.typing import NDArray

from tests.helpers.waves import plane_wave
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import frames
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.music import Music
from tytoalba.signal.srp import SrpPhat
from tytoalba.signal.steady import FIRST, HISTORY, SteadyNoise, Weighed

ARRAY = load_array("respeaker-usb-4")
GCC = prior_gcc(ARRAY)
N = ARRAY.frame_length
FAN, TALKER = 200.0, 60.0


def cut(sound: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(frames(np.asarray(sound, np.float32), N, N // 2))


def fan(seconds: float, level: float = 0.1, seed: int = 0) -> NDArray[np.float32]:
    return plane_wave(ARRAY, FAN, seconds, seed, level=level)


@pytest.fixture(scope="module")
def scene() -> NDArray[np.float32]:
    """Two seconds of a fan, then tones of somebody beside it, then the fan alone: frames."""
    sound = fan(4.0)
    talk = np.zeros_like(sound)
    for k, band in enumerate(((300, 700), (900, 1400), (1800, 2600), (3000, 4200))):
        talk += plane_wave(ARRAY, TALKER, 4.0, k + 1, level=0.4, band=band)
    t = np.arange(sound.shape[1]) / 16000
    return cut(sound + talk * ((t > 2.0) & (t < 3.0)))


@pytest.fixture(scope="module")
def whole(scene: NDArray[np.float32]) -> Weighed:
    return SteadyNoise(GCC).add(scene)


def equal(one: Weighed, other: Weighed) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_fan_alone_is_no_speech_and_a_talker_beside_it_is(whole: Weighed) -> None:
    middle = (np.arange(len(whole.speech)) + 1) * (N // 2) / 16000
    assert whole.speech[:FIRST].all()  # nothing is known yet
    assert not whole.speech[(middle > 1.5) & (middle < 1.9)].any()
    assert whole.speech[(middle > 2.1) & (middle < 2.9)].all()
    assert not whole.speech[middle > 3.2].any()


def test_the_talker_is_found_where_the_fan_was(scene: NDArray[np.float32]) -> None:
    srp = SrpPhat(ARRAY)
    exact = GccPhat(srp.gcc.pairs, N, 16000, srp.gcc.max_lag, srp.gcc.bands, exact=True)
    weighed = SteadyNoise(exact).add(scene)
    speech = slice(26, 33)  # from 2.2 s on
    assert distance(srp(scene[speech]).argmax(axis=1), FAN).max() <= 5
    assert distance(srp.of_gcc(weighed.features[speech]).argmax(axis=1), TALKER).max() <= 5
    music = Music(ARRAY)
    assert distance(music(scene[speech], weighed.weights[speech]).argmax(axis=1), TALKER).max() <= 10
    assert np.allclose(music(scene[:3], np.ones_like(weighed.weights[:3])), music(scene[:3]))


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_any_size_give_the_same_bits(scene: NDArray[np.float32], whole: Weighed, seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.integers(0, len(scene) + 1, 6))
    steady = SteadyNoise(GCC)
    parts = [steady.add(part) for part in np.split(scene, edges)]
    joined = [np.concatenate(some) for some in zip(*parts, strict=True)]
    assert all(np.array_equal(one, other) for one, other in zip(joined, whole, strict=True))


def test_every_fft_gives_the_same_bits(
    scene: NDArray[np.float32], whole: Weighed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another FFT, and one that is wrong by more than any is."""
    exactly = scipy.fft.rfft

    def blurred(x: NDArray[np.float64], axis: int = -1) -> NDArray[np.complex128]:
        found = exactly(x, axis=axis)
        peak = np.abs(found).max(axis=-1, keepdims=True)
        wrong = 1e-13 * peak * np.random.default_rng(0).uniform(-1, 1, found.shape)
        return np.asarray(found + wrong)

    for other in (np.fft.rfft, blurred):
        monkeypatch.setattr(scipy.fft, "rfft", other)
        assert equal(SteadyNoise(GCC).add(scene[:36]), whole.only(slice(36)))


def test_only_the_past_counts(scene: NDArray[np.float32], whole: Weighed) -> None:
    other = scene.copy()
    other[20:] = other[20:][:, ::-1]
    assert equal(SteadyNoise(GCC).add(other[:20]), whole.only(slice(20)))


def test_where_noise_has_no_direction_nothing_changes() -> None:
    rng = np.random.default_rng(0)
    everywhere = cut(0.1 * rng.standard_normal((4, 48000)))
    weighed = SteadyNoise(GCC).add(everywhere)
    assert np.array_equal(weighed.features, np.asarray(GCC(everywhere), np.float32))
    assert weighed.speech.all()
    assert (weighed.weights == 1).all()


def test_memory_does_not_grow() -> None:
    steady = SteadyNoise(GCC.whole)
    sound = cut(0.1 * np.random.default_rng(0).standard_normal((4, (HISTORY + 40) * N // 2)))
    steady.add(sound[:5])
    early = len(pickle.dumps(steady))
    steady.add(sound)
    assert len(pickle.dumps(steady)) < early + 1000
    steady.clear()
    assert equal(steady.add(sound[:8]), SteadyNoise(GCC.whole).add(sound[:8]))


def test_silence_is_heard_without_a_floor() -> None:
    steady = SteadyNoise(GCC)
    silent = steady.add(np.zeros((20, 4, N), np.float32))
    assert not silent.features.any()
    assert silent.speech.all()
    assert equal(steady.add(np.zeros((0, 4, N), np.float32)), silent.only(np.zeros(20, np.bool_)))


def test_microphones_come_in_any_order(scene: NDArray[np.float32], whole: Weighed) -> None:
    mixed = scene[:24, [2, 0, 3, 1]]
    assert equal(SteadyNoise(GCC, (1, 3, 0, 2)).add(mixed), whole.only(slice(24)))


def test_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="exact features only"):
        SteadyNoise(GccPhat.for_array(ARRAY, N))
