"""Measure how far FFTs are from one another, and how often that would change a feature; prints JSON.

    python tools/measure_exactness.py                     # numpy's, scipy's and torch's FFT on this CPU
    python tools/measure_exactness.py --device cuda       # and torch's on a GPU
    python tools/measure_exactness.py --minutes 4 --array pepper
    python tools/measure_exactness.py --accuracy          # and what they mean for the prior that ships

For each kind of sound (simulated speech, a steady tone of 16 bits, digital silence, copied channels) it
counts the phase values that features are made of, those that lie so near to an edge that they are decided in
integers (`decided`), those that differ between two FFTs without that (`differ_without`) and with it
(`differ`, expected 0), and says how far FFTs differ at most, as a share of the guard (`largest_over_guard`).
How far each is from an FFT in extended precision at most is in `errors`, as a share of the guard (where the
machine has such numbers: x86-64), and what follows for a lesson of a minute in `chance_of_change`.

With --accuracy: per cent of simulated frames (`quick`, four times its size) within 5 degrees, with exact
features and with those in floats.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.fft
import torch
from numpy.typing import NDArray

from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.voice import SyntheticVoices, say
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.judge import judge
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.signal import phases
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import frames as cut_into_frames
from tytoalba.signal.gcc import GccPhat

Frames = NDArray[np.float32]
Fft = Callable[..., Any]
EXTENDED = np.finfo(np.longdouble).eps < 2e-19
"""Whether this machine has numbers of 80 bits, beside which errors of an FFT can be seen."""
KINDS = ("speech", "tone", "silence", "copied channels")
AT_ONCE = 64


def chance_of_change(error: float, n_values: float) -> float:
    """How likely it is, at most, that two machines disagree about one of n_values phase values.

    error: root mean square of their FFTs' errors, as a share of the guard; the largest one seen is safer.
    Only an error above the guard can change a value. Errors are sums of thousands of roundings, so they are
    taken to be normal: above the guard with a chance of at most exp(-1 / (2 error^2)). On each of the two
    machines the real part, the imaginary part or the size of a bin may be wrong: three chances for two
    values. That most of these change nothing, as the value lies near no edge, is left out.

    >>> chance_of_change(0.12, 42e6) < 1e-6 < chance_of_change(0.125, 42e6)
    True
    """
    return min(1.0, 3.0 * n_values * float(np.exp(-0.5 / max(error, 1e-9) ** 2)))


def heard(kind: str, array: MicArray, minutes: float, seed: int) -> Iterator[Frames]:
    """Frames of a kind of sound, as microphones of 16 bits would give them, batch by batch."""
    rng, rate, n = np.random.default_rng(seed), array.sample_rate, array.frame_length
    for _ in range(round(minutes * 6)):  # pieces of ten seconds
        at = np.arange(10 * rate)
        if kind == "silence":
            sound = np.zeros((array.n_mics, len(at)))
        elif kind == "tone":
            tone = 0.3 * np.sin(2 * np.pi * (rng.uniform(200, 3000) / rate * at + rng.uniform()))
            sound = np.stack([np.roll(tone, k) for k in range(array.n_mics)])
        else:
            voice = 0.05 * say(SyntheticVoices(), int(rng.integers(20)), 10.0, rate, rng)[: len(at)]
            shift = [0] * array.n_mics if kind == "copied channels" else rng.integers(0, 9, array.n_mics)
            sound = np.stack([np.roll(voice, int(k)) for k in shift])
            if kind == "speech":
                sound = sound + 1e-3 * rng.standard_normal(sound.shape)
        whole = (np.rint(np.clip(sound, -1, 1) * 32767) / 32768).astype(np.float32)
        cut = cut_into_frames(whole, n, n // 2)
        for first in range(0, len(cut), AT_ONCE):
            yield np.ascontiguousarray(cut[first : first + AT_ONCE])


def ffts(device: str) -> dict[str, Fft]:
    """FFTs by name, each of numpy arrays."""

    def by_torch(where: str) -> Fft:
        def rfft(y: NDArray[np.float64], axis: int = -1) -> NDArray[np.complex128]:
            return np.asarray(torch.fft.rfft(torch.from_numpy(y).to(where), dim=axis).cpu())

        return rfft

    found: dict[str, Fft] = {"scipy": scipy.fft.rfft, "numpy": np.fft.rfft, "torch cpu": by_torch("cpu")}
    return found | ({f"torch {device}": by_torch(device)} if device != "cpu" else {})


def looks(gcc: GccPhat, batch: Frames) -> Iterator[tuple[GccPhat, NDArray[np.float64]]]:
    """Windowed samples of the whole frames and of their windows."""
    yield gcc.whole, batch * phases.hamming(gcc.n_samples)
    n = gcc.window.n_samples
    for k in range(gcc.n_windows):
        yield gcc.window, batch[..., k * n // 2 : k * n // 2 + n] * phases.hamming(n)


def measure(kind: str, array: MicArray, minutes: float, device: str, seed: int) -> dict[str, Any]:
    """What the module says, of one kind of sound."""
    gcc, names = prior_gcc(array), ffts(device)
    found: dict[str, Any] = {"frames": 0, "values": 0, "decided": 0, "largest_over_guard": 0.0}
    pairs = [f"{a} / {b}" for a, b in combinations(names, 2)]
    found |= {"differ_without": dict.fromkeys(pairs, 0), "differ": dict.fromkeys(pairs, 0)}
    found["features_differ_in_torch"] = 0
    if EXTENDED:
        found["errors"] = dict.fromkeys(names, 0.0)
    settle = phases.settled

    def counted(y: NDArray[np.float64], k: int) -> tuple[int, int]:
        found["decided"] += 1
        return settle(y, k)

    for batch in heard(kind, array, minutes, seed):
        found["frames"] += len(batch)
        for part, y in looks(gcc, batch):
            with patch.object(phases, "settled", counted):
                exact = {"scipy": np.stack(phases.phases(y, *part.span, names["scipy"]))}
            exact |= {
                name: np.stack(phases.phases(y, *part.span, fft))
                for name, fft in names.items()
                if name != "scipy"
            }
            with patch.object(phases, "GUARD", 0.0):
                rounded = {n: np.stack(phases.phases(y, *part.span, fft)) for n, fft in names.items()}
            spectra = {name: fft(y, axis=-1) for name, fft in names.items()}
            peak = np.abs(spectra["scipy"].view(np.float64)).max(axis=-1, keepdims=True)
            found["values"] += exact["scipy"].size
            for pair, (a, b) in zip(pairs, combinations(names, 2), strict=True):
                found["differ_without"][pair] += int(np.count_nonzero(rounded[a] != rounded[b]))
                found["differ"][pair] += int(np.count_nonzero(exact[a] != exact[b]))
                apart = np.abs((spectra[a] - spectra[b]).view(np.float64))
                share = float((apart / np.where(peak > 0, peak, 1.0)).max()) / phases.GUARD
                found["largest_over_guard"] = max(found["largest_over_guard"], share)
            if EXTENDED:
                _note_errors(found["errors"], y, spectra)
        other = gcc(torch.from_numpy(batch).to(device)).cpu().numpy()
        found["features_differ_in_torch"] += int(np.count_nonzero(other != gcc(batch)))
    minutes_heard = found["frames"] * gcc.n_samples / 2 / array.sample_rate / 60
    found |= {"minutes": round(minutes_heard, 2), "decided_per_minute": found["decided"] / minutes_heard}
    if EXTENDED:
        largest = max(found["errors"].values())
        found["chance_of_change"] = chance_of_change(largest, found["values"] / minutes_heard)
    return found


def _note_errors(
    errors: dict[str, float], y: NDArray[np.float64], spectra: dict[str, NDArray[np.complex128]]
) -> None:
    """How far spectra of y (..., n) are from those in extended precision, over the guard."""
    true = scipy.fft.rfft(y.astype(np.longdouble), axis=-1)
    peak = np.maximum(np.abs(true.real).max(axis=-1), np.abs(true.imag).max(axis=-1))[..., None]
    guard = np.where(peak > 0, peak, 1.0) * phases.GUARD
    for name, X in spectra.items():
        apart = max(
            np.abs((part - its) / guard).max() for part, its in ((X.real, true.real), (X.imag, true.imag))
        )
        errors[name] = max(errors[name], float(apart))


def accuracies(array: MicArray, seed: int) -> dict[str, Any]:
    """Per cent within 5 degrees of the prior that ships, by number of talkers, with both features."""
    prior = Prior.load(shipped_priors()[array.name])
    simulation = Simulation.of_preset("quick", array, size=4.0, seed=seed)
    found: dict[str, Any] = {}
    for name, exact in (("exact", True), ("floats", False)):
        frames = simulate_features(simulation, "test", replace(prior.gcc, exact=exact))
        rows = [row for row in judge(prior, frames) if row.who == "prior"]
        n = {row.n_sources: row.n_frames for row in rows}
        acc = {row.n_sources: round(row.acc, 3) for row in rows}
        talkers = sum(k * n[k] * acc[k] for k in n) / sum(k * n[k] for k in n)
        found |= {"frames": n, name: acc | {"all talkers": round(talkers, 3)}}
    return found


def main() -> int:
    """Print what was measured; fails where exact values differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=2.0, help="of each kind of sound")
    parser.add_argument("--array", default="respeaker-usb-4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accuracy", action="store_true", help="of the shipped prior, instead")
    asked = parser.parse_args()
    start = time.perf_counter()
    if asked.accuracy:
        about = {"array": asked.array, "seed": asked.seed, "numpy": np.__version__}
        print(json.dumps(about | accuracies(load_array(asked.array), asked.seed), indent=1))
        return 0
    kinds = {k: measure(k, load_array(asked.array), asked.minutes, asked.device, asked.seed) for k in KINDS}
    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "torch": torch.__version__}
    about = vars(asked) | {"versions": versions, "guard": phases.GUARD}
    print(json.dumps(about | {"seconds": round(time.perf_counter() - start), "kinds": kinds}, indent=1))
    wrong = sum(sum(one["differ"].values()) + one["features_differ_in_torch"] for one in kinds.values())
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
