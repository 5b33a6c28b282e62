"""Private releases, attacked: as much is found as the noise allows, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tytoalba.localizer.budget import needed_noise
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.offsets import BOUND, N_SUMS
from tytoalba.privacy.attacks import membership
from tytoalba.privacy.model_attacks import most_found
from tytoalba.privacy.release_audit import (
    attack_promise,
    between_releases,
    members_of,
    n_within,
    promise_of,
    release_scores,
    worst_of,
)

OWN = np.random.default_rng(0).integers(-3000, 3000, (20, N_SUMS))
"""What lessons add, of lengths about 5000."""


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_the_attack_finds_what_the_noise_allows_and_no_more(noise: float) -> None:
    own = worst_of(BOUND)
    inside, outside = release_scores(own, round(noise * BOUND), 10_000)
    apart = (inside.mean() - outside.mean()) / outside.std()
    assert apart == pytest.approx(1 / noise, abs=0.1)
    found = membership(inside, outside, n_bootstrap=0).tpr
    assert found == pytest.approx(most_found(0.01, 1e3, 0.0, noise), rel=0.5)


def test_several_releases_of_one_state_are_worth_one_with_less_noise() -> None:
    inside, outside = release_scores(worst_of(BOUND), 2 * BOUND, 2500, together=4)
    assert (inside.mean() - outside.mean()) / outside.std() == pytest.approx(1.0, abs=0.15)


def test_at_epsilon_3_members_stay_within_the_bound() -> None:
    sigma = int(np.ceil(needed_noise(3.0, 1e-6) * BOUND))
    found = members_of(worst_of(BOUND), sigma, 5_000)
    assert found["tpr"] < most_found(0.01, 3.0, 1e-6, sigma / BOUND) + 0.03  # five standard errors
    assert found["tpr_interval"][1] < most_found(0.01, 3.0, 1e-6)
    assert members_of(np.zeros(N_SUMS, np.int64), sigma, 100)["tpr"] == 0.01  # adds nothing: chance


def test_the_lesson_between_two_releases_is_named_only_without_noise() -> None:
    assert between_releases(OWN, 1, 50)["first"] == 50
    hidden = between_releases(OWN, 2 * BOUND, 1000)
    assert hidden["candidates"] == 20
    assert 15 < hidden["first"] < 110  # 50: chance
    assert 6 <= hidden["median_rank"] <= 13


def test_the_budget_allows_so_many() -> None:
    assert n_within(3.0, 1e-6) == 8  # and not three: Gaussian noise adds up more slowly
    assert n_within(9.0, 1e-6) == 1


def test_what_a_private_model_promises() -> None:
    exact = Localizer.new("respeaker-usb-4", n_features=2, seed=0).state.model()
    assert promise_of(exact) is None
    assert attack_promise(exact) is None
    said: dict[str, Any] = {"unit": "lesson", "epsilon": 3.0, "delta": 1e-6, "noise": 1.6437, "features": 3}
    W, weight = np.zeros_like(exact.W), np.ones_like(exact.weight)
    private = replace(exact, W=W, weight=weight, private=said)
    promise = attack_promise(private, n_releases=2000)
    told = attack_promise(replace(private, W=np.ones_like(exact.W)), n_releases=100)
    assert told is not None
    assert not told["kept"]  # it has weights
    assert promise is not None
    assert promise["most_found_by_epsilon"] == pytest.approx(0.2009, abs=1e-4)
    assert promise["most_found"] == pytest.approx(0.0429, abs=1e-4)
    assert promise["measured"]["tpr"] < 0.1
    assert promise["unit"] == "lesson"
    for said_too, kept in (({"noise": 1.6437}, True), ({"noise": 1.5}, False), ({"epsilon": 2.0}, False)):
        claims = promise_of(replace(private, private=said | said_too))
        assert claims is not None
        assert claims["kept"] is kept
