"""How much privacy releases have spent: Gaussian noise by dp-accounting, added up over the life of a state.

Each release adds noise of `noise` times its sensitivity. Together, releases of noise m1, m2, ... tell as much
as one of noise m with 1/m^2 = 1/m1^2 + 1/m2^2 + ...; what was spent is written as `spent` = 1/m^2 (twice the
rho of zero-concentrated differential privacy). Epsilon follows from it and delta (Renyi accountant).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from math import inf, isfinite, sqrt
from typing import Protocol

from tytoalba.errors import MissingExtraError, TytoError

BUDGET, LARGEST_BUDGET = 10.0, 1000.0
"""Epsilon that all releases of a state may spend together, unless its maker says otherwise."""
EPSILON, DELTA = 3.0, 1e-6
"""Of a release, by default."""
SLACK = 1e-6
"""Epsilon by which rounding may miss."""


class Step(Protocol):
    """A line of a ledger, as far as spending goes."""

    @property
    def what(self) -> str:
        """What was done."""

    @property
    def about(self) -> Mapping[str, str | int | float]:
        """More facts."""


def has_accounting() -> bool:
    """Whether dp-accounting, of the extra 'privacy', is installed."""
    return find_spec("dp_accounting") is not None


def check_promise(epsilon: float, delta: float) -> None:
    """Refuse an epsilon or a delta that promises nothing, or cannot be had."""
    if not (isfinite(epsilon) and 0.01 <= epsilon <= LARGEST_BUDGET):
        raise TytoError(
            f"epsilon must be from 0.01 to {LARGEST_BUDGET:g}, got {epsilon}; 1 is strong, 3 is usual, "
            "above 10 little is promised"
        )
    if not 1e-12 <= delta <= 1e-3:
        raise TytoError(
            f"delta must be from 1e-12 to 0.001, far below one in the number of people; got {delta}"
        )


def needed_noise(epsilon: float, delta: float) -> float:
    """Noise, over the sensitivity, that one release of this epsilon and delta needs.

    >>> round(needed_noise(3.0, 1e-6), 2)
    1.64
    """
    check_promise(epsilon, delta)
    noise = _needed(float(epsilon), float(delta))
    if epsilon_of(spent_by(noise), delta) > epsilon:
        raise TytoError(
            f"epsilon {epsilon:g} with delta {delta:g} cannot be proven, whatever the noise: choose larger "
            "ones"
        )
    return noise


@cache
def _needed(epsilon: float, delta: float) -> float:
    low, high = 1e-2, 1e5  # noise that is too little, and enough
    while high / low > 1 + 1e-7:
        middle = sqrt(low * high)
        low, high = (middle, high) if epsilon_of(middle**-2, delta) > epsilon else (low, middle)
    return high


def epsilon_of(spent: float, delta: float) -> float:
    """Epsilon, at this delta, of all that was spent.

    >>> epsilon_of(0.0, 1e-6), round(epsilon_of(2 * 1.64**-2, 1e-6), 1)
    (0.0, 4.4)
    """
    if not has_accounting():
        raise MissingExtraError("private releases", "privacy")
    if not 0 < spent < inf:
        return float(spent)
    from dp_accounting import GaussianDpEvent
    from dp_accounting.rdp import RdpAccountant

    return float(RdpAccountant().compose(GaussianDpEvent(spent**-0.5)).get_epsilon(delta))


def spent_by(noise: float) -> float:
    """What a release of this noise spends; without noise, everything."""
    return noise**-2 if noise > 0 else inf


def spent_in(steps: Iterable[Step]) -> float:
    """What the lines of a ledger have spent: exports add up; of what was merged, the larger counts.

    Lessons are in one of two merged states, never in both: their releases never told of the same lesson.
    Releases of other units add up as if they were of one: the sum holds for the smallest unit among them.
    """
    spent = 0.0
    for step in steps:
        if step.what == "exported" and "noise" in step.about:
            spent += spent_by(float(step.about["noise"]))
        elif "spent" in step.about:
            told = float(step.about["spent"])
            spent = max(spent, told if told >= 0 else inf)
    return spent


def budget_in(steps: Iterable[Step]) -> float:
    """Epsilon that the lines of a ledger allow; of an older ledger, which does not say, the usual."""
    told = [float(step.about["budget"]) for step in steps if "budget" in step.about]
    return told[-1] if told else BUDGET


def require_left(steps: Iterable[Step], noise: float, delta: float) -> float:
    """Refuse a release of this noise beyond the budget; returns the epsilon that will have been spent.

    A budget is of epsilon at `DELTA`, or a release with a larger delta would make it larger; at a smaller one
    where a release promises that.
    """
    lines, asked, delta = list(steps), delta, min(delta, DELTA)
    budget, before = budget_in(lines), spent_in(lines)
    after = epsilon_of(before + spent_by(noise), delta)
    if after > budget + SLACK:
        left = left_of(budget, before, asked)
        raise TytoError(
            f"this release is beyond the budget: with it all would have spent epsilon {after:.2f} of "
            f"{budget:g} (spent so far {epsilon_of(before, delta):.2f}); "
            + (f"one of --epsilon {left:.2f} still fits" if left else "nothing is left")
            + ". What was released cannot be called back: a new state begins a new budget, with new lessons"
        )
    return after


def left_of(budget: float, spent: float, delta: float) -> float:
    """The largest epsilon, to 0.01, of one more release with this delta within the budget; 0: none."""
    low, high, total = 0, int(100 * min(budget, LARGEST_BUDGET)), min(delta, DELTA)
    while low < high:
        middle = (low + high + 1) // 2
        fits = epsilon_of(spent + spent_by(_needed(middle / 100, delta)), total) <= budget + SLACK
        low, high = (middle, high) if fits else (low, middle - 1)
    return low / 100
