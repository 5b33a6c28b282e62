"""The network for every array as a graph: `shared.exact.forward`, told of one array."""

from __future__ import annotations

import numpy as np

from tytoalba.learning.prior.exact import GRID, INPUT_GRID, TAPS
from tytoalba.learning.prior.shared.exact import (
    BYTE,
    CODE,
    HALF,
    LIMIT,
    N_MAPS,
    SHARP,
    TEN_BITS,
    count_blocks,
    neighbours,
)
from tytoalba.learning.prior.shared.geometry import CELLS, MOST, UNFOLD
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.localizer.onnx.builder import Builder, Name


def logits(g: Builder, codes: Name, prior: SharedPrior) -> Name:
    """Logits (n_frames, 360) on the grid, real, of codes as `features.codes` gives them."""
    w = prior.weights
    used = prior.geometry.n_bands * UNFOLD  # what a low rate cannot hold is not there
    pairs, together = _steered(g, codes, prior)
    known = prior.geometry.known.astype(np.float64) @ w["pair"][N_MAPS:] + w["pair.bias"]
    told = g.whole(known.swapaxes(0, 1))  # (CELLS, n_pairs, width)
    each = g.op("Add", g.op("MatMul", pairs, g.whole(w["pair"][:used])), told)
    each = _cut(g, g.op("Mul", each, _factors(g, w["pair.shift"])), 0.0, BYTE)
    mean = _mean(g, each, 2, prior.geometry.n_pairs, 0.0, BYTE, keep=0)
    most = g.op("ReduceMax", each, axes=[2], keepdims=0)
    n_looks = 1 + prior.gcc.n_windows
    heard = _layer(g, g.cut(together, 1, 1, n_looks), prior, "hear", 0.0, BYTE, slice(0, used))
    heard = g.op("ReduceMax", heard, axes=[1], keepdims=0)
    pair_width = w["pair"].shape[1]
    rows = np.r_[0 : 2 * pair_width + used, 2 * pair_width + N_MAPS : len(w["enter"])]
    joined = g.join([mean, most, g.take(together, 0, 1), heard], axis=2)
    Z = _layer(g, joined, prior, "enter", 0.0, HALF, rows)
    for k in range(count_blocks(w)):
        Z = _block(g, Z, prior, k)
    top = g.op("Clip", Z, g.constant(0.0), g.constant(HALF))
    found = _layer(g, top, prior, "leave", -LIMIT, LIMIT)
    return g.reshape(g.op("Div", found, g.constant(GRID)), -1, CELLS * UNFOLD)


def _steered(g: Builder, codes: Name, prior: SharedPrior) -> tuple[Name, Name]:
    geometry = prior.geometry
    n_bands, n_pairs, n_lags = geometry.n_bands, geometry.n_pairs, prior.gcc.n_lags
    n_looks = 1 + prior.gcc.n_windows
    scale = 2.0 ** -geometry.scale.astype(np.float64)
    steering = geometry.steering
    codes = _cut(g, g.op("Mul", codes, g.constant(CODE / INPUT_GRID)), -MOST, MOST)
    codes = g.reshape(codes, -1, n_looks, n_bands, n_pairs, n_lags)
    whole = g.transpose(g.take(codes, 0, 1), 1, 2, 0, 3)  # (bands, pairs, n, lags)
    maps = g.op("Mul", g.op("MatMul", whole, g.whole(steering)), g.constant(scale.reshape(-1, 1, 1, 1)))
    maps = g.reshape(_cut(g, maps, -HALF, HALF), n_bands, n_pairs, -1, CELLS, UNFOLD)
    pairs = g.reshape(g.transpose(maps, 2, 3, 1, 0, 4), -1, CELLS, n_pairs, n_bands * UNFOLD)
    flat = g.reshape(g.transpose(codes, 2, 0, 1, 3, 4), n_bands, -1, n_pairs * n_lags)
    total = g.op("MatMul", flat, g.whole(steering.reshape(n_bands, -1, CELLS * UNFOLD)))
    total = g.op("Mul", total, g.constant(SHARP * scale.reshape(-1, 1, 1)))
    mean = _cut(g, g.op("Div", total, g.constant(float(n_pairs))), -TEN_BITS, TEN_BITS)
    by_look = g.reshape(mean, n_bands, -1, n_looks, CELLS, UNFOLD)
    return pairs, g.reshape(g.transpose(by_look, 1, 2, 3, 0, 4), -1, n_looks, CELLS, n_bands * UNFOLD)


def _block(g: Builder, Z: Name, prior: SharedPrior, k: int) -> Name:
    w = prior.weights
    width = w[f"mix{k}"].shape[1]
    n_near = len(TAPS) * width
    around = g.join([_mean(g, Z, 1, CELLS, -HALF, HALF), g.op("ReduceMax", Z, axes=[1], keepdims=1)], axis=2)
    beside = g.join([g.take(Z, cells, 1) for cells in neighbours(k).T], axis=2)
    overall = g.op("MatMul", around, g.whole(w[f"near{k}"][n_near:]))
    overall = g.op("Add", overall, g.whole(w[f"near{k}.bias"]))
    inner = g.op("Add", g.op("MatMul", beside, g.whole(w[f"near{k}"][:n_near])), overall)
    inner = _cut(g, g.op("Mul", inner, _factors(g, w[f"near{k}.shift"])), 0.0, BYTE)
    added = g.op("Add", g.op("MatMul", inner, g.whole(w[f"mix{k}"])), g.whole(w[f"mix{k}.bias"]))
    return _cut(g, g.op("Add", Z, g.op("Mul", added, _factors(g, w[f"mix{k}.shift"]))), -HALF, HALF)


def _layer(
    g: Builder,
    x: Name,
    prior: SharedPrior,
    name: str,
    low: float,
    high: float,
    rows: slice | np.ndarray = slice(None),
) -> Name:
    w = prior.weights
    summed = g.op("Add", g.op("MatMul", x, g.whole(w[name][rows])), g.whole(w[f"{name}.bias"]))
    return _cut(g, g.op("Mul", summed, _factors(g, w[f"{name}.shift"])), low, high)


def _factors(g: Builder, shift: np.ndarray) -> Name:
    return g.constant(2.0 ** -shift.astype(np.float64))


def _mean(g: Builder, x: Name, axis: int, n: int, low: float, high: float, keep: int = 1) -> Name:
    total = g.op("ReduceSum", x, g.constant([axis], np.int64), keepdims=keep)
    return _cut(g, g.op("Div", total, g.constant(float(n))), low, high)


def _cut(g: Builder, x: Name, low: float, high: float) -> Name:
    """Rounded and cut."""
    return g.op("Clip", g.rounded(x), g.constant(float(low)), g.constant(float(high)))
