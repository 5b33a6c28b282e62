"""The ridge chosen from sums: equal to what the rows themselves would say, and near the best there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tytoalba.errors import HeadError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.ridge import (
    ALPHAS,
    _by_cholesky,
    _by_tridiagonal,
    choose_ridge,
    generalised_cross_validation,
    held_out_error,
)

torch = pytest.importorskip("torch")
DEVICES = [None, "cpu", *(["cuda"] if torch.cuda.is_available() else [])]
RIDGES = [0.05, 0.7, 3.0, 40.0]
quick = settings(max_examples=30, deadline=None)
kinds = pytest.mark.parametrize(
    ("exact", "device"), [(exact, device) for exact in (True, False) for device in DEVICES]
)


def rows(n: int, D: int, C: int, exact: bool, seed: int) -> tuple[Any, Any, Any, Any]:
    """Rows as a head takes them, and as real numbers."""
    rng = np.random.default_rng(seed)
    if exact:
        H = rng.integers(-127, 128, (n, D), dtype=np.int8)
        Y = rng.integers(0, 128, (n, C), dtype=np.int8)
        return H, Y, H / 127, Y / 127
    h, y = rng.standard_normal((n, D)), rng.random((n, C))
    return h, y, h, y


def hat(h: NDArray[np.float64], eta: float) -> NDArray[np.float64]:
    """S (n, n), from the rows."""
    S: NDArray[np.float64] = h @ np.linalg.inv(h.T @ h + eta * np.eye(h.shape[1])) @ h.T
    return S


def problem(
    n: int, D: int, noise: float, seed: int, prior: float = 1.0, C: int = 8
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """H, noisy Y, and the true weights of variance prior^2: the best ridge is (noise / prior)^2."""
    rng = np.random.default_rng(seed)
    H, W = rng.standard_normal((n, D)), prior * rng.standard_normal((D, C))
    return H, H @ W + noise * rng.standard_normal((n, C)), W


# ---- equalities


@kinds
@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32))
@quick
def test_gcv_is_that_of_the_rows(exact: bool, device: str | None, n: int, D: int, C: int, seed: int) -> None:
    H, Y, h, y = rows(n, D, C, exact, seed)
    head = AnalyticHead(D, C, exact=exact, device=device).learn(H, Y)
    expected = []
    for eta in RIDGES:
        S = hat(h, eta)
        expected.append(n * ((y - S @ y) ** 2).sum() / (n - np.trace(S)) ** 2)
    assert generalised_cross_validation(head, RIDGES) == pytest.approx(np.array(expected), rel=1e-7)


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32))
@quick
def test_both_routes_agree(n: int, D: int, C: int, seed: int) -> None:
    H, Y, *_ = rows(n, D, C, True, seed)
    head = AnalyticHead(D, C, exact=True, device="cpu").learn(H, Y)
    etas = np.array(RIDGES)
    routes = [np.array(list(route(head.statistics(), etas))) for route in (_by_cholesky, _by_tridiagonal)]
    assert routes[0] == pytest.approx(routes[1], rel=1e-7, abs=1e-9)


@kinds
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 9), st.integers(0, 2**32))
@quick
def test_held_out_error_is_that_of_the_rows(
    exact: bool, device: str | None, n: int, n_held: int, D: int, seed: int
) -> None:
    H, Y, h, y = rows(n, D, 3, exact, seed)
    H_v, Y_v, h_v, y_v = rows(n_held, D, 3, not exact, seed + 1)  # of the other kind, in the other place
    head = AnalyticHead(D, 3, exact=exact, device=device).learn(H, Y)
    held = AnalyticHead(D, 3, exact=not exact, device=None if device else "cpu").learn(H_v, Y_v)
    expected = []
    for eta in RIDGES:
        W = np.linalg.solve(h.T @ h + eta * np.eye(D), h.T @ y)
        expected.append(((y_v - h_v @ W) ** 2).sum() / n_held)
    assert held_out_error(head, held, RIDGES) == pytest.approx(np.array(expected), rel=1e-7)


def test_gcv_is_leave_one_out_where_all_rows_weigh_the_same() -> None:
    """On a circulant design every diagonal entry of S is tr S / n: GCV is leave-one-out to rounding."""
    rng, n = np.random.default_rng(0), 24
    angle_rad = 2 * np.pi * np.outer(np.arange(n), np.arange(1, 6)) / n
    H, Y = np.hstack([np.cos(angle_rad), np.sin(angle_rad)]), rng.standard_normal((n, 2))
    explicit = []
    for eta in RIDGES:
        error = 0.0
        for i in range(n):
            others = np.arange(n) != i
            W = np.linalg.solve(H[others].T @ H[others] + eta * np.eye(10), H[others].T @ Y[others])
            error += ((Y[i] - H[i] @ W) ** 2).sum() / n
        explicit.append(error)
    head = AnalyticHead(10, 2).learn(H, Y)
    assert generalised_cross_validation(head, RIDGES) == pytest.approx(np.array(explicit), rel=1e-9)


def test_gcv_is_near_leave_one_out_on_random_rows() -> None:
    H, Y, _ = problem(120, 30, 2.0, seed=3)
    explicit = []
    for eta in RIDGES:
        S = hat(H, eta)  # the known short cut: the residual over 1 - S_ii
        explicit.append((((Y - S @ Y) / (1 - np.diag(S))[:, None]) ** 2).sum() / len(H))
    scores = generalised_cross_validation(AnalyticHead(30, 8).learn(H, Y), RIDGES)
    assert scores == pytest.approx(np.array(explicit), rel=0.05)
    assert np.argmin(scores) == np.argmin(explicit)


@given(st.integers(0, 2**32), st.permutations(range(12)), st.integers(0, 12))
@quick
def test_the_choice_does_not_depend_on_order_or_batches(seed: int, order: list[int], cut: int) -> None:
    H, Y, *_ = rows(12, 6, 2, True, seed)
    joint = AnalyticHead(6, 2, exact=True).learn(H, Y)
    cut_up = AnalyticHead(6, 2, exact=True).learn(H[order[:cut]], Y[order[:cut]])
    cut_up.merge(AnalyticHead(6, 2, exact=True).learn(H[order[cut:]], Y[order[cut:]]))
    scores, again = (generalised_cross_validation(head, RIDGES) for head in (joint, cut_up))
    assert np.array_equal(scores, again)
    assert choose_ridge(joint, ridges=RIDGES) == choose_ridge(cut_up, ridges=RIDGES)


# ---- the choice


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [50, 300])  # fewer and more rows than features
@pytest.mark.parametrize(("noise", "prior"), [(1.0, 1.0), (6.0, 1.0), (10.0, 0.5)])
def test_the_choice_is_near_the_oracle(device: str | None, n: int, noise: float, prior: float) -> None:
    ridges, D, best = np.logspace(-2, 4, 37), 80, (noise / prior) ** 2
    for seed in range(4):
        H, Y, truth = problem(n, D, noise, seed, prior)
        head = AnalyticHead(D, 8, device=device).learn(H, Y)
        held = AnalyticHead(D, 8, device=device).learn(*_fresh(truth, noise, seed))
        for chosen in (choose_ridge(head, ridges=ridges), choose_ridge(head, held, ridges)):
            assert n < D or best / 3 < chosen < best * 3  # with few rows the error is flat
            found = (torch.as_tensor(head.weights(eta)).cpu().numpy() for eta in (chosen, best))
            risk = [((weights - truth) ** 2).sum() for weights in found]
            assert risk[0] < 1.1 * risk[1]


def _fresh(
    truth: NDArray[np.float64], noise: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed + 1000)
    H = rng.standard_normal((400, len(truth)))
    return H, H @ truth + noise * rng.standard_normal((400, truth.shape[1]))


def test_more_noise_asks_for_a_larger_ridge() -> None:
    chosen = []
    for noise in (0.0, 1.0, 5.0, 25.0):
        H, Y, _ = problem(200, 40, noise, seed=1)
        chosen.append(choose_ridge(AnalyticHead(40, 8).learn(H, Y)))
    assert chosen == sorted(chosen)
    assert chosen[0] == ALPHAS[0] * 20
    assert chosen[-1] == ALPHAS[-1] * 20


def test_the_default_grid_is_relative_to_half_the_features() -> None:
    assert ALPHAS[[0, -1]] == pytest.approx([1e-3, 10.0])
    H, Y, *_ = rows(40, 6, 2, True, 0)
    assert choose_ridge(AnalyticHead(6, 2, exact=True).learn(H, Y)) in ALPHAS * 3


def test_choosing_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    H, Y, *_ = rows(20, 6, 2, True, 0)
    head = AnalyticHead(6, 2, ridge=0.3, exact=True).learn(H, Y)
    held = AnalyticHead(6, 2, exact=True).learn(H[:5], Y[:5])
    W, before = head.weights(), {name: array.copy() for name, array in head.memory().items()}
    choose_ridge(head)
    choose_ridge(head, held)
    monkeypatch.setattr("tytoalba.learning.head.cholesky_solve", None)  # what was solved is still there
    assert np.array_equal(head.weights(), W)
    assert head.ridge == 0.3
    assert all(np.array_equal(array, before[name]) for name, array in head.memory().items())


# ---- refusals


@pytest.mark.parametrize("device", DEVICES)
def test_empty_statistics_are_refused(device: str | None) -> None:
    H, Y, *_ = rows(9, 4, 2, True, 0)
    fresh = AnalyticHead(4, 2, exact=True, device=device)
    head = AnalyticHead(4, 2, exact=True, device=device).learn(H, Y)
    for held in (None, head):
        with pytest.raises(HeadError, match=r"this head has learned nothing \(n = 0\)"):
            choose_ridge(fresh, held)
    with pytest.raises(HeadError, match="held-out head has learned nothing"):
        choose_ridge(head, fresh)
    with pytest.raises(HeadError, match="this head has learned nothing"):
        choose_ridge(head.forget(H, Y))
    with pytest.raises(HeadError, match="all labels of the 9 rows are zero"):
        choose_ridge(fresh.learn(H, Y * 0))


def test_wrong_ridges_and_strangers_are_refused() -> None:
    H, Y, *_ = rows(9, 4, 2, True, 0)
    head = AnalyticHead(4, 2, exact=True).learn(H, Y)
    wrong: list[Any] = [[], [0.0], [-1.0], [np.nan], [np.inf], 1.0, [[1.0]]]
    for ridges in wrong:
        with pytest.raises(HeadError, match="list of positive numbers"):
            choose_ridge(head, ridges=ridges)
    for other in (AnalyticHead(5, 2), AnalyticHead(4, 3)):
        with pytest.raises(HeadError, match=r"\(4, 2\), got"):
            choose_ridge(head, other)


@pytest.mark.parametrize("device", DEVICES)
def test_a_fit_through_every_row_is_not_judged_by_them(device: str | None) -> None:
    H, Y, *_ = rows(5, 30, 2, False, 0)  # fewer rows than features
    head = AnalyticHead(30, 2, device=device).learn(H, Y)
    scores = generalised_cross_validation(head, [1e-9, 1.0])
    assert np.isinf(scores[0])
    assert np.isfinite(scores[1])
    assert choose_ridge(head, ridges=[1e-9, 1.0]) == 1.0
    with pytest.raises(HeadError, match="goes through all 5 rows"):
        choose_ridge(head, ridges=[1e-10, 1e-9])


@pytest.mark.parametrize("device", DEVICES)
def test_sums_that_no_rows_have_are_refused(device: str | None) -> None:
    head = AnalyticHead(3, 1, device=device).learn(np.eye(3), np.ones((3, 1)))
    head._sums.G[0, 0] = -5.0
    with pytest.raises(HeadError, match="not positive definite"):
        choose_ridge(head, ridges=[1.0])
    sums = AnalyticHead(3, 1, device="cpu").merge(head).statistics()
    with pytest.raises(HeadError, match="not positive definite"):
        list(_by_cholesky(sums, np.array([1.0])))
