"""What a bench run measured: its JSON file read and checked, then averaged over phases, subsets and seeds.

A row of the file is one method, seed, condition and subset (part of the test set, number of sources).
A `Summary` is all seeds and subsets of one method. MAE is in degrees and ACC in % everywhere here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from tytoalba import continual, paper
from tytoalba.angles import Float
from tytoalba.errors import DataError

Metric = Literal["acc", "mae"]
View = Literal["overall", "n1", "n2"]
Subset = tuple[str, int]
METRICS: tuple[Metric, ...] = ("acc", "mae")
VIEWS: dict[View, tuple[int, ...]] = {"overall": (1, 2), "n1": (1,), "n2": (2,)}
"""Which numbers of sources each view pools."""
N_SECTORS = 24
_LARGEST = {"acc": 1.0, "mae": 180.0}


@dataclass(frozen=True)
class Row:
    """One row of a result file. acc, mae: (n_phases, n_phases), NaN where j > i or phase j has no frames."""

    method: str
    decision: str
    variant: str
    seed: int
    condition: str
    part: str
    n_sources: int
    counts: Float
    acc: Float
    mae: Float
    sectors: dict[Metric, Float] | None
    keeps: str
    kept_bytes: dict[str, int]
    learn_seconds: list[float]
    options: dict[str, Any]

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What the seeds and subsets of one summary share."""
        return self.method, self.decision, self.variant, self.condition

    @property
    def subset(self) -> Subset:
        """Part of the test set and number of sources."""
        return self.part, self.n_sources

    @property
    def n_frames(self) -> int:
        """Test frames of all phases."""
        return int(self.counts.sum())

    def matrix(self, metric: Metric) -> Float:
        """The matrix of one metric."""
        return self.acc if metric == "acc" else self.mae


@dataclass(frozen=True)
class Run:
    """One result file. phases: direction classes of each phase; data: what it was measured on."""

    path: Path
    name: str
    config: dict[str, Any]
    versions: dict[str, Any]
    machine: str
    command: str
    seconds: float
    data: dict[str, Any]
    phases: list[list[int]]
    rows: list[Row]

    @property
    def data_name(self) -> str:
        """Name of the data set, "" if the file does not say."""
        return str(self.data.get("name", ""))


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

    subsets, overall: mean over the phases of the test on the phases 0..k; overall weights the subsets by
    frames, as the paper does, and leaves out a seed that lacks a subset. last: overall, after the last phase.
    forgetting, transfer: points of ACC, of the pooled matrix. curves: mean and standard deviation over seeds,
    (2, n_phases). matrices, sectors: mean over seeds. kept_bytes: of the first seed.
    """

    method: str
    decision: str
    variant: str
    condition: str
    run: str
    seeds: tuple[int, ...]
    subsets: dict[Subset, Cell]
    overall: Cell
    last: Cell
    forgetting: Spread
    transfer: Spread
    curves: dict[View, dict[Metric, Float]]
    matrices: dict[View, dict[Metric, Float]]
    sectors: dict[View, dict[Metric, Float]]
    keeps: str
    kept_bytes: dict[str, int]

    @property
    def label(self) -> str:
        """How to print it: the paper's name, the decision if not the method's own, the variant."""
        name = paper.name(self.method) + (f" ({self.decision})" if self.decision else "")
        return f"{name}, {self.variant}" if self.variant else name

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


def load(paths: Path | Sequence[Path]) -> list[Run]:
    """Read one or several result files of the same data set and number of phases."""
    runs = [load_results(path) for path in ([paths] if isinstance(paths, Path) else paths)]
    if not runs:
        raise DataError("no result file was given")
    for run in runs[1:]:
        if (run.data_name, len(run.phases)) != (runs[0].data_name, len(runs[0].phases)):
            raise DataError(
                f"{run.path}: {len(run.phases)} phases of {run.data_name!r}, but {runs[0].path} has "
                f"{len(runs[0].phases)} of {runs[0].data_name!r}; render them into separate folders"
            )
    return runs


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
        _refuse_twins(rows, " and ".join(str(run.path) for run in runs if run.name == owner[group]))
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
        overall=_cell(whole, continual.average_incremental_accuracy),
        last=_cell(whole, continual.last_accuracy),
        forgetting=Spread({s: _or_nan(continual.forgetting, matrix) for s, matrix in pooled.items()}),
        transfer=Spread({s: _or_nan(continual.backward_transfer, matrix) for s, matrix in pooled.items()}),
        curves={view: {m: _curve(own, m) for m in METRICS} for view, own in views.items()},
        matrices={view: {m: _pooled(own, m) for m in METRICS} for view, own in views.items()},
        sectors={view: {m: _sectors(own, m) for m in METRICS} for view, own in views.items()},
        keeps=first.keeps,
        kept_bytes=first.kept_bytes,
    )


def _complete(rows: list[Row]) -> list[Row]:
    """The rows of the seeds that have every subset: another mixture of subsets is not comparable."""
    subsets: dict[int, set[Subset]] = {}
    for row in rows:
        subsets.setdefault(row.seed, set()).add(row.subset)
    everything = {row.subset for row in rows}
    return [row for row in rows if subsets[row.seed] == everything]


def _cell(rows: list[Row], measure: Callable[..., float]) -> Cell:
    """A measure of each row, averaged over the subsets of each seed by their frames."""

    def spread(metric: Metric) -> Spread:
        own: dict[int, list[tuple[float, int]]] = {}
        for row in rows:
            own.setdefault(row.seed, []).append((measure(row.matrix(metric), row.counts), row.n_frames))
        return Spread({seed: float(_mean(weighted)) for seed, weighted in own.items()})

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
    return _mean([nothing, *((row.sectors[metric], row.n_frames) for row in rows if row.sectors)])


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
    """A measure of old phases, NaN where there is none."""
    return measure(matrix) if np.isfinite(matrix[:, :-1]).any() else np.nan


# ---- reading ----


def load_results(path: Path) -> Run:
    """Read and check one result file; DataError names the file, the place and what was expected there."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return _run(path, _At(document, ""))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON file in UTF-8 ({error}); was it cut short?") from error


@dataclass(frozen=True)
class _At:
    """A value of the document and where it stands, for the error message."""

    value: Any
    place: str

    def refuse(self, expected: str) -> NoReturn:
        given = repr(self.value)
        shown = given if len(given) <= 60 else f"{given[:57]}..."
        raise DataError(f"{self.place or 'the file'} must be {expected}, got {shown}")

    def get(self, name: str) -> _At:
        if name not in self.table():
            raise DataError(f"{self.place or 'the file'} lacks {name!r}; is it of another version?")
        return _At(self.value[name], f"{self.place}.{name}".lstrip("."))

    def table(self) -> dict[str, Any]:
        return self.value if isinstance(self.value, dict) else self.refuse("an object")

    def each(self, length: int | None = None) -> list[_At]:
        if not isinstance(self.value, list) or (length is not None and len(self.value) != length):
            self.refuse("a list" if length is None else f"a list of {length}")
        return [_At(value, f"{self.place}[{i}]") for i, value in enumerate(self.value)]

    def one_of(self, *allowed: Any) -> Any:
        if isinstance(self.value, bool) or self.value not in allowed:
            self.refuse(" or ".join(map(repr, allowed)))
        return self.value

    def text(self) -> str:
        return self.value if isinstance(self.value, str) else self.refuse("text")

    def name(self) -> str:
        """Text that can stand in a table or a legend."""
        if not self.text().isprintable() or len(self.value) > 200:
            self.refuse("at most 200 printable characters")
        return self.text()

    def whole(self, largest: int = 2**53) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not 0 <= self.value <= largest:
            self.refuse(f"a whole number from 0 to {largest}")
        return int(self.value)

    def number(self, largest: float = 1e300) -> float:
        """A number from 0 to the largest; NaN for null and NaN."""
        if self.value is None or self.value != self.value:
            return np.nan
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            self.refuse("a number or null")
        if not 0 <= self.value <= largest:
            self.refuse(f"a number from 0 to {largest:g}, or null")
        return float(self.value)


def _run(path: Path, document: _At) -> Run:
    document.get("format").one_of("tytoalba-results")
    document.get("version").one_of(1)
    _refuse_unprintable(document.value)
    phases = [[c.whole(359) for c in phase.each()] for phase in document.get("phases").each()]
    if not 1 <= len(phases) <= 360:
        document.get("phases").refuse("a list of 1 to 360 phases")
    rows = [_row(row, len(phases)) for row in document.get("rows").each()]
    if not rows:
        raise DataError("rows is empty: the run measured nothing; did it end early?")
    _refuse_twins(rows, "rows")
    return Run(
        path=path,
        name=document.get("name").name(),
        config=document.get("config").table(),
        versions=document.get("versions").table(),
        machine=document.get("machine").text(),
        command=document.get("command").text(),
        seconds=document.get("seconds").number(),
        data=document.get("data").table(),
        phases=phases,
        rows=rows,
    )


def _row(row: _At, n_phases: int) -> Row:
    counts = np.array([count.whole() for count in row.get("counts").each(n_phases)], np.float64)
    return Row(
        method=row.get("method").name(),
        decision=row.get("decision").name(),
        variant=row.get("variant").name(),
        seed=row.get("seed").whole(),
        condition=row.get("condition").name(),
        part=row.get("part").one_of("test", "human"),
        n_sources=row.get("n_sources").one_of(1, 2),
        counts=counts,
        acc=_phases_by_phases(row.get("acc"), "acc", counts),
        mae=_phases_by_phases(row.get("mae"), "mae", counts),
        sectors=_read_sectors(row.get("sectors")) if row.table().get("sectors") else None,
        keeps=row.get("keeps").one_of("nothing", "exemplars", "everything"),
        kept_bytes={name: row.get("kept_bytes").get(name).whole() for name in row.get("kept_bytes").table()},
        learn_seconds=[seconds.number() for seconds in row.get("learn_seconds").each()],
        options=row.get("options").table(),
    )


def _phases_by_phases(value: _At, metric: Metric, counts: Float) -> Float:
    n_phases = len(counts)
    cells = [row.each(n_phases) for row in value.each(n_phases)]
    matrix = np.array([[cell.number(_LARGEST[metric]) for cell in row] for row in cells], np.float64)
    matrix[:, counts == 0] = np.nan
    matrix[np.triu_indices(n_phases, 1)] = np.nan
    for i, j in np.argwhere(np.isnan(matrix) & (counts > 0)):
        if j <= i:
            cells[i][j].refuse(f"a number, as phase {j} is learned and has {counts[j]:g} test frames")
    return 100 * matrix if metric == "acc" else matrix


def _read_sectors(value: _At) -> dict[Metric, Float]:
    scale = {"acc": 100.0, "mae": 1.0}
    return {
        metric: scale[metric]
        * np.array([cell.number(_LARGEST[metric]) for cell in value.get(metric).each(N_SECTORS)])
        for metric in METRICS
    }


def _refuse_twins(rows: Sequence[Row], where: str) -> None:
    seen = set()
    for row in rows:
        key = (*row.group, row.seed, row.subset)
        if key in seen:
            raise DataError(f"{where}: measured twice: {', '.join(map(repr, key))}; which one is meant?")
        seen.add(key)


def _refuse_unprintable(document: Any) -> None:
    """Half a character (a lone surrogate) cannot be written again, and no config is nested 50 deep."""
    level = [document]
    for _ in range(50):
        texts = [
            t
            for value in level
            for t in (value if isinstance(value, dict) else [value])
            if isinstance(t, str)
        ]
        for text in texts:
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise DataError(f"{text[:60]!r} holds half a character (a lone surrogate)")
        inner = [v for v in level if isinstance(v, dict | list)]
        level = [item for v in inner for item in (v.values() if isinstance(v, dict) else v)]
        if not level:
            return
    raise DataError("nested more than 50 deep: no result file is")
