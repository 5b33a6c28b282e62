"""What is known of an array before anyone has used it: a network that learned from simulations only.

A prior gives logits of 360 azimuths, a confidence, and the constants that bring features to one scale. It
is a small file (safetensors, weights of 16 bits), works without torch, and its answers are the same to the
bit whatever the batch, BLAS, number of threads or device (`exact`). So what a learner behind it was taught
can be taken away exactly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import DataError, FileError, PriorError
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.learning.prior.confidence import Confidence, usual_confidence
from tytoalba.learning.prior.exact import (
    GRID,
    UNFOLD,
    Array,
    Weights,
    count_blocks,
    forward,
    is_exact,
    layout,
    steering,
)
from tytoalba.learning.prior.features import (
    full_band,
    prior_gcc,
    steering_digest,
    steering_matrices,
    steering_matrix,
)
from tytoalba.signal.angles import N_DIRECTIONS
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat
from tytoalba.storage.tensors import read_header, read_tensors, write_tensors

Content = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""Header and arrays of a file."""

SOUND_GRID = 2.0**12
"""Steps of the features in `sound`: 1/grid."""
FRAME_GRID = {"logits": 8.0, "sound": 16.0}
"""Steps of the simulated frames that a prior keeps, as int8: 1/step."""
BLOCK, GPU_BLOCK = 8, 4096
"""Frames at a time."""
FORMAT, VERSION = "tytoalba-prior", 2
DEAF = (0.55, 0.3)
"""Heights of a prior's map: below the first it may hear nobody, below the second it does not."""
LONE = (0.5, 0.6)
"""Heights of an SRP-PHAT map: from the first on there may be a lone wave, from the second on there is. Speech
in rooms is seldom as high; a plane wave with noise 10 dB below it has 0.6 to 0.8."""


@dataclass(frozen=True, eq=False)
class Prior:
    """A prior of an array.

    weights: of the network, int16. steps: what one step of each is worth, a power of two.
    about: how it was made. constants: mean and spread of the logits in simulations; how far it can be trusted
    (files made before 0.1.0 also have "blends" with SRP-PHAT, which nothing reads any more).
    frames: some simulated frames, as rounded logits and sound, so that a learner that is taught one direction
    still knows what the prior says of the others: `simulated_frames`.
    agreed: digest of the steering matrices that a state was made with, "" for this machine's own.
    """

    array: MicArray
    gcc: GccPhat
    weights: dict[str, NDArray[np.int16]]
    steps: dict[str, float]
    about: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    frames: dict[str, NDArray[Any]] = field(default_factory=dict)
    agreed: str = ""

    @classmethod
    def quantised(cls, array: MicArray, gcc: GccPhat, weights: Weights, **more: Any) -> Prior:
        """A prior of real weights: each array gets the finest step of a power of two that 16 bits allow."""
        steps = {name: _step(values) for name, values in weights.items()}
        rounded = {name: np.rint(values / steps[name]).astype(np.int16) for name, values in weights.items()}
        return cls(array, gcc, rounded, steps, **more)

    def moved(self, array: MicArray) -> Prior:
        """The network for another array: a beginning, neither calibrated nor with simulated frames.

        What a pair says of an azimuth means much the same in any array. So each pair of the new one gets the
        mean weights of the old pairs, scaled so that their sum stays the same, and every place on the circle
        the mean of all places.
        """
        gcc, weights = prior_gcc(array), self.real_weights()
        sizes = [(len(g.band_list), len(g.pairs)) for g in (self.gcc, gcc)]
        (n_bands, n_pairs), (n_new_bands, n_new_pairs) = sizes

        def entry(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            bands = rows.reshape(n_bands, n_pairs, UNFOLD, -1).sum(axis=1, keepdims=True)[:n_new_bands]
            missing = n_new_bands - len(bands)  # those above the old array's highest frequency
            bands = np.pad(bands, ((0, missing), (0, 0), (0, 0), (0, 0))).repeat(n_new_pairs, axis=1)
            return np.asarray(bands / n_new_pairs).reshape(-1, rows.shape[1])

        n_whole = n_bands * n_pairs * UNFOLD
        weights["hear"] = entry(weights["hear"])
        weights["enter"] = np.concatenate([entry(weights["enter"][:n_whole]), weights["enter"][n_whole:]])
        for name in ("place", "level"):
            weights[name] = np.broadcast_to(weights[name].mean(axis=0), weights[name].shape)
        return Prior.quantised(array, gcc, weights, about={"array": self.array.name, **self.about})

    def __post_init__(self) -> None:
        self._check_network()
        _check_constants(self.constants)
        if not isinstance(self.about, dict):
            raise PriorError("the description of this prior is damaged or was altered")
        if self.frames:
            n = len(self.frames.get("logits", ()))
            kept = {name: (values.dtype.str, *values.shape) for name, values in self.frames.items()}
            n_sound = len(self.gcc.pairs) * self.gcc.n_lags
            expected = {"logits": ("|i1", n, N_DIRECTIONS), "sound": ("|i1", n, n_sound)}
            if kept != expected:
                raise PriorError("the simulated frames of this prior do not fit it: it is damaged")

    def _check_network(self) -> None:
        """Refuse weights that are no network of this array, or too large to compute with exactly."""
        window_width = self.window_width if self.gcc.n_windows else 0
        wanted = layout(
            len(self.gcc.band_list) * len(self.gcc.pairs), self.width, window_width, self.n_blocks
        )
        found = {name: values.shape for name, values in self.weights.items()}
        fit = found == wanted and self.steps.keys() == wanted.keys()
        if not fit or min(self.width, self.n_blocks) < 1 or (window_width < 1) != (self.gcc.n_windows < 1):
            raise PriorError("the weights of this prior do not fit each other: it is damaged")
        if not is_exact(self.weights, self.steps):
            raise PriorError(
                "the weights of this prior are too large to compute with exactly: it was altered"
            )

    @property
    def width(self) -> int:
        """Channels of the network."""
        return int(self.weights["leave"].shape[0]) if "leave" in self.weights else 0

    @property
    def window_width(self) -> int:
        """Channels of its windows."""
        return int(self.weights["hear"].shape[-1]) if "hear" in self.weights else 0

    @property
    def n_blocks(self) -> int:
        """How deep the network is."""
        return count_blocks(self.weights)

    @property
    def n_directions(self) -> int:
        """Azimuths that it scores."""
        return N_DIRECTIONS

    @property
    def n_weights(self) -> int:
        """How many numbers the network has."""
        return sum(values.size for values in self.weights.values())

    def real_weights(self) -> Weights:
        """The weights as real numbers."""
        return {name: values.astype(np.float64) * self.steps[name] for name, values in self.weights.items()}

    @cached_property
    def _matrices(self) -> dict[str, NDArray[np.float64]]:
        return steering_matrices(self.array, self.gcc, self.agreed)

    @cached_property
    def steering_digest(self) -> str:
        """Of the steering matrices, which no file has: what a state writes down to find the same again."""
        return steering_digest(self._matrices)

    @cached_property
    def _places(self) -> dict[str, dict[str, Array]]:
        scale = {
            name: np.array(self.constants.get(name, [0.0 if "mean" in name else 1.0]), np.float64)
            for name in ("logit_mean", "logit_spread")
        }
        return {"numpy": self._network_arrays() | scale}

    def _network_arrays(self) -> dict[str, Array]:
        """What `_forward` computes with."""
        real = self.real_weights() | steering(self._matrices)
        for name in (n for n in real if n.startswith(("place", "level", "heard", "offset", "bias"))):
            real[name] = np.rint(real[name] * GRID) / GRID
        return real

    @property
    def real_arrays(self) -> dict[str, Array]:
        """What `logits` and `standardised` compute with: weights, steering and constants, float64."""
        return dict(self._places["numpy"])

    def _beside(self, X: Array) -> dict[str, Array]:
        place = "numpy" if isinstance(X, np.ndarray) else str(X.device)
        if place not in self._places:
            import torch

            self._places[place] = {k: torch.tensor(v, device=place) for k, v in self._places["numpy"].items()}
        return self._places[place]

    def logits(self, X: Array) -> Array:
        """Logits (n_frames, 360) on a grid of 1/1024, float32, of GCC-PHAT X (n_frames, n_features)."""
        X = self._flat(X)
        here, n = self._beside(X), len(X)
        if isinstance(X, np.ndarray):
            with _threads().limit(limits=1, user_api="blas"):
                parts = [self._forward(X[i : i + BLOCK], here) for i in range(0, n, BLOCK)]
            return np.concatenate(parts) if parts else np.empty((0, N_DIRECTIONS), np.float32)
        import torch

        if not n:
            return X.new_empty(0, N_DIRECTIONS)
        return torch.cat([self._forward(part, here) for part in torch.split(X, GPU_BLOCK)])

    def _forward(self, X: Array, here: dict[str, Array]) -> Array:
        """Logits of a few frames, with the arrays that lie beside them."""
        return forward(X, here)

    def standardised(self, logits: Array) -> Array:
        """Logits less their mean in simulations, over their spread there."""
        here = self._beside(logits)
        return (logits - here["logit_mean"]) / here["logit_spread"]

    def sound(self, X: Array) -> Array:
        """GCC-PHAT over all bands, each frame scaled to mean 0 and variance 1: the same bits everywhere.

        The values are rounded to a grid, so that their sums and those of their squares are exact.
        """
        whole = self._flat(X)[:, : self.gcc.whole.n_features]
        values = full_band(self.gcc, (_double(whole) * SOUND_GRID).round())
        n = values.shape[1]
        total = values.sum(1)[:, None]
        spread = _root((n * (values * values).sum(1)[:, None] - total * total).clip(1.0))
        return (n * values - total) / spread

    @cached_property
    def digest(self) -> NDArray[np.uint8]:
        """SHA-256 of the network, (32,): what a learner behind it must not change."""
        found = hashlib.sha256(json.dumps(self.steps, sort_keys=True).encode())
        for name in sorted(self.weights):
            found.update(np.ascontiguousarray(self.weights[name]).tobytes())
        return np.frombuffer(found.digest(), np.uint8)

    def _flat(self, X: Array) -> Array:
        """Frames as (n_frames, n_features); refused where they are of other features."""
        n, expected = len(X), self.gcc.n_features
        values = int(np.prod(X.shape[1:]))
        if values != expected:
            raise PriorError(
                f"this prior of {self.array.name} takes {expected} values a frame, got {values}; "
                "compute them with `prior_gcc(array)`"
            )
        return X.reshape(n, expected)

    def with_frames(self, X: NDArray[np.float32]) -> Prior:
        """The prior with simulated frames (n_frames, n_features) to keep."""
        kept = {
            "logits": np.rint(self.logits(X) * FRAME_GRID["logits"]).clip(-127, 127).astype(np.int8),
            "sound": np.rint(self.sound(X) * FRAME_GRID["sound"]).clip(-127, 127).astype(np.int8),
        }
        return replace(self, frames=kept)

    def simulated_frames(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Logits (n, 360) and sound (n, n_pairs x n_lags) of the frames it keeps."""
        if not self.frames:
            raise PriorError(f"this prior of {self.array.name} keeps no simulated frames")
        logits, sound = (self.frames[name] / step for name, step in FRAME_GRID.items())
        return logits.astype(np.float32), sound

    def srp_maps(self, X: NDArray[np.floating]) -> NDArray[np.float32]:
        """SRP-PHAT maps (n_frames, 360), float32, from the same features: the mean over bins and pairs."""
        whole = self._flat(np.asarray(X, np.float32))[:, : len(self._map_matrix)]
        maps: NDArray[np.float32] = (whole[:, None] @ self._map_matrix)[:, 0]
        return maps

    def lone_waves(self, X: NDArray[np.floating], maps: NDArray[np.floating]) -> NDArray[np.float32]:
        """SRP-PHAT maps (n_frames, 360) of frames in which these show one wave and little else; 0 in others.

        A prior knows speech in rooms. These know hiss, tones and the like, which it would rather ignore: of
        both maps the higher value counts. maps: of the prior; where it hears somebody, it is believed.
        """
        waves = self.srp_maps(X)
        heights = (waves.max(axis=1, initial=0.0), LONE), (maps.max(axis=1, initial=0.0), DEAF)
        clear, deaf = (((high - a) / (b - a)).clip(0.0, 1.0) for high, (a, b) in heights)
        return np.asarray(waves * (clear * deaf)[:, None], np.float32)

    @cached_property
    def _map_matrix(self) -> NDArray[np.float32]:
        """From GCC-PHAT of whole frames to a map, (bands x pairs x lags, 360)."""
        steered = steering_matrix(self.array, self.gcc.whole).reshape(
            len(self.gcc.band_list), -1, N_DIRECTIONS
        )
        weighted = steered * (self.gcc.band_shares / len(self.gcc.pairs))[:, None, None]
        return weighted.reshape(-1, N_DIRECTIONS).astype(np.float32)

    @cached_property
    def confidence(self) -> Confidence:
        """How far directions in its scores can be trusted: its own, or what priors usually have."""
        own = self.constants.get("confidence")
        return usual_confidence() if own is None else Confidence.from_dict(own)

    def counting(self) -> list[Calibration]:
        """How far the highest peak of its scores, and the next, can be trusted to be a source."""
        if not self._counting:
            raise PriorError(f"this prior of {self.array.name} was not calibrated")
        return self._counting

    @cached_property
    def _counting(self) -> list[Calibration]:
        return [Calibration.from_dict(value) for value in self.constants.get("counting", [])]

    def save(self, path: str | Path) -> None:
        """Write the prior as safetensors, whole or not at all."""
        header, arrays = self.parts()
        write_tensors(path, arrays, header)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header (for JSON) and arrays: all that a file needs."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "array": self.array.to_toml(),
            "steps": self.steps,
            "about": self.about,
            "constants": self.constants,
        }
        return header, self.weights | {f"frames.{name}": values for name, values in self.frames.items()}

    @classmethod
    def load(cls, path: str | Path) -> Prior:
        """Read a prior; a file that is damaged, foreign or of another version is refused."""
        header, arrays = read_prior_file(path, read_tensors)
        return cls.from_parts(header, arrays, str(path))

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> Prior:
        """What `parts` gave; path: how errors call it."""
        try:
            if (version := header.get("version")) != VERSION:
                raise PriorError(
                    f"{path} has version {str(version)[:20]}; this program reads {VERSION}, and "
                    "`tyto prior ARRAY` makes a new one"
                )
            frames = {k.removeprefix("frames."): v for k, v in arrays.items() if k.startswith("frames.")}
            weights = {k: v for k, v in arrays.items() if not k.startswith("frames.")}
            if any(values.dtype != np.int16 for values in weights.values()):
                raise PriorError(f"{path}: weights must be int16; it was altered")
            steps = {name: float(value) for name, value in header["steps"].items()}
            if not all(0 < step <= 1 and np.log2(step) % 1 == 0 for step in steps.values()):
                raise PriorError(f"{path}: the steps of weights must be powers of two; it was altered")
            array = MicArray.from_toml(header["array"], path)
            return cls(array, prior_gcc(array), weights, steps, header["about"], header["constants"], frames)
        except PriorError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            raise PriorError(f"{path} is damaged or no prior: {error}") from error


def array_of(path: str | Path) -> MicArray:
    """The array of a prior's file, whatever its version; nothing else is read."""
    header, _ = read_prior_file(path, lambda file: (read_header(file), {}))
    try:
        return MicArray.from_toml(header["array"], str(path))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise PriorError(f"{path} is damaged or no prior: {error}") from error


def read_prior_file(path: str | Path, read: Callable[[str | Path], Content]) -> Content:
    """What a prior's file holds; refused where it is damaged or something else."""
    if not Path(path).is_file():
        raise PriorError(f"no such file: {path}; `tyto prior ARRAY` makes a prior")
    try:
        header, arrays = read(path)
    except FileError as error:
        raise PriorError(f"{path} is damaged or no prior: {error}") from error
    if header.get("format") != FORMAT:
        raise PriorError(f"{path} holds no prior; `tyto prior ARRAY` makes one")
    return header, arrays


@cache
def _threads() -> Any:
    """For products this small a second thread gains little, and its waiting beside other work costs much."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _double(X: Array) -> Array:
    return X.astype(np.float64) if isinstance(X, np.ndarray) else X.double()


def _root(squares: Array) -> Array:
    """Whole square roots of whole numbers: no root lies near enough to a half for the last bit to matter.

    (torch's square root of a double is not always the correctly rounded one.)
    """
    return (np.sqrt(squares) if isinstance(squares, np.ndarray) else squares.sqrt()).round()


def _check_constants(constants: Any) -> None:
    """Refuse constants that no prior has; those of a file may have been altered."""
    damaged = PriorError("the constants of this prior are damaged or were altered")
    if not isinstance(constants, dict):
        raise damaged
    for name in ("logit_mean", "logit_spread"):
        try:
            values = np.array(constants.get(name, [1.0] * N_DIRECTIONS), np.float64)
        except (TypeError, ValueError):
            raise damaged from None
        wrong = values.shape != (N_DIRECTIONS,) or not np.isfinite(values).all()
        if wrong or (name == "logit_spread" and not (values > 0).all()):
            raise damaged
    counting = constants.get("counting", [])
    if not isinstance(counting, list) or len(counting) not in (0, 2):
        raise damaged
    try:
        for document in counting:
            Calibration.from_dict(document)
        if (confidence := constants.get("confidence")) is not None:
            Confidence.from_dict(confidence)
    except DataError:
        raise damaged from None


def _step(values: NDArray[np.float64]) -> float:
    """The finest power of two of which 2^15 - 1 steps reach every value; at most 1."""
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest >= 2**10:
        raise PriorError("a weight of the network is not finite or far too large: training went wrong")
    return float(2.0 ** np.ceil(np.log2(max(largest, 2.0**-10) / (2**15 - 1))))
