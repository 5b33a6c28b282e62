"""Teaching in simulated homes: every direction once, the same from a seed, summed up rightly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Tyto as Command
from tytoalba.bench import lessons as lessons_module
from tytoalba.bench.lessons import Change, summary, teach_everywhere
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import TytoError
from tytoalba.learning.phases import Phase
from tytoalba.learning.prior.features import prior_gcc, steering_matrices
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.tyto import Tyto
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array

torch = pytest.importorskip("torch")
MINE = replace(load_array("respeaker-usb-4"), name="mine", yaw=7.0)
"""Mounted as no array that a prior is shipped for."""
TINY: dict[str, Any] = {"n_homes": 1, "n_directions": 3, "seconds": 1.0, "n_features": 60, "simulated": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the prior of a network lies that was never trained."""
    from tytoalba.learning.prior.network import PriorNetwork

    gcc = prior_gcc(MINE)
    made = Prior.quantised(MINE, gcc, PriorNetwork(steering_matrices(MINE, gcc), width=4).folded())
    X = 0.2 * np.random.default_rng(0).standard_normal((30, gcc.n_features), np.float32)
    path = tmp_path_factory.mktemp("priors")
    made.with_frames(X).save(path / "mine.safetensors")
    return path


@pytest.fixture(autouse=True)
def found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TYTO_PRIORS", str(folder))


@pytest.fixture(scope="module")
def changes(folder: Path) -> list[Change]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TYTO_PRIORS", str(folder))
        return teach_everywhere(MINE, SyntheticVoices(), **TINY)


def plain(changes: list[Change]) -> list[Any]:
    return [(c.home, c.taught, c.before, c.after, c.others.tolist()) for c in changes]


def test_every_direction_of_every_home_is_taught_once(changes: list[Change]) -> None:
    assert [change.home for change in changes] == [0, 0, 0]
    taught = np.array([change.taught for change in changes])
    assert ((taught >= 0) & (taught < 360)).all()
    assert np.sort(distance(taught, np.roll(taught, 1))) == pytest.approx(120.0)
    for k, change in enumerate(changes):
        assert change.others.shape == (2, 3)
        assert change.others[:, 0].tolist() == np.delete(taught, k).tolist()
        for percent in (change.before, change.after, *change.others[:, 1:].ravel()):
            assert 0 <= percent <= 100


def test_each_lesson_starts_from_the_same_prior(changes: list[Change]) -> None:
    before = {change.taught: change.before for change in changes}
    for change in changes:
        for azimuth, was, _ in change.others:
            assert before[azimuth] == was


def test_a_lesson_is_forgotten_before_the_next(
    changes: list[Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    lessons: list[tuple[Tyto, Phase]] = []

    class Watched(Tyto):
        def learn(self, phase: Phase) -> None:
            super().learn(phase)
            lessons.append((self, phase))

    monkeypatch.setattr(lessons_module, "Tyto", Watched)
    teach_everywhere(MINE, SyntheticVoices(), **TINY)
    assert len({id(learner) for learner, _ in lessons}) == len(lessons) == 3  # each learner has one lesson
    for (learner, phase), change in zip(lessons, changes, strict=True):
        assert np.unique(phase.azimuth).tolist() == [change.taught]
        assert phase.directions.tolist() == [round(change.taught) % 360]
        assert learner.memory()["n"] == len(phase) > 0


def test_the_seed_is_all_that_chance_knows(changes: list[Change]) -> None:
    done: list[tuple[int, int]] = []
    again = teach_everywhere(
        MINE, SyntheticVoices(), **TINY, on_progress=lambda now, all_: done.append((now, all_))
    )
    assert plain(again) == plain(changes)
    assert done == [(1, 3), (2, 3), (3, 3)]
    other = teach_everywhere(MINE, SyntheticVoices(), **TINY | {"n_directions": 2}, seed=1)
    assert len(other) == 2
    assert other[0].taught != changes[0].taught


def test_more_homes_are_more_rows(changes: list[Change]) -> None:
    two = teach_everywhere(MINE, SyntheticVoices(), **TINY | {"n_homes": 2})
    assert [change.home for change in two] == [0, 0, 0, 1, 1, 1]
    assert plain(two[:3]) == plain(changes)  # a home does not depend on the others
    assert two[3].taught != two[0].taught


def test_a_lesson_helps_where_it_was_given() -> None:
    """Much taught, hardly any prior: the words of somebody else are found where they come from."""
    lessons = teach_everywhere(
        MINE, SyntheticVoices(), **TINY | {"n_directions": 2, "seconds": 2.0, "simulated": 0}, ridge=1e-3
    )
    assert np.mean([c.after for c in lessons]) >= np.mean([c.before for c in lessons])


def test_an_array_without_a_prior_is_told_how_to_get_one() -> None:
    unknown = replace(MINE, name="strange", yaw=99.0)
    with pytest.raises(TytoError, match="strange has no prior to start from; `tyto prior strange`"):
        teach_everywhere(unknown, SyntheticVoices(), **TINY)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"n_homes": 0}, "homes must be at least 1"),
        ({"n_directions": 1}, "directions must be at least 2"),
        ({"seconds": 0.1}, "seconds must be from 0.5 to 60"),
        ({"seconds": np.nan}, "seconds must be from 0.5 to 60"),
        ({"n_features": 0}, "features must be at least 1"),
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"ridge": np.nan}, "ridge must be positive"),
        ({"simulated": -1}, "simulated and seed must not be negative"),
        ({"seed": -1}, "simulated and seed must not be negative"),
    ],
)
def test_lessons_that_make_no_sense_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TytoError, match=complaint):
        teach_everywhere(MINE, SyntheticVoices(), **TINY | options)


def test_the_command(tyto: Command, tmp_path: Path) -> None:
    mine, results = tmp_path / "mine.toml", tmp_path / "new" / "changes.json"
    mine.write_text(MINE.to_toml())
    few = ("--homes", "1", "--directions", "2", "--seconds", "1", "--features", "60", "--simulated", "1")
    ran = tyto("bench", "lessons", mine, *few, "--results", results, "--json")
    assert ran.code == 0, ran.err
    measured = json.loads(ran.out)
    assert json.loads(results.read_text()) == measured
    assert (measured["array"], measured["seconds"], measured["homes"]) == (str(mine), 1.0, 1)
    assert [(row["degrees"], row["n"]) for row in measured["by_distance"]] == [(180.0, 2)]
    change = measured["others_after"] - measured["others_before"]
    assert measured["by_distance"][0]["change"] == pytest.approx(change)
    ran = tyto("bench", "lessons", mine, *few)
    assert ran.code == 0, ran.err
    first, second = ran.out.splitlines()
    assert first.startswith("1 s of teaching at a direction, 2 lessons: accuracy there ")
    assert f"{measured['before']:.1f} -> {measured['after']:.1f} %" in first
    assert f"elsewhere {measured['others_before']:.1f} -> {measured['others_after']:.1f} %" in first
    assert second.startswith("  180 degrees away: ")
    assert second.endswith(" points (2 directions)")
    for bad in (("no-such-array",), ("pepper", "--speech", "no-such-folder")):
        assert bad[-1] in tyto("bench", "lessons", *bad).error


def test_the_summary_adds_up(changes: list[Change]) -> None:
    told = summary(changes)
    assert told["before"] == pytest.approx(np.mean([c.before for c in changes]))
    assert told["after"] == pytest.approx(np.mean([c.after for c in changes]))
    everyone = np.concatenate([c.others for c in changes])
    assert told["others_before"] == pytest.approx(everyone[:, 1].mean())
    assert told["others_after"] == pytest.approx(everyone[:, 2].mean())
    assert [row["degrees"] for row in told["by_distance"]] == [120.0]
    assert sum(row["n"] for row in told["by_distance"]) == len(everyone) == 6


def test_the_summary_of_a_known_case() -> None:
    first = Change(0, 350.0, 50.0, 90.0, np.array([[20.0, 40.0, 50.0], [170.0, 60.0, 30.0]]))
    second = Change(1, 10.0, 70.0, 80.0, np.array([[340.0, 10.0, 30.0], [190.0, 80.0, 80.0]]))
    assert summary([first, second]) == {
        "before": 60.0,
        "after": 85.0,
        "others_before": 47.5,
        "others_after": 47.5,
        "by_distance": [
            {"degrees": 30.0, "change": 15.0, "n": 2},
            {"degrees": 180.0, "change": -15.0, "n": 2},
        ],
    }


def test_equal_angles_are_counted_together() -> None:
    """45 degrees, computed, are a little more or less: not a reason to tell them apart."""
    around = (22.3 + np.arange(8) * 45.0) % 360.0
    changes = [
        Change(0, float(here), 50.0, 60.0, np.stack([rest, np.full(7, 40.0), np.full(7, 39.0)], axis=1))
        for k, here in enumerate(around)
        for rest in [np.delete(around, k)]
    ]
    rows = summary(changes)["by_distance"]
    assert [(row["degrees"], row["n"]) for row in rows] == [(45.0, 16), (90.0, 16), (135.0, 16), (180.0, 8)]
    assert {row["change"] for row in rows} == {-1.0}
