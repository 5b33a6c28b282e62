"""How good tracks are: pure functions of where talkers were and what was reported, frame by frame.

A report is, for each frame, pairs (identity, azimuth in degrees) of those that talk now. Rows of `scored` are
sums, so that scenes can be added up or drawn again before any ratio is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from tytoalba.signal.angles import Float, distance
from tytoalba.signal.metrics import Interval, bootstrap, count, gospa, within

Report = Sequence[Sequence[tuple[int, float]]]
RIGHT, CUTOFF = 10.0, 20.0
"""Degrees: within which a track is right, and from which GOSPA counts a miss and a ghost."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Where talkers are in some frames of a scene.

    time: seconds, (n_frames,). azimuth: degrees, (n_frames, n_talkers), also of those who are silent.
    talking: (n_frames, n_talkers). seconds: length of the scene.
    """

    time: Float
    azimuth: Float
    talking: NDArray[np.bool_]
    seconds: float


COLUMNS = {
    "acc5": "talkers who talk with a track within 5 degrees, %",
    "right": "talkers who talk with a track within 10 degrees, %",
    "ghosts": "tracks far from every talker, per minute",
    "switches": "times that the track of a talker got another identity, per minute",
    "delay": "seconds from a talker's first word to a right track",
    "gospa": "circular GOSPA, degrees (p = 1, c = 20, alpha = 2)",
}
"""What is measured, by name."""
HIGHER = ("acc5", "right")
"""Columns in which more is better."""
_SCALE = {"acc5": 100.0, "right": 100.0}


def scored(truth: Truth, report: Report) -> dict[str, tuple[float, float]]:
    """Of one scene, for each of `COLUMNS` the sum and what it is to be divided by."""
    if len(report) != len(truth.time):
        raise ValueError(f"{len(report)} frames were reported and {len(truth.time)} are known")
    most = max([len(frame) for frame in report] + [1])
    found = np.full((len(report), most), np.nan)
    for row, frame in zip(found, report, strict=True):
        row[: len(frame)] = [azimuth for _, azimuth in frame]
    reference = np.where(truth.talking, truth.azimuth, np.nan)
    n_talking = float(truth.talking.sum())
    minutes = truth.seconds / 60
    delays = _delays(truth, found)
    return {
        "acc5": (float(count(reference, found, 5.0)[:, 0].sum()), n_talking),
        "right": (float(count(reference, found, RIGHT)[:, 0].sum()), n_talking),
        "ghosts": (float(_ghosts(truth, report)), minutes),
        "switches": (float(_switches(reference, report)), minutes),
        "delay": (float(sum(delays)), float(len(delays))),
        "gospa": (float(gospa(reference, found, CUTOFF, 1.0).distance.sum()), float(len(report))),
    }


def summarised(scenes: Sequence[dict[str, tuple[float, float]]], seed: int = 0) -> dict[str, Interval]:
    """Each column over some scenes, with an interval of 95 % over scenes."""
    rng = np.random.default_rng(seed)
    result = {}
    for name in COLUMNS:
        rows = np.array([scene[name] for scene in scenes])

        def ratio(drawn: Float, scale: float = _SCALE.get(name, 1.0)) -> float:
            return scale * float(drawn[:, 0].sum()) / max(float(drawn[:, 1].sum()), 1e-9)

        result[name] = bootstrap(rows, np.arange(len(rows)), ratio, rng=rng)
    return result


def linked(directions: Sequence[Sequence[float]]) -> list[list[tuple[int, float]]]:
    """Directions that were found frame by frame, with identities: the nearest of the last frame's.

    What has none within `RIGHT` degrees gets a new one: all that one can do without a tracker.
    """
    last: list[tuple[int, float]] = []
    report, n = [], 0
    for frame in directions:
        pairs = _pairs([a for _, a in last], frame, RIGHT)
        now = []
        for k, azimuth in enumerate(frame):
            if k in pairs:
                now.append((last[pairs[k]][0], azimuth))
            else:
                n += 1
                now.append((n, azimuth))
        report.append(now)
        last = now
    return report


def _pairs(before: Sequence[float], now: Sequence[float], reach: float) -> dict[int, int]:
    """For each of `now` the one of `before` it goes with, one to one, within `reach` degrees."""
    if not len(before) or not len(now):
        return {}
    apart = distance(np.asarray(now)[:, None], np.asarray(before)[None])
    rows, columns = linear_sum_assignment(np.minimum(apart, 2 * reach))
    return {int(r): int(c) for r, c in zip(rows, columns, strict=True) if within(apart[r, c], reach)}


def _ghosts(truth: Truth, report: Report) -> int:
    """Identities that are farther than `CUTOFF` from every talker in most of their frames."""
    far: dict[int, list[bool]] = {}
    for places, frame in zip(truth.azimuth, report, strict=True):
        for name, azimuth in frame:
            far.setdefault(name, []).append(bool(distance(places, azimuth).min() > CUTOFF))
    return sum(2 * sum(frames) > len(frames) for frames in far.values())


def _switches(reference: Float, report: Report) -> int:
    """How often the track of a talker has another identity than its track before."""
    last: dict[int, int] = {}
    n = 0
    for places, frame in zip(reference, report, strict=True):
        talkers = np.flatnonzero(np.isfinite(places))
        pairs = _pairs([azimuth for _, azimuth in frame], places[talkers], RIGHT)
        for row, column in pairs.items():
            talker, name = int(talkers[row]), frame[column][0]
            n += last.get(talker, name) != name
            last[talker] = name
    return n


def _delays(truth: Truth, found: Float) -> list[float]:
    """Seconds from each talker's first word to the first right track; to the end where there is none."""
    delays = []
    for azimuth, talking in zip(truth.azimuth.T, truth.talking.T, strict=True):
        if not talking.any():
            continue
        first = int(talking.argmax())
        right = np.flatnonzero(within(distance(azimuth[:, None], found), RIGHT).any(axis=1))
        after = right[right >= first]
        end = truth.time[after[0]] if len(after) else truth.seconds
        delays.append(float(end - truth.time[first]))
    return delays
