"""How far a prior can be trusted: calibrated on scenes it has not learned from, and judged on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import FeatureSet, Progress
from tytoalba.data.simulation.stems import Stems
from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import Calibration, evidence, expected_calibration_error
from tytoalba.learning.prior.decisions import candidates, decide
from tytoalba.learning.prior.features import prior_gcc, scores
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.train import train_prior
from tytoalba.signal.angles import Float, decode, decode_two, distance
from tytoalba.signal.metrics import match, within

Who = Literal["srp", "prior"]


@dataclass(frozen=True)
class Judgement:
    """How well one way of answering does on frames of one number of sources.

    acc: per cent within 5 degrees. mae: degrees. calibration_error: of the confidence, 0 for SRP-PHAT.
    """

    who: Who
    n_sources: int
    n_frames: int
    acc: float
    mae: float
    calibration_error: float


def calibrated(prior: Prior, held: FeatureSet, device: str = "cpu") -> Prior:
    """The prior with calibrations, fitted on scenes and speakers that it has not learned from."""
    learned, _, where = _maps_of(prior, held, device)
    constants = calibrations(learned, where)
    return replace(prior, constants=prior.constants | constants)


def calibrations(learned: Float, where: Float) -> dict[str, Any]:
    """Calibrations of a prior's maps (n_frames, 360), in frames whose sources are known.

    where: (n_frames, 2) degrees, NaN last; frames in which nobody talks count for telling how many do.
    """
    for n in (1, 2):
        if (rows := int((np.isfinite(where).sum(axis=1) == n).sum())) < 20:
            raise DataError(f"only {rows} frames with {n} sources to calibrate on: simulate more scenes")
    return {"counting": [calibration.to_dict() for calibration in _counting(learned, where)]}


def judge(prior: Prior, frames: FeatureSet, device: str = "cpu") -> list[Judgement]:
    """SRP-PHAT and the prior, on frames of one and of two sources."""
    rows = []
    learned, fallback, where = _maps_of(prior, frames, device)
    for n in (1, 2):
        here = frames.n_sources == n
        if not here.any():
            continue
        true = where[here, :n]
        sure = decide(learned[here], prior.confidence, n)
        answers: list[tuple[Who, Float, Float | None]] = [
            ("srp", _found(fallback[here], n), None),
            ("prior", sure.azimuth, sure.probability),
        ]
        for who, azimuth, probability in answers:
            errors = match(azimuth, true)
            right = within(errors)
            off = 0.0
            if probability is not None:
                off = expected_calibration_error(probability.ravel(), right.ravel())
            rows.append(Judgement(who, n, len(true), 100 * float(right.mean()), float(errors.mean()), off))
    return rows


def by_family(frames: FeatureSet, families: Sequence[str]) -> dict[str, FeatureSet]:
    """Simulated frames, taken apart into the families of acoustics that their scenes took in turn."""
    number = np.array([int(name.rpartition("_")[2]) for name in frames.names])
    turn = number[frames.recording] % len(families)
    return {
        family: frames.select(np.isin(turn, [k for k, name in enumerate(families) if name == family]))
        for family in dict.fromkeys(families)
    }


def leave_one_out(
    stems: Stems,
    n_frames: int,
    held: dict[str, FeatureSet],
    strange: dict[str, FeatureSet],
    *,
    seed: int = 0,
    device: str = "cpu",
    on_progress: Progress | None = None,
    **how: Any,
) -> dict[str, list[Judgement]]:
    """Judge a recipe: for each family a prior that never saw it, on scenes of that family.

    stems: to learn from. held, strange: scenes of each family to calibrate on and to be judged on.
    how: for `train_prior`.
    """
    from tytoalba.data.simulation.mixer import Mixer

    judged = {}
    for done, family in enumerate(stems.families, 1):
        others = [name for name in stems.families if name != family]
        if not others:
            raise DataError("leaving a family out needs at least two of them")
        mixer = Mixer(stems.only(others), prior_gcc(stems.array), seed=seed, device=device)
        prior = train_prior(mixer, n_frames, seed=seed, **how)
        prior = calibrated(prior, joined([held[name] for name in others]), device)
        judged[family] = judge(prior, strange[family], device)
        if on_progress:
            on_progress(done, len(stems.families))
    return judged


def joined(sets: Sequence[FeatureSet]) -> FeatureSet:
    """Several sets of frames of the same array as one."""
    first = sets[0]
    starts = np.cumsum([0, *(len(s.names) for s in sets)])
    return replace(
        first,
        X=np.concatenate([s.X for s in sets]),
        azimuth=np.concatenate([_two_columns(s.azimuth) for s in sets]),
        recording=np.concatenate(
            [s.recording + start for s, start in zip(sets, starts, strict=False)], dtype=np.int32
        ),
        frame=np.concatenate([s.frame for s in sets]),
        names=tuple(name for s in sets for name in s.names),
    )


def _maps_of(prior: Prior, frames: FeatureSet, device: str) -> tuple[Float, Float, Float]:
    """Maps of the prior and of SRP-PHAT (n_frames, 360), and azimuths (n_frames, 2), NaN last.

    What the array cannot tell from its mirror image counts as the same.
    """
    array = prior.array
    learned, fallback = _scores(prior, frames.flat, device), prior.srp_maps(frames.flat)
    azimuth = _two_columns(array.fold(frames.azimuth))
    return array.without_images(learned), array.without_images(fallback), azimuth


def _scores(prior: Prior, X: NDArray[np.float32], device: str) -> NDArray[np.float32]:
    """The same to the bit on any device; a GPU is a hundred times faster."""
    if device == "cpu":
        return np.asarray(scores(prior.logits(X)))
    import torch

    parts = [scores(prior.logits(part.to(device))).cpu() for part in torch.split(torch.tensor(X), 8192)]
    return np.asarray(torch.cat(parts).numpy())


def _found(maps: Float, n: int) -> Float:
    return decode(maps)[:, None] if n == 1 else decode_two(maps)


def _counting(maps: Float, true: Float) -> list[Calibration]:
    """How far the highest peak, and the next, can be trusted to be a source, however many there are."""
    found = candidates(maps, 2)
    apart = distance(found[:, :, None], true[:, None])  # (n_frames, peaks, sources)
    near = within(apart)
    near[:, 1] &= ~near[:, 0]  # a source is found once
    strength = evidence(maps, found)
    there = np.isfinite(found)
    return [Calibration.fit(strength[there[:, k], k], near[there[:, k], k].any(axis=1)) for k in (0, 1)]


def _two_columns(azimuth: Float) -> Float:
    """Directions sorted, NaN last, as (n_frames, 2)."""
    missing = max(0, 2 - azimuth.shape[1])
    return np.sort(np.pad(azimuth, ((0, 0), (0, missing)), constant_values=np.nan), axis=1)
