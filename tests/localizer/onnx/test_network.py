"""The network in a graph: whatever the features are, the logits and scores are the same to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.localizers import features, prior
from tests.helpers.onnx_graphs import codes_of, ran
from tests.learning.prior.shared.helpers import features as shared_features
from tests.learning.prior.shared.helpers import weights as shared_weights
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.learning.prior.features import TOP, scores
from tytoalba.localizer.onnx import network
from tytoalba.localizer.onnx.builder import Builder
from tytoalba.signal.array import MicArray, load_array

pytest.importorskip("onnx")


@pytest.mark.parametrize("size", [1.0, 2.0, 1e-3, 0.0])
def test_logits_are_the_same_whatever_the_features(size: float) -> None:
    """Features are at most 1; twice that cuts activations."""
    X = (features(5, seed=1) * np.float32(size)).astype(np.float32)
    found = ran(lambda g, x: network.logits(g, codes_of(g, x, prior()), prior()), X)
    assert np.array_equal(found, prior().logits(X))


def test_fast_logits_are_near() -> None:
    X = features(5, seed=2)
    found = ran(lambda g, x: network.logits(g, codes_of(g, x, prior()), prior()), X, "fast")
    apart = np.abs(found - prior().logits(X))
    assert 0 < apart.max() < 0.1


@pytest.mark.parametrize("array", [load_array("linear-4"), random_array(0, 3), random_array(0, 5)])
@pytest.mark.parametrize("size", [1.0, 2.0, 0.0])
def test_the_network_for_every_array_gives_the_same(array: MicArray, size: float) -> None:
    """random_array(0, 3) has 12 microphones at 8 kHz, and one band less."""
    known = shared_weights().prior(array)
    X = (np.float32(size) * shared_features(array, 4)).astype(np.float32)
    found = ran(lambda g, x: network.logits(g, codes_of(g, x, known), known), X)
    assert np.array_equal(found, known.logits(X))
    fast = ran(lambda g, x: network.logits(g, codes_of(g, x, known), known), X, "fast")
    assert np.abs(fast - known.logits(X)).max() < 1.0


@pytest.mark.parametrize("precision", ["same", "fast"])
def test_scores_are_looked_up(precision: str) -> None:
    logits = np.concatenate([np.arange(-13 * 1024, 13 * 1024, 7) / 1024, [-TOP, TOP, 0.0]])[None]

    def build(g: Builder, x: str) -> str:
        return network.scores_of(g, g.cast(x, g.real))

    found = ran(build, logits, precision, np.float32)  # type: ignore[arg-type]
    wanted = scores(logits.astype(np.float32))
    if precision == "same":
        assert np.array_equal(found, wanted)
    else:
        assert np.abs(found - wanted).max() < 2.0**-16
