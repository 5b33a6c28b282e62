"""GCC-PHAT: its definition, its sign, silence and damage, and its indifference to neighbours and level."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tytoalba.errors import AudioError
from tytoalba.signal.array import MicArray, builtin_arrays, load_array
from tytoalba.signal.gcc import (
    FULL_BAND,
    SPEECH_BAND,
    Band,
    GccPhat,
    gcc_phat,
    min_max,
    whole_transforms,
)
from tytoalba.signal.phases import PHASE_BITS

ARRAYS = builtin_arrays()
PEPPER = ARRAYS["pepper"]
PAIR = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), sample_rate=16000)


def noise(n_frames: int, n_mics: int, n_samples: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    """Noise with a part that all microphones share, a few samples apart."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_frames, n_samples + 8 * n_mics))
    shifted = [common[:, 5 * m : 5 * m + n_samples] for m in range(n_mics)]
    own = rng.standard_normal((n_frames, n_mics, n_samples))
    return (np.stack(shifted, axis=1) + 0.5 * own).astype(dtype)


def by_definition(frames: NDArray[Any], gcc: GccPhat, band: Band) -> NDArray[np.float64]:
    """gcc(l) = sum_k w_k Re(C_k exp(2 pi i k l / n)) / sum_k w_k, each sum written out, in float64."""
    n = gcc.n_samples
    window = np.array([0.54 - 0.46 * math.cos(2 * math.pi * t / n) for t in range(n)])
    bins = [k for k in range(n // 2 + 1) if band[0] <= k * gcc.sample_rate / n <= band[1]]
    weights = np.array([1.0 if k == 0 or 2 * k == n else 2.0 for k in bins])
    fourier = np.exp(-2j * np.pi * np.outer(bins, np.arange(n)) / n)
    lags = np.arange(-gcc.max_lag, gcc.max_lag + 1)
    steer = np.exp(2j * np.pi * np.outer(bins, lags) / n)
    result = np.zeros((len(frames), len(gcc.pairs), len(lags)))
    for t, frame in enumerate(frames.astype(np.float64)):
        for p, (i, j) in enumerate(gcc.pairs):
            cross = np.conj(fourier @ (frame[i] * window)) * (fourier @ (frame[j] * window))
            C = cross / np.abs(cross)
            result[t, p] = (weights[:, None] * np.real(C[:, None] * steer)).sum(axis=0) / weights.sum()
    return result


# -------------------------------------------------------------------------------------- the definition

BANDS: list[Band] = [
    FULL_BAND,
    SPEECH_BAND,
    (0.0, 3000.0),  # with 0 Hz
    (2000.0, math.inf),  # with Nyquist
    (2000.0, 5000.0),  # with neither
]


@pytest.mark.parametrize("n_samples", [96, 97])
@pytest.mark.parametrize("array", [*ARRAYS.values(), PAIR], ids=[*ARRAYS, "pair"])
def test_gcc_is_its_definition(array: MicArray, n_samples: int) -> None:
    sound = noise(2, array.n_mics, n_samples, np.float32)
    listed = GccPhat.for_array(array, n_samples, BANDS)
    singles = [GccPhat.for_array(array, n_samples, band) for band in BANDS]
    expected = np.stack([by_definition(sound, listed, band) for band in BANDS], axis=1)
    assert expected.shape == (2, len(BANDS), array.n_pairs, 2 * array.max_lag + 1)
    assert listed.n_features == expected[0].size
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-11)):
        frames: NDArray[Any] = sound.astype(dtype)
        together, alone = listed(frames), np.stack([single(frames) for single in singles], axis=1)
        assert together.dtype == alone.dtype == dtype
        np.testing.assert_allclose(together, expected, rtol=0, atol=tolerance)
        np.testing.assert_allclose(alone, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("n_samples", [128, 129, 8192])
def test_full_band_is_the_inverse_fft(n_samples: int) -> None:
    frames = noise(2, 4, n_samples)
    gcc = GccPhat.for_array(PEPPER, n_samples)
    window = np.hamming(n_samples + 1)[:-1]  # periodic
    X = np.fft.rfft(frames * window)
    for p, (i, j) in enumerate(PEPPER.pairs):
        C = np.conj(X[:, i]) * X[:, j]
        whole = np.fft.irfft(C / np.abs(C), n_samples)
        expected = whole[:, np.arange(-25, 26) % n_samples]
        np.testing.assert_allclose(gcc(frames)[:, p], expected, rtol=0, atol=1e-12)


def test_band_edges_are_inclusive() -> None:
    width = 16000 / 128
    for low, high in ((3, 3.5), (2.5, 3), (3 - 1e-12, 3 + 1e-12)):
        gcc = GccPhat.for_array(PAIR, 128, (low * width, high * width), max_lag=4)
        assert gcc.bins == ((3, 4),)
    assert GccPhat.for_array(PAIR, 128, (0.0, 8000.0)).bins == ((0, 65),)
    assert GccPhat.for_array(PAIR, 128, (100.0, 7999.0)).bins == ((1, 64),)
    assert GccPhat.for_array(PAIR, 129, (0.0, 8000.0)).bins == ((0, 65),)


def test_a_band_of_one_bin_is_a_cosine() -> None:
    width = 16000 / 128
    gcc = GccPhat.for_array(PAIR, 128, (10 * width, 10 * width + 1), max_lag=20)
    values = gcc(noise(1, 2, 128))[0, 0]
    lags = np.arange(-20, 21)
    basis = np.stack([np.cos(2 * np.pi * 10 * lags / 128), np.sin(2 * np.pi * 10 * lags / 128)], axis=1)
    (a, b), *_ = np.linalg.lstsq(basis, values, rcond=None)
    np.testing.assert_allclose(values, basis @ [a, b], atol=1e-12)
    assert math.hypot(a, b) == pytest.approx(1.0)


def test_a_list_of_bands_has_an_axis_and_a_single_band_has_none() -> None:
    frames = noise(3, 4, 256)
    single = gcc_phat(frames, PEPPER, (100.0, 8000.0))
    listed = gcc_phat(frames, PEPPER, [(100.0, 8000.0)])
    assert single.shape == (3, 6, 51)
    assert listed.shape == (3, 1, 6, 51)
    assert np.array_equal(listed[:, 0], single)
    arrays: Any = np.array([100.0, 8000.0])
    assert np.array_equal(gcc_phat(frames, PEPPER, arrays), single)
    overlapping = gcc_phat(frames, PEPPER, [(100.0, 8000.0), (100.0, 8000.0), (4000.0, 12000.0)])
    np.testing.assert_allclose(overlapping[:, 1], single, atol=1e-13)
    np.testing.assert_allclose(overlapping[:, 2], gcc_phat(frames, PEPPER, (4000.0, 12000.0)), atol=1e-13)


# -------------------------------------------------------------------------------------- sign and bounds


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positive_lag_means_that_i_hears_it_first(dtype: Any) -> None:
    sound = np.random.default_rng(0).standard_normal(2048 + 64)
    delays = np.arange(-25, 26)
    # microphone 0 hears sample 32 + t at time t, microphone 1 hears it d samples later
    frames = np.stack([np.stack([sound[32:2080], sound[32 - d : 2080 - d]]) for d in delays]).astype(dtype)
    values = GccPhat(((0, 1),), 2048, 16000, 25)(frames)[:, 0]
    assert (values.argmax(axis=1) - 25).tolist() == delays.tolist()
    assert values.max(axis=1).min() > 0.8


def test_the_two_orders_of_a_pair_mirror_each_other() -> None:
    frames = noise(2, 3, 200)
    there, back = (
        GccPhat(pairs, 200, 16000, 20, (500.0, 6000.0))(frames) for pairs in (((0, 2),), ((2, 0),))
    )
    np.testing.assert_allclose(there, back[..., ::-1], atol=1e-14)


@pytest.mark.parametrize("bands", [FULL_BAND, SPEECH_BAND])
def test_identical_channels_peak_at_one_and_nothing_exceeds_it(bands: Band) -> None:
    frames = np.repeat(noise(3, 1, 512), 2, axis=1)
    values = GccPhat(((0, 1),), 512, 48000, 40, bands)(frames)[:, 0]
    np.testing.assert_allclose(values[:, 40], 1.0, atol=1e-12)
    assert np.abs(values).max() <= 1 + 1e-12
    assert np.abs(gcc_phat(noise(5, 4, 512), PEPPER, bands)).max() <= 1 + 1e-12


# ----------------------------------------------------------------------------------- silence and damage


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_silence_gives_zeros_and_leaves_others_alone(dtype: Any) -> None:
    frames = (1000 * noise(4, 4, 256)).astype(dtype)
    gcc = GccPhat.for_array(PEPPER, 256, [FULL_BAND, SPEECH_BAND])
    before = gcc(frames)
    frames[1] = 0  # a silent frame
    frames[2, 3] = 0  # a dead microphone
    after = gcc(frames)
    assert not after[1].any()
    dead = [3 in pair for pair in PEPPER.pairs]
    assert not after[2][:, dead].any()
    alive = [not touched for touched in dead]
    assert after[2][:, alive].tobytes() == before[2][:, alive].tobytes()
    assert after[[0, 3]].tobytes() == before[[0, 3]].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_without_energy_count_zero(dtype: Any) -> None:
    window = (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(128) / 128)).astype(dtype)
    frames = np.zeros((1, 2, 128), dtype)
    frames[0, :, 0] = 12.5
    frames[0, :, 64] = 12.5 * window[0] / window[64]  # after the window two equal clicks half a frame apart
    spectrum = np.fft.rfft(frames * window)
    assert not spectrum[..., 1::2].any()
    assert spectrum[..., ::2].all()
    # the odd half of the bins is empty and counts 0, the even half agrees at lag 0
    values = GccPhat(((0, 1),), 128, 16000, 10)(frames)[0, 0]
    np.testing.assert_allclose(values, 0.5 * np.eye(21)[10], atol=1e-7)


@pytest.mark.parametrize("level", [1e-45, 1e-40, 1e-30, 1e-20])
def test_the_quietest_sound_is_finite(level: float) -> None:
    quiet = (noise(2, 4, 256) * level).astype(np.float32)
    assert np.isfinite(gcc_phat(quiet, PEPPER)).all()
    assert np.isfinite(gcc_phat(quiet.astype(np.float64), PEPPER)).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bands", [FULL_BAND, SPEECH_BAND, [(100.0, 500.0), (1000.0, 2000.0)]])
@pytest.mark.parametrize("parts", [1, 4])
def test_damaged_frame_is_refused(value: float, dtype: Any, bands: Any, parts: int) -> None:
    gcc = GccPhat.for_array(PEPPER, 600, bands, parts=parts)
    places: list[Any] = [(9, 2, 5), (9, 2, 300), (9, 2, 599), 9]
    for place in places:
        frames = noise(12, 4, 600, dtype)
        frames[place] = value
        kinds: list[Any] = [frames, torch.from_numpy(frames)]
        for damaged in kinds:
            with pytest.raises(AudioError, match="NaN or infinite"):
                gcc(damaged)


# -------------------------------------------------------------------------- neither neighbours nor level

SEVERAL: tuple[Band, ...] = ((100.0, 2000.0), (2000.0, math.inf))
LOOKS = [FULL_BAND, SPEECH_BAND, (SPEECH_BAND,), SEVERAL]
INDEPENDENT = [
    (name, bands, 1)
    for name in ("pair", "pepper", "respeaker-6mic", "minidsp-uma8", "matrix-voice")  # 2, 4, 6, 7, 8
    for bands in (FULL_BAND, ((100.0, 4000.0), (300.0, 7000.0)))
]


@pytest.mark.parametrize(("name", "bands", "parts"), [*INDEPENDENT, *(("pepper", b, 4) for b in LOOKS)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_frame_does_not_know_its_batch_to_the_bit(
    name: str, bands: Any, parts: int, dtype: Any, data: st.DataObject
) -> None:
    array = ARRAYS.get(name, PAIR)
    n_frames, n_samples = 19, data.draw(st.sampled_from([240, 375, 512, 600]))
    gcc = GccPhat.for_array(array, n_samples, bands, parts=parts)
    frames = noise(n_frames, array.n_mics, n_samples, dtype)
    together = gcc(frames)
    cuts = sorted(data.draw(st.sets(st.integers(1, n_frames - 1), max_size=8)))
    assert np.concatenate([gcc(part) for part in np.split(frames, cuts)]).tobytes() == together.tobytes()
    assert gcc(np.asfortranarray(frames)).tobytes() == together.tobytes()
    chosen = data.draw(st.permutations(range(n_frames)))[: data.draw(st.integers(1, n_frames))]
    assert gcc(frames[chosen]).tobytes() == together[chosen].tobytes()


def test_long_frames_do_not_know_their_batch_to_the_bit() -> None:
    frames = noise(11, 4, 8192, np.float32)
    gcc = GccPhat.for_array(PEPPER, 8192, SPEECH_BAND)
    together = gcc(frames)
    assert np.concatenate([gcc(frame[None]) for frame in frames]).tobytes() == together.tobytes()


def test_neighbours_leave_no_trace() -> None:
    frames = noise(9, 7, 512, np.float32)
    gcc = GccPhat.for_array(ARRAYS["minidsp-uma8"], 512, SPEECH_BAND)
    before = gcc(frames)[4].tobytes()
    for neighbours in (np.float32(0), np.float32(1e6), noise(9, 7, 512, np.float32, seed=1)):
        other = np.empty_like(frames)
        other[:] = neighbours
        other[4] = frames[4]
        assert gcc(other)[4].tobytes() == before


def test_input_is_left_as_it_was_and_its_layout_does_not_matter() -> None:
    frames = noise(3, 4, 256, np.float32)
    kept = frames.copy()
    expected = gcc_phat(frames, PEPPER)
    assert np.array_equal(frames, kept)
    assert gcc_phat(np.asfortranarray(frames), PEPPER).tobytes() == expected.tobytes()
    frames.setflags(write=False)
    assert gcc_phat(frames, PEPPER).tobytes() == expected.tobytes()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-30, 30), min_size=4, max_size=4), st.sampled_from([np.float32, np.float64]))
def test_powers_of_two_change_no_bit(exponents: list[int], dtype: Any) -> None:
    frames = noise(2, 4, 300, dtype)
    gain = np.array([2.0**e for e in exponents], dtype)[:, None]
    expected = gcc_phat(frames, PEPPER, SPEECH_BAND)
    assert gcc_phat(frames * gain, PEPPER, SPEECH_BAND).tobytes() == expected.tobytes()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-4, 4), min_size=4, max_size=4))
def test_level_and_gain_differences_do_not_matter(powers: list[float]) -> None:
    frames = noise(2, 4, 300)
    gain = np.array([10.0**p for p in powers])[:, None]
    expected = gcc_phat(frames, PEPPER)
    np.testing.assert_allclose(gcc_phat(frames * gain, PEPPER), expected, rtol=0, atol=1e-11)
    inverted = gcc_phat(frames * -gain, PEPPER)
    np.testing.assert_allclose(inverted, expected, rtol=0, atol=1e-11)


# ------------------------------------------------------------------------------------------ other input


@pytest.mark.parametrize("bands", [*LOOKS, ((0.0, 2000.0), (1500.0, math.inf))])
@pytest.mark.parametrize(("n_samples", "parts"), [(256, 1), (255, 1), (600, 4)])
@pytest.mark.parametrize("name", ["pepper", "minidsp-uma8"])
def test_torch_gives_the_same_and_stays_torch(name: str, n_samples: int, parts: int, bands: Any) -> None:
    array = ARRAYS[name]
    gcc = GccPhat.for_array(array, n_samples, bands, parts=parts)
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-10)):
        frames = noise(3, array.n_mics, n_samples, dtype)
        frames[1] = 0
        tensor = torch.from_numpy(frames)
        values = gcc(tensor)
        assert isinstance(values, torch.Tensor)
        assert values.dtype == tensor.dtype
        assert not values[1].any()
        np.testing.assert_allclose(values.numpy(), gcc(frames), rtol=0, atol=tolerance)
        assert gcc(tensor[:0]).shape == gcc(frames[:0]).shape == (0, *values.shape[1:])
        assert gcc(tensor[:0]).dtype == tensor.dtype


def test_whole_numbers_and_half_floats_are_computed_in_float32() -> None:
    sound = np.round(100 * noise(2, 4, 256))
    expected = gcc_phat(sound.astype(np.float32), PEPPER)
    for dtype in (np.int16, np.int32, np.float16, ">f4"):
        values = gcc_phat(sound.astype(dtype), PEPPER)
        assert values.dtype == np.float32
        assert values.tobytes() == expected.tobytes()
    assert gcc_phat(torch.zeros(1, 4, 256, dtype=torch.int16), PEPPER).dtype == torch.float32


def test_no_frames_give_no_values_and_more_channels_are_ignored() -> None:
    assert gcc_phat(np.zeros((0, 4, 256)), PEPPER).shape == (0, 6, 51)
    frames = noise(2, 6, 256)
    assert np.array_equal(gcc_phat(frames, PEPPER), gcc_phat(np.ascontiguousarray(frames[:, :4]), PEPPER))


def test_array_says_pairs_rate_and_lags() -> None:
    gcc = GccPhat.for_array(PEPPER)
    assert (gcc.pairs, gcc.n_samples, gcc.sample_rate, gcc.max_lag) == (PEPPER.pairs, 8192, 48000, 25)
    assert (gcc.n_lags, gcc.n_features) == (51, 306)
    assert GccPhat.for_array(load_array("linear-4"), 1024, max_lag=0).n_lags == 1


@pytest.mark.parametrize("parts", [1, 4])
def test_frames_of_another_shape_are_refused(parts: int) -> None:
    gcc = GccPhat.for_array(PEPPER, 600, parts=parts)
    for shape in ((4, 600), (600,), (2, 3, 600), (2, 4, 150), (2, 4, 599), (2, 600, 4), (1, 2, 4, 600)):
        kinds: list[Any] = [np.zeros(shape), torch.zeros(shape)]
        for frames in kinds:
            with pytest.raises(AudioError, match=r"at least 4 microphones, 600 samples.*channels come first"):
                gcc(frames)


@pytest.mark.parametrize("dtype", [np.complex128, np.bool_, np.str_, object])
def test_frames_that_are_no_real_numbers_are_refused(dtype: Any) -> None:
    with pytest.raises(AudioError, match="real numbers"):
        GccPhat.for_array(PEPPER, 256)(np.zeros((1, 4, 256)).astype(dtype))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"pairs": ()}, "two different microphones"),
        ({"pairs": ((0, 0),)}, "two different microphones"),
        ({"pairs": ((-1, 0),)}, "two different microphones"),
        ({"n_samples": 1}, "n_samples must be at least 2"),
        ({"sample_rate": 0}, "sample_rate positive"),
        ({"max_lag": -1}, "max_lag must be below half of 256"),
        ({"max_lag": 128}, "max_lag must be below half of 256"),
        ({"bands": ()}, "at least one band"),
        ({"bands": (100.0, 100.0)}, "0 <= low < high"),
        ({"bands": (200.0, 100.0)}, "0 <= low < high"),
        ({"bands": (-1.0, 100.0)}, "0 <= low < high"),
        ({"bands": (math.nan, 100.0)}, "0 <= low < high"),
        ({"bands": ((100.0, 400.0), (100.0, math.nan))}, "0 <= low < high"),
        ({"bands": (1.0, 2.0, 3.0)}, "unpack"),
        ({"bands": (9000.0, 10000.0)}, r"9000-10000 Hz holds no frequency .*\(Nyquist 8000 Hz\)"),
        ({"bands": ((100.0, 400.0), (70.0, 80.0))}, "70-80 Hz holds no frequency"),
        ({"parts": 0}, "parts must be at least 1, got 0"),
        ({"parts": -2}, "parts must be at least 1, got -2"),
        ({"parts": 2}, "max_lag must be below half of 128 samples, got 127"),
        ({"parts": 2, "max_lag": 64}, "max_lag must be below half of 128 samples, got 64"),
        (
            {"parts": 4, "max_lag": 20, "bands": (300.0, 450.0)},
            "300-450 Hz holds no frequency of a 64-sample",
        ),
        ({"parts": 200, "max_lag": 0}, "n_samples must be at least 2"),
        ({"parts": 257, "max_lag": 0}, "n_samples must be at least 2"),
    ],
)
def test_senseless_settings_are_refused(change: dict[str, Any], why: str) -> None:
    fit: dict[str, Any] = {"pairs": ((0, 1),), "n_samples": 256, "sample_rate": 16000, "max_lag": 127}
    GccPhat(**fit)
    with pytest.raises(ValueError, match=why):
        GccPhat(**{**fit, **change})


# ------------------------------------------------------------------------------------------- windows


def by_looks(gcc: GccPhat, values: Any) -> Any:
    """(n_frames, 1 + n_windows, n_bands, n_pairs, n_lags): the whole frame, then its windows."""
    shape = 1 + gcc.n_windows, len(gcc.band_list), len(gcc.pairs), gcc.n_lags
    return values.reshape(len(values), *shape)


@pytest.mark.parametrize("bands", LOOKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_samples", "parts"), [(512, 2), (1030, 4), (601, 3)])
def test_windows_are_what_they_are_alone_to_the_bit(
    n_samples: int, parts: int, dtype: Any, bands: Any
) -> None:
    gcc = GccPhat.for_array(PEPPER, n_samples, bands, parts=parts)
    n = n_samples // parts
    assert gcc.whole == GccPhat.for_array(PEPPER, n_samples, bands)
    assert gcc.window == GccPhat.for_array(PEPPER, n, bands)
    assert (gcc.n_windows, gcc.n_looks) == (2 * parts - 1, 2 * parts * len(gcc.band_list))
    frames = noise(5, 4, n_samples, dtype)
    values = gcc(frames)
    assert values.shape == (5, gcc.n_looks, 6, 51)
    assert values.dtype == dtype
    assert values[0].size == gcc.n_features
    whole, *windows = np.moveaxis(by_looks(gcc, values), 1, 0)
    assert whole.tobytes() == gcc.whole(frames).tobytes()
    assert len(windows) == 2 * parts - 1
    for k, window in enumerate(windows):
        start = k * n // 2  # each half a window after the last
        assert start + n <= n_samples
        assert window.tobytes() == gcc.window(frames[..., start : start + n]).tobytes()
    assert start + n > n_samples - parts  # the last ends where the frame does


def test_one_part_is_the_whole_frame() -> None:
    frames = noise(2, 4, 512)
    gcc = GccPhat.for_array(PEPPER, 512, SEVERAL, parts=1)
    assert gcc == gcc.whole == GccPhat.for_array(PEPPER, 512, SEVERAL)
    assert (gcc.n_windows, gcc.n_looks) == (0, 2)
    assert gcc(frames).shape == (2, 2, 6, 51)
    assert GccPhat.for_array(PEPPER, 600, parts=11).window.n_samples == 54  # lags up to 26: 25 are needed


def test_who_talks_in_part_of_a_frame_is_heard_in_that_window() -> None:
    rng = np.random.default_rng(0)
    sound = rng.standard_normal(1024 + 16)
    first, last = (np.stack([sound[8:1032], sound[8 - lag : 1032 - lag]]) for lag in (3, -5))
    frame = np.concatenate([first[:, :512], last[:, 512:]], axis=1)[None]
    gcc = GccPhat(((0, 1),), 1024, 16000, 8, parts=4)
    found = gcc(frame)[0, 1:, 0].argmax(axis=1) - 8
    assert found[:3].tolist() == [3, 3, 3]  # samples 0-256, 128-384, 256-512
    assert found[4:].tolist() == [-5, -5, -5]


# ------------------------------------------------------------------------------------------- min-max


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]), st.integers(1, 4))
def test_min_max_scales_each_frame_alone(seed: int, dtype: Any, n_frames: int) -> None:
    rng = np.random.default_rng(seed)
    features = (rng.standard_normal((n_frames, 2, 3, 5)) * 10.0 ** rng.integers(-3, 3)).astype(dtype)
    features[0] = 7.0
    scaled = min_max(features)
    assert scaled.dtype == dtype
    assert not scaled[0].any()
    for before, after in zip(features[1:], scaled[1:], strict=True):
        assert after.min() == 0.0
        assert after.max() == 1.0
        expected = [(value - before.min()) / (before.max() - before.min()) for value in before.flat]
        np.testing.assert_allclose(after.flat, expected, rtol=1e-6)
        assert min_max(before[None]).tobytes() == after.tobytes()


def test_min_max_of_a_silent_frame_is_finite() -> None:
    assert not min_max(gcc_phat(np.zeros((2, 4, 256)), PEPPER)).any()


# ---- exact


EXACT = GccPhat.for_array(PEPPER, 1024, ((100.0, 2000.0), (2000.0, 24000.0)), max_lag=12, parts=2, exact=True)


def test_exact_ones_are_near_those_in_floats() -> None:
    for bands in (FULL_BAND, (100.0, 8000.0), ((0.0, 1000.0), (1000.0, 4000.0))):
        exact = GccPhat.for_array(PEPPER, 1024, bands, parts=2, exact=True)
        plain = replace(exact, exact=False)
        frames = noise(3, 4, 1024)
        for some in (frames.astype(np.float32), frames):
            found = exact(some)
            assert found.dtype == some.dtype
            assert found.shape == plain(frames).shape
            assert np.abs(found - plain(frames)).max() < 5e-4
    x = np.zeros((1, 4, 1024))
    x[0, np.arange(4), [500, 503, 500, 490]] = 1.0
    peak = GccPhat.for_array(PEPPER, 1024, max_lag=14, exact=True)(x)[0].argmax(axis=1) - 14
    assert peak.tolist() == [3, 0, -10, -3, -13, -10]


@pytest.mark.parametrize("kind", ["noise", "tone", "copies", "clipped", "tiny", "silence"])
def test_exact_ones_have_the_same_bits_alone_in_a_batch_and_in_torch(kind: str) -> None:
    frames = {
        "noise": noise(9, 4, 1024),
        "tone": np.tile(np.sin(0.1 * np.arange(1024)), (9, 4, 1)),
        "copies": np.tile(noise(9, 1, 1024), (1, 4, 1)),
        "clipped": np.sign(noise(9, 4, 1024)),
        "tiny": noise(9, 4, 1024) * np.float32(1e-39),
        "silence": np.zeros((9, 4, 1024)),
    }[kind].astype(np.float32)
    found = EXACT(frames)
    assert np.isfinite(found).all()
    assert found.any() == (kind != "silence")
    assert not np.signbit(found[found == 0]).any()
    alone = np.concatenate([EXACT(frames[k : k + 1]) for k in range(9)])
    assert alone.tobytes() == found.tobytes()
    backwards = EXACT(np.asfortranarray(frames[::-1]))[::-1]
    assert backwards.tobytes() == found.tobytes()
    assert EXACT(torch.from_numpy(frames)).numpy().tobytes() == found.tobytes()
    assert EXACT(frames * np.float32(0.25)).tobytes() == found.tobytes() or kind == "tiny"
    assert EXACT(frames[:0]).shape == (0, *found.shape[1:])


def test_exact_ones_do_not_depend_on_the_fft(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = noise(4, 4, 1024)
    expected = EXACT(frames).tobytes()
    monkeypatch.setattr("scipy.fft.rfft", np.fft.rfft)
    assert EXACT(frames).tobytes() == expected
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert EXACT(frames).tobytes() == expected


def test_exact_ones_refuse_what_the_others_refuse() -> None:
    for value in (np.nan, np.inf, -np.inf):
        frames = noise(2, 4, 1024)
        frames[1, 2, 100] = value
        for gcc in (EXACT, EXACT.whole):
            with pytest.raises(AudioError, match="NaN or infinite"):
                gcc(frames)
            with pytest.raises(AudioError, match="NaN or infinite"):
                gcc(torch.from_numpy(frames))
    with pytest.raises(AudioError, match="channels come first"):
        EXACT(noise(2, 1024, 4))
    with pytest.raises(ValueError, match="at most 1048576 samples"):
        GccPhat.for_array(PEPPER, 2**20 + 2, exact=True)


def test_sums_of_exact_ones_stay_below_two_to_the_53() -> None:
    for n in (64, 8192, 8193, 2**15):
        gcc = GccPhat(((0, 1),), n, 48000, 1, exact=True)
        ((even, odd, unit),) = whole_transforms(gcc)
        largest = (2.0**PHASE_BITS + 1) ** 2 * 2 * (np.abs(even[:, 1]).sum() + np.abs(odd[:, 0]).sum())
        assert largest < 2.0**53
        assert np.frexp(unit * even[:, 0].sum() * 2.0 ** (2 * PHASE_BITS))[0] == 0.5
