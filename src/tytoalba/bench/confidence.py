"""Whether priors know how sure they are, and how many talk, with any number of frames averaged.

Simulated scenes, calm and wild, with one, two and three talkers who talk all the time. Scenes of the part
"valid" have the speakers that laws of confidence are fitted on, in other rooms; those of "test" have others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tytoalba.data.simulation.acoustics import FAMILIES
from tytoalba.data.simulation.voice import choose_voices
from tytoalba.errors import TytoError
from tytoalba.learning.prior.calibration import expected_calibration_error
from tytoalba.learning.prior.confidence import MOST, Confidence
from tytoalba.learning.prior.confidence_fit import (
    CONTEXTS,
    MapsOf,
    SceneMaps,
    counted_right,
    gathered,
    right_directions,
    scene_maps,
    sources_found,
    talkative,
)
from tytoalba.learning.prior.decisions import count_sources, decide
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import both_sides, find_prior, shared_weights
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.parallel import parallel_map

WHO = ("own", "any")
"""The prior of an array's own, and the one for every array."""
COLUMNS = {
    "said": "mean probability of the directions",
    "right": "share of them within 5 degrees of a talker",
    "error": "expected calibration error of the probabilities, 0 to 1",
    "counted": "share of the frames with one, two and three talkers in which as many are told",
    "unsure": "share of the same frames in which no direction is told, but that somebody is there",
}
Maps = dict[tuple[str, str, str], list[SceneMaps]]
"""Of each array, kind of scenes and prior the scores of scenes."""
Job = tuple[MicArray, bool, int]
"""An array, whether the scene is calm, and its number."""


def measure_confidence(
    arrays: Sequence[MicArray | str | Path] = ("respeaker-usb-4",),
    *,
    part: str = "valid",
    n_scenes: int = 30,
    contexts: Sequence[int] = CONTEXTS,
    families: Sequence[str] = tuple(FAMILIES),
    seed: int = 0,
    speech: str | Path | None = None,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """How sure priors are beside how often they are right, over all arrays together; plain, for JSON.

    n_scenes: calm ones, and as many wild ones, for each array.
    """
    mics = [one if isinstance(one, MicArray) else load_array(one) for one in arrays]
    possible = part in ("valid", "test") and 1 <= n_scenes < 10_000 and min(contexts, default=-1) >= 0
    if not possible or not mics or seed < 0:
        raise TytoError(
            "parts are valid and test, scenes 1 to 9999, contexts and seed 0 or more, arrays at least one; "
            f"got {part}, {n_scenes}, {list(contexts)}, {seed} and {len(mics)}"
        )
    maps = simulated_maps(
        mics,
        part=part,
        n_scenes=n_scenes,
        families=families,
        seed=seed,
        speech=speech,
        processes=processes,
        on_progress=on_progress,
    )
    laws = {(array.name, who): prior.confidence for array in mics for who, prior in priors_of(array).items()}
    rows = []
    for who in WHO:
        for kind in ("calm", "wild"):
            groups = [
                (laws[name, w], scenes) for (name, k, w), scenes in maps.items() if (k, w) == (kind, who)
            ]
            if groups:
                rows += [{"prior": who, "scenes": kind, **_row(groups, context)} for context in contexts]
    return {
        "arrays": [array.name for array in mics],
        "part": part,
        "families": list(families),
        "speech": "synthetic" if speech is None else Path(speech).name,
        "seed": seed,
        "scenes": n_scenes,
        "columns": COLUMNS,
        "rows": rows,
    }


def simulated_maps(
    arrays: Sequence[MicArray],
    *,
    part: str,
    n_scenes: int,
    families: Sequence[str] = tuple(FAMILIES),
    seed: int = 0,
    speech: str | Path | None = None,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Maps:
    """Scores of the priors of arrays in calm and wild scenes, others for each array."""
    jobs = [
        (array, calm, n_scenes * index + k)
        for index, array in enumerate(arrays)
        for calm in (True, False)
        for k in range(n_scenes)
    ]
    work = partial(_heard, part, tuple(families), seed, speech)
    found: Maps = {}
    for done, ((array, calm, _), each) in enumerate(
        zip(jobs, parallel_map(work, jobs, processes), strict=True), 1
    ):
        for who, scene in each.items():
            found.setdefault((array.name, "calm" if calm else "wild", who), []).append(scene)
        if on_progress:
            on_progress(done, len(jobs))
    return found


def priors_of(array: MicArray) -> dict[str, Prior]:
    """The prior of an array's own, if it has one, and the one for every array."""
    plain = replace(array, yaw=0.0)
    own = find_prior(plain)
    return ({} if own is None else {"own": own}) | {"any": shared_weights().prior(plain)}


def _heard(
    part: str,
    families: tuple[str, ...],
    seed: int,
    speech: str | Path | None,
    job: tuple[MicArray, bool, int],
) -> dict[str, SceneMaps]:
    array, calm, number = job
    plain, priors = replace(array, yaw=0.0), priors_of(array)
    scenes = talkative(plain, [choose_voices(speech)], part, seed=seed, calm=calm, families=families)
    ways = [_way(prior) for prior in priors.values()]
    return dict(zip(priors, scene_maps(scenes, ways, number), strict=True))


def _way(prior: Prior) -> MapsOf:
    gcc = replace(prior.gcc, exact=True)

    def way(cut: Float) -> Float:
        X = np.asarray(gcc(cut), np.float32).reshape(len(cut), -1)
        maps = both_sides(prior, X)
        return np.maximum(maps, prior.lone_waves(X, maps))

    return way


def _row(groups: Sequence[tuple[Confidence, list[SceneMaps]]], context: int) -> dict[str, Any]:
    """Of all groups (each with its laws) with one context."""
    asked: dict[str, tuple[list[Any], list[Any]]] = {}
    told, talking = [], []
    for confidence, scenes in groups:
        maps, n, true = gathered(scenes, [context])
        there = np.isfinite(true).sum(axis=1)
        for k in range(1, MOST + 1):
            rows = there == k
            found = decide(maps[rows], confidence, k, n[rows])
            real = np.isfinite(found.azimuth)
            said, right = asked.setdefault(str(k), ([], []))
            said.append(found.probability[real])
            right.append(right_directions(found.azimuth, true[rows])[real])
        found = count_sources(maps, confidence, n)
        real = np.isfinite(found.azimuth)
        said, right = asked.setdefault("auto", ([], []))
        said.append(found.probability[real])
        right.append(sources_found(found.azimuth, true)[real])
        told.append(real.sum(axis=1))
        talking.append(there)
    counted, number = np.concatenate(told), np.concatenate(talking)
    unsure = np.where(counted == 0, number, 0)
    shares = {name: counted_right(n, number) for name, n in (("counted", counted), ("unsure", unsure))}
    return {
        "context": context,
        "frames": [int((number == k).sum()) for k in range(1, MOST + 1)],
        "asked": {
            k: _trust(np.concatenate(said), np.concatenate(right)) for k, (said, right) in asked.items()
        },
        **{name: [_short(share) for share in each] for name, each in shares.items()},
    }


def _trust(said: Float, right: Float) -> dict[str, float | None]:
    if not len(said):
        return dict.fromkeys(("said", "right", "error"))
    error = expected_calibration_error(said, right)
    return {"said": _short(said.mean()), "right": _short(right.mean()), "error": _short(error)}


def _short(value: float) -> float | None:
    """As it is printed; nothing for a mean of nothing."""
    return None if np.isnan(value) else round(float(value), 4)
