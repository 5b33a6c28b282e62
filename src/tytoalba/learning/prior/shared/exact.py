"""The network for every array in eight bits: the same whole numbers in numpy and torch, on any device.

Weights are int8, what goes between layers has eight bits (maps over all pairs ten), every step is a power of
two, and no sum reaches 2^24, up to which float32 holds all whole numbers in whatever order they are added.

    GCC-PHAT of the whole frame -> evidence of each pair and band for each degree
        -> `pair`: the same layer for every pair, which is told what the pair can know -> mean and maximum
    of each window, over all pairs -> `hear` -> the maximum over windows
    both, and the whole frame over all pairs -> `enter` -> blocks of neighbours along the circle -> `leave`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.prior.exact import DILATIONS, GRID, INPUT_GRID, TAPS, Array
from tytoalba.learning.prior.shared.geometry import CELLS, MOST, N_BANDS, N_KNOWN, PER_UNIT, UNFOLD, Geometry

CODE = 128.0
"""Steps of the features: 1/128."""
SHARP = 4
"""By how much finer a map over all pairs is than one of a pair: means over many are small."""
UNIT, STATE = 1 / PER_UNIT, 1 / 16
"""Steps of what goes between layers, and of the state that blocks add to."""
BYTE, HALF, TEN_BITS = 255.0, 127.0, 511.0
N_MAPS = N_BANDS * UNFOLD
LIMIT = 2**24

Weights = dict[str, NDArray[Any]]
"""By layer: `NAME` int8 (n_in, n_out), `NAME.bias` int32 and `NAME.shift` int8 (n_out,): a sum of a layer is
rounded to its out step by 2^-shift."""
Shapes = dict[str, tuple[int, int]]


def shapes(width: int, pair_width: int, window_width: int, n_blocks: int) -> Shapes:
    """Inputs and outputs of every layer."""
    found = {
        "pair": (N_MAPS + N_KNOWN, pair_width),
        "hear": (N_MAPS, window_width),
        "enter": (2 * pair_width + N_MAPS + window_width, width),
    }
    for k in range(n_blocks):
        found |= {f"near{k}": ((len(TAPS) + 2) * width, width), f"mix{k}": (width, width)}
    return found | {"leave": (width, UNFOLD)}


def in_step(name: str) -> float:
    """What one step of a layer's inputs is worth."""
    return STATE if name.startswith(("near", "leave")) else UNIT


def out_step(name: str) -> float:
    """What one step of its results is worth."""
    if name == "leave":
        return 1 / GRID
    return STATE if name.startswith(("enter", "mix")) else UNIT


def largest_inputs(name: str, pair_width: int, window_width: int, n_in: int) -> NDArray[np.float64]:
    """How large each input can be, in its steps."""
    if name == "enter":
        parts = {BYTE: 2 * pair_width, TEN_BITS: N_MAPS}
        both = [np.full(n, size) for size, n in parts.items()]
        return np.concatenate([*both, np.full(window_width, BYTE)])
    largest = {"pair": HALF, "hear": TEN_BITS}.get(name, BYTE if name.startswith("mix") else HALF)
    return np.full(n_in, largest)


def count_blocks(weights: Mapping[str, Any]) -> int:
    """Of how many blocks these weights are."""
    return sum(re.fullmatch(r"mix\d+", name) is not None for name in weights)


def sizes(weights: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Channels along the circle, of pairs and of windows, and the number of blocks: what `shapes` takes."""
    channels = weights["leave"].shape[0], weights["pair"].shape[1], weights["hear"].shape[1]
    return *channels, count_blocks(weights)


def quantised(name: str, matrix: NDArray[np.floating], bias: NDArray[np.floating]) -> Weights:
    """A layer in eight bits: each output in the finest step of a power of two that its weights allow."""
    largest = np.abs(matrix).max(axis=0).clip(2.0**-12)
    fine = np.floor(np.log2(HALF / largest))  # weights in steps of 2^-fine
    summed = in_step(name) * 2.0**-fine
    return {
        name: np.rint(matrix * 2.0**fine).astype(np.int8),
        f"{name}.bias": np.rint(bias / summed).clip(-LIMIT, LIMIT).astype(np.int32),
        f"{name}.shift": np.rint(np.log2(out_step(name) / summed)).astype(np.int8),
    }


def real(name: str, weights: Weights) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matrix and bias of a layer in eight bits as real numbers: `quantised` of these is the layer again."""
    summed = out_step(name) * 2.0 ** -weights[f"{name}.shift"].astype(np.float64)
    return weights[name] * (summed / in_step(name)), weights[f"{name}.bias"] * summed


def is_exact(weights: Weights) -> bool:
    """Whether no sum with these weights can reach 2^24."""
    sizes = weights["pair"].shape[1], weights["hear"].shape[1]
    for name in (name for name in weights if "." not in name):
        matrix = np.abs(weights[name].astype(np.float64))
        most = largest_inputs(name, *sizes, len(matrix)) @ matrix + np.abs(weights[f"{name}.bias"])
        if name.startswith("mix"):
            most = most + HALF * 2.0 ** weights[f"{name}.shift"].astype(float)
        if not (most < LIMIT).all():
            return False
    return True


def floats(weights: Weights) -> dict[str, NDArray[np.float32]]:
    """The weights as `forward` takes them: whole numbers in float32, shifts as factors."""
    return {
        name: (2.0 ** -values.astype(np.float64) if name.endswith(".shift") else values).astype(np.float32)
        for name, values in weights.items()
    }


def rounded_codes(X: Array) -> Array:
    """GCC-PHAT in float32 as whole numbers of 1/128, by way of the grid that all features are rounded to."""
    return _rounded((X * INPUT_GRID).round() * (CODE / INPUT_GRID), -MOST, MOST)


def steered(codes: Array, geometry: Geometry, steering: Array) -> tuple[Array, Array]:
    """Evidence of pairs (n, CELLS, n_pairs, N_MAPS) in whole frames, in steps of 1/128, and of all pairs
    together (n, n_looks, CELLS, N_MAPS), in steps of 1/512, of GCC-PHAT codes (n, looks, bands, pairs, lags).
    """
    n, looks, n_bands, n_pairs, n_lags = codes.shape
    numpy = isinstance(codes, np.ndarray)
    shape = n, CELLS, n_pairs, N_BANDS, UNFOLD
    pairs = _zeros(codes, shape)
    together = _zeros(codes, (n, looks, CELLS, N_BANDS, UNFOLD))
    for b in range(n_bands):
        scale = float(2.0 ** -int(geometry.scale[b]))
        whole = codes[:, 0, b].swapaxes(0, 1) @ steering[b]  # (P, n, 360)
        rounded = _rounded(whole * scale, -HALF, HALF).reshape(n_pairs, n, CELLS, UNFOLD)
        pairs[:, :, :, b] = rounded.transpose(1, 2, 0, 3) if numpy else rounded.permute(1, 2, 0, 3)
        flat = codes[:, :, b].reshape(n * looks, n_pairs * n_lags) @ steering[b].reshape(-1, CELLS * UNFOLD)
        mean = _rounded(flat * (scale * SHARP) / n_pairs, -TEN_BITS, TEN_BITS)
        together[:, :, :, b] = mean.reshape(n, looks, CELLS, UNFOLD)
    return pairs.reshape(*shape[:3], N_MAPS), together.reshape(n, looks, CELLS, N_MAPS)


def forward(codes: Array, geometry: Geometry, given: Mapping[str, Array]) -> Array:
    """Logits (n, 360) on a grid of 1/1024, of codes (n, looks, bands, pairs, lags), whole numbers, float32.

    given: `floats` of the weights, `steering` and `known` of the geometry, all beside the codes.
    """
    n, numpy = len(codes), isinstance(codes, np.ndarray)
    pairs, together = steered(codes, geometry, given["steering"])
    n_pairs = geometry.n_pairs
    known = given["known"] @ given["pair"][N_MAPS:] + given["pair.bias"]  # (P, CELLS, width)
    known = known.swapaxes(0, 1)
    each = _rounded((pairs @ given["pair"][:N_MAPS] + known) * given["pair.shift"], 0.0, BYTE)
    mean, most = _rounded(each.sum(2) / n_pairs, 0.0, BYTE), each.max(2) if numpy else each.amax(2)
    heard = _layer(together[:, 1:], "hear", given, 0.0, BYTE)
    heard = heard.max(1) if numpy else heard.amax(1)
    Z = _layer(_joined([mean, most, together[:, 0], heard]), "enter", given, 0.0, HALF)
    for k in range(count_blocks(given)):
        around = [_rounded(Z.sum(1) / CELLS, -HALF, HALF), Z.max(1) if numpy else Z.amax(1)]
        width = Z.shape[2]
        n_near = len(TAPS) * width
        beside = Z[:, neighbours(k)].reshape(n, CELLS, n_near)
        overall = _joined(around) @ given[f"near{k}"][n_near:] + given[f"near{k}.bias"]
        inner = beside @ given[f"near{k}"][:n_near] + overall[:, None]
        inner = _rounded(inner * given[f"near{k}.shift"], 0.0, BYTE)
        added = (inner @ given[f"mix{k}"] + given[f"mix{k}.bias"]) * given[f"mix{k}.shift"]
        Z = _rounded(Z + added, -HALF, HALF)
    logits = _layer(Z.clip(0.0, HALF), "leave", given, -LIMIT, LIMIT) / GRID
    return logits.reshape(n, CELLS * UNFOLD)


def neighbours(block: int) -> NDArray[np.intp]:
    """Which cells a block sees from each: (CELLS, taps)."""
    taps = np.array(TAPS) * DILATIONS[block % len(DILATIONS)]
    return np.asarray((np.arange(CELLS)[:, None] - taps) % CELLS)


def _layer(x: Array, name: str, given: Mapping[str, Array], low: float, high: float) -> Array:
    return _rounded((x @ given[name] + given[f"{name}.bias"]) * given[f"{name}.shift"], low, high)


def _rounded(values: Array, low: float, high: float) -> Array:
    """Whole numbers, halves to the even one; the values may be gone."""
    if isinstance(values, np.ndarray):
        np.rint(values, out=values)
        return np.clip(values, low, high, out=values)
    return values.round_().clamp_(low, high)


def _zeros(like: Array, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape, np.float32) if isinstance(like, np.ndarray) else like.new_zeros(shape)


def _joined(parts: list[Array]) -> Array:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=-1)
    import torch

    return torch.cat(parts, dim=-1)
