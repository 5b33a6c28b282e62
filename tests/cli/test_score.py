"""`tyto score`: tables, JSON and pictures of how well methods and models do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import PNG, Tyto
from tytoalba.data.datasets import open_dataset
from tytoalba.signal.array import load_array

PEPPER, RESPEAKER = load_array("pepper"), load_array("respeaker-usb-4")


def test_score_prints_a_table(tyto: Tyto, simulated: Path) -> None:
    ran = tyto("score", simulated, "-m", "srp", "-m", "music", "-j", "1")
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines() if line[:5].strip() in ("srp", "music")]
    overall = [row for row in rows if row[1] == "all"]
    assert [row[0] for row in overall] == ["srp", "music"]
    for _, _, n_frames, mae, acc in overall:
        assert int(n_frames) > 0
        assert 0 <= float(mae) <= 180
        assert 0 <= float(acc) <= 100
    for words in ("N: sources at a time", "95 % intervals", "f/b: front"):
        assert words in ran.out


def test_score_prints_json_and_draws(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = tyto("score", simulated, "--part", "train", "--json", "-j", "1", "--plot", tmp_path / "errors.png")
    result = json.loads(ran.out)
    assert (result["data"], result["part"], result["band"]) == ("data", "train", "100-8000")
    assert {row["method"] for row in result["rows"]} == {"srp"}
    labelled = np.concatenate([r.n_sources for r in open_dataset(simulated) if r.subset == "train"])
    for row in result["rows"]:
        assert row["n_frames"] == (labelled == row["n_sources"]).sum()
        assert row["acc"] == pytest.approx(row["acc_at"]["5"], abs=0.01)
        assert row["acc_interval"][0] <= row["acc"] <= row["acc_interval"][1]
        assert 0 <= row["mae"] <= 180
    assert (tmp_path / "errors.png").read_bytes().startswith(PNG)


def test_score_of_one_recording_has_no_interval(tyto: Tyto, simulated: Path) -> None:
    (row, *_) = json.loads(tyto("score", simulated, "--part", "valid", "--json", "-j", "1").out)["rows"]
    assert row["mae_interval"] == [None, None]
    assert row["acc_interval"] == [None, None]
    table = tyto("score", simulated, "--part", "valid", "-j", "1")
    assert table.code == 0
    assert f"{row['mae']:.2f}" in table.out


def test_score_of_a_model_says_how_far_it_can_be_trusted(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    state = tmp_path / "k.tyto"
    assert tyto("new", state, "-a", "respeaker-usb-4", "--features", "50").code == 0
    before = state.read_bytes()
    ran = tyto("score", simulated, "-m", "srp", "-M", state, "--json", "--reliability", tmp_path / "sure.png")
    rows = json.loads(ran.out)["rows"]
    assert {row["method"] for row in rows} == {"srp", "k.tyto"}
    for row in rows:
        told = row["method"] == "k.tyto"
        assert (row["calibration_error"] is not None) is told
        assert (row["surer_half"] is not None) is told
        if told:
            assert 0 <= row["calibration_error"] <= 1
            assert 0 <= row["surer_half"] <= 100
    assert (tmp_path / "sure.png").read_bytes().startswith(PNG)
    table = tyto("score", simulated, "-M", state)
    assert "srp" not in table.out
    for row in rows[-2:]:
        assert f"{row['surer_half']:.1f}" in table.out
    assert state.read_bytes() == before
    again = tmp_path / "again"
    again.mkdir()
    (again / "k.tyto").write_bytes(before)
    (again / "srp").write_bytes(before)
    for twins in (("-M", state, "-M", again / "k.tyto"), ("-m", "srp", "-M", again / "srp")):
        assert "need different names" in tyto("score", simulated, *twins).error
    for models in ((), ("-M", state, "-M", again / "srp")):
        ran = tyto("score", simulated, *models, "--reliability", tmp_path / "no.png")
        assert "--reliability draws how sure one --model is" in ran.error
    assert not (tmp_path / "no.png").exists()


def test_score_refuses_with_the_remedy(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    assert "tyto simulate makes a data set" in tyto("score", tmp_path / "nowhere").error
    assert "has no part called 'attic'" in tyto("score", simulated, "--part", "attic").error
    for picture, why in (("sure.txt", "the name of a picture ends in .png"), ("no/sure.png", "no folder")):
        for option in ("--plot", "--reliability"):
            assert why in tyto("score", tmp_path / "nowhere", option, tmp_path / picture).error  # said first
