"""Releases of states without sums for them: no frame counts more than the bound, and offsets are found."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.localizers import ARRAY, prior
from tytoalba.errors import TytoError
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.prior.features import scores
from tytoalba.learning.sums import SCALE, gaussian_labels, quantize_labels
from tytoalba.localizer.offsets import offset_curve
from tytoalba.localizer.older import _largest, _probe, _queries, older_estimate
from tytoalba.localizer.state import State


def old_state(**options: Any) -> State:
    options = {"n_features": 150, "views": 1} | options
    return replace(State.new(ARRAY, prior(400), seed=3, **options), release=None)


def taught(state: State, H: NDArray[np.int8], Y: NDArray[np.int8], times: int = 1) -> State:
    head: AnalyticHead = state.learner._empty()
    head.learn(H, Y, times=times)
    changed = state.copy()
    changed.learner._change(head, state.learner.counts)
    return changed


def rows_of(state: State, coefficients: NDArray[np.floating]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Simulated frames as a device with this offset would be taught them."""
    logits, sound = state.prior.simulated_frames()
    B = scores(logits)
    heard = B.argmax(axis=1)
    true = heard - offset_curve(coefficients)[heard]
    Y = np.concatenate([gaussian_labels(true[:, None], 8.0, 360), quantize_labels(B)], axis=1)
    return np.asarray(state.learner.inputs.expand(logits, sound)), Y


def test_no_row_adds_more_than_the_bound() -> None:
    """Neither random rows nor the worst that can be made for these matrices."""
    state = old_state()
    probe = _probe(state)
    rng = np.random.default_rng(0)
    worst = []
    for M in probe.matrices:
        left, _, right = np.linalg.svd(M.astype(float))
        worst.append((np.sign(left[:, 0]), np.sign(right[0])))
    some = [(rng.choice([-1, 1], 150), rng.choice([-1, 1], 360)) for _ in range(20)]
    for h, e in [*worst, *some]:
        H = (SCALE * h[None]).astype(np.int8)
        Y = np.concatenate([SCALE * (e > 0), SCALE * (e < 0)])[None].astype(np.int8)
        found = np.array([float(q) for q in _queries(taught(state, H, Y), probe)])
        assert np.linalg.norm(found) <= SCALE**2 * probe.norm
    assert max(np.linalg.norm(probe.matrices.astype(float), axis=(1, 2))) > 0


def test_singular_values_are_bounded_from_above_and_closely() -> None:
    M = np.random.default_rng(1).integers(-9, 9, (30, 40))
    true = np.linalg.norm(M.astype(float), 2)
    assert true <= _largest(M) <= 1.5 * true


def test_sums_of_any_size_are_exact() -> None:
    state = old_state(n_features=20)
    H, Y = rows_of(state, np.zeros(3))
    probe = _probe(state)
    once, often = (_queries(taught(state, H, Y, times), probe) for times in (1, 10**9))
    assert often == [10**9 * q for q in once]


def test_the_offset_is_found_in_many_frames_and_not_in_few() -> None:
    state, true = old_state(), np.array([2.0, -1.0, 1.5])
    H, Y = rows_of(state, true)
    found = older_estimate(taught(state, H, Y, times=300), 1.64, os.urandom)
    assert np.abs(found.coefficients - true).max() < 0.7
    for few in (state, taught(state, H[:3], Y[:3])):
        found = older_estimate(few, 1.64, os.urandom)
        assert np.abs(found.coefficients).max() < 1.5
        assert np.sqrt(found.covariance[0, 0]) > 2


def test_what_mirrored_frames_hide_stays_unknown() -> None:
    state = old_state(views=2)
    H, Y = rows_of(state, np.array([0.0, 0.0, 1.5]))
    found = older_estimate(taught(state, H, Y, times=300), 1.64, os.urandom)
    assert found.coefficients[2] == pytest.approx(1.5, abs=0.8)
    assert np.sqrt(found.covariance[0, 0]) > 2


def test_a_prior_without_frames_cannot_tell() -> None:
    state = replace(State.new(ARRAY, prior(0), seed=3, n_features=20), release=None)
    with pytest.raises(TytoError, match="keeps no simulated frames"):
        older_estimate(state, 1.64, os.urandom)
