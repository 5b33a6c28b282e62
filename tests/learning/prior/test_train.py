"""Training a prior: the same from a seed, from where another stopped, with frames of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.priors import (
    N_KEPT,
    RESPEAKER,
    FixedFrames,
    trained,
)
from tytoalba.data.features import FeatureSet
from tytoalba.learning import training as training
from tytoalba.learning.prior import make as make
from tytoalba.learning.prior import train as train
from tytoalba.learning.prior.features import prior_gcc, scores, steering_matrices
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.train import train_prior
from tytoalba.learning.training import Recipe
from tytoalba.signal.angles import decode, encode
from tytoalba.signal.array import load_array
from tytoalba.signal.metrics import match
from tytoalba.signal.symmetry import symmetries

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("few_kept")
from tytoalba.learning.prior.network import PriorNetwork  # noqa: E402 - needs torch


def test_a_seed_gives_one_prior(frames: FeatureSet, prior: Prior) -> None:
    steps: list[tuple[int, int]] = []
    again = trained(frames, on_progress=lambda now, all_: steps.append((now, all_)))
    assert steps == [(1, 2), (2, 2)]
    assert again.steps == prior.steps
    assert (again.about, again.constants) == (prior.about, prior.constants)
    for name, values in prior.weights.items():
        assert np.array_equal(values, again.weights[name]), name
    for name, kept in prior.frames.items():
        assert np.array_equal(kept, again.frames[name]), name
    other = trained(frames, seed=1)
    assert not np.array_equal(other.logits(frames.flat), prior.logits(frames.flat))


def test_windows_are_learned_from_and_listened_to(frames: FeatureSet, prior: Prior) -> None:
    assert prior.gcc == frames.gcc == prior_gcc(RESPEAKER)
    assert frames.X.shape[1:] == (prior.gcc.n_looks, RESPEAKER.n_pairs, prior.gcc.n_lags)
    untrained = trained(frames, recipe=Recipe(epochs=0))
    for name in ("hear", "heard"):
        before, after = (of.weights[name] * of.steps[name] for of in (untrained, prior))
        assert np.abs(after - before).max() > 1e-3, name
    other = frames.flat.copy()
    first = prior.gcc.whole.n_features
    other[:, first:] = np.roll(other[:, first:], 1, axis=0)  # the windows of another frame
    assert not np.array_equal(prior.logits(other), prior.logits(frames.flat))
    assert np.array_equal(prior.srp_maps(other), prior.srp_maps(frames.flat))


def test_it_has_learned_something(frames: FeatureSet, prior: Prior) -> None:
    untrained = trained(frames, recipe=Recipe(epochs=0))
    assert untrained.about["loss"] is None
    assert prior.about["loss"] > 0

    def error(of: Prior) -> float:
        return float(np.mean((scores(of.logits(frames.flat)) - encode(frames.azimuth, 8.0)) ** 2))

    assert error(prior) < error(untrained)


def test_the_prior_says_how_it_was_made(frames: FeatureSet, prior: Prior) -> None:
    assert prior.about["n_frames"] == len(frames)
    assert prior.about["recipe"]["epochs"] == 2
    assert prior.about["recipe"]["sigma"] == 5.0
    logits = prior.logits(np.resize(frames.flat, (N_KEPT, frames.gcc.n_features)))
    assert prior.constants["logit_mean"] == pytest.approx(logits.mean(axis=0), rel=1e-3, abs=1e-4)
    assert prior.constants["logit_spread"] == pytest.approx(np.maximum(logits.std(axis=0), 0.1), rel=1e-3)
    kept, sound = prior.simulated_frames()
    assert len(kept) == len(sound) == N_KEPT


@pytest.mark.parametrize(("epochs", "mixed"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_every_second_epoch_has_frames_of_its_own(frames: FeatureSet, epochs: int, mixed: int) -> None:
    source = FixedFrames(frames)
    recipe = Recipe(epochs=epochs, batch=64)
    made = train_prior(source, 50, width=4, recipe=recipe)
    assert source.asked == [50] * mixed + [N_KEPT]
    assert made.about["n_frames"] == 50 * mixed * (epochs > 0)


def test_no_more_is_mixed_than_is_learned_from(frames: FeatureSet) -> None:
    source = FixedFrames(frames)
    train_prior(source, 500, width=4, recipe=Recipe(epochs=0, batch=40))
    assert source.asked == [40, N_KEPT]


def test_large_arrays_keep_fewer_frames(frames: FeatureSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "KEPT_BYTES", 10_000)
    kept = train_prior(FixedFrames(frames), 50, width=4, recipe=Recipe(epochs=0)).frames
    assert 9_000 <= sum(values.nbytes for values in kept.values()) <= 10_000
    assert len(kept["logits"]) == len(kept["sound"])


def test_a_prior_goes_on_where_another_stopped(frames: FeatureSet, prior: Prior) -> None:
    same = trained(frames, start=prior, width=9, recipe=Recipe(epochs=0))
    assert same.width == prior.width
    assert same.about["start"] == prior.about
    assert np.abs(same.logits(frames.flat) - prior.logits(frames.flat)).max() < 0.02
    few = PriorNetwork(
        steering_matrices(RESPEAKER, frames.gcc), width=4, window_width=3
    )  # as priors once had
    older = trained(frames, start=Prior.quantised(RESPEAKER, frames.gcc, few.folded()))
    assert (older.width, older.window_width) == (4, 3)
    further = trained(frames, start=prior, n_blocks=5)
    assert further.about["loss"] < prior.about["loss"]
    assert (prior.n_blocks, same.n_blocks, further.n_blocks) == (4, 4, 5)
    assert trained(frames, start=further, recipe=Recipe(epochs=0)).n_blocks == 5


def test_new_frames_are_learned_from(frames: FeatureSet) -> None:
    class Another(FixedFrames):
        """Other frames each time."""

        def frames(self, n: int) -> Iterator[tuple[Any, Any]]:
            self.fixed = frames.select(np.roll(np.arange(len(frames)), -40 * len(self.asked)))
            yield from super().frames(n)

    def logits(kind: type[FixedFrames], recipe: Recipe) -> Any:
        return train_prior(kind(frames), 40, width=4, recipe=recipe).logits(frames.flat[:20])

    four = Recipe(epochs=4, lr=1e-2, weight_decay=0.0, batch=20)
    two = replace(four, epochs=2, schedule="constant")
    same_again, others = (logits(kind, four) for kind in (FixedFrames, Another))
    first = [logits(kind, two) for kind in (FixedFrames, Another)]
    assert not np.array_equal(same_again, others)
    assert np.array_equal(*first)  # two epochs are of the same frames


@pytest.mark.parametrize("works", [True, False])
def test_a_network_is_compiled_where_that_is_possible(
    frames: FeatureSet, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    seen = []

    def compiler(function: Any, **_: Any) -> Any:
        def compiled(*given: Any, **more: Any) -> Any:
            seen.append(given)
            if not works:
                raise RuntimeError("no C compiler")
            return function(*given, **more)

        return compiled

    monkeypatch.setattr(torch, "compile", compiler)
    matrices = steering_matrices(RESPEAKER, frames.gcc)
    plain, network = (PriorNetwork(matrices, width=4) for _ in range(2))
    X = torch.tensor(frames.flat[:8])
    train._compiled(network, X)
    assert all(weight.grad is None for weight in network.parameters())
    assert torch.equal(network.train()(X), plain.train()(X))
    assert len(seen) == 1 + works


def test_what_was_learned_on_one_side_is_known_on_the_other(
    frames: FeatureSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = next(s for s in symmetries(RESPEAKER) if s.mirrored)
    alone = np.flatnonzero(frames.n_sources == 1)
    one = frames.select(alone[:: len(alone) // 40][:40])
    turned = one.flat[:, mirror.order(one.gcc)].reshape(one.X.shape)
    mirrored = replace(one, X=turned, azimuth=mirror.azimuth(one.azimuth))

    def known_of_mirrored(epochs: int) -> float:
        recipe = Recipe(epochs=epochs, lr=1e-2, weight_decay=0.0, batch=40)
        found = decode(scores(trained(one, width=16, recipe=recipe).logits(mirrored.flat)))
        return float((match(found[:, None], np.sort(mirrored.azimuth, axis=1)[:, :1]) <= 10).mean())

    assert known_of_mirrored(100) > 0.65
    monkeypatch.setattr(train, "symmetries", lambda array: symmetries(array)[:1])
    assert known_of_mirrored(50) < 0.6


def test_a_line_learns_a_direction_and_its_image_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    line = load_array("linear-4")
    azimuth = np.array([[30.0, np.nan], [200.0, 290.0], [90.0, np.nan]])
    gcc = prior_gcc(line)
    X, which = np.zeros((3, gcc.n_looks, len(gcc.pairs), gcc.n_lags), np.float32), np.zeros(3, np.int32)
    source = FeatureSet(X, azimuth, which, which, ("x",), line, gcc)
    targets: list[Any] = []
    kept = training.squared_loss

    def seen(X: Any, target: Any, **how: Any) -> Any:
        targets.append(target.clone())
        return kept(X, target, **how)

    monkeypatch.setattr(training, "squared_loss", seen)
    trained(source)
    np.testing.assert_allclose(targets[0].numpy(), encode(line.alike(azimuth), 5.0), atol=1e-6)
    assert targets[0][0, [30, 150]].tolist() == [1.0, 1.0]
