"""How fast sound becomes features and maps, beside plain scipy and pyroomacoustics."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from tytoalba.bench.speed.rows import Ceiling, Exponent, Row, best_of, compared, using
from tytoalba.data.features import stream_features
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal.angles import Float
from tytoalba.signal.array import SPEED_OF_SOUND, load_array
from tytoalba.signal.gcc import FULL_BAND, SPEECH_BAND, GccPhat
from tytoalba.signal.srp import SrpPhat
from tytoalba.storage.soundfiles import write_audio

PEER_BAND = (500.0, 4000.0)


def measure_sound(n_frames: int = 48, repeats: int = 7) -> list[Row]:
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
    return rows + slow + _compare(task, srp, frames, repeats, slow[0].value)


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


def measure_files(seconds: float = 120.0, threads: int = 2, repeats: int = 3) -> list[Row]:
    """Features of a sound file, how many times faster than it lasts: four microphones, 16 kHz, 16 bits."""
    array = load_array("respeaker-usb-4")
    exact = prior_gcc(array)
    ways = {
        "features of a prior, the same on every machine": exact,
        "GCC-PHAT, the same on every machine": replace(exact.whole, bands=FULL_BAND),
        "GCC-PHAT in floats": replace(exact.whole, bands=FULL_BAND, exact=False),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "noise.wav"
        n = round(seconds * array.sample_rate)
        write_audio(
            path, 0.1 * np.random.default_rng(0).standard_normal((array.n_mics, n)), array.sample_rate
        )

        def run(gcc: GccPhat) -> int:
            return sum(map(len, stream_features(path, array, gcc, threads=threads)))

        found = best_of({name: partial(run, gcc) for name, gcc in ways.items()}, repeats)
    unit = "times real time"
    return [
        Row("sound files, 4 microphones", name, seconds / t, unit, None, threads) for name, t in found.items()
    ]


def measure_microphones(numbers: tuple[int, ...] = (2, 4, 8, 16), n_frames: int = 16) -> Exponent:
    """How the time of a frame's GCC-PHAT (all pairs) grows with the number of microphones; one thread."""
    rng = np.random.default_rng(0)
    runs: dict[str, Callable[[], object]] = {}
    for n in numbers:
        pairs = tuple((i, j) for i in range(n) for j in range(i + 1, n))
        gcc = GccPhat(pairs, n_samples=2730, sample_rate=16000, max_lag=25, exact=True)
        runs[str(n)] = partial(gcc, (0.1 * rng.standard_normal((n_frames, n, 2730))).astype(np.float32))
    with using(1):
        best_of(runs, 1)  # tables are made once
        seconds = best_of(runs, 5)
    return Exponent.fitted("GCC-PHAT of all pairs", "microphones", {int(n): t for n, t in seconds.items()})


def fft_ceiling(n_frames: int = 48, repeats: int = 7) -> Ceiling:
    """GCC-PHAT in floats of Pepper's frames beside the Fourier transforms in it alone; one thread."""
    from scipy.fft import rfft

    array = load_array("pepper")
    frames = np.random.default_rng(0).standard_normal((n_frames, 4, 8192)).astype(np.float32)
    gcc = GccPhat.for_array(array, bands=SPEECH_BAND)
    with using(1):
        seconds = best_of(
            {"gcc": lambda: gcc(frames), "fft": lambda: [rfft(f, axis=-1) for f in frames]}, repeats
        )
    rates = {name: n_frames / took for name, took in seconds.items()}
    return Ceiling("GCC-PHAT, 100-8000 Hz", "its FFTs alone", rates["gcc"], rates["fft"], "frames/s")


def _compare(
    task: str,
    contenders: dict[str, Callable[[Float], Float]],
    frames: Float,
    repeats: int,
    peer_rate: float | None = None,
) -> list[Row]:
    with using(1):
        for run in contenders.values():
            run(frames[:2])
        seconds = best_of({name: partial(run, frames) for name, run in contenders.items()}, repeats)
    return compared(task, seconds, len(frames), "frames/s", 1, peer_rate and len(frames) / peer_rate)
