"""The privacy table: every method is attacked, what is kept is found, and nothing kept is left undeclared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tytoalba.bench import privacy as privacy
from tytoalba.bench.config import Config, load_config
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.bench.privacy import (
    audit_methods,
    frame_between_states,
    leak_by_size,
    privacy_rows,
    split_recordings,
)
from tytoalba.errors import TytoError
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.contract import toy_features, toy_task
from tytoalba.privacy.attacks import UNDECLARED

TASK = toy_task()
NETWORK = {"width": 16, "epochs": 2, "batch": 32}
ANALYTIC = {"width": 16, "epochs": 2, "n_features": 30}
OPTIONS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("mlp-gcc", "joint", "fine-tune", "lwf", "ewc", "lfl"), NETWORK),
    **{name: {**NETWORK, "budget": 720} for name in ("ss-il", "icarl", "replay")},
    **dict.fromkeys(("ssl-cil", "acil", "ds-al"), ANALYTIC),
    "ssl-cil-random": {"width": 16, "n_features": 30},
    "gkeal": {"width": 16, "epochs": 2, "n_centres": 20},
    "tyto": {"n_features": 60},
}


def frames(n_recordings: int, seed: int, each: int = 6) -> Frames:
    """Recordings of a talker who stands still, every fourth with two."""
    rng = np.random.default_rng(seed)
    azimuth = rng.integers(0, 360, (n_recordings, 2)).astype(float)
    azimuth[np.arange(n_recordings) % 4 > 0, 1] = np.nan
    azimuth = np.repeat(azimuth, each, axis=0)
    place = np.stack([np.repeat(np.arange(n_recordings), each), np.arange(n_recordings * each)], axis=1)
    return Frames(toy_features(TASK, azimuth, rng, noise=0.5), azimuth, place)


DATA = BenchData("toy", frames(40, 0), frames(15, 1), {(CLEAN, "test"): frames(2, 2)}, TASK.array, TASK.gcc)
CONFIG = Config("toy", methods=tuple(METHODS), n_phases=2, options=OPTIONS)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    return {row["method"]: row for row in privacy_rows(DATA, CONFIG)}


def test_every_method_has_a_row_that_json_takes(rows: dict[str, dict[str, Any]]) -> None:
    assert list(rows) == list(METHODS)
    assert json.loads(json.dumps(list(rows.values()), allow_nan=False)) == list(rows.values())


@pytest.mark.parametrize("name", METHODS)
def test_nothing_is_kept_without_a_purpose(rows: dict[str, dict[str, Any]], name: str) -> None:
    row = rows[name]
    assert not [item["name"] for item in row["arrays"] if item["purpose"] == UNDECLARED]
    assert row["bytes"] == sum(item["bytes"] for item in row["arrays"])
    assert (row["frames_kept"] > 0) == (row["keeps"] != "nothing")
    assert 0 <= row["answers"]["auc"] <= row["memory"]["auc"] <= 1


def test_who_keeps_everything_hides_nothing(rows: dict[str, dict[str, Any]]) -> None:
    joint = rows["joint"]
    assert joint["frames_kept"] == joint["frames_learned"]
    assert (joint["memory"]["auc"], joint["memory"]["tpr"], joint["memory"]["recording_auc"]) == (1, 1, 1)
    assert joint["memory"]["attack"].startswith("look-up")


def test_who_learns_nothing_tells_nothing(rows: dict[str, dict[str, Any]]) -> None:
    silent = rows["srp-phat"]
    assert (silent["bytes"], silent["places"], silent["two_states"]) == (0, None, None)
    assert silent["memory"]["auc_interval"][0] <= 0.5 <= silent["memory"]["auc_interval"][1]


@pytest.mark.parametrize(
    "name", ["joint", "icarl", "replay", "ss-il", "ssl-cil", "acil", "ds-al", "gkeal", "tyto"]
)
def test_frames_and_sums_tell_the_frame_between_two_states(rows: dict[str, Any], name: str) -> None:
    states = rows[name]["two_states"]
    assert states["found"] == states["trials"] == 3
    assert states["rank"] in ((1, 2) if "sums" in states["by"] else (None,))


def test_counts_and_labels_tell_where_people_stood(rows: dict[str, dict[str, Any]]) -> None:
    for name in ("tyto", "joint"):
        assert rows[name]["places"]["auc"] == 1.0
        assert rows[name]["places"]["correlation"] == 1.0
    assert rows["ssl-cil"]["places"]["auc"] > 0.8


def test_few_frames_show_in_the_sums(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["tyto"]["memory"]["auc"] > 0.7
    assert "leverage" in rows["tyto"]["memory"]["attack"]


def test_recordings_are_on_one_side_only() -> None:
    inside, outside = split_recordings(DATA.train, 2, seed=0)
    assert not set(inside.recording) & set(outside.recording)
    assert len(inside.X) + len(outside.X) == len(DATA.train)
    assert len(set(inside.recording)) == 20
    single, _ = split_recordings(DATA.train, 1, seed=0)
    assert np.isfinite(single.azimuth).sum(axis=1).max() == 1
    alone, _ = split_recordings(replace(DATA.train, place=None), 2, seed=0)
    assert len(set(alone.recording)) == len(alone.X)


def test_the_shipped_audit_is_of_all_methods() -> None:
    assert sorted(load_config("privacy").methods) == sorted(METHODS)


def test_progress_and_a_choice_of_methods() -> None:
    told: list[tuple[int, int]] = []
    chosen = privacy_rows(DATA, CONFIG, methods=["srp-phat"], on_method=lambda *n: told.append(n))
    assert [row["method"] for row in chosen] == ["srp-phat"]
    assert told == [(1, 1)]


def test_tables_by_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[float] = []

    def load(*_: object, size: float, **__: object) -> BenchData:
        sizes.append(size)
        return DATA

    monkeypatch.setattr(privacy, "load_benchdata", load)
    assert audit_methods("size") == {"data": "toy", "rows": leak_by_size(DATA)}
    monkeypatch.setattr(privacy, "frame_between_states", lambda _: ["a row"])
    assert audit_methods("states")["rows"] == ["a row"]
    assert sizes == [5.0, 1.0]  # the largest ratio needs more frames than the preset has
    monkeypatch.setattr(privacy, "privacy_rows", lambda *_, methods, **__: methods)
    assert audit_methods(methods=["joint"])["rows"] == ["joint"]
    assert audit_methods()["rows"] == list(load_config("privacy").methods)
    with pytest.raises(TytoError, match="no table called 'all'; known: methods, size, states"):
        audit_methods("all")  # type: ignore[arg-type]
    with pytest.raises(TytoError, match="the table 'size' is not of methods"):
        audit_methods("size", ["joint"])


def test_what_cannot_be_audited() -> None:
    with pytest.raises(TytoError, match="no method called 'nobody'"):
        privacy_rows(DATA, CONFIG, methods=["nobody"])
    with pytest.raises(TytoError, match="validation part"):
        privacy_rows(replace(DATA, valid=None), CONFIG)
    with pytest.raises(TytoError, match="validation part"):
        leak_by_size(replace(DATA, valid=None))
    with pytest.raises(TytoError, match="two recordings"):
        split_recordings(frames(1, 0), 2, 0)


# ---- by size, and between two states


def test_members_show_less_the_more_there_are() -> None:
    found = leak_by_size(
        replace(DATA, train=frames(400, 3)), n_features=50, ratios=(0.5, 5, 20, 100), n_out=1000
    )
    assert [row["n_frames"] for row in found] == [25, 250, 1000]  # 5000 are not there
    for who in ("state", "model"):
        aucs = [row[who]["auc"] for row in found]
        assert aucs == sorted(aucs, reverse=True)
        assert aucs[0] > 0.8
        assert aucs[-1] < 0.75
    assert found[0]["state"]["auc"] == 1.0


def test_one_frame_between_two_states_comes_back_with_the_seed_alone() -> None:
    (row,) = frame_between_states(DATA, sizes=(300,), n_trials=5)
    assert row["exact"] == row["found_seed"] == 5
    assert row["found_other_seed"] <= 1
    assert row["cosine_seed"] > 0.99
    assert abs(row["cosine_other_seed"]) < 0.6
