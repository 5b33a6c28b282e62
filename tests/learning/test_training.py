"""The network and the one gradient loop: it learns, repeats itself, and leaves everything else alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.network import Mlp, Network
from tytoalba.learning.training import (
    Recipe,
    Schedule,
    Stopping,
    labels,
    on_device,
    sides_of,
    squared_loss,
    train,
)
from tytoalba.signal.angles import encode
from tytoalba.signal.symmetry import Symmetry

N_OUTPUTS = 6


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(seed: int = 0, dropout: float = 0.2) -> Mlp:
    return Mlp(4, N_OUTPUTS, width=24, dropout=dropout, seed=seed)


def toy(n: int = 256, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Frames whose outputs are a smooth function of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    W = np.random.default_rng(7).standard_normal((4, N_OUTPUTS))
    return on_device(X, "cpu"), on_device(1 / (1 + np.exp(-2 * X @ W)), "cpu")


RECIPE = Recipe(epochs=15, lr=1e-2, batch=32)


def test_shapes_and_parameters_of_the_paper() -> None:
    network = Mlp(306)
    sizes = [tuple(p.shape) for p in network.parameters() if p.ndim == 2]
    assert sizes == [(1000, 306), (1000, 1000), (1000, 1000), (360, 1000)]
    X = torch.randn(5, 306, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(network.predict(X), torch.sigmoid(network.predict(X, "logits")))
    Z = network.predict(X, "features")
    torch.testing.assert_close(network.output(Z).detach(), network.predict(X, "logits"))


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_learns_a_toy_problem(schedule: Schedule) -> None:
    X, Y = toy()
    network = small(dropout=0.0)
    before = (network.predict(X) - Y).square().mean()
    recipe = Recipe(epochs=30, lr=1e-2, batch=32, schedule=schedule)
    losses = train(network, squared_loss(X, Y), len(X), recipe)
    assert (network.predict(X) - Y).square().mean() < 0.1 * before
    assert len(losses) == 30
    assert losses[-1] < losses[0]
    assert not network.training


def test_same_seed_same_network_and_another_another() -> None:
    X, Y = toy()

    def weights(seed: int) -> dict[str, NDArray[np.float32]]:
        network = small()
        train(network, squared_loss(X, Y), len(X), RECIPE, seed=seed)
        return network.arrays()

    first, second, other = weights(1), weights(1), weights(2)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    assert any(not np.array_equal(first[name], other[name]) for name in first)


def test_global_random_state_is_untouched() -> None:
    before, numpy_before = torch.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    X, Y = toy()
    network = small()
    train(network, squared_loss(X, Y), len(X), RECIPE)
    network.copy().predict(X)
    assert torch.equal(before, torch.get_rng_state())
    assert numpy_before == repr(np.random.get_state())  # noqa: NPY002


def test_dropout_needs_no_global_state_either() -> None:
    X, _ = toy()
    network = small(dropout=0.5).train()
    Z = network.features(X)
    assert 0.4 < float((Z == 0).float().mean()) < 0.9
    network.eval()
    torch.testing.assert_close(network.features(X), network.features(X))


@pytest.mark.parametrize("n_frames", [0, 1, 2, 33])
def test_few_frames(n_frames: int) -> None:
    X, Y = toy(n_frames)
    network = small()
    before = network.arrays()
    losses = train(network, squared_loss(X, Y), n_frames, RECIPE)
    assert all(np.isfinite(value).all() for value in network.arrays().values())
    changed = any(not np.array_equal(before[k], v) for k, v in network.arrays().items())
    assert changed == (n_frames > 0)
    assert len(losses) == (RECIPE.epochs if n_frames else 0)


def test_every_frame_once_an_epoch_in_batches_of_equal_size() -> None:
    seen: list[torch.Tensor] = []
    X, Y = toy(100)
    plain = squared_loss(X, Y)

    def loss(network: Network, rows: torch.Tensor) -> torch.Tensor:
        seen.append(rows)
        return plain(network, rows)

    train(small(), loss, 100, Recipe(epochs=2, batch=33))
    assert [len(rows) for rows in seen] == [25] * 8
    for epoch in (seen[:4], seen[4:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(100))
    assert not torch.equal(seen[0], seen[4])


def test_replay_comes_beside_each_batch_and_round_again() -> None:
    seen: list[torch.Tensor] = []
    X, Y = toy(64 + 5)
    plain = squared_loss(X, Y)

    def loss(network: Network, rows: torch.Tensor) -> torch.Tensor:
        seen.append(rows)
        return plain(network, rows)

    train(small(), loss, 64, Recipe(epochs=1, batch=16), n_replay=5, replay_batch=10)
    assert [len(rows) for rows in seen] == [26] * 4
    replayed = torch.cat([rows[16:] for rows in seen])
    assert sorted(torch.cat([rows[:16] for rows in seen]).tolist()) == list(range(64))
    assert torch.bincount(replayed).tolist()[64:] == [8] * 5  # all equally often
    assert int(replayed.min()) == 64


def test_learning_rates() -> None:
    cosine = Recipe(lr=2.0)
    assert [cosine.lr_at(p) for p in (0.0, 0.5, 1.0)] == pytest.approx([2.0, 1.0, 0.0])
    assert Recipe(lr=2.0, schedule="constant").lr_at(0.9) == 2.0


def test_column_weights() -> None:
    X, Y = toy(20)
    network = small(dropout=0.0).eval()
    weight = torch.tensor([1.0, 0, 0, 0, 0, 2.0])
    rows = torch.arange(20)
    expected = ((network.scores(X) - Y) ** 2 * weight).mean()
    torch.testing.assert_close(squared_loss(X, Y, weight)(network, rows), expected)


def test_labels_are_those_of_angles() -> None:
    azimuth = np.array([[0.0, np.nan], [359.7, 12.25], [np.nan, np.nan], [180.0, 181.5]])
    for sigma, n in ((8.0, 360), (20.0, 72)):
        np.testing.assert_allclose(labels(azimuth, "cpu", sigma, n), encode(azimuth, sigma, n), atol=1e-5)
    assert labels(azimuth[:0], "cpu").shape == (0, 360)


def test_arrays_round_trip_and_share_nothing() -> None:
    network, other = small(0), small(1)
    kept = network.arrays()
    other.load_arrays(kept)
    X, Y = toy(20)
    torch.testing.assert_close(network.predict(X), other.predict(X), rtol=0, atol=0)
    twin = network.copy()
    train(other, squared_loss(X, Y), 20, RECIPE)
    for name, value in network.arrays().items():
        np.testing.assert_array_equal(value, kept[name])
        np.testing.assert_array_equal(value, twin.arrays()[name])


def test_training_that_stops_by_itself_ends_with_the_best_weights() -> None:
    """What is judged rises for three epochs and then falls: those of the third are kept."""
    X, Y = toy()
    network, told, weights = small(), iter([1.0, 2.0, 3.0, *[0.0] * 9]), []

    def judge(judged: Network) -> float:
        weights.append(judged.arrays())
        return next(told)

    losses = train(network, squared_loss(X, Y), len(X), Recipe(epochs=50), stopping=Stopping(judge, 2))
    assert len(losses) == 3 + 2 + 2  # two epochs in vain, then two more at a quarter of the rate
    best = weights[2]
    assert all(np.array_equal(value, best[name]) for name, value in network.arrays().items())
    fallen = [np.abs(weights[k + 1]["output.weight"] - weights[k]["output.weight"]).mean() for k in (3, 5)]
    assert fallen[1] < 0.6 * fallen[0]


def test_a_network_that_keeps_rising_learns_all_epochs() -> None:
    X, Y = toy()
    rising = iter(range(9))
    stopping = Stopping(lambda _: float(next(rising)), 1)
    recipe = Recipe(epochs=4, schedule="constant")
    watched, free = small(), small()
    assert len(train(watched, squared_loss(X, Y), len(X), recipe, stopping=stopping)) == 4
    train(free, squared_loss(X, Y), len(X), recipe)
    for name, value in free.arrays().items():
        assert np.array_equal(value, watched.arrays()[name]), name


def test_what_is_refused() -> None:
    network = small()
    with pytest.raises(TytoError, match="another network"):
        network.load_arrays({})
    wider = Mlp(4, N_OUTPUTS, width=25)
    with pytest.raises(TytoError, match="another width"):
        network.load_arrays(wider.arrays())
    with pytest.raises(ValueError, match="dropout"):
        Mlp(4, dropout=1.0)
    with pytest.raises(ValueError, match="schedule"):
        Recipe(schedule="linear")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lr"):
        Recipe(lr=0.0)
    with pytest.raises(ValueError, match="batch"):
        Recipe(batch=0)


def test_a_frame_is_seen_from_every_side() -> None:
    X, Y = toy(4)
    n, m = X.shape[1], Y.shape[1]
    orders = torch.stack([torch.arange(n), torch.arange(n).flip(0)])
    columns = torch.stack([torch.arange(m), torch.arange(m).flip(0)])
    network = small().eval()
    rows = torch.zeros(1, dtype=torch.long)
    straight = squared_loss(X, Y)(network, rows)
    turned = squared_loss(X.flip(1), Y.flip(1))(network, rows)
    seen = squared_loss(X, Y, sides=(orders, columns))
    network.generator.manual_seed(0)
    values = [seen(network, rows).item() for _ in range(40)]
    assert {round(v, 6) for v in values} == {round(v.item(), 6) for v in (straight, turned)}
    network.generator.manual_seed(0)
    assert values == [seen(network, rows).item() for _ in range(40)]


def test_an_array_without_symmetry_has_no_sides() -> None:
    plain = Symmetry((), False, 0), slice(None)
    assert sides_of([plain], 3, "cpu") is None
    both = sides_of([plain, (Symmetry((), True, 0), np.array([2, 1, 0]))], 3, "cpu")
    assert both is not None
    assert both[0].tolist() == [[0, 1, 2], [2, 1, 0]]
    assert both[1][1, :3].tolist() == [0, 359, 358]
