"""Orthogonal, structured and block-wise Fourier features: the right kernel, and the same bits everywhere.

`python tests/test_structured.py` prints the golden hashes; they change only with a new construction.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
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
from tytoalba.learning import structured as structured
from tytoalba.learning.random_features import FourierFeatures, RandomFourier, quantize
from tytoalba.learning.structured import BlockFourier, OrthogonalFourier, StructuredFourier

torch = pytest.importorskip("torch")

GOLDEN = {
    "weights": "22b87c626f70a41a53252052e92c2de74c6194bc8f4b72fa345c5597aee571c9",
    "phases": "bc65f3cbd376007fba7b70b6462d424c8ea487ed29ab11a8ff72f3b97d751206",
    "orthogonal codes": "bf2bfaee6c82fdb02c8bbd7a93db14afffd4fc9d4a5a539f78c2f7da1c02d404",
    "structured codes": "bb7d5785b603bcd5a75d76bed6ec067ddfb4e48c538497bcf7f6c949075dafc9",
    "blocks codes": "43051b7c261d67240ba0d0f9f980e0a1b7e2956f5fe0cb7189e8f0c162836f2d",
}

KINDS = {"orthogonal": OrthogonalFourier, "structured": StructuredFourier}


def make(kind: str, n_inputs: int, n_features: int, bandwidth: float, seed: int = 0) -> Any:
    """One of the kinds of features; "blocks" are two halves of the columns, or one."""
    if kind != "blocks":
        return KINDS[kind](n_inputs, n_features, bandwidth, seed)
    edges = sorted({0, n_inputs // 2, n_inputs})
    halves = list(itertools.starmap(slice, itertools.pairwise(edges)))
    return BlockFourier(halves, n_features, bandwidth, seed, kind=StructuredFourier)


def golden() -> dict[str, str]:
    """SHA-256 of the little-endian bytes of the weights and of the codes of a fixed input."""
    Z = (np.arange(20 * 45).reshape(20, 45) * 37 % 101 - 50) / 16
    arrays: dict[str, NDArray[Any]] = {
        "weights": OrthogonalFourier(45, 200, 7.0, seed=7).weights.astype("<f4"),
        "phases": StructuredFourier(45, 200, 7.0, seed=7).phases.astype("<f4"),
        **{f"{kind} codes": make(kind, 45, 200, 7.0, 7).codes(Z) for kind in (*KINDS, "blocks")},
    }
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}


def normal(shape: tuple[int, int], seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def gaussian_kernel(Z: NDArray[Any], bandwidth: float) -> NDArray[np.float64]:
    squared = ((Z[:, None].astype(np.float64) - Z) ** 2).sum(axis=2)
    kernel: NDArray[np.float64] = np.exp(-squared / (2 * bandwidth**2))
    return kernel


def kernel_error(features: Any, Z: NDArray[Any], kernel: NDArray[np.float64]) -> float:
    """Root mean square over the pairs of different rows."""
    H = features.transform(Z).astype(np.float64)
    wrong = 2 * H @ H.T / features.n_features - kernel
    return float(np.sqrt((wrong[~np.eye(len(Z), dtype=bool)] ** 2).mean()))


def test_same_numbers_as_ever() -> None:
    assert golden() == GOLDEN


def test_weights_follow_their_description() -> None:
    """The construction again, in plain Python and without numpy or scipy."""
    n_inputs, n_features, d = 3, 40, 32
    stream = hashlib.shake_256(b"tytoalba/orthogonal/signs/3/11").digest(2 * 3 * d // 8)
    signs = [1 - 2 * (byte >> bit & 1) for byte in stream for bit in range(8)]
    stream = hashlib.shake_256(b"tytoalba/orthogonal/lengths/3/11").digest(2 * d * n_features)
    quantile = statistics.NormalDist().inv_cdf
    weights = OrthogonalFourier(n_inputs, n_features, bandwidth=1.0, seed=11).weights
    for feature in range(n_features):
        words = [
            int.from_bytes(stream[2 * i : 2 * i + 2], "little") for i in range(feature * d, (feature + 1) * d)
        ]
        squares = sum(round(quantile((word + 0.5) / 65536) * 65536) ** 2 for word in words)
        block, row = divmod(feature, d)
        x = [(-1) ** (row & j).bit_count() for j in range(d)]  # a row of H, then of H D1 H, ...
        for k in (0, 1, 2):
            x = [x[j] * signs[(3 * block + k) * d + j] for j in range(d)]
            if k < 2:
                x = [sum(x[i] * (-1) ** (i & j).bit_count() for i in range(d)) for j in range(d)]
        expected = [round(x[j] * math.sqrt(squares / d**3)) / 65536 for j in range(n_inputs)]
        assert weights[:, feature].tolist() == expected


@pytest.mark.parametrize("n_inputs", [32, 64, 512])
def test_directions_are_orthogonal_in_blocks_and_as_long_as_gaussian_ones(n_inputs: int) -> None:
    W = OrthogonalFourier(n_inputs, 3 * n_inputs, 1.0, seed=1).weights.astype(np.float64)
    lengths = np.linalg.norm(W, axis=0)
    cosines = np.abs(W.T @ W / np.outer(lengths, lengths) - np.eye(3 * n_inputs))
    for start in range(0, 3 * n_inputs, n_inputs):
        assert cosines[start : start + n_inputs, start : start + n_inputs].max() < 1e-4
    assert cosines.max() > 0.1  # other blocks have other directions
    assert (lengths**2).mean() == pytest.approx(n_inputs, rel=0.06)
    assert (lengths**2).var() == pytest.approx(2 * n_inputs, rel=0.4)  # chi squared


@pytest.mark.parametrize("n_inputs", [1, 2, 7, 32, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_error_of_the_kernel_falls_as_one_over_the_root_of_features(kind: str, n_inputs: int) -> None:
    Z, bandwidth = normal((20, n_inputs)), math.sqrt(n_inputs)
    kernel = gaussian_kernel(Z, bandwidth)
    for n_features in (320, 5120):
        maps = [make(kind, n_inputs, n_features, bandwidth, seed) for seed in range(4)]
        error = statistics.fmean(kernel_error(features, Z, kernel) for features in maps)
        assert 0.3 < error * math.sqrt(n_features) < 1.1  # of independent features, 0.7 to 1


@pytest.mark.parametrize(("n_inputs", "n_features"), [(32, 128), (64, 64), (64, 256)])
def test_orthogonal_directions_make_a_better_kernel(n_inputs: int, n_features: int) -> None:
    Z, bandwidth = normal((20, n_inputs), seed=5), math.sqrt(n_inputs)
    kernel = gaussian_kernel(Z, bandwidth)

    def mean_square(kind: type[FourierFeatures]) -> float:
        maps = (kind(n_inputs, n_features, bandwidth, seed) for seed in range(40))
        return statistics.fmean(kernel_error(features, Z, kernel) ** 2 for features in maps)

    assert mean_square(OrthogonalFourier) < 0.85 * mean_square(RandomFourier)


@given(st.integers(1, 70), st.integers(1, 150), st.integers(0, 2**32), st.floats(0.5, 50))
@settings(max_examples=25, deadline=None)
def test_structured_is_orthogonal_is_the_cosine(
    n_inputs: int, n_features: int, seed: int, scale: float
) -> None:
    bandwidth = scale * math.sqrt(n_inputs)
    dense, fast = (make(kind, n_inputs, n_features, bandwidth, seed) for kind in KINDS)
    Z = normal((8, n_inputs), seed)
    exact = np.cos(Z.astype(np.float64) @ dense.weights / bandwidth + dense.phases)
    for features in (dense, fast):
        H = features.transform(Z)
        assert H.dtype == np.float32
        assert np.abs(H).max() <= 1
        assert np.abs(H - exact).max() < 3e-4
    assert np.array_equal(dense.phases, fast.phases)


@given(st.integers(0, 2**20), st.integers(1, 40))
@settings(max_examples=15, deadline=None)
def test_structured_is_exact_up_to_its_bound(seed: int, n_inputs: int) -> None:
    """The transform of whole numbers almost too far, against Python's whole numbers of any size."""
    features = StructuredFourier(n_inputs, 70, 1.0, seed)
    d = features.order
    row = np.random.default_rng(seed).dirichlet(np.ones(n_inputs))
    steps = np.floor(row * min(features._farthest, 2.0**53 / d**1.5) * 0.999)
    here = features._constants.beside(steps)
    padded = np.zeros((d, 1))
    padded[:n_inputs, 0] = steps
    fast = structured._rotate(padded, here["signs"], here["hadamard"]).reshape(-1)
    hadamard = [[(-1) ** (i & j).bit_count() for j in range(d)] for i in range(d)]
    for block in range(len(fast) // d):
        x = [int(step) for step in padded[:, 0]]
        for k in (2, 1, 0):
            x = [int(sign) * value for sign, value in zip(here["signs"][k, block, :, 0], x, strict=True)]
            x = [sum(h * value for h, value in zip(line, x, strict=True)) for line in hadamard]
        assert [int(value) for value in fast[block * d : (block + 1) * d]] == x
        assert max(map(abs, x)) < 2**53
    assert np.abs(features._turns(steps[None], here)).max() < 2**30


@pytest.mark.parametrize("kind", [*KINDS, "blocks"])
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 40), max_size=4), n_inputs=st.integers(1, 70))
@settings(max_examples=15, deadline=None)
def test_the_same_to_the_bit_for_any_batch_and_library(
    kind: str, seed: int, cuts: list[int], n_inputs: int
) -> None:
    features = make(kind, n_inputs, 75, 4.0, seed)
    Z = normal((40, n_inputs), seed)
    whole = features.codes(Z)
    assert whole.dtype == np.int8
    assert np.array_equal(np.concatenate([features.codes(part) for part in np.split(Z, sorted(cuts))]), whole)
    assert np.array_equal(features.codes(Z.astype(np.float64)), whole)
    assert np.array_equal(features.codes(np.asfortranarray(Z)), whole)
    assert np.array_equal(quantize(features.transform(Z)), whole)
    assert np.array_equal(features.codes(torch.from_numpy(Z)).numpy(), whole)
    assert np.array_equal(features.transform(torch.from_numpy(Z)).numpy(), features.transform(Z))


@pytest.mark.parametrize("kind", [*KINDS, "blocks"])
def test_memory_is_bounded_by_blocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features, Z = make(kind, 4, 10, 1.0), normal((23, 4))
    whole = features.codes(Z)
    for module, name in ((expansion, "BLOCK"), (structured, "BLOCK"), (structured, "CACHED")):
        monkeypatch.setattr(module, name, 90)
    assert np.array_equal(features.codes(Z), whole)
    assert np.array_equal(features.codes(torch.from_numpy(Z)).numpy(), whole)
    assert features.transform(Z[:0]).shape == (0, 10)
    assert features.transform(torch.zeros((0, 4))).shape == (0, 10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", [*KINDS, "blocks"])
def test_on_a_gpu_the_same_to_the_bit(kind: str) -> None:
    features, Z = make(kind, 306, 3000, 17.0), normal((500, 306))
    assert np.array_equal(features.codes(torch.from_numpy(Z).cuda()).cpu().numpy(), features.codes(Z))


@given(st.integers(1, 70), st.integers(1, 80), st.integers(0, 80), st.integers(0, 2**64 + 1))
@settings(max_examples=20, deadline=None)
def test_first_features_of_a_wide_map_are_those_of_a_narrow_one(
    n_inputs: int, narrow: int, more: int, seed: int
) -> None:
    Z = normal((3, n_inputs))
    for kind in KINDS:
        wide = make(kind, n_inputs, narrow + more, 3.0, seed).transform(Z)
        assert np.array_equal(wide[:, :narrow], make(kind, n_inputs, narrow, 3.0, seed).transform(Z))
    wide, slim = (
        make("blocks", n_inputs, 2 * (narrow + more), 3.0, seed),
        make("blocks", n_inputs, 2 * narrow, 3.0, seed),
    )
    for mine, theirs in zip(slim.slices, wide.slices, strict=True):
        first = wide.transform(Z)[:, theirs][:, : mine.stop - mine.start]
        assert np.array_equal(slim.transform(Z)[:, mine], first)


@pytest.mark.parametrize("kind", [RandomFourier, OrthogonalFourier, StructuredFourier])
def test_blocks_are_their_parts_side_by_side(kind: type[FourierFeatures]) -> None:
    blocks = [slice(0, 30), slice(10, 50, 2), slice(-10, None)]
    features = BlockFourier(blocks, 97, [5.0, 2.0, 3.0], seed=3, shares=[1, 2.5, 1], kind=kind, n_inputs=60)
    assert features.n_features_by_block == (22, 53, 22)
    assert features.bandwidths == (5.0, 2.0, 3.0)
    assert BlockFourier(blocks, 9, np.float32(2), n_inputs=60, kind=kind).bandwidths == (2.0, 2.0, 2.0)  # type: ignore[arg-type]
    assert [part.n_inputs for part in features.parts] == [30, 20, 10]
    Z = normal((5, 60))
    H = np.hstack([part.transform(Z[:, block]) for part, block in zip(features.parts, blocks, strict=True)])
    assert np.array_equal(features.transform(Z), H)
    assert np.array_equal(features.transform(torch.from_numpy(Z)).numpy(), H)


def test_blocks_approximate_the_sum_of_their_kernels() -> None:
    Z = normal((20, 40))
    features = BlockFourier([slice(0, 32), slice(32, 40)], 16000, [6.0, 2.0], shares=[3, 1])
    kernel = 0.75 * gaussian_kernel(Z[:, :32], 6.0) + 0.25 * gaussian_kernel(Z[:, 32:], 2.0)
    assert kernel_error(features, Z, kernel) < 0.012


def test_blocks_do_not_repeat_each_other() -> None:
    twice = BlockFourier([slice(0, 8), slice(0, 8)], 200, 2.0)
    H = twice.transform(normal((300, 8)))
    assert twice.parts[0].seed != twice.parts[1].seed
    assert not np.array_equal(H[:, :100], H[:, 100:])
    one = BlockFourier([slice(0, 8)], 100, 2.0)
    assert np.array_equal(one.transform(normal((300, 8))), H[:, :100])


@pytest.mark.parametrize("kind", [*KINDS, "blocks"])
def test_copies_agree(kind: str) -> None:
    features, Z = make(kind, 4, 10, 1.0), normal((3, 4))
    features.transform(torch.from_numpy(Z))  # fills the cache of a device
    for twin in (copy.deepcopy(features), pickle.loads(pickle.dumps(features))):
        assert np.array_equal(twin.transform(Z), features.transform(Z))


@pytest.mark.parametrize("kind", [*KINDS, "blocks"])
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
def test_refuses_input(kind: str, Z: Any, reason: str) -> None:
    with pytest.raises(ExpansionError, match=reason):
        make(kind, 4, 10, 1.0).transform(Z)


@pytest.mark.parametrize("kind", [*KINDS, "blocks"])
def test_refuses_settings(kind: str) -> None:
    for bandwidth in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ExpansionError, match="bandwidth"):
            make(kind, 4, 10, bandwidth)
    with pytest.raises(ExpansionError, match="at least 1"):
        make(kind, 4, 0, 1.0)
    for seed in (-1, 0.5, True):
        with pytest.raises(ExpansionError, match="seed"):
            make(kind, 4, 10, 1.0, seed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"blocks": []}, "n_inputs"),
        ({"blocks": [slice(0, 4), slice(4, None)]}, "n_inputs"),
        ({"blocks": [slice(0, 4), slice(0, -1)]}, "n_inputs"),
        ({"blocks": [slice(0, 4), slice(4, 4)]}, "columns"),
        ({"blocks": [slice(0, 4), slice(4, 0, -1)], "n_inputs": 4}, "columns"),
        ({"blocks": [slice(0, 4), slice(4, 9)], "n_inputs": 8}, "columns"),
        ({"bandwidths": [1.0]}, "2 blocks, 1 bandwidths and 2 shares"),
        ({"shares": [1, 1, 1]}, "2 blocks, 2 bandwidths and 3 shares"),
        ({"shares": [1, 0]}, "positive"),
        ({"shares": [1, math.nan]}, "positive"),
        ({"shares": [1, 100]}, "without any"),
        ({"n_features": 1}, "without any"),
        ({"blocks": [], "bandwidths": [], "n_inputs": 4}, "at least one"),
    ],
)
def test_refuses_blocks(arguments: dict[str, Any], reason: str) -> None:
    good: dict[str, Any] = {"blocks": [slice(0, 4), slice(4, 8)], "n_features": 10, "bandwidths": [1.0, 2.0]}
    with pytest.raises(ExpansionError, match=reason):
        BlockFourier(**(good | arguments))


if __name__ == "__main__":
    for name, digest in golden().items():
        print(f'    "{name}": "{digest}",')
