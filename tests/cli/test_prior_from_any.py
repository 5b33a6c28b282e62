"""`tyto prior ARRAY --from-any`: the network for every array, tuned for one, and refusals in one line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto, words
from tests.helpers.tuning import MINE, small_tuning
from tytoalba.data.simulation.stems import gather_stems
from tytoalba.learning.prior.files import load_prior
from tytoalba.learning.prior.make import PriorSettings
from tytoalba.learning.prior.registry import shared_weights
from tytoalba.learning.prior.shared import frames, tuning
from tytoalba.learning.prior.shared.prior import SharedPrior
from tytoalba.learning.prior.shared.tuning import TuneSettings

pytest.importorskip("torch")
TINY = ("--from-any", "--scenes", "75", "--frames", "160", "--epochs", "1", "-j", "1", "--device", "cpu")


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of an array of one's own, and seconds to tune for it."""
    small_tuning(monkeypatch, tmp_path / "priors")
    monkeypatch.setattr(tuning, "ROOMS", 30)  # two files, of five rooms each
    monkeypatch.setattr(frames, "gather_stems", lambda scenes, n: gather_stems(scenes, min(n, 5)))
    monkeypatch.setattr(tuning, "TuneSettings", partial(TuneSettings, judged=3))
    path = tmp_path / "mine.toml"
    path.write_text(MINE.to_toml())
    return path


def test_it_is_tuned_and_written_if_asked_for(tyto: Tyto, tmp_path: Path, mine: Path) -> None:
    path, results, cache = tmp_path / "x.safetensors", tmp_path / "x.json", tmp_path / "cache"
    ran = tyto("prior", mine, *TINY, "--force", "--json", "-o", path, "--results", results, "--cache", cache)
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert json.loads(results.read_text()) == told
    assert (told["array"], told["written"], told["about"]["frames"]) == ("mine", True, 160)
    made = load_prior(path)
    assert isinstance(made, SharedPrior)
    assert made.about == told["about"]
    assert f"written to {path}" in ran.err
    assert not (tmp_path / "priors").exists()
    again = tyto("prior", mine, *TINY, "--cache", cache, "--rate", "1e-12")  # as good as no training
    assert again.code == 0, again.err
    assert "tuning gained +0.0 points of ACC (+0.0 to +0.0)" in words(again.err)
    assert "nothing was written" in words(again.err)
    for who in ("srp", "music", "any", "tuned"):
        assert who in again.out
    assert not (tmp_path / "priors").exists()
    started = tyto("prior", mine, "--start", path).error
    assert "--from-any trains that on" in started
    unchanged = shared_weights().weights
    assert any(not np.array_equal(made.weights[name], values) for name, values in unchanged.items())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--width", "32"), "leave --width out"),
        (("--start", "pepper", "--ship"), "leave --start, --ship out"),
        (
            ("--families", "hybrid", "--blocks", "2", "--leave-one-out"),
            "--leave-one-out, --blocks, --families",
        ),
        (("--scenes", "59"), "scenes must be at least 60"),
        (("--epochs", "0"), "epochs must be at least 1"),
    ],
)
def test_what_has_no_place_there_is_refused(
    tyto: Tyto, mine: Path, options: tuple[str, ...], complaint: str
) -> None:
    assert complaint in tyto("prior", mine, *TINY, *options).error
    assert [path.name for path in mine.parent.iterdir()] == ["mine.toml"]


def test_a_prior_of_its_own_is_not_hidden(tyto: Tyto, mine: Path) -> None:
    assert "pepper has a prior of its own" in tyto("prior", "pepper", *TINY).error
    assert "--force is for --from-any" in tyto("prior", mine, "--force").error


def test_both_ways_have_the_same_defaults() -> None:
    usual, tuned = PriorSettings(), TuneSettings()
    names = ("scenes", "frames", "epochs", "rate", "calm", "seed")
    assert [getattr(usual, name) for name in names] == [getattr(tuned, name) for name in names]
