"""Choose the settings of ODAS that `tyto bench tracking --odas` calls its best: on validation scenes.

`python tools/choose_odas.py ODASLIVE --speech SPEECH`, as tools/choose_tracking.py does it for ours: one
setting at a time, from those that ODAS ships with, each value of GRID; one round for its Kalman filter, one
for its particle filter, each followed by TOGETHER, then more rounds for the better of them if there is time.
The loss is `tytoalba.bench.tracking.loss`, as for ours. To save time, the rounds look at every other scene;
the best trials are then measured on all, and the best of those is the choice. Test scenes are never looked
at. Every trial is written to results/tracking/odas-search.json as soon as it is measured, and is not measured
again when the command is repeated. The particle filter draws anew in every run: its losses differ a little
from time to time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from tytoalba.bench.descent import Value, descend
from tytoalba.bench.odas.follower import OdasFollower
from tytoalba.bench.odas.program import find_odas
from tytoalba.bench.odas.settings import SHIPPED, OdasSettings
from tytoalba.bench.tracking import Scene, loss, make_scene, row_of, scene_tasks
from tytoalba.signal.array import load_array
from tytoalba.storage.files import read_json
from tytoalba.storage.parallel import parallel_map
from tytoalba.storage.writing import write_json

GRID: dict[str, Sequence[Value]] = {
    "least_activity": (0.0, 0.1, 0.3, 0.5, 0.8),
    "n_inactive": (12, 25, 50, 100, 250, 500),
    "active_mu": (0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
    "inactive_mu": (0.1, 0.15, 0.2, 0.25, 0.3),
    "sigma_r2_active": (0.0025, 0.0075, 0.0225, 0.0675),
    "sigma_r2_prob": (0.001, 0.0025, 0.0075, 0.0225),
    "n_prob": (3, 5, 10, 20, 40),
    "theta_prob": (0.5, 0.7, 0.8, 0.9, 0.95),
    "theta_new": (0.5, 0.7, 0.9, 0.95),
    "p_new": (0.01, 0.03, 0.1, 0.2),
    "p_false": (0.03, 0.1, 0.3),
    "p_track": (0.5, 0.8, 0.9),
    "theta_inactive": (0.3, 0.6, 0.8, 0.9, 0.97),
    "active_sigma2": (0.001, 0.0025, 0.006),
    "inactive_sigma2": (0.001, 0.0025, 0.006),
    "n_pots": (2, 3, 4),
    "interp_rate": (2, 4, 8),
    "n_matches": (5, 10, 20),
    "n_tracks": (2, 4),
    "fine_level": (4, 5),
    "heard": ("middle", "end"),
}
"""Values to try, for both filters."""
ALONE: dict[str, dict[str, Sequence[Value]]] = {
    "kalman": {"sigma_q": (0.001, 0.003, 0.01, 0.03, 0.1)},
    "particle": {
        "st_beta": (0.01, 0.02, 0.04, 0.08),
        "ve_beta": (0.1, 0.2, 0.4),
        "ac_beta": (0.1, 0.2, 0.4),
        "n_particles": (300, 1000),
    },
}
"""Values to try first, for one of its filters alone."""
TOGETHER: tuple[dict[str, Any], ...] = (
    {"active_mu": 0.2, "inactive_mu": 0.1},
    {"active_mu": 0.3, "inactive_mu": 0.15},
    {"active_mu": 0.35, "inactive_mu": 0.2},
    {"active_mu": 0.45, "inactive_mu": 0.3},
    {"n_inactive": 100, "theta_inactive": 0.6},
    {"n_inactive": 50, "theta_inactive": 0.3},
    {"n_inactive": 25, "theta_inactive": 0.1},
    {"n_inactive": 500, "least_activity": 0.2},
    {"n_inactive": 500, "least_activity": 0.4},
    {"theta_new": 0.7, "n_prob": 10, "theta_prob": 0.9},
    {"theta_new": 0.7, "n_prob": 20, "theta_prob": 0.9},
    {"sigma_q": 0.02, "sigma_r2_active": 0.0675},
    {"sigma_q": 0.005, "sigma_r2_active": 0.0075},
)
"""Values that only make sense together, tried on top of the best."""
SEEDS = (10, 11, 12)


class Search:
    """Losses of settings on scenes, each measured once and written down at once."""

    def __init__(
        self, program: Path, scenes: Sequence[Scene], about: dict[str, Any], output: Path, processes: int
    ) -> None:
        self.program, self.scenes, self.about, self.output = program, scenes, about, output
        self.pool = ThreadPool(processes)  # the work is done by ODAS's own processes
        self.trials: list[dict[str, Any]] = read_json(output)["trials"] if output.is_file() else []

    def loss(self, every: int, settings: OdasSettings) -> float:
        """The loss on every so-manieth scene."""
        changed = {k: v for k, v in asdict(settings).items() if v != getattr(SHIPPED, k)}
        scenes = self.scenes[::every]
        for one in self.trials:
            if one["changed"] == changed and one["scenes"] == len(scenes):
                return float(one["loss"])
        follow = OdasFollower(self.program, settings)
        found = loss(self.pool.map(lambda scene: row_of(scene, follow(scene)), scenes))
        self.trials.append({"scenes": len(scenes), "loss": round(found, 4), "changed": changed})
        self.write()
        return round(found, 4)

    def write(self, **more: Any) -> None:
        """All that is known, as JSON."""
        write_json({**self.about, "trials": self.trials, **more}, self.output)


def main() -> None:
    """Search, print, write."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("odas", help="path of odaslive")
    options.add_argument("--array", default="respeaker-usb-4")
    options.add_argument("--scenes", type=int, default=4, help="of each kind and seed")
    options.add_argument("--every", type=int, default=2, help="the rounds look at every so-manieth scene")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--finalists", type=int, default=8)
    options.add_argument("--speech", default=None)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--output", type=Path, default=Path("results/tracking/odas-search.json"))
    given = options.parse_args()
    program, array = find_odas(given.odas), load_array(given.array)
    tasks = scene_tasks("valid", given.scenes, SEEDS)
    # ODAS gets sound alone: the cheapest method does for the rest of a scene
    scenes = list(
        parallel_map(partial(make_scene, array, "srp", given.speech, "valid"), tasks, given.processes)
    )
    about = {
        "array": given.array,
        "part": "valid",
        "seeds": list(SEEDS),
        "scenes": len(scenes),
        "grid": {name: list(values) for part in (*ALONE.values(), GRID) for name, values in part.items()},
        "together": [dict(values) for values in TOGETHER],
        "start": asdict(SHIPPED),
    }
    search = Search(program, scenes, about, given.output, max(1, given.processes))

    def step(name: str, value: Value, found: float, kept: bool) -> None:
        print(f"{name} {value}: {found:.3f}{' kept' if kept else ''}", flush=True)

    screened = partial(search.loss, given.every)
    found = {}
    for mode, alone in ALONE.items():
        print(f"{mode}, else as shipped: {screened(replace(SHIPPED, mode=mode)):.3f}", flush=True)
        best, least = descend(replace(SHIPPED, mode=mode), {**alone, **GRID}, screened, 1, step)
        before = best
        for values in TOGETHER:
            trial = replace(before, **values)
            if (now := screened(trial)) < least:
                best, least = trial, now
            print(f"{values}: {now:.3f}", flush=True)
        found[mode] = best, least
    mode = min(found, key=lambda name: found[name][1])
    if given.rounds > 1:
        print(f"{mode} goes on", flush=True)
        descend(found[mode][0], {**ALONE[mode], **GRID}, screened, given.rounds - 1, step)
    some = sorted((one for one in search.trials if one["scenes"] < len(scenes)), key=lambda one: one["loss"])
    ranked: list[tuple[float, int, OdasSettings]] = []
    for one in [*some[: given.finalists], {"changed": {}}]:
        settings = replace(SHIPPED, **one["changed"])
        ranked.append((search.loss(1, settings), len(ranked), settings))
        print(f"on all scenes {ranked[-1][0]:.3f}: {one['changed']}", flush=True)
    least, _, best = min(ranked, key=lambda one: one[:2])
    print(best, least)
    search.write(best=asdict(best), loss=least, loss_as_shipped=ranked[-1][0])


if __name__ == "__main__":
    main()
