"""Features on a cluster are those of one machine, in a file of the same bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.test_extraction import ARRAY, write_folder
from tests.helpers.workers import Job, StandIn
from tytoalba.data import extraction
from tytoalba.data.extraction import Extraction, extract_to_file
from tytoalba.data.source import FolderSource, open_source
from tytoalba.errors import ClusterError, ClusterLostError, DataError, SealError
from tytoalba.learning.cluster import features, given_keys
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.cluster.features import on_workers
from tytoalba.storage.keys import make_identity, read_identities
from tytoalba.storage.sealed import seal_file


def write(made: Extraction, path: Path, workers: StandIn, **options: Any) -> bytes:
    extract_to_file(made, path, worked=partial(on_workers, workers, made), **options)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def pieces_of_16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "PIECE", 16)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("features") / "data")


def alone(made: Extraction, path: Path, **options: Any) -> bytes:
    extract_to_file(made, path, **options)
    return path.read_bytes()


def test_the_file_is_the_same_whoever_worked_on_it(root: Path, tmp_path: Path) -> None:
    made = Extraction.of(FolderSource(root), [(100.0, 1000.0), (1000.0, 8000.0)])
    wanted = alone(made, tmp_path / "alone")
    assert write(made, tmp_path / "one", StandIn(1, n_threads=1)) == wanted
    with pytest.raises(ClusterLostError):
        write(made, tmp_path / "two", StandIn(2, n_threads=3, lost_after=4))
    workers = StandIn(3, twice=True)
    assert write(made, tmp_path / "two", workers) == wanted
    assert workers.count("piece") < 5


def test_of_simulations(tmp_path: Path) -> None:
    made = Extraction.of(open_source("simulated:quick", "test", array=ARRAY.name, size=0.06), exact=False)
    assert write(made, tmp_path / "one", StandIn()) == alone(made, tmp_path / "alone")


def test_sealed_recordings_need_a_worker_with_a_key(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data")
    public = make_identity(tmp_path / "key")
    for file in (root / "train").iterdir():
        seal_file(file, file.with_name(file.name + ".age"), [public])
        file.unlink()
    keys = read_identities(tmp_path / "key")
    made = Extraction.of(FolderSource(root), keys=keys)
    options: dict[str, Any] = {"keys": keys, "plain": True}
    with pytest.raises(ClusterError, match="none of the workers was given a key"):
        write(made, tmp_path / "f", StandIn(has_keys=False), **options)
    extraction._read.clear()
    with pytest.raises(SealError, match="no key was given"):
        write(made, tmp_path / "f", StandIn(), **options)
    given_keys.give(keys)
    try:
        assert write(made, tmp_path / "f", StandIn(), **options) == alone(made, tmp_path / "alone", **options)
    finally:
        given_keys.give(None)
        extraction._read.clear()


CHANGES: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda _: {},
    lambda a: a | {"X": a["X"].astype(np.float64)},
    lambda a: a | {"X": a["X"][:-1]},
    lambda a: a | {"X": a["X"] * np.nan},
    lambda a: a | {"azimuth": a["azimuth"].astype(np.float32)},
    lambda a: a | {"frame": a["frame"][:, None]},
    lambda a: {name: np.concatenate([values] * 9) for name, values in a.items()},
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_answers_are_checked_when_they_arrive(number: int, root: Path, tmp_path: Path) -> None:
    def change(_: Job, data: bytes) -> bytes:
        arrays = read_answer(data, features.KIND, 2**30)[1]
        return answer(features.KIND, {}, CHANGES[number](arrays))

    made = Extraction.of(FolderSource(root, "test"))
    with pytest.raises(ClusterError, match="features of another kind"):
        write(made, tmp_path / "f", StandIn(change=change))
    assert not (tmp_path / "f").exists()


def test_files_that_differ_for_a_worker_are_refused(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data")
    made, wav = Extraction.of(FolderSource(root, "test")), root / "test" / "r0.wav"
    seen = features._stamps([wav])

    def told(stamps: list[features.Stamp]) -> None:
        features._require_same([list(stamp) for stamp in stamps])

    told(seen)
    os.utime(wav, (1, 1))
    with pytest.raises(DataError, match="is another file for a worker"):
        told(seen)
    wav.unlink()
    with pytest.raises(DataError, match="every machine needs the data under the same path"):
        told(seen)
    with pytest.raises((DataError, OSError)):
        write(made, tmp_path / "f", StandIn())
