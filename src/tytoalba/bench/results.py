"""What a bench run measured: its JSON file, read and checked.

A row of the file is one method, seed, condition, mask and subset (part of the test set, number of sources).
MAE is in degrees and ACC in % everywhere here; `summary` averages the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import DataError
from tytoalba.learning.method import HAD
from tytoalba.signal.angles import Float
from tytoalba.storage.files import read_json

Metric = Literal["acc", "mae"]
Subset = tuple[str, int]
METRICS: tuple[Metric, ...] = ("acc", "mae")
Mask = Literal["", "taught"]
MASKS: tuple[Mask, ...] = ("", "taught")
"""Which directions may be answered: any, or those of the phases learned so far. Both are always measured."""
N_SECTORS = 24
SEPARATIONS = (0, 15, 30, 45, 90, 180)
"""Edges in degrees of the bins by which two sources are apart; the last edge belongs to the last bin."""
LARGEST = 2**28
"""Bytes of a result file; the largest of ours has 7 MB."""
MOST_RECORDINGS = 10_000
MOST_HITS = 2**26
"""Recordings, and hits by recording and phase, that a file may have: ours have hundreds, and 4 million."""
_LARGEST = {"acc": 1.0, "mae": 180.0}
_ROUNDED = 0.6e-4
"""Of accuracies, which are kept with four decimals."""


@dataclass(frozen=True)
class Recordings:
    """Sources found in the frames that a recording has of a phase; a line for each such cell.

    number: the recording, (n_cells,). phase, frames: of the cell, (n_cells,). hits: sources found after each
    phase, (n_cells, n_phases), 0 before the cell's own. n_sources: of each frame.
    """

    number: NDArray[np.int64]
    phase: NDArray[np.int64]
    frames: NDArray[np.int64]
    hits: NDArray[np.int64]
    n_sources: int

    def accuracy(self) -> Float:
        """ACC in % on phase j after phase i, (n_phases, n_phases): the matrix of the row, computed again."""
        n_phases = self.hits.shape[1]
        frames = np.bincount(self.phase, self.frames, n_phases)
        hits = np.stack([np.bincount(self.phase, after, n_phases) for after in self.hits.T])
        known = (frames > 0) & (np.tri(n_phases) > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(known, 100 * hits / (frames * self.n_sources), np.nan)


@dataclass(frozen=True)
class Separation:
    """Two sources, by how far apart they are (`SEPARATIONS`): frames, ACC in % and MAE in degrees."""

    frames: Float
    acc: Float
    mae: Float


@dataclass(frozen=True)
class Row:
    """One row of a result file. acc, mae: (n_phases, n_phases), NaN where j > i or phase j has no frames.

    mask: "taught" where the benchmark left only the directions of the phases so far. had: what the method had
    beside the frames of the phases. sector_frames: sources of each sector. front_back: sources confused, and
    those that could have been.
    """

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
    sector_frames: Float | None
    keeps: str
    kept_bytes: dict[str, int]
    learn_seconds: list[float]
    options: dict[str, Any]
    mask: Mask = ""
    had: tuple[str, ...] = ()
    answer_seconds: float = np.nan
    recordings: Recordings | None = None
    front_back: tuple[int, int] | None = None
    separation: Separation | None = None

    @property
    def group(self) -> tuple[str, str, str, str, Mask]:
        """What the seeds and subsets of one summary share."""
        method, variant = self.system
        return method, self.decision, variant, self.condition, self.mask

    @property
    def system(self) -> tuple[str, str]:
        """Method and variant, where the three systems that files call `tyto` have names of their own."""
        if self.method != "tyto":
            return self.method, self.variant
        if self.options.get("learns") is False:
            return "prior alone", self._variant_without("learns=False", "answers=anywhere", "prior alone")
        if "prior" in self.kept_bytes:
            return "tyto", self.variant
        return "tyto without prior", self._variant_without("without prior", "closed form without a prior")

    def _variant_without(self, *parts: str) -> str:
        """The variant without what the name of the system says already."""
        return ", ".join(part for part in self.variant.split(", ") if part not in parts)

    @property
    def subset(self) -> Subset:
        """Part of the test set and number of sources."""
        return self.part, self.n_sources

    @property
    def n_frames(self) -> int:
        """Test frames of all phases."""
        return int(self.counts.sum())

    @property
    def masked(self) -> bool:
        """Whether answers were limited to the directions taught so far, by the benchmark or by itself."""
        anywhere = self.options.get("answers") == "anywhere" or self.options.get("prior_frames") == 0
        return self.mask == "taught" or (self.system[0] == "tyto" and not anywhere)

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


def load_results(path: str | Path) -> Run:
    """Read and check one result file; DataError names the file, the place and what was expected there."""
    path = Path(path)
    document = read_json(path, LARGEST, DataError)
    try:
        return _run(path, _At(document, ""))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


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

    def wholes(self, length: int | None = None, largest: int = 2**53) -> NDArray[np.int64]:
        """A list of whole numbers, of which there may be many."""
        cells = self.value if isinstance(self.value, list) else []
        right = all(type(cell) is int and 0 <= cell <= largest for cell in cells)
        if not right or not isinstance(self.value, list) or length not in (None, len(cells)):
            cells = [cell.whole(largest) for cell in self.each(length)]
        return np.array(cells, np.int64)

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
    listed = document.get("rows").each()
    _refuse_many(listed, len(phases))
    rows = [_row(row, len(phases)) for row in listed]
    if not rows:
        raise DataError("rows is empty: the run measured nothing; did it end early?")
    refuse_twins(rows, "rows")
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


def _refuse_many(rows: list[_At], n_phases: int) -> None:
    """Refuse hits by recording that would fill the memory, before any is read."""
    found: set[tuple[str, int]] = set()
    n_hits = 0
    for row in rows:
        if row.table().get("recordings") is not None:
            number = row.get("recordings").get("number")
            if not isinstance(number.value, list):
                number.refuse("a list")
            n_hits += n_phases * len(number.value)
            if n_hits <= MOST_HITS:
                part = row.get("part").text()
                found |= {(part, one) for one in number.wholes().tolist()}
            if n_hits > MOST_HITS or len(found) > MOST_RECORDINGS:
                number.refuse(f"of at most {MOST_RECORDINGS} recordings and {MOST_HITS} hits in the file")


def _row(row: _At, n_phases: int) -> Row:
    counts = row.get("counts").wholes(n_phases).astype(np.float64)
    n_sources = row.get("n_sources").one_of(1, 2)
    acc = _phases_by_phases(row.get("acc"), "acc", counts)
    given = {key for key, value in row.table().items() if value is not None}
    return Row(
        method=row.get("method").name(),
        decision=row.get("decision").name(),
        variant=row.get("variant").name(),
        seed=row.get("seed").whole(),
        condition=row.get("condition").name(),
        part=row.get("part").one_of("test", "human"),
        n_sources=n_sources,
        counts=counts,
        acc=acc,
        mae=_phases_by_phases(row.get("mae"), "mae", counts),
        sectors=_read_sectors(row.get("sectors")) if "sectors" in given else None,
        sector_frames=_read_sector_frames(row.get("sectors")) if "sectors" in given else None,
        keeps=row.get("keeps").one_of("nothing", "exemplars", "everything"),
        kept_bytes={name: row.get("kept_bytes").get(name).whole() for name in row.get("kept_bytes").table()},
        learn_seconds=[seconds.number() for seconds in row.get("learn_seconds").each()],
        options=row.get("options").table(),
        mask=row.get("mask").one_of(*MASKS) if "mask" in given else "",
        had=_read_had(row.get("had")) if "had" in given else (),
        answer_seconds=row.get("answer_seconds").number() if "answer_seconds" in given else np.nan,
        recordings=_read_recordings(row, counts, n_sources, acc) if "recordings" in given else None,
        front_back=_read_front_back(row.get("front_back")) if "front_back" in given else None,
        separation=_read_separation(row.get("separation")) if "separation" in given else None,
    )


def _read_had(value: _At) -> tuple[str, ...]:
    words = [word.one_of(*HAD) for word in value.each()]
    if len(set(words)) < len(words):
        value.refuse("a list without twins")
    return tuple(words)


def _read_recordings(row: _At, counts: Float, n_sources: int, acc: Float) -> Recordings:
    """Hits by recording; refused where they are not those that the matrix of accuracies is made of."""
    value, n_phases = row.get("recordings"), len(counts)
    number = value.get("number").wholes()
    phase = value.get("phase").wholes(len(number), n_phases - 1)
    frames = value.get("frames").wholes(len(number))
    hits = np.zeros((len(number), n_phases), np.int64)
    for i, cell in enumerate(value.get("hits").each(len(number))):
        known, left = cell.wholes(None, min(2**53, n_sources * int(frames[i]))), int(n_phases - phase[i])
        if not 1 <= len(known) <= left:
            cell.refuse(f"a list of 1 to {left}, which goes on as it ends")
        hits[i, phase[i] :] = [*known, *[known[-1]] * (left - len(known))]
    read = Recordings(number, phase, frames, hits, n_sources)
    if len(np.unique(np.stack([number, phase]), axis=1).T) < len(number):
        value.refuse("a list of recordings and phases without twins")
    if not np.array_equal(np.bincount(phase, frames, n_phases), counts):
        value.get("frames").refuse(f"as many frames a phase as counts has ({counts.astype(int).tolist()})")
    off = np.abs(read.accuracy() - acc) > 100 * _ROUNDED
    if off.any():
        i, j = np.argwhere(off)[0]
        value.get("hits").refuse(f"the hits that acc[{i}][{j}] = {acc[i, j] / 100:.4f} is made of")
    return read


def _read_front_back(value: _At) -> tuple[int, int]:
    clear = value.get("clear").whole()
    return value.get("confused").whole(clear), clear


def _read_separation(value: _At) -> Separation:
    n_bins = len(SEPARATIONS) - 1
    frames = value.get("frames").wholes(n_bins).astype(np.float64)
    acc, mae = (
        np.array([cell.number(_LARGEST[metric]) for cell in value.get(metric).each(n_bins)], np.float64)
        for metric in ("acc", "mae")
    )
    if not np.array_equal(np.isfinite(acc) & np.isfinite(mae), frames > 0):
        value.refuse("numbers where there are frames and null where there are none")
    return Separation(frames, 100 * acc, mae)


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


def _read_sector_frames(value: _At) -> Float | None:
    """Sources of each sector, which older files do not say."""
    if "frames" not in value.table():
        return None
    return value.get("frames").wholes(N_SECTORS).astype(np.float64)


def refuse_twins(rows: Sequence[Row], where: str) -> None:
    """Rows of one method, seed, condition and subset contradict each other; where: named in the error."""
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
