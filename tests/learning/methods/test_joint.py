"""The bounds: Joint that stops when validation stops rising, and Joint that starts from the prior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tytoalba.errors import TytoError
from tytoalba.learning.method import Task
from tytoalba.learning.methods.contract import CHECKS, toy_features, toy_phases, toy_task
from tytoalba.learning.methods.joint import Joint
from tytoalba.learning.phases import Phase, groups, split
from tytoalba.learning.prior.features import prior_gcc, scores
from tytoalba.learning.prior.registry import find_prior
from tytoalba.learning.tyto import Tyto
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.symmetry import symmetries

PEPPER = load_array("pepper")
QUICK: dict[str, Any] = {"width": 32, "batch": 32, "dropout": 0.0, "lr": 3e-3}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def waves(task: Task, n: int, seed: int, two: bool = False) -> Phase:
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(0, 360, (n, 2))
    if not two:
        azimuth[:, 1] = np.nan
    return Phase(toy_features(task, azimuth, rng), azimuth, np.arange(360))


def judged(**changes: Any) -> Task:
    task = toy_task()
    return replace(task, valid=waves(task, 60, 5), **changes)


# ---- until validation stops rising ----


def test_training_ends_when_validation_frames_are_found_no_better() -> None:
    task = judged()
    joint = Joint(task, patience=3, epochs=200, **QUICK)
    joint.learn(waves(task, 200, 1))
    (epochs,) = joint.epochs_
    assert 8 <= epochs < 200  # two times three epochs without a rise, after those with one
    assert joint.memory()["epochs"].tolist() == [epochs]
    again = Joint(task, patience=3, **QUICK)
    again.restore(joint.memory())
    assert again.epochs_ == [epochs]
    assert joint.had == ("validation frames",)


def test_validation_frames_decide_and_are_not_learned_from() -> None:
    """Labels at random say nothing: then the first epochs are as good as any, and training is short."""
    task = toy_task()
    told, random = waves(task, 60, 5), waves(task, 60, 6)
    misled = Joint(replace(task, valid=replace(told, azimuth=random.azimuth)), patience=2, epochs=99, **QUICK)
    right = Joint(replace(task, valid=told), patience=2, epochs=99, **QUICK)
    for joint in (misled, right):
        joint.learn(waves(task, 200, 1))
    assert misled.epochs_[0] < right.epochs_[0]
    assert not any("valid" in name for name in right.memory())
    assert len(right.memory()["X"]) == 200


def test_only_directions_that_were_taught_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    from tytoalba.learning.methods import joint as module

    seen: list[np.ndarray[Any, Any]] = []
    real = module._accuracy

    def spying(found: Any, azimuth: Any) -> float:
        seen.append(azimuth)
        return real(found, azimuth)

    monkeypatch.setattr(module, "_accuracy", spying)
    task = toy_task()
    valid = waves(task, 200, 5, two=True)
    valid.azimuth[:100, 1] = np.nan
    np.floor(valid.azimuth, out=valid.azimuth)
    stream = waves(task, 60, 1)
    joint = Joint(replace(task, valid=valid), patience=1, epochs=2, **QUICK)
    for phase, top in zip(split(stream.X, stream.azimuth, groups(2)), (180, 360), strict=True):
        seen.clear()
        joint.learn(phase)
        azimuth = seen[0]
        assert 10 < len(azimuth) <= 200
        assert len(azimuth) == (np.nan_to_num(valid.azimuth) < top).all(axis=1).sum()
        assert np.nanmax(azimuth) < top


def test_where_no_frame_can_judge_all_epochs_are_learned() -> None:
    task = toy_task()
    nobody = Phase(np.empty((0, task.n_inputs), np.float32), np.empty((0, 1)), np.arange(360))
    joint = Joint(replace(task, valid=nobody), patience=1, epochs=4, **QUICK)
    plain = Joint(task, epochs=4, **QUICK)
    for one in (joint, plain):
        one.learn(waves(task, 50, 1))
    assert joint.epochs_ == [4]
    X = waves(task, 9, 2).X
    np.testing.assert_array_equal(joint.posterior(X), plain.posterior(X))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_contract_where_it_stops(check: Any) -> None:
    task = toy_task()
    toy = toy_phases(task, 6, repeats=4, seed=9)
    valid = Phase(*(np.concatenate([getattr(p, name) for p in toy]) for name in Phase.__dataclass_fields__))
    check(lambda task: Joint(task, patience=3, epochs=30, **QUICK), replace(task, valid=valid))


def test_accuracy_of_one_and_two_sources() -> None:
    from tytoalba.learning.methods.joint import _accuracy

    map_of = np.zeros((3, 360), np.float32)
    map_of[0, 10] = 1
    map_of[1, [20, 200]] = 1, 2
    map_of[2, [20, 90]] = 1, 2
    azimuth = np.array([[14.0, np.nan], [199.0, 24.0], [np.nan, 20.0]])
    assert _accuracy(map_of, azimuth) == pytest.approx(2 / 3)  # the last answer is 90
    assert _accuracy(map_of[:2], np.array([[50.0, np.nan], [200.0, 100.0]])) == pytest.approx(1 / 4)


# ---- from the prior ----


def prior_task() -> Task:
    gcc = prior_gcc(PEPPER)
    return Task(gcc.n_features, array=PEPPER, gcc=gcc)


def heard(gcc: GccPhat, n: int, seed: int = 0) -> Phase:
    """Frames of noise from everywhere: enough to see whether two networks say the same."""
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((n, PEPPER.n_mics, gcc.n_samples))
    X = np.asarray(gcc(frames), np.float32).reshape(n, -1)
    return Phase(X, rng.uniform(0, 360, (n, 1)), np.arange(360))


@pytest.mark.parametrize("views", [1, 2])
def test_before_it_learns_it_says_what_the_prior_says(views: int) -> None:
    task = prior_task()
    assert task.gcc is not None
    phase = heard(task.gcc, 24)
    joint = Joint(task, start="prior", views=views, epochs=0)
    joint.learn(phase)
    prior = find_prior(PEPPER)
    assert prior is not None
    X = heard(task.gcc, 6, seed=1).X
    wanted = scores(prior.logits(X))
    if views == 2:
        mirror = symmetries(PEPPER)[1]
        wanted = (wanted + mirror.back(scores(prior.logits(X[:, mirror.order(task.gcc)])))) / 2
    np.testing.assert_allclose(joint.posterior(X), wanted, atol=2e-3)
    assert joint.had == (("simulations", "mirrored frames") if views == 2 else ("simulations",))


def test_it_learns_on_and_starts_anew_at_each_phase() -> None:
    task = prior_task()
    assert task.gcc is not None
    stream = heard(task.gcc, 16)
    options: dict[str, Any] = {"start": "prior", "epochs": 2, "batch": 8, "lr": 1e-3}
    joint, once = Joint(task, **options), Joint(replace(task, seed=0), **options)
    for phase in split(stream.X, stream.azimuth, groups(2)):
        joint.learn(phase)
    untaught = Joint(task, **{**options, "epochs": 0})
    untaught.learn(stream)
    assert not np.allclose(joint.posterior(stream.X), untaught.posterior(stream.X), atol=1e-2)
    once.restore(joint.memory())
    np.testing.assert_array_equal(once.posterior(stream.X), joint.posterior(stream.X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "prior"}, "no prior fits these features: .* leave out start = 'prior'"),
        ({"start": "elsewhere"}, "start must be one of anew, prior, got 'elsewhere'"),
        ({"patience": 2}, "patience needs validation frames"),
        ({"patience": -1}, "patience must be 0 or more epochs, got -1"),
    ],
)
def test_bounds_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TytoError, match=message):
        Joint(toy_task(), **options)


def test_what_bounds_and_learner_had() -> None:
    task = prior_task()
    assert Joint(task).had == ()
    assert Joint(task, views=2).had == ("mirrored frames",)
    assert Tyto(task, n_features=20).had == ("simulations", "mirrored frames")
    assert Tyto(task, n_features=20, views=1).had == ("simulations",)
    assert Tyto(task, n_features=20, prior="none", views=1).had == ()
    assert Tyto(toy_task(), n_features=20, views=1).had == ()
