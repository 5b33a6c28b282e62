from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings

from tests.helpers.updates import frame, track, updates
from tytoalba.live.outputs.home_assistant import State, discovery
from tytoalba.live.tracker import Track
from tytoalba.live.update import Update


def told(state: State, time: float, *tracks: Track) -> dict[str, object] | None:
    text = state.changed(Update(time, tracks, -30.0))
    return None if text is None else dict(json.loads(text))


def test_each_entity_says_where_its_value_is_and_whose_it_is() -> None:
    entities = {one.topic.split("/")[3]: json.loads(one.text) for one in discovery("tyto/hall", "The hall")}
    assert set(entities) == {"azimuth", "speaking", "talkers"}
    assert all(one.retained for one in discovery("tyto/hall", "The hall"))
    assert {one["unique_id"] for one in entities.values()} == {f"tyto_hall_{key}" for key in entities}
    for entity in entities.values():
        assert entity["state_topic"] == "tyto/hall/state"
        assert entity["availability_topic"] == "tyto/hall/availability"
        assert entity["device"]["identifiers"] == ["tyto_hall"]
        assert entity["device"]["name"] == "The hall"
    assert entities["azimuth"]["unit_of_measurement"] == "°"
    templates = {key: one["value_template"] for key, one in entities.items()}
    assert templates == {
        "azimuth": "{{ value_json.azimuth }}",
        "speaking": "{{ 'ON' if value_json.speaking else 'OFF' }}",
        "talkers": "{{ value_json.talkers }}",
    }


@pytest.mark.parametrize(
    ("prefix", "entity"),
    [
        ("tyto/hall", "sensor.tyto_hall_azimuth"),
        ("Home/Big--Room/_1_", "sensor.home_big_room_1_azimuth"),
        ("-", "sensor.tyto_azimuth"),
    ],
)
def test_entities_have_the_names_that_home_assistant_takes(prefix: str, entity: str) -> None:
    asked = {json.loads(one.text)["default_entity_id"] for one in discovery(prefix, "The hall")}
    assert entity in asked
    assert len(asked) == 3
    assert all(re.fullmatch(r"(binary_)?sensor\.[a-z0-9]+(_[a-z0-9]+)*", name) for name in asked)


def test_the_state_is_told_when_it_changes_and_seldom() -> None:
    state = State()
    assert told(state, 0.0) == {"azimuth": None, "speaking": False, "talkers": 0}
    assert told(state, 0.1, track(1, 40.0)) is None  # too soon
    assert told(state, 0.5, track(1, 40.0)) == {"azimuth": 40, "speaking": True, "talkers": 1}
    assert told(state, 1.0, track(1, 42.0)) is None  # as good as the same
    assert told(state, 1.1, track(1, 44.0)) == {"azimuth": 44, "speaking": True, "talkers": 1}
    assert told(state, 2.0, track(1, 44.0, speaking=False)) == {
        "azimuth": 44,
        "speaking": False,
        "talkers": 1,
    }
    assert told(state, 3.0) == {"azimuth": 44, "speaking": False, "talkers": 0}  # the last direction stays
    assert told(state, 12.9) is None
    assert told(state, 13.0) == {"azimuth": 44, "speaking": False, "talkers": 0}  # for a broker that was away


def test_the_surest_of_those_who_speak_has_the_azimuth() -> None:
    silent, unsure, sure = track(1, 10.0, speaking=False, probability=1.0), track(2, 20.0), track(3, 359.8)
    found = told(State(), 0.0, silent, unsure, Track(3, sure.azimuth, 0.95, 0.0, True))
    assert found == {"azimuth": 0, "speaking": True, "talkers": 3}


def test_a_recording_that_begins_anew_is_told() -> None:
    state = State()
    assert told(state, 100.0) is not None
    assert told(state, 0.0) is not None


@settings(max_examples=25)
@given(updates())
def test_whatever_the_update_its_state_is_read_back(update: Update) -> None:
    found = told(State(), update.time, *update.tracks)
    assert found is not None
    speaking = [one for one in update.tracks if one.speaking]
    assert found["talkers"] == len(update.tracks)
    assert found["speaking"] == bool(speaking)
    assert found["azimuth"] in {round(one.azimuth) % 360 for one in speaking} or not speaking


def test_frames_of_a_second_give_at_most_two_states() -> None:
    state = State()
    given_ = [state.changed(Update.of(frame(n, track(1, 7.0 * n % 360)))) for n in range(16)]
    assert sum(text is not None for text in given_) == pytest.approx(2, abs=0)
