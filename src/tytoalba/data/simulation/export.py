"""Simulated recordings as files: sound with labels in a folder, the layout of SSLR, or features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import atan2, tau
from pathlib import Path

from tytoalba.data import folder as labelled_folder
from tytoalba.data import sslr
from tytoalba.data.features import Progress
from tytoalba.data.recording import FRAME_LENGTH
from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.recordings import SimulatedRecording, Simulation
from tytoalba.errors import DataError
from tytoalba.signal.gcc import FULL_BAND, GccPhat
from tytoalba.storage.parallel import parallel_map

LAYOUTS = ("folder", "sslr", "features")


def write_simulation(
    simulation: Simulation,
    folder: str | Path,
    layout: str = "folder",
    bands: Sequence[tuple[float, float]] = (),
    *,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> int:
    """Make all recordings, write them to a new or empty folder, and say how many they are.

    layout: "folder", as `data.folder` reads it; "sslr", as `data.sslr` does, for four microphones at 48 kHz;
    or "features", GCC-PHAT in one file per part and no sound. bands: Hz, for features; all frequencies if
    none is given. Whatever can be refused is refused before anything is made.

    SSLR has no validation part, so that layout leaves it out. The first half of the rooms, and one more, go
    where SSLR has its room 106 (three of the five training rooms of the preset twin, two of its three test
    rooms), the others to 301 (training) and library (test).
    """
    folder = Path(folder)
    if layout not in LAYOUTS:
        raise DataError(f"no layout called {layout!r}; known: {', '.join(LAYOUTS)}")
    if bands and layout != "features":
        raise DataError("bands belong to features: sound has all its frequencies")
    if layout == "sslr":
        _check_sslr(simulation)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is not empty; choose a new folder, so that nothing is mixed or lost")
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "features":
        _write_features(simulation, folder, bands, processes, on_progress)
        return simulation.preset.n_recordings
    tasks = simulation.tasks()
    write = _write_folder_recording
    if layout == "sslr":
        tasks = [task for task in tasks if simulation.preset.parts[task[0]].name != "valid"]
        write = _write_sslr_recording
    else:
        labelled_folder.write_array(folder, simulation.array)
    for done, _ in enumerate(parallel_map(partial(write, simulation, folder), tasks, processes), 1):
        if on_progress:
            on_progress(done, len(tasks))
    return len(tasks)


def _check_sslr(simulation: Simulation) -> None:
    array = simulation.array
    if (array.n_mics, array.frame_length) != (4, FRAME_LENGTH):
        raise DataError(
            f"the SSLR layout is 4 channels at 48 kHz; {array.name} has {array.n_mics} at "
            f"{array.sample_rate} Hz: use --layout folder, or --features"
        )
    names = {part.name for part in simulation.preset.parts}
    if unknown := sorted(names - {"train", "valid", "test", "human"}):
        raise DataError(f"SSLR has no part called {unknown[0]!r}: use --layout folder, or --features")


def _write_features(
    simulation: Simulation,
    root: Path,
    bands: Sequence[tuple[float, float]],
    processes: int,
    on_progress: Progress | None,
) -> None:
    array, before, total = simulation.array, 0, simulation.preset.n_recordings
    chosen = bands[0] if len(bands) == 1 else tuple(bands) or FULL_BAND
    gcc = GccPhat.for_array(array, array.frame_length, chosen)
    for part in simulation.preset.parts:

        def report(done: int, _: int, before: int = before) -> None:
            if on_progress:
                on_progress(before + done, total)

        made = simulate_features(simulation, part.name, gcc, processes=processes, on_progress=report)
        made.save(root / f"{part.name}.safetensors")
        before += part.n_recordings


def _write_folder_recording(simulation: Simulation, root: Path, task: tuple[int, int]) -> None:
    made = simulation.recording(task)
    part = simulation.preset.parts[task[0]].name
    labelled_folder.write_recording(
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
    rate = simulation.array.sample_rate
    sslr.write_recording(root, subset, made.name, made.samples, rate, frames, played)


def _sources(made: SimulatedRecording, row: int) -> list[tuple[tuple[float, ...], int, int]]:
    talkers = zip(made.positions[row], made.talking[row], made.speakers, strict=True)
    sources = [(tuple(position.tolist()), sslr.SPEECH, who) for position, talks, who in talkers if talks]
    return sorted(sources, key=lambda source: atan2(source[0][1], source[0][0]) % tau)  # as made.azimuth is
