"""Recordings simulated on a cluster: a worker gets a recipe and a number, and answers with the recording."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from tytoalba.data.simulation.recordings import SimulatedRecording, Simulation
from tytoalba.data.source import SimulatedSource, described_source
from tytoalba.errors import ClusterError
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.cluster.mapping import Asked, in_order
from tytoalba.learning.cluster.workers import Workers
from tytoalba.storage.tensors import Arrays

KIND = "recording"
STEPS = 2.0**15
"""Sound has 16 bits, and travels so."""
Task = tuple[int, int]


def made_on(workers: Workers, source: SimulatedSource, tasks: Sequence[Task]) -> Iterator[SimulatedRecording]:
    """The recordings of tasks, in order, made by a cluster; `write_simulation` takes it as `made`."""
    simulation = source.simulation
    told = json.dumps(source.described() | {"digest": simulation.digest})
    calls = (Asked(f"{told} {p} {i}", (told, p, i)) for p, i in tasks)
    largest = 4 * simulation.array.n_mics * simulation.n_samples + 2**20
    for (p, i), data in zip(tasks, in_order(workers, recording, calls), strict=True):
        header, arrays = read_answer(data, KIND, largest)
        name = f"{simulation.preset.parts[p].name}_{i:05d}"
        yield _checked(simulation, name, header, arrays)


@lru_cache(maxsize=2)
def _simulation(told: str) -> Simulation:
    table = json.loads(told)
    digest = table.pop("digest")
    source = described_source(table)
    if not isinstance(source, SimulatedSource) or source.simulation.digest != digest:
        raise ClusterError("a worker has other speech, or another version: every machine needs the same")
    return source.simulation


def recording(told: str, part: int, number: int) -> bytes:
    """On a worker: one recording."""
    made = _simulation(told).recording((part, number))
    header = {"name": made.name, "speakers": list(made.speakers)}
    samples = (made.samples * np.float32(STEPS)).astype(np.int16)
    arrays: Arrays = {"samples": samples, "frame_ids": np.asarray(made.frame_ids, np.int64)}
    arrays |= {"positions": np.asarray(made.positions, np.float64), "talking": made.talking}
    return answer(KIND, header, arrays)


def _checked(
    simulation: Simulation, name: str, header: dict[str, object], arrays: Arrays
) -> SimulatedRecording:
    speakers = header.get("speakers")
    right = header.get("name") == name and isinstance(speakers, list)
    right = right and arrays.keys() == {"samples", "frame_ids", "positions", "talking"}
    if right and isinstance(speakers, list):
        n, k = len(arrays["frame_ids"]), len(speakers)
        wanted = {
            "samples": (np.int16, (simulation.array.n_mics, simulation.n_samples)),
            "frame_ids": (np.int64, (n,)),
            "positions": (np.float64, (n, k, 3)),
            "talking": (np.bool_, (n, k)),
        }
        right = all(
            arrays[key].dtype == dtype and arrays[key].shape == shape
            for key, (dtype, shape) in wanted.items()
        )
        right = right and all(type(one) is int for one in speakers)
    if not right or not isinstance(speakers, list):
        raise ClusterError("a worker answered with another recording: are all of one version?")
    samples = arrays["samples"].astype(np.float32) / np.float32(STEPS)
    ids = arrays["frame_ids"].astype(np.intp)
    return SimulatedRecording(name, samples, ids, arrays["positions"], arrays["talking"], tuple(speakers))
