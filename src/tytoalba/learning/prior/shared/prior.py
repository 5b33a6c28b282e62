"""The prior of any array: the network for all, and what it is told of this one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.features import Progress
from tytoalba.errors import FileError, PriorError
from tytoalba.learning.prior.exact import Array
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.prior import FORMAT, Prior
from tytoalba.learning.prior.shared.exact import (
    LIMIT,
    Weights,
    count_blocks,
    floats,
    forward,
    is_exact,
    rounded_codes,
    shapes,
)
from tytoalba.learning.prior.shared.geometry import MOST, Geometry
from tytoalba.signal.array import MicArray
from tytoalba.storage.tensors import read_tensors, write_tensors

SHARED = "shared"
"""In the header of priors whose network is the one for every array."""
VERSION = 3
"""Of files: earlier programs refuse them."""
N_SCENES = 40
"""Simulated for the frames that a state keeps: ten to twenty seconds' work."""
N_MICS, WIDEST = (3, 16), 0.6
"""Microphones, and metres across, of arrays that the network for all is let speak for: it learned from 3 to
12 and up to 30 cm."""
MOST_FRAMES, MOST_BYTES = 1500, 1_000_000


@dataclass(frozen=True)
class SharedWeights:
    """The network for every array as it is shipped.

    weights: `exact.Weights`. about: how it was made. constants: calibrations and the scale of logits, of
    arrays that it has not learned from.
    """

    weights: Weights
    about: dict[str, Any]
    constants: dict[str, Any]

    def save(self, path: str | Path) -> None:
        """Write them as safetensors, whole or not at all."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "network": SHARED,
            "about": self.about,
            "constants": self.constants,
        }
        write_tensors(path, self.weights, header)

    @classmethod
    def load(cls, path: str | Path) -> SharedWeights:
        """Read what `save` wrote; anything else is refused."""
        try:
            header, arrays = read_tensors(path)
            found = header["format"], header["version"], header["network"]
            if found != (FORMAT, VERSION, SHARED):
                raise PriorError(f"{path} is not a network for every array that this program can read")
            weights = cls(arrays, header["about"], header["constants"])
        except (FileError, LookupError, TypeError) as error:
            raise PriorError(f"{path} is damaged or no network for every array: {error}") from error
        _check_weights(weights.weights)
        return weights

    def prior(self, array: MicArray) -> SharedPrior:
        """The prior of an array; refused where it is far from all that the network learned from."""
        fewest, most = N_MICS
        if not fewest <= array.n_mics <= most or array.aperture > WIDEST:
            raise PriorError(
                f"{array.name} has {array.n_mics} microphones, {100 * array.aperture:.0f} cm across; the "
                f"prior of every array knows {fewest} to {most} microphones up to {100 * WIDEST:.0f} cm. The "
                "methods srp and music need no prior; `tyto prior MINE.toml` makes one"
            )
        array = replace(array, yaw=0.0)
        gcc = prior_gcc(array)
        return SharedPrior(
            array, gcc, self.weights, {}, self.about, self.constants, geometry=Geometry.of(array, gcc)
        )


@dataclass(frozen=True, eq=False)
class SharedPrior(Prior):
    """A `Prior` whose network is the one for every array. geometry: what it is told of this one."""

    geometry: Geometry = field(kw_only=True)

    def moved(self, array: MicArray) -> Prior:
        """The prior of another array."""
        return SharedWeights(self.weights, self.about, self.constants).prior(array)

    def _check_network(self) -> None:
        _check_weights(self.weights)
        shape = self.geometry.n_bands, self.geometry.n_pairs, self.geometry.table.shape[2]
        if shape != (len(self.gcc.band_list), len(self.gcc.pairs), self.gcc.n_lags) or self.steps:
            raise PriorError("what this prior knows of its array is of another one: it is damaged")
        most = np.abs(self.geometry.steering).sum(axis=(1, 2)).max() * MOST
        if not most < LIMIT:
            raise PriorError(
                f"{self.array.name} has too many microphones, or too far apart, for the prior of every array"
            )
        if self.agreed and self.agreed != self.steering_digest:
            raise PriorError("what this prior knows of its array was altered")

    @property
    def width(self) -> int:
        """Channels of the network."""
        return int(self.weights["leave"].shape[0])

    @property
    def window_width(self) -> int:
        """Channels of its windows."""
        return int(self.weights["hear"].shape[1])

    def real_weights(self) -> dict[str, Array]:
        """Refused: a prior of one array has other weights."""
        raise PriorError("the network for every array is no beginning for that of one: start without it")

    @cached_property
    def steering_digest(self) -> str:
        """Of what it is told of its array; a state keeps that, and this beside it."""
        found = hashlib.sha256()
        for _, values in sorted(self.geometry.arrays().items()):
            found.update(np.ascontiguousarray(values).tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def digest(self) -> NDArray[np.uint8]:
        """SHA-256 of the network and the geometry, (32,)."""
        found = hashlib.sha256(self.steering_digest.encode())
        for name in sorted(self.weights):
            found.update(np.ascontiguousarray(self.weights[name]).tobytes())
        return np.frombuffer(found.digest(), np.uint8)

    def _network_arrays(self) -> dict[str, Array]:
        known = self.geometry.known.astype(np.float32)
        return floats(self.weights) | {"steering": self.geometry.steering, "known": known}

    def _forward(self, X: Array, here: dict[str, Array]) -> Array:
        geometry = self.geometry
        shape = len(X), -1, geometry.n_bands, geometry.n_pairs, geometry.table.shape[2]
        codes = rounded_codes(X if isinstance(X, np.ndarray) else X.float())
        return forward(codes.reshape(shape), geometry, here)

    def with_simulated_frames(self, seed: int = 0, on_progress: Progress | None = None) -> SharedPrior:
        """The prior with simulated frames of its array to keep: a learner needs them."""
        from tytoalba.data.simulation.scenes import Scenes, scene_features
        from tytoalba.data.simulation.voice import SyntheticVoices

        scenes = Scenes(self.array, [SyntheticVoices()], ("hybrid", "anechoic", "hybrid"), "train", seed)
        made = scene_features(scenes, range(N_SCENES), self.gcc, on_progress=on_progress).flat
        n_kept = min(MOST_FRAMES, MOST_BYTES // (360 + len(self.gcc.pairs) * self.gcc.n_lags), len(made))
        chosen = np.linspace(0, len(made) - 1, n_kept).astype(int)
        return cast("SharedPrior", self.with_frames(made[chosen]))

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header (for JSON) and arrays: all that a file needs."""
        header, arrays = super().parts()
        geometry = {f"geometry.{name}": values for name, values in self.geometry.arrays().items()}
        return header | {"version": VERSION, "network": SHARED}, arrays | geometry

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> Self:
        """What `parts` gave; path: how errors call it."""
        try:
            return cls._of_parts(header, arrays, path)
        except PriorError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            raise PriorError(f"{path} is damaged or no prior: {error}") from error

    @classmethod
    def _of_parts(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> Self:
        if (version := header.get("version")) != VERSION:
            raise PriorError(f"{path} has version {str(version)[:20]}; this program reads {VERSION}")
        parts: dict[str, dict[str, Any]] = {"frames": {}, "geometry": {}, "": {}}
        for name, values in arrays.items():
            kind = name.partition(".")[0]
            kind = kind if kind in ("frames", "geometry") else ""
            parts[kind][name.removeprefix(f"{kind}.") if kind else name] = values
        array = MicArray.from_toml(header["array"], path)
        return cls(
            array,
            prior_gcc(array),
            parts[""],
            {},
            header["about"],
            header["constants"],
            parts["frames"],
            geometry=Geometry(**parts["geometry"]),
        )


def _check_weights(weights: Weights) -> None:
    """Refuse arrays that are no network, or whose sums could be too large to be exact."""
    damaged = PriorError("the weights of this prior do not fit each other: it is damaged")
    matrices = {name: values for name, values in weights.items() if "." not in name}
    if any(values.ndim != 2 or values.dtype != np.int8 for values in matrices.values()):
        raise damaged
    try:
        width, blocks = matrices["leave"].shape[0], count_blocks(matrices)
        wanted = shapes(width, matrices["pair"].shape[1], matrices["hear"].shape[1], blocks)
    except KeyError:
        raise damaged from None
    found = {name: values.shape for name, values in matrices.items()}
    beside = {
        f"{name}.{kind}": (dtype, (shape[1],))
        for name, shape in wanted.items()
        for kind, dtype in (("bias", np.dtype(np.int32)), ("shift", np.dtype(np.int8)))
    }
    others = {name: (values.dtype, values.shape) for name, values in weights.items() if name not in matrices}
    if found != wanted or others != beside or blocks < 1 or min(map(min, wanted.values())) < 1:
        raise damaged
    shifts = np.concatenate([weights[name] for name in others if name.endswith(".shift")])
    if not ((shifts >= -24) & (shifts <= 24)).all() or not is_exact(weights):
        raise PriorError("the weights of this prior are too large to compute with exactly: it was altered")
