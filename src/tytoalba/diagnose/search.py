"""The wiring that explains the lags: evidence from recordings, a score for each hypothesis, and a verdict.

A hypothesis is scored by GCC-PHAT: the mean over recordings and channel pairs of the value at the delay that
it predicts for the direction of the recording: the known one or, in free speech, the best. For the true
wiring that is the height of the peaks; a wrong one reads beside them. The answer is sure when it beats the
best hypothesis that predicts otherwise by several standard errors over blocks of frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tytoalba.diagnose.wiring import (
    SLIGHT_TURN,
    STEP,
    Orders,
    Wiring,
    congruences,
    hypotheses,
    plainness,
    predicted,
    renamed,
    representatives,
    slightly_turned,
)
from tytoalba.errors import AudioError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import frames
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import LAG_MARGIN

LOWEST, HIGHEST = 300.0, 8000.0
"""Hz that are compared: below, small arrays hear no difference and rooms hum."""
REACH = 3.0
"""Lags that are kept, in largest delays of the array: more than its geometry allows, to see wrong rates."""
VOICED_DB = -14.0
"""Frames this far below the loud ones are pauses."""
MOST_BLOCKS, FRAMES_A_BLOCK = 24, 4
"""Blocks that a recording is cut into, to see how much the answer depends on single ones."""
SHORT_BLOCKS, FRAMES_A_SHORT_BLOCK = 4, 2
"""Blocks that a short recording has at best, and the fewest frames of a block."""
COARSE_STEP, TURN_STEP = 10.0, 2.0
"""Degrees between the directions tried in free speech, and to which a turn is measured."""
POINTING = (0.0, -6.0, 6.0)
"""Degrees by which a talker may be off the direction that was given; the best of them counts."""
LEAST_TURN = 12.0
"""Degrees of turn that are worth a word: less may be the pointing of whoever gave the directions."""
SAME_DELAY = 3e-6
"""Seconds by which predictions may differ and still be the same: one millimetre of path."""
FINE = 16
"""Steps per sample in which lags are read."""
N_SHORT, CHUNK = 60, 4096
"""Rivals that are compared block by block; orders that are scored at a time."""
LEAST_FREEDOM = 6
"""Blocks beyond one per recording without which nothing is sure."""
SURE_MARGIN, SURE_FIT = 3.5, 0.5
"""Least margin over the best rival, in standard errors, and least share of the peaks' height that a sure
answer explains."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one recording says about lags.

    gcc: GCC-PHAT averaged over blocks of voiced frames, (n_blocks, n_pairs, 2 max_lag + 1), float64.
    azimuth: degrees, None in free speech.
    """

    gcc: Float
    azimuth: float | None


def gather(samples: Float, array: MicArray, azimuth: float | None = None) -> Evidence:
    """The evidence of a recording (n_mics, n_samples) at the array's rate; azimuth: degrees, if known."""
    n = array.frame_length
    cut = frames(samples, n, n // 2)
    level = 20 * np.log10(np.sqrt(np.mean(np.square(cut, dtype=np.float64), axis=(1, 2))) + 1e-12)
    voiced = level > np.quantile(level, 0.9) + VOICED_DB
    lag = min(int(np.ceil(REACH * array.max_delay)) + LAG_MARGIN, n // 2 - 1)
    gcc = GccPhat.for_array(array, n, (LOWEST, min(HIGHEST, array.sample_rate / 2)), lag)
    values = np.asarray(gcc(cut[voiced]), np.float64)  # (F, P, L)
    blocks = np.array_split(values, _number_of_blocks(len(values)))
    return Evidence(np.stack([block.mean(axis=0) for block in blocks]), azimuth)


def _number_of_blocks(n_frames: int) -> int:
    """How many blocks a recording is cut into: a short one into smaller ones."""
    short = min(SHORT_BLOCKS, n_frames // FRAMES_A_SHORT_BLOCK)
    return min(MOST_BLOCKS, max(1, short, n_frames // FRAMES_A_BLOCK))


@dataclass(frozen=True)
class Verdict:
    """What the recordings say about the wiring.

    alternatives: wirings that predict the same and explain the lags best, the plainest first: more than one
        where the recordings cannot tell them apart, or where they are two names of one thing.
    fit: share of the height of the GCC peaks that they explain, about 1 for the truth.
    plain_fit: that of the array file as it is.
    margin: by how many standard errors they beat `rival`, the best that predicts otherwise; None where there
        is no rival or too little speech to know.
    enough_speech: whether there are blocks enough to be sure of anything.
    directions_known: of the recordings. almost: a wiring that predicts nearly the same.
    """

    alternatives: tuple[Wiring, ...]
    fit: float
    plain_fit: float
    margin: float | None
    rival: Wiring | None
    enough_speech: bool
    directions_known: bool
    almost: Wiring | None = None

    @property
    def sure(self) -> bool:
        """Whether the margin and the fit are large enough to say so."""
        beats_all = self.margin is not None and self.margin >= SURE_MARGIN
        return self.enough_speech and beats_all and self.fit >= SURE_FIT

    @property
    def as_filed(self) -> bool:
        """Whether the array file as it is is among the answers."""
        return self.alternatives[0] == Wiring(tuple(range(len(self.alternatives[0].order))))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Orders (n_orders, n_mics) at one mounting, with their scores (n_orders,)."""

    mirrored: bool
    turn: float
    orders: Orders
    scores: Float

    def wiring(self, k: int) -> Wiring:
        """One of them."""
        return Wiring(tuple(self.orders[k].tolist()), self.mirrored, self.turn)


class Search:
    """Scores hypotheses on the evidence of several recordings: those of known direction, or all.

    used: channels that are fit to be compared (others are dead or copies). polarity: +1 or -1 per channel.
    scale: of all delays, other than 1 if the sample rate is not what it is said to be.
    """

    def __init__(
        self,
        evidence: Sequence[Evidence],
        array: MicArray,
        used: Sequence[int],
        polarity: Float,
        scale: float = 1.0,
    ) -> None:
        self.array, self.scale = array, scale
        self.pairs = [p for p, (i, j) in enumerate(array.pairs) if i in used and j in used]
        if not self.pairs:
            raise AudioError("fewer than two channels are fit to be compared; repair the others first")
        first, second = np.asarray(array.pairs)[self.pairs].T
        self.first, self.second = first, second
        sign = (polarity[first] * polarity[second])[:, None]
        self.directions_known = any(e.azimuth is not None for e in evidence)
        azimuths = [np.array([e.azimuth]) for e in evidence if e.azimuth is not None]
        kept = [e for e in evidence if self.directions_known == (e.azimuth is not None)]
        self.groups = [between_lags(e.gcc[:, self.pairs] * sign) for e in kept]  # (B, P, fine lags)
        self.azimuths = azimuths or [np.arange(0.0, 360.0, COARSE_STEP)] * len(self.groups)
        # each recording has one direction if it is known, each of its blocks its own if not
        self.units = [
            (blocks.mean(axis=0), azimuth) for blocks, azimuth in zip(self.groups, azimuths, strict=False)
        ]
        if not self.directions_known:
            self.units = [(block, self.azimuths[0]) for blocks in self.groups for block in blocks]
        self.height = max(float(np.mean([gcc.max(axis=1).mean() for gcc, _ in self.units])), 1e-9)

    def scored(
        self, orders: Orders, mirrored: bool = False, turn: float = 0.0, exact: bool = False
    ) -> Candidates:
        """All these orders at one mounting; exact: talkers stood exactly where they said."""
        total = np.zeros(len(orders))
        for gcc, azimuth in self.units:
            delays = self.scale * predicted(self.array, mirrored, turn, azimuth, self._pointing(exact))
            k, share = places_of(np.moveaxis(delays, 0, -1).reshape(*delays.shape[1:3], -1), gcc.shape[-1])
            table = gcc[:, k] * (1 - share) + gcc[:, k + 1] * share  # (P, M, M, columns)
            for start in range(0, len(orders), CHUNK):
                some = orders[start : start + CHUNK]
                values = sum(
                    table[p, some[:, a], some[:, b]]
                    for p, (a, b) in enumerate(zip(self.first, self.second, strict=True))
                )
                total[start : start + CHUNK] += np.max(values, axis=1)
        return Candidates(mirrored, turn, orders, total / (len(self.units) * len(self.pairs)))

    def _pointing(self, exact: bool) -> tuple[float, ...]:
        return POINTING if self.directions_known and not exact else (0.0,)

    def block_scores(self, wiring: Wiring, exact: bool = False) -> list[Float]:
        """The score of one wiring in each block: (n_blocks,) per recording."""
        order = np.asarray(wiring.order)
        i, j = order[self.first], order[self.second]
        found = []
        for blocks, azimuth in zip(self.groups, self.azimuths, strict=True):
            mounted = predicted(self.array, wiring.mirrored, wiring.turn, azimuth, self._pointing(exact))
            delays = mounted[:, i, j]  # (A, P, E)
            k, share = places_of(self.scale * np.swapaxes(delays, 1, 2), blocks.shape[-1])  # (A, E, P)
            p = np.arange(len(self.pairs))
            values = (blocks[:, p, k] * (1 - share) + blocks[:, p, k + 1] * share).mean(axis=-1)  # (B, A, E)
            values = values.reshape(len(blocks), -1)
            found.append(
                values[:, values.mean(axis=0).argmax()] if self.directions_known else values.max(axis=1)
            )
        return found

    @property
    def enough_speech(self) -> bool:
        """Whether there are blocks enough to say how sure an answer is."""
        n_blocks = sum(len(blocks) for blocks in self.groups)
        return n_blocks - (len(self.groups) if self.directions_known else 1) >= LEAST_FREEDOM

    def margin(self, better: list[Float], worse: list[Float]) -> float:
        """By how many standard errors one wiring scores higher, from scores of blocks; 0 if there are few."""
        gains = [a - b for a, b in zip(better, worse, strict=True)]
        if not self.directions_known:
            gains = [np.concatenate(gains)]
        if not self.enough_speech:
            return 0.0
        freedom = sum(len(gain) - 1 for gain in gains)
        variance = sum(float(((gain - gain.mean()) ** 2).sum()) for gain in gains) / freedom
        error = np.sqrt(sum(variance / len(gain) for gain in gains)) / len(gains)
        return float(np.mean([gain.mean() for gain in gains]) / max(error, 1e-9))

    def alike(self, best: Wiring, among: Candidates) -> NDArray[np.bool_]:
        """Which candidates predict the delays that the best does, in all recordings: (n_orders,)."""
        azimuth = np.concatenate(self.azimuths)
        one = predicted(self.array, best.mirrored, best.turn, azimuth)[..., 0]  # (A, M, M)
        other = predicted(self.array, among.mirrored, among.turn, azimuth)[..., 0]
        order, orders = np.asarray(best.order), among.orders
        wanted = one[:, order[self.first], order[self.second]]  # (A, P)
        off = other[:, orders[:, self.first], orders[:, self.second]] - wanted[:, None]  # (A, N, P)
        return np.asarray(np.abs(off).max(axis=(0, 2)) < SAME_DELAY * self.array.sample_rate)


def judge(search: Search, turned: bool = False) -> Verdict:
    """The wiring that explains the lags best, if one does.

    turned: also try every order at every turn; otherwise other orders only as the array file is mounted,
    and other turns only in the order of the file.
    """
    return _judge_known(search, turned) if search.directions_known else _judge_free(search)


def _judge_known(search: Search, turned: bool) -> Verdict:
    array = search.array
    pool = [search.scored(orders, *mounting) for mounting, orders in hypotheses(array, turned)]
    leader = max(pool, key=lambda c: float(c.scores.max()))
    strongest, score = leader.wiring(int(leader.scores.argmax())), float(leader.scores.max())
    best = _unturned(search, pool, strongest)
    alternatives, rivals = [best], []
    for candidates in pool:
        alike = search.alike(best, candidates)
        alternatives += [candidates.wiring(int(k)) for k in np.flatnonzero(alike)]
        top = np.argsort(np.where(alike, -np.inf, candidates.scores))[::-1][:N_SHORT]
        rivals += [(float(candidates.scores[k]), candidates.wiring(int(k))) for k in top if not alike[k]]
    rivals.sort(key=lambda pair: -pair[0])
    near = (best, strongest)
    others = [w for _, w in rivals if not any(slightly_turned(array, one, w, True) for one in near)][:N_SHORT]
    almost = [
        w for _, w in rivals if slightly_turned(array, best, w, True) and not slightly_turned(array, best, w)
    ]
    scores = search.block_scores(strongest)
    margins = [search.margin(scores, search.block_scores(w)) for w in others]
    k = int(np.argmin(margins)) if margins else -1
    plain = pool[0].scores[0]
    return Verdict(
        tuple(sorted(dict.fromkeys(alternatives), key=plainness)),
        score / search.height,
        float(plain) / search.height,
        margins[k] if margins and search.enough_speech else None,
        others[k] if margins else None,
        search.enough_speech,
        True,
        almost[0] if almost else None,
    )


def _unturned(search: Search, pool: list[Candidates], best: Wiring) -> Wiring:
    """The best as the array file is mounted, if that is but a slight turn away: people point roughly.

    Else, or if another order is needed for it and the turn is measurable, the plainest name of the best.
    """
    for candidates in pool[:2] if best.turn else []:
        for k in np.argsort(candidates.scores)[::-1][:N_SHORT]:
            near = candidates.wiring(int(k))
            if slightly_turned(search.array, best, near, nearly=True):
                plain = near == Wiring(tuple(range(search.array.n_mics)))
                if plain or abs(turn_of(search, near)[0]) < LEAST_TURN:
                    return near
    return min(renamed(search.array, best), key=plainness)


def _judge_free(search: Search) -> Verdict:
    candidates = search.scored(representatives(search.array))
    ranking = np.argsort(candidates.scores)[::-1][: N_SHORT // 2]
    best, *others = (candidates.wiring(int(k)) for k in ranking)
    scores = search.block_scores(best)
    margins = [search.margin(scores, search.block_scores(w)) for w in others]
    k = int(np.argmin(margins)) if margins else -1
    same = [Wiring(tuple(symmetry[list(best.order)].tolist())) for symmetry in congruences(search.array)]
    return Verdict(
        tuple(sorted(same, key=plainness)),
        float(candidates.scores[ranking[0]]) / search.height,
        float(candidates.scores[0]) / search.height,
        margins[k] if margins and search.enough_speech else None,
        others[k] if margins else None,
        search.enough_speech,
        False,
    )


def turn_of(search: Search, wiring: Wiring) -> tuple[float, float]:
    """Degrees by which the array is turned beyond the wiring's turn, and by how many standard errors."""
    steps = np.arange(-SLIGHT_TURN - STEP, SLIGHT_TURN + STEP + 1.0, TURN_STEP)
    order = np.array([wiring.order])
    scores = [
        float(search.scored(order, wiring.mirrored, wiring.turn + step, True).scores[0]) for step in steps
    ]
    found = float(steps[int(np.argmax(scores))])
    moved = replace(wiring, turn=wiring.turn + found)
    return found, search.margin(
        search.block_scores(moved, exact=True), search.block_scores(wiring, exact=True)
    )


def between_lags(gcc: Float) -> Float:
    """GCC values (..., n_lags) at FINE times as many lags, by a windowed sinc: (..., n_fine)."""
    return np.asarray(gcc @ _interpolation(gcc.shape[-1]))


def places_of(delays: Float, n_fine: int) -> tuple[NDArray[np.intp], Float]:
    """Where delays (samples) are among fine lags: the one before, and how far towards the next."""
    place = np.clip(delays * FINE + n_fine // 2, 0.0, n_fine - 1.001)
    before = place.astype(np.intp)
    return before, place - before


@lru_cache(maxsize=32)
def _interpolation(n_lags: int) -> Float:
    """Weights (n_lags, n_fine)."""
    reach = n_lags // 2
    fine = np.arange(-reach * FINE, reach * FINE + 1) / FINE
    off = fine - np.arange(-reach, reach + 1.0)[:, None]
    return np.asarray(np.sinc(off) * np.cos(np.clip(off / (LAG_MARGIN + 1), -1, 1) * np.pi / 2) ** 2)
