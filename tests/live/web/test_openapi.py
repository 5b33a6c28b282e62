"""The description of /api, tried out on a server by schemathesis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.serving import Played, new_state, running, station_of
from tests.helpers.updates import HOST
from tytoalba.live.outputs import access
from tytoalba.live.web.openapi import described

TOKEN = "a-long-token-of-a-test"
SETTINGS = """
[[operations]]
include-name = ["POST /api/locate", "POST /api/lessons/upload", "DELETE /api/lessons"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429, "5xx"]
"""
"""Bytes of any kind are no recording, and one of two keys must be there: no schema can say so."""


def references(value: Any) -> set[str]:
    """What a document points to."""
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(references, value.values()))
    return set[str]().union(*map(references, value)) if isinstance(value, list) else set()


def test_all_that_is_pointed_to_is_there_and_used() -> None:
    document = described()
    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) == names


def test_the_document_says_whether_a_token_is_needed() -> None:
    assert described()["security"] == []
    document = described(needs_token=True)
    assert {next(iter(one)) for one in document["security"]} == set(document["components"]["securitySchemes"])
    assert document["paths"]["/api/session"]["post"]["security"] == []


@pytest.mark.end_to_end
@pytest.mark.parametrize("token", [None, TOKEN])
def test_schemathesis_finds_nothing(
    tmp_path: Path, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "WRONG_TOKENS", (1000.0, 1000))  # it tries many, and expects 401 each time
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    said = list[str]()
    station = station_of(Played(), new_state(tmp_path / "kitchen.tyto"), token=token, say=said.append)
    with running(station, token=token) as server:
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"http://{HOST}:{server.port}/api/openapi.json",
            "--max-examples=5",
            "--request-timeout=60",
            "--generation-deterministic",
            "--no-color",
            *([f"--header=Authorization: Bearer {token}"] if token else []),
        ]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "17 / 17" in done.stdout or "17/17" in done.stdout
    assert not said
