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
from tytoalba.learning.prior.decisions import Blend, candidates, mixed_maps
from tytoalba.learning.prior.features import prior_gcc, scores
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.train import train_prior
from tytoalba.signal.angles import Float, decode, decode_two, distance
from tytoalba.signal.metrics import hits, match, within

SRP_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""How much of SRP-PHAT's map may be added to the prior's scores; the first of the best on held-out scenes."""
MARGINS = (1.0, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.0)
"""By how much SRP-PHAT may have to be surer to be believed; the last that costs little on held-out scenes."""
LITTLE = 0.001
"""Share of hits there. All that talks in these scenes is people; of other sounds priors know less."""
Who = Literal["srp", "prior", "blend"]


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
    constants = calibrations(*_maps_of(prior, held, device))
    return replace(prior, constants=prior.constants | constants)


def calibrations(learned: Float, fallback: Float, where: Float) -> dict[str, Any]:
    """Calibrations of a prior's maps and SRP-PHAT's (n_frames, 360), in frames whose sources are known.

    where: (n_frames, 2) degrees, NaN last; frames in which nobody talks count for telling how many do.
    """
    blends = {}
    for n in (1, 2):
        rows = np.isfinite(where).sum(axis=1) == n
        if rows.sum() < 20:
            raise DataError(
                f"only {rows.sum()} frames with {n} sources to calibrate on: simulate more scenes"
            )
        blends[str(n)] = _best_blend(learned[rows], fallback[rows], where[rows, :n]).to_dict()
    counting = [calibration.to_dict() for calibration in _counting(learned, where)]
    return {"blends": blends, "counting": counting}


def _best_blend(learned: Float, fallback: Float, true: Float) -> Blend:
    """How to blend two maps of frames (n_frames, 360) whose sources `true` (n_frames, n) are known.

    Margins are tried on the half of the frames, in their order, that calibrations were not fitted on: on
    their own scenes these can look better than they are, and SRP-PHAT be believed too readily.
    """
    n = true.shape[1]
    mixed = [mixed_maps(learned, fallback, weight) for weight in SRP_WEIGHTS]
    best = int(np.argmax([_hits(_found(maps, n), true) for maps in mixed]))

    def fitted(rows: NDArray[np.bool_]) -> Blend:
        trusted, second = (_calibration(maps[rows], true[rows]) for maps in (mixed[best], fallback))
        return Blend(trusted, second, weight=SRP_WEIGHTS[best])

    found = np.empty((len(MARGINS), *true.shape))
    first = np.arange(len(true)) < len(true) // 2
    for half in (first, ~first):
        other = fitted(~half)
        for k, margin in enumerate(MARGINS):
            found[k, half] = replace(other, margin=margin)(learned[half], fallback[half], n).azimuth
    shares = np.array([_hits(one, true) for one in found])
    margin = MARGINS[np.flatnonzero(shares >= shares.max() - LITTLE)[-1]]
    return replace(fitted(np.ones(len(true), np.bool_)), margin=margin)


def judge(prior: Prior, frames: FeatureSet, device: str = "cpu") -> list[Judgement]:
    """SRP-PHAT, the prior, and both blended by confidence, on frames of one and of two sources."""
    rows = []
    learned, fallback, where = _maps_of(prior, frames, device)
    for n in (1, 2):
        here = frames.n_sources == n
        if not here.any():
            continue
        true = where[here, :n]
        blended = prior.blend(n)(learned[here], fallback[here], n)
        answers: list[tuple[Who, Float, Float | None]] = [
            ("srp", _found(fallback[here], n), None),
            ("prior", _found(learned[here], n), None),
            ("blend", blended.azimuth, blended.probability),
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


def _calibration(maps: Float, true: Float) -> Calibration:
    found = _found(maps, true.shape[1])
    return Calibration.fit(evidence(maps, found).ravel(), hits(found, true).ravel())


def _counting(maps: Float, true: Float) -> list[Calibration]:
    """How far the highest peak, and the next, can be trusted to be a source, however many there are."""
    found = candidates(maps, 2)
    apart = distance(found[:, :, None], true[:, None])  # (n_frames, peaks, sources)
    near = within(apart)
    near[:, 1] &= ~near[:, 0]  # a source is found once
    strength = evidence(maps, found)
    there = np.isfinite(found)
    return [Calibration.fit(strength[there[:, k], k], near[there[:, k], k].any(axis=1)) for k in (0, 1)]


def _hits(found: Float, true: Float) -> float:
    return float(hits(found, true).mean())


def _two_columns(azimuth: Float) -> Float:
    """Directions sorted, NaN last, as (n_frames, 2)."""
    missing = max(0, 2 - azimuth.shape[1])
    return np.sort(np.pad(azimuth, ((0, 0), (0, missing)), constant_values=np.nan), axis=1)
