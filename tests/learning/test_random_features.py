"""Random features: the same numbers everywhere, the right distribution, bounded memory, clear refusals.

`python -m tests.learning.test_random_features` prints the golden hashes; only a new construction changes them
"""

from __future__ import annotations

import copy
import hashlib
import pickle
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.errors import ExpansionError
from tytoalba.learning import random_features as expansion
from tytoalba.learning.random_features import RandomFourier, RandomReLU, quantize

torch = pytest.importorskip("torch")

GOLDEN = {
    "relu weights": "c3755e43d87a00a240e334e9a8f1439577f5d338a28b317b95d53e70ea8f91db",
    "fourier weights": "761e22acd1726af8fbc53af52e587230c21e6546669a523d8a511fd2d57d5887",
    "fourier phases": "7f4121e30289c6735242f7d28cb9b4674949b017bfb0ea51c89779d0bb803cba",
    "normal table": "ee46eda6f743ea9b2949c72134d6385025bcc7573bb0fba98b3bf40224779880",
    "cosine table": "abdb32864bcc2cb5b7062b2c27943cc7c36ccfdc82531d6ce0aa57793e5f6591",
    "codes": "cccf328679d467d9846f0ce18f1d33d419b0ebb3390ce2824b21b56e3737d8a2",
}


def golden() -> dict[str, str]:
    """SHA-256 of the little-endian bytes of the constants and of the codes of a fixed input."""
    relu, fourier = RandomReLU(13, 500, seed=7), RandomFourier(13, 500, bandwidth=3.0, seed=7)
    Z = (np.arange(20 * 13).reshape(20, 13) * 37 % 101 - 50) / 16
    arrays: dict[str, NDArray[Any]] = {
        "relu weights": relu.weights.astype("<f4"),
        "fourier weights": fourier.weights.astype("<f4"),
        "fourier phases": fourier.phases.astype("<f4"),
        "normal table": expansion._normal_table().astype("<i4"),
        "cosine table": expansion._cosine_table().astype("<f4"),
        "codes": fourier.codes(Z),
    }
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}


def normal(shape: tuple[int, int], seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_same_numbers_as_ever() -> None:
    assert golden() == GOLDEN


def test_weights_follow_their_description() -> None:
    """The construction again, in plain Python and without numpy or scipy."""
    stream = hashlib.shake_256(b"tytoalba/fourier/weights/3/11").digest(2 * 3 * 4)
    codes = [int.from_bytes(stream[i : i + 2], "little") for i in range(0, len(stream), 2)]
    quantile = statistics.NormalDist().inv_cdf
    expected = [round(quantile((code + 0.5) / 65536) * 65536) / 65536 for code in codes]
    weights = RandomFourier(3, 4, bandwidth=1.0, seed=11).weights
    assert weights.dtype == np.float32
    assert weights.T.ravel().tolist() == expected

    stream = hashlib.shake_256(b"tytoalba/relu/4/11").digest(4 * 4 * 3)
    words = [int.from_bytes(stream[i : i + 4], "little") for i in range(0, len(stream), 4)]
    uniform = [(2 * (word >> 8) + 1 - 2**24) / 2**24 for word in words]
    assert RandomReLU(4, 3, seed=11).weights.T.ravel().tolist() == [np.float32(u / 2) for u in uniform]


def test_no_table_entry_is_near_a_rounding_tie() -> None:
    """So a platform whose quantile or cosine differs in its last digits still rounds to the same table."""
    from scipy.special import ndtri

    quantile = ndtri((np.arange(2**15) + 0.5) / 2**16) * 2**16
    cosine = np.cos(np.arange(2**16) * (2 * np.pi / 2**16)) * 2**24
    assert np.abs(quantile - np.floor(quantile) - 0.5).min() / 2**16 > 1e-11
    assert np.abs(cosine - np.floor(cosine) - 0.5).min() / 2**24 > 1e-12


@pytest.mark.parametrize("seed", [0, 2**64 + 1])
def test_first_features_of_a_wide_map_are_those_of_a_narrow_one(seed: int) -> None:
    assert np.array_equal(RandomReLU(5, 40, seed).weights[:, :8], RandomReLU(5, 8, seed).weights)
    wide, narrow = RandomFourier(5, 40, 2.0, seed), RandomFourier(5, 8, 2.0, seed)
    Z = normal((6, 5))
    assert np.array_equal(wide.transform(Z)[:, :8], narrow.transform(Z))
    assert not np.array_equal(narrow.weights, RandomFourier(5, 8, 2.0, seed + 1).weights)


def test_distributions() -> None:
    relu, fourier = RandomReLU(25, 4000), RandomFourier(25, 4000, 1.0)
    assert np.abs(relu.weights).max() < 1 / 5
    assert relu.weights.var() == pytest.approx(1 / 75, rel=0.02)
    assert fourier.weights.mean() == pytest.approx(0, abs=0.02)
    assert fourier.weights.var() == pytest.approx(1, rel=0.02)
    assert np.histogram(fourier.phases, 8, (0, 2 * np.pi))[0] == pytest.approx(500, rel=0.2)


def test_fourier_features_approximate_their_kernel() -> None:
    Z = normal((30, 6))
    H = RandomFourier(6, 20000, bandwidth=2.0).transform(Z)
    squared = ((Z[:, None] - Z) ** 2).sum(axis=2)
    kernel = np.exp(-squared / (2 * 2.0**2))
    assert np.abs(2 * H @ H.T / 20000 - kernel).max() < 0.04


@given(st.integers(0, 2**32), st.floats(0.5, 50))
@settings(max_examples=25, deadline=None)
def test_fourier_is_the_cosine(seed: int, bandwidth: float) -> None:
    fourier = RandomFourier(9, 30, bandwidth, seed)
    Z = normal((8, 9), seed)
    H = fourier.transform(Z)
    exact = np.cos(Z.astype(np.float64) @ fourier.weights / bandwidth + fourier.phases)
    assert H.dtype == np.float32
    assert np.abs(H).max() <= 1
    assert np.abs(H - exact).max() < 2e-4


@given(st.integers(0, 2**32), st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=25, deadline=None)
def test_fourier_is_the_same_to_the_bit_for_any_batch_and_library(seed: int, cuts: list[int]) -> None:
    fourier = RandomFourier(17, 64, 4.0, seed)
    Z = normal((40, 17), seed)
    whole = fourier.codes(Z)
    assert np.array_equal(np.concatenate([fourier.codes(part) for part in np.split(Z, sorted(cuts))]), whole)
    assert np.array_equal(fourier.codes(Z.astype(np.float64)), whole)
    assert np.array_equal(quantize(fourier.transform(Z)), whole)
    assert np.array_equal(fourier.codes(torch.from_numpy(Z)).numpy(), whole)
    assert np.array_equal(fourier.transform(torch.from_numpy(Z)).numpy(), fourier.transform(Z))


def test_relu_is_what_it_says() -> None:
    relu = RandomReLU(17, 50, seed=3)
    Z = normal((40, 17))
    H = relu.transform(Z)
    assert H.dtype == np.float32
    assert np.abs(H - np.maximum(Z @ relu.weights, 0)).max() < 1e-6
    assert relu.transform(Z.astype(np.float64)).dtype == np.float64
    assert relu.transform(torch.from_numpy(Z)).numpy() == pytest.approx(H, abs=1e-6)
    assert relu.transform(torch.from_numpy(Z).double()).numpy() == pytest.approx(H, abs=1e-6)


@pytest.mark.parametrize("kind", ["relu", "fourier"])
def test_memory_is_bounded_by_blocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features: Any = RandomReLU(4, 10) if kind == "relu" else RandomFourier(4, 10, 1.0)
    Z = normal((23, 4)).astype(np.float64)
    whole = features.transform(Z)
    monkeypatch.setattr(expansion, "BLOCK", 30)
    assert features.transform(Z) == pytest.approx(whole, abs=1e-12)
    assert features.transform(Z[:0]).shape == (0, 10)
    assert features.transform(torch.zeros((0, 4))).shape == (0, 10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_fourier_on_a_gpu_is_the_same_to_the_bit() -> None:
    fourier, Z = RandomFourier(306, 3000, 17.0), normal((500, 306))
    assert np.array_equal(fourier.codes(torch.from_numpy(Z).cuda()).cpu().numpy(), fourier.codes(Z))


def test_constants_cannot_be_changed_and_copies_agree() -> None:
    fourier = RandomFourier(4, 10, 1.0)
    Z = normal((3, 4))
    fourier.transform(torch.from_numpy(Z))  # fills the cache of a device
    for twin in (copy.deepcopy(fourier), pickle.loads(pickle.dumps(fourier))):
        assert np.array_equal(twin.transform(Z), fourier.transform(Z))
    with pytest.raises(ValueError, match="read-only"):
        RandomReLU(2, 2).weights[0, 0] = 1


def test_quantize() -> None:
    H = np.array([[-1.0, -0.5, 0.0, 0.004, 1.0]])
    assert quantize(H).tolist() == [[-127, -64, 0, 1, 127]]
    assert quantize(torch.from_numpy(H)).tolist() == [[-127, -64, 0, 1, 127]]
    assert quantize(H).dtype == np.int8
    for wrong in (np.array([[1.01]]), np.array([[np.nan]]), torch.tensor([[-2.0]])):
        with pytest.raises(ExpansionError, match=r"\[-1, 1\]"):
            quantize(wrong)


@pytest.mark.parametrize(
    ("Z", "reason"),
    [
        (np.zeros((2, 3)), "shape"),
        (np.zeros(4), "shape"),
        (np.full((1, 4), np.nan), "NaN"),
        (torch.full((1, 4), torch.inf), "NaN"),
        (np.array([["a"] * 4]), "real numbers"),
        (np.full((1, 4), 1e5), "bandwidths"),
        (torch.full((1, 4), 1e5), "bandwidths"),
    ],
)
def test_refuses_input(Z: Any, reason: str) -> None:
    with pytest.raises(ExpansionError, match=reason):
        RandomFourier(4, 10, 1.0).transform(Z)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_settings(bandwidth: float) -> None:
    with pytest.raises(ExpansionError, match="bandwidth"):
        RandomFourier(4, 10, bandwidth)
    for sizes in ((0, 10), (4, 0)):
        with pytest.raises(ExpansionError, match="at least 1"):
            RandomReLU(*sizes)
    for seed in (-1, 0.5, True):
        with pytest.raises(ExpansionError, match="seed"):
            RandomReLU(4, 10, seed)  # type: ignore[arg-type]


if __name__ == "__main__":
    for name, digest in golden().items():
        print(f'    "{name}": "{digest}",')
