"""The network of a prior, computed exactly: the same bits in numpy and torch, in any batch, on any device.

Inputs, weights and activations are whole multiples of powers of two and every sum is one of such numbers
below 2^53, which float64 holds exactly in whatever order they are added.

    GCC of the whole frame, of each window and pair -> steered maps -> cells of 3 degrees around the array
    windows of the frame: `hear`, the maximum over windows -> beside the cells of the whole frame
    -> `enter` -> blocks: neighbours along the circle, mean and maximum over it -> `leave` -> 360 logits

Cells come first in memory, (CELLS, n_frames, width), with the ends of the circle repeated beyond both: cells
some steps away are a slice then, and nothing is copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A numpy array or a torch tensor; torch is imported only where a tensor came in."""
Weights = dict[str, Array]
"""The arrays of `layout` by name, float64; `forward` takes those of `steering` beside them."""

CELLS, UNFOLD = 120, 3
DILATIONS = (1, 2, 4, 8)
"""Cells between the neighbours that a block takes in: of the first block, the second and so on, in turn."""
TAPS = (-2, -1, 0, 1, 2)
EDGE = max(TAPS) * max(DILATIONS)
STEERED_GAIN = 8.0
"""Maps of real rooms are around 0.1: brought to the scale of the weights."""
INPUT_GRID, MATRIX_GRID, GRID = 2.0**12, 2.0**12, 2.0**10
"""Steps of features, of the steering matrix and of everything between layers: 1/grid."""
MAP_UNIT = STEERED_GAIN / (INPUT_GRID * MATRIX_GRID)
"""PriorNetwork maps are whole multiples of it."""
LARGEST = 2.0**8
"""Activations are cut there; those of trained networks stay below 2^4."""
HALF = 1.5 * 2.0**52 / GRID
"""Added and taken away again it rounds to the grid, halves to the even step."""


def layout(n_maps: int, width: int, window_width: int, n_blocks: int) -> dict[str, tuple[int, ...]]:
    """Names and sizes of the weights. n_maps: bands x pairs. window_width: 0 without windows."""
    shapes: dict[str, tuple[int, ...]] = {}
    if window_width:
        shapes |= {"hear": (n_maps * UNFOLD, window_width), "heard": (window_width,)}
    shapes |= {"enter": (n_maps * UNFOLD + window_width, width), "place": (CELLS, width)}
    for k in range(n_blocks):
        shapes |= {
            f"near{k}": (len(TAPS) * width, width),
            f"around{k}": (2 * width, width),
            f"offset{k}": (width,),
            f"mix{k}": (width, width),
            f"bias{k}": (width,),
        }
    return shapes | {"leave": (width, UNFOLD), "level": (CELLS, UNFOLD)}


def count_blocks(weights: Mapping[str, Any]) -> int:
    """Of how many blocks these weights are, which are numbered."""
    return len({found[0] for name in weights if (found := re.search(r"\d+$", name))})


def steering(matrices: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Steering matrices (n_maps, n_lags, 360) as `forward` takes them: `steer` and `steer_windows`.

    These are (n_maps, 360, n_lags), first the first degree of every cell, then the second. So what they give,
    (n_maps, UNFOLD, CELLS, n_frames), has all that is known of a cell in a column, and the next product
    takes it as it lies.
    """
    names = {"matrix": "steer", "window_matrix": "steer_windows"}
    return {
        names[name]: np.ascontiguousarray(
            matrix.reshape(*matrix.shape[:2], CELLS, UNFOLD).transpose(0, 3, 2, 1)
        ).reshape(len(matrix), CELLS * UNFOLD, -1)
        for name, matrix in matrices.items()
    }


def is_exact(weights: Mapping[str, NDArray[np.int16]], steps: Mapping[str, float]) -> bool:
    """Whether every sum with these weights, each in its step, stays below 2^53 of its finest unit."""
    sums: list[tuple[str, ...]] = [("hear", "heard"), ("enter", "place"), ("leave", "level")]
    for k in range(count_blocks(weights)):
        sums += [(f"near{k}", f"around{k}", f"offset{k}"), (f"mix{k}", f"bias{k}")]
    for names in sums:
        largest, finest = LARGEST, 1 / GRID  # what was there before, and the unit of what is only added
        for name in (name for name in names if name in weights):
            size = np.abs(weights[name].astype(np.float64)) * steps[name]
            if name == names[-1]:
                largest += float(size.max(initial=0.0))
            else:
                largest += float(size.sum(axis=0).max(initial=0.0)) * LARGEST
                unit = MAP_UNIT if name in ("hear", "enter") else 1 / GRID
                finest = min(finest, steps[name] * unit)
        if not largest < 2.0**53 * finest:
            return False
    return True


def forward(X: Array, w: Weights) -> Array:
    """Logits (n_frames, 360) on the grid, float32, of GCC-PHAT X (n_frames, n_features)."""
    numpy, n = isinstance(X, np.ndarray), len(X)
    n_maps, _, n_lags = w["steer"].shape
    parts = X.reshape(n, -1, n_maps, n_lags)
    entering = [_cells(parts[:, 0], w["steer"])]
    if "hear" in w:
        said = _cells(parts[:, 1:].reshape(-1, n_maps, n_lags), w["steer_windows"]) @ w["hear"]
        said = said.reshape(CELLS, n, -1, w["hear"].shape[1])
        most = said.max(2) if numpy else said.amax(2)
        entering.append(_settled(most + w["heard"], 0.0))
    width = w["enter"].shape[1]
    circle = _empty(X, (CELLS + 2 * EDGE, n, width))
    Z = circle[EDGE : EDGE + CELLS]
    Z[:] = w["place"][:, None]
    start = 0
    for part in entering:
        rows = w["enter"][start : start + part.shape[-1]]
        _add_product(Z, part, rows)
        start += len(rows)
    _settle(Z, 0.0)
    inner = _empty(X, (CELLS, n, width))
    for k in range(count_blocks(w)):
        dilation = DILATIONS[k % len(DILATIONS)]
        reach = max(TAPS) * dilation
        circle[EDGE - reach : EDGE] = Z[-reach:]
        circle[EDGE + CELLS : EDGE + CELLS + reach] = Z[:reach]
        mean, most = _on_grid(Z.sum(0) / CELLS), Z.max(0) if numpy else Z.amax(0)
        around = w[f"around{k}"]
        inner[:] = mean @ around[:width] + most @ around[width:] + w[f"offset{k}"]
        for tap, weights in zip(TAPS, w[f"near{k}"].reshape(len(TAPS), width, width), strict=True):
            first = EDGE - tap * dilation
            _add_product(inner, circle[first : first + CELLS], weights)
        _add_product(Z, _settled(inner, 0.0), w[f"mix{k}"])
        Z += w[f"bias{k}"]
        _settle(Z, -LARGEST)
    logits = _on_grid(Z.clip(0.0, LARGEST) @ w["leave"] + w["level"][:, None])
    by_frame = logits.swapaxes(0, 1).reshape(n, CELLS * UNFOLD)
    return by_frame.astype(np.float32) if numpy else by_frame.float()


def shifts(block: int) -> list[int]:
    """By how many cells the neighbours of a block are rolled."""
    return [DILATIONS[block % len(DILATIONS)] * tap for tap in TAPS]


def _cells(x: Array, steer: Array) -> Array:
    """Evidence of pairs for cells, (CELLS x n_frames, n_maps x UNFOLD), of x (n_frames, n_maps, n_lags).

    Not rounded: 12 bits of the features and 15 of the steering are few enough to go on exactly.
    """
    x = x.astype(np.float64) if isinstance(x, np.ndarray) else x.double()
    x = (x * INPUT_GRID).round() * (STEERED_GAIN / INPUT_GRID)
    by_map = x.transpose(1, 2, 0) if isinstance(x, np.ndarray) else x.permute(1, 2, 0)
    return (steer @ by_map).reshape(len(steer) * UNFOLD, -1).T


def _add_product(total: Array, Z: Array, weights: Array) -> None:
    """total += Z @ weights in place; total (CELLS, n_frames, width), Z the same or flat, in any order."""
    flat = total.reshape(-1, total.shape[-1])  # contiguous: no copy
    rows = Z.reshape(-1, Z.shape[-1])
    if not isinstance(total, np.ndarray):
        flat.addmm_(rows, weights)
        return
    from scipy.linalg.blas import dgemm

    # BLAS counts columns first: the transposes are what lies there, unless rows were transposed before
    turned = not rows.flags.c_contiguous
    dgemm(1.0, weights.T, rows if turned else rows.T, 1.0, flat.T, trans_b=turned, overwrite_c=True)


def _settle(values: Array, low: float) -> None:
    """Round to the grid and cut, in place."""
    if isinstance(values, np.ndarray):
        values += HALF
        values -= HALF
        np.clip(values, low, LARGEST, out=values)
    elif values.is_cuda:
        values.copy_(_settled(values, low))
    else:
        values.add_(HALF).sub_(HALF).clamp_(low, LARGEST)


def _settled(values: Array, low: float) -> Array:
    """Rounded to the grid and cut; the values may be gone."""
    if isinstance(values, np.ndarray) or not values.is_cuda:
        _settle(values, low)
        return values
    import torch

    # one pass over the memory of a GPU instead of three; exact, as the steps are fewer than 2^24
    return torch.fake_quantize_per_tensor_affine(values, 1 / GRID, 0, int(low * GRID), int(LARGEST * GRID))


def _on_grid(values: Array) -> Array:
    return (values * GRID).round() / GRID


def _empty(like: Array, shape: tuple[int, ...]) -> Array:
    if isinstance(like, np.ndarray):
        return np.empty(shape)
    import torch

    return torch.empty(shape, device=like.device, dtype=torch.float64)
