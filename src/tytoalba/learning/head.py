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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import HeadError
from tytoalba.learning.products import MAX_ROWS, integer_products, mirrored
from tytoalba.learning.solution import Rows, Solved, solve
from tytoalba.learning.sums import (
    SCALE,
    Array,
    Statistics,
    added,
    all_finite,
    as_float64,
    blocks,
    bring,
    copied,
    float_products,
    import_torch,
    is_tensor,
    like,
    possible,
)

MAX_TOTAL = (2**63 - 1) // SCALE**2
"""Rows that a head can hold before int64 could overflow."""
FLOAT_BLOCK, INT8_BLOCK = 2**25, 2**29
"""Features taken at a time, so that memory stays bounded: 256 MiB of float64, 512 MiB of int8."""

DTYPES = {"float": ("float32", "float64"), "exact H": ("int8",), "exact Y": ("int8", "uint8")}


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
        self._solved: Solved | None = None
        self._sums = self._empty()

    @property
    def n(self) -> int:
        """Number of rows learned and not forgotten."""
        return self._sums.n

    def learn(self, H: Array, Y: Array, times: int | np.integer[Any] = 1) -> Self:
        """Add rows: features H (n, n_features) and their labels Y (n, n_outputs).

        times: how often every row counts, from 1 up; the sums are those of rows repeated as often.
        """
        return self.learn_parts([(H, Y)], times)

    def learn_parts(self, parts: Iterable[tuple[Array, Array]], times: int | np.integer[Any] = 1) -> Self:
        """Add rows that come as parts (H, Y), of which one is in memory at a time: all of them or none."""
        few: list[tuple[Array, Array]] = []
        more = self._sum_up(self._kept(parts, few), times)
        return self._become(self._plus(more), self._changed(few, times) if few else None)

    def forget(self, H: Array, Y: Array, times: int | np.integer[Any] = 1) -> Self:
        """Take away rows that were learned, in any batches: exact in integers, to rounding in floats.

        times: how often each was learned, if all that is to go.

        Sums that no rows can have are refused (negative squares, labels without features); rows that were
        never learned can still pass where what would remain looks possible.
        """
        left = self._plus(self._sum_up([(H, Y)], times), sign=-1)
        if not possible(left, self._sums, self.exact):
            raise HeadError("not all of these rows were learned here: what would be left belongs to no data")
        return self._become(left if left.n else self._empty(), self._changed([(H, Y)], -int(times)))

    def merge(self, other: AnalyticHead) -> Self:
        """Add all that another head has learned; the other stays as it is, and so does this one's ridge."""
        return self._become(self._plus(self._theirs(other)))

    def separate(self, other: AnalyticHead) -> Self:
        """Take away all that another head has learned, which was merged before; the other stays as it is."""
        left = self._plus(self._theirs(other), sign=-1)
        if not possible(left, self._sums, self.exact):
            raise HeadError("not all of that was learned here: what would be left belongs to no data")
        return self._become(left if left.n else self._empty())

    def check(self) -> Self:
        """Refuse sums that no rows can have; a file may say anything."""
        G = self._sums.G
        length = as_float64(G.diagonal()).clip(0) ** 0.5 * (1 + 1e-6)
        bounds = (a * length for a in length)  # |G_ij| <= |h_i| |h_j|, row by row to save memory
        fit = all(bool((abs(as_float64(row)) <= most).all()) for row, most in zip(G, bounds, strict=True))
        if not fit or not possible(self._sums, self._sums, self.exact):
            raise HeadError("the sums belong to no data; they were altered")
        return self

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

    def weights(self, ridge: float | None = None, beside: AnalyticHead | None = None) -> Array:
        """W (n_features, n_outputs), a fresh float64 array where the head lives, from the sums alone.

        ridge: another than the head's. beside: a head whose sums count as well, but are not taken over.
        """
        return copied(self._solve(ridge, beside, anew=True))

    def scores(self, H: Array, ridge: float | None = None, beside: AnalyticHead | None = None) -> Array:
        """Predicted labels (n, n_outputs) as real numbers, float64, of the kind and in the place of H.

        After few rows more or fewer, they come from the last solution, brought up to date: apart from those
        of `weights` by rounding (`learning.solution`). ridge, beside: as for `weights`.
        """
        H = self._rows(H, "H", self.n_features)
        W, unit = self._solve(ridge, beside), SCALE if self.exact else 1
        slices = blocks(len(H), FLOAT_BLOCK // self.n_features)
        parts = [as_float64(bring(H[rows], self.device)) @ W / unit for rows in slices]
        return like(H, np.concatenate(parts) if self.device is None else import_torch().cat(parts))

    def statistics(self, beside: AnalyticHead | None = None) -> Statistics:
        """G, Q, y2 and n as real numbers (127 is 1.0): fresh float64 arrays, where the head lives.

        beside: a head whose sums are added.
        """
        n, real = self.n, [copied(as_float64(a)) if not self.exact else as_float64(a) for a in self._sums[:3]]
        if beside is not None:
            self._refuse_other(beside)
            n += beside.n
            for mine, theirs in zip(real, beside._sums[:3], strict=True):
                mine += bring(theirs, self.device)  # whole numbers below 2^53
        for array in real if self.exact else ():
            array /= SCALE**2
        return Statistics._make([*real, n])

    def memory(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """Everything kept of the data, read-only: G, Q, y2 and n. (W follows from these and the ridge.)

        prefix: how their names begin, where they stand among others.
        """
        arrays: dict[str, NDArray[Any]] = {"n": np.array(self.n, dtype=np.int64)}
        arrays |= {name: bring(getattr(self._sums, name), None).view() for name in ("G", "Q", "y2")}
        for array in arrays.values():
            array.flags.writeable = False
        return {prefix + name: array for name, array in arrays.items()}

    def restore(self, memory: Mapping[str, NDArray[Any]], prefix: str = "") -> Self:
        """Know what the `memory()` of a head of the same settings says, and nothing else.

        The arrays are copied. prefix: as for `memory`.
        """
        present = self.memory()
        for name in Statistics._fields:
            own, found = present[name], memory.get(prefix + name)
            if found is None or (found.dtype, found.shape) != (own.dtype, own.shape):
                came = "nothing" if found is None else f"{found.dtype} {found.shape}"
                raise HeadError(
                    f"memory {prefix + name!r} must be {own.dtype} {own.shape}, got {came}; "
                    "is it of another method, or of other settings (n_features, n_directions)?"
                )
        G, Q, y2 = (bring(np.array(memory[prefix + name]), self.device) for name in ("G", "Q", "y2"))
        return self._become(Statistics(G, Q, y2, int(memory[prefix + "n"])))

    def restored(self, memory: Mapping[str, NDArray[Any]], prefix: str = "") -> AnalyticHead:
        """Another head of the same settings, which knows what the memory says."""
        head = AnalyticHead(self.n_features, self.n_outputs, self.ridge, self.exact, self.device)
        return head.restore(memory, prefix)

    def _theirs(self, other: AnalyticHead) -> Statistics:
        self._refuse_other(other)
        G, Q, y2 = (copied(bring(array, self.device)) for array in other._sums[:3])
        return Statistics(G, Q, y2, other.n)

    def _refuse_other(self, other: AnalyticHead) -> None:
        mine, theirs = ((h.n_features, h.n_outputs, h.exact) for h in (self, other))
        if mine != theirs:
            raise HeadError(f"these heads differ in (n_features, n_outputs, exact): {mine} and {theirs}")

    def _become(self, sums: Statistics, solved: Solved | None = None) -> Self:
        self._sums, self._solved = sums, solved
        return self

    def _kept(
        self, parts: Iterable[tuple[Array, Array]], few: list[tuple[Array, Array]]
    ) -> Iterator[tuple[Array, Array]]:
        """The parts; they are in `few` too when all have come, if the last solution can be told of so few."""
        n = 0
        for H, Y in parts:
            n += len(H)
            if self._solved and self._solved.takes(n):
                few.append((H, Y))
            else:
                few.clear()
            yield H, Y

    def _changed(self, parts: list[tuple[Array, Array]], weight: int | np.integer[Any]) -> Solved | None:
        """The last solution, and rows that it does not know of yet, if it is worth bringing up to date."""
        if self._solved is None or not self._solved.takes(sum(len(H) for H, _ in parts)):
            return None
        host = [(copied(bring(H, None)), copied(bring(Y, None))) for H, Y in parts if len(H)]
        return self._solved.changed([Rows(H, Y, int(weight)) for H, Y in host])

    def _empty(self) -> Statistics:
        D, C = self.n_features, self.n_outputs
        shapes, dtype = ((D, D), (D, C), (C,)), "int64" if self.exact else "float64"
        if self.device is None:
            return Statistics._make([*(np.zeros(shape, dtype) for shape in shapes), 0])
        torch = import_torch()
        kind = {"dtype": getattr(torch, dtype), "device": self.device}
        return Statistics._make([*(torch.zeros(shape, **kind) for shape in shapes), 0])

    def _plus(self, more: Statistics, sign: int = 1) -> Statistics:
        """These sums and (sign = -1: without) some others, whose arrays it takes over for the result."""
        n = self.n + sign * more.n
        _check_total(n)
        if sign > 0 and self.exact and not self.n:
            return more  # nothing to add, and no second G in memory
        with np.errstate(over="ignore", invalid="ignore"):
            for mine, theirs in zip(self._sums[:3], more[:3], strict=True):
                if sign < 0:
                    theirs *= -1
                theirs += mine
        if not all(map(all_finite, (more.G.diagonal(), more.Q, more.y2))):
            raise HeadError("the sums overflow float64; are the features scaled?")
        return more._replace(n=n)

    def _sum_up(self, parts: Iterable[tuple[Array, Array]], times: int | np.integer[Any]) -> Statistics:
        """The sums of rows in parts, each counted `times` times: fresh arrays where the head lives."""
        if not isinstance(times, int | np.integer) or isinstance(times, bool) or times < 1:
            raise HeadError(f"times must be a whole number from 1 up, got {times!r}; `forget` takes away")
        *total, n = self._empty()
        for H, Y in parts:
            H, Y = self._rows(H, "H", self.n_features), self._rows(Y, "Y", self.n_outputs)
            if len(H) != len(Y):
                raise HeadError(f"each row of features needs its label: H has {len(H)} rows, Y has {len(Y)}")
            n += len(H)
            _check_total(int(times) * max(1, n))
            self._add_products(total, H, Y)
        if self.exact:
            mirrored(total[0])
        with np.errstate(over="ignore", invalid="ignore"):
            for array in total if times > 1 else ():
                array *= int(times)
        return Statistics._make([*total, int(times) * n])

    def _add_products(self, total: list[Array], H: Array, Y: Array) -> None:
        """The products of some rows, added in place."""
        most = min(MAX_ROWS, INT8_BLOCK // self.n_features) if self.exact else FLOAT_BLOCK // self.n_features
        for rows in blocks(len(H), most):
            h, y = (bring(array[rows], self.device) for array in (H, Y))
            if self.exact:
                integer_products(h, y, total=total)
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    added(total, float_products(h, y))

    def _rows(self, array: Array, name: str, width: int) -> Array:
        """Refuse what is not (n, width) of the right type and range; nothing is copied or moved."""
        array = array.detach() if is_tensor(array) else np.asarray(array)
        allowed = DTYPES["exact " + name if self.exact else "float"]
        if str(array.dtype).removeprefix("torch.") not in allowed:
            remedy = "quantise it first" if self.exact else "integers are for an exact head"
            raise HeadError(f"{name} must be {' or '.join(allowed)}, got {array.dtype}; {remedy}")
        if array.ndim != 2 or array.shape[1] != width:
            raise HeadError(f"{name} must be (n_frames, {width}), got shape {tuple(array.shape)}")
        if not self.exact and not all_finite(array):
            raise HeadError(f"{name} holds NaN or infinity; did a silent or damaged frame slip through?")
        if self.exact and len(array):
            low, high = int(array.min()), int(array.max())
            if low < (-SCALE if name == "H" else 0) or high > SCALE:
                raise HeadError(f"{name} must be round(127 x) with x bounded by 1, got {low}..{high}")
        return array

    def _solve(self, ridge: float | None, beside: AnalyticHead | None, anew: bool = False) -> Array:
        """W; anew: from the sums alone, not brought up to date."""
        ridge = self.ridge if ridge is None else _checked_ridge(ridge)
        others = None if beside is None else beside._sums
        solution = self._solved and self._solved.now(ridge, others, SCALE if self.exact else 1, anew)
        if solution is None:
            A, B, _, n = self.statistics(beside)
            diagonal = list(range(self.n_features))
            A[diagonal, diagonal] += ridge
            solution = solve(A, B)
            if solution is None:
                raise HeadError(
                    f"G + ridge I is not positive definite (ridge {ridge:g}, {n} rows); raise the "
                    "ridge, and check that nothing was forgotten that had not been learned"
                )
        self._solved = Solved(ridge, others, solution)
        return solution.W


def _check_total(n: int) -> None:
    if n > MAX_TOTAL:
        raise HeadError(f"{n} rows could overflow int64; a head holds at most {MAX_TOTAL}")


def _checked_ridge(ridge: float) -> float:
    if not 0 <= ridge < np.inf:
        raise HeadError(f"ridge must be a number from 0 up, got {ridge}")
    return float(ridge)
