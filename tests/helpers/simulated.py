"""Voices without pauses, and what simulated recordings have in common, for tests of simulations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation.recordings import SimulatedRecording


@dataclass(frozen=True)
class Monotone:
    """Voices that never pause, or never speak."""

    level: float = 1.0
    n_speakers: int = 8

    def speak(self, speaker: int, n_samples: int, rng: np.random.Generator) -> NDArray[np.float32]:
        del speaker
        return (self.level * rng.standard_normal(n_samples)).astype(np.float32)


def same(a: SimulatedRecording, b: SimulatedRecording) -> bool:
    return (
        a.name == b.name
        and a.speakers == b.speakers
        and np.array_equal(a.samples, b.samples)
        and np.array_equal(a.frame_ids, b.frame_ids)
        and np.array_equal(a.positions, b.positions)
        and np.array_equal(a.talking, b.talking)
    )


def assert_16_bits(recording: SimulatedRecording, shape: tuple[int, int]) -> None:
    """Sound as a recorder gives it: float32 on the grid of 16 bits."""
    assert recording.samples.shape == shape
    assert recording.samples.dtype == np.float32
    steps = recording.samples.astype(np.float64) * 32768
    np.testing.assert_array_equal(steps, np.round(steps))
