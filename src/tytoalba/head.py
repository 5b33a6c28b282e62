"""The analytic head: ridge regression from features H to labels Y, kept as sums to add and take away.

    G = sum H'H,   Q = sum H'Y,   W = (G + eta I)^-1 Q

W is the joint ridge solution of everything learned so far, whatever the order and the batches, and needs no
earlier row. Two back ends stand behind one interface:

- float64 (`exact=False`): float32 or float64 features of any range, for the paper's ReLU features.
- integers (`exact=True`): int8 features, `round(127 h)`, and labels 0..127, `round(127 y)`. G and Q are int64
  and the same to the bit whatever the order, batch, machine or device.

The sums are never changed in place: an update computes the new ones, checks them and swaps them in, so that
an error or an interruption leaves the head as it was, and a snapshot from `memory()` never changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tytoalba.errors import TytoError

Array = Any
"""A numpy array or a torch tensor; torch is imported only where it is asked for or pays."""

SCALE = 127
MAX_ROWS = 131072
"""int8 products summed in int32 at a time: 127^2 * 131072 < 2^31."""
FLOAT32_ROWS = 1024
"""int8 products summed in float32 at a time, exactly: 127^2 * 1024 < 2^24."""
MAX_TOTAL = (2**63 - 1) // SCALE**2
"""Rows that an integer head can hold before int64 could overflow."""
FLOAT_BLOCK, INT8_BLOCK = 2**25, 2**29
"""Features taken at a time, so that memory stays bounded: 256 MiB of float64, 512 MiB of int8."""
ROUNDING = 1e-6
"""How far below zero a float head's sums may fall, relative to the largest, before it cries foul."""

FORMAT, VERSION = "tytoalba-head", 1
DTYPES = {"float": ("float32", "float64"), "exact H": ("int8",), "exact Y": ("int8", "uint8")}
HEADER = {"n_features": int, "n_outputs": int, "ridge": float, "exact": bool}


class HeadError(TytoError):
    """Rows, files or requests that a head refuses; the head is as it was before."""


class Statistics(NamedTuple):
    """All that a head knows of its data."""

    G: Array  # (D, D)
    Q: Array  # (D, C)
    y2: Array  # (C,), sum of squares of the labels of each output
    n: int  # rows


class AnalyticHead:
    """Ridge regression by accumulated sums; the module says what `exact` means.

    device: None keeps the sums in numpy, a torch device ("cuda", "cpu") keeps them there. Rows may come as
    numpy arrays or as tensors from anywhere.

    >>> head = AnalyticHead(n_features=2, n_outputs=1, ridge=1.0)
    >>> head.learn(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0], [1.0]])).weights().round(6).tolist()
    [[0.5], [0.4]]
    >>> head.forget(np.array([[0.0, 2.0]]), np.array([[1.0]])).weights().round(6).tolist()
    [[0.5], [0.0]]
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int = 360,
        ridge: float = 0.1,
        exact: bool = False,
        device: str | None = None,
    ) -> None:
        if n_features < 1 or n_outputs < 1:
            raise HeadError(f"n_features and n_outputs must be at least 1, got {n_features} and {n_outputs}")
        self.n_features, self.n_outputs = int(n_features), int(n_outputs)
        self.ridge, self.exact, self.device = _checked_ridge(ridge), bool(exact), device
        self._solved: tuple[float, Array] | None = None
        self._sums = self._empty()

    @property
    def n(self) -> int:
        """Number of rows learned and not forgotten."""
        return self._sums.n

    def learn(self, H: Array, Y: Array) -> Self:
        """Add rows: features H (n, n_features) and their labels Y (n, n_outputs)."""
        return self._become(self._plus(self._sum_up(H, Y)))

    def forget(self, H: Array, Y: Array) -> Self:
        """Take away rows that were learned, in any batches: exact in integers, to rounding in floats.

        Sums that no rows can have are refused (negative squares, labels without features); rows that were
        never learned can still pass where what would remain looks possible.
        """
        left = self._plus(self._sum_up(H, Y), sign=-1)
        if not _possible(left, self._sums, self.exact):
            raise HeadError("not all of these rows were learned here: what would be left belongs to no data")
        return self._become(left if left.n else self._empty())

    def merge(self, other: AnalyticHead) -> Self:
        """Add all that another head has learned; the other stays as it is, and so does this one's ridge."""
        mine, theirs = ((h.n_features, h.n_outputs, h.exact) for h in (self, other))
        if mine != theirs:
            raise HeadError(f"these heads differ in (n_features, n_outputs, exact): {mine} and {theirs}")
        G, Q, y2 = (_copy(_bring(array, self.device)) for array in other._sums[:3])
        return self._become(self._plus(Statistics(G, Q, y2, other.n)))

    def rearranged(self, source: Sequence[int]) -> AnalyticHead:
        """A head with other outputs: its output j is this one's `source[j]`, or a fresh one where that is -1.

        >>> AnalyticHead(n_features=2, n_outputs=1).rearranged([-1, 0, -1]).n_outputs
        3
        """
        if any(not -1 <= j < self.n_outputs for j in source):
            raise HeadError(f"outputs to take must be -1 or 0..{self.n_outputs - 1}, got {list(source)}")
        head = AnalyticHead(self.n_features, len(source), self.ridge, self.exact, self.device)
        Q, y2 = head._sums.Q, head._sums.y2
        to = [j for j, old in enumerate(source) if old >= 0]
        of = [old for old in source if old >= 0]
        Q[:, to], y2[to] = self._sums.Q[:, of], self._sums.y2[of]
        return head._become(Statistics(self._sums.G, Q, y2, self.n))

    def weights(self, ridge: float | None = None) -> Array:
        """W (n_features, n_outputs), float64: y = h W for features and labels as real numbers (127 is 1.0).

        Solved by Cholesky when asked for, and kept until the sums or the ridge change.
        """
        return _copy(self._solve(ridge))

    def scores(self, H: Array, ridge: float | None = None) -> Array:
        """Predicted labels (n, n_outputs) as real numbers, float64, of the kind and in the place of H."""
        H = self._rows(H, "H", self.n_features)
        W, unit = self._solve(ridge), SCALE if self.exact else 1
        blocks = _blocks(len(H), FLOAT_BLOCK // self.n_features)
        parts = [_float64(_bring(H[rows], self.device)) @ W / unit for rows in blocks]
        return _like(H, np.concatenate(parts) if self.device is None else _torch().cat(parts))

    def memory(self) -> dict[str, NDArray[Any]]:
        """Everything kept of the data, read-only: G, Q, y2 and n. (W follows from these and the ridge.)"""
        arrays: dict[str, NDArray[Any]] = {"n": np.array(self.n, dtype=np.int64)}
        arrays |= {name: _bring(getattr(self._sums, name), None).view() for name in ("G", "Q", "y2")}
        for array in arrays.values():
            array.flags.writeable = False
        return arrays

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums as safetensors, whole or not at all, readable by the owner only: they are secret."""
        header = {"format": FORMAT, "version": VERSION} | {name: getattr(self, name) for name in HEADER}
        _write(Path(path), header, self.memory())

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | None = None) -> Self:
        """Read a saved head; a file that is damaged, foreign, of another version or impossible is refused.

        The digest inside finds accidents; it does not prove who wrote the file. Sign what is exchanged.
        """
        header, arrays = _read(Path(path))
        head = cls(**{name: header[name] for name in HEADER}, device=device)
        sums = Statistics(arrays["G"], arrays["Q"], arrays["y2"], int(arrays["n"]))
        if sums.n < 0 or not all(map(_finite, sums[:3])) or (head.exact and not _possible(sums, sums, True)):
            raise HeadError(f"{path}: the sums in this file belong to no data; it was altered")
        return head._become(Statistics._make([*(_bring(array, device) for array in sums[:3]), sums.n]))

    def _become(self, sums: Statistics) -> Self:
        self._sums, self._solved = sums, None
        return self

    def _empty(self) -> Statistics:
        D, C = self.n_features, self.n_outputs
        shapes, dtype = ((D, D), (D, C), (C,)), "int64" if self.exact else "float64"
        if self.device is None:
            return Statistics._make([*(np.zeros(shape, dtype) for shape in shapes), 0])
        torch = _torch()
        kind = {"dtype": getattr(torch, dtype), "device": self.device}
        return Statistics._make([*(torch.zeros(shape, **kind) for shape in shapes), 0])

    def _plus(self, more: Statistics, sign: int = 1) -> Statistics:
        """These sums and (sign = -1: without) some others, whose arrays it takes over for the result."""
        n = self.n + sign * more.n
        if self.exact and n > MAX_TOTAL:
            raise HeadError(f"{n} rows could overflow int64; an integer head holds at most {MAX_TOTAL}")
        with np.errstate(over="ignore", invalid="ignore"):
            for mine, theirs in zip(self._sums[:3], more[:3], strict=True):
                if sign < 0:
                    theirs *= -1
                theirs += mine
        if not all(map(_finite, (more.G.diagonal(), more.Q, more.y2))):
            raise HeadError("the sums overflow float64; are the features scaled?")
        return more._replace(n=n)

    def _sum_up(self, H: Array, Y: Array) -> Statistics:
        """The sums of some rows, in fresh arrays where the head lives."""
        H, Y = self._rows(H, "H", self.n_features), self._rows(Y, "Y", self.n_outputs)
        if len(H) != len(Y):
            raise HeadError(f"each row of features needs its label: H has {len(H)} rows, Y has {len(Y)}")
        products = integer_products if self.exact else _float_products
        block = min(MAX_ROWS, INT8_BLOCK // self.n_features) if self.exact else FLOAT_BLOCK // self.n_features
        total: list[Array] = []
        for rows in _blocks(len(H), block):
            with np.errstate(over="ignore", invalid="ignore"):
                total = _added(total, products(*(_bring(array[rows], self.device) for array in (H, Y))))
        return Statistics._make([*total, len(H)])

    def _rows(self, array: Array, name: str, width: int) -> Array:
        """Refuse what is not (n, width) of the right type and range; nothing is copied or moved."""
        array = array.detach() if _is_tensor(array) else np.asarray(array)
        allowed = DTYPES["exact " + name if self.exact else "float"]
        if str(array.dtype).removeprefix("torch.") not in allowed:
            remedy = "quantise it first" if self.exact else "integers are for an exact head"
            raise HeadError(f"{name} must be {' or '.join(allowed)}, got {array.dtype}; {remedy}")
        if array.ndim != 2 or array.shape[1] != width:
            raise HeadError(f"{name} must be (n_frames, {width}), got shape {tuple(array.shape)}")
        if not self.exact and not _finite(array):
            raise HeadError(f"{name} holds NaN or infinity; did a silent or damaged frame slip through?")
        if self.exact and len(array):
            low, high = int(array.min()), int(array.max())
            if low < (-SCALE if name == "H" else 0) or high > SCALE:
                raise HeadError(f"{name} must be round(127 x) with x bounded by 1, got {low}..{high}")
        return array

    def _solve(self, ridge: float | None) -> Array:
        ridge = self.ridge if ridge is None else _checked_ridge(ridge)
        if self._solved is None or self._solved[0] != ridge:
            unit = SCALE**2 if self.exact else 1
            A, B = _float64(self._sums.G) / unit, _float64(self._sums.Q) / unit
            diagonal = list(range(self.n_features))
            A[diagonal, diagonal] += ridge
            W = _cholesky_solve(A, B)
            if W is None or not _finite(W):
                raise HeadError(
                    f"G + ridge I is not positive definite (ridge {ridge:g}, {self.n} rows); raise the "
                    "ridge, and check that nothing was forgotten that had not been learned"
                )
            self._solved = ridge, W
        return self._solved[1]


def quantize_labels(Y: Array) -> Array:
    """Labels in [0, 1] as int8 0..127, round(127 y), for an exact head.

    >>> quantize_labels(np.array([[0.0, 0.5, 1.0]])).tolist()
    [[0, 64, 127]]
    """
    Y = Y if _is_tensor(Y) else np.asarray(Y)
    if not bool(((Y >= 0) & (Y <= 1)).all()):  # NaN fails it too
        raise HeadError("labels to quantise must lie in [0, 1]")
    return (Y * SCALE).round().to(_torch().int8) if _is_tensor(Y) else np.rint(Y * SCALE).astype(np.int8)


def integer_products(H: Array, Y: Array, kernel: bool | None = None) -> list[Array]:
    """H'H, H'Y and the sums of Y^2 of at most 131072 int8 rows, as int64.

    kernel: whether to use `torch._int_mm`, or float32 products that hold the integers exactly; None decides.
    """
    if kernel if kernel is not None else _kernel_pays(H):
        torch, (D, C) = _torch(), (H.shape[1], Y.shape[1])
        h, y = (_padded_transpose(_bring(array, str(getattr(H, "device", "cpu")))) for array in (H, Y))
        G, Q = torch._int_mm(h, h.T)[:D, :D].long(), torch._int_mm(h, y.T)[:D, :C].long()
        return [_like(H, array) for array in (G, Q, y.long().square().sum(1)[:C])]
    total: list[Array] = []
    for rows in _blocks(len(H), FLOAT32_ROWS):
        h, y = (_bring(array[rows], None).astype(np.float32) for array in (H, Y))
        total = _added(total, [part.astype(np.int32) for part in (h.T @ h, h.T @ y, (y * y).sum(axis=0))])
    return [_like(H, array.astype(np.int64)) for array in total]


def _float_products(H: Array, Y: Array) -> list[Array]:
    h, y = _float64(H), _float64(Y)
    return [h.T @ h, h.T @ y, (y * y).sum(0)]


def _added(total: list[Array], part: list[Array]) -> list[Array]:
    for old, new in zip(total, part, strict=False):  # the first part is the total
        old += new
    return total or part


def _padded_transpose(array: Array) -> Array:
    """Columns first, contiguous, as the int8 kernels want it; sizes they accept: multiples of 8, over 16."""
    n, width = array.shape
    padded = array.new_zeros((max(24, -(-width // 8) * 8), max(8, -(-n // 8) * 8)), dtype=_torch().int8)
    padded[:width, :n] = array.T
    return padded


def _kernel_pays(H: Array) -> bool:
    if _is_tensor(H) and H.device.type != "cpu":
        return True
    big = H.shape[0] * H.shape[1] ** 2 > 1e9  # else not worth importing torch
    there = sys.modules.get("torch") or (big and importlib.util.find_spec("torch"))
    return bool(there) and _cpu_has_kernel()


@cache
def _cpu_has_kernel() -> bool:
    """Without VNNI, `_int_mm` is a plain loop (20 times slower than float32) or may saturate."""
    torch = _torch()
    if not getattr(torch.cpu, "_is_vnni_supported", bool)():
        return False
    worst = torch.full((24, 64), SCALE, dtype=torch.int8)
    return bool((torch._int_mm(worst, -worst.T) == -64 * SCALE**2).all())


def _possible(sums: Statistics, before: Statistics, exact: bool) -> bool:
    """Whether rows can have these sums: no negative squares, and Q_jc^2 <= G_jj y2_c (Cauchy-Schwarz)."""
    slack = 0.0 if exact else ROUNDING
    d, y = _float64(sums.G.diagonal()), _float64(sums.y2)
    d_slack, y_slack = (slack * abs(_float64(a)).max() for a in (before.G.diagonal(), before.y2))
    if sums.n < 0 or bool(d.min() < -d_slack) or bool(y.min() < -y_slack):
        return False
    if exact and bool(max(d.max(), y.max()) > SCALE**2 * sums.n):
        return False
    if sums.n == 0 and bool((abs(sums.G) > d_slack).any()):
        return False
    bound = (d.clip(0) + d_slack)[:, None] ** 0.5 * (y.clip(0) + y_slack) ** 0.5
    return bool((abs(_float64(sums.Q)) <= bound * (1 + 1e-9)).all())


def _cholesky_solve(A: Array, B: Array) -> Array | None:
    """A^-1 B for a symmetric A, which is destroyed; None where A is not positive definite."""
    if isinstance(A, np.ndarray):
        try:  # A.T has the column order of LAPACK: no copy
            return cho_solve(cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False), B)
        except LinAlgError:
            return None
    torch = _torch()
    L, info = torch.linalg.cholesky_ex(A)
    return None if int(info) else torch.cholesky_solve(B, L)


def _checked_ridge(ridge: float) -> float:
    if not 0 <= ridge < np.inf:
        raise HeadError(f"ridge must be a number from 0 up, got {ridge}")
    return float(ridge)


def _blocks(n: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows`; one empty slice where there are no rows."""
    rows = max(1, rows)
    return (slice(start, start + rows) for start in range(0, max(n, 1), rows))


def _torch() -> Any:
    import torch

    return torch


def _is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _bring(array: Array, device: str | None) -> Array:
    """As a numpy array (None) or a tensor on a device; shares memory where it can."""
    if device is None:
        return array.detach().cpu().numpy() if _is_tensor(array) else array
    if not _is_tensor(array):
        shareable = array.flags.writeable and min(array.strides, default=0) >= 0  # or torch complains
        array = _torch().from_numpy(array if shareable else array.copy())
    return array.to(device)


def _like(model: Array, array: Array) -> Array:
    return _bring(array, str(model.device) if _is_tensor(model) else None)


def _copy(array: Array) -> Array:
    return array.clone() if _is_tensor(array) else array.copy()


def _float64(array: Array) -> Array:
    return array.double() if _is_tensor(array) else array.astype(np.float64, copy=False)


def _finite(array: Array) -> bool:
    return bool(array.isfinite().all() if _is_tensor(array) else np.isfinite(array).all())


def _digest(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _write(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    from safetensors.numpy import save_file

    metadata = {"tytoalba": json.dumps(header | {"sha256": _digest(header, arrays)})}
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    os.close(handle)
    try:
        save_file(arrays, part, metadata)
        with Path(part).open("rb+") as file:
            os.fsync(file.fileno())
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("tytoalba", "null"))
            expected = _layout(path, header)
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118, not a dict
            found = {name: (s.get_dtype(), tuple(s.get_shape())) for name, s in slices.items()}
            if found != expected:
                raise HeadError(f"{path}: holds {found}, its header promises {expected}; it was altered")
            arrays = {name: file.get_tensor(name) for name in expected}
    except (OSError, SafetensorError, json.JSONDecodeError, RecursionError) as error:
        raise HeadError(
            f"{path}: cannot be read as a saved head ({error}); cut short or not a head?"
        ) from error
    digest = header.pop("sha256", None)
    if digest != _digest(header, arrays):
        raise HeadError(f"{path}: the digest does not fit its contents; the file is damaged or was altered")
    return header, arrays


def _layout(path: Path, header: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Types and shapes that a header promises, once it is found to be a header that this version reads."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise HeadError(f"{path}: is not a saved head; a model or another program's file?")
    if header.get("version") != VERSION:
        raise HeadError(f"{path}: has version {header.get('version')}, this tytoalba reads {VERSION}")
    for name, kind in HEADER.items():
        if type(header.get(name)) is not kind:
            raise HeadError(
                f"{path}: {name} must be {kind.__name__}, got {header.get(name)!r}; it was altered"
            )
    D, C, dtype = header["n_features"], header["n_outputs"], "I64" if header["exact"] else "F64"
    return {"G": (dtype, (D, D)), "Q": (dtype, (D, C)), "y2": (dtype, (C,)), "n": ("I64", ())}
