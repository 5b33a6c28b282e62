"""The table of attacks on models: exact exports and private releases of the same simulated lessons.

Beside `privacy`, whose tables are about what methods keep. `tyto audit --table models` makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.learning.prior.make import simulate
from tytoalba.localizer.localizer import Localizer
from tytoalba.privacy.model_audit import attack_exports, lessons, with_lessons
from tytoalba.privacy.release_audit import attack_releases
from tytoalba.signal.array import load_array

ARRAY = "respeaker-usb-4"
FAMILIES = ("hybrid", "anechoic")
N_SCENES, SECONDS = 60, 4.0
LONG: dict[str, Any] = {"n_scenes": 27, "seconds": 12.0}
"""Scenes for a model that passes the release gate: few places, many frames of each."""
SIZES, GATED = (300, 2000), 50
"""Random features of the exact models, and of the one that passes the gate."""
N_RELEASES = 200_000
"""Private ones with a lesson, and as many without."""
Progress = Callable[[int, int], None]


def attack_models(
    seed: int = 0,
    *,
    processes: int = 0,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Attack exact exports of several sizes and private releases; a row of plain numbers for each.

    seed: of scenes and random features; of two thirds of the scenes one half in time is taught.
    processes: to simulate with; 0: one per core.
    """
    frames = _simulated(seed, N_SCENES, SECONDS, processes, on_progress)
    rows = [_exact(frames, n_features, seed) for n_features in SIZES]
    rows.append(
        _exact(_simulated(seed, LONG["n_scenes"], LONG["seconds"], processes, on_progress), GATED, seed)
    )
    parts = lessons(frames)
    trial = with_lessons(_fresh(SIZES[0], seed), parts)
    private = attack_releases(trial, parts[1][:40], n_releases=N_RELEASES, seed=seed)
    rows.append({"export": "private", **private})
    return {"array": ARRAY, "seed": seed, "scenes": N_SCENES, "rows": rows}


def _simulated(
    seed: int, n_scenes: int, seconds: float, processes: int, on_progress: Progress | None
) -> FeatureSet:
    scenes = Scenes(
        load_array(ARRAY),
        [SyntheticVoices()],
        FAMILIES,
        "test",
        10**6 + seed,
        seconds=seconds,
        two_sources=0.0,
    )
    return simulate(scenes, n_scenes, processes=processes, on_progress=on_progress)


def _fresh(n_features: int, seed: int) -> Any:
    return Localizer.new(ARRAY, n_features=n_features, seed=seed).state


def _exact(frames: FeatureSet, n_features: int, seed: int) -> dict[str, Any]:
    parts = lessons(frames)
    trial = with_lessons(_fresh(n_features, seed), parts)
    gate = trial.against_release()
    return {"export": "exact", "passes_gate": not gate, **attack_exports(trial, parts)}
