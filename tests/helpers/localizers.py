"""Sound from known directions, small states to teach, and files that were tampered with."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.localizer.state import State
from tytoalba.signal.array import load_array
from tytoalba.storage.tensors import pack

ARRAY = load_array("respeaker-usb-4")


@cache
def prior(n_frames: int = 40) -> Prior:
    """The shipped prior of the small array, with few of its simulated frames."""
    found = Prior.load(shipped_priors()[ARRAY.name])
    return replace(found, frames={k: v[:n_frames] for k, v in found.frames.items()} if n_frames else {})


@cache
def features(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Features (n, n_inputs) of no sound in particular, on a coarse grid: the same on every machine."""
    rng = np.random.default_rng(seed)
    X = (rng.integers(-24, 25, (n, prior().gcc.n_features)) / 64).astype(np.float32)
    X.flags.writeable = False
    return X


def phase(k: int, n: int = 3) -> Phase:
    """Lesson number k: n frames of one source, or of two where k is odd."""
    azimuth = np.tile(np.array([37.0 * k, 37.0 * k + 100.0])[: 1 + k % 2] % 360, (n, 1))
    return Phase(features(n, seed=k), azimuth, np.unique(azimuth.astype(np.intp)))


def small_state(n_features: int = 2, **options: Any) -> State:
    return State.new(ARRAY, prior(), **{"seed": 5, "n_features": n_features, "views": 2, **options})


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file, without any check."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["tytoalba"])
    return header, {name: values.copy() for name, values in load(data).items()}


def closed(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """The file of a header and arrays, its digest made to fit."""
    kind = str(header["format"]).removeprefix("tytoalba-")
    return pack(kind, header["version"], {k: v for k, v in header.items() if k != "digest"}, arrays)


def changed(data: bytes, more_arrays: dict[str, Any] | None = None, **entries: Any) -> bytes:
    """A file with other arrays and other entries in its header, its digest made to fit."""
    header, arrays = opened(data)
    return closed(header | entries, arrays | (more_arrays or {}))


def with_options(data: bytes, **options: Any) -> bytes:
    """A file whose header has other options, its digest made to fit."""
    return changed(data, options=opened(data)[0]["options"] | options)


def written(text: str, arrays: dict[str, NDArray[Any]] | None = None) -> bytes:
    """A file whose header is this text, right or wrong."""
    return bytes(save(arrays or {"a": np.zeros(1)}, {"tytoalba": text}))
