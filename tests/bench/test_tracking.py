"""Following measured: scenes come from their seed, ours is better than frames alone, others can be added."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench import tracking
from tytoalba.bench.track_scores import COLUMNS, Report, scored
from tytoalba.bench.tracking import (
    FOLLOWERS,
    QUIET,
    Scene,
    framewise,
    loss,
    make_scene,
    measure_tracking,
    prepared,
    search,
    tracks,
)
from tytoalba.data.simulation.presets import TRACKING
from tytoalba.errors import TytoError
from tytoalba.live.settings import Settings
from tytoalba.signal.array import load_array

ARRAY = load_array("respeaker-usb-4")


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene(ARRAY, "srp", None, "valid", (0, "one", 0))


def test_a_scene_has_sound_and_who_was_where(scene: Scene) -> None:
    assert scene.samples.shape == (4, 12 * 16000)
    assert len(scene.time) == len(scene.level) == len(scene.scores) == len(scene.located)
    assert scene.truth.azimuth.shape == scene.truth.talking.shape == (len(scene.labelled), 1)
    talks = scene.truth.time[scene.truth.talking[:, 0]]
    assert QUIET < talks.min() < 4.3
    assert 0.2 < scene.truth.talking.mean() < 0.9


def test_tracks_name_people_better_than_frames_alone(scene: Scene) -> None:
    frames, ours = (
        scored(scene.truth, [report[k] for k in scene.labelled])
        for report in (framewise(scene), tracks(scene, background=QUIET))
    )
    assert ours["switches"][0] <= 1 < frames["switches"][0]
    assert ours["gospa"][0] < frames["gospa"][0]
    assert ours["right"][0] / ours["right"][1] > 0.6


def test_the_search_keeps_what_is_better(scene: Scene) -> None:
    ready = [prepared(scene)]
    assert ready[0][0].samples.size == 0
    assert all(not found for found, time, _ in ready[0][1] if time < QUIET)
    steps: list[tuple[str, float, float, bool]] = []
    poor = replace(Settings(), born=0.021, shown=0.97)
    best, least = search(ready, {"shown": (0.97, 0.6), "born": (0.07,)}, 1, poor, lambda *s: steps.append(s))
    assert (best.shown, best.born) == (0.6, 0.07) or not all(s[3] for s in steps)
    assert [s[:2] for s in steps] == [("shown", 0.6), ("born", 0.07)]
    assert least == min([s[2] for s in steps if s[3]], default=least)


def test_the_loss_weighs_the_columns_as_it_says() -> None:
    perfect = {"acc5": (9.0, 9.0), "right": (9.0, 9.0), **dict.fromkeys(("ghosts", "switches"), (0.0, 1.0))}
    perfect |= {"delay": (0.0, 1.0), "gospa": (0.0, 1.0)}
    assert loss([perfect]) == 0
    for name, value in (
        ("acc5", (0.9, 1.0)),
        ("ghosts", (1.0, 1.0)),
        ("delay", (0.5, 1.0)),
        ("gospa", (1.0, 1.0)),
    ):
        assert loss([{**perfect, name: value}]) == pytest.approx(1.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenes of one kind, three seconds long."""
    short = replace(TRACKING["one"], seconds=3.0, begins=(1.5, 1.6))
    monkeypatch.setattr(tracking, "TRACKING", {"one": short})


def _nobody(scene: Scene) -> Report:
    return [[] for _ in scene.time]


@pytest.mark.usefixtures("quick")
def test_another_way_to_follow_is_measured_beside_ours() -> None:
    seen: list[tuple[int, int]] = []
    found = measure_tracking(
        ARRAY,
        method="srp",
        n_scenes=2,
        seeds=(0,),
        followers={**FOLLOWERS, "nobody": _nobody},
        on_progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 2), (2, 2)]
    assert set(found["rows"]) == {"all", "one"}
    assert set(found["rows"]["all"]) == {*FOLLOWERS, "nobody"}
    nobody = found["rows"]["all"]["nobody"]
    assert nobody["right"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert nobody["gospa"]["value"] > 0
    assert set(nobody) == set(COLUMNS)
    assert found["settings"]["drift"] == Settings().drift
    json.dumps(found, allow_nan=False)


@pytest.mark.usefixtures("quick")
def test_the_command_prints_a_table_and_writes_results(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("-m", "srp", "--scenes", "2", "--seeds", "0", "-j", "1", "--results", tmp_path / "r.json")
    printed = tyto("bench", "tracking", *options, "--json")
    assert printed.code == 0, printed.err
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["part"] == "valid"
    assert json.loads(printed.out) == written
    monkeypatch.setattr(tracking, "measure_tracking", lambda *_, **__: written)
    ran = tyto("bench", "tracking")
    assert "tracks, background" in ran.out
    assert "gospa: circular GOSPA" in ran.out
    assert f"{written['rows']['all']['tracks']['gospa']['value']:.1f} ±" in ran.out


@pytest.mark.parametrize(
    "wrong",
    [{"part": "train"}, {"n_scenes": 0}, {"seeds": ()}, {"seeds": (-1,)}, {"n_scenes": 1, "seeds": (0,)}],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TytoError, match=r"no part|scenes must be"):
        measure_tracking(ARRAY, **wrong)


def test_talkers_of_the_two_parts_are_others() -> None:
    valid, test = (make_scene(ARRAY, "srp", None, part, (0, "one", 1)) for part in ("valid", "test"))
    assert not np.array_equal(valid.samples, test.samples)
