"""The smallest array, prior, features, states and sound that there can be: read in a millisecond or two."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.helpers.waves import plane_wave
from tytoalba.data.features import FeatureSet
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.exact import layout
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import shared_weights, shipped_priors
from tytoalba.learning.prior.shared.exact import quantised, shapes
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.localizer.frontend import USUAL
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.state import Kept, State
from tytoalba.signal.array import MicArray
from tytoalba.storage.soundfiles import write_audio

ARRAY = MicArray("trio", ((0.02, 0.0, 0.0), (-0.02, 0.0, 0.0), (0.0, 0.03, 0.0)), sample_rate=8000)
N_FEATURES = 3
WHEN = 1_700_000_000
"""Seconds since 1970, of kept lessons."""


@cache
def prior() -> Prior:
    """Few weights by chance; it locates nothing, and everything about it can be read and written."""
    gcc, rng = prior_gcc(ARRAY), np.random.default_rng(0)
    shapes = layout(len(gcc.band_list) * len(gcc.pairs), 1, 1 if gcc.n_windows else 0, 1)
    weights = {name: rng.integers(-24, 25, shape) / 64 for name, shape in shapes.items()}
    made = Prior.quantised(ARRAY, gcc, weights, about={"n_frames": 1}).with_frames(features(3, 99))
    calibrated = Prior.load(shipped_priors()["respeaker-usb-4"]).constants
    return replace(made, constants={"counting": calibrated["counting"]})


@cache
def shared_prior() -> Prior:
    """The same behind a network for every array."""
    rng, weights = np.random.default_rng(0), dict[str, NDArray[Any]]()
    for name, shape in shapes(2, 2, 1, 1).items():
        weights |= quantised(name, 0.05 * rng.normal(size=shape), 0.05 * rng.normal(size=shape[1]))
    made = SharedWeights(weights, {"n_frames": 1}, shared_weights().constants)
    return made.prior(ARRAY).with_frames(features(3, 99))


def features(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Features (n, n_inputs) of no sound in particular, on a coarse grid."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-24, 25, (n, prior_gcc(ARRAY).n_features)) / 64).astype(np.float32)


def phase(number: int, n: int = 2) -> Phase:
    """Lesson number k: n frames of one source, or of two where k is odd."""
    azimuth = np.tile(np.array([37.0 * number, 37.0 * number + 100.0])[: 1 + number % 2] % 360, (n, 1))
    return Phase(features(n, seed=number), azimuth, np.unique(azimuth.astype(np.intp)))


def feature_set() -> FeatureSet:
    """Four frames of two recordings."""
    gcc = prior_gcc(ARRAY)
    X = features(4).reshape(4, gcc.n_looks, len(gcc.pairs), gcc.n_lags)
    azimuth = np.array([[10.0, np.nan], [10.0, 90.0], [200.0, np.nan], [200.0, 359.5]])
    numbers = np.array([0, 0, 1, 1], np.int32)
    return FeatureSet(X, azimuth, numbers, np.array([0, 1, 0, 1], np.int32), ("a", "b"), ARRAY, gcc)


def state(*lessons: int, kept: int | None = None, of: Prior | None = None, frontend: int = USUAL) -> State:
    """A state that learned these lessons; one of them is kept. of: its prior, if not `prior`."""
    made = State.new(ARRAY, of or prior(), seed=5, n_features=N_FEATURES, frontend=frontend)
    for number in lessons:
        made.teach(phase(number), Kept("anna", (37.0 * number,), WHEN) if number == kept else None)
    return made


def localizer(*lessons: int) -> Localizer:
    """The same, ready to be kept in a file."""
    return Localizer(state(*lessons))


def write_wave(path: Path, azimuth: float, seconds: float = 0.6, seed: int = 0) -> None:
    """A recording of noise from a direction."""
    write_audio(path, plane_wave(ARRAY, azimuth, seconds, seed, 0.03), ARRAY.sample_rate)
