"""As much of Home Assistant as the tests need: entities from discovery, their states, automations by hand.

States of entities come from messages to a broker, through the templates of their discovery. Templates are
rendered with jinja2, as Home Assistant does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2

Message = tuple[str, str]
"""Topic and text."""
UNKNOWN = ("unavailable", "unknown")


@dataclass(frozen=True)
class Done:
    """An action that was done: its name, its target and its data."""

    action: str
    target: str | None
    data: dict[str, str]


class Home:
    """Entities, their states, and what automations did. package: a configuration, as read from YAML."""

    def __init__(self, package: Mapping[str, Any]) -> None:
        self._package = package
        self._entities: dict[str, dict[str, Any]] = {}
        self.states: dict[str, str] = {}
        self.done: list[Done] = []
        self._jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
        self._jinja.globals.update(
            states=self._state,
            is_state=lambda name, state: self._state(name) == state,
            has_value=lambda name: self._state(name) not in UNKNOWN,
        )

    def take(self, messages: Iterable[Message]) -> None:
        """What the broker hands over, in order."""
        for topic, text in messages:
            if topic.startswith("homeassistant/"):
                entity = json.loads(text)
                assert topic.split("/")[1] == entity["default_entity_id"].split(".")[0]
                self._entities[entity["default_entity_id"]] = entity
                self.states.setdefault(entity["default_entity_id"], "unavailable")
            for name, entity in self._entities.items():  # one after another, as Home Assistant does
                if (state := self._told(entity, topic, text)) is not None:
                    self._change(name, state)

    def _state(self, name: str) -> str:
        return self.states.get(name, "unknown")

    def _told(self, entity: Mapping[str, Any], topic: str, text: str) -> str | None:
        if topic == entity["availability_topic"]:
            return {entity["payload_available"]: "unknown", entity["payload_not_available"]: "unavailable"}[
                text
            ]
        if topic != entity["state_topic"]:
            return None
        payload = self.render(entity["value_template"], value_json=json.loads(text))
        if entity["default_entity_id"].startswith("binary_sensor."):
            return {"ON": "on", "OFF": "off"}[payload]
        return "unknown" if payload == "None" else payload

    def _change(self, name: str, state: str) -> None:
        before = dict(self.states)
        self.states[name] = state
        for block in self._package["template"]:
            for sensor in block["sensor"]:
                name = "sensor." + sensor["name"].lower().replace(" ", "_")
                there = self.render(sensor["availability"]) == "True"
                self.states[name] = self.render(sensor["state"]) if there else "unavailable"
        changed = {name for name, state in self.states.items() if before.get(name) != state}
        for automation in self._package["automation"]:
            if any(self._fires(trigger, changed) for trigger in automation["triggers"]):
                self._run(automation)

    def _fires(self, trigger: Mapping[str, Any], changed: set[str]) -> bool:
        """Whether a state trigger does, with the time of `for` taken as over."""
        assert trigger["trigger"] == "state"
        names = trigger["entity_id"]
        return any(
            name in changed and trigger.get("to") in (None, self.states[name])
            for name in ([names] if isinstance(names, str) else names)
        )

    def _run(self, automation: Mapping[str, Any]) -> None:
        for condition in automation.get("conditions", []):
            if condition["condition"] == "template":
                holds = self.render(condition["value_template"]) == "True"
            else:
                assert condition["condition"] == "state"
                holds = self._state(condition["entity_id"]) == condition["state"]
            if not holds:
                return
        for action in automation["actions"]:
            data = {key: self.render(text) for key, text in action.get("data", {}).items()}
            self.done.append(Done(action["action"], action.get("target", {}).get("entity_id"), data))

    def render(self, template: str, **values: Any) -> str:
        """A template's text."""
        return self._jinja.from_string(template).render(**values).strip()
