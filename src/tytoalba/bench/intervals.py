"""How sure an accuracy is, and a difference between two: by recording, as frames of one resemble each other.

Whole recordings are drawn again, those of each part of the test set among themselves, the same for every row:
so a difference between two rows is that of the same recordings. Seeds are averaged first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench import paper as paper
from tytoalba.bench.results import Row, Subset
from tytoalba.signal.angles import Float
from tytoalba.signal.metrics import Interval, resamples

N_RESAMPLES = 2000
SEED = 23
"""Of the recordings drawn and of the signs flipped: the same results give the same intervals."""
Counted = dict[Subset, tuple[Float, Float]]
"""By subset, frames found and frames asked about, of each recording after each phase."""
Unit = tuple[str, int]
"""Part of the test set and number of a recording there."""


class Measure(NamedTuple):
    """An accuracy: of which numbers of sources, after all phases or the last, weighted by which frames."""

    n_sources: tuple[int, ...] = (1, 2)
    last: bool = False
    frames: Mapping[Subset, int] | None = None


MEASURES = {
    f"{'last_' if last else ''}{name}": Measure(n_sources, last, frames)
    for last in (False, True)
    for name, n_sources, frames in (
        ("overall", (1, 2), None),
        ("overall_86_14", (1, 2), paper.FRAMES),
        ("n1", (1,), None),
        ("n2", (2,), None),
    )
}
"""By name: overall, overall_86_14, n1 and n2, and the same after the last phase with "last_" before them."""


@dataclass(frozen=True)
class Difference:
    """Of two accuracies in points; p: two-sided, of as large a difference if the rows were exchangeable."""

    points: Interval
    p: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.points.low > 0 or self.points.high < 0


@dataclass(frozen=True, eq=False)
class ByRecording:
    """Accuracies of one row of a table with what its recordings say of them.

    units: the recordings. shares: of each measure, what each recording contributes to it, (n_units,); its sum
    is the accuracy. resampled: the measure of each resample, (N_RESAMPLES,). curves: ACC after each phase of
    each resample, as the ends of its interval, (2, n_phases), by the numbers of sources.
    frames: of each recording and phase, to know whether two rows are of the same test.
    """

    units: tuple[Unit, ...]
    shares: dict[str, Float]
    resampled: dict[str, Float]
    curves: dict[tuple[int, ...], Float]
    frames: Float

    def interval(self, measure: str) -> Interval | None:
        """ACC in % and its interval of 95 %; None where there is nothing to measure, or one recording."""
        if measure not in self.shares or len(self.units) < 2:
            return None
        return Interval.of_resamples(float(self.shares[measure].sum()), self.resampled[measure])

    def minus(self, other: ByRecording, measure: str) -> Difference | None:
        """The difference to another row in the same frames of the same recordings, None where they differ."""
        same = self.units == other.units and np.array_equal(self.frames, other.frames)
        if not same or measure not in self.shares or measure not in other.shares or len(self.units) < 2:
            return None
        shares = self.shares[measure] - other.shares[measure]
        points = Interval.of_resamples(
            float(shares.sum()), self.resampled[measure] - other.resampled[measure]
        )
        flipped = np.abs(_signs(len(self.units)) @ shares)
        as_large = np.count_nonzero(flipped >= abs(shares.sum()) - 1e-9)
        return Difference(points, (1 + int(as_large)) / (1 + len(flipped)))


def by_recording(rows: Sequence[Row]) -> ByRecording | None:
    """What the recordings of one row of a table say: all its seeds and subsets. None if a row has no hits."""
    if not rows or any(row.recordings is None for row in rows):
        return None
    known = [(row.part, row.recordings.number.tolist()) for row in rows if row.recordings]
    units = tuple(sorted({(part, number) for part, numbers in known for number in numbers}))
    seeds: dict[int, Counted] = {}
    for row in rows:
        seeds.setdefault(row.seed, {})[row.subset] = _hits_and_frames(row, units)
    parts = tuple(part for part, _ in units)
    drawn = _drawn(parts)
    shares: dict[str, Float] = {}
    resampled: dict[str, Float] = {}
    ends: dict[tuple[int, ...], list[Float]] = {}
    merged = _merged([*seeds.values()])
    for own in merged:
        again: Counted = {
            subset: (drawn @ hits, _frames_again(parts, frames.tobytes()))
            for subset, (hits, frames) in own.items()
        }
        for name, measure in MEASURES.items():
            wanted = {s: pair for s, pair in own.items() if s[1] in measure.n_sources}
            if {n for _, n in wanted} != set(measure.n_sources) and (measure.frames or not wanted):
                continue
            share = _shares(wanted, measure) / len(merged)
            shares[name] = shares.get(name, 0.0) + share
            drawn_again = {s: again[s] for s in wanted}
            resampled[name] = resampled.get(name, 0.0) + _measured(drawn_again, measure) / len(merged)
        for n_sources in ((1, 2), (1,), (2,)):
            pairs = [pair for s, pair in again.items() if s[1] in n_sources]
            if pairs:
                ends.setdefault(n_sources, []).append(_curve(pairs))
    curves = {n: _ends(np.mean(each, axis=0)) for n, each in ends.items()}
    frames = np.stack([np.stack([pair[1] for pair in own.values()]) for own in merged])
    return ByRecording(units, shares, resampled, curves, frames)


def _merged(seeds: Sequence[Counted]) -> Sequence[Counted]:
    """Seeds that were asked about the same frames as one: the mean of their hits says the same as all do."""
    first, *others = seeds
    if any(not np.array_equal(own[s][1], first[s][1]) for own in others for s in first):
        return seeds
    return [{s: (np.mean([own[s][0] for own in seeds], axis=0), frames) for s, (_, frames) in first.items()}]


def _hits_and_frames(row: Row, units: tuple[Unit, ...]) -> tuple[Float, Float]:
    """Frames found and frames asked about of each recording after each phase, both (n_units, n_phases)."""
    assert row.recordings is not None
    own, place = row.recordings, {unit: i for i, unit in enumerate(units)}
    n_phases = own.hits.shape[1]
    unit = [place[row.part, int(number)] for number in own.number]
    hits, frames = np.zeros((len(units), n_phases)), np.zeros((len(units), n_phases))
    np.add.at(hits, unit, own.hits / own.n_sources)
    np.add.at(frames, unit, own.frames[:, None] * (np.arange(n_phases) >= own.phase[:, None]))
    return hits, frames


def _shares(own: Counted, measure: Measure) -> Float:
    """What each recording contributes to a measure, in points."""
    weight = {
        s: measure.frames[s] if measure.frames else frames[:, -1].sum() for s, (_, frames) in own.items()
    }
    shares: Float = np.zeros(len(next(iter(own.values()))[0]))
    for subset, (hits, frames) in own.items():
        asked = frames.sum(axis=0)  # (K,)
        counted = (asked > 0) & ((np.arange(len(asked)) == len(asked) - 1) | (not measure.last))
        share = weight[subset] / sum(weight.values()) / max(1, counted.sum())
        shares += 100 * hits @ np.where(counted, share / np.maximum(asked, 1), 0.0)
    return shares


def _measured(again: Counted, measure: Measure) -> Float:
    """The measure of each resample, (n_resamples,); a subset that was not drawn does not count."""
    total: Float = np.zeros(1)
    weights: Float = np.zeros(1)
    for subset, (hits, frames) in again.items():
        asked = frames[:, -1:] if measure.last else frames
        found = hits[:, -1:] if measure.last else hits
        n_phases = (asked > 0).sum(axis=1)
        acc = 100 * np.divide(found, asked, out=np.zeros_like(found), where=asked > 0).sum(axis=1)
        drawn = frames[:, -1] > 0
        weight = np.where(drawn, measure.frames[subset] if measure.frames else frames[:, -1], 0.0)
        total = total + weight * acc / np.maximum(1, n_phases)
        weights = weights + weight
    return np.divide(total, weights, out=np.full_like(total, np.nan), where=weights > 0)


def _curve(again: Sequence[tuple[Float, Float]]) -> Float:
    """ACC in % on the phases 0..k of each resample, (n_resamples, n_phases), NaN where nothing was asked."""
    acc = np.stack([np.divide(h, f, out=np.full_like(h, np.nan), where=f > 0) for h, f in again])
    weights = np.where(np.isfinite(acc), np.stack([f[:, -1:] for _, f in again]), 0.0)
    total = weights.sum(axis=0)
    found = (np.nan_to_num(acc) * weights).sum(axis=0)
    curve: Float = 100 * np.divide(found, total, out=np.full_like(found, np.nan), where=total > 0)
    return curve


def _ends(curves: Float) -> Float:
    """The interval of 95 % after each phase, (2, n_phases), of the resamples that have a frame by then."""
    ends: Float = np.full((2, curves.shape[1]), np.nan)
    known = np.isfinite(curves).any(axis=0)
    ends[:, known] = np.nanquantile(curves[:, known], [0.025, 0.975], axis=0)
    return ends


@lru_cache(maxsize=8)
def _drawn(parts: tuple[str, ...]) -> Float:
    """How often each resample has each recording, (N_RESAMPLES, n_units); each part is drawn by itself."""
    counts = np.zeros((N_RESAMPLES, len(parts)))
    each = np.arange(N_RESAMPLES)[:, None]
    for stratum in sorted(set(parts)):
        own = np.flatnonzero(np.array(parts) == stratum)
        rng = np.random.default_rng([SEED, *stratum.encode()])
        np.add.at(counts, (each, own[resamples(len(own), N_RESAMPLES, rng=rng)]), 1)
    return counts


@lru_cache(maxsize=32)
def _frames_again(parts: tuple[str, ...], frames: bytes) -> Float:
    """Frames of each resample, of the frames of each recording; rows of one test share them."""
    again: Float = _drawn(parts) @ np.frombuffer(frames).reshape(len(parts), -1)
    return again


@lru_cache(maxsize=8)
def _signs(n_units: int) -> NDArray[np.float64]:
    return np.random.default_rng([SEED, n_units]).choice([-1.0, 1.0], size=(N_RESAMPLES, n_units))
