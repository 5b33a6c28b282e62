from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.bench.odas.tracks import parse_tracks
from tytoalba.errors import TytoError
from tytoalba.live.outputs.odas import tracked_text
from tytoalba.live.tracker import Track


def test_what_our_own_output_writes_for_readers_of_odas_is_read() -> None:
    people = [Track(7, 200.0, 0.97, 0.0, True), None, Track(8, 10.0, 0.5, 0.0, False), None]
    first, second = parse_tracks(tracked_text(1, people) + tracked_text(4, [None] * 4))
    assert (first.hop, second.hop, second.tracks) == (1, 4, ())
    assert [(one.id, one.activity) for one in first.tracks] == [(7, 0.97), (8, 0.0)]
    assert [one.azimuth for one in first.tracks] == pytest.approx([200.0, 10.0], abs=0.1)


def test_nothing_is_no_report() -> None:
    assert parse_tracks(" \n") == []


SOURCE = {"id": 1, "tag": "", "x": 1.0, "y": 0.0, "z": 0.0, "activity": 1.0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"src": []},
        {"timeStamp": "1", "src": []},
        {"timeStamp": -1, "src": []},
        {"timeStamp": 1, "src": 3},
        {"timeStamp": 1, "src": [{**SOURCE, "id": 1.5}]},
        {"timeStamp": 1, "src": [{**SOURCE, "x": "east"}]},
        {"timeStamp": 1, "src": [{**SOURCE, "x": 10**400}]},
        {"timeStamp": 1, "src": [SOURCE] * 9},
        {"timeStamp": 1, "src": [[]]},
        [],
    ],
)
def test_other_json_is_refused(wrong: Any) -> None:
    with pytest.raises(TytoError, match="report 1 of ODAS is damaged"):
        parse_tracks(json.dumps(wrong))


@pytest.mark.parametrize("end", ['{"timeStamp": 2, "src": [', '{"timeStamp": nan}', "[" * 9000, "\0"])
def test_damage_is_told_with_its_place(end: str) -> None:
    with pytest.raises(TytoError, match="damaged at report 2, character"):
        parse_tracks('{"timeStamp": 1, "src": []}\n' + end)


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(TytoError, match="of hop 1, after hop 1"):
        parse_tracks('{"timeStamp": 1, "src": []}' * 2)


@settings(max_examples=50)
@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(TytoError):
        assert isinstance(parse_tracks(text), list)
