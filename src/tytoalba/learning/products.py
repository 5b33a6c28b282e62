"""Sums of products of int8 rows, in whole numbers: the same bits by every kernel, on every machine.

Of the symmetric H'H only the tiles on and above the diagonal are computed. Three ways lead to the same bits:

- int8 (`torch._int_mm`) on a CPU whose int8 products are right and the fastest, which is measured once;
- float32 elsewhere: 127^2 * 1024 < 2^24, so the sums of 1024 rows are whole numbers that float32 holds;
- int8 on a GPU, whose kernels want columns that lie in one piece, and sizes that are multiples of 8.

torch is imported only where it pays.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.sums import (
    SCALE,
    Array,
    added,
    blocks,
    bring,
    float_products,
    import_torch,
    is_tensor,
    like,
)

MAX_ROWS = 131072
"""int8 products summed in int32 at a time: 127^2 * 131072 < 2^31."""
FEW = 1024
"""Rows from which on a GPU's int8 kernel pays; it refuses some smaller sizes."""
WORTH_TORCH = 1e11
"""n D^2, of all sums in this process, from which on importing torch (a second or two) pays."""


class Way(NamedTuple):
    """How tiles are computed: all ways give the same bits."""

    product: Callable[[Array, Array], Array]
    """Whole numbers a b' of columns a (tile, n) and b (width, n)."""
    columns: Callable[[Array], Array]
    """Columns (width, n) of int8 rows (n, width), perhaps with zeros after them."""
    rows: int
    """Rows in a product."""
    tile: int
    """Columns of H in a tile, about; its width is the same, or at least `width`."""
    width: int = 0
    torch: bool = True
    """Of torch's tensors, else of numpy's arrays."""


def integer_products(
    H: Array, Y: Array, way: Way | None = None, total: list[Array] | None = None
) -> list[Array]:
    """H'H, H'Y and the sums of Y^2 of at most 131072 int8 rows, as int64; of H'H only the upper triangle.

    What lies below the diagonal of H'H is not to be used before `mirrored`.
    way: INT8, FLOAT32 or GPU; None takes the fastest.
    total: three such sums of the kind and in the place of H, to which the new ones are added in place.
    """
    n, D, C = len(H), H.shape[1], Y.shape[1]
    if total is None:
        total = [like(H, np.zeros(shape, np.int64)) for shape in ((D, D), (D, C), (C,))]
    if way is None and n < FEW and is_tensor(H) and H.device.type != "cpu":
        return added(total, [array.long() for array in float_products(H, Y)])  # exact: no sum reaches 2^53
    way = way or fastest(H)
    _Work.done += n * D**2
    place = (str(H.device) if is_tensor(H) else "cpu") if way.torch else None
    h, y, G, Q, y2 = (bring(array, place) for array in (H, Y, *total))
    _add_tiles(G, Q, way.columns(h), way.columns(y), way)
    for rows in blocks(n, INT8.rows):
        y2 += _squares(y[rows])
    return total


def mirrored(G: Array) -> Array:
    """G, whose lower triangle was made that of its upper one, in place."""
    tiles = list(blocks(len(G), FLOAT32.tile))
    for k, i in enumerate(tiles):
        for j in tiles[:k]:
            G[i, j] = G[j, i].T
        G[i, i] = _symmetric(G[i, i])
    return G


def _add_tiles(G: Array, Q: Array, h: Array, y: Array, way: Way) -> None:
    """H'H (tiles on and above the diagonal) and H'Y, added in place.

    h, y: features and labels as columns, (D, n) and (C, n); zeros after them do no harm.
    """
    D, C = Q.shape
    n_tiles = -(-len(h) // way.tile)
    height = -(-len(h) // (8 * n_tiles)) * 8  # tiles of one size: no sliver at the end, and multiples of 8
    width = max(height, way.width)
    for top in range(0, D, height):
        i = slice(top, top + height)
        for left in range(top, D, width):
            j = slice(left, left + width)
            G[i, j] += _tile(h[i], h[j], way)[: D - top, : D - left]
        Q[i] += _tile(h[i], y, way)[: D - top, :C]


def _tile(a: Array, b: Array, way: Way) -> Array:
    total: Array = None
    for rows in blocks(a.shape[1], way.rows):
        part = way.product(a[:, rows], b[:, rows])
        if total is None:
            total = part
        else:
            total += part
    return total


class _Work:
    """n D^2 of all sums so far, done without torch."""

    done = 0.0


def fastest(H: Array, n: int | None = None) -> Way:
    """The way for rows like these, of which there are n in all."""
    if is_tensor(H) and H.device.type != "cpu":
        return GPU
    big = _Work.done + (n or H.shape[0]) * H.shape[1] ** 2 > WORTH_TORCH
    there = sys.modules.get("torch") or (big and importlib.util.find_spec("torch"))
    return INT8 if there and _int8_pays() else FLOAT32


@cache
def _int8_pays() -> bool:
    """Whether int8 products are right here, and faster than those of float32.

    Without VNNI they may saturate, or be a plain loop (20 times slower).
    """
    torch, n = import_torch(), 256
    ends = np.where(np.arange(n) % 2, SCALE, -SCALE).astype(np.int8)
    a, b = np.full((n, n), SCALE, np.int8), np.tile(ends, (n, 1))
    b[: n // 2] = -SCALE
    whole = a.astype(np.int64) @ b.T.astype(np.int64)
    times: dict[str, float] = {}
    for way, name in ((INT8, "int8"), (FLOAT32, "float32")):
        x, y = (torch.from_numpy(array) for array in (a, b)) if way is INT8 else (a, b)
        try:
            right = np.array_equal(np.asarray(way.product(x, y)), whole)
        except RuntimeError:  # no such kernel in this build of torch
            return False
        if not right:
            return False
        times[name] = min(_seconds(way, x, y) for _ in range(5))
    return times["int8"] < times["float32"]


def _seconds(way: Way, a: Array, b: Array) -> float:
    start = time.perf_counter()
    way.product(a, b)
    return time.perf_counter() - start


def _symmetric(tile: Array) -> Array:
    """A square tile with its lower triangle made that of the upper one."""
    return tile.triu() + tile.triu(1).T if is_tensor(tile) else np.triu(tile) + np.triu(tile, 1).T


def _squares(y: Array) -> Array:
    if is_tensor(y):
        return y.long().square().sum(0)
    return np.square(y, dtype=np.int32).sum(axis=0, dtype=np.int64)


def _int8_product(a: Array, b: Array) -> Array:
    """In int32. `_int_mm` of one row returns, on a CPU, what memory happened to hold (torch 2.13)."""
    if len(a) == 1:
        return (a.double() @ b.double().T).int()
    return import_torch()._int_mm(a, b.T)


def _float32_product(a: NDArray[np.int8], b: NDArray[np.int8]) -> NDArray[np.int32]:
    return (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.int32)


def _numpy_columns(array: NDArray[np.int8]) -> NDArray[np.int8]:
    return array.T


def _cpu_columns(array: Array) -> Array:
    """Without a copy, unless its strides are odd, which `_int_mm` takes without a word and reads wrongly."""
    (n, width), (down, right) = array.shape, array.stride()
    regular = (right == 1 and down >= width) or (down == 1 and right >= n)
    fits = regular and n >= 8 and width >= 24 and array.dtype == import_torch().int8
    return array.T if fits else _padded_columns(array, max(n, 8))


def _gpu_columns(array: Array) -> Array:
    """As GPUs want it: columns contiguous, sizes that are multiples of 8, over 16."""
    (n, width), int8 = array.shape, import_torch().int8
    fits = (
        n > 0 and n % 8 == width % 8 == 0 and width > 16 and array.dtype == int8 and array.T.is_contiguous()
    )
    return array.T if fits else _padded_columns(array, max(8, -(-n // 8) * 8))


def _padded_columns(array: Array, length: int) -> Array:
    n, width = array.shape
    padded = array.new_zeros((max(24, -(-width // 8) * 8), length), dtype=import_torch().int8)
    padded[:width, :n] = array.T
    return padded


INT8 = Way(_int8_product, _cpu_columns, rows=4096, tile=512)
FLOAT32 = Way(_float32_product, _numpy_columns, rows=1024, tile=512, torch=False)
GPU = Way(_int8_product, _gpu_columns, rows=MAX_ROWS, tile=2048, width=1 << 30)
