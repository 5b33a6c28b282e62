"""Where labelled recordings come from, so that any of them can be worked on by itself, on any machine.

A source is plain: it can be written as JSON and made again from that, and lists its recordings before it
reads or makes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from tytoalba.data.datasets import known_dataset
from tytoalba.data.recording import Listed, Recording
from tytoalba.data.simulation.recordings import Simulation, as_recording
from tytoalba.errors import DataError
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.age import Keys, is_sealed

SIMULATED = "simulated:"


class DataSource(Protocol):
    """Labelled recordings, by the order in which they are listed."""

    def listed(self) -> Sequence[Listed]:
        """All recordings; nothing of them was read or made."""

    def recording(self, listed: Listed, keys: Keys = None) -> Recording:
        """One of them."""

    def array_of(self, keys: Keys = None) -> tuple[MicArray, int]:
        """The array, and the length of a frame in samples."""

    def spans(self, listed: Listed, n_frames: int, keys: Keys = None) -> list[tuple[int, int | None]]:
        """First and last labelled frame (exclusive; None: the end) of each piece to be worked on alone."""

    def sealed(self, listed: Listed) -> bool:
        """Whether any of its files is sealed."""

    def files(self, listed: Listed) -> list[Path]:
        """The files that it depends on."""

    def described(self) -> dict[str, Any]:
        """The source as JSON; `described_source` makes it again."""


@dataclass(frozen=True)
class FolderSource:
    """A data set on the disk. part: only recordings of that part."""

    root: Path
    part: str | None = None

    def listed(self) -> Sequence[Listed]:
        """All recordings of the part."""
        found = [
            one for one in known_dataset(self.root).listing(self.root) if self.part in (None, one.subset)
        ]
        if not found:
            raise DataError(f"{self.root} has no recordings of part {self.part!r}")
        return found

    def recording(self, listed: Listed, keys: Keys = None) -> Recording:
        """One of them, its labels read."""
        return known_dataset(self.root).read(self.root, listed, keys)

    def array_of(self, keys: Keys = None) -> tuple[MicArray, int]:
        """The array of the first recording, and the length of its frames."""
        first = self.recording(self.listed()[0], keys)
        return first.array, first.frame_length

    def spans(self, listed: Listed, n_frames: int, keys: Keys = None) -> list[tuple[int, int | None]]:
        """Pieces of a recording; its labels are read."""
        return list(self.recording(listed, keys).spans(n_frames))

    def sealed(self, listed: Listed) -> bool:
        """Whether any of its files is sealed."""
        return any(is_sealed(file) for file in self.files(listed))

    def files(self, listed: Listed) -> list[Path]:
        """Its sound and its labels, and the file of the array where there is one."""
        return known_dataset(self.root).files(self.root, listed)

    def described(self) -> dict[str, Any]:
        """The folder by its path, which must be the same on every machine."""
        return {"folder": str(self.root.resolve()), "part": self.part}


@dataclass(frozen=True)
class SimulatedSource:
    """Recordings that are simulated when they are asked for. preset, size...: as `Simulation.of_preset`."""

    preset: str
    array: MicArray | None = None
    part: str | None = None
    size: float = 1.0
    moving: float = 0.0
    speech: Path | None = None
    seed: int = 0

    @cached_property
    def simulation(self) -> Simulation:
        """What makes them."""
        return Simulation.of_preset(
            self.preset, self.array, size=self.size, moving=self.moving, speech=self.speech, seed=self.seed
        )

    def listed(self) -> Sequence[Listed]:
        """All recordings of the part."""
        parts = self.simulation.preset.parts
        return [
            Listed(parts[p].name, f"{parts[p].name}_{i:05d}") for p, i in self.simulation.tasks(self.part)
        ]

    def recording(self, listed: Listed, keys: Keys = None) -> Recording:  # noqa: ARG002 - nothing is sealed
        """Make one of them."""
        names = [part.name for part in self.simulation.preset.parts]
        task = names.index(listed.subset), int(listed.file.rpartition("_")[2])
        return as_recording(self.simulation.recording(task), listed.subset, self.simulation.array)

    def array_of(self, keys: Keys = None) -> tuple[MicArray, int]:  # noqa: ARG002
        """The array, and the length of its frames."""
        return self.simulation.array, self.simulation.array.frame_length

    def spans(self, listed: Listed, n_frames: int, keys: Keys = None) -> list[tuple[int, int | None]]:  # noqa: ARG002
        """A simulated recording is one piece."""
        return [(0, None)]

    def sealed(self, listed: Listed) -> bool:  # noqa: ARG002
        """No file, no seal."""
        return False

    def files(self, listed: Listed) -> list[Path]:  # noqa: ARG002
        """None: they are made of the recipe alone, and of the speech."""
        return []

    def described(self) -> dict[str, Any]:
        """The recipe; the folder of speech must be the same on every machine."""
        return {
            "preset": self.preset,
            "array": self.simulation.array.to_toml(),
            "part": self.part,
            "size": self.size,
            "moving": self.moving,
            "speech": None if self.speech is None else str(self.speech.resolve()),
            "seed": self.seed,
        }


def described_source(told: dict[str, Any]) -> FolderSource | SimulatedSource:
    """The source of which `described` told."""
    if "folder" in told:
        return FolderSource(Path(told["folder"]), told["part"])
    speech = None if told["speech"] is None else Path(told["speech"])
    array = MicArray.from_toml(told["array"])
    return SimulatedSource(**{**told, "array": array, "speech": speech})


def open_source(
    data: str,
    part: str | None = None,
    *,
    array: str | None = None,
    size: float = 1.0,
    speech: Path | None = None,
    seed: int = 0,
) -> FolderSource | SimulatedSource:
    """A source by its name: "simulated:PRESET", or a folder of any data set that is known.

    array, size, speech, seed: for simulations; recordings name their array themselves.
    """
    if data.startswith(SIMULATED):
        mics = None if array is None else load_array(array)
        preset = data.removeprefix(SIMULATED)
        return SimulatedSource(preset, mics, part, size, speech=speech, seed=seed)
    if array is not None or speech is not None or size != 1.0 or seed:
        raise DataError(f"{data} is not a simulation: leave out --array, --size, --speech and --seed")
    return FolderSource(Path(data).expanduser(), part)
