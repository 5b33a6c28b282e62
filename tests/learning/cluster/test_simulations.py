"""Recordings that a cluster simulates are those that one machine writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.states import contents
from tests.helpers.workers import Job, StandIn
from tytoalba.data.simulation.export import write_simulation
from tytoalba.data.source import SimulatedSource
from tytoalba.errors import ClusterError, ClusterLostError, DataError
from tytoalba.learning.cluster import simulations
from tytoalba.learning.cluster.answers import answer, perform, read_answer
from tytoalba.learning.cluster.simulations import made_on
from tytoalba.signal.array import load_array

SMALL = SimulatedSource("quick", load_array("respeaker-usb-4"), None, 0.03, seed=2)


def write(folder: Path, workers: StandIn, source: SimulatedSource = SMALL, layout: str = "folder") -> int:
    return write_simulation(source.simulation, folder, layout, made=partial(made_on, workers, source))


@pytest.mark.parametrize("layout", ["folder", "sslr"])
def test_the_files_are_the_same(layout: str, tmp_path: Path) -> None:
    array = load_array("pepper") if layout == "sslr" else SMALL.array
    source = SimulatedSource("quick", array, None, 0.03, seed=2)
    write_simulation(source.simulation, tmp_path / "one", layout)
    with pytest.raises(ClusterLostError):
        write(tmp_path / "many", StandIn(lost_after=2, in_turn=True), source, layout)
    workers = StandIn(1, twice=layout == "folder")
    assert write(tmp_path / "many", workers, source, layout) == (4 if layout == "folder" else 3)
    assert workers.count("recording") < 4
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_nothing_is_mixed(tmp_path: Path) -> None:
    with pytest.raises(ClusterLostError):
        write(tmp_path / "a", StandIn(lost_after=1, in_turn=True))
    other = SimulatedSource("quick", SMALL.array, None, 0.03, seed=3)
    with pytest.raises(DataError, match="is not empty"):
        write(tmp_path / "a", StandIn(), other)
    with pytest.raises(DataError, match="is not empty"):
        write_simulation(SMALL.simulation, tmp_path / "a")


CHANGES: Sequence[dict[str, Any]] = [
    {"samples": np.zeros((4, 9), np.int16)},
    {"samples": np.zeros((4, 64000), np.float32)},
    {"positions": np.zeros((1, 1, 3))},
    {"more": np.zeros(1)},
]


@pytest.mark.parametrize("number", range(len(CHANGES) + 1))
def test_answers_are_checked_when_they_arrive(number: int, tmp_path: Path) -> None:
    def change(_: Job, data: bytes) -> bytes:
        header, arrays = read_answer(data, simulations.KIND, 2**30)
        header = {key: header[key] for key in ("name", "speakers")}
        more = CHANGES[number] if number < len(CHANGES) else {}
        return answer(simulations.KIND, header if more else header | {"name": "other"}, arrays | more)

    with pytest.raises(ClusterError, match="another recording"):
        write(tmp_path / "a", StandIn(change=change))


def test_a_worker_with_other_speech_says_so(tmp_path: Path) -> None:
    def change(job: Job, _: bytes) -> bytes:
        told, p, i = job.arguments
        return perform(simulations.recording, told.replace('"seed": 2', '"seed": 3'), p, i)

    with pytest.raises(ClusterError, match="every machine needs the same"):
        write(tmp_path / "a", StandIn(change=change))
