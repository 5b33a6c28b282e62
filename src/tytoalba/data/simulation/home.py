"""A home: one device at a fixed place in a room, and people who talk at directions around it.

Everything is drawn from the random generator that is given, in a fixed order, so the same generator gives
the same recordings to the bit. Units: metres, seconds, degrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tytoalba.data.simulation.microphones import ANY, Conditions, recorded, varied
from tytoalba.data.simulation.room import (
    Placement,
    Room,
    Sound,
    Vector,
    diffuse_noise,
    loudness,
    room_response,
)
from tytoalba.signal.array import MicArray

Range = tuple[float, float]


@dataclass(frozen=True)
class Home:
    """A device in a room, and directions around it.

    device: the array as it was built. late: the array whose coherence diffuse sound has.
    azimuth: directions at equal distances, (n_directions,). mismatch: seed of the differences between the
    microphones, which are the same in every recording. conditions: how large these may be.
    """

    device: MicArray
    late: MicArray
    room: Room
    placement: Placement
    azimuth: Vector
    mismatch: int
    conditions: Conditions = ANY

    @classmethod
    def draw(
        cls,
        array: MicArray,
        n_directions: int,
        rng: np.random.Generator,
        *,
        smallest: tuple[float, float],
        rt60: Callable[[np.random.Generator], float],
        late: MicArray | None = None,
        conditions: Conditions = ANY,
    ) -> Home:
        """Draw a home; the array stands near the middle of its room, one metre above the floor.

        smallest: length and width of the smallest room. rt60: draws the reverberation time. late: the array
        whose coherence diffuse sound has, instead of one with the pattern that was drawn.
        """
        device, alike = varied(array, rng, conditions)
        x, y, z = (float(v) for v in rng.uniform([*smallest, 2.4], [8.0, 6.0, 3.2]))
        room = Room((x, y, z), float(rt60(rng)))
        off = rng.uniform(-0.4, 0.4, 2)
        centre = (float(x / 2 + off[0]), float(y / 2 + off[1]), 1.0)
        placement = Placement(centre, float(rng.uniform(0, 360)))
        azimuth = (rng.uniform(0, 360) + np.arange(n_directions) * 360.0 / n_directions) % 360.0
        return cls(device, late or alike, room, placement, azimuth, int(rng.integers(2**63)), conditions)

    def talker(self, azimuth: float, rng: np.random.Generator, *, nearest: float, heights: Range) -> Vector:
        """A place for a talker at an azimuth: at least `nearest` metres from the array and from each wall."""
        angle = np.deg2rad(azimuth)
        far = rng.uniform(nearest, min(self.room.size[:2]) / 2 - nearest)
        return np.array([far * np.cos(angle), far * np.sin(angle), rng.uniform(*heights)])

    def response(self, talker: Vector, rng: np.random.Generator) -> Sound:
        """Impulse responses from a talker to each microphone, (n_mics, n_samples)."""
        return room_response(self.room, self.device, self.placement, talker, rng, late_array=self.late)

    def recording(self, speech: Sound, snr: Range, rng: np.random.Generator) -> Sound:
        """What the device records of sound at its microphones, (n_mics, n_samples); snr: limits in dB."""
        noise = diffuse_noise(self.late, speech.shape[1], rng, 1.0)
        noisy = speech + noise / loudness(noise) * loudness(speech) * 10 ** (-rng.uniform(*snr) / 20)
        own = np.random.default_rng(self.mismatch)
        return recorded(self.device, np.asarray(noisy, np.float32), own, self.conditions)
