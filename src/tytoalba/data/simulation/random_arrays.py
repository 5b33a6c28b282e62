"""Arrays drawn at random, to train and judge one network for all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import ArrayError
from tytoalba.signal.alignment import fit
from tytoalba.signal.array import MicArray, builtin_arrays

N_MICS = (3, 12)
APERTURE = (0.03, 0.3)
"""Metres between the farthest microphones."""
RATES = (16000, 16000, 16000, 48000, 16000, 44100, 8000, 24000, 32000, 48000)
"""Hz; most devices record at 16 kHz."""
KINDS = ("circle", "plane", "plane", "rectangle", "solid", "circle", "line")
CLOSEST = 0.008
"""Metres between two microphones at least, or a third of the usual distance where many stand close."""
APART = 2e-3
"""Metres: an array whose microphones are all this near to those of a built-in one is drawn again."""
TRIES = 1000

Places = NDArray[np.float64]


def random_array(seed: int, number: int) -> MicArray:
    """Array `number` of a seed: 3 to 12 microphones on a circle, a line, a rectangle, scattered or in space.

    Never a built-in array, nor one whose microphones are within 2 mm of one, turned, mirrored or shifted.

    >>> random_array(0, 0) == random_array(0, 0)
    True
    """
    rng = np.random.default_rng([0x61727261, seed, number])
    for _ in range(TRIES):
        array = _drawn(rng, f"random-{seed}-{number}")
        if array is not None and not _is_built_in(array):
            return array
    raise ArrayError(f"no random array {number} of seed {seed} could be drawn")  # pragma: no cover


def _drawn(rng: np.random.Generator, name: str) -> MicArray | None:
    kind = KINDS[int(rng.integers(len(KINDS)))]
    n = int(rng.integers(N_MICS[0], N_MICS[1] + 1))
    aperture = float(np.exp(rng.uniform(*np.log(APERTURE))))
    places = _places(kind, n, rng)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    places *= aperture / apart.max()
    apart *= aperture / apart.max()
    np.fill_diagonal(apart, np.inf)
    if apart.min() < min(CLOSEST, aperture / n / 1.5):
        return None
    places -= places.mean(axis=0)
    turn = rng.uniform(0, 2 * np.pi)
    places[:, :2] = places[:, :2] @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    places = np.round(places[rng.permutation(n)], 5)
    pattern, facing = 1.0, (0.0,)
    if rng.random() < 0.3:
        pattern = round(float(rng.uniform(0.5, 0.9)), 2)
        outward = np.rad2deg(np.arctan2(places[:, 1], places[:, 0]))
        facing = tuple(np.round(outward + rng.normal(0, 5, n), 1).tolist())
        if rng.random() < 0.3:  # as on the front of a loudspeaker or a screen
            facing = (round(float(rng.uniform(0, 360)), 1),)
    rate = RATES[int(rng.integers(len(RATES)))]
    return MicArray(name, tuple(map(tuple, places.tolist())), rate, pattern=pattern, facing=facing)


def _places(kind: str, n: int, rng: np.random.Generator) -> Places:
    """Places (n, 3) of any size."""
    if kind == "circle":
        centre = n > 3 and rng.random() < 0.3
        angle = np.arange(n - centre) * (2 * np.pi / (n - centre))
        angle = angle + rng.normal(0, 0.15 if rng.random() < 0.5 else 0.0, n - centre)
        ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(n - centre)], axis=1)
        return np.concatenate([ring, np.zeros((int(centre), 3))])
    if kind == "line":
        even = np.arange(n, dtype=float) + rng.normal(0, 0.2 if rng.random() < 0.5 else 0.0, n)
        return np.stack([even, np.zeros(n), np.zeros(n)], axis=1)
    if kind == "rectangle":
        across = int(rng.integers(2, max(3, n // 2 + 1)))
        grid = np.stack([np.arange(n) // across, np.arange(n) % across, np.zeros(n)], axis=1).astype(float)
        made = grid * [1.0, rng.uniform(0.5, 2.0), 1.0] + rng.normal(0, 0.05, (n, 3)) * [1, 1, 0]
        return np.asarray(made, np.float64)
    places = rng.normal(size=(n, 3)) if rng.random() < 0.5 else rng.uniform(-1, 1, (n, 3))
    return places * [1.0, rng.uniform(0.3, 1.0), rng.uniform(0.1, 0.8) if kind == "solid" else 0.0]


@lru_cache(maxsize=1)
def _built_in() -> tuple[MicArray, ...]:
    """Built-in arrays and their mirror images."""
    arrays = [replace(array, yaw=0.0) for array in builtin_arrays().values()]
    mirrored = [
        replace(array, positions=tuple((x, -y, z) for x, y, z in array.positions)) for array in arrays
    ]
    return (*arrays, *mirrored)


def _is_built_in(array: MicArray) -> bool:
    return any(
        fit(replace(built, sample_rate=array.sample_rate), array, APART) is not None for built in _built_in()
    )
