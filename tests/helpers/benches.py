"""Small data and configurations of benchmarks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tytoalba.bench.config import Config
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.bench.job import run_job
from tytoalba.learning.methods.contract import toy_features, toy_task

TASK = toy_task()
WHITE = "white -10 dB"
SMALL = {
    "tyto": {"n_features": 50},
    "ssl-cil": {"n_features": 50, "width": 8, "epochs": 1},
    "ssl-cil-random": {"n_features": 50, "width": 8},
    "mlp-gcc": {"width": 8, "epochs": 1},
    "icarl": {"width": 8, "epochs": 1, "budget": 60},
}


def frames(n: int, seed: int, sector: tuple[float, float] = (0.0, 360.0)) -> Frames:
    """Frames that can be learned, every third with two sources."""
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(*sector, (n, 2))
    azimuth[rng.permutation(n) % 3 > 0, 1] = np.nan
    return Frames(toy_features(TASK, azimuth, rng), azimuth)


def toy_data(**changes: Any) -> BenchData:
    tests = {(CLEAN, "test"): frames(90, 3), (CLEAN, "human"): frames(20, 4, (0.0, 40.0))}
    tests[WHITE, "test"] = frames(30, 5)
    data = BenchData("toy", frames(240, 1), frames(60, 2), tests, TASK.array, TASK.gcc)
    return replace(data, **changes)


def toy_config(**changes: Any) -> Config:
    return replace(Config("toy", methods=("srp-phat", "tyto"), n_phases=3, options=SMALL), **changes)


def timeless(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what depends on the clock."""
    rows = [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in result["rows"]]
    return {**{k: v for k, v in result.items() if k != "seconds"}, "rows": rows}


def row_of(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """The one row that is so, and answers anywhere unless another mask is wanted."""
    wanted = {"mask": ""} | wanted
    (found,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return found


def one_job(config: Config, data: BenchData, number: int = 0) -> list[dict[str, Any]]:
    return run_job(config.jobs()[number], config, data)
