"""Solutions that are brought up to date after a few rows: the same as anew, up to rounding that is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tytoalba.learning import head as head_module
from tytoalba.learning import solution
from tytoalba.learning.head import AnalyticHead

D, C = 40, 3
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each solution anew leaves a mark; small heads, too, are worth being brought up to date, by 20 rows."""
    marks: list[int] = []
    solve = solution.solve

    def counted(A: Any, B: Any) -> Any:
        marks.append(1)
        return solve(A, B)

    monkeypatch.setattr(solution, "SMALLEST", 1)
    monkeypatch.setattr(solution, "SHARE", 2)
    monkeypatch.setattr(head_module, "solve", counted)
    return marks


def rows(n: int, seed: int, exact: bool = True) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    H, Y = rng.integers(-127, 128, (n, D), dtype=np.int8), rng.integers(0, 128, (n, C), dtype=np.int8)
    return (H, Y) if exact else (H / 127, Y / 127)


def twin(head: AnalyticHead) -> AnalyticHead:
    """Another head of the same sums, which has solved nothing."""
    return head.restored(head.memory())


def apart(head: AnalyticHead, **of: Any) -> float:
    """How far scores are from those solved anew, relative to the largest weight."""
    probe = np.eye(D, dtype=np.int8) if head.exact else np.eye(D)
    unit = 127 if head.exact else 1
    W = twin(head).weights(**of)
    return float(np.abs(unit * head.scores(probe, **of) - W).max() / np.abs(W).max())


@pytest.mark.usefixtures("solved")
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([1e-3, 0.3, 40.0]),
    st.integers(0, 2**32),
)
@quick
def test_brought_up_to_date_is_anew_up_to_rounding(
    steps: list[tuple[bool, int, int]], exact: bool, ridge: float, seed: int
) -> None:
    H, Y = rows(60, seed, exact)
    head = AnalyticHead(D, C, ridge, exact).learn(H, Y, times=3)
    beside = AnalyticHead(D, C, exact=exact).learn(*rows(30, seed + 1, exact))
    head.scores(H[:1], beside=beside)
    first = 0
    for forget, n, times in steps:
        part = slice(first, first + n)
        (head.forget if forget else head.learn)(H[part], Y[part], times=times)
        first += n
        assert apart(head, beside=beside) < 1e-7
    assert twin(head).weights() == pytest.approx(head.weights(), abs=0)  # from the sums alone: the same bits


def test_few_rows_need_no_factor_and_many_do(solved: list[int]) -> None:
    H, Y = rows(200, 0)
    head = AnalyticHead(D, C, exact=True).learn(H, Y)
    head.scores(H[:1])
    assert len(solved) == 1
    for lesson in range(4):
        head.learn(*rows(5, lesson))
        head.scores(H[:1])
    assert len(solved) == 1
    head.learn_parts([rows(1, 5)])  # more than 20 rows since
    head.scores(H[:1])
    assert len(solved) == 2
    head.learn_parts([rows(5, 6), rows(5, 7)]).forget(H[:5], Y[:5])
    assert apart(head) < 1e-7
    assert len(solved) == 3  # that of the twin
    head.learn_parts([rows(5, 6), rows(16, 7)])
    head.scores(H[:1])
    head.merge(AnalyticHead(D, C, exact=True).learn(*rows(1, 8)))  # of sums nobody knows the rows
    head.scores(H[:1])
    assert len(solved) == 5


def test_weights_come_from_the_sums_alone(solved: list[int]) -> None:
    H, Y = rows(200, 0)
    head = AnalyticHead(D, C, exact=True).learn(H, Y)
    before = head.weights()
    head.learn(H[:3], Y[:3])
    head.scores(H)
    head.forget(H[:3], Y[:3])
    head.scores(H)
    assert len(solved) == 1
    assert np.array_equal(head.weights(), before)
    assert len(solved) == 2


@pytest.mark.usefixtures("solved")
def test_other_ridge_and_other_sums_beside_are_solved_anew() -> None:
    H, Y = rows(200, 0)
    head = AnalyticHead(D, C, exact=True).learn(H, Y)
    beside = AnalyticHead(D, C, exact=True).learn(*rows(9, 1))
    for of in ({}, {"ridge": 3.0}, {"beside": beside}):
        head.scores(H[:1], **of)
        head.learn(*rows(2, 3))
        for other in ({}, {"ridge": 3.0}, {"beside": beside}):
            assert apart(head, **other) < 1e-7
    joint = AnalyticHead(D, C, exact=True).merge(head).merge(beside)
    assert np.array_equal(head.weights(beside=beside), joint.weights())


def test_rows_that_made_most_of_what_is_known_are_not_taken_away_by_rounding(solved: list[int]) -> None:
    """With hardly any ridge, K is as good as singular: nothing is brought up to date."""
    H, Y = rows(D, 0, exact=False)
    head = AnalyticHead(D, C, ridge=1e-9).learn(H, Y)
    head.scores(H)
    head.forget(H[:10], Y[:10])
    assert apart(head) < 1e-4
    assert len(solved) == 3  # once before, once anew, once for the twin


def test_factors_of_small_and_huge_heads_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SMALLEST", D + 1), ("KEPT", 8 * D * D - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(solution, name, value)
            head = AnalyticHead(D, C, exact=True).learn(*rows(99, 0))
            head.scores(rows(1, 0)[0])
            assert head._solved
            assert head._solved.solution.factor is None
            head.learn(*rows(1, 1))
            assert apart(head) < 1e-12


def test_solves_in_place() -> None:
    A = np.eye(4) * 4.0
    kept = A
    found = solution.solve(A, np.ones((4, 1)))
    assert found is not None
    assert found.W.tolist() == [[0.25]] * 4
    assert kept[0, 0] == 2.0  # its Cholesky factor
    assert solution.solve(np.zeros((2, 2)), np.ones((2, 1))) is None
