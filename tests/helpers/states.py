"""Sound, keys and states for tests of how states are kept."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tests.helpers.waves import plane_wave
from tytoalba.cli.keys import keys_at_hand
from tytoalba.localizer import store
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.keys import add_default_recipients, identity_path, make_identity, make_key_folder
from tytoalba.storage.ledger import Ledger, ledger_path
from tytoalba.storage.soundfiles import write_audio

ARRAY = "respeaker-usb-4"


def wave(azimuth: float, seconds: float = 1.0, seed: int = 0, array: MicArray | None = None) -> NDArray[Any]:
    """Noise from a direction and, fainter, from everywhere: (n_mics, n_samples)."""
    return plane_wave(array or load_array(ARRAY), azimuth, seconds, seed, 0.03, level=0.06)


def write_wave(path: Path, azimuth: float, seconds: float = 1.0, seed: int = 0) -> Path:
    write_audio(path, wave(azimuth, seconds, seed), load_array(ARRAY).sample_rate)
    return path


def settle(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Work in a folder with a home of its own, without anybody's keys."""
    for name in ("TYTO_IDENTITY", "TYTO_SIGNING_KEY", "TYTO_TRUSTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)


def move_in(source: Path, folder: Path) -> Path:
    """A copy of a folder with its home, in which it is as if it had been made there."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    if (remembered := folder / "home" / "tytoalba" / "remembered.json").exists():
        remembered.write_text(remembered.read_text().replace(str(source.resolve()), str(folder.resolve())))
    return folder


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its path; but for the list of what was met."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith("remembered")
    }


@dataclass(frozen=True)
class Kit:
    """A folder with a home and a key, and states that each learned one lesson, to be merged in no time."""

    folder: Path
    lessons: tuple[Localizer, ...]

    def add(self, path: Path, number: int) -> None:
        """Teach a state one of the lessons, as a step of its own."""
        with edit(path) as localizer:
            localizer.merge(self.lessons[number])

    def start(self) -> Localizer:
        """A state that learned nothing, and can learn the lessons."""
        return Localizer.like(self.lessons[0])


def make_kit(folder: Path) -> Kit:
    """The kit, and in its folder k.tyto, which learned the first two lessons; s.age, which did so sealed."""
    make_key_folder()
    add_default_recipients([make_identity(identity_path())])
    start = Localizer.new(ARRAY, n_features=100, seed=1)
    lessons = tuple(Localizer.like(start) for _ in range(3))
    for number, lesson in enumerate(lessons):
        lesson.teach(wave(40.0 * number + 15, 0.4, number), 40.0 * number + 15)
    kit = Kit(folder, lessons)
    for path in (folder / "k.tyto", folder / "s.age"):
        store.create(path, start, sealed=path.suffix == ".age")
        kit.add(path, 0)
        kit.add(path, 1)
    return kit


@pytest.fixture(scope="session")
def made_kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    folder = tmp_path_factory.mktemp("kit")
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        settle(patch, folder)
        return make_kit(folder)


@pytest.fixture
def kit(made_kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """A copy of the kit, to work in."""
    move_in(made_kit.folder, tmp_path)
    settle(monkeypatch, tmp_path)
    return Kit(tmp_path, made_kit.lessons)


def ledger_says(path: Path) -> tuple[list[str], str]:
    """What was done to a state, step by step, and whether that is true."""
    steps, verdict = opened(path).steps()
    return [step["what"] for step in steps], verdict


def read(path: Path) -> Localizer:
    """A state, with the keys of whose home this is."""
    return store.read(path, keys_at_hand())


def edit(path: Path) -> AbstractContextManager[Localizer]:
    """A state to change, with the keys of whose home this is."""
    return store.edit(path, keys_at_hand())


def opened(path: Path) -> store.Store:
    """A state to read or change, with the keys of whose home this is."""
    return store.open_store(path, keys_at_hand())


def exports_of(path: Path) -> list[dict[str, Any]]:
    """What the ledger of a state says of each export."""
    return [dict(e.about) for e in Ledger.open(ledger_path(path)).entries if e.what == "exported"]
