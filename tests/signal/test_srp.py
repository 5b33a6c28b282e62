"""SRP-PHAT: both forms against slow loops, against each other and against pyroomacoustics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.waves import plane_waves
from tytoalba.bench.speed import sound
from tytoalba.errors import AudioError
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray, builtin_arrays, load_array
from tytoalba.signal.gcc import FULL_BAND, SPEECH_BAND, Band, GccPhat
from tytoalba.signal.music import Music
from tytoalba.signal.srp import Form, SrpPhat, lag_matrix, srp_from_gcc, srp_phat

ARRAYS = builtin_arrays()
PEPPER = ARRAYS["pepper"]
SOLID = MicArray(
    "solid",
    ((0.05, 0.0, 0.0), (-0.03, 0.04, 0.0), (-0.03, -0.04, 0.01), (0.0, 0.0, 0.06)),
    sample_rate=16000,
    yaw=20.0,
)
FORMS: list[Form] = ["fast", "exact"]


def noise(n_frames: int, n_mics: int, n_samples: int, seed: int = 0) -> NDArray[np.float64]:
    """Noise with a part that all microphones share, a few samples apart."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_frames, n_samples + 8 * n_mics))
    shifted = [common[:, 2 * m : 2 * m + n_samples] for m in range(n_mics)]
    return np.stack(shifted, axis=1) + rng.standard_normal((n_frames, n_mics, n_samples))


# -------------------------------------------------------------------------------------- the exact form


def by_definition(frames: NDArray[Any], srp: SrpPhat) -> NDArray[np.float64]:
    """Mean over pairs of the PHAT-weighted cross spectrum at the delay of a plane wave, loop by loop."""
    array, n = srp.array, srp.n_samples
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / n)
    X = np.fft.rfft(frames.astype(np.float64) * window)
    low, high = srp.band
    bins = [k for k in range(n // 2 + 1) if low <= k * array.sample_rate / n <= high]
    maps = np.zeros((len(frames), srp.n_directions))
    turn, el = math.radians(array.yaw), math.radians(srp.elevation)
    for c in range(srp.n_directions):
        az = 2 * math.pi * c / srp.n_directions - turn  # in the array's own frame
        towards = (math.cos(el) * math.cos(az), math.cos(el) * math.sin(az), math.sin(el))
        ahead = [sum(p * u for p, u in zip(mic, towards, strict=True)) for mic in array.positions]
        for i in range(array.n_mics):
            for j in range(i + 1, array.n_mics):
                later = (ahead[i] - ahead[j]) / SPEED_OF_SOUND  # seconds by which j hears it later than i
                total = 0.0
                for k in bins:
                    weight = 1.0 if k == 0 or 2 * k == n else 2.0
                    cross = np.conj(X[:, i, k]) * X[:, j, k]
                    steered = cross / np.abs(cross) * np.exp(2j * np.pi * k * array.sample_rate / n * later)
                    maps[:, c] += weight * steered.real
                    total += weight
    return maps / (total * array.n_pairs)


@pytest.mark.parametrize("band", [FULL_BAND, (900.0, 3000.0), (0.0, 2000.0), (5000.0, 8000.0)])
@pytest.mark.parametrize("n_samples", [48, 49])
@pytest.mark.parametrize("elevation", [0.0, 35.0])
def test_exact_form_is_its_definition(band: Band, n_samples: int, elevation: float) -> None:
    srp = SrpPhat(SOLID, n_samples, band, "exact", n_directions=24, elevation=elevation)
    frames = noise(2, 4, n_samples)
    expected = by_definition(frames, srp)
    maps = srp(frames)
    assert maps.dtype == np.float64
    np.testing.assert_allclose(maps, expected, rtol=0, atol=1e-11)
    single = srp(frames.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["minidsp-uma8", "linear-4"])
def test_exact_form_is_its_definition_for_built_in_arrays(name: str) -> None:
    srp = SrpPhat(ARRAYS[name], 64, (500.0, 7000.0), "exact", n_directions=12)
    frames = noise(2, ARRAYS[name].n_mics, 64)
    np.testing.assert_allclose(srp(frames), by_definition(frames, srp), rtol=0, atol=1e-11)


# ---------------------------------------------------------------------------------------- the fast form


@pytest.mark.parametrize("array", [*ARRAYS.values(), SOLID], ids=[*ARRAYS, "solid"])
def test_fast_form_is_nearly_the_exact_one(array: MicArray) -> None:
    n = 1024
    frames = np.concatenate([noise(8, array.n_mics, n), plane_waves(array, np.arange(0.0, 360.0, 20.0), n)])
    fast, exact = (SrpPhat(array, n, SPEECH_BAND, form)(frames) for form in FORMS)
    # at 16 kHz the band reaches Nyquist, where the lags just beyond those kept are missed most
    tolerance = 1e-5 if array.sample_rate == 48000 else 0.02
    np.testing.assert_allclose(fast, exact, rtol=0, atol=tolerance)
    single = SrpPhat(array, n)(frames.astype(np.float32))
    np.testing.assert_allclose(single, fast, rtol=0, atol=2e-5)


def test_features_that_are_there_anyway_become_a_map() -> None:
    gcc = GccPhat.for_array(PEPPER, 1024, SPEECH_BAND)  # 51 lags: the learned methods' features
    frames = noise(4, 4, 1024)
    maps = srp_from_gcc(gcc(frames), lag_matrix(gcc, PEPPER))
    exact = SrpPhat(PEPPER, 1024, form="exact")(frames)
    np.testing.assert_allclose(maps, exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_samples", [128, 129])
@pytest.mark.parametrize("band", [FULL_BAND, SPEECH_BAND, (0.0, 9000.0), (8000.0, 24000.0)])
def test_lag_matrix_is_the_least_squares_interpolation(band: Band, n_samples: int) -> None:
    gcc = GccPhat.for_array(PEPPER, n_samples, band, max_lag=17)
    start, stop = gcc.bins[0]
    k = np.arange(start, stop)
    root = np.sqrt(gcc.bin_weights(start, stop))[:, None]
    lags = np.arange(-17, 18)
    basis = root * np.exp(2j * np.pi / n_samples * np.outer(k, lags))  # (K, L)
    delays = PEPPER.pair_delays(np.arange(0.0, 360.0, 30.0)).T * PEPPER.sample_rate  # (P, C)
    matrix = lag_matrix(gcc, PEPPER, n_directions=12)
    assert matrix.shape == (6 * 35, 12)
    rows = np.concatenate([basis.real, basis.imag, math.sqrt(1e-7) * np.eye(35)])  # a pinch of ridge
    for p in range(6):
        wanted = root * np.exp(2j * np.pi / n_samples * np.outer(k, delays[p]))
        target = np.concatenate([wanted.real, wanted.imag, np.zeros((35, 12))])
        solution, *_ = np.linalg.lstsq(rows, target, rcond=None)
        np.testing.assert_allclose(matrix[35 * p : 35 * p + 35] * 6, solution, rtol=0, atol=1e-6)


def test_whole_sample_delays_need_no_interpolation() -> None:
    spacing = 4 * SPEED_OF_SOUND / 16000
    pair = MicArray("pair", ((0.0, spacing / 2, 0.0), (0.0, -spacing / 2, 0.0)), sample_rate=16000)
    gcc = GccPhat.for_array(pair, 256, FULL_BAND, max_lag=10)
    matrix = lag_matrix(gcc, pair, n_directions=4)
    # front 0, left +4 (microphone 0 hears it first), back 0, right -4
    np.testing.assert_allclose(matrix, np.eye(21)[:, [10, 14, 10, 6]], atol=1e-5)


@settings(max_examples=12, deadline=None)
@given(st.sets(st.integers(1, 16), max_size=6), st.sampled_from(["pepper", "respeaker-6mic", "matrix-voice"]))
def test_fast_maps_do_not_know_their_batch_to_the_bit(cuts: set[int], name: str) -> None:
    array = ARRAYS[name]
    for dtype in (np.float32, np.float64):
        frames: NDArray[Any] = noise(17, array.n_mics, 256).astype(dtype)
        srp = SrpPhat(array, 256)
        parts = np.concatenate([srp(part) for part in np.split(frames, sorted(cuts))])
        assert parts.tobytes() == srp(frames).tobytes()


def test_exact_maps_do_not_know_their_batch_beyond_rounding() -> None:
    frames = noise(40, 4, 256)
    srp = SrpPhat(PEPPER, 256, form="exact")
    alone = np.concatenate([srp(frame[None]) for frame in frames])
    np.testing.assert_allclose(srp(frames), alone, rtol=0, atol=1e-13)


# ------------------------------------------------------------------------------------- pyroomacoustics


def test_exact_form_equals_pyroomacoustics() -> None:
    peer = sound.pyroomacoustics_srp()
    assert peer is not None, "pyroomacoustics is not installed: make install"
    frames = noise(2, 4, 8192)
    theirs = peer(frames)
    # pyroomacoustics rounds 500-4000 Hz to bins 85 to 682 of 8192 samples, the upper end left out
    width = PEPPER.sample_rate / 8192
    first, last = round(500 / width), round(4000 / width) - 1
    ours = SrpPhat(PEPPER, 8192, (first * width, last * width), "exact")(frames)
    assert ours.argmax(axis=1).tolist() == theirs.argmax(axis=1).tolist()
    np.testing.assert_allclose(unit_range(ours), unit_range(theirs), rtol=0, atol=1e-9)
    # their map is twice ours, plus what every microphone agrees on with itself
    np.testing.assert_allclose(ours, (theirs - 4 / 6) / 2, rtol=0, atol=1e-12)


def test_exact_form_equals_pyroomacoustics_for_seven_microphones() -> None:
    doa = pytest.importorskip("pyroomacoustics.doa")
    array, n = load_array("minidsp-uma8").rotated(70.0), 256
    azimuth = np.deg2rad(np.arange(0.0, 360.0, 5.0))
    peer = doa.SRP(array.coordinates[:, :2].T, array.sample_rate, n, c=SPEED_OF_SOUND, azimuth=azimuth)
    frame = noise(1, 7, n)
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / n)
    bins = list(range(3, 60))
    peer.locate_sources(np.fft.rfft(frame[0] * window)[:, :, None], freq_bins=bins)
    width = array.sample_rate / n
    ours = SrpPhat(array, n, (bins[0] * width, bins[-1] * width), "exact", n_directions=72)(frame)
    theirs = np.array([peer.grid.values])
    assert ours.argmax() == theirs.argmax()
    np.testing.assert_allclose(unit_range(ours), unit_range(theirs), rtol=0, atol=1e-9)


def unit_range(maps: NDArray[Any]) -> NDArray[Any]:
    low, high = maps.min(axis=1, keepdims=True), maps.max(axis=1, keepdims=True)
    return np.asarray((maps - low) / (high - low))


# ------------------------------------------------------------------------------------ what a map says


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_plane_wave_peaks_near_one_and_no_value_leaves_the_range(array: MicArray, form: Form) -> None:
    azimuth = np.arange(0.0, 360.0, 30.0)
    maps = SrpPhat(array, 1024, form=form)(plane_waves(array, azimuth, 1024))
    assert distance(array.fold(decode(maps)), array.fold(azimuth)).max() <= 2.0
    slack = 1e-9 if form == "exact" else 0.02
    assert maps.max() <= 1.0 + slack
    assert maps.max(axis=1).min() > 0.95
    diffuse = SrpPhat(array, 1024, form=form)(
        np.random.default_rng(0).standard_normal((20, array.n_mics, 1024))
    )
    assert np.abs(diffuse).max() <= 0.5  # independent noise agrees on nothing
    assert maps.min() >= -1.0 - slack


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_exact_map_stays_in_its_range(seed: int, width: int) -> None:
    hertz = PEPPER.sample_rate / 128
    narrow = SrpPhat(PEPPER, 128, (hertz, width * hertz + 1), "exact", n_directions=36)
    assert np.abs(narrow(noise(3, 4, 128, seed))).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_source_above_needs_the_elevation_to_agree_fully(form: Form) -> None:
    frames = plane_waves(PEPPER, [40.0, 200.0], 2048, elevation=50.0)
    level, raised = (SrpPhat(PEPPER, 2048, form=form, elevation=e)(frames) for e in (0.0, 50.0))
    assert decode(raised).tolist() == [40.0, 200.0]
    assert raised.max(axis=1).min() > 0.95
    assert level.max() < 0.9


@pytest.mark.parametrize("form", FORMS)
def test_grid_of_directions_can_be_chosen(form: Form) -> None:
    frames = plane_waves(PEPPER, [0.0, 95.0, 355.0], 1024)
    maps = SrpPhat(PEPPER, 1024, form=form, n_directions=72)(frames)
    assert maps.shape == (3, 72)
    assert decode(maps).tolist() == [0.0, 95.0, 355.0]
    fine = SrpPhat(PEPPER, 1024, form=form)(frames)
    np.testing.assert_allclose(maps, fine[:, ::5], rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_function_is_the_class_and_takes_any_numbers(form: Form) -> None:
    frames = np.round(100 * noise(2, 4, 512)).astype(np.int16)
    maps = srp_phat(frames, PEPPER, [200.0, 6000.0], form)
    assert maps.dtype == np.float32
    single = SrpPhat(PEPPER, 512, (200.0, 6000.0), form)(frames.astype(np.float32))
    assert np.array_equal(maps, single)
    assert np.array_equal(srp_phat(frames.tolist(), PEPPER, [200.0, 6000.0], form), maps)


@pytest.mark.parametrize("form", FORMS)
def test_silence_is_flat_and_no_frames_are_no_maps(form: Form) -> None:
    srp = SrpPhat(PEPPER, 512, form=form)
    assert not srp(np.zeros((2, 4, 512))).any()
    assert srp(np.zeros((0, 4, 512))).shape == (0, 360)


@pytest.mark.parametrize(
    "maps", [SrpPhat(PEPPER, 512), SrpPhat(PEPPER, 512, form="exact"), Music(PEPPER, 512)]
)
def test_frames_that_are_damaged_or_of_another_shape_are_refused(maps: SrpPhat | Music) -> None:
    for value in (math.nan, math.inf, -math.inf):
        frames = noise(3, 4, 512)
        frames[1, 2, 3] = value
        for dtype in (np.float32, np.float64):
            with pytest.raises(AudioError, match="NaN or infinite"):
                maps(frames.astype(dtype))
    more = [(1, 5, 512)] if isinstance(maps, Music) else []  # SRP-PHAT leaves out what comes after
    for shape in ((4, 512), (1, 3, 512), (1, 4, 511), (1, 512, 4), *more):
        with pytest.raises(AudioError, match=r"frames must be \(n_frames, .*4.*, 512.*\), got shape"):
            maps(np.zeros(shape))


def test_senseless_settings_are_refused() -> None:
    bad_form: Any = "slow"
    with pytest.raises(ValueError, match="'fast' or 'exact'"):
        SrpPhat(PEPPER, form=bad_form)
    senseless: dict[str, tuple[Any, ...]] = {"n_directions": (1, 0, -4), "elevation": (math.nan, math.inf)}
    for option, values in senseless.items():
        for value in values:
            with pytest.raises(ValueError, match=option):
                SrpPhat(PEPPER, **{option: value})
    with pytest.raises(ValueError, match="holds no frequency"):
        SrpPhat(PEPPER, 512, (30000.0, 40000.0))(np.zeros((1, 4, 512)))
    with pytest.raises(ValueError, match="reshape"):
        srp_from_gcc(np.zeros((2, 6, 51)), np.zeros((6 * 49, 360)))


@pytest.mark.parametrize("method", [SrpPhat, Music, GccPhat.for_array])
def test_frames_are_as_long_as_the_arrays_own_unless_told(method: Callable[..., Any]) -> None:
    for name, length in (("pepper", 8192), ("respeaker-usb-4", 2730)):
        array = load_array(name)
        assert method(array).n_samples == array.frame_length == length
        assert method(array, 1024).n_samples == 1024
        assert len(method(array)(np.random.default_rng(0).standard_normal((2, 4, length)))) == 2
