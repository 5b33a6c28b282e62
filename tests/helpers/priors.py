"""Simulated frames and small priors of one array, for tests of how priors are made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.train import train_prior
from tytoalba.learning.training import Recipe
from tytoalba.signal.array import load_array

RESPEAKER = load_array("respeaker-usb-4")
VOICES = (SyntheticVoices(),)
FAMILIES = ("hybrid", "anechoic")
TINY: dict[str, Any] = {"width": 4, "recipe": Recipe(epochs=2, lr=1e-2, weight_decay=0.0, batch=32)}
N_KEPT = 60
"""Simulated frames that a prior keeps here."""
ShortScenes = partial(Scenes, seconds=1.2)


@cache
def training_frames() -> FeatureSet:
    """Frames of 20 short scenes, simulated once per process."""
    scenes = ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 0)
    return scene_features(scenes, range(20), prior_gcc(RESPEAKER))


class FixedFrames:
    """The same frames again and again, to train from."""

    def __init__(self, frames: FeatureSet) -> None:
        import torch

        self.device = torch.device("cpu")
        self.array, self.gcc, self.fixed = frames.array, frames.gcc, frames
        self.asked: list[int] = []

    def frames(self, n: int) -> Iterator[tuple[Any, Any]]:
        """All of them in two parts, and from the first on again where more are asked for."""
        import torch

        self.asked.append(n)
        rows = np.resize(np.arange(len(self.fixed)), n)
        for part in np.array_split(rows, 2):
            azimuth = np.sort(self.fixed.azimuth[part], axis=1)
            yield torch.tensor(self.fixed.flat[part]), torch.tensor(azimuth, dtype=torch.float32)


def trained(frames: FeatureSet, **how: Any) -> Prior:
    """A small prior that learned from these frames; not calibrated."""
    return train_prior(FixedFrames(frames), len(frames), **(TINY | how))


def same(a: FeatureSet, b: FeatureSet) -> bool:
    """The same frames, of recordings of the same names."""
    names = [[s.names[k] for k in s.recording] for s in (a, b)]
    return (
        names[0] == names[1]
        and np.array_equal(a.X, b.X)
        and np.array_equal(a.azimuth, b.azimuth, equal_nan=True)
        and np.array_equal(a.frame, b.frame)
    )
