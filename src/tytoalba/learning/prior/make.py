"""How a prior comes to be: scenes are simulated, a network learns from them, held-out scenes tell how far
its answers, and those of SRP-PHAT, can be trusted; then it is judged where it has not been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import FeatureSet, Progress
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.stems import Stems
from tytoalba.data.simulation.voice import Voices
from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import Calibration, evidence, expected_calibration_error
from tytoalba.learning.prior.decisions import Blend, candidates, mixed_maps
from tytoalba.learning.prior.prior import Prior, prior_gcc, scores, steering_matrices
from tytoalba.learning.training import Recipe
from tytoalba.signal.angles import N_DIRECTIONS, Float, decode, decode_two, distance
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.metrics import hits, match, within
from tytoalba.signal.symmetry import symmetries

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tytoalba.learning.network import Network

TURNS = ("hybrid", "anechoic", "hybrid", "hybrid", "pyroom")
"""Families of acoustics in the turn that scenes take: a scene of pyroomacoustics costs five of the others."""
EPOCHS_A_MIX = 2
"""How often frames are seen before others are mixed, which takes longer than an epoch."""
RECIPE = Recipe(epochs=10, lr=2e-3, weight_decay=1e-6, batch=512)
FURTHER = replace(RECIPE, lr=5e-4)
"""To go on from a prior: as large steps as at first would undo it."""
N_KEPT, KEPT_BYTES = 3000, 2_000_000
"""Simulated frames that a prior keeps, if they are not larger than this together."""
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""How much of SRP-PHAT's map may be added to the prior's scores; the first of the best on held-out scenes."""
MARGINS = (1.0, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.0)
"""By how much SRP-PHAT may have to be surer to be believed; the last that costs little on held-out scenes."""
LITTLE = 0.001
"""Share of hits there. All that talks in these scenes is people; of other sounds priors know less."""
Who = Literal["srp", "prior", "blend"]


class Lessons(Protocol):
    """Where frames to learn from come from: `mixing.Mixer`."""

    array: MicArray
    gcc: GccPhat
    device: torch.device

    def frames(self, n: int) -> Iterator[tuple[Tensor, Tensor]]:
        """GCC-PHAT (some, n_features) and azimuth (some, 2), NaN for nobody, of `n` frames in all."""


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


def scenes_of(
    array: MicArray,
    voices: Sequence[Voices],
    *,
    families: Sequence[str] = TURNS,
    speakers: str = "train",
    seed: int = 0,
    calm: float = 0.0,
) -> Scenes:
    """Scenes of an array: to frames by `simulate`, to what frames are mixed from by `gather_stems`."""
    return Scenes(array, voices, tuple(families), speakers, seed, calm=calm)


def simulate(
    scenes: Scenes, n_scenes: int, *, processes: int = 1, on_progress: Progress | None = None
) -> FeatureSet:
    """Frames of `n_scenes` scenes, as the prior of their array looks at them."""
    gcc = prior_gcc(scenes.array)
    return scene_features(scenes, range(n_scenes), gcc, processes=processes, on_progress=on_progress)


def school(
    mixer: Lessons,
    n_frames: int,
    *,
    width: int = 64,
    n_blocks: int = 4,
    recipe: Recipe = RECIPE,
    sigma: float = 5.0,
    seed: int = 0,
    start: Prior | None = None,
    on_progress: Progress | None = None,
) -> Prior:
    """A prior from mixed frames, `n_frames` new ones for every second epoch; not calibrated yet.

    start: a prior of the same array to go on from; the width is its own then, and it has as many blocks at
    least.
    A symmetric array sees each frame from a side drawn anew in every epoch: more scenes for nothing. One on a
    line learns each direction and its mirror image as one.
    """
    import torch

    from tytoalba.learning.prior.network import Steered
    from tytoalba.learning.training import labels, sides_of, squared_loss, train

    array, gcc, device = mixer.array, mixer.gcc, mixer.device
    if not recipe.epochs:
        n_frames = min(n_frames, recipe.batch)  # enough to take over from: nothing is learned
    X = torch.empty(n_frames, gcc.n_features, device=device)
    target = torch.empty(n_frames, N_DIRECTIONS, device=device)

    def mix() -> None:
        done = 0
        for frames, azimuth in mixer.frames(n_frames):
            rows = slice(done, done := done + len(frames))
            on_line = array.mirror_axis is not None  # others need no way off a GPU and back
            places = array.alike(azimuth.cpu().numpy()) if on_line else azimuth
            X[rows], target[rows] = frames, labels(places, device, sigma)

    def next_epoch(epoch: int, n_epochs: int) -> None:
        if epoch % EPOCHS_A_MIX == 0 and epoch < n_epochs:
            mix()
        if on_progress:
            on_progress(epoch, n_epochs)

    n_heard = None
    if start:
        width, n_heard, n_blocks = start.width, start.n_heard, max(n_blocks, start.n_blocks)
    matrices = steering_matrices(array, gcc)
    network = Steered(matrices, width=width, n_blocks=n_blocks, n_heard=n_heard, seed=seed, device=device)
    sides = sides_of([(view, view.order(gcc)) for view in symmetries(array)], gcc.n_features, device)
    mix()
    if start:
        network.take_over(start.shape(), X[: recipe.batch])
    if device.type == "cuda":
        n_steps = -(-n_frames // recipe.batch)
        _compiled(network, X[: -(-n_frames // n_steps)])  # as many as steps have: other sizes cost it again
    loss = squared_loss(X, target, sides=sides)
    history = train(network, loss, n_frames, recipe, seed=seed, on_epoch=next_epoch)
    prior = Prior.quantised(array, gcc, network.folded())
    n_kept = min(N_KEPT, KEPT_BYTES // (N_DIRECTIONS + len(gcc.pairs) * gcc.n_lags))
    some = torch.cat([frames for frames, _ in mixer.frames(n_kept)]).cpu().numpy()
    logits = prior.logits(some)
    return replace(
        prior.with_frames(some),
        about={
            "n_frames": n_frames * -(-recipe.epochs // EPOCHS_A_MIX),
            "recipe": {**recipe.__dict__, "sigma": sigma, "seed": seed},
            "loss": history.loss[-1] if history.loss else None,
            **({"start": start.about} if start else {}),
        },
        constants={
            "logit_mean": _rounded(logits.mean(axis=0)),
            "logit_spread": _rounded(np.maximum(logits.std(axis=0), 0.1)),
        },
    )


def _compiled(network: Network, X: Tensor) -> None:
    """Let torch join the small steps of a network: three times as fast, after half a minute.

    Without the compilers that it needs (triton, C) the network stays as it is.
    """
    network.compile(dynamic=False)
    try:
        network.scores(X).sum().backward()  # type: ignore[no-untyped-call]
    except RuntimeError:
        network._compiled_call_impl = None
    network.zero_grad()


def calibrated(prior: Prior, held: FeatureSet, device: str = "cpu") -> Prior:
    """The prior with calibrations, fitted on scenes and speakers that it has not learned from."""
    blends = {}
    learned, fallback, where = _heard(prior, held, device)
    for n in (1, 2):
        rows = held.n_sources == n
        if rows.sum() < 20:
            raise DataError(
                f"only {rows.sum()} frames with {n} sources to calibrate on: simulate more scenes"
            )
        blends[str(n)] = _best_blend(learned[rows], fallback[rows], where[rows, :n]).to_dict()
    counting = [calibration.to_dict() for calibration in _counting(learned, where)]
    return replace(prior, constants=prior.constants | {"blends": blends, "counting": counting})


def _best_blend(learned: Float, fallback: Float, true: Float) -> Blend:
    """How to blend two maps of frames (n_frames, 360) whose sources `true` (n_frames, n) are known.

    Margins are tried on the half of the frames, in their order, that calibrations were not fitted on: on
    their own scenes these can look better than they are, and SRP-PHAT be believed too readily.
    """
    n = true.shape[1]
    mixed = [mixed_maps(learned, fallback, weight) for weight in WEIGHTS]
    best = int(np.argmax([_hits(_found(maps, n), true) for maps in mixed]))

    def fitted(rows: NDArray[np.bool_]) -> Blend:
        trusted, second = (_calibration(maps[rows], true[rows]) for maps in (mixed[best], fallback))
        return Blend(trusted, second, weight=WEIGHTS[best])

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
    learned, fallback, where = _heard(prior, frames, device)
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


def by_family(frames: FeatureSet, families: Sequence[str] = TURNS) -> dict[str, FeatureSet]:
    """What `simulate` gave, taken apart into the families of its scenes."""
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
    how: for `school`.
    """
    from tytoalba.data.simulation.mixer import Mixer

    judged = {}
    for done, family in enumerate(stems.families, 1):
        others = [name for name in stems.families if name != family]
        if not others:
            raise DataError("leaving a family out needs at least two of them")
        mixer = Mixer(stems.only(others), prior_gcc(stems.array), seed=seed, device=device)
        prior = school(mixer, n_frames, seed=seed, **how)
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


def _heard(prior: Prior, frames: FeatureSet, device: str) -> tuple[Float, Float, Float]:
    """Maps of the prior and of SRP-PHAT (n_frames, 360), and azimuths (n_frames, 2), NaN last.

    What the array cannot tell from its mirror image counts as the same.
    """
    array = prior.array
    learned, fallback = _scores(prior, frames.flat, device), prior.maps(frames.flat)
    azimuth = _two_columns(array.fold(frames.azimuth))
    return array.heard_once(learned), array.heard_once(fallback), azimuth


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


def _rounded(values: NDArray[np.floating]) -> list[Any]:
    """Constants as short decimals: they are read back as they were written."""
    return [float(f"{value:.4g}") for value in values]
