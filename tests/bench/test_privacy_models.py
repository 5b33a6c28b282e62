"""The table of attacks on models, on few and short scenes."""

from __future__ import annotations

import json

import pytest

from tytoalba.bench import privacy_models
from tytoalba.bench.privacy import audit_methods
from tytoalba.localizer import worth as worth


@pytest.mark.slow
def test_exact_models_give_away_what_private_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "N_RECORDINGS", 2)
    for name, value in {
        "SIZES": (20,),
        "GATED": 10,
        "SECONDS": 1.6,
        "N_SCENES": 4,
        "N_RELEASES": 500,
    }.items():
        monkeypatch.setattr(privacy_models, name, value)
    monkeypatch.setattr(privacy_models, "LONG", {"n_scenes": 4, "seconds": 1.6})
    told: list[tuple[str, int, int]] = []
    table = audit_methods("models", seed=3, on_data=lambda *n: told.append(n))
    assert table["seed"] == 3
    assert told[-1] == ("scenes", 4, 4)
    *exact, private = table["rows"]
    assert [row["features"] for row in exact] == [20, 10]
    for row in exact:
        assert row["export"] == "exact"
        assert row["places"]["found"] == row["places"]["taught"] > 0
        assert row["sums"]["directions"] == row["features"]
        assert row["sums"]["error"] < 1e-3
        assert set(row["two_exports"]["ranks"]) == {1}
    assert private["export"] == "private"
    assert private["promise"]["epsilon"] == 3.0
    assert private["places"]["found"] == private["sums"]["directions"] == 0
    json.dumps(table, allow_nan=False)
