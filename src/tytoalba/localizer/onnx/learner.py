"""What was taught, as a graph: random features of logits and sound, and their readout (`Model.scores`)."""

from __future__ import annotations

import numpy as np

from tytoalba.learning.prior.exact import INPUT_GRID
from tytoalba.learning.prior.prior import SOUND_GRID, Prior
from tytoalba.learning.random_features import STEPS_TO_TURN, TURN_BITS, WEIGHT_BITS, Z_BITS, RandomFourier
from tytoalba.learning.sums import SCALE
from tytoalba.localizer.model import Model
from tytoalba.localizer.onnx.builder import Builder, Name


def found(g: Builder, logits: Name, codes: Name, model: Model) -> Name:
    """What the learner says, (n_frames, 720) float32: labels, then what it expects of the prior's scores."""
    prior, inputs = model.prior, model.inputs
    arrays = prior.real_arrays
    less = g.op("Sub", logits, g.constant(arrays["logit_mean"]))
    columns = [g.op("Div", less, g.constant(arrays["logit_spread"]))]
    if inputs.sound:
        columns.append(g.op("Mul", _sound(g, codes, prior), g.constant(inputs.sound)))
    H = _expanded(g, g.join(columns, axis=1), inputs.features)
    W, step = model.whole_weights
    said = g.op("MatMul", H, g.whole(W))
    # a column of factors: a single one might be drawn into the product, where it rounds otherwise
    return g.single(g.op("Mul", said, g.constant(np.full(W.shape[1], step))))


def _sound(g: Builder, codes: Name, prior: Prior) -> Name:
    """GCC-PHAT over all bands, each frame with mean 0 and variance 1 (`Prior.sound`)."""
    assert SOUND_GRID == INPUT_GRID  # the codes are the same whole numbers
    bins = [stop - start for start, stop in prior.gcc.bins]
    n_pairs = len(prior.gcc.pairs)
    whole = g.take(codes, 0, 1)  # (n_frames, bands x pairs, lags)
    bands = [g.cut(whole, 1, b * n_pairs, (b + 1) * n_pairs) for b in range(len(bins))]
    weighted = [
        g.op("Mul", band, g.constant(float(round(width / min(bins)))))
        for band, width in zip(bands, bins, strict=True)
    ]
    n = n_pairs * prior.gcc.n_lags
    values = g.reshape(g.sum_of(*weighted), -1, n)
    axis, count = g.constant([1], np.int64), g.constant(float(n))
    total = g.op("ReduceSum", values, axis, keepdims=1)
    if not g.is_same:  # float32 has no room for the whole numbers below
        centred = g.op("Sub", values, g.op("Div", total, count))
        power = g.op("ReduceMean", g.op("Mul", centred, centred), axes=[1], keepdims=1)
        return g.op("Div", centred, g.op("Sqrt", g.op("Max", power, g.constant(1e-12))))
    squares = g.op("ReduceSum", g.op("Mul", values, values), axis, keepdims=1)
    power = g.op("Sub", g.op("Mul", count, squares), g.op("Mul", total, total))
    spread = g.op("Round", g.op("Sqrt", g.op("Max", power, g.constant(1.0))))
    return g.op("Div", g.op("Sub", g.op("Mul", count, values), total), spread)


def _expanded(g: Builder, Z: Name, features: RandomFourier) -> Name:
    """Random features (n_frames, n_features) of Z, in steps of 1/SCALE (`RandomFourier.codes`)."""
    whole = features.whole
    levels, place = np.unique(whole["W"], return_inverse=True)  # at most 2^16 levels: 2 bytes each
    index = g.cast(g.constant(place.reshape(whole["W"].shape), np.uint16), np.int32)
    weights = g.op("Gather", g.whole(levels), index, axis=0)
    if not g.is_same:
        scale = g.constant(2.0**-WEIGHT_BITS / features.bandwidth)
        phase = g.op("Add", g.op("MatMul", Z, g.op("Mul", weights, scale)), g.constant(features.phases))
        return g.op("Mul", g.op("Cos", phase), g.constant(float(SCALE)))
    steps = g.op("Round", g.op("Mul", Z, g.constant(2.0**Z_BITS / features.bandwidth)))
    to_turn = g.constant(np.full(features.n_features, STEPS_TO_TURN))
    turn = g.op("Round", g.op("Mul", g.op("MatMul", steps, weights), to_turn))
    turn, one = g.op("Add", turn, g.whole(whole["b"])), g.constant(2.0**TURN_BITS)
    turn = g.op("Sub", turn, g.op("Mul", g.op("Floor", g.op("Div", turn, one)), one))
    codes = g.op("Gather", g.constant(whole["codes"], np.int8), g.cast(turn, np.int64), axis=0)
    return g.cast(codes, g.real)
