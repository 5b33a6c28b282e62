"""A prior for any array, at once: in files, in states, in any order, at any rate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.learning.prior.shared.helpers import features, weights
from tytoalba.errors import PriorError
from tytoalba.learning.prior.files import load_prior
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.shared.prior import N_MICS, SharedPrior, SharedWeights
from tytoalba.signal.array import MicArray, load_array
from tytoalba.storage.tensors import read_tensors, write_tensors

pytest.importorskip("torch")
ARRAY = replace(load_array("respeaker-6mic"), name="mine", sample_rate=24000)


@pytest.fixture(scope="module")
def prior() -> SharedPrior:
    return weights().prior(ARRAY)


def test_a_file_gives_it_back(prior: SharedPrior, tmp_path: Path) -> None:
    prior.save(tmp_path / "mine.safetensors")
    again = load_prior(tmp_path / "mine.safetensors")
    assert isinstance(again, SharedPrior)
    assert np.array_equal(again.digest, prior.digest)
    assert again.steering_digest == prior.steering_digest
    X = features(ARRAY)
    assert np.array_equal(again.logits(X), prior.logits(X))
    assert (tmp_path / "mine.safetensors").stat().st_size < 200_000


def test_what_it_is_told_is_taken_from_the_file_and_not_computed_again(
    prior: SharedPrior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior.save(tmp_path / "mine.safetensors")
    monkeypatch.setattr("tytoalba.learning.prior.shared.geometry.interpolation", None)
    assert np.array_equal(load_prior(tmp_path / "mine.safetensors").digest, prior.digest)


@pytest.mark.parametrize(
    "change",
    [
        lambda _, arrays: arrays.pop("leave"),
        lambda _, arrays: arrays.update(hear=arrays["hear"].astype(np.int16)),
        lambda _, arrays: arrays.update(more=arrays["hear"]),
        lambda _, arrays: arrays.update({"near0.bias": np.full_like(arrays["near0.bias"], 2**30)}),
        lambda _, arrays: arrays.update({"pair.shift": np.full_like(arrays["pair.shift"], 99)}),
        lambda _, arrays: arrays.update({"geometry.delays": arrays["geometry.delays"][:3]}),
        lambda _, arrays: arrays.pop("geometry.table"),
        lambda header, _: header.update(version=2),
        lambda header, _: header.update(array="name = 5"),
        lambda header, _: header.update(array=load_array("pepper").to_toml()),
        lambda header, _: header.update(constants=5),
        lambda header, _: header.update(network="another"),
        lambda header, _: header.pop("about"),
    ],
)
def test_altered_files_are_refused(prior: SharedPrior, tmp_path: Path, change: Any) -> None:
    path = tmp_path / "mine.safetensors"
    prior.save(path)
    header, arrays = read_tensors(path)
    change(header, arrays)
    write_tensors(path, arrays, header)
    with pytest.raises(PriorError):
        load_prior(path)


def test_weights_are_told_from_priors(prior: SharedPrior, tmp_path: Path) -> None:
    path = tmp_path / "any.safetensors"
    weights().save(path)
    again = SharedWeights.load(path)
    assert all(np.array_equal(again.weights[name], values) for name, values in weights().weights.items())
    with pytest.raises(PriorError):
        load_prior(path)
    prior.save(path)
    with pytest.raises(PriorError):
        SharedWeights.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(PriorError):
        SharedWeights.load(path)


def test_arrays_far_from_all_it_learned_from_are_refused() -> None:
    few = MicArray("pair", ((0.05, 0.0, 0.0), (-0.05, 0.0, 0.0)))
    wide = replace(ARRAY, positions=tuple((10 * x, 10 * y, z) for x, y, z in ARRAY.positions))
    many = MicArray("many", tuple((0.01 * k, 0.01 * (k % 3), 0.0) for k in range(N_MICS[1] + 1)))
    for array in (few, wide, many):
        with pytest.raises(PriorError, match="srp and music need no prior"):
            weights().prior(array)


def test_it_is_no_beginning_for_the_prior_of_one_array(prior: SharedPrior) -> None:
    with pytest.raises(PriorError, match="start without it"):
        prior.real_weights()
    other = prior.moved(load_array("pepper"))
    assert np.array_equal(other.digest, weights().prior(load_array("pepper")).digest)


def test_simulated_frames_come_with_it_when_asked_for(
    prior: SharedPrior, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tytoalba.learning.prior.shared.prior.N_SCENES", 2)
    done: list[int] = []
    made = prior.with_simulated_frames(on_progress=lambda k, _: done.append(k))
    assert done == [1, 2]
    logits, sound = made.simulated_frames()
    assert len(logits) == len(sound) > 5
    assert np.array_equal(made.digest, prior.digest)
    assert isinstance(made, Prior)
