"""What Home Assistant needs: messages by which it finds the device by itself, and few values that change.

Discovery messages describe a device with three entities: azimuth in degrees, speaking, and the number of
talkers. Their values are read out of one topic. Home Assistant keeps every value that it gets, so it is told
when something changes, not every frame.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from tytoalba import __version__
from tytoalba.live.update import Update
from tytoalba.signal.angles import distance

DISCOVERY = "homeassistant"
"""Where Home Assistant looks for discovery messages."""
BETWEEN_STATES, REFRESH = 0.5, 10.0
"""Seconds between two states at least, and at most."""
MOVED = 3.0
"""Degrees: less is no change of a state."""


class Publication(NamedTuple):
    """A topic and its text; retained: the broker keeps it for who comes later."""

    topic: str
    text: str
    retained: bool = False


class State:
    """What Home Assistant is told: few values, when they change."""

    def __init__(self) -> None:
        self._told: dict[str, Any] = {}
        self._when = float("-inf")
        self._azimuth: float | None = None

    def changed(self, update: Update) -> str | None:
        """The state as JSON if there is something to tell, else None.

        azimuth is that of who speaks, of several the surest; it stays when nobody speaks any more.
        """
        speaking = [one for one in update.tracks if one.speaking]
        if speaking:
            self._azimuth = max(speaking, key=lambda one: one.probability).azimuth
        now = {
            "azimuth": None if self._azimuth is None else round(self._azimuth) % 360,
            "speaking": bool(speaking),
            "talkers": len(update.tracks),
        }
        since = update.time - self._when
        if 0 <= since < BETWEEN_STATES or (0 <= since < REFRESH and not self._differs(now)):
            return None
        self._told, self._when = now, update.time
        return json.dumps(now)

    def _differs(self, now: dict[str, Any]) -> bool:
        if any(now[key] != self._told[key] for key in ("speaking", "talkers")):
            return True
        before, after = self._told["azimuth"], now["azimuth"]
        if before is None or after is None:
            return before is not after
        return bool(distance(before, after) >= MOVED)


def discovery(prefix: str, name: str) -> list[Publication]:
    """What tells Home Assistant of the device and its entities; the broker keeps it.

    >>> for one in discovery("tyto/kitchen", "Kitchen"):
    ...     print(one.topic)
    homeassistant/sensor/tyto_kitchen/azimuth/config
    homeassistant/binary_sensor/tyto_kitchen/speaking/config
    homeassistant/sensor/tyto_kitchen/talkers/config
    """
    node = prefix.replace("/", "_")
    entity = re.sub("[^a-z0-9]+", "_", node.lower()).strip("_") or "tyto"
    shared = {
        "state_topic": f"{prefix}/state",
        "availability_topic": f"{prefix}/availability",
        "payload_available": "online",
        "payload_not_available": "offline",
        "device": {
            "identifiers": [node],
            "name": name,
            "manufacturer": "tytoalba",
            "model": "tyto listen",
            "sw_version": __version__,
        },
        "origin": {"name": "tytoalba", "sw_version": __version__},
    }
    entities: dict[tuple[str, str], dict[str, str]] = {
        ("sensor", "azimuth"): {
            "name": "Azimuth",
            "unit_of_measurement": "°",
            "icon": "mdi:compass-outline",
            "value_template": "{{ value_json.azimuth }}",
        },
        ("binary_sensor", "speaking"): {
            "name": "Speaking",
            "device_class": "sound",
            "value_template": "{{ 'ON' if value_json.speaking else 'OFF' }}",
        },
        ("sensor", "talkers"): {
            "name": "Talkers",
            "icon": "mdi:account-voice",
            "state_class": "measurement",
            "value_template": "{{ value_json.talkers }}",
        },
    }
    return [
        Publication(
            f"{DISCOVERY}/{component}/{node}/{key}/config",
            json.dumps(
                {
                    "unique_id": f"{node}_{key}",
                    "default_entity_id": f"{component}.{entity}_{key}",  # else one that is made of names
                    **own,
                    **shared,
                },
                ensure_ascii=False,
            ),
            retained=True,
        )
        for (component, key), own in entities.items()
    ]
