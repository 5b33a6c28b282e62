"""`tyto prior-any`: from nothing to a network that every array uses, and refusals in one line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Tyto
from tytoalba.data.simulation import random_arrays, stems
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.learning.prior.registry import fitting_prior, own_any, shared_weights
from tytoalba.learning.prior.shared import frames, judge, make
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.signal.array import load_array

pytest.importorskip("torch")
TINY = (
    "--arrays", "2", "--held", "2", "--rooms", "5", "--frames", "120", "--steps", "10", "--width", "4",
    "--scenes", "2", "-j", "1", "--device", "cpu",
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One array is judged, rooms are simple, and there is no user's folder of priors."""
    monkeypatch.setenv("TYTO_PRIORS", str(tmp_path / "priors"))
    monkeypatch.setattr(random_arrays, "RATES", (8000,))
    monkeypatch.setattr(stems, "N_VOICES", (6, 6))
    monkeypatch.setattr(frames, "TURNS", ("anechoic", "hybrid"))
    monkeypatch.setattr(judge, "Scenes", partial(Scenes, seconds=1.0))
    monkeypatch.setattr(make, "builtin_arrays", lambda: {"usb": load_array("respeaker-usb-4")})
    monkeypatch.setattr(make, "AnySettings", partial(make.AnySettings, strange=0))
    monkeypatch.setattr(make, "FAMILIES", ("anechoic",))
    monkeypatch.setattr(make, "trusted_weights", partial(judge.trusted_weights, n_scenes=4))


@pytest.mark.end_to_end
@pytest.mark.usefixtures("small")
def test_it_is_made_judged_and_found(tyto: Tyto, tmp_path: Path) -> None:
    shipped = shared_weights()
    stopped = tyto("prior-any", tmp_path / "frames", *TINY, "--overlap", "--minutes", "0").error
    assert "the same command goes on" in stopped
    made = tyto("prior-any", tmp_path / "frames", *TINY, "--json")
    found = json.loads(made.out)
    assert found["about"]["arrays"] == 2
    assert found["about"]["recipe"]["steps"] == 10
    assert {row["who"] for row in found["judged"]} == {"srp", "music", "any", "own"}
    assert own_any().is_file()
    assert shared_weights() is not shipped
    prior, _ = fitting_prior(random_arrays.random_array(9, 0))
    assert isinstance(prior, SharedPrior)
    assert prior.width == 4
    assert prior.constants["confidence"] == prior.confidence.to_dict()
    again = tyto("prior-any", tmp_path / "frames", *TINY)  # nothing is simulated or trained again
    assert "calm" in again.out


def test_refusals(tyto: Tyto, tmp_path: Path) -> None:
    assert "leave -o and --results out" in refused(tyto, tmp_path, "--ship", "-o", tmp_path / "x")
    assert "at least 10 steps" in refused(tyto, tmp_path, "--steps", "3")
    assert "rooms at least 5" in refused(tyto, tmp_path, "--rooms", "1")
    assert "no acoustics called 'cave'" in refused(tyto, tmp_path, "--leave-out", "cave")
    assert "leave --ship out" in refused(tyto, tmp_path, "--leave-out", "hybrid", "--ship")
    for batch in ("8", "0x4", "axb", "4x4x4"):
        assert "--batch takes arrays and frames of each" in refused(tyto, tmp_path, "--batch", batch)


def refused(tyto: Tyto, folder: Path, *options: Any) -> str:
    error = tyto("prior-any", folder / "frames", *options).error
    assert not (folder / "frames").exists()
    return error
