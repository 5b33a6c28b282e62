"""How good a localizer is on labelled recordings, told as in the paper: by the number of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Recording
from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import expected_calibration_error
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.locate import METHODS
from tytoalba.signal.angles import Float, decode, decode_two
from tytoalba.signal.gcc import SPEECH_BAND, Band
from tytoalba.signal.metrics import (
    Interval,
    accuracies,
    bootstrap,
    front_back_confusion,
    hits,
    match,
    within,
)
from tytoalba.storage.parallel import parallel_map

Found = dict[int, tuple[Float, ...]]
"""Reference, estimate and, where it was told, probability, by the number of sources."""


@dataclass(frozen=True)
class Outcome:
    """What was there and what was found, for frames with the same number of sources.

    reference, estimate: degrees, (n_frames, n_sources). recording: number of each frame's recording.
    probability: of each estimate to be right within 5 degrees, where that was told.
    """

    reference: Float
    estimate: Float
    recording: NDArray[np.intp]
    probability: Float | None = None

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each estimate is."""
        return hits(self.estimate, self.reference)


@dataclass(frozen=True)
class Score:
    """A row of a table: MAE in degrees and ACC in per cent (error <= 5 degrees), with intervals.

    calibration_error: of the confidence, from 0 to 1, and surer_half: ACC of the half of all estimates that
    it is surest of; NaN for what tells no confidence.
    """

    n_sources: int
    n_frames: int
    mae: Interval
    acc: Interval
    median: float
    acc_at: dict[float, float]
    front_back: float
    calibration_error: float = np.nan
    surer_half: float = np.nan


def run_method(
    recordings: Sequence[Recording],
    method: str = "srp",
    *,
    band: Band = SPEECH_BAND,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[int, Outcome]:
    """Let a classical method find one and two sources: outcomes by the number of sources."""
    work = partial(_outcomes, method, band)
    return _gathered(parallel_map(work, recordings, processes), len(recordings), on_progress)


def run_localizer(
    recordings: Sequence[Recording],
    owl: Localizer,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[int, Outcome]:
    """Let a localizer find one and two sources, frame by frame: outcomes by the number of sources."""
    return _gathered((_answers(owl, r) for r in recordings), len(recordings), on_progress)


def _gathered(
    each: Iterable[Found], n_recordings: int, on_progress: Callable[[int, int], None] | None
) -> dict[int, Outcome]:
    if not n_recordings:
        raise DataError("no recordings to evaluate on")
    pieces: dict[int, list[tuple[NDArray[np.intp], tuple[Float, ...]]]] = {1: [], 2: []}
    for number, found in enumerate(each):
        for n, columns in found.items():
            pieces[n].append((np.full(len(columns[0]), number), columns))
        if on_progress:
            on_progress(number + 1, n_recordings)
    outcomes = {}
    for n, parts in pieces.items():
        if parts:
            numbers = np.concatenate([number for number, _ in parts])
            reference, estimate, *told = map(np.concatenate, zip(*(c for _, c in parts), strict=True))
            outcomes[n] = Outcome(reference, estimate, numbers, *told)
    return outcomes


def score(outcome: Outcome, seed: int = 0) -> Score:
    """The row of one outcome; intervals are 95 % by resampling whole recordings."""
    errors = match(outcome.reference, outcome.estimate)  # (F, n)
    rng = np.random.default_rng(seed)
    right = 100.0 * within(errors)
    at = accuracies(outcome.reference, outcome.estimate)
    confused = float("nan")
    if errors.shape[1] == 1:
        confused = front_back_confusion(outcome.reference, outcome.estimate)
    return Score(
        errors.shape[1],
        len(errors),
        _interval(errors.mean(axis=1), outcome.recording, rng),
        _interval(right.mean(axis=1), outcome.recording, rng),
        float(np.median(errors)),
        {tolerance: 100.0 * share for tolerance, share in at.items()},
        100.0 * confused,
        *_trust(outcome),
    )


def decisions(outcomes: dict[int, Outcome]) -> tuple[Float, NDArray[np.bool_]]:
    """How sure each estimate was, and whether it was right, of all that told."""
    told = [
        (outcome.probability.ravel(), outcome.right.ravel())
        for outcome in outcomes.values()
        if outcome.probability is not None
    ]
    if not told:
        raise DataError("nothing here says how sure it is; models do")
    sure, right = zip(*told, strict=True)
    return np.concatenate(sure), np.concatenate(right)


def _trust(outcome: Outcome) -> tuple[float, float]:
    """Calibration error, and ACC of the surer half of the estimates."""
    if outcome.probability is None:
        return np.nan, np.nan
    sure, right = decisions({0: outcome})
    surest = np.argsort(-sure, kind="stable")[: -(-len(sure) // 2)]
    return expected_calibration_error(sure, right), 100.0 * float(right[surest].mean())


def overall(scores: Sequence[Score]) -> tuple[float, float]:
    """MAE and ACC over all rows, weighted by frames as in the paper."""
    frames = np.array([s.n_frames for s in scores], float)
    weights = frames / frames.sum()
    return (
        float(weights @ [s.mae.value for s in scores]),
        float(weights @ [s.acc.value for s in scores]),
    )


def _interval(values: Float, recording: NDArray[np.intp], rng: np.random.Generator) -> Interval:
    if len(np.unique(recording)) < 2:  # one recording says nothing about others
        return Interval(float(values.mean()), float("nan"), float("nan"))
    return bootstrap(values, recording, rng=rng)


def _outcomes(method: str, band: Band, recording: Recording) -> Found:
    frames = recording.frames()
    found: Found = {}
    for n, decoder in ((1, decode), (2, decode_two)):
        rows = recording.n_sources == n
        if not rows.any() or n >= recording.array.n_mics:
            continue
        mapper = METHODS[method](recording.array, recording.frame_length, band, n)
        estimate = decoder(recording.array.heard_once(mapper(frames[rows]))).reshape(-1, n)
        found[n] = _reference(recording, n), recording.array.fold(estimate)
    return found


def _answers(owl: Localizer, recording: Recording) -> Found:
    found: Found = {}
    counts: tuple[Literal[1], Literal[2]] = (1, 2)
    for n in counts:
        rows = recording.n_sources == n
        if rows.any():
            part = replace(recording, frame_ids=recording.frame_ids[rows], azimuth=recording.azimuth[rows])
            opinion = owl.answers(part, n)
            found[n] = _reference(part, n), opinion.azimuth, opinion.probability
    return found


def _reference(recording: Recording, n: int) -> Float:
    """Where the sources are in frames that have so many, (n_frames, n)."""
    there = np.sort(recording.azimuth[recording.n_sources == n], axis=1)[:, :n]  # NaN sorts last
    return recording.array.fold(there)
