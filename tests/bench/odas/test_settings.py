from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tytoalba.bench.odas.settings import BEST, SHIPPED, OdasSettings
from tytoalba.errors import TytoError


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('mode = "particle"\nn_prob = 20\nsigma_q = 1\n')
    read = OdasSettings.read(tmp_path / "a.toml")
    assert (read.mode, read.n_prob, read.sigma_q, read.n_pots) == ("particle", 20, 1, SHIPPED.n_pots)
    (tmp_path / "b.json").write_text(json.dumps({"loss": 3.0, "best": {"n_prob": 20}}))
    assert OdasSettings.read(tmp_path / "b.json") == OdasSettings(n_prob=20)


def test_the_best_is_not_what_ships() -> None:
    assert BEST != SHIPPED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n_probb = 3", "no setting 'n_probb'"),
        ("n_prob = 2.5", "whole number"),
        ("n_prob = true", "whole number"),
        ("n_prob = 0", "from 1 to"),
        ("theta_new = 1.5", "from 0 to 1"),
        ("sigma_q = 0.0", "from 1e-12"),
        ("sigma_q = nan", "a number"),
        ('mode = "unscented"', "kalman or particle"),
        ("n_tracks = 9", "at most 8"),
        ("fine_level = 9", "from 3 to 5"),
    ],
)
def test_what_odas_cannot_take_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(TytoError, match=says):
        OdasSettings.read(tmp_path / "wrong.toml")


@pytest.mark.parametrize("content", [[1], 3, {"best": {"what": 1}}])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / "wrong.json").write_text(json.dumps(content))
    with pytest.raises(TytoError, match=r"expected names|no setting"):
        OdasSettings.read(tmp_path / "wrong.json")
