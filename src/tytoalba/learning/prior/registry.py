"""Where priors lie: those that come with tytoalba and those that `tyto prior` made; and their maps."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import PriorError
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.learning.prior.features import scores
from tytoalba.learning.prior.files import load_prior
from tytoalba.learning.prior.prior import Prior, array_of
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.alignment import Fit, fit, same_places
from tytoalba.signal.angles import Float, turned
from tytoalba.signal.array import MicArray
from tytoalba.signal.steady import SteadyNoise
from tytoalba.signal.symmetry import symmetries
from tytoalba.storage.files import user_folder


def shipped_priors() -> dict[str, Path]:
    """The priors that come with tytoalba, by name of their array."""
    folder = Path(str(resources.files("tytoalba") / "resources" / "priors"))
    return {path.stem: path for path in sorted(folder.glob("*.safetensors"))}


def find_prior(array: MicArray) -> Prior | None:
    """The prior of exactly this array: one that `tyto prior` made, or the one that is shipped; else None."""
    here = Fit(tuple(range(array.n_mics)), 0.0)
    found = _first(lambda built: here if same_places(built, array) else None)
    return found[0] if found else None


def fitting_prior(array: MicArray) -> tuple[Prior, Fit]:
    """A prior whose microphones are the array's in any order, turned, shifted, each within 1 mm.

    One of exactly these places goes before others, and where none fits, the prior of every array is told of
    this one.
    """
    exact = find_prior(replace(array, yaw=0.0))
    if exact:
        return exact, Fit(tuple(range(array.n_mics)), array.yaw)
    if found := _first(lambda built: fit(built, array)):
        return found
    return _shared_once(replace(array, yaw=0.0)), Fit(tuple(range(array.n_mics)), array.yaw)


def is_newest(prior: Prior, array: MicArray) -> bool:
    """Whether the network of a prior is the one that this program would take for the array today."""
    try:
        today = fitting_prior(array)[0]
    except PriorError:  # there is none, so nothing is newer
        return True
    mine, theirs = prior.weights, today.weights
    same = mine.keys() == theirs.keys() and prior.steps == today.steps
    return same and all(np.array_equal(values, theirs[name]) for name, values in mine.items())


def shared_weights() -> SharedWeights:
    """The network for every array: one that `tyto prior-any` made, or the one that is shipped."""
    own = own_any()
    shipped = Path(str(resources.files("tytoalba") / "resources" / "priors" / "any" / "any.safetensors"))
    path = own if own.is_file() else shipped
    return _weights_once(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _weights_once(path: Path, _changed: int) -> SharedWeights:
    return SharedWeights.load(path)


@lru_cache(maxsize=8)
def _shared_once(array: MicArray) -> Prior:
    return shared_weights().prior(array)


def _first(fits: Callable[[MicArray], Fit | None]) -> tuple[Prior, Fit] | None:
    for path in [*sorted(prior_folder().glob("*.safetensors")), *shipped_priors().values()]:
        changed = path.stat().st_mtime_ns
        how = fits(_array_once(path, changed))
        if how is not None:  # others are not read: they may be of another day
            return _load_once(path, changed), how
    return None


def own_any() -> Path:
    """Where `tyto prior-any` puts the network for every array."""
    return prior_folder() / "any" / "any.safetensors"


def prior_folder() -> Path:
    """Where `tyto prior` puts what it made: TYTO_PRIORS, or the user's data folder."""
    named = os.environ.get("TYTO_PRIORS")
    return Path(named) if named else user_folder() / "priors"


@lru_cache(maxsize=64)
def _array_once(path: Path, _changed: int) -> MicArray:
    return array_of(path)


@lru_cache(maxsize=8)
def _load_once(path: Path, _changed: int) -> Prior:
    return load_prior(path)


def both_sides(prior: Prior, X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores (n_frames, 360) of features; of a symmetric array the mean with those of mirrored frames."""
    maps: NDArray[np.float32] = scores(prior.logits(X))
    for mirror in symmetries(prior.array)[1:2]:
        other = mirror.back(scores(prior.logits(X[:, mirror.order(prior.gcc)])))
        maps = np.asarray((maps + other) / 2, np.float32)
    return maps


@dataclass(frozen=True)
class PriorMaps:
    """The maps of an array's prior: call it with (n_frames, n_mics, n_samples) -> (n_frames, 360), in 0..1.

    How the array is mounted (yaw) turns the answers.
    """

    array: MicArray
    n_samples: int

    def __post_init__(self) -> None:
        if self.n_samples != self.prior.gcc.n_samples:
            raise PriorError(
                f"the prior of {self.array.name} takes frames of {self.prior.gcc.n_samples} samples, "
                f"not {self.n_samples}"
            )

    @cached_property
    def _found(self) -> tuple[Prior, Fit]:
        return fitting_prior(self.array)

    @property
    def prior(self) -> Prior:
        """The prior."""
        return self._found[0]

    @property
    def counting(self) -> list[Calibration]:
        """How far the highest peak of the network's scores, and the next, are sources; empty if unknown."""
        return self.prior.counting() if self.prior.constants.get("counting") else []

    def __call__(self, frames: NDArray[np.floating]) -> NDArray[np.float32]:
        """Maps of frames."""
        return self.mounted(self.both(frames).max(axis=1))

    def both(self, frames: NDArray[np.floating]) -> NDArray[np.float32]:
        """Scores of the network and lone waves beside them, (n_frames, 2, 360), in the frame of the prior."""
        prior, how = self._found
        return self.both_of(np.asarray(prior.gcc(how.in_order(frames)), np.float32))

    def both_of(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same of features (n_frames, n_looks, n_pairs, n_lags)."""
        X = features.reshape(len(features), self.prior.gcc.n_features)
        maps = both_sides(self.prior, X)
        return np.stack([maps, self.prior.lone_waves(X, maps)], axis=1)

    def steady_noise(self) -> SteadyNoise:
        """What weighs the features of sound that runs."""
        prior, how = self._found
        return SteadyNoise(replace(prior.gcc, exact=True), how.order)

    def mounted(self, maps: Float) -> NDArray[np.float32]:
        """Maps (n_frames, 360) in the frame of the prior, as the array is mounted."""
        return np.asarray(turned(maps, self._found[1].turn), np.float32)
