"""Tuning the network for every array in seconds: few, short and simple scenes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tytoalba.data.simulation import stems
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.learning.prior import confidence_fit, tune
from tytoalba.learning.prior.shared import frames, tuning
from tytoalba.learning.prior.shared import prior as shared
from tytoalba.learning.prior.shared.tuning import TuneSettings
from tytoalba.signal.array import MicArray

MINE = MicArray("mine", ((0.05, 0.0, 0.0), (-0.03, 0.04, 0.0), (-0.02, -0.05, 0.01)), 8000, yaw=20.0)


def tiny(**more: Any) -> TuneSettings:
    """Settings of seconds; the usual rooms of `small_tuning` must be in force."""
    return TuneSettings(**{"scenes": 10, "frames": 160, "epochs": 1, "judged": 3} | more)


def small_tuning(patch: pytest.MonkeyPatch, priors: Path) -> None:
    """Rooms are few and simple, and the user's folder of priors is this one."""
    patch.setenv("TYTO_PRIORS", str(priors))
    patch.setattr(tuning, "ROOMS", 5)
    patch.setattr(tuning, "TRUSTED_BY", 12)
    for module in (tune, tuning, frames):
        patch.setattr(module, "TURNS", ("anechoic", "hybrid"))
    patch.setattr(tuning, "FAMILIES", ("anechoic",))
    for module in (tuning, confidence_fit):
        patch.setattr(module, "Scenes", partial(Scenes, seconds=1.0))
    patch.setattr(stems, "N_VOICES", (6, 6))
    patch.setattr(shared, "N_SCENES", 2)
