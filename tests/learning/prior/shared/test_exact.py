"""The network for every array: whole numbers, the same everywhere, and what it must not depend on."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.learning.prior.shared.helpers import features, geometry, weights
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared.exact import (
    BYTE,
    HALF,
    N_MAPS,
    TEN_BITS,
    count_blocks,
    floats,
    forward,
    is_exact,
    neighbours,
    quantised,
    rounded_codes,
)
from tytoalba.learning.prior.shared.geometry import CELLS, N_BANDS, UNFOLD, Geometry
from tytoalba.signal.array import MicArray, load_array

torch = pytest.importorskip("torch")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
ARRAYS = [
    load_array("respeaker-usb-4"),
    load_array("linear-4"),
    load_array("minidsp-uma8"),
    *(random_array(0, k) for k in (0, 3, 5)),
]


def codes_of(array: MicArray, n: int = 3) -> NDArray[np.float32]:
    gcc = prior_gcc(array)
    shape = n, -1, len(gcc.band_list), len(gcc.pairs), gcc.n_lags
    return np.asarray(rounded_codes(features(array, n)).reshape(shape))


def logits(codes: NDArray[np.float32], told: Geometry) -> NDArray[np.float32]:
    given = floats(weights().weights) | {"steering": told.steering, "known": told.known.astype(np.float32)}
    return np.asarray(forward(codes, told, given))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.name)
def test_a_plain_computation_in_whole_numbers_gives_the_same(array: MicArray) -> None:
    told, codes = geometry(array), codes_of(array, 2)
    wanted = np.stack([plainly(frame.astype(np.int64), told) for frame in codes])
    found = logits(codes, told)
    assert np.array_equal(found * 1024, wanted)
    assert np.ptp(found) > 0.1


def plainly(codes: NDArray[np.int64], told: Geometry) -> NDArray[np.int64]:
    """Logits x 1024 of a frame (looks, bands, pairs, lags), in int64 and fractions of powers of two."""
    w = {name: values.astype(np.int64) for name, values in weights().weights.items()}
    n_looks, n_bands, n_pairs, _ = codes.shape
    steering = told.steering.astype(np.int64)

    def layer(x: NDArray[np.int64], name: str, low: float, high: float) -> NDArray[np.int64]:
        summed = x @ w[name] + w[f"{name}.bias"]
        return rounded(summed * 2.0 ** -w[f"{name}.shift"], low, high)

    def rounded(x: NDArray[Any], low: float, high: float) -> NDArray[np.int64]:
        return np.asarray(np.clip(np.rint(x), low, high), np.int64)

    pairs = np.zeros((CELLS, n_pairs, N_BANDS, UNFOLD), np.int64)
    maps = np.zeros((n_looks, CELLS, N_BANDS, UNFOLD), np.int64)
    for b in range(n_bands):
        each = np.einsum("wpl,pla->wpa", codes[:, b], steering[b]) * 2.0 ** -float(told.scale[b])
        pairs[:, :, b] = rounded(each[0], -HALF, HALF).reshape(n_pairs, CELLS, UNFOLD).swapaxes(0, 1)
        mean = rounded(each.sum(axis=1) * 4 / n_pairs, -TEN_BITS, TEN_BITS)
        maps[:, :, b] = mean.reshape(n_looks, CELLS, UNFOLD)
    known = told.known.astype(np.int64).swapaxes(0, 1)
    each = layer(np.concatenate([pairs.reshape(CELLS, n_pairs, -1), known], axis=2), "pair", 0, BYTE)
    flat = maps.reshape(n_looks, CELLS, N_MAPS)
    heard = layer(flat[1:], "hear", 0, BYTE).max(axis=0)
    mean = rounded(each.sum(axis=1) / n_pairs, 0, BYTE)
    Z = layer(np.concatenate([mean, each.max(axis=1), flat[0], heard], axis=1), "enter", 0, HALF)
    for k in range(count_blocks(w)):
        around = np.concatenate([rounded(Z.sum(axis=0) / CELLS, -HALF, HALF), Z.max(axis=0)])
        beside = Z[neighbours(k)].reshape(CELLS, -1)
        x = np.concatenate([beside, np.broadcast_to(around, (CELLS, len(around)))], axis=1)
        inner = layer(x, f"near{k}", 0, BYTE)
        added = (inner @ w[f"mix{k}"] + w[f"mix{k}.bias"]) * 2.0 ** -w[f"mix{k}.shift"]
        Z = rounded(Z + added, -HALF, HALF)
    return layer(Z.clip(0), "leave", -(2**24), 2**24).reshape(-1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.name)
def test_torch_and_any_batch_give_the_same_bits(array: MicArray, device: str) -> None:
    prior, X = weights().prior(array), features(array, 11)
    whole = prior.logits(X)
    assert whole.dtype == np.float32
    assert np.array_equal(np.concatenate([prior.logits(x[None]) for x in X]), whole)
    assert np.array_equal(prior.logits(torch.tensor(X, device=device)).cpu().numpy(), whole)
    assert np.array_equal(np.rint(whole * 1024), whole * 1024)
    assert prior.logits(X[:0]).shape == (0, 360)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.name)
def test_a_turned_world_is_answered_turned(array: MicArray) -> None:
    told, codes = geometry(array), codes_of(array)
    for cells in (1, 40, 119):
        turned = replace(
            told,
            delays=np.roll(told.delays, UNFOLD * cells, axis=1),
            known=np.roll(told.known, cells, axis=1),
        )
        assert np.array_equal(logits(codes, turned), np.roll(logits(codes, told), UNFOLD * cells, axis=1))


def test_the_order_of_microphones_does_not_matter() -> None:
    array = random_array(0, 5)
    order = np.random.default_rng(0).permutation(array.n_mics)
    other = replace(array, positions=tuple(array.positions[k] for k in order), channels=())
    codes = codes_of(array)
    at = {pair: p for p, pair in enumerate(array.pairs)}
    shuffled = np.empty_like(codes)
    for p, (i, j) in enumerate(combinations(order.tolist(), 2)):
        one = codes[:, :, :, at[min(i, j), max(i, j)]]
        shuffled[:, :, :, p] = one if i < j else one[..., ::-1]  # the other one of the pair is late
    assert np.array_equal(logits(shuffled, geometry(other)), logits(codes, geometry(array)))


def test_a_layer_loses_little_in_eight_bits() -> None:
    rng = np.random.default_rng(0)
    matrix, bias = rng.normal(0, 0.2, (16, 8)), rng.normal(0, 1, 8)
    made = quantised("enter", matrix, bias)
    x = rng.integers(0, 255, (100, 16))
    exact = (x / 32) @ matrix + bias
    summed = x @ made["enter"].astype(float) + made["enter.bias"]
    found = summed * 2.0 ** -made["enter.shift"].astype(float) / 16
    step = np.abs(matrix).max(axis=0) / 63.5  # of weights, at most
    assert (np.abs(found - exact) <= 16 * 255 / 32 * step / 2 + step).all()
    assert np.abs(found - exact).max() < 0.02 * np.abs(exact).max()
    assert np.abs(made["enter"].astype(int)).max(axis=0).min() >= 63  # as fine as eight bits allow


def test_sums_that_could_be_too_large_are_found() -> None:
    good = weights().weights
    assert is_exact(good)
    assert not is_exact(good | {"near0.bias": np.full_like(good["near0.bias"], 2**24)})
    assert not is_exact(good | {"mix0.shift": np.full_like(good["mix0.shift"], 20)})
