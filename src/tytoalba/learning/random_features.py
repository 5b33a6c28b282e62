"""Random features: a fixed, seeded, never trained map from Z (n, n_inputs) to H (n, n_features).

Every map draws its numbers from SHAKE-256 (FIPS 202) of a text that names the map and its seed, and turns the
bits into numbers by integer arithmetic and single correctly rounded operations: the same seed gives the same
bits on every platform and numpy version. Numbers are drawn feature by feature, so the first features of a
wide map are those of a narrow one with the same seed. Z may be a numpy array or a torch tensor on any device;
H is of the same kind, in the same place.

The ridge of a head has no meaning without the scale of the features: it is stated in each class.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tytoalba.errors import ExpansionError
from tytoalba.learning.sums import is_tensor

Array = Any
"""A numpy array or a torch tensor; torch is never imported here, only recognised."""

BLOCK, GPU_BLOCK = 2**22, 2**26
"""Features computed at a time, whatever the number of rows: 32 and 512 MiB in float64."""
CACHED = 2**16
"""Features that a CPU takes through all steps while they are in its cache."""

WEIGHT_BITS, Z_BITS, TURN_BITS = 16, 20, 16
"""Fixed point of Fourier features: weights, Z / bandwidth, and the steps in one turn of the cosine."""

STEPS_TO_TURN = 2.0 ** (TURN_BITS - WEIGHT_BITS - Z_BITS) / (2 * np.pi)
"""From steps of Z W to steps of the turn."""


class RandomReLU:
    """H = ReLU(Z W), no bias: the expansion of the SSL-CIL paper.

    Scale: W is uniform in (-1/sqrt(n_inputs), 1/sqrt(n_inputs)), as in the authors' program (the paper says
    "normal"; standard normal weights make H larger by sqrt(3 n_inputs) and H'H by the square of that).
    H is float32, or float64 where Z is; its last bits may change with the batch, the BLAS or the device.

    >>> RandomReLU(2, 3, seed=0).transform(np.float64([[1.0, -1.0]])).astype(float).round(4).tolist()
    [[0.0, 0.3814, 0.0702]]
    """

    def __init__(self, n_inputs: int, n_features: int, seed: int = 0) -> None:
        self.n_inputs, self.n_features, self.seed = _checked_sizes(n_inputs, n_features, seed)
        u = _uniform(f"relu/{n_inputs}/{seed}", n_inputs * n_features)  # (-1, 1), float64
        W = (u / np.sqrt(np.float64(n_inputs))).astype(np.float32)
        self.weights: NDArray[np.float32] = np.ascontiguousarray(W.reshape(n_features, n_inputs).T)
        self._constants = _PerDevice(W=self.weights)

    def transform(self, Z: Array) -> Array:
        """Features (n, n_features), float64 for a float64 Z and else float32, from Z (n, n_inputs)."""
        Z = _checked_rows(Z, self.n_inputs)
        W = self._constants.beside(Z)["W"]
        dtype = np.float64 if str(Z.dtype) in ("float64", "torch.float64") else np.float32

        if dtype is np.float64:
            W = W.astype(np.float64) if isinstance(Z, np.ndarray) else W.double()

        def numpy_block(z: NDArray[Any], H: NDArray[Any]) -> None:
            np.maximum(z.astype(dtype) @ W, 0, out=H)

        def tensor_block(z: Array, H: Array) -> None:
            H[:] = (z.to(W.dtype) @ W).clamp_(min=0)

        return _blockwise(numpy_block, tensor_block, Z, self.n_features, dtype)


class RandomFourier:
    """H = cos(Z W / bandwidth + b), in [-1, 1]: random features of a Gaussian kernel of that bandwidth.

    Scale: W is standard normal (rounded to 2^-16, cut at 4.3), b uniform in [0, 2 pi), no factor
    sqrt(2 / n_features): the sum of H^2 over a row is about n_features / 2. For standardised Z a bandwidth
    near sqrt(n_inputs) is a usual start.

    H is the same to the bit for the same Z whatever the batch, BLAS, number of threads or device, so what was
    learned can be forgotten exactly from recomputed features. (A float32 product flips about one rounded
    feature in 60000 when the batch changes.) Z / bandwidth is on a grid of 2^-20 and W on one of 2^-16, so
    Z W is a sum of integers below 2^53, exact in float64 in any order, and the cosine is looked up in 65536
    steps per turn. All this differs from the real cosine by about 1e-4, far below the int8 step of 1/127.

    >>> fourier = RandomFourier(2, 3, bandwidth=1.0, seed=0)
    >>> fourier.transform(np.zeros((1, 2))).astype(float).round(4).tolist()
    [[0.6928, 0.2658, 0.8686]]
    >>> fourier.codes(np.zeros((1, 2))).tolist()
    [[88, 34, 110]]
    """

    def __init__(self, n_inputs: int, n_features: int, bandwidth: float, seed: int = 0) -> None:
        self.n_inputs, self.n_features, self.seed = _checked_sizes(n_inputs, n_features, seed)
        self.bandwidth = float(bandwidth)
        if not 0 < self.bandwidth < np.inf:
            raise ExpansionError(f"bandwidth must be a positive number in the unit of Z, got {bandwidth}")
        steps = _words(f"fourier/phases/{n_inputs}/{seed}", n_features, "<u2")  # b in steps of 2 pi / 65536
        self.phases: NDArray[np.float32] = (steps * (2 * np.pi / 2**TURN_BITS)).astype(np.float32)
        code = _words(f"fourier/weights/{n_inputs}/{seed}", n_inputs * n_features, "<u2")
        grid = _normal_table()[code].reshape(n_features, n_inputs).T  # W in steps of 2^-16
        self.weights: NDArray[np.float32] = np.ascontiguousarray(grid, dtype=np.float32) / 2**WEIGHT_BITS
        # |sum z w| <= sum |z| max |w| must stay below 2^53 to be exact; it also bounds the turns to 2^31
        self._farthest = 2.0**53 / max(5 * 2**WEIGHT_BITS, int(np.abs(grid).max()))
        self._constants = _PerDevice(
            W=np.ascontiguousarray(grid, dtype=np.float64),
            b=steps.astype(np.int32),
            cos=_cosine_table(),
            codes=quantize(_cosine_table()),
        )

    def transform(self, Z: Array) -> Array:
        """Features (n, n_features), float32 in [-1, 1], from Z (n, n_inputs)."""
        return self._look_up("cos", Z, np.float32)

    def codes(self, Z: Array) -> Array:
        """The same features as int8, `quantize(transform(Z))`, computed without the floats between."""
        return self._look_up("codes", Z, np.int8)

    @property
    def whole(self) -> dict[str, NDArray[Any]]:
        """What `codes` computes with: W in steps of 2^-WEIGHT_BITS, b in steps of a turn, codes of a turn."""
        return {name: self._constants.beside(self.weights)[name] for name in ("W", "b", "codes")}

    def _look_up(self, table: str, Z: Array, dtype: type) -> Array:
        Z = _checked_rows(Z, self.n_inputs)
        here = self._constants.beside(Z)
        to_grid = 2.0**Z_BITS / self.bandwidth
        mask = 2**TURN_BITS - 1

        def numpy_block(z: NDArray[Any], H: NDArray[Any]) -> None:
            steps = np.rint(z.astype(np.float64) * to_grid)
            self._refuse_far(float(np.abs(steps).sum(axis=1).max(initial=0.0)))
            turns = steps @ here["W"]
            for rows in _slices(len(z), CACHED // self.n_features):
                turn = turns[rows]
                turn *= STEPS_TO_TURN
                turn = np.rint(turn, out=turn).astype(np.int32)  # |turn| < 2^31
                turn += here["b"]
                turn &= mask
                H[rows] = here[table][turn]

        def tensor_block(z: Array, H: Array) -> None:
            steps = (z.double() * to_grid).round_()
            self._refuse_far(float(steps.abs().sum(dim=1).max()))
            turn = here["W"].T @ steps.T  # feature by feature, as a GPU's int8 kernels want it
            turn = turn.mul_(STEPS_TO_TURN).round_().int()
            turn += here["b"][:, None]
            turn &= mask
            H.T[:] = here[table][turn]

        return _blockwise(numpy_block, tensor_block, Z, self.n_features, dtype)

    def _refuse_far(self, largest: float) -> None:
        """Refuse rows whose products would not be exact. largest: sum of |z| of a row, in steps of Z."""
        if largest >= self._farthest:
            raise ExpansionError(
                f"a row of Z is {largest / 2**Z_BITS:.3g} bandwidths long (sum of |z|), "
                f"the most is {self._farthest / 2**Z_BITS:.0f}; "
                "is Z standardised, and the bandwidth in the same unit?"
            )


def quantize(H: Array) -> Array:
    """Bounded features as int8: round(127 h), h in [-1, 1], halves to even.

    >>> quantize(np.array([[-1.0, 0.0, 0.5, 1.0]])).tolist()
    [[-127, 0, 64, 127]]
    """
    H = H if is_tensor(H) else np.asarray(H)
    if not bool((abs(H) <= 1).all()):  # NaN fails it too
        raise ExpansionError(
            "features to quantise must lie in [-1, 1]; ReLU features do not: use RandomFourier"
        )
    if isinstance(H, np.ndarray):
        return np.rint(H * H.dtype.type(127)).astype(np.int8)
    import torch

    return (H * 127).round().to(torch.int8)


class _PerDevice:
    """Constant arrays, copied once to each torch device that asks."""

    def __init__(self, **arrays: NDArray[Any]) -> None:
        self._places: dict[str, dict[str, Array]] = {"numpy": arrays}
        for array in arrays.values():
            array.flags.writeable = False

    def beside(self, Z: Array) -> dict[str, Array]:
        place = "numpy" if isinstance(Z, np.ndarray) else str(Z.device)
        if place not in self._places:
            import torch

            arrays = self._places["numpy"]
            self._places[place] = {k: torch.from_numpy(a.copy()).to(place) for k, a in arrays.items()}
        return self._places[place]

    def __getstate__(self) -> dict[str, Any]:  # copies on devices stay behind when pickled or copied
        return {"_places": {"numpy": self._places["numpy"]}}


def _blockwise(
    numpy_block: Callable[[Array, Array], None],
    tensor_block: Callable[[Array, Array], None],
    Z: Array,
    n_features: int,
    dtype: type,
) -> Array:
    """The features (n, n_features) of Z, of its kind and in its place, some rows at a time.

    The blocks write the features of some rows of Z; those of tensors are laid out feature by feature.
    """
    if isinstance(Z, np.ndarray):
        H: Array = np.empty((len(Z), n_features), dtype=dtype)
        for rows in _slices(len(Z), BLOCK // n_features):
            numpy_block(Z[rows], H[rows])
        return H
    import torch

    H = torch.empty((n_features, len(Z)), dtype=getattr(torch, np.dtype(dtype).name), device=Z.device).T
    for rows in _slices(len(Z), (BLOCK if Z.device.type == "cpu" else GPU_BLOCK) // n_features):
        tensor_block(Z[rows], H[rows])
    return H


def _slices(n: int, rows: int) -> Iterator[slice]:
    return (slice(start, start + max(1, rows)) for start in range(0, n, max(1, rows)))


def _checked_rows(Z: Array, n_inputs: int) -> Array:
    """Z (n, n_inputs) as an array or a tensor without its history; refuses other shapes, NaN and infinity."""
    if is_tensor(Z):
        Z = Z.detach()
        finite = bool(Z.isfinite().all())
    else:
        Z = np.asarray(Z)
        if Z.dtype.kind not in "fiub":
            raise ExpansionError(f"Z must be real numbers, got {Z.dtype}")
        finite = bool(np.isfinite(Z).all())
    if Z.ndim != 2 or Z.shape[1] != n_inputs:
        raise ExpansionError(f"Z must be (n_frames, {n_inputs}), got shape {tuple(Z.shape)}")
    if not finite:
        raise ExpansionError("Z holds NaN or infinity; did a silent or damaged frame slip through?")
    return Z


def _checked_sizes(n_inputs: int, n_features: int, seed: int) -> tuple[int, int, int]:
    """The three as plain integers; refuses empty sizes and seeds that are not whole numbers."""
    if n_inputs < 1 or n_features < 1:
        raise ExpansionError(f"n_inputs and n_features must be at least 1, got {n_inputs} and {n_features}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ExpansionError(f"seed must be a whole number, 0 or more, of any size; got {seed!r}")
    return int(n_inputs), int(n_features), int(seed)


def _words(name: str, n: int, dtype: str) -> NDArray[Any]:
    """The first n little-endian words of the SHAKE-256 stream of a name."""
    n_bytes = n * np.dtype(dtype).itemsize
    return np.frombuffer(hashlib.shake_256(f"tytoalba/{name}".encode()).digest(n_bytes), dtype=dtype)


def _uniform(name: str, n: int) -> NDArray[np.float64]:
    """Uniform odd multiples of 2^-24 in (-1, 1), from the upper 24 bits of each word."""
    k = (_words(name, n, "<u4") >> np.uint32(8)).astype(np.int32)
    return (2 * k + np.int32(1 - 2**24)) / 2.0**24


@functools.cache
def _normal_table() -> NDArray[np.int32]:
    """Normal quantiles of (k + 1/2) / 65536 in steps of 2^-16, k = 0..65535, odd about the middle.

    No quantile lies within 1e-11 of a rounding tie (a test measures it), so every `ndtri` good to 1e-12
    gives this table.
    """
    upper = np.rint(-ndtri((np.arange(2**15) + 0.5) / 2**16) * 2**WEIGHT_BITS).astype(
        np.int32
    )  # largest first
    return np.concatenate([-upper, upper[::-1]])


@functools.cache
def _cosine_table() -> NDArray[np.float32]:
    """cos(2 pi k / 65536) in steps of 2^-24; no value lies within 1e-12 of a rounding tie."""
    cosine = np.cos(np.arange(2**TURN_BITS) * (2 * np.pi / 2**TURN_BITS))
    steps = np.rint(cosine * 2**24).astype(np.int32)  # whole numbers have no -0.0
    table: NDArray[np.float32] = steps.astype(np.float32) / np.float32(2**24)
    return table
