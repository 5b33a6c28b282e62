"""The network as it is trained, and the one in whole numbers that comes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.learning.prior.shared.helpers import features, geometry
from tytoalba.data.simulation.random_arrays import random_array
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared.exact import is_exact, rounded_codes
from tytoalba.learning.prior.shared.prior import SharedWeights
from tytoalba.signal.array import MicArray, load_array

torch = pytest.importorskip("torch")
from tytoalba.learning.prior.shared.network import Batch, SharedNetwork  # noqa: E402 - needs torch

ARRAYS = [load_array("respeaker-usb-4"), random_array(0, 5)]


def batch(array: MicArray, n: int = 6) -> Batch:
    gcc = prior_gcc(array)
    codes = rounded_codes(features(array, n)).reshape(n, -1, len(gcc.band_list), len(gcc.pairs), gcc.n_lags)
    return Batch.of(codes.astype(np.int8), geometry(array))


@pytest.fixture
def network() -> SharedNetwork:
    """One whose normalisation has seen something."""
    made = SharedNetwork(8, 8, 6, 2, seed=1)
    made.train()
    with torch.no_grad():
        for _ in range(60):
            made([batch(array) for array in ARRAYS])
    return made.eval()


def test_several_arrays_at_once_are_as_each_alone(network: SharedNetwork) -> None:
    batches = [batch(array) for array in ARRAYS]
    both = network(batches)
    alone = torch.cat([network([one]) for one in batches])
    assert torch.allclose(both, alone, atol=1e-4)


def test_folding_the_normalisation_changes_little(network: SharedNetwork) -> None:
    batches = [batch(array) for array in ARRAYS]
    plain = network(batches)
    rounded = network.with_rounding().eval()(batches)
    assert (plain - rounded).abs().mean() < 0.1 * plain.std()


def test_whole_numbers_give_what_rounding_in_the_loop_gave(network: SharedNetwork) -> None:
    rounding = network.with_rounding().eval()
    for array in ARRAYS:
        found = SharedWeights(rounding.quantised(), {}, {}).prior(array).logits(features(array, 6))
        wanted = rounding([batch(array)]).detach().numpy()
        assert np.abs(found - wanted).mean() < 0.02
        assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.999


def test_weights_in_eight_bits_become_a_network_and_the_same_weights_again(network: SharedNetwork) -> None:
    weights = network.with_rounding().quantised()
    again = SharedNetwork.of(weights)
    assert (again.shape, again.rounding) == (network.shape, True)
    for name, values in again.quantised().items():
        assert np.array_equal(values, weights[name]), name
    found = SharedWeights(weights, {}, {}).prior(ARRAYS[0]).logits(features(ARRAYS[0], 6))
    wanted = again.eval()([batch(ARRAYS[0])]).detach().numpy()
    assert np.abs(found - wanted).max() < 0.02


def test_gradients_reach_every_weight(network: SharedNetwork) -> None:
    for made in (network.train(), network.with_rounding().train()):
        made([batch(array) for array in ARRAYS]).square().mean().backward()
        for name, parameter in made.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.abs().max() > 0, name


def test_its_weights_are_exact(network: SharedNetwork) -> None:
    assert is_exact(network.quantised())
    assert is_exact(network.with_rounding().quantised())
