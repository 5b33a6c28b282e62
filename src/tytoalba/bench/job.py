"""One job of a benchmark: a method learns phase after phase and is tested after each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.config import SEES, Config, Job, as_json
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.errors import TytoError
from tytoalba.learning.method import Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.phases import Phase, generalised, groups, phase_of, split
from tytoalba.signal.angles import N_DIRECTIONS, Float, decode, decode_two
from tytoalba.signal.metrics import match, within

SECTOR = 15
LARGEST_DEVIATION = 1e-6
"""Of accumulated weights from the joint closed form, relative; rounding in float64 stays below it."""

_shared_data = lru_cache(maxsize=1)(BenchData.load)


def run_job(job: Job, config: Config, data: BenchData | Path, device: str = "cpu") -> list[dict[str, Any]]:
    """Let one method learn all phases and test it after each; the rows of the result file."""
    data = _shared_data(data) if isinstance(data, Path) else data
    data = data.seen_by(job.options)
    judged_by, stopped_by = data.valid, data.valid
    if job.options.get("patience") and config.judged_on == "valid":  # nobody is judged by what it stops by
        stopped_by, judged_by = data.valid_halves()
    directions = groups(config.n_phases, job.order, job.seed)
    phases = _Phases(config, data.train, directions, job.seed, device)
    task = Task(
        n_inputs=data.n_inputs,
        seed=job.seed,
        device=device,
        scaling=config.scaling,
        array=data.array,
        gcc=data.gcc,
        valid=Phase(stopped_by.X, stopped_by.azimuth, np.arange(N_DIRECTIONS)) if stopped_by else None,
    )
    method = _made(job, task)
    _awake(device)
    wanted = {CLEAN, *map(str, config.noise_conditions)}
    judged = {key: frames for key, frames in data.tests.items() if key[0] in wanted}
    if config.judged_on == "valid":
        judged = {(CLEAN, "test"): judged_by} if judged_by else {}
    tests = {
        key: _Test(frames, directions, config.context if key[0] == CLEAN else ())
        for key, frames in judged.items()
        if len(frames)
    }
    if not tests:
        raise TytoError(f"{data.name} has no {config.judged_on} part to judge methods on")
    seconds, deviation = [], []
    if method.sees_everything:
        seconds.append(_timed(method, phases.everything(task.n_directions)))
    for k in range(config.n_phases):
        if not method.sees_everything:
            seconds.append(_timed(method, phases[k]))
        for test in tests.values():
            test.after(k, method)
        if (
            config.verify
            and job.seed == config.seeds[0]
            and any(phases.sizes[: k + 1])
            and (from_joint := getattr(method, "deviation", None))
        ):
            deviation.append(from_joint([phases[i] for i in range(k + 1)]))
            if not deviation[-1] <= LARGEST_DEVIATION:
                raise TytoError(f"{job.method} is {deviation[-1]:.2g} off its joint solution at phase {k}")
    kept = {name: int(values.nbytes) for name, values in method.memory().items()}
    shared = {
        "method": job.method,
        "variant": job.variant,
        "seed": job.seed,
        "options": as_json(job.options),
        "keeps": method.keeps,
        "kept_bytes": kept,
        "learn_seconds": [round(s, 3) for s in seconds],
    }
    if epochs := getattr(method, "epochs_", None):
        shared["epochs"] = list(epochs)
    if deviation:
        shared["joint_deviation"] = deviation
    return [
        {**shared, "condition": f"context {c}" if c else condition, "part": part, **row}
        for (condition, part), test in tests.items()
        for c, row in test.rows(with_sectors=condition == CLEAN)
    ]


def _made(job: Job, task: Task) -> Method:
    try:
        return METHODS[job.method](task, **{k: v for k, v in job.options.items() if k not in SEES})
    except (TypeError, ValueError) as error:
        raise TytoError(f"{job.method} cannot be made with options {job.options}: {error}") from error


class _Test:
    """One test set: errors on every phase after every phase, by decision rule and number of sources.

    context: numbers of neighbouring frames on each side to average over, beside none.
    """

    def __init__(
        self, frames: Frames, directions: Sequence[NDArray[np.intp]], context: Sequence[int] = ()
    ) -> None:
        self.n_phases = len(directions)
        self.X = frames.X
        self.context = (0, *context)
        if context and frames.place is None:
            raise TytoError("nobody knows which frames are neighbours in these data: leave out `context`")
        n_sources = np.isfinite(frames.azimuth).sum(axis=1)
        phase = phase_of(frames.azimuth, directions)
        self.sets = {}
        self.places = {}
        for n in (1, 2):
            rows = np.flatnonzero((n_sources == n) & (phase >= 0))
            rows = rows[np.argsort(phase[rows], kind="stable")]  # earlier phases first: prefixes are slices
            if len(rows):
                true = np.sort(frames.azimuth[rows], axis=1)[:, :n]  # NaN sorts last
                self.sets[n] = rows, true, phase[rows]
                if frames.place is not None:
                    self.places[n] = frames.place[rows]
        self.errors: dict[tuple[int, int, str], list[Float]] = {}

    def after(self, k: int, method: Method) -> None:
        """Test on the frames of phases 0..k."""
        seen = {n: int(np.searchsorted(phase, k, side="right")) for n, (_, _, phase) in self.sets.items()}
        # frames are taken together only when they are asked about: no second copy of all of them stays
        scores = {n: method.posteriors(self.X[self.sets[n][0][:m]]) for n, m in seen.items() if m}
        for n, m in seen.items():
            if not m:
                for (_, n_sources, _), listed in self.errors.items():
                    if n_sources == n:
                        listed.append(np.empty((0, n)))
        for c in self.context:
            for n, decision, score in self._heard(scores, c):
                decoder = decode if n == 1 else decode_two
                errors = match(self.sets[n][1][: seen[n]], decoder(score).reshape(-1, n))
                self.errors.setdefault((c, n, decision), [np.empty((0, n))] * k).append(errors)

    def _heard(
        self, scores: dict[int, dict[str, NDArray[np.float32]]], context: int
    ) -> Iterator[tuple[int, str, NDArray[np.float32]]]:
        """Scores by number of sources and decision, averaged with those of neighbours of either kind."""
        for decision in next(iter(scores.values()), {}):
            parts = {n: by_rule[decision] for n, by_rule in scores.items()}
            if context:
                places = np.concatenate([self.places[n][: len(part)] for n, part in parts.items()])
                mean = averaged(np.concatenate([*parts.values()]), places, context)
                ends = np.cumsum([len(part) for part in parts.values()])[:-1]
                parts = dict(zip(parts, np.split(mean, ends), strict=True))
            yield from ((n, decision, part) for n, part in parts.items())

    def rows(self, with_sectors: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """The context, and what the result file keeps of it."""
        for (c, n, decision), listed in self.errors.items():
            _, true, phase = self.sets[n]
            counts = np.bincount(phase, minlength=self.n_phases)
            matrices = {"acc": [], "mae": []}  # type: dict[str, list[list[float | None]]]
            for errors in listed:
                here = phase[: len(errors)]
                matrices["acc"].append(_means(within(errors).mean(axis=1), here, self.n_phases))
                matrices["mae"].append(_means(errors.mean(axis=1), here, self.n_phases))
            row = {"decision": decision, "n_sources": n, "counts": counts.tolist(), **matrices}
            if with_sectors and len(listed[-1]) == len(true):
                sector = (true // SECTOR).astype(np.intp).ravel() % (360 // SECTOR)
                hits, flat = within(listed[-1]).ravel().astype(float), listed[-1].ravel()
                row["sectors"] = {
                    "acc": _means(hits, sector, 360 // SECTOR),
                    "mae": _means(flat, sector, 360 // SECTOR),
                }
            yield c, row


def averaged(scores: NDArray[np.float32], place: NDArray[np.int64], context: int) -> NDArray[np.float32]:
    """Scores (n_frames, n_directions) averaged over the frames of a recording at most `context` away.

    place: recording and number of each frame, (n_frames, 2); frames may be missing or out of order.

    >>> averaged(np.array([[1.0], [3.0], [8.0]]), np.array([[0, 5], [0, 6], [1, 7]]), 2).ravel().tolist()
    [2.0, 2.0, 8.0]
    """
    order = np.lexsort(place.T[::-1])
    number = place[order, 1] + place[order, 0] * (int(np.ptp(place[:, 1])) + 2 * context + 1)
    first = np.searchsorted(number, number - context)
    after = np.searchsorted(number, number + context, side="right")
    sums = np.concatenate(
        [np.zeros((1, scores.shape[1])), np.cumsum(scores[order], axis=0, dtype=np.float64)]
    )
    result = np.empty_like(scores)
    result[order] = (sums[after] - sums[first]) / (after - first)[:, None]
    return result


def _means(values: Float, groups_of: NDArray[np.intp], n: int) -> list[float | None]:
    counts = np.bincount(groups_of, minlength=n)
    sums = np.bincount(groups_of, weights=values, minlength=n)
    return [round(float(s / c), 4) if c else None for s, c in zip(sums, counts, strict=True)]


class _Phases:
    """Training frames as phases. Features are gigabytes: those of a phase are copied when its turn comes."""

    def __init__(
        self,
        config: Config,
        train: Frames,
        directions: Sequence[NDArray[np.intp]],
        seed: int,
        device: str,
    ) -> None:
        self.train, self.device = train, device
        few = np.isfinite(train.azimuth).sum(axis=1) <= config.max_sources
        self.rows = np.flatnonzero(few)
        azimuth, numbers = train.azimuth[self.rows], cast(Any, self.rows)  # divided up in place of features
        if config.overlap or config.imbalance > 1:
            rng, odd = np.random.default_rng(seed), {"overlap": config.overlap, "imbalance": config.imbalance}
            self.numbered = generalised(numbers, azimuth, directions, rng, **odd)
        else:
            self.numbered = split(numbers, azimuth, directions)

    @property
    def sizes(self) -> list[int]:
        """Frames of each phase."""
        return [len(phase) for phase in self.numbered]

    def __getitem__(self, k: int) -> Phase:
        phase = self.numbered[k]
        return replace(phase, X=_handed(self.train.X[cast(Any, phase.X)], self.device))

    def everything(self, n_directions: int) -> Phase:
        """All of them as one."""
        rows = slice(None) if len(self.rows) == len(self.train) else self.rows
        return Phase(
            _handed(self.train.X[rows], self.device), self.train.azimuth[rows], np.arange(n_directions)
        )


def _handed(X: NDArray[np.float32], device: str) -> NDArray[np.float32]:
    """Frames, row after row; for a GPU in page-locked memory, from where it takes them at full speed."""
    if not device.startswith("cuda"):
        return np.ascontiguousarray(X)
    import torch

    room: NDArray[np.float32] = torch.empty(X.shape, pin_memory=True).numpy()
    room[:] = X
    return room


def _awake(device: str) -> None:
    """Let a GPU do a little of all that methods do, before anyone looks at the clock.

    The first product, factorisation and solution load the libraries for them, which takes seconds and would
    be counted to whichever method comes first in its process. On a CPU there is nothing to wake.
    """
    if not device.startswith("cuda"):
        return
    import torch

    whole = torch.eye(32, dtype=torch.float64, device=device)
    factor = torch.linalg.cholesky(whole @ whole)
    torch.cholesky_solve(whole, factor)
    torch._int_mm(whole.to(torch.int8), whole.to(torch.int8))
    _ = whole.float() @ whole.float()
    torch.cuda.synchronize(device)


def _timed(method: Method, phase: Phase) -> float:
    """Seconds until the method has learned and answers again: some put their work off until asked."""
    start = time.perf_counter()
    method.learn(phase)
    if len(phase):
        method.posterior(phase.X[:1])
    return time.perf_counter() - start
