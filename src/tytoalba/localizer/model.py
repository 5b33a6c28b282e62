"""What may be shared: array, prior and weights. It locates and cannot be taught.

A model follows from a state and has no sums in it. An exact one is as secret as the state: the sums follow
from its weights (docs/privacy.md). A private one (`private`) has no weights of its own but only by how much
the device's directions are off, computed from sums with noise; all else in it is public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import FileError, TytoError
from tytoalba.learning.inputs import Inputs, views_of
from tytoalba.learning.method import Task
from tytoalba.learning.prior.files import prior_of_parts
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.sums import SCALE
from tytoalba.localizer.frontend import STEADY, USUAL
from tytoalba.localizer.offsets import moved
from tytoalba.signal.alignment import fit
from tytoalba.signal.array import MicArray
from tytoalba.storage.tensors import Arrays, pack, unpack

KIND, VERSION = "model", 3
"""Models that ignore steady noise; those with offsets alone are written as version 2, all others as 1, which
older programs read."""
PURPOSE = {
    "G": "sum of products of random features: how the sound varies",
    "Q": "sum of products of random features and labels: which sound came from where",
    "y2": "sum of squares of labels",
    "n": "number of rows in the sums",
    "counts": "how often each direction was taught",
    "prior": "network and frames from simulations; no user's sound",
    "kept": "a lesson that was taught with keep, to be forgotten without its recording",
    "W": "weights that follow from the sums",
    "weight": "how much the prior still counts at each direction",
    "release": "by how many degrees directions are off, in small sums: what private releases are made from",
    "offset": "by how many degrees each direction is off",
}
"""What each array of a file is for, by the beginning of its name."""
STEPS = 8
"""Steps of the weight of the prior in a model that is given away."""
BLOCK = 512
"""Frames scored at a time."""
FARTHEST = 45.0
"""Degrees by which a direction may be off."""
LARGEST_EXPANSION = 2**29
"""Weights of random features, inputs times features: 4 GiB. A file may be small and ask for more."""


@dataclass(frozen=True)
class Model:
    """Scores of directions from frames, as the learner that it was made from gives them.

    array: with how it is mounted (yaw); prior: for the array as built. W: (n_features, 2 x 360) float32,
    regression to the labels and to the prior's own scores. weight: of the prior at each direction, (360,).
    n_frames: how many were learned; 0 in a private model, which does not tell.
    offset: by how many degrees the device hears a sound of each direction beside it, (360,); None: by none.
    private: what a private release promises (`release.private_model`), None for exact models.
    frontend: version of the front end (`FrontEnd`) that sound comes through.
    """

    array: MicArray
    prior: Prior
    options: dict[str, Any]
    W: NDArray[np.float32]
    weight: NDArray[np.float32]
    n_frames: int = 0
    offset: NDArray[np.float32] | None = None
    private: dict[str, Any] | None = None
    frontend: int = USUAL

    @cached_property
    def inputs(self) -> Inputs:
        """From features to random features."""
        o = self.options
        return Inputs(
            task_of(self.prior, int(o["seed"])),
            self.prior,
            int(o["n_features"]),
            float(o["bandwidth"]),
            float(o["sound"]),
            int(o["seed"]),
        )

    @cached_property
    def whole_weights(self) -> tuple[NDArray[np.float64], float]:
        """W in whole steps, and what a step of a score is worth; 127 x 50000 x 2^30 is below 2^53."""
        step = 2.0 ** (np.ceil(np.log2(max(float(np.abs(self.W).max()), 1e-30))) - 30)
        return np.rint(self.W.astype(np.float64) / step), step / SCALE

    def scores(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores (n_frames, 360), about 1 at a source, of features X (n_frames, n_inputs).

        The same to the bit whatever the batch: their sums are of whole numbers.
        """
        W, step = self.whole_weights
        views = views_of(self.inputs.task)[: int(self.options["views"])]
        n = self.prior.n_directions
        result = np.zeros((len(X), n), np.float32)
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            for view, order in views:
                H, B = self.inputs.codes(X[rows][:, order])
                found = (H.astype(np.float64) @ W * step).astype(np.float32)
                prior = view.back(B - found[:, n:]) * self.weight
                result[rows] += (view.back(found[:, :n]) + prior) / len(views)
        return result if self.offset is None else moved(result, self.offset)

    def lone_waves(self, X: NDArray[np.float32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """`Prior.lone_waves` beside scores, put right by the offset; none once it was taught."""
        if self.n_frames:
            return np.zeros((len(X), self.prior.n_directions), np.float32)
        maps = self.prior.lone_waves(X, scores)
        return maps if self.offset is None else moved(maps, self.offset)

    def coarse(self) -> Model:
        """The model as it is given away: how much the prior counts is rounded, so that nobody counts by it.

        With the exact weights the number of frames at every degree follows (`attacks.counts_from_weight`).
        """
        return replace(self, weight=np.round(self.weight * STEPS) / np.float32(STEPS))

    def to_bytes(self) -> bytes:
        """The file."""
        of_prior, arrays = self._parts()
        own = {"array": self.array.to_toml(), "options": self.options, "n_frames": self.n_frames}
        if self.private is not None:
            own["private"] = self.private
        version = 1 if self.offset is None else 2
        if self.frontend == STEADY:
            own["frontend"], version = STEADY, VERSION
        return pack(KIND, version, own | of_prior, arrays)

    def inventory(self) -> Iterator[tuple[str, NDArray[Any], str]]:
        """Every array of the file: name, values, purpose."""
        return listed(self._parts()[1])

    def _parts(self) -> tuple[dict[str, Any], Arrays]:
        header, arrays = prior_parts(replace(self.prior, frames={}))  # frames are for teaching
        offset = {} if self.offset is None else {"offset": self.offset}
        return header, {"W": self.W, "weight": self.weight, **offset, **arrays}

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "this file") -> Model:
        """What `to_bytes` gave; anything else is refused."""
        header, arrays = unpack(data, KIND, VERSION, what)
        refuse_removed(header, what)
        try:
            prior = prior_from(header, arrays)
            options = checked_options(header["options"])
            array = fitting(MicArray.from_toml(header["array"], what), prior, options["n_features"])
            W, weight, n_frames = arrays["W"], arrays["weight"], int(header["n_frames"])
            private = _checked_private(header.get("private"))
            if (frontend := header.get("frontend", USUAL)) not in (USUAL, STEADY):
                raise FileError(f"its front end has version {str(frontend)[:20]}: a newer program made it")
        except (TytoError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{what} is damaged: {error}") from error
        n = prior.n_directions
        finite = all(a.dtype == np.float32 and bool(np.isfinite(a).all()) for a in (W, weight))
        if W.shape != (options["n_features"], 2 * n) or weight.shape != (n,) or not finite or n_frames < 0:
            raise FileError(f"{what} is damaged: its weights do not fit it")
        offset = arrays.get("offset")
        right = offset is None or (offset.shape == (n,) and offset.dtype == np.float32)
        if not right or (offset is not None and not bool((np.abs(offset) <= FARTHEST).all())):
            raise FileError(f"{what} is damaged: its offset must be {n} degrees up to {FARTHEST:g}")
        return cls(array, prior, options, W, weight, n_frames, offset, private, frontend)


def _checked_private(private: Any) -> dict[str, Any] | None:
    """What a file says of its privacy: names with texts and numbers, or nothing."""
    if private is None:
        return None
    wanted = ("unit", "epsilon", "delta", "noise", "features")
    if not isinstance(private, dict) or any(name not in private for name in wanted):
        raise FileError("what it says of its privacy is incomplete")
    if any(not isinstance(value, str | int | float) or isinstance(value, bool) for value in private.values()):
        raise FileError("what it says of its privacy was altered")
    return private


def listed(arrays: Arrays) -> Iterator[tuple[str, NDArray[Any], str]]:
    """Arrays of a file by name, each with its purpose."""
    return ((name, values, PURPOSE[name.split(".")[0]]) for name, values in sorted(arrays.items()))


def fitting(array: MicArray, prior: Prior, n_features: int) -> MicArray:
    """The array, if the prior is of the same microphones and the random features fit into memory."""
    if fit(prior.array, array) is None:
        raise TytoError(f"the prior is one of {prior.array.name}, whose microphones are not {array.name}'s")
    n_inputs = prior.n_directions + len(prior.gcc.pairs) * prior.gcc.n_lags
    if n_inputs * n_features > LARGEST_EXPANSION:
        most = LARGEST_EXPANSION // n_inputs
        raise TytoError(f"n_features must be at most {most} for {array.name}, got {n_features}")
    return array


def task_of(prior: Prior, seed: int) -> Task:
    """What a learner behind this prior gets: features of the array as it was built."""
    return Task(prior.gcc.n_features, seed=seed, array=prior.array, gcc=prior.gcc)


OPTIONS: dict[str, tuple[type, float, float]] = {
    "seed": (int, 0, 2**63 - 1),
    "n_features": (int, 1, 50_000),
    "bandwidth": (float, 1e-3, 1e3),
    "alpha": (float, 1e-9, 1e9),
    "sigma": (float, 0.1, 180.0),
    "prior_frames": (float, 1e-6, 1e9),
    "sound": (float, 0.0, 1e3),
    "simulated": (int, 0, 1000),
    "views": (int, 1, 64),
}
"""Of a learner, as files keep them: type, smallest, largest."""


def refuse_removed(header: dict[str, Any], what: str) -> None:
    """Refuse files whose random features this version no longer computes."""
    options = header.get("options")
    expansion = options.get("expansion") if isinstance(options, dict) else None
    if expansion in ("orthogonal", "structured"):
        raise FileError(
            f"{what} has {expansion} random features, which this version no longer computes; "
            "the version tagged before-rebuild reads it"
        )


def checked_options(options: Any) -> dict[str, Any]:
    """Options that are complete and sensible; a file may say anything."""
    if not isinstance(options, dict) or options.get("expansion") != "random":
        raise FileError("the options need an expansion, which must be 'random'")
    checked: dict[str, Any] = {"expansion": "random"}
    for name, (kind, least, most) in OPTIONS.items():
        value: Any = options.get(name)
        value = value.item() if isinstance(value, np.generic) else value
        right = isinstance(value, int) if kind is int else isinstance(value, (int, float))
        if not right or isinstance(value, bool) or not least <= value <= most:
            raise FileError(f"{name} must be from {least:g} to {most:g}, got {str(value)[:40]}")
        checked[name] = value
    return checked


def prior_parts(prior: Prior) -> tuple[dict[str, Any], Arrays]:
    """A prior inside another file: what the header says, and its arrays."""
    header, arrays = prior.parts()
    return {"prior": header}, {f"prior.{name}": values for name, values in arrays.items()}


def prior_from(header: dict[str, Any], arrays: Arrays) -> Prior:
    """The prior of a file that holds one."""
    inner = {name.removeprefix("prior."): v for name, v in arrays.items() if name.startswith("prior.")}
    return prior_of_parts(header["prior"], inner, "its prior")
