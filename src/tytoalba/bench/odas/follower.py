"""ODAS's tracker beside ours: on the same scenes, judged at the same moments.

Which report belongs to a frame is a choice. Our tracker has heard a frame to its end when it tells of it, and
is compared with where people were in the middle. ODAS gets the same: its last report at the end of the frame
(`heard = "end"`), so that both have heard the same sound. With `heard = "middle"` it has heard half a frame
less, and its directions are as old as the truth.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tytoalba.bench.odas.configuration import HOP, RATE
from tytoalba.bench.odas.program import find_odas, run_odas
from tytoalba.bench.odas.settings import BEST, SHIPPED, OdasSettings
from tytoalba.bench.odas.tracks import Report
from tytoalba.bench.track_scores import Report as Judged
from tytoalba.bench.tracking import Scene

_ROUNDING = 1e-6  # seconds: times of frames are floats


@dataclass(frozen=True)
class OdasFollower:
    """What ODAS says of a scene. program: the path of `odaslive`."""

    program: Path
    settings: OdasSettings

    def __call__(self, scene: Scene) -> Judged:
        """Pairs (identity, azimuth) of those that talk, in every frame."""
        reports = run_odas(self.program, scene.array, scene.samples, self.settings)
        half = scene.array.frame_length / scene.array.sample_rate / 2
        return at_frames(reports, scene.time, half, self.settings)


def at_frames(
    reports: Sequence[Report], time: Sequence[float], half: float, settings: OdasSettings
) -> list[list[tuple[int, float]]]:
    """Tracks that talk in each frame.

    time: seconds, the middle of each frame. half: seconds, half the length of a frame. A report of hop n
    (from 1) is known when n hops have been heard. Activity goes up and down from hop to hop: its mean over
    the last frame length decides.
    """
    hops = [report.hop for report in reports]
    later = half if settings.heard == "end" else 0.0
    found = []
    for middle in time:
        heard = int((middle + later + _ROUNDING) * RATE / HOP)
        place = bisect_right(hops, heard)
        last = reports[bisect_right(hops, heard - int(2 * half * RATE / HOP)) : place]
        activity: dict[int, float] = defaultdict(float)
        for report in last:
            for one in report.tracks:
                activity[one.id] += one.activity
        enough = settings.least_activity * len(last) - _ROUNDING
        tracks = reports[place - 1].tracks if place else ()
        found.append([(one.id, one.azimuth) for one in tracks if activity[one.id] >= enough])
    return found


def odas_followers(binary: str | Path, best: OdasSettings = BEST) -> dict[str, OdasFollower]:
    """The two rows of ODAS in `tyto bench tracking`, by name."""
    program = find_odas(binary)
    return {
        "ODAS as shipped": OdasFollower(program, SHIPPED),
        "ODAS, best setting": OdasFollower(program, best),
    }
