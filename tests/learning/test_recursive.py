"""Theorem 1 of the SSL-CIL paper, equation by equation, with its slips shown and corrected.

Theorem 1 says that the recursion over phases gives the joint ridge solution. It does, with the inverse that
print lost, and with labels of all outputs from the start; the printed forms are kept here, as what not to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.errors import HeadError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.random_features import RandomReLU
from tytoalba.learning.recursive import RecursiveHead
from tytoalba.signal.angles import encode

Float = NDArray[np.floating[Any]]
quick = settings(max_examples=30, deadline=None)
N_PHASES, SECTOR = 10, 36
ETA = 0.1


def joint(H: Float, Y: Float, eta: float = ETA) -> Float:
    """W = (H'H + eta I)^-1 H'Y over all rows at once."""
    return np.linalg.solve(H.T @ H + eta * np.eye(H.shape[1]), H.T @ Y)


def apart(a: Float, b: Float) -> float:
    """Largest difference, relative to the largest value of b."""
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


def phases(sources_per_frame: int = 1, n: int = 30, D: int = 40) -> tuple[list[Float], list[Float]]:
    """Expanded features and azimuths of ten phases: phase k has its last source in [36 k, 36 k + 36)."""
    rng = np.random.default_rng(0)
    relu = RandomReLU(8, D, seed=1)
    H, azimuth = [], []
    for k in range(N_PHASES):
        a = rng.integers(SECTOR * k, SECTOR * (k + 1), (n, sources_per_frame)).astype(float)
        a[:, 1:] = rng.integers(0, SECTOR * (k + 1), (n, sources_per_frame - 1))
        rad = np.deg2rad(a[:, :1] * [1, 1, 2, 2, 3, 3, 4, 4] + [0, 90] * 4)
        H.append(relu.transform(np.cos(rad) + 0.1 * rng.standard_normal((n, 8))))
        azimuth.append(a)
    return H, azimuth


def printed_r(R: Float, H: Float) -> Float:
    """R_k as printed: the inverse of (I + H R H') is missing."""
    return R - R @ H.T @ (np.eye(len(H)) + H @ R @ H.T) @ H @ R


def printed_columns(H: list[Float], Y: list[Float]) -> Float:
    """W_k as printed: [W - R_k H'H W, R_k H'Y_k], where Y_k holds the columns of phase k and no others."""
    D = H[0].shape[1]
    G, W = ETA * np.eye(D), np.zeros((D, 0))
    for h, y in zip(H, Y, strict=True):
        G = G + h.T @ h
        R = np.linalg.inv(G)
        W = np.hstack([W - R @ h.T @ (h @ W), R @ (h.T @ y)])
    return W


def sector(Y: Float, k: int) -> Float:
    """The columns of phase k."""
    return Y[:, SECTOR * k : SECTOR * (k + 1)]


# ---- the two recursions


@given(st.integers(0, 2**32), st.integers(1, 15), st.integers(1, 12), st.floats(0.01, 10))
@quick
def test_r_is_the_inverse(seed: int, n: int, D: int, eta: float) -> None:
    """R_k = R - R H'(I + H R H')^-1 H R = (sum H'H + eta I)^-1, phase after phase."""
    rng = np.random.default_rng(seed)
    head, G = RecursiveHead(D, 1, eta), eta * np.eye(D)
    for _ in range(3):
        H = rng.standard_normal((n, D))
        head.learn(H, np.zeros((n, 1)))
        G += H.T @ H
        assert apart(head.R, np.linalg.inv(G)) < 1e-8


@given(
    st.integers(0, 2**32), st.integers(0, 30), st.lists(st.integers(0, 30), max_size=4), st.integers(1, 40)
)
@quick
def test_recursive_is_accumulated_is_joint(seed: int, n: int, cuts: list[int], batch_size: int) -> None:
    """W_k = W + R_k H'(Y - H W) for any order, split and batch."""
    rng = np.random.default_rng(seed)
    H, Y = rng.standard_normal((n, 8)), rng.random((n, 5))
    order = np.split(rng.permutation(n), sorted(min(cut, n) for cut in cuts))
    recursive, accumulated = RecursiveHead(8, 5, ETA), AnalyticHead(8, 5, ETA)
    for part in order:
        recursive.learn(H[part], Y[part], batch_size)
        accumulated.learn(H[part], Y[part])
    assert apart(recursive.W, joint(H, Y)) < 1e-8
    assert apart(accumulated.weights(), joint(H, Y)) < 1e-8
    assert recursive.scores(H) == pytest.approx(accumulated.scores(H), abs=1e-8)


def test_ten_phases_of_directions_give_the_joint_solution() -> None:
    H, azimuth = phases(sources_per_frame=2)
    recursive, accumulated = RecursiveHead(40, 360, ETA), AnalyticHead(40, 360, ETA)
    for k, (h, a) in enumerate(zip(H, azimuth, strict=True)):
        recursive.learn(h, encode(a))
        accumulated.learn(h, encode(a).astype(np.float64))
        seen = joint(np.vstack(H[: k + 1]), np.vstack([encode(a) for a in azimuth[: k + 1]]))
        assert apart(recursive.W, seen) < 1e-8
        assert apart(accumulated.weights(), seen) < 1e-8


# ---- what is printed


def test_printed_r_without_its_inverse_is_wrong() -> None:
    """After three phases by 40 orders of magnitude; after six it overflows float64."""
    H, azimuth = phases()
    G: Float = ETA * np.eye(40)
    R: Float = np.eye(40) / ETA
    for h in H[:3]:
        G += h.T @ h
        R = printed_r(R, h)
        assert apart(R, np.linalg.inv(G)) > 1e3
    assert apart(R, np.linalg.inv(G)) > 1e40
    first = printed_r(np.eye(40) / ETA, H[0]) @ (H[0].T @ encode(azimuth[0]))
    assert apart(first, joint(H[0], encode(azimuth[0]))) > 1e3


def test_printed_columns_are_right_for_disjoint_labels() -> None:
    """One-hot labels: the columns of a phase are zero in all other phases, and both forms agree."""
    H, azimuth = phases()
    one_hot = [np.eye(360)[a[:, 0].astype(int)] for a in azimuth]
    expected = joint(np.vstack(H), np.vstack(one_hot))
    assert apart(printed_columns(H, [sector(y, k) for k, y in enumerate(one_hot)]), expected) < 1e-8
    full = RecursiveHead(40, 360, ETA)
    for h, y in zip(H, one_hot, strict=True):
        full.learn(h, y)
    assert apart(full.W, expected) < 1e-8


@pytest.mark.parametrize("sources_per_frame", [1, 2])
def test_printed_columns_are_wrong_for_gaussian_labels(sources_per_frame: int) -> None:
    """A Gaussian label spills over the edge of its sector, and a second source lies in another one."""
    H, azimuth = phases(sources_per_frame)
    Y = [encode(a) for a in azimuth]
    expected = joint(np.vstack(H), np.vstack(Y))
    printed = printed_columns(H, [sector(y, k) for k, y in enumerate(Y)])
    assert apart(printed, expected) > 0.05
    inside = slice(SECTOR * 4 + 18, SECTOR * 4 + 19)  # in the middle of a sector one source spills nothing
    if sources_per_frame == 1:
        assert apart(printed[:, inside], expected[:, inside]) < 0.05


# ---- behaviour of the recursive head


def test_batches_leave_no_trace_and_inputs_are_not_kept() -> None:
    rng = np.random.default_rng(0)
    H, Y = rng.standard_normal((30, 6)), rng.random((30, 2))
    head = RecursiveHead(6, 2, ETA).learn(H, Y, batch_size=7).learn(H[:0], Y[:0])
    kept = head.memory()
    assert sorted(kept) == ["R", "W"]
    assert kept["W"] == pytest.approx(joint(H, Y), abs=1e-8)
    kept["W"][:] = 0
    H[:] = 0
    assert head.W.any()
    assert np.array_equal(head.R, head.R.T)


def test_refusals_leave_it_as_it_was() -> None:
    rng = np.random.default_rng(0)
    H, Y = rng.standard_normal((4, 3)), rng.random((4, 2))
    head = RecursiveHead(3, 2, ETA).learn(H, Y)
    before = head.memory()
    late = np.vstack([H, H])
    late[-1, 0] = 1e200  # fails in its second batch only
    for h, y, batch_size, reason in [
        (H * np.nan, Y, 512, "NaN"),
        (H[:, 1:], Y, 512, "shape"),
        (H, Y[1:], 512, "needs its label"),
        (H, Y, 0, "batch_size"),
        (late, np.vstack([Y, Y]), 4, "lost its digits"),
    ]:
        with pytest.raises(HeadError, match=reason), np.errstate(over="ignore", invalid="ignore"):
            head.learn(h, y, batch_size)
    assert all(np.array_equal(before[name], array) for name, array in head.memory().items())
    for eta in (0.0, -1.0, float("nan")):
        with pytest.raises(HeadError, match="ridge"):
            RecursiveHead(3, 2, eta)
    with pytest.raises(HeadError, match="at least 1"):
        RecursiveHead(0, 2)
