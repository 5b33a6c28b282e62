"""The network of a prior as a graph: features in, logits and scores out (`exact.forward`, `features.scores`).

Frames come first here, (n_frames, CELLS, width); `forward` has cells first. The sums are exact, so their
order does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.prior.exact import (
    CELLS,
    GRID,
    INPUT_GRID,
    LARGEST,
    MATRIX_GRID,
    STEERED_GAIN,
    UNFOLD,
    count_blocks,
    shifts,
)
from tytoalba.learning.prior.features import TOP, scores
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.localizer.onnx import shared
from tytoalba.localizer.onnx.builder import Builder, Name


def logits(g: Builder, codes: Name, prior: Prior) -> Name:
    """Logits (n_frames, 360) on the grid, real, of codes as `features.codes` gives them."""
    if isinstance(prior, SharedPrior):
        return shared.logits(g, codes, prior)
    weights = prior.real_arrays
    w = {name: g.whole(weights[name], prior.steps[name]) for name in prior.weights if not _is_added(name)}
    w |= {name: g.whole(weights[name], 1 / GRID) for name in prior.weights if _is_added(name)}
    n_maps, n_lags = len(prior.gcc.band_list) * len(prior.gcc.pairs), prior.gcc.n_lags
    Z = _cells(g, g.take(codes, 0, 1), weights["steer"])
    if "hear" in w:
        windows = g.reshape(g.cut(codes, 1, 1, 1 + prior.gcc.n_windows), -1, n_maps, n_lags)
        said = g.op("MatMul", _cells(g, windows, weights["steer_windows"]), w["hear"])
        said = g.reshape(said, -1, prior.gcc.n_windows, CELLS, prior.window_width)
        most = g.op("ReduceMax", said, axes=[1], keepdims=0)
        Z = g.join([Z, _settled(g, g.op("Add", most, w["heard"]), 0.0)], axis=2)
    Z = _settled(g, g.op("Add", g.op("MatMul", Z, w["enter"]), w["place"]), 0.0)
    for k in range(count_blocks(prior.weights)):
        Z = _block(g, Z, {name: w[f"{name}{k}"] for name in ("near", "around", "offset", "mix", "bias")}, k)
    Z = g.op("Clip", Z, g.constant(0.0), g.constant(LARGEST))
    found = g.on_grid(g.op("Add", g.op("MatMul", Z, w["leave"]), w["level"]), GRID)
    return g.reshape(found, -1, CELLS * UNFOLD)


def scores_of(g: Builder, logits: Name) -> Name:
    """Scores in 0..1 of logits, float32, same shape."""
    if not g.is_same:
        return g.op("Sigmoid", g.op("Clip", logits, g.constant(-TOP), g.constant(TOP)))
    steps = np.arange(-TOP * GRID, TOP * GRID + 1)
    clipped = g.op("Clip", g.op("Mul", logits, g.constant(GRID)), g.constant(steps[0]), g.constant(steps[-1]))
    place = g.cast(g.op("Sub", clipped, g.constant(steps[0])), np.int64)
    return g.op("Gather", g.constant(scores(steps / GRID), np.float32), place, axis=0)


def _is_added(name: str) -> bool:
    """Whether these weights are only added, and on the grid of what they are added to."""
    return name.startswith(("place", "level", "heard", "offset", "bias"))


def _cells(g: Builder, codes: Name, steer: NDArray[np.float64]) -> Name:
    """Evidence of pairs for cells, (n, CELLS, n_maps x UNFOLD), of codes (n, n_maps, n_lags)."""
    n_maps = len(steer)
    by_degree = steer.reshape(n_maps, UNFOLD, CELLS, -1).transpose(0, 3, 2, 1)
    table = g.whole(by_degree.reshape(n_maps, -1, CELLS * UNFOLD), 1 / MATRIX_GRID)
    steered = g.op("MatMul", g.transpose(codes, 1, 0, 2), table)  # (n_maps, n, 360)
    parts = g.transpose(g.reshape(steered, n_maps, -1, CELLS, UNFOLD), 1, 2, 0, 3)
    flat = g.reshape(parts, -1, CELLS, n_maps * UNFOLD)
    return g.op("Mul", flat, g.constant(STEERED_GAIN / INPUT_GRID))


def _block(g: Builder, Z: Name, w: dict[str, Name], k: int) -> Name:
    """What a block makes of Z (n_frames, CELLS, width): neighbours, the whole circle, a sum with what was."""
    steps = shifts(k)
    reach = max(steps)
    circle = g.join([g.cut(Z, 1, -reach, CELLS), Z, g.cut(Z, 1, 0, reach)], axis=1)
    near = g.join([g.cut(circle, 1, reach - step, reach - step + CELLS) for step in steps], axis=2)
    total = g.op("ReduceSum", Z, g.constant([1], np.int64), keepdims=1)
    mean = g.on_grid(g.op("Div", total, g.constant(float(CELLS))), GRID)
    around = g.join([mean, g.op("ReduceMax", Z, axes=[1], keepdims=1)], axis=2)
    inner = g.sum_of(
        g.op("MatMul", near, w["near"]),
        g.op("Add", g.op("MatMul", around, w["around"]), w["offset"]),
    )
    more = g.op("Add", g.op("MatMul", _settled(g, inner, 0.0), w["mix"]), w["bias"])
    return _settled(g, g.op("Add", Z, more), -LARGEST)


def _settled(g: Builder, x: Name, low: float) -> Name:
    """Rounded to the grid and cut."""
    return g.op("Clip", g.on_grid(x, GRID), g.constant(low), g.constant(LARGEST))
