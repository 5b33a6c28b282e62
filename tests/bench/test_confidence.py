"""How sure priors are, measured: rows, counts, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench.confidence import COLUMNS, measure_confidence
from tytoalba.errors import TytoError


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    return measure_confidence(
        ["respeaker-usb-4"], n_scenes=4, contexts=(0, 4), families=("anechoic",), seed=2
    )


def test_rows_are_of_each_prior_kind_of_scenes_and_context(measured: dict[str, Any]) -> None:
    keys = [(row["prior"], row["scenes"], row["context"]) for row in measured["rows"]]
    assert keys == [(who, kind, c) for who in ("own", "any") for kind in ("calm", "wild") for c in (0, 4)]
    assert measured["columns"] == COLUMNS
    for row in measured["rows"]:
        assert set(row["asked"]) == {"1", "2", "3", "auto"}
        for told in row["asked"].values():
            assert 0 <= told["error"] <= 1
            assert abs(told["said"] - told["right"]) <= told["error"] + 1e-3
        assert sum(row["frames"]) > 50
    assert measured == json.loads(json.dumps(measured))


def test_the_same_scenes_on_two_processes(measured: dict[str, Any]) -> None:
    again = measure_confidence(
        ["respeaker-usb-4"], n_scenes=4, contexts=(0, 4), families=("anechoic",), seed=2, processes=2
    )
    assert again == measured


@pytest.mark.parametrize(
    "wrong", [{"part": "train"}, {"n_scenes": 0}, {"contexts": (-1,)}, {"contexts": ()}, {"seed": -1}]
)
def test_what_cannot_be_measured_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(TytoError, match="parts are valid and test"):
        measure_confidence(["respeaker-usb-4"], **wrong)


def test_the_command(tyto: Tyto, tmp_path: Path) -> None:
    ran = tyto(
        "bench", "confidence", "--scenes", "3", "--families", "anechoic", "--results", tmp_path / "c.json"
    )
    assert ran.code == 0, ran.err
    assert "counted 1 / 2 / 3" in " ".join(ran.out.split())
    stored = json.loads((tmp_path / "c.json").read_text())
    assert stored["arrays"] == ["respeaker-usb-4", "respeaker-6mic"]
    assert "no acoustics called 'x'" in tyto("bench", "confidence", "--families", "x").error
