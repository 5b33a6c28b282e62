"""`tyto features`: what it writes and says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.helpers.commands import Tyto
from tytoalba.data.datasets import open_dataset
from tytoalba.data.features import FeatureSet, extract


def test_of_a_folder(tyto: Tyto, simulated: Path, tmp_path: Path) -> None:
    ran = tyto(
        "features", simulated, "-o", tmp_path / "f", "--part", "train", "--band", "100-8000", "-j", "1"
    )
    found = FeatureSet.load(tmp_path / "f")
    assert (ran.code, ran.out) == (0, f"{len(found)} frames of 2 recordings in {tmp_path / 'f'}\n")
    assert found.gcc.exact
    assert found.gcc.bands == (100.0, 8000.0)
    wanted = extract([r for r in open_dataset(simulated) if r.subset == "train"], found.gcc)
    np.testing.assert_array_equal(found.X, wanted.X)
    assert found.names == wanted.names


def test_of_a_preset(tyto: Tyto, tmp_path: Path) -> None:
    options = ("-a", "respeaker-usb-4", "--size", "0.02", "--part", "test", "--fast", "-j", "1", "--json")
    ran = tyto("features", "simulated:quick", "-o", tmp_path / "f", *options)
    told = json.loads(ran.out)
    assert told["recordings"] == 1
    assert told["frames"] == len(FeatureSet.load(tmp_path / "f"))


def test_refuses_in_words(tyto: Tyto, tmp_path: Path, simulated: Path) -> None:
    to = ("-o", tmp_path / "f")
    assert "is not a folder" in tyto("features", tmp_path / "none", *to).error
    assert "has no recordings of part 'none'" in tyto("features", simulated, *to, "--part", "none").error
    assert "a band is LOW-HIGH" in tyto("features", simulated, *to, "--band", "high").error
    assert "no preset called 'loud'" in tyto("features", "simulated:loud", *to).error
    assert not list(tmp_path.iterdir())
