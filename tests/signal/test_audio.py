"""Sound in memory: cut into frames, resampled and mixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.errors import AudioError
from tytoalba.signal.audio import Framer, frames, levels, mix, resample, rms, voiced


def noise(n_channels: int, n_samples: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (n_channels, n_samples)).astype(np.float32)


@settings(max_examples=100, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 300), max_size=8),
    n=st.integers(1, 300),
    frame_length=st.integers(1, 60),
    hop=st.integers(1, 90),
)
def test_streamed_frames_are_the_frames(cuts: list[int], n: int, frame_length: int, hop: int) -> None:
    whole = noise(2, n)
    blocks = np.split(whole, sorted(min(cut, n) for cut in cuts), axis=1)
    framer = Framer(frame_length, hop)
    batches = [framer.add(block) for block in blocks]
    if n < frame_length:
        with pytest.raises(AudioError, match=f"at least {frame_length} "):
            framer.refuse_short()
        return
    framer.refuse_short()
    assert np.array_equal(np.concatenate(batches), frames(whole, frame_length, hop))


def test_frames_are_windows_of_the_recording() -> None:
    samples = noise(4, 8192 + 4096 * 3 + 4095)
    view = frames(samples)
    assert view.shape == (4, 4, 8192)
    assert np.array_equal(view[2], samples[:, 8192 : 8192 + 8192])
    assert not view.flags.writeable
    assert np.shares_memory(view, samples)
    with pytest.raises(AudioError, match="at least 8192 are needed"):
        frames(samples[:, :8191])
    for bad in ({"hop": 0}, {"frame_length": 0}):
        with pytest.raises(AudioError, match="at least 1"):
            frames(samples, **bad)
    framer = Framer(8192, 4096)
    framer.add(samples)
    with pytest.raises(AudioError, match="2 channels, those before it 4"):
        framer.add(samples[:2])


@pytest.mark.parametrize(("from_rate", "to_rate"), [(48000, 16000), (16000, 48000), (44100, 16000)])
def test_resampling_keeps_frequency_and_delays(from_rate: int, to_rate: int) -> None:
    frequency, delay = 1000.0, 123e-6
    time = np.arange(from_rate) / from_rate
    sines = np.sin(2 * np.pi * frequency * (time - np.array([[0.0], [delay]]))) / 2
    got = resample(sines.astype(np.float32), from_rate, to_rate)
    assert got.dtype == np.float32
    assert got.shape == (2, to_rate)
    time = np.arange(to_rate) / to_rate
    expected = np.sin(2 * np.pi * frequency * (time - np.array([[0.0], [delay]]))) / 2
    inside = slice(to_rate // 10, -to_rate // 10)
    assert np.abs(got - expected)[:, inside].max() < 1e-4
    assert np.array_equal(resample(sines[0].astype(np.float32), from_rate, to_rate), got[0])


@settings(max_examples=50, deadline=None)
@given(
    snr_db=st.floats(-40, 40),
    shape=st.sampled_from([(50,), (2, 30), (3, 2, 10)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.floats(1e-3, 1e3),
)
def test_mix_has_the_snr(snr_db: float, shape: tuple[int, ...], dtype: Any, scale: float) -> None:
    rng = np.random.default_rng(0)
    signal, other = rng.normal(size=shape).astype(dtype), scale * rng.normal(size=shape)
    mixed = mix(signal, other, snr_db)
    assert mixed.dtype == dtype
    added = mixed.astype(np.float64) - signal
    assert 20 * np.log10(rms(signal, None) / rms(added, None)) == pytest.approx(snr_db, abs=1e-3)


@pytest.mark.parametrize(
    ("signal", "other", "snr_db", "why"),
    [
        (np.ones(4), np.ones(3), 0.0, "differ in shape"),
        (np.zeros(4), np.ones(4), 0.0, "signal is silent"),
        (np.ones(4), np.zeros(4), 0.0, "noise is silent"),
        (np.ones(4), np.full(4, np.nan), 0.0, "noise is not finite"),
        (np.ones(4), np.ones(4), np.nan, "finite decibels"),
        (np.ones(4), np.ones(4), np.inf, "finite decibels"),
        (np.ones(4, np.float32), np.ones(4), -900.0, "overflows float32"),
        (np.ones(0), np.ones(0), 0.0, "no samples"),
    ],
)
def test_mix_refuses(signal: Any, other: Any, snr_db: float, why: str) -> None:
    with pytest.raises(AudioError, match=why):
        mix(signal, other, snr_db)


# ---- levels in whole numbers


def test_levels_are_sums_of_whole_numbers() -> None:
    sound = np.random.default_rng(0).uniform(-2, 2, (5, 3, 700)).astype(np.float32)
    expected = (np.rint(sound.astype(np.float64) * 2**15) ** 2).sum(axis=(1, 2))
    assert levels(sound).tolist() == expected.astype(int).tolist()
    assert np.array_equal(levels(sound[:, ::-1, ::-1]), levels(sound))
    assert levels(np.full((1, 1, 10), 1e6)).tolist() == [10 * 2**36]  # cut at 8
    assert levels(np.empty((0, 3, 700))).shape == (0,)


def test_who_is_voiced_is_decided_in_whole_numbers() -> None:
    least = 1073742  # 1000 samples of 1/1000: 1073741.8
    assert voiced(np.array([least, least - 1]), 1000).tolist() == [True, False]
    level = np.arange(1, 101, dtype=np.int64) * 10**6
    assert voiced(level, 10).sum() == 95  # the frame nine tenths up has 90, and 16 times 6 are more
    assert voiced(np.array([16, 1, 16, 16]) * 10**6, 10).tolist() == [True, False, True, True]
    assert voiced(np.zeros(3, np.int64), 10).tolist() == [False] * 3
    assert voiced(np.empty(0, np.int64), 10).shape == (0,)
