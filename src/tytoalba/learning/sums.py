"""Sums over rows as a head keeps them, labels in integers, and numpy arrays and torch tensors handled alike.

torch is imported only where it is asked for or pays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tytoalba.errors import HeadError

Array = Any
"""A numpy array or a torch tensor."""

SCALE = 127
"""The integer that stands for 1.0."""
ROUNDING = 1e-6
"""How far below zero a float head's sums may fall, relative to the largest, before it cries foul."""


class Statistics(NamedTuple):
    """All that a head knows of its data."""

    G: Array  # (D, D)
    Q: Array  # (D, C)
    y2: Array  # (C,), sum of squares of the labels of each output
    n: int  # rows


def quantize_labels(Y: Array) -> Array:
    """Labels in [0, 1] as int8 0..127, round(127 y), for an exact head.

    >>> quantize_labels(np.array([[0.0, 0.5, 1.0]])).tolist()
    [[0, 64, 127]]
    """
    Y = Y if is_tensor(Y) else np.asarray(Y)
    if not bool(((Y >= 0) & (Y <= 1)).all()):  # NaN fails it too
        raise HeadError("labels to quantise must lie in [0, 1]")
    return (Y * SCALE).round().to(import_torch().int8) if is_tensor(Y) else np.rint(Y * SCALE).astype(np.int8)


def gaussian_labels(azimuth: Array, sigma: float, n_directions: int) -> Array:
    """`quantize_labels(angles.encode(...))` of azimuths (n_frames, n_sources), NaN padded, where they are.

    Looked up by distance, so the labels have the same bits on every device and need no exponential.

    >>> gaussian_labels(np.array([[0.0, 180.0]]), 8.0, 4).tolist()
    [[127, 0, 127, 0]]
    """
    # the distance at which the label falls below k - 1/2 steps, for k = 127 ... 1
    edges = sigma * np.sqrt(np.log(SCALE / (np.arange(SCALE, 0, -1) - 0.5)))
    theta = np.arange(n_directions) * (360.0 / n_directions)
    if is_tensor(azimuth):
        torch = import_torch()
        edges, theta = (torch.tensor(values, device=azimuth.device) for values in (edges, theta))
    label: Array = None
    for source in azimuth.T:  # (F,)
        apart = abs(theta - source[:, None]) % 360.0
        if is_tensor(azimuth):
            apart = torch.minimum(apart, 360.0 - apart)
            code = (SCALE - torch.bucketize(apart, edges)).to(torch.int8).masked_fill_(apart.isnan(), 0)
            label = code if label is None else torch.maximum(label, code)
        else:
            apart = np.minimum(apart, 360.0 - apart)
            code = (SCALE - np.searchsorted(edges, apart)).astype(np.int8)
            code[np.isnan(apart)] = 0
            label = code if label is None else np.maximum(label, code)
    return label


def float_products(H: Array, Y: Array) -> list[Array]:
    """H'H, H'Y and the sums of Y^2, as float64."""
    h, y = as_float64(H), as_float64(Y)
    return [h.T @ h, h.T @ y, (y * y).sum(0)]


def added(total: list[Array], part: list[Array]) -> list[Array]:
    """The total, to which the part was added in place; an empty total becomes the part."""
    for old, new in zip(total, part, strict=False):  # the first part is the total
        old += new
    return total or part


def possible(sums: Statistics, before: Statistics, exact: bool) -> bool:
    """Whether rows can have these sums: no negative squares, and Q_jc^2 <= G_jj y2_c (Cauchy-Schwarz)."""
    slack = 0.0 if exact else ROUNDING
    d, y = as_float64(sums.G.diagonal()), as_float64(sums.y2)
    d_slack, y_slack = (slack * abs(as_float64(a)).max() for a in (before.G.diagonal(), before.y2))
    if sums.n < 0 or bool(d.min() < -d_slack) or bool(y.min() < -y_slack):
        return False
    if exact and bool(max(d.max(), y.max()) > SCALE**2 * sums.n):
        return False
    if sums.n == 0 and bool((abs(sums.G) > d_slack).any()):
        return False
    bound = (d.clip(0) + d_slack)[:, None] ** 0.5 * (y.clip(0) + y_slack) ** 0.5
    return bool((abs(as_float64(sums.Q)) <= bound * (1 + 1e-9)).all())


def blocks(n: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows`; one empty slice where there are no rows."""
    rows = max(1, rows)
    return (slice(start, start + rows) for start in range(0, max(n, 1), rows))


def import_torch() -> Any:
    """The module torch, imported when it is first needed."""
    import torch

    return torch


def is_tensor(array: Any) -> bool:
    """Whether it is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def bring(array: Array, device: str | None) -> Array:
    """As a numpy array (None) or a tensor on a device; shares memory where it can."""
    if device is None:
        return array.detach().cpu().numpy() if is_tensor(array) else array
    if not is_tensor(array):
        shareable = array.flags.writeable and min(array.strides, default=0) >= 0  # or torch complains
        array = import_torch().from_numpy(array if shareable else array.copy())
    return array.to(device)


def like(model: Array, array: Array) -> Array:
    """The array as the kind, and in the place, of the model."""
    return bring(array, str(model.device) if is_tensor(model) else None)


def copied(array: Array) -> Array:
    """A copy of the same kind, in the same place."""
    return array.clone() if is_tensor(array) else array.copy()


def as_float64(array: Array) -> Array:
    """The array as float64; itself if it is that already."""
    return array.double() if is_tensor(array) else array.astype(np.float64, copy=False)


def all_finite(array: Array) -> bool:
    """Whether it holds neither NaN nor infinity."""
    return bool(array.isfinite().all() if is_tensor(array) else np.isfinite(array).all())
