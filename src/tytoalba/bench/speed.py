"""How fast, as ratios against peers measured in the same run: machines differ, ratios hardly do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal.angles import Float
from tytoalba.signal.array import SPEED_OF_SOUND, load_array
from tytoalba.signal.gcc import FULL_BAND, SPEECH_BAND, GccPhat
from tytoalba.signal.srp import SrpPhat

PEER_BAND = (500.0, 4000.0)


@dataclass(frozen=True)
class Speed:
    """Frames per second of one implementation, and how many times its peer's (None: no peer)."""

    task: str
    name: str
    frames_per_second: float
    ratio: float | None


def measure(n_frames: int = 48, repeats: int = 7) -> list[Speed]:
    """Time GCC-PHAT and SRP-PHAT beside plain scipy and pyroomacoustics (if it is installed).

    One thread, Pepper's four microphones, 8192-sample frames at 48 kHz, 51 lags, 360 azimuths. The
    implementations take turns, and the best turn of each counts, so that a busy machine hurts all alike.
    """
    array = load_array("pepper")
    frames = np.random.default_rng(0).standard_normal((n_frames, 4, 8192)).astype(np.float32)
    gcc: dict[str, Callable[[Float], Float]] = {
        "plain scipy, float64": plain_gcc,
        "tytoalba, full band": GccPhat.for_array(array, bands=FULL_BAND),
        "tytoalba, 100-8000 Hz": GccPhat.for_array(array, bands=SPEECH_BAND),
    }
    rows = _compare("GCC-PHAT", gcc, frames, repeats)
    for name in ("pepper", "respeaker-usb-4"):
        rows += _compare(f"features of {name}", *prior_features(name, n_frames), repeats)
    srp: dict[str, Callable[[Float], Float]] = {
        "tytoalba, exact": SrpPhat(array, band=PEER_BAND, form="exact"),
        "tytoalba, fast": SrpPhat(array, band=PEER_BAND),
    }
    task, peer = "SRP-PHAT 500-4000 Hz", pyroomacoustics_srp()
    if peer is None:
        return rows + [replace(row, ratio=None) for row in _compare(task, srp, frames, repeats)]
    slow = _compare(task, {"pyroomacoustics": peer}, frames[:4], max(2, repeats // 3))
    return rows + slow + _compare(task, srp, frames, repeats, slow[0].frames_per_second)


def prior_features(name: str, n_frames: int) -> tuple[dict[str, Callable[[Float], Float]], Float]:
    """The features that a prior takes, in floats and exactly (the same on every machine), and frames."""
    array = load_array(name)
    exact = prior_gcc(array)
    noise = np.random.default_rng(0).standard_normal((n_frames, array.n_mics, exact.n_samples))
    ways: dict[str, Callable[[Float], Float]]
    ways = {f"{name}, in floats": replace(exact, exact=False), f"{name}, the same on every machine": exact}
    return ways, (0.1 * noise).astype(np.float32)


def plain_gcc(frames: Float) -> Float:
    """GCC-PHAT as one writes it down: FFT, whiten each pair, inverse FFT, cut out 51 lags."""
    from scipy.fft import irfft, rfft

    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(frames.shape[-1]) / frames.shape[-1])
    X = rfft(frames.astype(np.float64) * window, axis=-1)
    lags = []
    for i in range(frames.shape[1]):
        for j in range(i + 1, frames.shape[1]):
            C = X[:, i].conj() * X[:, j]
            c = irfft(C / np.maximum(np.abs(C), 1e-30), axis=-1)
            lags.append(np.concatenate([c[:, -25:], c[:, :26]], axis=1))
    return np.stack(lags, axis=1)


def pyroomacoustics_srp() -> Callable[[Float], Float] | None:
    """SRP-PHAT of pyroomacoustics on the same frames, window, band and azimuths; None if not installed."""
    try:
        from pyroomacoustics.doa import SRP
    except ImportError:
        return None
    array = load_array("pepper")
    azimuth = np.deg2rad(np.arange(360.0))
    peer = SRP(array.coordinates[:, :2].T, array.sample_rate, 8192, c=SPEED_OF_SOUND, azimuth=azimuth)
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(8192) / 8192)

    def maps(frames: Float) -> Float:
        result = []
        for frame in frames:
            peer.locate_sources(np.fft.rfft(frame * window)[:, :, None], freq_range=list(PEER_BAND))
            result.append(peer.grid.values.copy())
        return np.array(result)

    return maps


def _compare(
    task: str,
    contenders: dict[str, Callable[[Float], Float]],
    frames: Float,
    repeats: int,
    peer_rate: float | None = None,
) -> list[Speed]:
    best = dict.fromkeys(contenders, 0.0)
    with threadpool_limits(1):
        for run in contenders.values():
            run(frames[:2])
        for _ in range(repeats):
            for name, run in contenders.items():
                start = time.perf_counter()
                run(frames)
                best[name] = max(best[name], len(frames) / (time.perf_counter() - start))
    against = peer_rate or next(iter(best.values()))
    return [Speed(task, name, rate, rate / against) for name, rate in best.items()]
