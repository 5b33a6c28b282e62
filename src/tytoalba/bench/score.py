"""How good methods and localizers are on labelled recordings, by the number of sources as in the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.datasets import open_dataset
from tytoalba.data.recording import Recording
from tytoalba.errors import DataError, TytoError
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
from tytoalba.storage.age import Keys
from tytoalba.storage.parallel import parallel_map

Found = dict[int, tuple[Float, ...]]
"""Reference, estimate and, where it is known, probability, by the number of sources."""


@dataclass(frozen=True)
class Outcome:
    """What was there and what was found, for frames with the same number of sources.

    reference, estimate: degrees, (n_frames, n_sources). recording: number of each frame's recording.
    probability: of each estimate to be right within 5 degrees, where that is known.
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
    it is surest of; NaN for methods without probabilities.
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


def recordings_of(data: str | Path, part: str = "test", keys: Keys = None) -> list[Recording]:
    """The recordings of a labelled data set whose part begins so; "test" is also SSLR's part "human".

    keys: what opens sealed recordings.
    """
    found = [r for r in open_dataset(Path(data), keys) if _belongs(r.subset, part)]
    if not found:
        raise DataError(f"{data} has no part called {part!r}")
    if not any(np.isin(r.n_sources, (1, 2)).any() for r in found):
        raise DataError(f"{data} has no frame with one or two sources in {part!r}")
    return found


def score_recordings(
    recordings: Sequence[Recording],
    methods: Sequence[str] = ("srp",),
    localizers: Mapping[str, Localizer] | None = None,
    *,
    band: Band = SPEECH_BAND,
    processes: int = 1,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, dict[int, Outcome]]:
    """Let methods and localizers find one and two sources: outcomes by name and number of sources.

    methods: names in `tytoalba.localizer.locate.METHODS`. band: Hz, for methods. processes: for methods; 0:
    one per core. on_progress: called with (name, recordings done, recordings in all). What cannot work, such
    as a method without its prior or a localizer of another array, is refused before any scoring.
    """
    if unknown := [name for name in methods if name not in METHODS]:
        raise TytoError(f"no method called {unknown[0]!r}; known: {', '.join(METHODS)}")
    if not recordings:
        raise DataError("no recordings to evaluate on")
    for recording in {r.array: r for r in recordings}.values():
        for name in methods:
            METHODS[name](recording.array, recording.frame_length, band, 1)
        labelled = np.isin(recording.n_sources, (1, 2))
        first = _rows(recording, labelled & (np.cumsum(labelled) == 1))
        for localizer in (localizers or {}).values():
            _answers(localizer, first)
    work: dict[str, Iterable[Found]] = {
        name: parallel_map(partial(_outcomes, name, band), recordings, processes) for name in methods
    }
    work |= {name: map(partial(_answers, own), recordings) for name, own in (localizers or {}).items()}
    return {
        name: _gathered(each, len(recordings), on_progress and partial(on_progress, name))
        for name, each in work.items()
    }


def _belongs(subset: str, part: str) -> bool:
    """SSLR calls its parts lsp_train_*, lsp_test_* and human (a test part)."""
    return subset.removeprefix("lsp_").startswith(part) or (part == "test" and subset == "human")


def _gathered(
    each: Iterable[Found], n_recordings: int, on_progress: Callable[[int, int], None] | None
) -> dict[int, Outcome]:
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
            reference, estimate, *probability = map(np.concatenate, zip(*(c for _, c in parts), strict=True))
            outcomes[n] = Outcome(reference, estimate, numbers, *probability)
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
    """How sure each estimate was, and whether it was right, of all with a probability."""
    known = [
        (outcome.probability.ravel(), outcome.right.ravel())
        for outcome in outcomes.values()
        if outcome.probability is not None
    ]
    if not known:
        raise DataError("nothing here says how sure it is; models do")
    sure, right = zip(*known, strict=True)
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
        estimate = decoder(recording.array.without_images(mapper(frames[rows]))).reshape(-1, n)
        found[n] = _reference(recording, n), recording.array.fold(estimate)
    return found


def _answers(localizer: Localizer, recording: Recording) -> Found:
    found: Found = {}
    counts: tuple[Literal[1], Literal[2]] = (1, 2)
    for n in counts:
        rows = recording.n_sources == n
        if rows.any():
            part = _rows(recording, rows)
            answer = localizer.answers(part, n)
            found[n] = _reference(part, n), answer.azimuth, answer.probability
    return found


def _rows(recording: Recording, rows: NDArray[np.bool_]) -> Recording:
    """Some labelled frames of a recording."""
    return replace(recording, frame_ids=recording.frame_ids[rows], azimuth=recording.azimuth[rows])


def _reference(recording: Recording, n: int) -> Float:
    """Where the sources are in frames with n of them, (n_frames, n)."""
    there = np.sort(recording.azimuth[recording.n_sources == n], axis=1)[:, :n]  # NaN sorts last
    return recording.array.fold(there)
