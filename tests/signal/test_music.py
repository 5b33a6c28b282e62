"""MUSIC: against a slow evaluation, on plane waves, on two sources, on silence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.waves import plane_waves
from tytoalba.signal.angles import decode, decode_peaks, distance
from tytoalba.signal.array import SPEED_OF_SOUND, builtin_arrays
from tytoalba.signal.music import FLOOR, Music

ARRAYS = builtin_arrays()
PEPPER = ARRAYS["pepper"]


def by_definition(frames: NDArray[np.float64], music: Music) -> NDArray[np.float64]:
    """A frequency and a direction at a time, with the noise space from a singular value decomposition."""
    array, size = music.array, music.n_fft
    starts = range(0, music.n_samples - size + 1, size // 2)
    window = np.array([0.5 - 0.5 * math.cos(2 * math.pi * t / (size - 1)) for t in range(size)])
    maps = np.zeros((len(frames), music.n_directions))
    for t, frame in enumerate(frames):
        spectra = np.array([np.fft.rfft(frame[:, s : s + size] * window) for s in starts])  # (T, M, K)
        kept = 0
        for k in range(size // 2 + 1):
            hertz = k * array.sample_rate / size
            if k == 0 or not music.band[0] <= hertz <= music.band[1]:
                continue
            kept += 1
            left, _, _ = np.linalg.svd(spectra[:, :, k].T)
            noise_space = left[:, music.n_sources :]
            pseudo = []
            for c in range(music.n_directions):
                azimuth = math.radians(360.0 * c / music.n_directions - array.yaw)
                ahead = [x * math.cos(azimuth) + y * math.sin(azimuth) for x, y, _ in array.positions]
                steering = np.exp([2j * math.pi * hertz * a / SPEED_OF_SOUND for a in ahead])
                steering /= math.sqrt(array.n_mics)
                outside = np.sum(np.abs(noise_space.conj().T @ steering) ** 2)
                pseudo.append(1.0 / (outside + FLOOR))
            maps[t] += np.array(pseudo) / max(pseudo)
        maps[t] /= kept
    return maps


@pytest.mark.parametrize("n_sources", [1, 2, 3])
def test_music_is_its_definition(n_sources: int) -> None:
    array = PEPPER.rotated(25.0)
    frames = plane_waves(array, [30.0, 250.0], 320, noise=1.0)
    music = Music(array, 320, (1000.0, 6000.0), n_sources, n_fft=64, n_directions=24)
    np.testing.assert_allclose(music(frames), by_definition(frames, music), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["pepper", "linear-4", "minidsp-uma8"])
def test_plane_waves_are_found_all_round(name: str) -> None:
    array = ARRAYS[name].rotated(10.0)
    azimuth = np.arange(0.0, 360.0, 15.0) + 2.0
    maps = Music(array, 2048)(plane_waves(array, azimuth, 2048, noise=0.03))
    assert maps.shape == (24, 360)
    assert ((maps > 0) & (maps <= 1)).all()
    assert distance(array.fold(decode(maps)), array.fold(azimuth)).max() <= 2.0


@pytest.mark.parametrize(("first", "second"), [(60.0, 200.0), (350.0, 60.0), (120.0, 165.0)])
def test_two_sources_are_found_and_one_expected_is_not_enough(first: float, second: float) -> None:
    array = ARRAYS["minidsp-uma8"]
    heard = plane_waves(array, [[first, second]], 8192, noise=0.04)
    found = decode_peaks(Music(array, 8192, n_sources=2)(heard), 2, neighbourhood=15.0)[0]
    assert distance(sorted(found), sorted([first, second])).max() <= 3.0
    two, one = (Music(array, 8192, n_sources=n)(heard)[0] for n in (2, 1))
    classes = [int(first), int(second)]
    assert two[classes].min() > one[classes].min()  # a one-dimensional signal space cannot hold both


def test_source_above_is_sought_at_its_elevation() -> None:
    frames = plane_waves(PEPPER, [40.0, 200.0], 2048, elevation=50.0, noise=0.03)
    level, raised = (Music(PEPPER, 2048, elevation=e)(frames) for e in (0.0, 50.0))
    assert distance(decode(raised), [40.0, 200.0]).max() <= 2.0
    assert (raised.max(axis=1) > level.max(axis=1)).all()


def test_silence_is_flat_and_leaves_others_alone() -> None:
    frames = plane_waves(PEPPER, [10.0, 20.0, 30.0], 512, noise=0.03)
    before = Music(PEPPER, 512)(frames)
    frames[1] = 0
    after = Music(PEPPER, 512)(frames)
    assert (after[1] == 1.0).all()
    np.testing.assert_allclose(after[[0, 2]], before[[0, 2]], atol=1e-12)
    assert Music(PEPPER, 512)(frames[:0]).shape == (0, 360)


def test_level_and_batch_do_not_matter() -> None:
    frames = plane_waves(PEPPER, np.arange(0.0, 360.0, 30.0), 512, noise=0.03)
    music = Music(PEPPER, 512, n_directions=90)
    maps = music(frames)
    assert maps.shape == (12, 90)
    np.testing.assert_allclose(music(frames * 1e-4), maps, rtol=0, atol=1e-9)
    alone = np.concatenate([music(frame[None]) for frame in frames])
    np.testing.assert_allclose(alone, maps, rtol=0, atol=1e-9)
    np.testing.assert_allclose(music(frames.astype(np.float32)), maps, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("option", "values", "why"),
    [
        ("n_sources", (0, -1, 4, 5), "finds 1 to 3 sources"),
        ("n_fft", (2, 3, 1025, -64), "n_fft must be between 4 and the frame's 1024"),
        ("band", ((3e4, 4e4), (8000.0, 100.0), (10.0, 20.0), (math.nan, 8000.0)), "holds no frequency"),
    ],
)
def test_senseless_settings_are_refused(option: str, values: tuple[Any, ...], why: str) -> None:
    for value in values:
        with pytest.raises(ValueError, match=why):
            Music(PEPPER, 1024, **{option: value})


def test_zero_hertz_is_left_out() -> None:
    frames = plane_waves(PEPPER, [77.0], 512, noise=0.03)
    assert np.array_equal(
        Music(PEPPER, 512, (0.0, 8000.0))(frames), Music(PEPPER, 512, (1.0, 8000.0))(frames)
    )
    assert Music(PEPPER, 8192).n_fft == 1024
