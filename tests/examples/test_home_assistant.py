"""The package for Home Assistant, on the messages that `tyto listen` sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.mosquitto import Subscriber, needs_mosquitto, running
from tests.helpers.updates import HOST, hand_over, track, wait_until
from tytoalba.live.outputs.home_assistant import State, discovery
from tytoalba.live.outputs.mqtt import Broker, Mqtt
from tytoalba.live.update import Update

FOLDER = Path(__file__).parents[2] / "examples" / "home_assistant"
PACKAGE, GUIDE = FOLDER / "tyto_kitchen.yaml", FOLDER / "README.md"
TOPIC = "tyto/kitchen"


def test_entities_and_topics_are_those_of_the_discovery() -> None:
    found = [json.loads(one.text) for one in discovery(TOPIC, "Kitchen")]
    entities = {one["default_entity_id"] for one in found}
    for file in (PACKAGE, GUIDE):
        text = file.read_text("utf-8")
        assert set(re.findall(r"\b(?:binary_)?sensor\.tyto_\w+", text)) == entities
    (url,) = re.findall(r"mqtt://homeassistant\.local\S+", GUIDE.read_text("utf-8"))
    assert Broker.of_url(url).prefix == TOPIC
    assert f"`{TOPIC}/update`" in GUIDE.read_text("utf-8")


# ---- what follows needs PyYAML, which comes with the extra end-to-end ----


@pytest.fixture
def package() -> dict[str, Any]:
    """The configuration as Home Assistant reads it; the key `on` of YAML 1.1 would be a truth value."""
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load(PACKAGE.read_text("utf-8"))
    return found


def states(*azimuths: float | None) -> Iterator[tuple[str, str]]:
    """What `tyto listen` sends while somebody speaks at each azimuth in turn, or nobody does."""
    yield from ((one.topic, one.text) for one in discovery(TOPIC, "Kitchen"))
    yield f"{TOPIC}/availability", "online"
    state = State()
    for number, azimuth in enumerate(azimuths):
        who = () if azimuth is None else (track(1, azimuth),)
        text = state.changed(Update(float(number), who, -30.0))
        assert text is not None
        yield f"{TOPIC}/state", text


def keys_of(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


@pytest.mark.end_to_end
def test_the_file_is_a_package(package: dict[str, Any]) -> None:
    assert set(package) == {"template", "automation"}
    assert all(isinstance(key, str) for key in keys_of(package))
    ids = [one["id"] for one in package["automation"]]
    assert len(set(ids)) == len(ids) == 4
    for one in package["automation"]:
        assert set(one) <= {"id", "alias", "triggers", "conditions", "actions"}
        assert all(
            isinstance(trigger.get("to", ""), str) for trigger in one["triggers"]
        )  # not on/off as bool


@pytest.mark.end_to_end
def test_the_lamp_turns_and_the_light_goes_on(package: dict[str, Any]) -> None:
    from tests.helpers.home_assistant import Done, Home

    home = Home(package)
    home.take(states(None, 0.0, 45.0, 120.0, 181.0, 350.0, None))
    pans = [float(one.data["value"]) for one in home.done if one.target == "number.lamp_pan"]
    assert pans == [0.0, 45.0, 90.0, -90.0, -10.0]
    assert [one.action for one in home.done if one.target == "light.table"] == [
        "light.turn_off", "light.turn_on", "light.turn_off",
    ]  # fmt: skip
    home.take([(f"{TOPIC}/availability", "offline")])
    assert home.states == dict.fromkeys(home.states, "unavailable")
    assert home.done[-1].action == "persistent_notification.create"
    assert Done("light.turn_on", "light.table", {}) in home.done


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("azimuth", "place"), [(45.0, "table"), (180.0, "door"), (300.0, "elsewhere"), (None, "nobody")]
)
def test_places_have_names(package: dict[str, Any], azimuth: float | None, place: str) -> None:
    from tests.helpers.home_assistant import Home

    home = Home(package)
    home.take(states(azimuth))
    assert home.states["sensor.kitchen_place"] == place


@pytest.mark.end_to_end
@needs_mosquitto
def test_a_real_broker_hands_on_what_the_automations_expect(tmp_path: Path, package: dict[str, Any]) -> None:
    from tests.helpers.home_assistant import Home

    with running(tmp_path) as broker:
        reader = Subscriber(broker.port)
        output = Mqtt(Broker.of_url(f"mqtt://{HOST}:{broker.port}/{TOPIC}"), pytest.fail)
        wait_until(lambda: reader.texts(f"{TOPIC}/availability"))
        hand_over(output, 1, track(1, 30.0))
        hand_over(output, 1, track(1, 330.0), first=10)
        hand_over(output, 1, first=20)
        wait_until(lambda: len(reader.texts(f"{TOPIC}/state")) == 3)
        output.close()
        wait_until(lambda: reader.texts(f"{TOPIC}/availability")[-1] == "offline")
        reader.close()

    announced = [json.loads(text) for topic, text, _ in reader.messages if topic.endswith("/config")]
    assert {one["device"]["name"] for one in announced} == {"tyto kitchen"}
    home = Home(package)
    home.take((topic, text) for topic, text, _ in reader.messages)
    assert [(one.action, one.data.get("value")) for one in home.done] == [
        ("number.set_value", "30.0"),
        ("light.turn_on", None),
        ("number.set_value", "-30.0"),
        ("light.turn_off", None),
        ("persistent_notification.create", None),
    ]
