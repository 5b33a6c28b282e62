"""Devices that are off their drawing, as sums, and simulated frames without a simulation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tytoalba.learning.sums import gaussian_labels
from tytoalba.localizer import worth
from tytoalba.localizer.offsets import Offsets, offset_curve, offsets_of


def rows(azimuth: NDArray[np.floating], heard: NDArray[np.floating]) -> NDArray[np.int8]:
    """Rows of frames with sources at `azimuth` (n, n_sources) that the prior hears at `heard`."""
    return np.concatenate([gaussian_labels(azimuth, 8.0, 360), gaussian_labels(heard, 8.0, 360)], axis=1)


def off_by(coefficients: NDArray[np.floating], n_lessons: int) -> Offsets:
    """Sums of lessons of ten frames each, of a device with this offset."""
    return _off_by(tuple(float(c) for c in coefficients), n_lessons)


@cache
def _off_by(coefficients: tuple[float, ...], n_lessons: int) -> Offsets:
    rng, total, curve = np.random.default_rng(1), Offsets.none(), offset_curve(np.array(coefficients))
    for _ in range(n_lessons):
        t = np.full((10, 1), rng.uniform(0, 360))
        total = total.plus(offsets_of(rows(t, t + curve[int(t[0, 0])] + rng.normal(0, 1, (10, 1)))))
    return total


def simulate_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated frames without a simulation: peaks, some of them off by a little."""
    rng = np.random.default_rng(0)
    azimuth = rng.uniform(0, 360, 150)
    maps = gaussian_labels((azimuth + rng.normal(0, 2.2, 150))[:, None], 8.0, 360) / np.float32(127)
    monkeypatch.setattr(worth, "simulated", lambda _: (maps.astype(np.float32), azimuth))
