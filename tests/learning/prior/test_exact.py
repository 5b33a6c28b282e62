"""The exact network of a prior: the trained one, whole numbers written out, the same bits in every batch."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.networks import trained_like
from tytoalba.errors import PriorError
from tytoalba.learning.prior.exact import (
    CELLS,
    GRID,
    INPUT_GRID,
    LARGEST,
    MATRIX_GRID,
    STEERED_GAIN,
    TAPS,
    UNFOLD,
    forward,
    is_exact,
    layout,
)
from tytoalba.learning.prior.features import prior_gcc, steering_matrices
from tytoalba.learning.prior.prior import Prior
from tytoalba.signal.array import MicArray, builtin_arrays
from tytoalba.signal.gcc import GccPhat

torch = pytest.importorskip("torch")
TRIO = MicArray("trio", ((0.04, 0.0, 0.0), (-0.03, 0.035, 0.0), (-0.02, -0.04, 0.0)), sample_rate=16000)
BANDS = ((100.0, 2000.0), (2000.0, 8000.0))
BATCHES = (1, 2, 33, 64)
BIASES = ("place", "level", "heard", "offset", "bias")
N_BLOCKS = {1: 4, 4: 6}
"""Of networks without and with windows."""
WINDOWS = pytest.mark.parametrize("parts", [1, 4], ids=["whole", "windows"])


def gcc_of(parts: int) -> GccPhat:
    return GccPhat.for_array(TRIO, 1024, BANDS, parts=parts)


@lru_cache
def network_of(parts: int) -> Any:
    return trained_like(TRIO, gcc_of(parts), width=8, seed=3, n_blocks=N_BLOCKS[parts])


@lru_cache
def prior_of(parts: int) -> Prior:
    return Prior.quantised(TRIO, gcc_of(parts), network_of(parts).folded())


def extreme_prior(parts: int) -> Prior:
    """Weights as large as 16 bits hold: activations are cut at both ends."""
    gcc, rng = gcc_of(parts), np.random.default_rng(1)
    shapes = layout(len(BANDS) * TRIO.n_pairs, 8, 12 if parts > 1 else 0, N_BLOCKS[parts])
    weights = {name: rng.choice([-32767, 32767], shape).astype(np.int16) for name, shape in shapes.items()}
    steps = {name: 2.0**-10 if name.startswith(BIASES) else 2.0**-15 for name in shapes}
    return Prior(TRIO, gcc, weights, steps)


@lru_cache
def heard(parts: int) -> NDArray[np.float32]:
    """Features of 64 frames: noise that all microphones share, noise of their own, and silence."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((64, 1, 1040))
    late = [shared[..., k : k + 1024] for k in (0, 3, 9)]
    frames = np.concatenate(late, axis=1) + rng.uniform(0, 3, (64, 1, 1)) * rng.standard_normal((64, 3, 1024))
    frames[-1] = 0.0
    return np.asarray(gcc_of(parts)(frames), np.float32).reshape(64, -1)


def answers(prior: Prior, X: NDArray[Any]) -> NDArray[np.float32]:
    """Of `forward` itself, all frames in one batch, in numpy."""
    found: NDArray[np.float32] = forward(X, prior._beside(X))
    return found


def of_torch(prior: Prior, X: NDArray[Any]) -> NDArray[np.float32]:
    """The same in torch."""
    tensor = torch.tensor(X)
    found: NDArray[np.float32] = forward(tensor, prior._beside(tensor)).numpy()
    return found


# ---- whole numbers written out

nearest = np.frompyfunc(lambda value, parts: round(Fraction(int(value), int(parts))), 2, 1)
"""The whole number next to value / parts, halves to the even one."""


def in_whole_numbers(prior: Prior, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the network answers, (n_frames, 360), in Python's integers, which never round."""
    steered = {
        name: (matrix * MATRIX_GRID).astype(np.int64).astype(object)
        for name, matrix in steering_matrices(prior.array, prior.gcc).items()
    }
    w = {name: values.astype(object) for name, values in prior.weights.items()}
    fine = {name: int(1 / step) for name, step in prior.steps.items()}
    top, grid = int(LARGEST * GRID), int(GRID)
    for name in (name for name in w if name.startswith(BIASES)):
        w[name] = nearest(w[name] * grid, fine[name])

    def cells(x: Any, name: str) -> Any:
        """(CELLS, n_maps x UNFOLD) in steps of 1 / (INPUT_GRID MATRIX_GRID)."""
        units = nearest(np.frompyfunc(lambda v: int(float(v) * 2**40), 1, 1)(x), 2**40 // int(INPUT_GRID))
        maps = np.stack([lags @ matrix for lags, matrix in zip(units, steered[name], strict=True)])
        return (maps * int(STEERED_GAIN)).reshape(-1, CELLS, UNFOLD).transpose(1, 0, 2).reshape(CELLS, -1)

    maps_grid = int(INPUT_GRID * MATRIX_GRID)
    coarse = maps_grid // grid  # steps of maps in one of activations
    n_maps, n_lags, _ = steered["matrix"].shape
    answered = []
    for frame in X.reshape(len(X), -1, n_maps, n_lags):
        into = cells(frame[0], "matrix")
        if len(frame) > 1:
            said = np.stack([cells(window, "window_matrix") @ w["hear"] for window in frame[1:]]).max(axis=0)
            loudest = nearest(said + w["heard"] * coarse * fine["hear"], coarse * fine["hear"])
            into = np.concatenate([into, np.clip(loudest, 0, top) * coarse], axis=1)
        Z = nearest(into @ w["enter"] + w["place"] * coarse * fine["enter"], coarse * fine["enter"])
        Z = np.clip(Z, 0, top)
        for k, dilation in enumerate((1, 2, 4, 8, 1, 2)[: prior.n_blocks]):
            near, around, mix = fine[f"near{k}"], fine[f"around{k}"], fine[f"mix{k}"]
            beside = np.concatenate([np.roll(Z, dilation * tap, axis=0) for tap in TAPS], axis=1)
            overall = np.concatenate([nearest(Z.sum(axis=0), CELLS), Z.max(axis=0)])
            inner = beside @ w[f"near{k}"] * around + overall @ w[f"around{k}"] * near
            inner = nearest(inner + w[f"offset{k}"] * near * around, near * around)
            Z = Z * mix + np.clip(inner, 0, top) @ w[f"mix{k}"] + w[f"bias{k}"] * mix
            Z = np.clip(nearest(Z, mix), -top, top)
        logits = np.clip(Z, 0, top) @ w["leave"] + w["level"] * fine["leave"]
        answered.append(nearest(logits, fine["leave"]).ravel())
    return np.array(answered).astype(np.float64) / GRID


@WINDOWS
def test_the_network_is_what_whole_numbers_say(parts: int) -> None:
    X = heard(parts)[[0, 40]]
    expected = in_whole_numbers(prior_of(parts), X)
    assert expected.std() > 0.1
    assert np.array_equal(answers(prior_of(parts), X), expected)
    assert np.array_equal(of_torch(prior_of(parts), X), expected)


def loudest(parts: int) -> NDArray[np.float32]:
    """Features that are all 1 or -1: alike, at random, and as the steering of one azimuth is signed."""
    gcc = gcc_of(parts)
    ones = np.ones((1, gcc.n_features), np.float32)
    chance = np.random.default_rng(2).choice([-1.0, 1.0], ones.shape)
    matrices = steering_matrices(TRIO, gcc)
    looks = [matrices["matrix"], *[matrices[name] for name in matrices if name != "matrix"] * gcc.n_windows]
    signed = np.concatenate([np.where(look[:, :, 77] < 0, -1.0, 1.0).ravel() for look in looks])[None]
    return np.concatenate([ones, -ones, chance, signed]).astype(np.float32)


@WINDOWS
@pytest.mark.parametrize("kind", ["trained", "extreme"])
def test_the_loudest_features_stay_exact(parts: int, kind: str) -> None:
    prior = prior_of(parts) if kind == "trained" else extreme_prior(parts)
    X = loudest(parts)
    assert set(np.abs(X).ravel()) == {1.0}
    expected = in_whole_numbers(prior, X)
    if kind == "extreme":
        assert np.abs(expected).max() > LARGEST  # activations were cut
    assert np.array_equal(answers(prior, X), expected)
    assert np.array_equal(of_torch(prior, X), expected)


@pytest.mark.parametrize("name", builtin_arrays())
def test_maps_leave_room_for_exact_sums(name: str) -> None:
    """27 bits, and 15 of a weight and the terms of a sum beside them: float64 holds 53."""
    array = builtin_arrays()[name]
    gcc = prior_gcc(array)
    for matrix in steering_matrices(array, gcc).values():
        assert np.array_equal(matrix * MATRIX_GRID, np.rint(matrix * MATRIX_GRID))
        steps = float(np.abs(matrix).sum(axis=1).max()) * MATRIX_GRID * INPUT_GRID
        assert steps < 2**27
        assert steps * 2**15 * len(matrix) * UNFOLD < 2**51


def full(n_rows: int, value: int = 32767) -> NDArray[np.int16]:
    return np.full((n_rows, 2), value, np.int16)


@pytest.mark.parametrize("name", ["hear", "enter"])
def test_sums_that_float64_cannot_hold_are_told(name: str) -> None:
    step, largest = 2.0**-15, 32767 * 2.0**-15 * LARGEST
    unit = step * STEERED_GAIN / (INPUT_GRID * MATRIX_GRID)
    most = int((2.0**53 * unit - LARGEST) / largest)  # rows of the largest weights
    assert most * largest + LARGEST < 2**53 * unit <= (most + 1) * largest + LARGEST
    assert is_exact({name: full(most)}, {name: step})
    assert not is_exact({name: full(most + 1)}, {name: step})
    assert not is_exact({name: full(most + 1, -32768)}, {name: step})
    assert is_exact({"mix0": full(most + 1)}, {"mix0": step})  # activations have fewer bits than maps
    assert not is_exact({"mix0": full(1), name: full(most + 1)}, {"mix0": step, name: step})


def test_sums_of_coarse_and_fine_terms_are_told() -> None:
    both = {"near0": full(40), "around0": full(16)}
    assert is_exact(both, {"near0": 2.0**-10, "around0": 2.0**-10})
    assert is_exact(both, {"near0": 2.0**-15, "around0": 2.0**-22})
    assert not is_exact(both, {"near0": 2.0**-2, "around0": 2.0**-25})
    beside = {"mix0": full(1, 1), "bias0": np.full(2, 32767, np.int16)}
    assert is_exact(beside, {"mix0": 2.0**-25, "bias0": 1.0})
    assert not is_exact(beside, {"mix0": 2.0**-25, "bias0": 2.0**5})


def test_a_prior_of_too_large_weights_is_refused() -> None:
    gcc, width = gcc_of(4), 512
    shapes = layout(len(BANDS) * TRIO.n_pairs, width, width, 4)
    weights = {name: np.zeros(shape, np.int16) for name, shape in shapes.items()}
    steps = dict.fromkeys(shapes, 2.0**-15)
    assert Prior(TRIO, gcc, weights, steps).width == width
    with pytest.raises(PriorError, match="too large to compute with exactly"):
        Prior(TRIO, gcc, weights | {"enter": np.full(shapes["enter"], -32768, np.int16)}, steps)


# ---- the trained network


@WINDOWS
def test_the_network_is_the_trained_one(parts: int) -> None:
    X = heard(parts)
    with torch.no_grad():
        expected = network_of(parts)(torch.tensor(X)).numpy()
    assert expected.shape == (64, CELLS * UNFOLD)
    assert expected.std() > 0.1
    assert np.abs(answers(prior_of(parts), X) - expected).max() < 0.005  # some steps of 1/1024


def test_windows_are_heard_in_any_order_and_only_the_most_of_them_counts() -> None:
    gcc, X, prior = gcc_of(4), heard(4), prior_of(4)
    looks = X.reshape(64, 1 + gcc.n_windows, -1)
    expected = answers(prior, X)
    moved = looks[:, [0, *np.random.default_rng(0).permutation(gcc.n_windows) + 1]]
    assert np.array_equal(answers(prior, moved.reshape(64, -1)), expected)
    alike = np.concatenate([looks[:, :1], np.repeat(looks[:, 3:4], gcc.n_windows, axis=1)], axis=1)
    found = answers(prior, alike.reshape(64, -1))
    assert not np.array_equal(found, expected)
    fewer = np.ascontiguousarray(alike[:, :2]).reshape(64, -1)  # one window said as much as seven alike
    assert np.array_equal(answers(prior, fewer), found)
    swapped = looks[:, [1, 0, *range(2, 1 + gcc.n_windows)]]
    assert not np.array_equal(answers(prior, swapped.reshape(64, -1)), expected)  # the whole frame is another


# ---- the same bits everywhere


@WINDOWS
def test_every_batch_gives_the_same_bits_in_numpy_and_torch(parts: int) -> None:
    X, prior = heard(parts), prior_of(parts)
    expected = answers(prior, X)
    assert expected.dtype == np.float32
    assert np.array_equal(expected * GRID, np.rint(expected * GRID))
    for size in BATCHES:
        for run in (answers, of_torch):
            batches = [run(prior, X[first : first + size]) for first in range(0, 64, size)]
            assert batches[0].shape == (size, CELLS * UNFOLD)
            assert np.concatenate(batches).tobytes() == expected.tobytes(), (size, run)


@WINDOWS
def test_neighbours_kind_and_layout_leave_no_trace(parts: int) -> None:
    X, prior = heard(parts), prior_of(parts)
    expected = answers(prior, X)
    kept = X.copy()
    order = np.random.default_rng(4).permutation(64)
    for run in (answers, of_torch):
        assert np.array_equal(run(prior, X[order]), expected[order])
        assert np.array_equal(run(prior, X.astype(np.float64)), expected)
    assert np.array_equal(answers(prior, np.asfortranarray(X)), expected)
    assert np.array_equal(answers(prior, np.repeat(X, 2, axis=0)[::2]), expected)
    assert np.array_equal(X, kept)  # nothing was written into what came in
    assert np.array_equal(answers(prior, X), expected)  # nor into the weights


# ---- names and sizes


@WINDOWS
def test_the_layout_is_that_of_the_network(parts: int) -> None:
    folded = network_of(parts).folded()
    assert layout(len(BANDS) * TRIO.n_pairs, 8, 12 if parts > 1 else 0, N_BLOCKS[parts]) == {
        name: values.shape for name, values in folded.items()
    }
    assert ({"hear", "heard"} <= folded.keys()) is (parts > 1)
    assert all(values.dtype == np.float64 for values in folded.values())


def test_weights_for_windows_do_not_fit_a_prior_without_them() -> None:
    for parts, other in ((1, 4), (4, 1)):
        with pytest.raises(PriorError, match="do not fit each other"):
            Prior.quantised(TRIO, gcc_of(parts), network_of(other).folded())
