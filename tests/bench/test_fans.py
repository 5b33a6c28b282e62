"""Talkers beside machines: scenes come from their seed, frames are counted rightly, the command tells it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench import fans
from tytoalba.bench.fans import COLUMNS, measure_fans
from tytoalba.data.simulation.beside_machines import KINDS, MachineScene, machine_scene
from tytoalba.data.simulation.steady import LEFT_OUT, TRAINED
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError, TytoError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array

ARRAY = load_array("respeaker-usb-4")


@pytest.fixture(scope="module")
def scene() -> MachineScene:
    return machine_scene(ARRAY, SyntheticVoices(), "test", 3, 1, seconds=8.0)


def test_a_scene_comes_from_its_seed_and_its_parts_have_their_levels(scene: MachineScene) -> None:
    again = machine_scene(ARRAY, SyntheticVoices(), "test", 3, 1, seconds=8.0)
    assert scene.kind == "hair_dryer"
    assert scene.speech.shape == scene.machine.shape == (4, 8 * 16000)
    for noise, snr in (("machine", 5.0), ("diffuse", 0.0), ("quiet", 0.0)):
        assert np.array_equal(scene.heard(noise, snr), again.heard(noise, snr))
    for sound in (scene.machine, scene.diffuse):
        assert np.mean(sound.astype(float) ** 2) == pytest.approx(1.0, rel=1e-3)
    assert np.mean(scene.quiet.astype(float) ** 2) < 10**-2.4
    assert distance(scene.azimuth, scene.machine_azimuth) >= 30
    assert not (scene.talking & scene.pausing).any()
    assert scene.talking.any()
    assert scene.pausing.any()
    other = machine_scene(ARRAY, SyntheticVoices(), "test", 3, 2, seconds=8.0)
    assert not np.array_equal(scene.speech, other.speech)


def test_machines_of_the_test_are_in_no_training() -> None:
    assert set(KINDS["test"]) == set(LEFT_OUT)
    assert set(KINDS["valid"]) < set(TRAINED)
    assert "television" not in KINDS["valid"]  # it is not steady
    with pytest.raises(DataError, match="no part called 'train'; known: valid, test"):
        machine_scene(ARRAY, SyntheticVoices(), "train", 0, 0)


def test_frames_are_counted(scene: MachineScene) -> None:
    n = 50
    talking, pausing = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    talking[:10], pausing[10:30] = True, True
    one = replace(scene, talking=talking, pausing=pausing, azimuth=100.0, machine_azimuth=200.0)
    azimuth = np.full(n + 3, np.nan)
    azimuth[:4] = [100.0, 104.9, 95.1, 106.0]
    azimuth[10:13] = [200.0, 195.0, 150.0]
    azimuth[28] = 209.0
    assert fans._counted(one, azimuth) == {
        "acc5": (3, 10),
        "absent": (6, 10),
        "machine": (3, 20),
        "machine_later": (1, 6),  # frames from 2 s on: 24
        "anybody": (4, 20),
    }


def test_intervals_are_over_scenes() -> None:
    found = fans._interval([(10, 20), (0, 0), (30, 40)])
    assert found["value"] == 66.67
    assert found["low"] <= found["value"] <= found["high"]


def test_a_fan_is_ignored_and_the_talker_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fans, "NOISES", (("machine", 10.0), ("quiet", 0.0)))
    seen: list[tuple[int, int]] = []
    measured = measure_fans(
        ARRAY, methods=["srp"], n_scenes=2, seconds=8.0, on_progress=lambda done, n: seen.append((done, n))
    )
    assert seen == [(1, 2), (2, 2)]
    assert json.loads(json.dumps(measured)) == measured
    rows = {(r["ignore_steady"], r["context"], r["noise"]): r for r in measured["rows"]}
    assert len(rows) == len(measured["rows"]) == 8
    assert rows[True, 4, "machine"]["acc5"]["value"] > rows[False, 4, "machine"]["acc5"]["value"]
    assert rows[False, 0, "machine"]["machine"]["value"] > 60
    assert rows[True, 0, "machine"]["machine_later"]["value"] < 10
    assert rows[True, 4, "machine"]["snr"] == 10.0
    assert rows[True, 4, "quiet"]["snr"] is None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"part": "train"}, "no part called 'train'"),
        ({"n_scenes": 1}, "scenes must be 2 to 999"),
        ({"seconds": 1.0}, "of 5 to 600 seconds"),
        ({"seed": -1}, "seed 0 or more"),
        ({"methods": ["best"]}, "no method called 'best'"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(TytoError, match=complaint):
        measure_fans(ARRAY, **options)  # type: ignore[arg-type]


def test_the_command(tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(array: str, **options: object) -> dict[str, object]:
        assert options["methods"] == ["srp"]
        value = {"value": 81.25, "low": 80.0, "high": 84.0}
        row = {"method": "srp", "ignore_steady": True, "context": 4, "noise": "machine", "snr": 5.0}
        rows = [row | dict.fromkeys(COLUMNS, value)]
        return {"array": array, "scenes": 3, "seconds": 40.0, "columns": COLUMNS, "rows": rows}

    monkeypatch.setattr(fans, "measure_fans", made)
    results = tmp_path / "fans.json"
    shown = tyto("bench", "fans", "--methods", "srp", "--results", results).out
    assert "machine 5 dB" in shown
    assert "81.2 ±2.0" in shown
    assert "ignored" in shown
    assert json.loads(results.read_text())["scenes"] == 3
    refused = tyto("bench", "fans", "--results", tmp_path)
    assert refused.code != 0
    assert "is a folder" in refused.err
