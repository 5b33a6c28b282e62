"""Attacks on private releases, by somebody who knows nearly everything, beside the bound that noise gives.

A private model is computed from a few whole-number sums with noise (`localizer.release`) and from public
facts. The attacker here is shown those noisy sums themselves, which is more than the model, and knows all
lessons but one. Releases are made in memory, many of them; nothing is written, and no budget is charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.phases import Phase
from tytoalba.localizer.budget import (
    BUDGET,
    DELTA,
    EPSILON,
    epsilon_of,
    has_accounting,
    needed_noise,
    spent_by,
)
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.model import Model
from tytoalba.localizer.noise import discrete_gaussian
from tytoalba.localizer.offsets import BOUND, N_SUMS
from tytoalba.localizer.release import private_model, sums_of
from tytoalba.localizer.state import State
from tytoalba.privacy.attacks import Membership, membership, rounded
from tytoalba.privacy.model_attacks import most_found
from tytoalba.privacy.model_audit import attack_file, from_every_side, places_found

Whole = NDArray[np.int64]
FPR = 0.01
N_RELEASES = 10_000
"""With a lesson, and as many without; together also where the attacker has several of the same state."""
N_PAIRS = 200
"""Pairs of releases, one before and one after a lesson."""


def promise_of(model: Model) -> dict[str, Any] | None:
    """What a private model promises, and what that leaves to anybody; None for an exact one.

    kept: whether the file is as promised, as far as it shows: noise that suffices, and nothing of the
    lessons in it but the offset. None without dp-accounting.
    """
    if model.private is None:
        return None
    said = model.private
    epsilon, delta, noise = (float(said[name]) for name in ("epsilon", "delta", "noise"))
    nothing_else = not model.W.any() and bool((model.weight == 1).all()) and model.n_frames == 0
    enough = nothing_else and has_accounting() and noise >= needed_noise(epsilon, delta) * (1 - 1e-6)
    return {
        **said,
        "kept": enough if has_accounting() or not nothing_else else None,
        "fpr": FPR,
        "most_found_by_epsilon": _plain(most_found(FPR, epsilon, delta)),
        "most_found": _plain(most_found(FPR, epsilon, delta, noise)),
    }


def attack_releases(
    trial: State,
    candidates: Sequence[Phase],
    *,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    n_releases: int = N_RELEASES,
    n_pairs: int = N_PAIRS,
    seed: int = 0,
) -> dict[str, Any]:
    """Release a state that was taught known lessons many times, in memory, and attack.

    candidates: lessons that were not taught. seed: of which of them come between two releases; the noise is
    always fresh.
    """
    model = private_model(Localizer(trial), epsilon, delta).model
    truth, found = from_every_side(trial), attack_file(model)
    right, false = places_found(model, found, truth)
    own = np.array([contribution(trial, phase) for phase in candidates])
    bound = sums_of(trial, "lesson")[1]
    sigma, n = ceil(needed_noise(epsilon, delta) * bound), n_within(epsilon, delta)
    middle = own[np.argsort(np.linalg.norm(own, axis=1))[len(own) // 2]]
    return {
        "lessons": len(trial.lessons),
        "frames": trial.n_frames,
        "promise": promise_of(model),
        "places": {"taught": len(truth), "found": right, "false": false},
        "sums": {"directions": found["sums"]["directions"] if found["possible"] else 0},
        "members": {
            "releases": n_releases,
            "worst": members_of(worst_of(bound), sigma, n_releases),
            "median": members_of(middle, sigma, n_releases),
            "median_length": _plain(float(np.linalg.norm(middle)) / bound),
        },
        "many": {
            "releases": n,
            "epsilon": _plain(epsilon_of(n * spent_by(sigma / bound), delta)),
            "most_found_by_epsilon": _plain(most_found(FPR, BUDGET, delta)),
            "most_found": _plain(most_found(FPR, BUDGET, delta, sigma / bound / float(np.sqrt(n)))),
            "worst": members_of(worst_of(bound), sigma, n_releases // n, together=n),
        },
        "two_exports": between_releases(own, sigma, n_pairs, seed),
    }


def attack_promise(model: Model, n_releases: int = N_RELEASES) -> dict[str, Any] | None:
    """What a private model promises, and what the best attack finds in releases of its noise.

    The lesson that is looked for adds as much as any lesson may, and the attacker knows all else.
    """
    promise = promise_of(model)
    if promise is None:
        return None
    sigma = ceil(float(promise["noise"]) * BOUND)
    return promise | {"releases": n_releases, "measured": members_of(worst_of(BOUND), sigma, n_releases)}


def contribution(state: State, phase: Phase) -> Whole:
    """What a lesson adds to the sums that releases are made from."""
    later = state.copy()
    later.teach(phase)
    return sums_of(later, "lesson")[0] - sums_of(state, "lesson")[0]


def release_scores(
    own: Whole, sigma: int, n_releases: int, together: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Likelihood ratios, up to a monotone map, of releases with a lesson and without, (n_releases,) each.

    own: what the lesson adds; sums to which it adds nothing say nothing about it. together: releases that
    the attacker has of the same state and adds up.
    """
    part = own[own != 0]
    shape = n_releases, together, len(part)
    drawn = [discrete_gaussian(int(np.prod(shape)), sigma).reshape(shape).sum(axis=1) for _ in range(2)]
    inside, outside = (drawn[0] + together * part) @ part, drawn[1] @ part
    return inside.astype(np.float64), outside.astype(np.float64)


def between_releases(own: Whole, sigma: int, n_pairs: int, seed: int = 0) -> dict[str, Any]:
    """Which of the candidates (n, n_sums) was learned between two releases? The likeliest is named."""
    chosen = np.random.default_rng(seed).integers(len(own), size=n_pairs)
    noise = discrete_gaussian(2 * n_pairs * own.shape[1], sigma).reshape(2, n_pairs, -1)
    seen = own[chosen] + noise[1] - noise[0]
    missed = np.square(seen[:, None].astype(np.float64) - own[None]).sum(axis=2)  # (n_pairs, n)
    ranks = (missed <= missed[np.arange(n_pairs), chosen][:, None]).sum(axis=1)
    return {
        "candidates": len(own),
        "trials": n_pairs,
        "first": int((ranks == 1).sum()),
        "median_rank": float(np.median(ranks)),
    }


def n_within(epsilon: float, delta: float, budget: float = BUDGET) -> int:
    """How many releases of this epsilon the budget allows, by the accountant."""
    spent, n = spent_by(needed_noise(epsilon, delta)), 1
    while epsilon_of((n + 1) * spent, delta) <= budget:
        n += 1
    return n


def worst_of(bound: int) -> Whole:
    """Sums of a lesson that adds as much as any lesson may."""
    own = np.zeros(N_SUMS, np.int64)
    own[0] = bound
    return own


def members_of(own: Whole, sigma: int, n_releases: int, together: int = 1) -> dict[str, Any]:
    """How well releases with a lesson are told from those without; `release_scores` says what it takes."""
    if not own.any():  # nothing to find
        return rounded(Membership(0.5, (0.5, 0.5), 0.0, FPR, FPR, (FPR, FPR)))
    return rounded(membership(*release_scores(own, sigma, n_releases, together), fpr=FPR))


def _plain(value: float) -> float:
    """Four digits, as JSON takes it."""
    return float(f"{value:.4g}")
