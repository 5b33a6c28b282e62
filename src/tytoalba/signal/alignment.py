"""Whether two arrays are the same microphones: in another order, turned, shifted, measured a little wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.array import MicArray

NEAR = 1e-3
"""Metres by which each microphone may miss its place."""
SAME = 1e-6
"""Metres: of fits that are as good to this, the first by order of microphones wins, on every machine."""


class Fit(NamedTuple):
    """How the microphones of an array are those of another, `built`.

    order: which of the array's is at each place of the other. turn: degrees; what comes from azimuth a for
    the other comes from a + turn, as the array is mounted.
    """

    order: tuple[int, ...]
    turn: float

    def in_order(self, frames: NDArray[Any]) -> NDArray[Any]:
        """Frames (n_frames, n_mics, n_samples) with the microphones in the order of the other."""
        same = self.order == tuple(range(len(self.order)))
        return frames if same else frames[:, self.order]


def fit(built: MicArray, array: MicArray, near: float = NEAR) -> Fit | None:
    """How the microphones of `array` are those of `built`; None where they are not.

    Up to the order, a turn about the vertical, a shift, and `near` metres of each microphone. A mirrored
    array is another one, unless it is symmetric.
    """
    if same_places(built, replace(array, yaw=0.0)):
        return Fit(tuple(range(array.n_mics)), array.yaw)
    if built.sample_rate != array.sample_rate or built.n_mics != array.n_mics:
        return None
    theirs, mine = (places - places.mean(axis=0) for places in (built.coordinates, array.coordinates))
    a, b = (places[:, 0] + 1j * places[:, 1] for places in (theirs, mine))  # a turn is a factor
    far = int(np.abs(a).argmax())
    found: list[tuple[float, Fit]] = []
    for place in b[np.abs(b) > near]:  # where the farthest may have come to
        apart = np.hypot(np.abs(_unit(place / a[far]) * a[:, None] - b), theirs[:, 2:] - mine[:, 2])
        order = apart.argmin(axis=1)
        turn = _unit(np.vdot(a, b[order]))
        missed = np.hypot(np.abs(turn * a - b[order]), theirs[:, 2] - mine[order, 2]).max()
        if missed <= near and len(set(order.tolist())) == array.n_mics:
            degrees = round(float(np.rad2deg(np.angle(turn))), 6) % 360.0
            found.append((float(missed), Fit(tuple(order.tolist()), degrees)))
    least = min((missed for missed, _ in found), default=0.0)
    return min((how for missed, how in found if missed <= least + SAME), default=None)


def _unit(z: complex) -> complex:
    return z / max(abs(z), 1e-12)


def same_places(a: MicArray, b: MicArray) -> bool:
    """Whether microphones, their order, sample rate and mounting agree, to 0.2 mm."""
    return (
        a.sample_rate == b.sample_rate
        and a.coordinates.shape == b.coordinates.shape
        and bool(np.allclose(a.coordinates, b.coordinates, atol=2e-4))
    )
