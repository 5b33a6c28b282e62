"""Parts of ONNX graphs, run by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tytoalba.bench.onnx import open_session
from tytoalba.learning.prior.exact import INPUT_GRID
from tytoalba.learning.prior.prior import Prior
from tytoalba.localizer.onnx.builder import Builder, Name, Precision
from tytoalba.localizer.onnx.graph import Known, onnx_bytes

Values = NDArray[Any]


def ran(
    build: Callable[[Builder, Name], Name],
    x: Values,
    precision: Precision = "same",
    dtype: type[Any] = np.float64,
) -> Values:
    """What a graph makes of float32 x. build: from builder and input to what comes out, of that type."""
    pytest.importorskip("onnxruntime")
    g = Builder(precision)
    found = build(g, "x")
    shape: list[Any] = ["n", *x.shape[1:]]
    data = g.to_bytes({"x": shape}, {"y": (found, dtype if g.is_same else np.float32, [])}, {})
    (y,) = open_session(data).run(["y"], {"x": np.asarray(x, np.float32)})
    return np.asarray(y)


def scores_of(known: Known, frames: Values, precision: Precision = "same") -> Values:
    """Scores of frames in a runtime."""
    pytest.importorskip("onnxruntime")
    (scores,) = open_session(onnx_bytes(known, precision)).run(["scores"], {"frames": frames})
    return np.asarray(scores)


def codes_of(g: Builder, x: Name, prior: Prior) -> Name:
    """Codes, as `features.codes` gives them, of features x (n_frames, n_features)."""
    gcc = prior.gcc
    n_maps = len(gcc.band_list) * len(gcc.pairs)
    flat = g.cast(g.op("Mul", x, g.constant(INPUT_GRID, np.float32)), g.real)
    return g.reshape(g.rounded(flat), -1, 1 + gcc.n_windows, n_maps, gcc.n_lags)


def noise(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.float32]:
    """White noise, float32."""
    return np.asarray(0.1 * np.random.default_rng(seed).standard_normal(shape), np.float32)
