"""What releases spend: dp-accounting's numbers, added up over a ledger."""

from __future__ import annotations

from math import ceil, exp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

dp_accounting = pytest.importorskip("dp_accounting")

from tytoalba.errors import MissingExtraError, TytoError  # noqa: E402
from tytoalba.localizer import budget  # noqa: E402
from tytoalba.localizer.budget import (  # noqa: E402
    budget_in,
    epsilon_of,
    left_of,
    needed_noise,
    require_left,
    spent_by,
    spent_in,
)
from tytoalba.localizer.offsets import BOUND  # noqa: E402


def step(what: str, **about: Any) -> Any:
    return SimpleNamespace(what=what, about=about)


def test_noise_is_what_dp_accounting_calibrates() -> None:
    for epsilon in (0.5, 3.0, 10.0):
        found = dp_accounting.calibrate_dp_mechanism(
            dp_accounting.rdp.RdpAccountant, dp_accounting.GaussianDpEvent, epsilon, 1e-6
        )
        assert needed_noise(epsilon, 1e-6) == pytest.approx(found, rel=1e-5)
        assert epsilon_of(spent_by(needed_noise(epsilon, 1e-6)), 1e-6) <= epsilon


def test_the_noise_keeps_its_promise_by_another_formula() -> None:
    """That of Balle and Wang (2018) for real noise, and sums over whole numbers for the noise drawn here."""
    for epsilon, delta in ((0.5, 1e-6), (3.0, 1e-6), (10.0, 1e-6), (3.0, 1e-9), (1.0, 1e-3)):
        noise = needed_noise(epsilon, delta)
        exact = ndtr(0.5 / noise - epsilon * noise) - exp(epsilon) * ndtr(-0.5 / noise - epsilon * noise)
        assert 0.01 * delta < exact <= delta
        sigma = ceil(noise * BOUND)
        x = np.arange(-12 * sigma, 12 * sigma + BOUND, dtype=np.float64)
        one, other = (np.exp(-0.5 * ((x - shift) / sigma) ** 2) for shift in (0, BOUND))
        drawn = np.maximum(one - exp(epsilon) * other, 0).sum() / one.sum()
        assert 0.01 * delta < drawn <= delta


def test_several_releases_are_composed_as_the_accountant_does() -> None:
    events = [dp_accounting.GaussianDpEvent(m) for m in (1.5, 4.0, 2.5)]
    whole = dp_accounting.rdp.RdpAccountant().compose(dp_accounting.ComposedDpEvent(events))
    spent = spent_in(step("exported", noise=m) for m in (1.5, 4.0, 2.5))
    assert epsilon_of(spent, 1e-6) == pytest.approx(whole.get_epsilon(1e-6), rel=1e-9)


def test_merging_takes_the_larger_one_spent() -> None:
    before = [step("created", budget=10.0), step("exported", noise=2.0)]
    assert spent_in([*before, step("merged", spent=0.1)]) == spent_by(2.0)
    assert spent_in([*before, step("merged", spent=0.5)]) == 0.5
    assert spent_in([*before, step("merged", spent=0.5), step("exported", noise=2.0)]) == 0.75
    assert spent_in([*before, step("merged"), step("learned")]) == spent_by(2.0)


def test_a_release_beyond_the_budget_is_refused_and_says_what_is_left() -> None:
    noise = needed_noise(3.0, 1e-6)
    lines = [step("created", budget=5.0)]
    assert require_left(lines, noise, 1e-6) == pytest.approx(3.0, abs=1e-4)
    lines.append(step("exported", noise=noise))
    with pytest.raises(TytoError, match=r"beyond the budget.*--epsilon 2\.05 still fits"):
        require_left([*lines, step("exported", noise=noise)], noise, 1e-6)
    left = left_of(5.0, spent_in(lines), 1e-6)
    assert 2.0 < left < 5.0
    require_left(lines, needed_noise(left, 1e-6), 1e-6)
    with pytest.raises(TytoError, match=f"--epsilon {left:.2f} still fits"):
        require_left(lines, needed_noise(left + 0.02, 1e-6), 1e-6)
    with pytest.raises(TytoError, match="nothing is left"):
        require_left([step("created", budget=0.0)], noise, 1e-6)


def test_a_larger_delta_does_not_make_the_budget_larger() -> None:
    """The attack: thirteen releases at delta 1e-3, which together are worth epsilon 13 of 10 at 1e-6."""
    lines, noise = [step("created", budget=10.0)], needed_noise(2.0, 1e-3)
    while len(lines) < 20:
        try:
            after = require_left(lines, noise, 1e-3)
        except TytoError:
            break
        lines.append(step("exported", noise=noise))
        assert after == epsilon_of(spent_in(lines), 1e-6)
    assert 9.0 < epsilon_of(spent_in(lines), 1e-6) <= 10.0
    left = left_of(10.0, spent_in(lines), 1e-3)
    assert 0 < left < 2.0
    require_left(lines, needed_noise(left, 1e-3), 1e-3)
    assert require_left([], needed_noise(1.0, 1e-9), 1e-9) == pytest.approx(1.0, abs=1e-4)  # a stricter one


def test_the_budget_is_the_first_lines_and_else_the_usual() -> None:
    assert budget_in([step("created", budget=2.5), step("exported", noise=1.0)]) == 2.5
    assert budget_in([step("created")]) == budget.BUDGET


def test_spending_that_was_written_wrongly_counts_as_everything() -> None:
    assert spent_in([step("merged", spent=float("nan"))]) == float("inf")
    assert spent_in([step("exported", noise=-1.0)]) == float("inf")


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 1e-6), (-1, 1e-6), (float("nan"), 1e-6), (3, 0), (3, 0.5)]
)
def test_promises_that_are_none_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(TytoError, match="must be from"):
        needed_noise(epsilon, delta)


def test_a_promise_that_no_noise_is_proven_to_keep_is_refused() -> None:
    """The accountant has no bound that low: more noise would not make the promise any truer."""
    with pytest.raises(TytoError, match=r"epsilon 0\.01 with delta 1e-12 cannot be proven"):
        needed_noise(0.01, 1e-12)
    assert left_of(10.0, 0.0, 1e-12) > 1


def test_without_dp_accounting_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "has_accounting", lambda: False)
    with pytest.raises(MissingExtraError, match=r"tytoalba\[privacy\]"):
        epsilon_of(1.0, 1e-6)
