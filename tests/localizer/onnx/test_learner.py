"""What was taught, in a graph: random features and readout, the same to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.localizers import ARRAY, features, prior, small_state
from tests.helpers.onnx_graphs import codes_of, ran
from tytoalba.localizer.model import Model
from tytoalba.localizer.onnx import learner, network
from tytoalba.localizer.onnx.builder import PRECISIONS, Builder, Name

pytest.importorskip("onnx")


def model(n_features: int = 30, size: float = 0.01) -> Model:
    rng = np.random.default_rng(5)
    W = (size * rng.standard_normal((n_features, 720))).astype(np.float32)
    weight = np.linspace(0, 1, 360, dtype=np.float32)
    return Model(ARRAY, prior(0), small_state(n_features).options, W, weight, 9)


def found(g: Builder, x: Name, known: Model) -> Name:
    codes = codes_of(g, x, known.prior)
    return learner.found(g, network.logits(g, codes, known.prior), codes, known)


@pytest.mark.parametrize("sound", [1.0, 0.0])
@pytest.mark.parametrize("size", [0.01, 1e4])
def test_what_it_says_is_the_same(sound: float, size: float) -> None:
    known = model(size=size)
    known = replace(known, options=known.options | {"sound": sound})
    X = features(6, seed=3)
    H, _ = known.inputs.codes(X)
    W, step = known.whole_weights
    wanted = (H.astype(np.float64) @ W * step).astype(np.float32)
    assert np.array_equal(ran(lambda g, x: found(g, x, known), X, dtype=np.float32), wanted)


def test_silence_has_no_sound_to_scale() -> None:
    known, X = model(), np.zeros((2, prior().gcc.n_features), np.float32)
    H, _ = known.inputs.codes(X)
    W, step = known.whole_weights
    wanted = (H.astype(np.float64) @ W * step).astype(np.float32)
    assert np.array_equal(ran(lambda g, x: found(g, x, known), X, dtype=np.float32), wanted)
    assert np.isfinite(ran(lambda g, x: found(g, x, known), X, "fast")).all()


def test_fast_is_near() -> None:
    known, X = model(), features(6, seed=4)
    same, fast = (ran(lambda g, x: found(g, x, known), X, p, np.float32) for p in PRECISIONS)
    assert 0 < np.abs(same - fast).max() < 5e-3 < np.abs(same).max()
