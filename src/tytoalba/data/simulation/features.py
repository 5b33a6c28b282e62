"""Features of simulated recordings, without their sound ever being stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tytoalba.data.features import FeatureSet, Piece, Progress, gather, recording_features
from tytoalba.data.simulation.noise import AnyNoise
from tytoalba.data.simulation.recordings import Simulation, as_recording
from tytoalba.signal.gcc import FULL_BAND, GccPhat
from tytoalba.storage.parallel import parallel_map


def simulate_features(
    simulation: Simulation,
    part: str,
    gcc: GccPhat | None = None,
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> FeatureSet:
    """Features of a simulated part without its sound ever being stored."""
    return simulate_noisy(simulation, part, [None], gcc, processes=processes, on_progress=on_progress)[0]


def simulate_noisy(
    simulation: Simulation,
    part: str,
    noises: Sequence[AnyNoise | None],
    gcc: GccPhat | None = None,
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> list[FeatureSet]:
    """Features of a simulated part under several noises (None: as it is), each recording made once."""
    array = simulation.array
    gcc = gcc or GccPhat.for_array(array, array.frame_length, FULL_BAND)
    tasks = simulation.tasks(part)
    parts = parallel_map(partial(_simulated_features, simulation, gcc, noises), tasks, processes)
    return gather(parts, [f"{part}_{i:05d}" for _, i in tasks], array, gcc, len(noises), on_progress)


def _simulated_features(
    simulation: Simulation, gcc: GccPhat, noises: Sequence[AnyNoise | None], task: tuple[int, int]
) -> Piece:
    made = simulation.recording(task)
    return recording_features(gcc, noises, as_recording(made, "", simulation.array))
