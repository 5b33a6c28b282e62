"""Fourier features with orthogonal directions, by a dense product or a fast transform, and by blocks.

A block of d directions is S H D1 H D2 H D3 / d^(3/2): H the Walsh-Hadamard matrix of order d, D1, D2, D3
diagonals of random signs, S a diagonal of lengths drawn from the chi distribution with d degrees of freedom,
those of Gaussian rows. d is the next power of two at or above n_inputs, at least 32, and Z is padded with
zeros to d: a Gaussian row of length d acts on the padded Z as one of length n_inputs on Z, so the kernel is
the same. (Below d = 32 the rows take too few directions: at d = 8 the kernel is wrong by up to 0.17.)

Every entry of H D1 H D2 H D3 is a whole number, built without LAPACK, and a length is the correctly rounded
root of a whole number: the same seed gives the same bits everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import ExpansionError
from tytoalba.learning.random_features import (
    BLOCK,
    STEPS_TO_TURN,
    Array,
    FourierFeatures,
    RandomFourier,
    checked_rows,
    checked_sizes,
    empty_beside,
    words,
)

CACHED = 2**18
"""Features that StructuredFourier computes at a time with numpy: 2 MiB in float64, quicker than BLOCK."""

SMALLEST_ORDER = 32
"""The least order of a block: of smaller ones the directions are too few to be nearly Gaussian."""


class _Orthogonal(FourierFeatures):
    """The draws that OrthogonalFourier and StructuredFourier have in common."""

    _stream = "orthogonal"

    @property
    def order(self) -> int:
        """d, the number of directions in a block."""
        return max(SMALLEST_ORDER, 1 << (self.n_inputs - 1).bit_length())

    def _signs(self) -> NDArray[np.float64]:
        """D1, D2, D3 of each block, (3, n_blocks, d, 1), drawn block by block."""
        d, n_blocks = self.order, -(-self.n_features // self.order)
        bits = np.unpackbits(self._words("signs", n_blocks * 3 * d // 8, "u1"), bitorder="little")
        return np.ascontiguousarray(1.0 - 2.0 * bits.reshape(n_blocks, 3, d, 1).swapaxes(0, 1))

    def _scales(self) -> NDArray[np.float64]:
        """Length of each row over d^(3/2), (n_features, 1), in steps of 2^-16; only the root rounds."""
        normals = self._normals("lengths", self.order)  # their sum of squares is below 2^53 up to d = 2^16
        squares = np.einsum("ij,ij->i", normals, normals, dtype=np.int64, casting="safe")
        scales: NDArray[np.float64] = np.sqrt(squares / float(self.order) ** 3)[:, None]
        return scales


class OrthogonalFourier(_Orthogonal, RandomFourier):
    """RandomFourier with directions that are orthogonal in blocks: a better kernel from as many features.

    Scale, exactness and `weights` (n_inputs, n_features) as in RandomFourier: W is rounded to 2^-16. The
    columns of W are orthogonal, up to that rounding, in blocks of d where n_inputs is d (a power of two from
    32 on); elsewhere the columns of the padded W are. The kernel is better by about a sixth (root mean
    square error) for pairs one or two bandwidths apart, and no better for pairs so far apart that it is near
    0: the noise of b remains.

    >>> fourier = OrthogonalFourier(2, 3, bandwidth=1.0, seed=0)
    >>> fourier.transform(np.array([[1.0, 0.5]])).astype(float).round(4).tolist()
    [[-0.5473, 0.6797, 0.4273]]
    >>> W = OrthogonalFourier(32, 32, bandwidth=1.0).weights
    >>> cosines = (W.T @ W) / np.outer(np.linalg.norm(W, axis=0), np.linalg.norm(W, axis=0))
    >>> bool(abs(cosines - np.eye(32)).max() < 1e-4)
    True
    """

    def _weight_steps(self) -> NDArray[Any]:
        rotated = _rotate(np.eye(self.order, self.n_inputs), self._signs(), _hadamard())
        steps: NDArray[Any] = np.rint(_features(rotated, self.n_features) * self._scales())
        return steps


class StructuredFourier(_Orthogonal):
    """The features of OrthogonalFourier by fast Walsh-Hadamard transforms, O(log d) work for each and no W.

    With the same settings and seed they agree to about 1e-4: the signs, lengths and phases are the same, only
    W is not rounded. Exact, hence the same to the bit everywhere: Z is whole numbers z of 2^-20 bandwidths,
    and no sum on the way, in any order, exceeds d^(3/2) |z| (each round multiplies |z| by sqrt(d), and a sum
    of some of d numbers is at most sqrt(d) times their norm). Rows with d^(3/2) |z| at 2^53, or with turns at
    2^30, are refused; for d = 512 that is a sum of |z| of several thousand bandwidths. One multiplication by
    the scale of the feature follows, rounded once.

    >>> Z = np.sin(np.arange(80.0)).reshape(2, 40)
    >>> StructuredFourier(40, 4, bandwidth=2.0, seed=0).transform(Z).astype(float).round(3).tolist()
    [[-0.334, 0.944, 0.777, -0.903], [0.192, -0.76, 0.658, -0.775]]
    >>> OrthogonalFourier(40, 4, bandwidth=2.0, seed=0).transform(Z).astype(float).round(3).tolist()
    [[-0.334, 0.944, 0.777, -0.903], [0.192, -0.76, 0.658, -0.775]]
    """

    def _draw(self) -> dict[str, NDArray[Any]]:
        to_turn = self._scales() * STEPS_TO_TURN
        self._farthest = min(2.0**53, 2.0**30 / float(to_turn.max())) / float(self.order) ** 1.5
        return {"signs": self._signs(), "to_turn": to_turn, "hadamard": _hadamard()}

    def _turns(self, steps: Array, here: dict[str, Array]) -> Array:
        padded = (self.order, len(steps))
        x = np.zeros(padded) if isinstance(steps, np.ndarray) else steps.new_zeros(padded)
        x[: self.n_inputs] = steps.T  # columns are frames, so every product is small times long
        turns = _features(_rotate(x, here["signs"], here["hadamard"]), self.n_features)
        turns *= here["to_turn"]
        return turns.T

    def _rows_at_once(self, Z: Array) -> int:
        width = max(self.n_features, self.order)
        return (CACHED if isinstance(Z, np.ndarray) else BLOCK) // width


class BlockFourier:
    """Fourier features of several blocks of columns of Z, each with its own bandwidth, side by side.

    blocks: slices of the columns (bands, pairs of microphones, features of a backbone beside raw ones); they
    may overlap, and two bandwidths for the same columns are two blocks. n_features: of all blocks together,
    divided in proportion to `shares` (equal where None). bandwidths: one for each block, or one number for
    all, in the unit of Z. kind: of the features of a block. n_inputs: columns of Z, by default up to the end
    of the last block. The blocks draw from streams of their own, named by their position, so none repeats
    another.

    2 H H' / n_features approximates the sum of the kernels of the blocks, each times its part of the
    features. Bounded and exact as its kind. `n_features_by_block` and `slices` say which features are whose;
    the features of a narrow map are the first of each block of a wide one, not the first of all.

    >>> bands = BlockFourier([slice(0, 40), slice(40, 50)], 6, bandwidths=[6.0, 3.0], shares=[2, 1])
    >>> bands.n_inputs, bands.n_features, bands.n_features_by_block
    (50, 6, (4, 2))
    >>> bands.codes(np.sin(np.arange(50.0))[None]).tolist()
    [[-52, 89, -105, 99, 112, 113]]
    """

    def __init__(
        self,
        blocks: Sequence[slice],
        n_features: int,
        bandwidths: float | Sequence[float],
        seed: int = 0,
        *,
        shares: Sequence[float] | None = None,
        kind: type[FourierFeatures] = OrthogonalFourier,
        n_inputs: int | None = None,
    ) -> None:
        n_inputs = _width(blocks) if n_inputs is None else n_inputs
        self.n_inputs, self.n_features, self.seed = checked_sizes(n_inputs, n_features, seed)
        self.blocks = tuple(_columns(block, self.n_inputs) for block in blocks)
        if not isinstance(bandwidths, Sequence | np.ndarray):
            bandwidths = [bandwidths] * len(blocks)
        shares = [1.0] * len(blocks) if shares is None else list(shares)
        if not blocks:
            raise ExpansionError("blocks must hold at least one slice of the columns of Z")
        if not len(blocks) == len(bandwidths) == len(shares):
            raise ExpansionError(
                f"one bandwidth and one share for each block: got {len(blocks)} blocks, "
                f"{len(bandwidths)} bandwidths and {len(shares)} shares"
            )
        edges = _edges(self.n_features, shares)
        self.slices = tuple(slice(start, stop) for start, stop in itertools.pairwise(edges))
        self.n_features_by_block = tuple(stop - start for start, stop in itertools.pairwise(edges))
        self.parts = tuple(
            kind(len(range(*block.indices(self.n_inputs))), n, bandwidth, _child_seed(self.seed, k))
            for k, (block, n, bandwidth) in enumerate(
                zip(self.blocks, self.n_features_by_block, bandwidths, strict=True)
            )
        )
        self.bandwidths = tuple(part.bandwidth for part in self.parts)

    def transform(self, Z: Array) -> Array:
        """Features (n, n_features), float32 in [-1, 1], from Z (n, n_inputs)."""
        return self._side_by_side("transform", Z, np.float32)

    def codes(self, Z: Array) -> Array:
        """The same features as int8, `quantize(transform(Z))`."""
        return self._side_by_side("codes", Z, np.int8)

    def _side_by_side(self, result: str, Z: Array, dtype: type) -> Array:
        Z = checked_rows(Z, self.n_inputs)
        H = empty_beside(Z, self.n_features, dtype)
        for part, block, place in zip(self.parts, self.blocks, self.slices, strict=True):
            H[:, place] = getattr(part, result)(Z[:, block])
        return H


def _hadamard() -> NDArray[np.float64]:
    """The Walsh-Hadamard matrix of order 16; its corners are those of the smaller powers of two."""
    H = np.ones((1, 1))
    for _ in range(4):
        H = np.block([[H, H], [H, -H]])
    return H


def _rotate(x: Array, signs: Array, hadamard: Array) -> Array:
    """H D1 H D2 H D3 x of every block, (n_blocks, d, n), of the columns of x (d, n); exact for whole numbers.

    Two arrays take turns: a new one for each product costs more than the product, in pages of memory.
    """
    x = signs[2] * x  # (n_blocks, d, n)
    x, spare = _transform(
        x, np.empty_like(x) if isinstance(x, np.ndarray) else x.new_empty(x.shape), hadamard
    )
    for k in (1, 0):
        x *= signs[k]
        x, spare = _transform(x, spare, hadamard)
    return x


def _transform(x: Array, spare: Array, hadamard: Array) -> tuple[Array, Array]:
    """H x of each block of x (n_blocks, d, n), and room for the next: both arguments are written over.

    H is the Kronecker product of small ones, multiplied one by one.
    """
    n_blocks, d, n = x.shape
    bits = d.bit_length() - 1
    n_stages = -(-bits // 4)
    rest = d
    for stage in range(n_stages):
        small = 1 << (bits + stage) // n_stages  # the bits divided evenly: 512 = 8 * 8 * 8
        rest //= small
        rows = (n_blocks * d // (small * rest), small, rest * n)
        _multiply(hadamard[:small, :small], x.reshape(rows), spare.reshape(rows))
        x, spare = spare, x
    return x, spare


def _multiply(matrix: Array, x: Array, out: Array) -> None:
    """Into out (n, a, b) the products of matrix (a, a) and each of x (n, a, b)."""
    if isinstance(x, np.ndarray):
        np.matmul(matrix, x, out=out)
    else:
        import torch

        torch.bmm(matrix.expand(len(x), -1, -1), x, out=out)


def _features(rotated: Array, n_features: int) -> Array:
    """The first directions (n_features, n) of all blocks (n_blocks, d, n)."""
    n_blocks, d, n = rotated.shape
    return rotated.reshape(n_blocks * d, n)[:n_features]


def _child_seed(seed: int, k: int) -> int:
    """A seed for the k-th part of a map: 64 bits of the stream named by both."""
    return int(words(f"blocks/{k}/{seed}", 1, "<u8")[0])


def _width(blocks: Sequence[slice]) -> int:
    """Columns up to the end of the last block."""
    ends = [block.stop for block in blocks]
    if not ends or not all(isinstance(end, int | np.integer) and end > 0 for end in ends):
        raise ExpansionError(f"blocks without a positive end need n_inputs, the columns of Z; got {blocks}")
    return int(max(ends))


def _columns(block: slice, n_inputs: int) -> slice:
    """The block with its ends written out; refuses an empty one, one too long or a step backwards."""
    start, stop, step = block.indices(n_inputs)
    beyond = block.stop is not None and block.stop > n_inputs
    if beyond or step < 1 or not range(start, stop, step):
        raise ExpansionError(f"a block must be some of the {n_inputs} columns of Z, in order; got {block}")
    return slice(start, stop, step)


def _edges(n_features: int, shares: Sequence[float]) -> list[int]:
    """Where the features of each block begin and the last end: n_features in proportion to the shares."""
    if not all(0 < share < np.inf for share in shares):
        raise ExpansionError(f"shares must be positive numbers, got {list(shares)}")
    sums = [0.0, *itertools.accumulate(float(share) for share in shares)]
    edges = [round(n_features * (part / sums[-1])) for part in sums]
    if min(stop - start for start, stop in itertools.pairwise(edges)) < 1:
        raise ExpansionError(f"{n_features} features with shares {list(shares)} leave a block without any")
    return edges
