"""Frames of many arrays, and a network that learns from them."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError, TytoError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.shared import frames as module
from tytoalba.learning.prior.shared.frames import ArrayFrames, FrameRecipe, make_frames, simulated_frames
from tytoalba.learning.prior.shared.geometry import Geometry
from tytoalba.learning.prior.shared.judge import calibrated_weights, judged
from tytoalba.learning.prior.shared.make import AnySettings, Arriving
from tytoalba.signal.array import load_array

torch = pytest.importorskip("torch")
from tytoalba.learning.prior.shared import train as train_module  # noqa: E402 - needs torch
from tytoalba.learning.prior.shared.network import Placed, SharedNetwork  # noqa: E402 - needs torch
from tytoalba.learning.prior.shared.train import SharedRecipe, drawn, train_shared  # noqa: E402 - needs torch

RECIPE = FrameRecipe((SyntheticVoices(),), rooms=5, frames=60, machines=3)
TRAINING = SharedRecipe(8, 8, 6, 1, steps=90, arrays=2, frames=16, rate=1e-2, warm_up=5)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tytoalba.data.simulation.stems.N_VOICES", (8, 8))
        patch.setattr(module, "TURNS", ("anechoic", "hybrid"))
        patch.setattr("tytoalba.data.simulation.random_arrays.RATES", (16000,))
        return make_frames(tmp_path_factory.mktemp("frames"), 3, RECIPE)


def test_frames_are_of_their_array_and_some_are_of_nobody(paths: list[Path]) -> None:
    nobody = 0
    for path in paths:
        frames = ArrayFrames.load(path)
        assert frames.array.name.startswith("random-0-")
        assert frames.codes.dtype == np.int8
        assert len(frames.codes) == len(frames.azimuth) == 60
        assert frames.codes.shape[3] == frames.array.n_pairs
        nobody += int(np.isnan(frames.azimuth).all(axis=1).sum())
    assert 0 < nobody < 60


def test_frames_that_are_there_are_not_made_again(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "simulated_frames", lambda *_: pytest.fail("made again"))
    assert make_frames(paths[0].parent, 3, RECIPE) == paths


def test_the_same_recipe_gives_the_same_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tytoalba.data.simulation.stems.N_VOICES", (4, 4))
    monkeypatch.setattr(module, "TURNS", ("anechoic",))
    array = load_array("respeaker-usb-4")
    one, again = (simulated_frames(array, replace(RECIPE, frames=16), 1) for _ in range(2))
    assert np.array_equal(one.codes, again.codes)
    assert np.array_equal(one.azimuth, again.azimuth, equal_nan=True)


def test_a_file_of_no_frames_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="holds no frames"):
        ArrayFrames.load(tmp_path / "x.safetensors")
    with pytest.raises(DataError, match="no frames to learn from"):
        train_shared([], TRAINING)


def test_training_lowers_the_loss_and_goes_on_where_it_was_stopped(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_module, "OFTEN", 6)
    losses: list[float] = []
    whole = train_shared(paths, TRAINING, watch=lambda _, loss: losses.append(loss))
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:3])
    checkpoint = tmp_path / "checkpoint.safetensors"

    class StoppedError(Exception):
        """Somebody pressed Ctrl-C."""

    for last in (12, 85):  # before and among the rounded steps

        def stop(step: int, _: int, last: int = last) -> None:
            if step == last:
                raise StoppedError

        with pytest.raises(StoppedError):
            train_shared(paths, TRAINING, checkpoint=checkpoint, on_progress=stop)
    resumed = train_shared(paths, TRAINING, checkpoint=checkpoint)
    assert whole.keys() == resumed.keys()
    for name, values in whole.items():
        assert np.array_equal(resumed[name], values), name


def test_a_step_mixes_no_devices(paths: list[Path]) -> None:
    """On a device that computes shapes only, and refuses whatever was left on the CPU."""
    known = [train_module._Known.load(path, "meta") for path in paths]
    network = SharedNetwork(8, 8, 6, 2).to("meta").train()
    batches, target = drawn(known, TRAINING, 0, "meta")
    loss = (torch.sigmoid(network(batches)) - target).square().sum(1).mean()
    loss.backward()
    assert loss.device.type == "meta"
    assert {parameter.grad.device.type for parameter in network.parameters()} == {"meta"}  # type: ignore[union-attr]


def test_what_is_steered_on_a_device_is_what_is_steered_in_numpy(paths: list[Path]) -> None:
    array = ArrayFrames.load(paths[0]).array
    told = Geometry.of(array, prior_gcc(array))
    placed = Placed.of(told)
    assert np.array_equal(placed.steering.numpy(), told.steering)
    pairs, order = torch.tensor([2, 0]), torch.arange(359, -1, -1)
    turned = placed.changed(pairs, order, torch.arange(119, -1, -1))
    assert np.array_equal(turned.steering.numpy(), told.steering[:, [2, 0]][..., ::-1])
    assert np.array_equal(turned.known.numpy(), told.known[[2, 0]][:, ::-1])


def test_training_stops_in_time_and_takes_what_comes_later(paths: list[Path], tmp_path: Path) -> None:
    checkpoint, late = tmp_path / "checkpoint.safetensors", [[paths[1]], [paths[2]]]
    with pytest.raises(TytoError, match="the time is over at step 1 of 90, with frames of 2 arrays"):
        train_shared(
            paths[:1], TRAINING, checkpoint=checkpoint, until=0.0, more=lambda: late.pop(0) if late else ()
        )
    assert checkpoint.exists()
    steps: list[int] = []
    train_shared(paths, TRAINING, checkpoint=checkpoint, on_progress=lambda step, _: steps.append(step))
    assert steps[0] == 2
    assert steps[-1] == 90


def test_files_arrive_while_others_are_made() -> None:
    made: list[int] = []

    def files() -> Generator[Path]:
        try:
            for k in range(1000):
                made.append(k)
                yield Path(str(k))
                time.sleep(0.01)
        finally:
            made.append(-1)

    with Arriving(files()) as arriving:
        first = arriving.first(3, lambda _: None)
        assert len(first) >= 3
        time.sleep(0.1)
        later = arriving.new()
        assert later
        assert not set(first) & set(later)
    assert made[-1] == -1  # the others are not made
    assert len(made) < 900
    none: list[Path] = []
    with Arriving(path for path in none) as nothing:
        assert nothing.first(5, lambda _: None) == []


def slowly(n: int) -> Generator[Path]:
    for k in range(n):
        time.sleep(0.01)
        yield Path(str(k))


def test_an_error_in_the_background_is_raised_where_files_are_asked_for() -> None:
    def files() -> Generator[Path]:
        yield Path("a")
        raise DataError("no speech")

    with Arriving(files()) as arriving, pytest.raises(DataError, match="no speech"):
        arriving.first(2, lambda _: None)
    with (
        Arriving(slowly(500)) as slow,
        pytest.raises(TytoError, match="the time is over with"),
    ):
        slow.first(500, lambda _: None, until=time.monotonic() + 0.1)


def test_a_family_is_left_out_with_its_arrays(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURNS", ("anechoic", "hybrid"))
    monkeypatch.setattr(module, "simulated_frames", lambda *_: pytest.fail("made again"))
    assert make_frames(paths[0].parent, 3, RECIPE, leave_out="anechoic") == [paths[1]]
    with pytest.raises(TytoError, match="no acoustics called 'cave'; known: hybrid, anechoic, pyroom"):
        AnySettings(leave_out="cave")


def test_a_checkpoint_of_another_recipe_is_refused(paths: list[Path], tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    train_shared(paths, TRAINING, checkpoint=checkpoint)
    with pytest.raises(DataError, match="not a checkpoint of this recipe"):
        train_shared(paths, replace(TRAINING, width=9), checkpoint=checkpoint)
    with pytest.raises(DataError, match="of step 90, of 12"):
        train_shared(paths, replace(TRAINING, steps=12), checkpoint=checkpoint)


def test_tuning_starts_where_the_network_is_and_keeps_all_microphones(paths: list[Path]) -> None:
    start = train_shared(paths, TRAINING)
    tuning = replace(TRAINING, tuning=True, steps=30, rounded_rate=1e-9)
    same = train_shared(paths, tuning, start=start)
    assert all(np.array_equal(same[name], values) for name, values in start.items())
    losses: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_module, "OFTEN", 10)
        further = replace(tuning, rounded_rate=3e-3)
        train_shared(paths, further, start=start, watch=lambda _, loss: losses.append(loss))
    assert losses[-1] < losses[0]
    known = [train_module._Known.load(path, "cpu") for path in paths]
    drawn_pairs = {batch.codes.shape[3] for step in range(9) for batch in drawn(known, tuning, step)[0]}
    assert drawn_pairs == {one.array.n_pairs for one in known}
    with pytest.raises(DataError, match="tuning needs a network to start from"):
        train_shared(paths, tuning)
    with pytest.raises(DataError, match="tuning needs a network to start from"):
        train_shared(paths, TRAINING, start=start)


def test_rates_rise_and_fall() -> None:
    rates = [TRAINING.rate_at(step) for step in range(TRAINING.steps)]
    assert rates[0] < rates[2] < max(rates)
    assert max(rates) == pytest.approx(TRAINING.rate, rel=0.02)
    assert rates[TRAINING.first_rounded] == TRAINING.rounded_rate
    assert rates[-1] < TRAINING.rounded_rate
    tuning = replace(TRAINING, tuning=True)
    assert tuning.rate_at(0) == TRAINING.rounded_rate
    assert tuning.rate_at(TRAINING.steps - 1) < TRAINING.rounded_rate / 100


@pytest.mark.parametrize("wrong", [{"width": 0}, {"steps": 5}, {"rounded": 0.0}, {"rounded": 1.0}])
def test_impossible_recipes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        replace(TRAINING, **wrong)


@pytest.mark.parametrize("wrong", [{"arrays": 0}, {"rooms": 4}, {"scenes": -1}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TytoError):
        AnySettings(**wrong)


def test_it_is_calibrated_and_judged_on_arrays_that_it_has_not_met(paths: list[Path]) -> None:
    made = calibrated_weights(train_shared(paths, TRAINING), paths, {})
    array = load_array("respeaker-usb-4")
    prior = made.prior(array)
    assert prior.constants["logit_spread"][0] > 0
    assert len(prior.counting()) == 2
    rows = judged(made, array, (SyntheticVoices(),), n_scenes=8, families=("anechoic", "hybrid"))
    assert {row.who for row in rows} == {"srp", "music", "any"}
    for row in rows:
        assert row.interval[0] <= row.acc <= row.interval[1]
        assert row.n_frames > 20
    best = {row.who: row.acc for row in rows if row.n_sources == 1}
    assert best["srp"] > 20  # a network that has hardly learned may be far below
