"""Simulated recordings as files: in the layout of SSLR, or as a plain labelled folder for any array."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import atan2, tau
from pathlib import Path

from tytoalba.data import folder as folder
from tytoalba.data import sslr as sslr
from tytoalba.data.recording import FRAME_LENGTH
from tytoalba.data.simulation.recordings import SimulatedRecording, Simulation
from tytoalba.errors import DataError
from tytoalba.storage.parallel import parallel_map

Progress = Callable[[int, int], None]


def write_sslr(
    simulation: Simulation, root: Path, *, processes: int = 1, on_progress: Progress | None = None
) -> None:
    """Write training, test and human parts as SSLR has them; SSLR knows no validation part, so neither do we.

    The first half of the rooms, and one more, go where SSLR has its room 106 (three of the twin's five
    training rooms, two of its three test rooms), the others to 301 (training) and library (test).
    """
    if (simulation.array.n_mics, simulation.array.frame_length) != (4, FRAME_LENGTH):
        raise DataError(
            f"the SSLR layout is 4 channels at 48 kHz; {simulation.array.name} has {simulation.array.n_mics} "
            f"at {simulation.array.sample_rate} Hz: use --layout folder, or --features"
        )
    names = {part.name for part in simulation.preset.parts}
    if unknown := sorted(names - {"train", "valid", "test", "human"}):
        raise DataError(f"SSLR has no part called {unknown[0]!r}: use --layout folder, or --features")
    _write(partial(_write_sslr_recording, simulation, root), simulation, ["valid"], processes, on_progress)


def write_folder(
    simulation: Simulation, root: Path, *, processes: int = 1, on_progress: Progress | None = None
) -> None:
    """Write every part as `data.folder` reads it."""
    folder.write_array(root, simulation.array)
    _write(partial(_write_folder_recording, simulation, root), simulation, [], processes, on_progress)


def _write(
    job: Callable[[tuple[int, int]], None],
    simulation: Simulation,
    without: list[str],
    processes: int,
    on_progress: Progress | None,
) -> None:
    names = [part.name for part in simulation.preset.parts]
    tasks = [task for task in simulation.tasks() if names[task[0]] not in without]
    for done, _ in enumerate(parallel_map(job, tasks, processes), 1):
        if on_progress:
            on_progress(done, len(tasks))


def _write_folder_recording(simulation: Simulation, root: Path, task: tuple[int, int]) -> None:
    made = simulation.recording(task)
    part = simulation.preset.parts[task[0]].name
    folder.write_recording(
        root, part, made.name, made.samples, simulation.array, made.frame_ids, made.azimuth
    )


def _write_sslr_recording(simulation: Simulation, root: Path, task: tuple[int, int]) -> None:
    part = simulation.preset.parts[task[0]]
    made = simulation.recording(task)
    first_rooms = task[1] % len(part.rooms) < max(1, len(part.rooms) // 2 + 1)
    subset = {
        "train": "lsp_train_106" if first_rooms else "lsp_train_301",
        "test": "lsp_test_106" if first_rooms else "lsp_test_library",
        "human": "human",
    }[part.name]
    frames = [(int(t), _sources(made, row)) for row, t in enumerate(made.frame_ids)]
    seconds = simulation.preset.seconds
    played = [
        (tuple(position.tolist()), f"speaker_{who}", 0.0, seconds, 1.0, who)
        for position, who in zip(made.positions[0], made.speakers, strict=True)
    ] if len(made.frame_ids) else []  # fmt: skip
    sslr.write_recording(
        root, subset, made.name, made.samples, simulation.array.sample_rate, frames, played,
        array=simulation.array,
    )  # fmt: skip


def _sources(made: SimulatedRecording, row: int) -> list[tuple[tuple[float, ...], int, int]]:
    talkers = zip(made.positions[row], made.talking[row], made.speakers, strict=True)
    sources = [(tuple(position.tolist()), sslr.SPEECH, who) for position, talks, who in talkers if talks]
    return sorted(sources, key=lambda source: atan2(source[0][1], source[0][0]) % tau)  # as made.azimuth is
