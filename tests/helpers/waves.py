"""Plane waves for tests: sound from far away as an array's microphones get it, without a room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.array import MicArray

Band = tuple[float, float]
ALL = (0.0, np.inf)


def delayed(
    array: MicArray,
    sound: NDArray[Any],
    azimuth: Any,
    elevation: float = 0.0,
    *,
    band: Band = ALL,
    later: float = 0.0,
) -> NDArray[np.float64]:
    """Sound (..., n_samples) from azimuths (...) in degrees, at each microphone: (..., n_mics, n_samples).

    Delays are fractions of a sample, by FFT, so sound wraps around its ends; directional microphones get
    less of what comes from behind. band: Hz that are kept.
    later: seconds by which all of it comes later.
    """
    n = sound.shape[-1]
    hertz = np.fft.rfftfreq(n, 1 / array.sample_rate)
    kept = (hertz >= band[0]) & (hertz <= band[1])
    arrival = array.arrival_times(np.asarray(azimuth, float), elevation)[..., None] + later
    spectrum = (np.fft.rfft(sound) * kept)[..., None, :]
    gains = array.gains(np.asarray(azimuth, float), elevation)[..., None]
    return gains * np.fft.irfft(spectrum * np.exp(-2j * np.pi * hertz * arrival), n)


def plane_wave(
    array: MicArray,
    azimuth: Any,
    seconds: float = 0.5,
    seed: int = 0,
    noise: float = 0.02,
    *,
    level: float = 0.1,
    band: Band = ALL,
) -> NDArray[np.float32]:
    """White noise from a direction, or from several at once: (n_mics, n_samples), RMS `level` for each.

    noise: RMS of each microphone's own noise, as a share of that of a wave.
    """
    rng = np.random.default_rng(seed)
    n = round(seconds * array.sample_rate)
    waves = [delayed(array, rng.standard_normal(n), one, band=band) for one in np.atleast_1d(azimuth)]
    own = rng.standard_normal((array.n_mics, n))
    return np.asarray(level * (np.sum(waves, axis=0) + noise * own), np.float32)


def plane_waves(
    array: MicArray,
    azimuth: Any,
    n_samples: int | None = None,
    elevation: float = 0.0,
    *,
    seed: int = 0,
    noise: float = 0.0,
) -> NDArray[np.float64]:
    """Frames of white noise, one for each azimuth: (n_frames, n_mics, n_samples); a frame's if not given.

    azimuth: (n_frames,), or (n_frames, n_sources) with NaN where there is no further source. Each frame is
    cut from the middle of a longer sound, so no delay wraps around its ends.
    """
    rng = np.random.default_rng(seed)
    n = n_samples or array.frame_length
    azimuth = np.atleast_1d(np.asarray(azimuth, float))
    frames = np.zeros((len(azimuth), array.n_mics, n))
    for source in azimuth.reshape(len(azimuth), -1).T:
        here = np.isfinite(source)
        sound = rng.standard_normal((int(here.sum()), 2 * n))
        frames[here] += delayed(array, sound, source[here], elevation)[..., n // 2 : n // 2 + n]
    return frames + noise * rng.standard_normal(frames.shape)
