"""Sums as they are kept and sent: the upper triangle of G, row after row, in four bytes if these suffice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import FileError
from tytoalba.storage.tensors import Arrays


def packed(sums: Arrays) -> Arrays:
    """G, Q, y2 and n as files have them."""
    G = sums["G"]
    whole = {"G": np.concatenate([G[i, i:] for i in range(len(G))]), "Q": sums["Q"], "y2": sums["y2"]}
    return {name: narrow(values) for name, values in whole.items()} | {"n": sums["n"]}


def unpacked(kept: Arrays, n: int) -> Arrays:
    """What `packed` was given; anything that it would have packed otherwise is refused."""
    if any(kept[name].dtype != _width(kept[name]) for name in ("G", "Q", "y2")):
        raise FileError("its sums are written in another way: they were altered")
    wide = {name: kept[name].astype(np.int64) for name in ("G", "Q", "y2")}
    return {**wide, "G": square(wide["G"], n), "n": kept["n"]}


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in four bytes each, if these suffice, else in eight."""
    return values.astype(_width(values))


def square(triangle: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The symmetric matrix (n, n) of an upper triangle."""
    if len(triangle) != n * (n + 1) // 2:
        raise FileError("its sums are of another size")
    G = np.empty((n, n), np.int64)
    start = 0
    for i in range(n):
        G[i, i:] = G[i:, i] = triangle[start : start + n - i]
        start += n - i
    return G


def _width(values: NDArray[Any]) -> type[np.signedinteger[Any]]:
    fits = values.dtype.kind == "i" and values.min(initial=0) >= -(2**31) and values.max(initial=0) < 2**31
    return np.int32 if fits else np.int64
