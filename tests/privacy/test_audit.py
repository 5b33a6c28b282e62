"""The audit of a state: what is listed is all, attacks find what was taught and not what was forgotten."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench import privacy as bench_privacy
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.learning.methods.contract import toy_features, toy_task
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior import make as make
from tytoalba.localizer import worth as worth
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.model import Model
from tytoalba.localizer.release import private_model
from tytoalba.privacy import audit as auditing
from tytoalba.privacy import model_audit
from tytoalba.privacy.audit import attack, audit, halves
from tytoalba.privacy.model_audit import attack_file, exact_model
from tytoalba.signal.array import load_array

ARRAY = load_array("respeaker-usb-4")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenes of 1.6 s."""
    monkeypatch.setattr(make, "Scenes", partial(Scenes, seconds=1.6))


@pytest.fixture(scope="module")
def scenes() -> FeatureSet:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "Scenes", partial(Scenes, seconds=1.6))
        scenes = make.scenes_of(ARRAY, [SyntheticVoices()], families=("hybrid", "anechoic"), seed=5)
        return make.simulate(scenes, 18)


def first(scenes: FeatureSet, n: int) -> FeatureSet:
    return replace(scenes.select(scenes.recording < n), names=scenes.names[:n])


def fresh(n_features: int = 120) -> Localizer:
    return Localizer.new(ARRAY, n_features=n_features, seed=0)


def test_halves_are_of_the_same_scenes_and_do_not_overlap(scenes: FeatureSet) -> None:
    taught, other, own = halves(scenes)
    assert set(taught.recording) & set(other.recording)
    assert not set(own.recording) & (set(taught.recording) | set(other.recording))
    for recording in set(taught.recording) & set(other.recording):
        a, b = (part.frame[part.recording == recording] for part in (taught, other))
        assert a.max() + 1 < b.min() or b.max() + 1 < a.min()  # neighbours share half of their samples


def test_attacks_find_what_was_taught_and_not_what_was_forgotten(scenes: FeatureSet) -> None:
    localizer = fresh()
    rest = scenes.select(scenes.recording % 2 == 0)
    localizer.state.teach(Phase(rest.flat[:60], rest.azimuth[:60], np.arange(1)))
    before = localizer.to_bytes()
    found = attack(localizer.state, *halves(scenes))
    assert localizer.to_bytes() == before
    assert found["same_bytes_after_forgetting"]
    taught = found["taught"]["state_by_leverage"]["auc"]
    assert taught > 0.75
    assert found["forgotten"]["state_by_leverage"]["auc"] < taught - 0.15
    assert found["two_states"]["found"]
    assert found["two_states"]["share_of_the_frame"] == pytest.approx(1.0, abs=1e-6)
    json.dumps(found, allow_nan=False)


def test_an_empty_state_and_a_model(scenes: FeatureSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "simulate", lambda *_, **__: first(scenes, 6))
    for name in ("attack_exports", "attack_releases"):
        monkeypatch.setattr(auditing, name, lambda *_, **__: {})
    localizer = fresh(40)
    told = audit(localizer)
    assert told["places"] is None
    assert told["forgotten"] is None  # there are no sums to attack
    listed = {row["name"]: row["bytes"] for row in told["stored"]}
    assert {"G", "Q", "y2", "n", "counts"} <= listed.keys()
    assert sum(listed.values()) < len(localizer.to_bytes())
    model = Localizer(localizer.model)
    told = audit(model)
    assert "taught" not in told
    assert {row["name"].split(".")[0] for row in told["stored"]} == {"W", "weight", "prior"}
    assert told["attacks"]["places"]["degrees"] == []  # nothing was taught


def test_where_people_stood_is_seen_in_both_kinds_of_file(scenes: FeatureSet, tmp_path: Path) -> None:
    localizer = fresh(40)
    localizer.state.teach(Phase(scenes.flat[:30], np.full((30, 1), 77.0), np.arange(1)))
    places = auditing._places(localizer.state)
    assert places is not None
    assert places["auc"] > 0.99
    Localizer(exact_model(localizer.state)).save(tmp_path / "model.tyto")  # with the weights made coarse
    found = audit(Localizer.load(tmp_path / "model.tyto"))["attacks"]
    assert found["places"]["degrees"] == [77.0]
    assert found["sums"]["directions"] == 40  # all of G
    assert any("fewer than 20 for each" in reason for reason in localizer.state.against_release())


@pytest.mark.parametrize("degrees", [77.5, 77.3])
def test_places_between_whole_degrees_do_not_hide_the_sums(scenes: FeatureSet, degrees: float) -> None:
    localizer = fresh(40)
    localizer.state.teach(Phase(scenes.flat[:30], np.full((30, 1), degrees), np.arange(1)))
    found = attack_file(exact_model(localizer.state))
    assert found["places"]["degrees"] == ([77.5] if degrees == 77.5 else [])
    assert found["places"]["rank"] == 2
    assert found["sums"]["directions"] >= 38


def test_without_the_prior_at_hand_the_audit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.from_bytes(exact_model(fresh(40).state).to_bytes())
    assert attack_file(model)["possible"]
    monkeypatch.setattr(model_audit, "find_prior", lambda _: None)
    assert not attack_file(model)["possible"]


def test_the_command_says_what_is_stored_and_what_was_found(
    scenes: FeatureSet, tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "simulate", lambda *_, **__: first(scenes, 12))
    monkeypatch.setattr(worth, "N_RECORDINGS", 2)
    localizer = fresh(40)
    localizer.state.teach(Phase(scenes.flat[:30], np.full((30, 1), 77.0), np.arange(1)))
    localizer.save(tmp_path / "state.tyto")
    ran = tyto("audit", tmp_path / "state.tyto", "--results", tmp_path / "audit.json")
    assert ran.code == 0, ran.err
    assert "Everything that" in ran.out
    assert "where people stood" in ran.out
    assert "state by leverage, taught" in ran.out
    assert "state by leverage, after forgetting" in ran.out
    assert "the state after forgetting them is the same to the byte as before" in ran.out
    assert "one frame learned between two states is found among" in ran.out
    assert "not to be released: " in ran.out
    assert "the release gate counts frames, not people" in " ".join(ran.out.split())
    assert "What models give away" in ran.out
    assert "no budget is spent" in " ".join(ran.out.split())
    report = json.loads((tmp_path / "audit.json").read_text())
    assert all(row["name"] in ran.out for row in report["stored"] if not row["name"].startswith("prior."))
    exact = report["exports"]["exact"]
    assert exact["places"]["found"] == exact["places"]["taught"] > 5
    assert exact["places"]["false"] == 0
    assert exact["sums"]["directions"] == 40
    assert exact["sums"]["error"] < 1e-3
    assert exact["members"]["model"]["auc"] == pytest.approx(exact["members"]["state"]["auc"], abs=0.02)
    assert set(exact["two_exports"]["ranks"]) == {1}
    private = report["exports"]["private"]
    assert private["places"] == {"taught": exact["places"]["taught"], "found": 0, "false": 0}
    assert private["sums"]["directions"] == 0
    assert private["two_exports"]["first"] < private["two_exports"]["trials"] / 2
    assert private["members"]["worst"]["tpr"] < private["promise"]["most_found_by_epsilon"]
    assert (tmp_path / "state.tyto").read_bytes() == localizer.to_bytes()
    Localizer(localizer.model).save(tmp_path / "model.tyto")
    ran = tyto("audit", tmp_path / "model.tyto")
    assert "places from the weights: 1 degree" in ran.out
    assert "G from labels nobody uses: 40 of 40 directions determined" in ran.out
    assert "as secret as the state" in ran.out
    assert "Was this lesson learned?" not in ran.out
    Localizer(private_model(localizer).model).save(tmp_path / "private.tyto")
    ran = tyto("audit", tmp_path / "private.tyto")
    assert "places from the weights: 0 degrees" in ran.out
    assert (
        "private: unit lesson, epsilon 3, delta 1e-06. At 1 % false alarms nobody finds more than" in ran.out
    )
    assert "20.1 % by epsilon, 4.29 % by its noise; measured on 10000 releases" in ran.out
    assert "secret" not in ran.out


def test_the_command_refuses_too_few_scenes(tyto: Tyto, tmp_path: Path) -> None:
    assert "at least 6" in tyto("audit", tmp_path / "x", "--scenes", "5").error


def test_the_table_of_methods(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy_task()

    def frames(n: int, seed: int) -> Frames:
        rng = np.random.default_rng(seed)
        azimuth = rng.uniform(0, 180, (n, 1))
        place = np.stack([np.arange(n) // 10, np.arange(n) % 10], axis=1)
        return Frames(toy_features(task, azimuth, rng), azimuth, place)

    def load(*_: Any, **__: Any) -> BenchData:
        return BenchData("toy", frames(120, 0), frames(60, 1), {(CLEAN, "test"): frames(20, 2)}, None, None)

    monkeypatch.setattr(bench_privacy, "load_benchdata", load)
    ran = tyto("audit", "--methods", "joint,icarl", "--results", tmp_path / "rows.json")
    assert ran.code == 0, ran.err
    rows = {row["method"]: row for row in json.loads((tmp_path / "rows.json").read_text())["rows"]}
    assert rows["joint"]["frames_kept"] == rows["joint"]["frames_learned"] == 60
    assert 0 < rows["icarl"]["frames_kept"] <= 60
    assert rows["joint"]["memory"]["auc"] == 1.0
    assert rows["joint"]["keeps"] == "everything"
    for words in ("method", "joint", "icarl", "AUC of the best attack", "places"):
        assert words in ran.out
