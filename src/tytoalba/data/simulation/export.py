"""Simulated recordings as files: sound with labels in a folder, the layout of SSLR, or features."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from tytoalba.storage.files import read_json
from tytoalba.storage.parallel import parallel_map
from tytoalba.storage.writing import write_whole

LAYOUTS = ("folder", "sslr", "features")
BEGUN = ".begun.json"
"""In a folder that is not complete: of which recipe it is."""
Made = Callable[[Sequence[tuple[int, int]]], Iterator[SimulatedRecording]]
"""Makes the recordings of tasks, wherever that is, and gives them in order."""


def write_simulation(
    simulation: Simulation,
    folder: str | Path,
    layout: str = "folder",
    bands: Sequence[tuple[float, float]] = (),
    *,
    processes: int = 1,
    made: Made | None = None,
    on_progress: Progress | None = None,
) -> int:
    """Make all recordings, write them to a new or empty folder, and say how many they are.

    layout: "folder", as `data.folder` reads it; "sslr", as `data.sslr` does, for four microphones at 48 kHz;
    or "features", GCC-PHAT in one file per part and no sound. bands: Hz, for features; all frequencies if
    none is given. Whatever can be refused is refused before anything is made.

    SSLR has no validation part, so that layout leaves it out. The first half of the rooms, and one more, go
    where SSLR has its room 106 (three of the five training rooms of the preset twin, two of its three test
    rooms), the others to 301 (training) and library (test).

    processes: to simulate on; 0: one per core. made: gives the recordings of tasks in their stead, such as
    from other machines; then a folder that was begun by the same recipe is completed. Not for features.
    """
    folder = Path(folder)
    if layout not in LAYOUTS:
        raise DataError(f"no layout called {layout!r}; known: {', '.join(LAYOUTS)}")
    if bands and layout != "features":
        raise DataError("bands belong to features: sound has all its frequencies")
    if layout == "sslr":
        _check_sslr(simulation)
    begun = folder / BEGUN
    recipe = {"layout": layout, "recipe": simulation.digest}
    goes_on = made is not None and begun.is_file() and read_json(begun, error=DataError) == recipe
    if not goes_on and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is not empty; choose a new folder, so that nothing is mixed or lost")
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "features":
        _write_features(simulation, folder, bands, processes, on_progress)
        return simulation.preset.n_recordings
    tasks = simulation.tasks()
    write, is_there = _write_folder_recording, _is_in_folder
    if layout == "sslr":
        tasks = [task for task in tasks if simulation.preset.parts[task[0]].name != "valid"]
        write, is_there = _write_sslr_recording, _is_in_sslr
    else:
        labelled_folder.write_array(folder, simulation.array)
    if made is None:
        each: Iterable[object] = parallel_map(
            partial(_make_and_write, write, simulation, folder), tasks, processes
        )
        todo = tasks
    else:
        write_whole(begun, json.dumps(recipe).encode())
        todo = [task for task in tasks if not is_there(simulation, folder, task)]
        each = (write(simulation, folder, *one) for one in zip(todo, made(todo), strict=True))
    for done, _ in enumerate(each, len(tasks) - len(todo) + 1):
        if on_progress:
            on_progress(done, len(tasks))
    begun.unlink(missing_ok=True)
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


def _make_and_write(
    write: Callable[[Simulation, Path, tuple[int, int], SimulatedRecording], None],
    simulation: Simulation,
    root: Path,
    task: tuple[int, int],
) -> None:
    write(simulation, root, task, simulation.recording(task))


def _is_in_folder(simulation: Simulation, root: Path, task: tuple[int, int]) -> bool:
    """Whether the last file of a recording is there."""
    part = simulation.preset.parts[task[0]].name
    return (root / part / f"{part}_{task[1]:05d}.csv").is_file()


def _is_in_sslr(simulation: Simulation, root: Path, task: tuple[int, int]) -> bool:
    part = simulation.preset.parts[task[0]].name
    return (root / _sslr_subset(simulation, task) / "gt_file" / f"{part}_{task[1]:05d}.gt.pkl").is_file()


def _write_folder_recording(
    simulation: Simulation, root: Path, task: tuple[int, int], made: SimulatedRecording
) -> None:
    part = simulation.preset.parts[task[0]].name
    labelled_folder.write_recording(
        root, part, made.name, made.samples, simulation.array, made.frame_ids, made.azimuth
    )


def _sslr_subset(simulation: Simulation, task: tuple[int, int]) -> str:
    part = simulation.preset.parts[task[0]]
    first_rooms = task[1] % len(part.rooms) < max(1, len(part.rooms) // 2 + 1)
    return {
        "train": "lsp_train_106" if first_rooms else "lsp_train_301",
        "test": "lsp_test_106" if first_rooms else "lsp_test_library",
        "human": "human",
    }[part.name]


def _write_sslr_recording(
    simulation: Simulation, root: Path, task: tuple[int, int], made: SimulatedRecording
) -> None:
    subset = _sslr_subset(simulation, task)
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
