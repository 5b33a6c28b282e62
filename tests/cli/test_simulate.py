"""`tyto simulate`: what it writes, and what it refuses before it makes anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.data.datasets import open_dataset
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation.features import simulate_features
from tytoalba.data.simulation.presets import QUICK
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.signal.array import load_array

PEPPER, RESPEAKER = load_array("pepper"), load_array("respeaker-usb-4")
OPTIONS = ("-a", "respeaker-usb-4", "--size", "0.03")


def test_writes_a_folder(tyto: Tyto, tmp_path: Path) -> None:
    ran = tyto("simulate", tmp_path / "data", *OPTIONS, "-j", "1")
    assert (ran.code, ran.out) == (0, "")
    assert f"4 recordings of 4 s written to {tmp_path / 'data'}" in ran.err
    recordings = open_dataset(tmp_path / "data")
    parts = [recording.subset for recording in recordings]
    assert {part: parts.count(part) for part in parts} == {"test": 1, "train": 2, "valid": 1}
    assert recordings[0].load().shape == (4, 64000)
    made = Simulation(QUICK, RESPEAKER, SyntheticVoices()).recording((2, 0))
    np.testing.assert_array_equal(recordings[0].load(), made.samples)
    np.testing.assert_array_equal(recordings[0].azimuth, made.azimuth)


def test_writes_the_layout_of_sslr(tyto: Tyto, tmp_path: Path) -> None:
    ran = tyto("simulate", tmp_path / "twin", "--layout", "sslr", "--size", "0.02", "-j", "1", "--seed", "7")
    assert ran.code == 0
    assert "written to" in ran.err
    recordings = open_dataset(tmp_path / "twin")
    assert [recording.subset for recording in recordings] == ["lsp_train_106", "lsp_test_106"]
    made = Simulation(QUICK, PEPPER, SyntheticVoices(), seed=7).recording((0, 0))
    np.testing.assert_array_equal(recordings[0].load(), made.samples)


def test_writes_features_of_several_bands(tyto: Tyto, tmp_path: Path) -> None:
    bands = ["--band", "100-1000", "--band", "1000-full"]
    options = ["--array", "respeaker-usb-4", "--features", "--size", "0.02", "-j", "1"]
    assert "a band is LOW-HIGH" in tyto("simulate", tmp_path / "none", *options, *bands).error
    assert not (tmp_path / "none").exists()
    bands = ["--band", "100-1000", "--band", "1000-8000"]
    ran = tyto("simulate", tmp_path / "features", *options, *bands)
    assert ran.code == 0
    assert sorted(path.name for path in (tmp_path / "features").iterdir()) == [
        "test.safetensors",
        "train.safetensors",
        "valid.safetensors",
    ]
    train = FeatureSet.load(tmp_path / "features" / "train.safetensors")
    assert train.gcc.bands == ((100.0, 1000.0), (1000.0, 8000.0))
    assert train.array == RESPEAKER
    simulation = Simulation(QUICK.scaled(0.02), RESPEAKER, SyntheticVoices())
    np.testing.assert_array_equal(train.X, simulate_features(simulation, "train", train.gcc).X)


def test_refuses_to_mix(tyto: Tyto, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("keep me")
    error = tyto("simulate", tmp_path).error
    assert "is not empty; choose a new folder, so that nothing is mixed or lost" in error
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
    assert "is not empty" in tyto("simulate", tmp_path / "precious.txt").error


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--layout", "heap"], "no layout called 'heap'; known: folder, sslr, features"),
        (["--band", "100-8000"], "bands belong to features"),
        (["--speech", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_refuses_with_the_remedy(tyto: Tyto, tmp_path: Path, options: list[str], remedy: str) -> None:
    ran = tyto("simulate", tmp_path / "new", *options)
    assert remedy in ran.error
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_on_two_processes_is_the_same(tyto: Tyto, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, processes in ((one, "1"), (two, "2")):
        assert tyto("simulate", folder, *OPTIONS, "-j", processes).code == 0
    files = sorted(path.relative_to(one) for path in one.rglob("*.*"))
    assert files == sorted(path.relative_to(two) for path in two.rglob("*.*"))
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes()
