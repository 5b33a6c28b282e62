"""Steering matrices are the same on every machine, or are made so, or are refused."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.localizers import ARRAY, changed, opened, phase, prior, small_state
from tytoalba.errors import FileError, PriorError
from tytoalba.learning.prior import features
from tytoalba.learning.prior.exact import MATRIX_GRID
from tytoalba.learning.prior.features import (
    NEAR,
    prior_gcc,
    steering_digest,
    steering_matrices,
)
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.localizer.state import State
from tytoalba.signal.array import load_array

_steered = features._steered


def nudged(*changes: tuple[int, float]) -> Any:
    """A machine that computes some values (by number) so near to an edge: half a step and a little."""

    def steered(array: Any, gcc: Any) -> NDArray[np.float64]:
        values = _steered(array, gcc).copy()
        for at, beyond in changes:
            values.flat[at] = np.floor(values.flat[at]) + 0.5 + beyond
        return values

    return patch.object(features, "_steered", steered)


def test_a_value_next_to_a_step_is_tried_both_ways() -> None:
    gcc = prior_gcc(ARRAY)
    with nudged((5, 4e-9), (700, -2e-9), (901, 1e-9)):
        here = steering_matrices(ARRAY, gcc)
    with nudged((5, -3e-9), (700, -1e-9), (901, -1e-9)):
        assert steering_digest(steering_matrices(ARRAY, gcc)) != steering_digest(here)
        found = steering_matrices(ARRAY, gcc, steering_digest(here))
    assert all(np.array_equal(found[name], here[name]) for name in here)
    with (
        nudged((5, -3 * NEAR), (700, -1e-9)),
        pytest.raises(PriorError, match=r"other steering matrices \(2 of .* teach a new state"),
    ):
        steering_matrices(ARRAY, gcc, steering_digest(here))  # one is too far from a step, in both matrices


def test_a_state_finds_the_matrices_that_it_was_made_with() -> None:
    fresh = State.new(ARRAY, prior(3), 5, n_features=2)
    with nudged((40, 1e-9)):
        there = State.new(ARRAY, prior(4), 5, n_features=2)
        there.teach(phase(1))
        data = there.to_bytes()
    assert there.constants != fresh.constants
    with nudged((40, -1e-9)):
        again = State.from_bytes(data)
        assert again.constants == there.constants
        again.forget(phase(1))
        assert again.prior.steering_digest == there.constants
    with pytest.raises(PriorError, match="other steering matrices"):
        State.from_bytes(data).teach(phase(2))
    with pytest.raises(FileError, match="digest of its steering matrices was altered"):
        State.from_bytes(changed(data, constants="0123456789abcdeF"))
    with pytest.raises(FileError, match="its front end has version 4, this program knows 1, 2 and 3"):
        State.from_bytes(changed(data, frontend=4))


def test_old_states_have_no_digest() -> None:
    old = small_state(frontend=1)
    assert old.constants == ""
    assert not {"constants", "frontend"} & opened(old.to_bytes())[0].keys()


LARGE = ("matrix-voice", "minidsp-uma8", "respeaker-6mic")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in shipped_priors()]
)
def test_no_value_of_a_shipped_array_is_next_to_a_step(name: str) -> None:
    """So that kernels of BLAS, which differ by less than 1e-8 of a step, all round alike."""
    array = load_array(name)
    gcc = prior_gcc(array)
    for part in (gcc.whole, gcc.window):
        steps = _steered(array, part)
        assert np.abs(np.abs(steps - np.round(steps)) - 0.5).min() > 2e-8
        assert np.abs(steps).max() < 2**15 == MATRIX_GRID * 8
