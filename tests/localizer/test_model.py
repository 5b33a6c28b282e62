"""Models: they answer as the state they are from, hold no sums, and files cannot lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.localizers import (
    ARRAY,
    changed,
    closed,
    features,
    opened,
    phase,
    small_state,
    with_options,
)
from tytoalba.errors import FileError, TytoError
from tytoalba.localizer.model import PURPOSE, Model
from tytoalba.localizer.state import Kept, State
from tytoalba.signal.array import load_array


@pytest.fixture(scope="module")
def state() -> State:
    taught = small_state(30)
    for k in range(4):
        taught.teach(phase(k), Kept("minerva", (5.0,), 1) if k == 2 else None)
    return taught


@pytest.fixture(scope="module")
def model(state: State) -> Model:
    return state.model()


@pytest.fixture(scope="module")
def data(model: Model) -> bytes:
    return model.to_bytes()


def test_a_model_scores_as_the_learner_does() -> None:
    for options in ({"views": 1}, {"views": 3, "sound": 0.0}, {"simulated": 0, "prior_frames": 1.0}):
        state = small_state(30, **options)
        state.teach(phase(1))
        expected = state.learner.posterior(features(4))
        assert np.abs(state.model().scores(features(4)) - expected).max() < 1e-5


def test_a_file_is_the_model(model: Model, data: bytes) -> None:
    again = Model.from_bytes(data)
    assert again.to_bytes() == data
    assert np.array_equal(again.scores(features(5)), model.scores(features(5)))
    assert again.n_frames == model.n_frames == 12  # frames, not sources
    assert again.array == ARRAY


def test_a_model_holds_no_sums_and_no_names(state: State, model: Model, data: bytes) -> None:
    header, arrays = opened(data)
    assert {name.split(".")[0] for name in arrays} == {"W", "weight", "prior"}
    assert not [name for name in arrays if "frames" in name]
    assert not {"lessons", "kept", "owner"} & header.keys()
    assert b"minerva" not in data
    for name, values, purpose in model.inventory():
        assert np.array_equal(arrays[name], values)
        assert purpose == PURPOSE[name.split(".")[0]]
    assert [name for name, *_ in model.inventory()] == sorted(arrays)
    assert len(data) < len(state.to_bytes())


def test_the_prior_counts_less_where_it_was_taught(model: Model) -> None:
    taught = model.weight < 1
    assert taught[[0, 37, 137]].all()
    assert not taught[180:200].any()
    assert (model.weight > 0.99).all()  # three frames are few beside a thousand


@given(st.lists(st.integers(0, 9), max_size=4))
@settings(max_examples=12, deadline=None)
def test_scores_do_not_depend_on_the_batch_to_the_bit(model: Model, cuts: list[int]) -> None:
    whole = model.scores(features(9))
    parts = [model.scores(part) for part in np.split(features(9), sorted(cuts))]
    assert np.array_equal(np.concatenate(parts), whole)
    assert whole.dtype == np.float32


def test_weights_of_any_size_are_summed_as_they_are(model: Model) -> None:
    """In whole steps, which are finer than float32 of the largest weight."""
    for factor in (1e-20, 1.0, 1e20):
        scaled = Model(ARRAY, model.prior, model.options, model.W * np.float32(factor), model.weight * 0)
        expected = Model(ARRAY, model.prior, model.options, model.W, model.weight * 0).scores(features(3))
        assert scaled.scores(features(3)) == pytest.approx(factor * expected, rel=1e-4, abs=1e-6 * factor)
    nothing = Model(ARRAY, model.prior, model.options, model.W * 0, model.weight * 0)
    assert not nothing.scores(features(3)).any()


def test_what_is_given_away_is_coarse_about_how_often_it_was_taught() -> None:
    state = small_state(30, prior_frames=4.0)
    for k in range(4):
        state.teach(phase(k, 3 + k))
    model = state.model()
    given = model.coarse()
    assert np.array_equal(given.weight * 8 % 1, np.zeros(360))
    assert np.abs(given.weight - model.weight).max() <= 1 / 16
    assert len(np.unique(given.weight)) < len(np.unique(model.weight))
    assert np.array_equal(given.W, model.W)
    again = Model.from_bytes(given.to_bytes())
    assert again.to_bytes() == given.coarse().to_bytes() == given.to_bytes()
    assert np.abs(again.scores(features(4)) - model.scores(features(4))).max() < 1 / 8


def test_a_state_that_knows_nothing_makes_a_model_that_is_the_prior() -> None:
    fresh = small_state(20)
    assert np.array_equal(fresh.model().weight, np.ones(360))
    assert np.abs(fresh.model().scores(features(3)) - fresh.learner.posterior(features(3))).max() < 1e-5


# ---- files


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_flipped_bits_and_cuts_are_noticed(data: bytes, draw: st.DataObject) -> None:
    position = draw.draw(st.integers(0, len(data) - 1))
    flipped = bytearray(data)
    flipped[position] ^= 1 << draw.draw(st.integers(0, 7))
    for damaged in (bytes(flipped), data[:position]):
        with pytest.raises(FileError, match=r"^this file "):
            Model.from_bytes(damaged)


def test_weights_that_do_not_fit_are_refused(model: Model, data: bytes) -> None:
    header, arrays = opened(data)
    hole = model.W.copy()
    hole[3, 4] = np.nan
    wrong: list[tuple[str, Any]] = [
        ("W", model.W[:-1]),
        ("W", model.W[:, :-1]),
        ("W", model.W.astype(np.float64)),
        ("W", hole),
        ("W", np.full_like(model.W, np.inf)),
        ("W", np.float32(1.0)),
        ("weight", model.weight[:-1]),
        ("weight", -np.full_like(model.weight, np.inf)),
    ]
    for name, values in wrong:
        with pytest.raises(FileError, match="its weights do not fit it"):
            Model.from_bytes(changed(data, {name: np.asarray(values)}))
    for name in ("W", "weight", "prior.enter"):
        with pytest.raises(FileError, match=r"^this file is damaged"):
            Model.from_bytes(closed(header, {k: v for k, v in arrays.items() if k != name}))


@pytest.mark.parametrize(
    "change",
    [
        {"n_frames": -1},
        {"n_frames": None},
        {"n_frames": "many"},
        {"array": 3},
        {"array": load_array("pepper").to_toml()},
        {"options": None},
        {"prior": None},
        {"prior": {}},
    ],
)
def test_headers_that_lie_are_refused(data: bytes, change: dict[str, Any]) -> None:
    with pytest.raises(FileError, match=r"^this file is damaged"):
        Model.from_bytes(changed(data, **change))


@pytest.mark.parametrize("name", ["n_features", "seed", "bandwidth", "sound", "views", "expansion"])
@pytest.mark.parametrize("value", [None, -1, 10**12, float(10**12), "3", [], 2**80])
def test_options_that_lie_are_refused(data: bytes, name: str, value: Any) -> None:
    if name == "seed" and value == 10**12:
        return  # a seed like any other
    with pytest.raises(FileError, match=r"^this file is damaged: .*" + name):
        Model.from_bytes(with_options(data, **{name: value}))


@pytest.mark.parametrize("expansion", ["orthogonal", "structured"])
def test_files_of_removed_random_features_are_refused(data: bytes, expansion: str) -> None:
    for read, content in ((Model.from_bytes, data), (State.from_bytes, small_state().to_bytes())):
        with pytest.raises(FileError, match=f"{expansion} random features, .* tagged before-rebuild"):
            read(with_options(content, expansion=expansion))


def test_newer_files_of_the_same_version_are_read(data: bytes) -> None:
    assert Model.from_bytes(changed(data, {"later": np.zeros(1)}, later=1)).to_bytes() == data
    for version in (0, 4, True, "1"):
        with pytest.raises(FileError, match=r"has version .* reads 1 to 3"):
            Model.from_bytes(changed(data, version=version))
    with pytest.raises(FileError, match="is not a model of tytoalba but tytoalba-state"):
        Model.from_bytes(small_state().to_bytes())


def test_features_of_another_size_are_refused(model: Model) -> None:
    with pytest.raises(TytoError, match="values a frame"):
        model.scores(features(3)[:, :-1])
