"""Fitting how far directions can be trusted: on simulated scenes with one, two and three talkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.simulation.acoustics import FAMILIES
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.voice import Voices
from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import evidence
from tytoalba.learning.prior.confidence import MOST, Confidence, Law
from tytoalba.learning.prior.decisions import candidates, count_sources, decide
from tytoalba.signal.angles import Float, distance
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import SILENCE_DB, Framer, rms
from tytoalba.signal.metrics import match, within
from tytoalba.signal.neighbours import Neighbours

CONTEXTS = (0, 1, 2, 4, 8)
"""Neighbours on each side that laws are fitted with."""
FIRST = 0.25
"""Least chance of the strongest direction to be told where the number of sources is unknown."""
LEAST = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6)
"""Least chances of the others that are tried."""
FEWEST = 20
"""Frames that a law needs, with one, two and three talkers each."""

Bool = NDArray[np.bool_]
MapsOf = Callable[[NDArray[np.float32]], Float]
"""Frames (n_frames, n_mics, n_samples) to scores (n_frames, 360)."""


@dataclass(frozen=True, eq=False)
class SceneMaps:
    """The scores of all frames of a scene.

    maps: (n_frames, 360), of single frames. loud: which are no silence. azimuth: (n_frames, 3) degrees of who
    talks, NaN last. known: where it is certain who does.
    """

    maps: Float
    loud: Bool
    azimuth: Float
    known: Bool

    def averaged(self, context: int) -> tuple[Float, NDArray[np.intp], Float]:
        """Mean maps, how many frames each is of, and azimuths: of loud frames whose talkers are known."""
        neighbours = Neighbours(context)
        means = neighbours.add([m if loud else None for m, loud in zip(self.maps, self.loud, strict=True)])
        means += neighbours.rest()
        rows = np.flatnonzero(self.loud & self.known)
        maps = np.array([means[k].maps for k in rows], self.maps.dtype).reshape(-1, self.maps.shape[1])
        return maps, np.array([means[k].n for k in rows], np.intp), self.azimuth[rows]


def talkative(
    array: MicArray,
    voices: Sequence[Voices],
    speakers: str,
    *,
    seed: int = 0,
    calm: bool = False,
    families: Sequence[str] = tuple(FAMILIES),
) -> Scenes:
    """Scenes of which a third has one talker, a third two, a third three."""
    share = 1 / MOST
    return Scenes(
        array,
        voices,
        tuple(families),
        speakers,
        seed,
        two_sources=share,
        three_sources=share,
        calm=float(calm),
    )


def scene_maps(scenes: Scenes, ways: Sequence[MapsOf], number: int) -> list[SceneMaps]:
    """The scores that each of some ways gives the frames of a scene."""
    array, made = scenes.array, scenes.recording(number)
    cut = Framer(array.frame_length, array.frame_length // 2).add(made.samples)
    azimuth, known = np.full((len(cut), MOST), np.nan), np.zeros(len(cut), np.bool_)
    there = np.asarray(array.fold(made.azimuth), np.float64)
    azimuth[made.frame_ids, : there.shape[1]], known[made.frame_ids] = there, True
    azimuth = np.sort(azimuth, axis=1)
    loud = 20 * np.log10(rms(cut, axis=(1, 2)) + 1e-12) >= SILENCE_DB
    return [SceneMaps(array.without_images(way(cut)), loud, azimuth, known) for way in ways]


def fitted_confidence(scenes: Sequence[SceneMaps]) -> Confidence:
    """The laws that fit scenes, over all contexts at once, and from which chance on a further peak counts.

    These last are those that count one, two and three talkers best, each number as important as another.
    """
    maps, n, true = gathered(scenes, CONTEXTS)
    talking = np.isfinite(true).sum(axis=1)
    if (rarest := int(np.bincount(talking, minlength=MOST + 1)[1:].min())) < FEWEST:
        raise DataError(
            f"only {rarest} frames with one, two or three talkers to fit on: simulate more scenes"
        )
    laws = Confidence((NO_LAW,) * MOST, (NO_LAW,) * MOST, (0.0,) * MOST)
    asked = []
    for k in range(1, MOST + 1):
        rows = talking == k
        found = decide(maps[rows], laws, k).azimuth
        there = np.isfinite(found)
        right = right_directions(found, true[rows])
        frames = np.broadcast_to(n[rows, None], found.shape)
        asked.append(Law.fit(evidence(maps[rows], found)[there], frames[there], right[there]))
    found = candidates(maps)
    strength, right, there = evidence(maps, found), sources_found(found, true), np.isfinite(found)
    counted = [Law.fit(strength[t, k], n[t], right[t, k]) for k, t in enumerate(there.T)]
    fitted = Confidence(tuple(asked), tuple(counted), (0.0,) * MOST)
    chance = np.nan_to_num(count_sources(maps, fitted, n).probability)
    pairs = product(LEAST, LEAST)
    best = max(pairs, key=lambda pair: counted_right(n_counted(chance, (FIRST, *pair)), talking).mean())
    return replace(fitted, least=(FIRST, *best))


def gathered(scenes: Sequence[SceneMaps], contexts: Sequence[int]) -> tuple[Float, NDArray[np.intp], Float]:
    """`SceneMaps.averaged` of all scenes, with each of some contexts."""
    parts = [scene.averaged(context) for context in contexts for scene in scenes]
    maps, n, true = (np.concatenate(each) for each in zip(*parts, strict=True))
    return maps, n, true


def right_directions(found: Float, true: Float) -> Bool:
    """Which of the directions (n_frames, k) are within 5 degrees of a source of their own, if k talk."""
    if not len(found):
        return np.zeros(found.shape, np.bool_)
    k = found.shape[1]
    errors = match(np.where(np.isnan(found), found[:, :1] + 180.0, found), true[:, :k])
    return np.asarray(within(errors))


def sources_found(found: Float, true: Float) -> Bool:
    """Which candidates (n_frames, 3), strongest first, are within 5 degrees of a source, found once each."""
    near = within(distance(found[:, :, None], true[:, None]))  # (n_frames, peaks, sources)
    for k in range(1, found.shape[1]):
        near[:, k] &= ~near[:, :k].any(axis=1)
    return np.asarray(near.any(axis=2))


def n_counted(chance: Float, least: Sequence[float]) -> NDArray[np.intp]:
    """How many of the candidates count whose chances (n_frames, 3) these are."""
    return np.asarray(np.cumprod(chance >= np.array(least), axis=1).sum(axis=1), np.intp)


def counted_right(counted: NDArray[np.intp], talking: NDArray[np.intp]) -> Float:
    """Share of the frames in which one, two, three talk that are counted right, (3,); NaN without frames."""
    return np.array(
        [np.mean(counted[talking == k] == k) if (talking == k).any() else np.nan for k in range(1, MOST + 1)]
    )


NO_LAW = Law((0.0,) * 5)
"""Before anything is known: even chances."""
