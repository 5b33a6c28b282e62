"""What a private release is worth, on simulated frames alone: nothing here may see what was taught.

The noisy sums tell the offset of the device and how far that can be wrong. So the device is one of many:
those are drawn, simulated frames are heard as each of them would hear them, and prior and release answer.
The correction is made smaller until, for 99 of 100 such devices, the release is at most half a point below
the prior; one that is not better on average is not made at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.prior import Prior
from tytoalba.localizer.offsets import COUNT, MEAN, STEPS, Float, Whole, moved, offset_curve
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import MicArray
from tytoalba.signal.metrics import within

USUAL = np.array([3.0, 2.0, 2.0])
"""Degrees by which devices are off from their drawing, each coefficient: 3 to be turned, 2 to be bent."""
SPREAD = {"lesson": 3.0, "person": 3.0, "frame": 13.0}
"""Degrees by which a lesson or a frame may lie beside the offset: rooms, and people who point roughly. Frames
of a lesson have that in common, so a frame counts as a twentieth of a lesson."""
SURE = 3.0
"""Standard deviations of the noise above which the sums are believed to show a direction at all."""
SEED, N_RECORDINGS, SECONDS = 20_190, 30, 2.0
"""Of the simulated frames; no prior was trained or calibrated with this seed."""
N_DEVICES, N_KNOWN, SHRUNK, MOST_BELOW, LEAST = 200, 20, (1.0, 0.75, 0.5, 0.25), 0.5, 0.1
"""Devices that are drawn, and those that a model without noise is shown on; parts of the correction that are
tried; points that a release may be below the prior for 99 of 100 devices, and must be above it on average."""


@dataclass(frozen=True)
class Estimate:
    """Coefficients (3,) of the offset in degrees, and their covariance (3, 3)."""

    coefficients: Float
    covariance: Float


@dataclass(frozen=True)
class Worth:
    """ACC5 in per cent on simulated frames of one source, of devices that are off as the noisy sums say.

    prior, release: means over devices. without_noise: if the offset were known. low, high: points that the
    release is above the prior, of 5 and of 95 in 100 devices. as_drawn: points that the release is above the
    prior (mostly below) on a device that is exactly as drawn. kept: part of the correction that was kept.
    n_frames: how many were simulated.
    """

    prior: float
    release: float
    without_noise: float
    low: float
    high: float
    as_drawn: float
    kept: float
    n_frames: int

    @property
    def is_better(self) -> bool:
        """Whether the release is better than the untaught prior."""
        return self.kept > 0


def estimate(sums: Whole, sigma: int, unit: str) -> Estimate:
    """The offset that noisy sums (8,) tell, by least squares against what is usual. sigma: of the noise."""
    scale = MEAN * STEPS
    v, a = sums[:3] / scale, sums[3:] / (scale * COUNT)
    of_v, of_a = sigma / scale, sigma / (scale * COUNT)
    n, c2, s2, c4, s4 = a
    A = np.array([[n, c2, s2], [c2, (n + c4) / 2, s4 / 2], [s2, s4 / 2, (n - c4) / 2]])
    size, axes = np.linalg.eigh(A)
    A = (axes * np.where(size > SURE * of_a, size, 0.0)) @ axes.T  # what noise alone may be says nothing
    noise = of_v**2 + of_a**2 * float((USUAL**2).sum())
    inverse = np.linalg.inv(noise * np.eye(3) + SPREAD[unit] ** 2 * A)
    covariance = np.linalg.inv(A @ inverse @ A + np.diag(USUAL**-2.0))
    return Estimate(covariance @ A @ inverse @ v, covariance)


def judged(found: Estimate, prior: Prior) -> tuple[Float, Worth]:
    """The coefficients (3,) to release, smaller than found or zero where that is better; and their worth."""
    maps, azimuth = simulated(prior)
    rng = np.random.default_rng(SEED)  # public: the same devices each time
    drawn = rng.multivariate_normal(found.coefficients, found.covariance, N_DEVICES)
    true = _heard_from(azimuth, drawn)
    acc, before = partial(_acc, prior.array), decode(maps)
    of_prior = acc(before, true)
    known = [acc(decode(moved(maps, offset_curve(drawn[k]))), true[k]) for k in range(N_KNOWN)]
    nothing = Worth(
        float(of_prior.mean()), float(of_prior.mean()), float(np.mean(known)), 0.0, 0.0, 0.0, 0.0, len(maps)
    )
    for part in SHRUNK:
        after = decode(moved(maps, offset_curve(part * found.coefficients)))
        gain = acc(after, true) - of_prior
        worst, low, high = (float(q) for q in np.quantile(gain, (0.01, 0.05, 0.95)))
        if worst >= -MOST_BELOW and gain.mean() >= LEAST:
            release = nothing.prior + float(gain.mean())
            as_drawn = float(acc(after, azimuth) - acc(before, azimuth))
            worth = replace(nothing, release=release, low=low, high=high, as_drawn=as_drawn, kept=part)
            return part * found.coefficients, worth
    return np.zeros(3), nothing


def simulated(prior: Prior) -> tuple[NDArray[np.float32], Float]:
    """The prior's scores (n_frames, 360) of simulated frames of its array as drawn, and their directions.

    One source; nothing that was taught is in them. Made once in a process.
    """
    key = prior.digest.tobytes() + prior.array.to_toml().encode()
    if key not in _made:
        simulation = Simulation.of_preset("quick", prior.array, seed=SEED)
        part = replace(simulation.preset.parts[1], n_recordings=N_RECORDINGS)
        preset = replace(simulation.preset, parts=(part,), seconds=SECONDS, two_sources=0.0)
        frames = simulate_features(replace(simulation, preset=preset), part.name, prior.gcc)
        _made.clear()
        _made[key] = np.asarray(scores(prior.logits(frames.flat)), np.float32), frames.azimuth[:, 0]
    return _made[key]


_made: dict[bytes, tuple[NDArray[np.float32], Float]] = {}


def _heard_from(azimuth: Float, devices: Float) -> Float:
    """Where sound really is that devices (n_devices, 3) hear at `azimuth` (n,): t + offset(t) = azimuth.

    Returns (n_devices, n).
    """
    c0, c1, c2 = (devices[:, [k]] for k in range(3))
    true = np.broadcast_to(azimuth, (len(devices), len(azimuth)))
    for _ in range(4):
        twice = np.deg2rad(2 * true)
        true = azimuth - (c0 + c1 * np.cos(twice) + c2 * np.sin(twice))
    return np.asarray(true % 360.0)


def _acc(array: MicArray, found: Float, true: Float) -> Float:
    """Per cent of the frames (..., n) that are found within 5 degrees."""
    return np.asarray(100.0 * within(distance(array.fold(found), array.fold(true))).mean(axis=-1))
