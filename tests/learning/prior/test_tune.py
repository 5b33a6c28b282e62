"""The network for every array, tuned for one: in a file that goes before the shared one, exact as that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.arrays import moved
from tests.helpers.onnx_graphs import scores_of
from tests.helpers.tuning import MINE, small_tuning, tiny
from tests.learning.prior.shared.helpers import features
from tytoalba import Localizer
from tytoalba.bench.onnx import random_frames
from tytoalba.errors import PriorError, TytoError
from tytoalba.learning.prior.files import load_prior
from tytoalba.learning.prior.make import make_prior
from tytoalba.learning.prior.registry import fitting_prior, prior_folder, shared_weights
from tytoalba.learning.prior.shared import frames
from tytoalba.learning.prior.shared.frames import ArrayFrames
from tytoalba.learning.prior.shared.judge import Gain
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.learning.prior.tune import TunedPrior, tune_prior
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.onnx.graph import Known
from tytoalba.localizer.state import State
from tytoalba.signal.array import MicArray
from tytoalba.storage.tensors import read_tensors, write_tensors

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulated frames that all runs of this file share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def made(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[TunedPrior]:
    """A tuned prior, written whether it is better or not."""
    with pytest.MonkeyPatch.context() as patch:
        small_tuning(patch, tmp_path_factory.mktemp("priors"))
        yield tune_prior(MINE, tiny(), force=True, cache=cache, processes=1)


@pytest.fixture
def priors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of priors that is not there yet."""
    small_tuning(monkeypatch, tmp_path / "priors")
    return tmp_path / "priors"


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "simulated_frames", lambda *_: pytest.fail("simulated"))


def test_it_goes_before_the_shared_network(made: TunedPrior) -> None:
    assert (made.written, made.path) == (True, prior_folder() / "mine.safetensors")
    assert [path.name for path in prior_folder().iterdir()] == ["mine.safetensors"]
    shared = shared_weights().prior(MINE)
    assert not np.array_equal(made.prior.digest, shared.digest)
    assert np.array_equal(made.prior.geometry.steering, shared.geometry.steering)
    for array in (MINE, moved(MINE, [2, 0, 1], 77.0, np.array([0.1, 0.0, 0.2]))):
        found, _ = fitting_prior(array)
        assert isinstance(found, SharedPrior)
        assert np.array_equal(found.digest, made.prior.digest)
    assert np.array_equal(
        fitting_prior(replace(MINE, sample_rate=16000))[0].weights["leave"], shared.weights["leave"]
    )


def test_it_says_what_it_learned_from_and_how_far_to_trust_it(made: TunedPrior) -> None:
    about, found = made.prior.about, load_prior(made.path)
    assert (about["array"], about["scenes"], about["frames"], about["speech"]) == (
        "mine",
        10,
        160,
        "synthetic",
    )
    assert about["recipe"]["tuning"]
    assert about["recipe"]["width"] == made.prior.width == 48
    assert about["start"] == shared_weights().about
    assert found.about == about
    assert found.constants["confidence"] == found.confidence.to_dict()
    assert found.confidence.to_dict() != shared_weights().constants["confidence"]
    assert len(found.counting()) == 2
    assert len(found.simulated_frames()[0]) > 5


def test_it_is_judged_beside_the_others(made: TunedPrior) -> None:
    assert {row.who for row in made.judged} == {"srp", "music", "any", "tuned"}
    assert {row.scenes for row in made.judged} == {"calm", "wild"}
    low, high = made.gain.interval
    assert low <= made.gain.points <= high
    assert made.to_dict()["gain"] == {"points": made.gain.points, "interval": [low, high]}


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_torch_gives_the_same_bits(made: TunedPrior, device: str) -> None:
    X = features(made.prior.array, 9)
    there = made.prior.logits(torch.from_numpy(X).to(device)).cpu().numpy()
    assert np.array_equal(there, made.prior.logits(X))
    assert np.array_equal(load_prior(made.path).logits(X[4:5]), made.prior.logits(X)[4:5])


def test_a_graph_gives_the_same_bits(made: TunedPrior) -> None:
    """From sound, of the array in another order, and of a localizer that was taught behind the prior."""
    pytest.importorskip("onnx")
    other = moved(MINE, [2, 0, 1], 77.0, np.zeros(3))
    known = Known.of_array(other)
    assert np.array_equal(known.prior.digest, made.prior.digest)
    finder, (x,) = MapFinder(other, "prior"), random_frames(other, 3, seed=4)
    assert np.array_equal(scores_of(known, x), finder.scores(finder.maps(x)))
    localizer = Localizer.new(MINE, n_features=40, seed=1)
    localizer.teach(sound(MINE, 100.0), 90.0)
    behind = localizer.finder
    assert np.array_equal(localizer.model.prior.digest, made.prior.digest)
    assert np.array_equal(scores_of(Known.of_model(localizer.model), x), behind.scores(behind.maps(x)))


def test_it_works_without_torch(made: TunedPrior, tmp_path: Path) -> None:
    X = features(made.prior.array, 3)
    np.save(tmp_path / "x.npy", X)
    code = """
import sys
sys.modules["torch"] = None
import numpy as np
from tytoalba.learning.prior.files import load_prior
prior, x, y = sys.argv[1:]
np.save(y, load_prior(prior).logits(np.load(x)))
"""
    files = (made.path, tmp_path / "x.npy", tmp_path / "y.npy")
    subprocess.run([sys.executable, "-c", code, *files], check=True)
    assert np.array_equal(np.load(tmp_path / "y.npy"), made.prior.logits(X))


def test_a_state_stands_on_it_and_knows_when_it_is_gone(made: TunedPrior, tmp_path: Path) -> None:
    localizer = Localizer.new(MINE, n_features=40, seed=1)
    assert np.array_equal(localizer.state.prior.digest, made.prior.digest)
    assert localizer.prior_is_newest
    before = localizer.state.to_bytes()
    again = State.from_bytes(before)
    assert np.array_equal(again.prior.digest, made.prior.digest)
    localizer.teach(sound(MINE, 100.0), 90.0)
    assert localizer.state.to_bytes() != before
    localizer.forget(sound(MINE, 100.0), 90.0)
    assert localizer.state.to_bytes() == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TYTO_PRIORS", str(tmp_path))  # there the shared network is what the array gets
        assert not localizer.prior_is_newest


def sound(array: MicArray, azimuth: float) -> np.ndarray:
    from tests.helpers.waves import plane_waves

    waves = plane_waves(array, np.full(12, azimuth), noise=0.3)
    return np.asarray(np.concatenate(list(waves), axis=1), np.float32)


@pytest.mark.usefixtures("priors", "no_work")
def test_a_second_run_goes_on_with_what_is_there(made: TunedPrior, cache: Path) -> None:
    again = tune_prior(MINE, tiny(), force=True, cache=cache, processes=1)
    assert np.array_equal(again.prior.digest, made.prior.digest)
    assert again.path.read_bytes() == made.path.read_bytes()
    (folder,) = {path.parent for path in cache.rglob("train-*")}
    for path in folder.glob("train-*"):
        assert ArrayFrames.load(path).array == replace(MINE, yaw=0.0)
    assert len(list(folder.glob("checkpoint-*"))) == 1


@pytest.mark.usefixtures("made")
def test_what_is_no_better_is_not_written(cache: Path, priors: Path) -> None:
    """At such a rate no weight moves by a step: the tuned network is the shared one."""
    results = priors.parent / "results.json"
    same = tune_prior(MINE, tiny(rate=1e-12), cache=cache, processes=1, results=results)
    assert (same.gain.points, same.written) == (0.0, False)
    for name, values in shared_weights().weights.items():
        assert np.array_equal(same.prior.weights[name], values), name
    assert not priors.exists()
    assert results.exists()
    by_method = {who: [row.acc for row in same.judged if row.who == who] for who in ("any", "tuned")}
    assert by_method["any"] == by_method["tuned"]


def test_what_is_better_is_written(
    made: TunedPrior, cache: Path, priors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tytoalba.learning.prior.tune.Gain.of", lambda *_: Gain(3.0, (0.5, 5.5)))
    better = tune_prior(MINE, tiny(), output=priors / "x.safetensors", cache=cache, processes=1)
    assert better.written
    assert np.array_equal(load_prior(priors / "x.safetensors").digest, made.prior.digest)


def test_a_gain_is_sure_where_scenes_agree() -> None:
    right, wrong = np.zeros(20), np.full(20, 90.0)
    mixed = np.where(np.arange(20) % 2, 90.0, 0.0)
    better = [{1: {"a": right, "b": mixed}, 2: {"a": right, "b": right}}] * 6
    gain = Gain.of(better, "a", "b")
    assert gain.points == 25.0
    assert gain.sure
    assert not Gain.of(better, "b", "a").sure
    worse = [{1: {"a": wrong, "b": right}}] * 5
    assert not Gain.of([*better, *worse], "a", "b").sure
    with pytest.raises(TytoError, match="too few scenes"):
        Gain.of(better[:1], "a", "b")


def test_an_altered_file_is_refused(made: TunedPrior, priors: Path) -> None:
    priors.mkdir()
    header, arrays = read_tensors(made.path)
    arrays["near0.bias"] = np.full_like(arrays["near0.bias"], 2**30)
    write_tensors(priors / "mine.safetensors", arrays, header)
    with pytest.raises(PriorError, match="too large to compute with exactly: it was altered"):
        fitting_prior(MINE)
    (priors / "mine.safetensors").write_bytes(made.path.read_bytes()[:-100])
    with pytest.raises(PriorError, match="damaged"):
        fitting_prior(MINE)


@pytest.mark.usefixtures("priors", "no_work")
@pytest.mark.parametrize(
    ("array", "how", "complaint"),
    [
        ("pepper", {}, "pepper has a prior of its own, .* another file"),
        (replace(MINE, positions=((0.9, 0.0, 0.0), *MINE.positions[1:])), {"force": True}, "cm across"),
        (replace(MINE, name="my/array"), {}, "gives no name for a file"),
        (MINE, {"output": "."}, "is a folder, not a file to write"),
        (MINE, {"processes": -1}, "processes must not be negative"),
        (MINE, {"device": "nowhere"}, "no device 'nowhere' here"),
        (MINE, {"speech": "no-such-folder"}, "no-such-folder"),
    ],
)
def test_what_cannot_end_well_does_not_begin(array: Any, how: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TytoError, match=complaint):
        tune_prior(array, tiny(), **{"processes": 1} | how)


@pytest.mark.usefixtures("priors")
@pytest.mark.parametrize(
    "wrong",
    [
        {"scenes": 9},
        {"frames": 0},
        {"epochs": 0},
        {"judged": 1},
        {"seed": -1},
        {"rate": 0.0},
        {"rate": float("nan")},
        {"calm": 1.5},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TytoError):
        tiny(**wrong)


@pytest.mark.usefixtures("priors", "no_work")
def test_it_is_no_beginning_for_a_prior_of_another_size(made: TunedPrior) -> None:
    with pytest.raises(TytoError, match="--from-any trains that on"):
        make_prior(MINE, start=made.prior)
