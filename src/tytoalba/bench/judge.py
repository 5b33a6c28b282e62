"""One test set of a benchmark: what a method answers after every phase, how wrong it is, and where."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.bench.data import Frames
from tytoalba.bench.results import MASKS, N_SECTORS, SEPARATIONS, Mask
from tytoalba.errors import TytoError
from tytoalba.learning.method import Method
from tytoalba.learning.phases import phase_of
from tytoalba.signal.angles import BLANK, N_DIRECTIONS, Float, decode, decode_two, distance
from tytoalba.signal.metrics import front_back_counts, match, within

SECTOR = 360 // N_SECTORS


class Judge:
    """One test set: errors on every phase after every phase, by decision rule, mask and number of sources.

    context: numbers of neighbouring frames on each side to average over, beside none.
    """

    def __init__(
        self, frames: Frames, directions: Sequence[NDArray[np.intp]], context: Sequence[int] = ()
    ) -> None:
        self.n_phases = len(directions)
        self.taught = np.zeros((self.n_phases, N_DIRECTIONS), np.bool_)
        for k, classes in enumerate(directions):
            self.taught[k:, classes] = True
        self.X = frames.X
        self.context = (0, *context)
        if context and frames.place is None:
            raise TytoError("nobody knows which frames are neighbours in these data: leave out `context`")
        self.seconds, self.n_answered = 0.0, 0
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
        self.errors: dict[tuple[int, int, str, Mask], list[Float]] = {}
        self.found: dict[tuple[int, int, str, Mask], Float] = {}

    def after(self, k: int, method: Method) -> None:
        """Test on the frames of phases 0..k."""
        seen = {n: int(np.searchsorted(phase, k, side="right")) for n, (_, _, phase) in self.sets.items()}
        start = time.perf_counter()
        # frames are taken together only when they are asked about: no second copy of all of them stays
        scores = {n: method.posteriors(self.X[self.sets[n][0][:m]]) for n, m in seen.items() if m}
        self.seconds += time.perf_counter() - start
        self.n_answered += sum(seen.values())
        for n, m in seen.items():
            if not m:
                for (_, n_sources, _, _), listed in self.errors.items():
                    if n_sources == n:
                        listed.append(np.empty((0, n)))
        for c in self.context:
            for n, decision, score in self._heard(scores, c):
                true = self.sets[n][1][: seen[n]]
                for mask in MASKS:
                    if mask and self.taught[k].all():
                        found, errors = self.found[c, n, decision, ""], self.errors[c, n, decision, ""][k]
                    else:
                        found = answers(score, n, self.taught[k] if mask else None)
                        errors = match(true, found)
                    key = c, n, decision, mask
                    self.errors.setdefault(key, [np.empty((0, n))] * k).append(errors)
                    self.found[key] = found

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

    def rows(self, in_detail: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """The context, and what the result file keeps of it; in detail: by recording, and by direction."""
        for (c, n, decision, mask), listed in self.errors.items():
            phase = self.sets[n][2]
            counts = np.bincount(phase, minlength=self.n_phases)
            matrices = {"acc": [], "mae": []}  # type: dict[str, list[list[float | None]]]
            for errors in listed:
                here = phase[: len(errors)]
                matrices["acc"].append(_means(within(errors).mean(axis=1), here, self.n_phases))
                matrices["mae"].append(_means(errors.mean(axis=1), here, self.n_phases))
            row = {"decision": decision, "mask": mask, "n_sources": n, "counts": counts.tolist(), **matrices}
            if in_detail and not c and n in self.places:
                row["recordings"] = self._by_recording(n, listed)
            if in_detail and len(listed[-1]) == len(phase):
                row |= self._by_direction(n, listed[-1], self.found[c, n, decision, mask])
            yield c, row

    def _by_recording(self, n: int, listed: Sequence[Float]) -> dict[str, Any]:
        """Sources found, by recording and phase: after that phase, the next, and so on.

        What does not change any more is said once: a list that ends early goes on as it ends.
        """
        phase = self.sets[n][2]
        cells, index = np.unique(np.stack([self.places[n][:, 0], phase], axis=1), axis=0, return_inverse=True)
        hits = [
            np.bincount(index[: len(errors)], weights=within(errors).sum(axis=1), minlength=len(cells))
            for errors in listed
        ]
        return {
            "number": cells[:, 0].tolist(),
            "phase": cells[:, 1].tolist(),
            "frames": np.bincount(index).tolist(),
            "hits": [
                _shortened([int(after[i]) for after in hits[first:]])
                for i, first in enumerate(cells[:, 1].tolist())
            ],
        }

    def _by_direction(self, n: int, errors: Float, found: Float) -> dict[str, Any]:
        """After the last phase: by sector; one source: front taken for back; two: by how far apart."""
        true = self.sets[n][1]
        sector = (true // SECTOR).astype(np.intp).ravel() % N_SECTORS
        flat = errors.ravel()
        row: dict[str, Any] = {
            "sectors": {
                "frames": np.bincount(sector, minlength=N_SECTORS).tolist(),
                "acc": _means(within(flat).astype(float), sector, N_SECTORS),
                "mae": _means(flat, sector, N_SECTORS),
            }
        }
        if n == 1:
            confused, clear = front_back_counts(true, found)
            return row | {"front_back": {"confused": confused, "clear": clear}}
        apart = distance(true[:, 0], true[:, 1])
        n_bins = len(SEPARATIONS) - 1
        bins = np.clip(np.searchsorted(SEPARATIONS, apart, side="right") - 1, 0, n_bins - 1)
        separation = {
            "frames": np.bincount(bins, minlength=n_bins).tolist(),
            "acc": _means(within(errors).mean(axis=1), bins, n_bins),
            "mae": _means(errors.mean(axis=1), bins, n_bins),
        }
        return row | {"separation": separation}


def answers(scores: NDArray[np.float32], n_sources: int, taught: NDArray[np.bool_] | None = None) -> Float:
    """The directions of the highest scores in degrees, (n_frames, n_sources).

    taught: classes that may be answered, (n_directions,). Where the first answer and its surroundings are all
    of them, the second is the best direction beside.

    >>> scores = np.zeros((1, 360), np.float32)
    >>> scores[0, [10, 40, 200]] = 0.7, 0.8, 0.9
    >>> answers(scores, 2).tolist(), answers(scores, 2, np.arange(360) < 90).tolist()
    ([[200.0, 40.0]], [[40.0, 10.0]])
    """
    kept = scores if taught is None else np.where(taught, scores, -np.inf)
    if n_sources == 1:
        return decode(kept)[:, None]
    found = decode_two(kept)
    if taught is not None:
        second = np.take_along_axis(kept, found[:, 1:].astype(np.intp), axis=1)[:, 0]
        blanked = (found[:, 1] - found[:, 0] + BLANK) % 360 < 2 * BLANK
        lost = np.flatnonzero(np.isneginf(second) | blanked)
        if len(lost):
            raised = scores[lost]
            raised[np.arange(len(lost)), found[lost, 0].astype(np.intp)] = np.inf
            found[lost] = decode_two(raised)
    return found


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


def _shortened(values: list[int]) -> list[int]:
    """Without the repetitions at the end.

    >>> _shortened([3, 4, 2, 2, 2])
    [3, 4, 2]
    """
    last = len(values)
    while last > 1 and values[last - 2] == values[last - 1]:
        last -= 1
    return values[:last]


def _means(values: Float, groups_of: NDArray[np.intp], n: int) -> list[float | None]:
    counts = np.bincount(groups_of, minlength=n)
    sums = np.bincount(groups_of, weights=values, minlength=n)
    return [round(float(s / c), 4) if c else None for s, c in zip(sums, counts, strict=True)]
