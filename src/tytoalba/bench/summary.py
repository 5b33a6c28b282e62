"""What a bench run measured, averaged over phases, subsets and seeds.

A `Summary` is all seeds and subsets of one method. MAE is in degrees and ACC in % everywhere here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.bench import continual as continual
from tytoalba.bench import paper as paper
from tytoalba.bench.intervals import MEASURES, ByRecording, Difference, Measure, by_recording
from tytoalba.bench.results import (
    METRICS,
    N_SECTORS,
    SEPARATIONS,
    Mask,
    Metric,
    Row,
    Run,
    Subset,
    refuse_twins,
)
from tytoalba.errors import DataError
from tytoalba.signal.angles import Float
from tytoalba.signal.metrics import Interval

View = Literal["overall", "n1", "n2"]
VIEWS: dict[View, tuple[int, ...]] = {"overall": (1, 2), "n1": (1,), "n2": (2,)}
"""Which numbers of sources each view pools."""


@dataclass(frozen=True)
class Spread:
    """A number for each seed. std: of the sample, NaN under two seeds."""

    by_seed: dict[int, float]

    @property
    def mean(self) -> float:
        """Mean over the seeds that have a value, NaN if none has.

        >>> spread = Spread({0: 1.0, 1: 3.0})
        >>> spread.mean, round(spread.std, 3)
        (2.0, 1.414)
        """
        return float(np.mean(self._known)) if self._known else np.nan

    @property
    def std(self) -> float:
        """Standard deviation over the seeds."""
        return float(np.std(self._known, ddof=1)) if len(self._known) > 1 else np.nan

    @property
    def _known(self) -> list[float]:
        return [value for value in self.by_seed.values() if np.isfinite(value)]


@dataclass(frozen=True)
class Cell:
    """MAE and ACC of some test frames, over the seeds."""

    mae: Spread
    acc: Spread
    n_frames: int = 0


@dataclass(frozen=True)
class Summary:
    """One method under one condition, all seeds and subsets.

    subsets: mean over the phases of the test on the phases 0..k. measures: the same over subsets, as
    `intervals.MEASURES` names them: weighted by frames or by the paper's (86 % one source, 14 % two), for the
    phases or after the last; a seed that lacks a subset is left out.
    masked: answers were limited to the directions taught so far.
    forgetting, transfer: points of ACC, of the pooled matrix. newest, older: ACC on the phase just learned
    and on those before it, means over the phases. curves: mean and standard deviation over seeds,
    (2, n_phases). matrices, sectors: mean over seeds. kept_bytes: of the first seed.
    had: what the method had beside the frames of the phases. learn_seconds: of all phases; answer_seconds: of
    a frame. After the last phase: front_back, % of single sources taken for their mirror image; quadrants, of
    single sources in front, left, behind and right, (4,); separation, of two sources by how far apart they
    are, (n_bins,). recordings: intervals, where the files have hits by recording.
    """

    method: str
    decision: str
    variant: str
    condition: str
    mask: Mask
    run: str
    seeds: tuple[int, ...]
    subsets: dict[Subset, Cell]
    measures: dict[str, Cell]
    forgetting: Spread
    transfer: Spread
    newest: Spread
    older: Spread
    curves: dict[View, dict[Metric, Float]]
    matrices: dict[View, dict[Metric, Float]]
    sectors: dict[View, dict[Metric, Float]]
    keeps: str
    kept_bytes: dict[str, int]
    masked: bool
    had: tuple[str, ...]
    learn_seconds: Spread
    answer_seconds: Spread
    front_back: Spread
    quadrants: dict[Metric, Float]
    separation: dict[Metric, Float]
    recordings: ByRecording | None

    @property
    def label(self) -> str:
        """How to print it: the paper's name, the decision if not the method's own, the variant."""
        name = paper.name(self.method) + (f" ({self.decision})" if self.decision else "")
        return f"{name}, {self.variant}" if self.variant else name

    @property
    def overall(self) -> Cell:
        """Mean over the phases, all subsets by their frames."""
        return self.measures["overall"]

    @property
    def overall_86_14(self) -> Cell:
        """Mean over the phases, subsets by the paper's frames."""
        return self.measures["overall_86_14"]

    @property
    def last(self) -> Cell:
        """After the last phase, all subsets by their frames."""
        return self.measures["last_overall"]

    @property
    def last_86_14(self) -> Cell:
        """After the last phase, subsets by the paper's frames."""
        return self.measures["last_overall_86_14"]

    def interval(self, measure: str) -> Interval | None:
        """ACC in % with its interval by recording, where the files have hits by recording."""
        return self.recordings.interval(measure) if self.recordings else None

    def minus(self, other: Summary, measure: str) -> Difference | None:
        """The difference of ACC to another row, paired by recording, where both have the same."""
        if self.recordings is None or other.recordings is None:
            return None
        return self.recordings.minus(other.recordings, measure)

    @property
    def swept(self) -> bool:
        """Whether it is one value of a setting that was varied, not a row with a name of its own."""
        return "=" in self.variant

    @property
    def is_plain(self) -> bool:
        """Whether it is the method itself, by its own decision: the paper has no other."""
        return not self.decision and not self.variant

    @property
    def noise(self) -> tuple[str, float] | None:
        """Kind and SNR in dB of a noisy condition such as "white -10 dB"."""
        found = re.fullmatch(r"(.+) ([+-]?\d{1,4}(?:\.\d{1,4})?) dB", self.condition)
        return (found[1], float(found[2])) if found else None

    @property
    def setting(self) -> tuple[str, str]:
        """Names and values of the variant: "eta=1, order=shuffled" is ("eta, order", "1, shuffled")."""
        pairs = [part.rpartition("=") for part in self.variant.split(", ")]
        name = ", ".join(name for name, _, _ in pairs if name)
        return name or "variant", ", ".join(value for _, _, value in pairs)


def summarise(runs: Sequence[Run]) -> list[Summary]:
    """Average every method, in the paper's order and then as they come in the files.

    Files of one name are one run: their seeds are put together. A method that runs of different names have
    under the same variant and condition is taken from the first of them.
    """
    owner: dict[tuple[str, ...], str] = {}
    groups: dict[tuple[str, ...], list[Row]] = {}
    for run in runs:
        for row in run.rows:
            if row.n_frames and owner.setdefault(row.group, run.name) == run.name:
                groups.setdefault(row.group, []).append(row)
    for group, rows in groups.items():
        refuse_twins(rows, " and ".join(str(run.path) for run in runs if run.name == owner[group]))
    if not groups:
        raise DataError(f"{runs[0].path}: no row has a test frame")
    rank = {method: i for i, method in enumerate(paper.NAMES)}
    ordered = sorted(groups, key=lambda group: rank.get(paper.key(group[0]), len(rank)))
    return [_summary(owner[group], groups[group]) for group in ordered]


def _summary(run: str, rows: list[Row]) -> Summary:
    first, whole = rows[0], _complete(rows)
    pooled = {s: _pooled([r for r in whole if r.seed == s], "acc") for s in {r.seed: 0 for r in whole}}
    views = {view: _complete([r for r in rows if r.n_sources in n]) for view, n in VIEWS.items()}
    views = {view: own for view, own in views.items() if own}
    return Summary(
        *first.group,
        run=run,
        seeds=tuple(sorted({row.seed for row in rows})),
        subsets={
            subset: _cell(own, continual.average_incremental_accuracy)
            for subset in paper.SUBSETS
            if (own := [row for row in rows if row.subset == subset])
        },
        measures={name: _measured(rows, measure) for name, measure in MEASURES.items()},
        forgetting=Spread({s: _or_nan(continual.forgetting, matrix) for s, matrix in pooled.items()}),
        transfer=Spread({s: _or_nan(continual.backward_transfer, matrix) for s, matrix in pooled.items()}),
        newest=Spread({s: _or_nan(continual.newest_accuracy, matrix) for s, matrix in pooled.items()}),
        older=Spread({s: _or_nan(continual.older_accuracy, matrix) for s, matrix in pooled.items()}),
        curves={view: {m: _curve(own, m) for m in METRICS} for view, own in views.items()},
        matrices={view: {m: _pooled(own, m) for m in METRICS} for view, own in views.items()},
        sectors={view: {m: _sectors(own, m) for m in METRICS} for view, own in views.items()},
        keeps=first.keeps,
        kept_bytes=first.kept_bytes,
        masked=first.masked,
        had=first.had,
        learn_seconds=Spread({row.seed: float(np.sum(row.learn_seconds)) for row in reversed(rows)}),
        answer_seconds=Spread({row.seed: row.answer_seconds for row in reversed(rows)}),
        front_back=_front_back(rows),
        quadrants={m: _quadrants([r for r in whole if r.n_sources == 1], m) for m in METRICS},
        separation={m: _separation([r for r in whole if r.n_sources == 2], m) for m in METRICS},
        recordings=by_recording(whole),
    )


def _complete(rows: list[Row]) -> list[Row]:
    """The rows of the seeds that have every subset: another mixture of subsets is not comparable."""
    subsets: dict[int, set[Subset]] = {}
    for row in rows:
        subsets.setdefault(row.seed, set()).add(row.subset)
    everything = {row.subset for row in rows}
    return [row for row in rows if subsets[row.seed] == everything]


def _measured(rows: list[Row], measure: Measure) -> Cell:
    own = _complete([row for row in rows if row.n_sources in measure.n_sources])
    average = continual.last_accuracy if measure.last else continual.average_incremental_accuracy
    return _cell(own, average, measure.frames)


def _cell(rows: list[Row], measure: Callable[..., float], frames: Mapping[Subset, int] | None = None) -> Cell:
    """A measure of each row, averaged over the subsets of each seed by their frames, or by those given.

    With frames given, NaN where there are no rows with one source, or none with two.
    """
    lacking = frames is not None and {row.n_sources for row in rows} != {1, 2}

    def spread(metric: Metric) -> Spread:
        own: dict[int, list[tuple[float, int]]] = {}
        for row in rows:
            weight = row.n_frames if frames is None else frames[row.subset]
            own.setdefault(row.seed, []).append((measure(row.matrix(metric), row.counts), weight))
        return Spread({seed: np.nan if lacking else float(_mean(pairs)) for seed, pairs in own.items()})

    n_frames = {row.subset: row.n_frames for row in reversed(rows)}
    return Cell(spread("mae"), spread("acc"), sum(n_frames.values()))


def _curve(rows: list[Row], metric: Metric) -> Float:
    """Mean and standard deviation over seeds of the test on the phases 0..k, (2, n_phases)."""
    seeds = sorted({row.seed for row in rows})
    each = [
        _mean(
            (continual.seen_accuracy(r.matrix(metric), r.counts), r.n_frames) for r in rows if r.seed == seed
        )
        for seed in seeds
    ]
    known = np.isfinite(each).sum(axis=0)
    mean = _mean((curve, 1) for curve in each)
    squares = _mean(((curve - mean) ** 2, 1) for curve in each)
    spread = np.sqrt(squares * known / np.where(known > 1, known - 1, np.nan))
    return np.stack([mean, spread])


def _pooled(rows: list[Row], metric: Metric) -> Float:
    """The matrix over all test frames of the rows, (n_phases, n_phases)."""
    return _mean((row.matrix(metric), row.counts) for row in rows)


def _sectors(rows: list[Row], metric: Metric) -> Float:
    """By sector of the true azimuth, (N_SECTORS,); rows weigh by their frames, all NaN if none has any."""
    nothing = (np.full(N_SECTORS, np.nan), 0)
    return _mean([nothing, *((row.sectors[metric], _weights(row)) for row in rows if row.sectors)])


def _weights(row: Row) -> ArrayLike:
    """Of the sectors of a row: their sources or, where the file does not say, all of its frames."""
    return row.n_frames if row.sector_frames is None else row.sector_frames


def _quadrants(rows: list[Row], metric: Metric) -> Float:
    """In front, left, behind and right, each 90 degrees wide, (4,)."""
    found = [(np.full(4, np.nan), np.zeros(4))]
    for row in rows:
        if row.sectors:
            values = np.roll(row.sectors[metric], N_SECTORS // 8).reshape(4, -1)
            weights = np.broadcast_to(_weights(row), N_SECTORS)
            weights = np.roll(weights, N_SECTORS // 8).reshape(4, -1) * np.isfinite(values)
            mean = _mean(zip(values.T, weights.T, strict=True))
            found.append((mean, weights.sum(axis=1)))
    return _mean(found)


def _front_back(rows: list[Row]) -> Spread:
    """% of single sources that were taken for their mirror image, of those that could be."""
    own: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        if row.front_back:
            own.setdefault(row.seed, []).append(row.front_back)
    sums = {seed: np.sum(pairs, axis=0) for seed, pairs in own.items()}
    return Spread({seed: 100 * float(confused / clear) for seed, (confused, clear) in sums.items() if clear})


def _separation(rows: list[Row], metric: Metric) -> Float:
    """Two sources by how far apart they are, (n_bins,)."""
    n_bins = len(SEPARATIONS) - 1
    known = [row.separation for row in rows if row.separation]
    values = [(s.acc if metric == "acc" else s.mae, s.frames) for s in known]
    return _mean([(np.full(n_bins, np.nan), np.zeros(n_bins)), *values])


def _mean(weighted: Iterable[tuple[ArrayLike, ArrayLike]]) -> Float:
    """Weighted mean of arrays of one shape, NaN left out; NaN where nothing is left."""
    pairs = [(np.asarray(v, np.float64), np.asarray(w, np.float64)) for v, w in weighted]
    values = np.stack([value for value, _ in pairs])
    weights = np.stack([np.broadcast_to(weight, value.shape) for value, weight in pairs])
    weights = np.where(np.isfinite(values), weights, 0.0)
    total = weights.sum(axis=0)
    mean: Float = (np.where(weights > 0, values, 0.0) * weights).sum(axis=0)
    return mean / np.where(total > 0, total, np.nan)


def _or_nan(measure: Callable[[ArrayLike], float], matrix: Float) -> float:
    """A measure of old phases, NaN where there is none, or none is newer."""
    return measure(matrix) if np.isfinite(matrix[-1]).sum() > 1 else np.nan
