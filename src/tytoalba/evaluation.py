"""How good a localizer is on labelled recordings, told as in the paper: by the number of sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tytoalba.angles import Float, decode, decode_two
from tytoalba.continual import Interval, bootstrap
from tytoalba.data.recording import Recording
from tytoalba.errors import DataError
from tytoalba.gcc import SPEECH_BAND, Band
from tytoalba.locating import METHODS
from tytoalba.metrics import TOLERANCE, accuracies, front_back_confusion, match
from tytoalba.parallel import parallel_map


@dataclass(frozen=True)
class Outcome:
    """What was there and what was found, for frames with the same number of sources.

    reference, estimate: degrees, (n_frames, n_sources). recording: number of each frame's recording.
    """

    reference: Float
    estimate: Float
    recording: NDArray[np.intp]


@dataclass(frozen=True)
class Score:
    """A row of a table: MAE in degrees and ACC in per cent (error <= 5 degrees), with intervals."""

    n_sources: int
    n_frames: int
    mae: Interval
    acc: Interval
    median: float
    acc_at: dict[float, float]
    front_back: float


def run_method(
    recordings: Sequence[Recording],
    method: str = "srp",
    *,
    band: Band = SPEECH_BAND,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[int, Outcome]:
    """Let a classical method find one and two sources: outcomes by the number of sources."""
    if not recordings:
        raise DataError("no recordings to evaluate on")
    gathered: dict[int, list[tuple[Float, Float, NDArray[np.intp]]]] = {1: [], 2: []}
    work = partial(_outcomes, method, band)
    for number, found in enumerate(parallel_map(work, recordings, processes)):
        for n, (reference, estimate) in found.items():
            gathered[n].append((reference, estimate, np.full(len(reference), number)))
        if on_progress:
            on_progress(number + 1, len(recordings))
    return {
        n: Outcome(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
        for n, pieces in gathered.items()
        if pieces
    }


def score(outcome: Outcome, seed: int = 0) -> Score:
    """The row of one outcome; intervals are 95 % by resampling whole recordings."""
    errors = match(outcome.reference, outcome.estimate)  # (F, n)
    rng = np.random.default_rng(seed)
    hits = 100.0 * (np.round(errors, 9) <= TOLERANCE)  # 8.3 and 3.3 are 5 apart, as in acc_at
    at = accuracies(outcome.reference, outcome.estimate)
    confused = float("nan")
    if errors.shape[1] == 1:
        confused = front_back_confusion(outcome.reference, outcome.estimate)
    return Score(
        errors.shape[1],
        len(errors),
        _interval(errors.mean(axis=1), outcome.recording, rng),
        _interval(hits.mean(axis=1), outcome.recording, rng),
        float(np.median(errors)),
        {tolerance: 100.0 * share for tolerance, share in at.items()},
        100.0 * confused,
    )


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


def _outcomes(method: str, band: Band, recording: Recording) -> dict[int, tuple[Float, Float]]:
    frames = recording.frames()
    found = {}
    for n, decoder in ((1, decode), (2, decode_two)):
        rows = recording.n_sources == n
        if not rows.any() or n >= recording.array.n_mics:
            continue
        mapper = METHODS[method](recording.array, recording.frame_length, band, n)
        reference = np.sort(recording.azimuth[rows], axis=1)[:, :n]  # NaN sorts last
        estimate = decoder(recording.array.heard_once(mapper(frames[rows]))).reshape(-1, n)
        found[n] = recording.array.fold(reference), recording.array.fold(estimate)
    return found
