"""One job of a benchmark: a method learns phase after phase and is tested after each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.config import SEES, Config, Job, as_json
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.bench.judge import Judge
from tytoalba.errors import TytoError
from tytoalba.learning.method import HAD, Had, Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.phases import Phase, generalised, groups, split
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.gcc import GccPhat

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
        key: Judge(frames, directions, config.context if key[0] == CLEAN else ())
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
        "answer_seconds": _per_frame(tests.values()),
        "had": _had(method, data.gcc, job.options.get("noisy", False)),
    }
    if epochs := getattr(method, "epochs_", None):
        shared["epochs"] = list(epochs)
    if deviation:
        shared["joint_deviation"] = deviation
    return [
        {**shared, "condition": f"context {c}" if c else condition, "part": part, **row}
        for (condition, part), test in tests.items()
        for c, row in test.rows(in_detail=condition == CLEAN)
    ]


def _had(method: Method, gcc: GccPhat | None, noisy: bool) -> list[Had]:
    """What a method had beside the frames of the phases, in the order of `HAD`."""
    had: set[Had] = set(method.had)
    if gcc is not None and gcc.parts > 1:
        had.add("windows")
    if gcc is not None and len(gcc.band_list) > 1:
        had.add("bands")
    if noisy:
        had.add("noise in training")
    return [word for word in HAD if word in had]


def _per_frame(tests: Iterable[Judge]) -> float:
    """Seconds that an answer took, over everything that was asked."""
    asked = [(test.seconds, test.n_answered) for test in tests]
    return round(sum(s for s, _ in asked) / max(1, sum(n for _, n in asked)), 9)


def _made(job: Job, task: Task) -> Method:
    try:
        return METHODS[job.method](task, **{k: v for k, v in job.options.items() if k not in SEES})
    except (TypeError, ValueError) as error:
        raise TytoError(f"{job.method} cannot be made with options {job.options}: {error}") from error


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
