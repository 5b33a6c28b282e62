"""Where priors lie: those that come with tytoalba and those that `tyto prior` made; and their maps."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import PriorError
from tytoalba.learning.prior.prior import Prior, array_of, scores
from tytoalba.signal.array import MicArray
from tytoalba.signal.symmetry import symmetries


def shipped_priors() -> dict[str, Path]:
    """The priors that come with tytoalba, by name of their array."""
    folder = Path(str(resources.files("tytoalba") / "resources" / "priors"))
    return {path.stem: path for path in sorted(folder.glob("*.safetensors"))}


def find_prior(array: MicArray) -> Prior | None:
    """The prior of an array that `tyto prior` made, or the one that comes with it; None if there is none."""
    for path in [*sorted(prior_folder().glob("*.safetensors")), *shipped_priors().values()]:
        changed = path.stat().st_mtime_ns
        if same_ears(_array_once(path, changed), array):  # others are not read: they may be of another day
            return _load_once(path, changed)
    return None


def prior_folder() -> Path:
    """Where `tyto prior` puts what it made: TYTO_PRIORS, or the user's data folder."""
    told = os.environ.get("TYTO_PRIORS")
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(told) if told else Path(data) / "tytoalba" / "priors"


@lru_cache(maxsize=64)
def _array_once(path: Path, _changed: int) -> MicArray:
    return array_of(path)


@lru_cache(maxsize=8)
def _load_once(path: Path, _changed: int) -> Prior:
    return Prior.load(path)


@dataclass(frozen=True)
class PriorMaps:
    """The maps of an array's prior: call it with (n_frames, n_mics, n_samples) -> (n_frames, 360), in 0..1.

    Where the array is symmetric, each frame is looked at from both sides and the answers are averaged. Then
    it is blended with SRP-PHAT as a calibrated prior knows best for that many sources: some of its map is
    mixed in, and where it is surer the map is its own. (A prior knows speech; of steady hiss it thinks that
    nobody wants it located.) How the array is mounted (yaw) turns the answers.
    """

    array: MicArray
    n_samples: int
    n_sources: int = 1

    def __post_init__(self) -> None:
        if self.n_samples != self._prior.gcc.n_samples:
            raise PriorError(
                f"the prior of {self.array.name} looks at frames of {self._prior.gcc.n_samples} samples, "
                f"not {self.n_samples}"
            )

    @cached_property
    def _prior(self) -> Prior:
        prior = find_prior(replace(self.array, yaw=0.0))
        if prior is None:
            raise PriorError(f"{self.array.name} has no prior; `tyto prior {self.array.name}` makes one")
        return prior

    def __call__(self, frames: NDArray[np.floating]) -> NDArray[np.float32]:
        """Maps of frames."""
        prior = self._prior
        X = np.asarray(prior.gcc(frames), np.float32).reshape(len(frames), prior.gcc.n_features)
        maps: NDArray[np.float32] = scores(prior.logits(X))
        for mirror in symmetries(prior.array)[1:2]:
            other = mirror.back(scores(prior.logits(X[:, mirror.order(prior.gcc)])))
            maps = np.asarray((maps + other) / 2, np.float32)
        if "blends" in prior.constants:
            maps = self._blended(maps, prior.maps(X))
        whole, rest = divmod(self.array.yaw, 1.0)
        turned = np.roll(maps, int(whole), axis=1)
        return np.asarray((1 - rest) * turned + rest * np.roll(turned, 1, axis=1), np.float32)

    def _blended(self, maps: NDArray[np.float32], fallback: NDArray[np.float32]) -> NDArray[np.float32]:
        n = min(self.n_sources, 2)
        blend = self._prior.blend(n)
        once = self._prior.array.heard_once
        learned = blend(once(maps), once(fallback), n).learned[:, None]
        return np.where(learned, blend.mixed(maps, fallback) / (1 + blend.weight), fallback).astype(
            np.float32
        )


def same_ears(a: MicArray, b: MicArray) -> bool:
    """Whether a prior of one array serves the other: microphones, sample rate and mounting agree."""
    return (
        a.sample_rate == b.sample_rate
        and a.coordinates.shape == b.coordinates.shape
        and bool(np.allclose(a.coordinates, b.coordinates, atol=2e-4))
    )
