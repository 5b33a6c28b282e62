"""The network for every array, calibrated on arrays that it has not learned from and judged on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.data.simulation.acoustics import FAMILIES
from tytoalba.data.simulation.recordings import as_recording
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.voice import Voices
from tytoalba.errors import DataError
from tytoalba.learning.prior.confidence_fit import SceneMaps, fitted_confidence, scene_maps, talkative
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.judge import calibrations
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.shared.exact import CODE, Weights
from tytoalba.learning.prior.shared.frames import ArrayFrames
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.angles import Float, decode, decode_two
from tytoalba.signal.array import MicArray
from tytoalba.signal.metrics import bootstrap, match, within
from tytoalba.signal.music import Music
from tytoalba.signal.srp import SrpPhat
from tytoalba.storage.parallel import parallel_map

Answers = dict[int, dict[str, Float]]
"""Errors in degrees of each method in a scene, by number of sources: a row for each true source."""


def calibrated_weights(
    weights: Weights, paths: Sequence[str | Path], about: dict[str, Any], on_progress: Progress | None = None
) -> SharedWeights:
    """The network with the scale of its logits and its calibrations, from frames of arrays it has not met."""
    made = SharedWeights(weights, about, {})
    maps: list[tuple[Float, Float]] = []
    seen: list[NDArray[np.float32]] = []
    for done, path in enumerate(paths, 1):
        frames = ArrayFrames.load(path)
        array, prior = frames.array, made.prior(frames.array)
        X = (frames.codes / np.float32(CODE)).reshape(len(frames.codes), -1)
        logits = prior.logits(X)
        where = np.sort(np.asarray(array.fold(frames.azimuth), np.float64), axis=1)
        maps.append((array.without_images(scores(logits)), where))
        seen.append(logits)
        if on_progress:
            on_progress(done, len(paths))
    learned, where = (np.concatenate(parts) for parts in zip(*maps, strict=True))
    values = np.concatenate(seen)
    # the network is the same all around the circle: so is the scale
    scale = {"logit_mean": float(values.mean()), "logit_spread": float(values.std(axis=0).mean())}
    constants = {name: [float(f"{value:.4g}")] * values.shape[1] for name, value in scale.items()}
    return SharedWeights(weights, about, constants | calibrations(learned, where))


def trusted_weights(
    weights: SharedWeights,
    arrays: Sequence[MicArray],
    voices: Sequence[Voices],
    *,
    families: Sequence[str] = tuple(FAMILIES),
    n_scenes: int = 30,
    seed: int = 0,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> SharedWeights:
    """The network with how far its answers can be trusted, from scenes of arrays that it has not met.

    n_scenes: calm ones, and as many wild ones, of each array.
    """
    jobs = [
        (k, calm, len(arrays) * number + k)
        for number in range(n_scenes)
        for k in range(len(arrays))
        for calm in (True, False)
    ]
    work = partial(_heard, weights, tuple(arrays), tuple(voices), tuple(families), seed)
    found: list[SceneMaps] = []
    for scene in parallel_map(work, jobs, processes):
        found.append(scene)
        if on_progress:
            on_progress(len(found), len(jobs))
    own = {"confidence": fitted_confidence(found).to_dict()}
    return replace(weights, constants=weights.constants | own)


def _heard(
    weights: SharedWeights,
    arrays: Sequence[MicArray],
    voices: Sequence[Voices],
    families: Sequence[str],
    seed: int,
    job: tuple[int, bool, int],
) -> SceneMaps:
    index, calm, number = job
    prior = weights.prior(arrays[index])
    scenes = talkative(prior.array, voices, "valid", seed=seed, calm=calm, families=families)
    gcc = replace(prior.gcc, exact=True)
    return scene_maps(
        scenes,
        [lambda cut: scores(prior.logits(np.asarray(gcc(cut), np.float32).reshape(len(cut), -1)))],
        number,
    )[0]


@dataclass(frozen=True)
class Row:
    """How one method does on frames of one array with one number of sources.

    acc: per cent within 5 degrees; interval: of 95 %, by scene. mae: degrees.
    """

    array: str
    scenes: str
    n_sources: int
    who: str
    n_frames: int
    acc: float
    interval: tuple[float, float]
    mae: float


def judged(
    weights: SharedWeights,
    array: MicArray,
    voices: Sequence[Voices],
    *,
    own: Prior | None = None,
    n_scenes: int = 60,
    calm: bool = False,
    families: Sequence[str] = tuple(FAMILIES),
    speakers: str = "test",
    seed: int = 0,
    processes: int = 1,
) -> list[Row]:
    """SRP-PHAT, MUSIC, the network for every array and perhaps the array's own, on scenes of an array.

    The networks answer alone here: neither SRP-PHAT is blended in, nor a mirrored view.
    """
    scenes = Scenes(array, voices, tuple(families), speakers, seed, calm=float(calm))
    return rows_of(answered(weights, scenes, n_scenes, own=own, processes=processes), array.name, calm)


def answered(
    weights: SharedWeights,
    scenes: Scenes,
    n_scenes: int,
    *,
    own: Prior | None = None,
    processes: int = 1,
    on_progress: Progress | None = None,
) -> list[Answers]:
    """How far off they are in each of some scenes."""
    found: list[Answers] = []
    for answers in parallel_map(partial(_answers, weights, own, scenes), list(range(n_scenes)), processes):
        found.append(answers)
        if on_progress:
            on_progress(len(found), n_scenes)
    return found


def rows_of(parts: Sequence[Answers], name: str, calm: bool) -> list[Row]:
    """Each method and number of sources, over all scenes. name: of the array."""
    rows = []
    for n in (1, 2):
        own_parts = [(k, part[n]) for k, part in enumerate(parts) if n in part]
        if len(own_parts) < 2:
            continue
        scene = np.concatenate([np.full(len(errors["srp"]), k) for k, errors in own_parts])
        for who in own_parts[0][1]:
            errors = np.concatenate([part[who] for _, part in own_parts])
            right = 100.0 * within(errors)
            interval = bootstrap(right, np.repeat(scene, 1), rng=np.random.default_rng(0))
            rows.append(
                Row(
                    name,
                    "calm" if calm else "wild",
                    n,
                    who,
                    len(errors),
                    float(right.mean()),
                    (interval.low, interval.high),
                    float(errors.mean()),
                )
            )
    return rows


@dataclass(frozen=True)
class Gain:
    """By how many points one method finds more sources within 5 degrees than another, in the same scenes.

    interval: of 95 %, by scene.
    """

    points: float
    interval: tuple[float, float]

    @property
    def sure(self) -> bool:
        """Whether it is better, and not by chance."""
        return self.interval[0] > 0.0

    @classmethod
    def of(cls, parts: Sequence[Answers], who: str, other: str) -> Gain:
        """Of one method over another, over all sources of all scenes."""
        more, scene = list[Float](), list[NDArray[np.intp]]()
        for k, part in enumerate(parts):
            for errors in part.values():
                more.append(100.0 * (within(errors[who]).astype(float) - within(errors[other])))
                scene.append(np.full(len(errors[who]), k))
        if len({int(where[0]) for where in scene}) < 2:
            raise DataError("too few scenes in which somebody talks: judge on more")
        values = np.concatenate(more)
        interval = bootstrap(values, np.concatenate(scene), rng=np.random.default_rng(0))
        return cls(float(values.mean()), (interval.low, interval.high))


def _answers(weights: SharedWeights, own: Prior | None, scenes: Scenes, number: int) -> Answers:
    """Errors in degrees of each method in a scene, by number of sources: a row for each true source."""
    array = scenes.array
    recording = as_recording(scenes.recording(number), "", array)
    frames, azimuth = recording.frames(), np.asarray(array.fold(recording.azimuth), np.float64)
    count = np.isfinite(azimuth).sum(axis=1)
    shared = weights.prior(array)
    found: Answers = {}
    for n in (1, 2):
        rows = count == n
        if not rows.any():
            continue
        X = np.asarray(shared.gcc(frames[rows]), np.float32).reshape(int(rows.sum()), -1)
        maps = {
            "srp": SrpPhat(array)(frames[rows]),
            "music": Music(array, n_sources=n)(frames[rows]),
            "any": scores(shared.logits(X)),
        }
        if own is not None:
            maps["own"] = scores(own.logits(X))
        true = np.sort(azimuth[rows], axis=1)[:, :n]
        found[n] = {
            who: match(_decoded(array.without_images(each), n), true).ravel() for who, each in maps.items()
        }
    return found


def _decoded(maps: Float, n: int) -> Float:
    return decode(maps)[:, None] if n == 1 else decode_two(maps)
