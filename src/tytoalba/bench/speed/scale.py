"""What a million hours of sound take: arithmetic from constants that `tyto speed` measured, and prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HOP_SECONDS = 4096 / 48000
"""From one frame to the next."""
BYTES_PER_HOUR = 4 * 16_000 * 2 * 3600
"""Of four microphones at 16 kHz, 16 bits, not compressed."""


@dataclass(frozen=True)
class Assumed:
    """What is not measured: sizes of the task, and prices of rented machines and storage, in dollars."""

    hours: float = 1e6
    n_features: int = 5000
    n_outputs: int = 720
    machines: int = 100
    per_machine_hour: float = 0.10
    per_terabyte_month: float = 20.0
    network: float = 10e9 / 8
    """Bytes per second of what holds the sound, together for all machines."""


@dataclass(frozen=True)
class Scale:
    """What it takes."""

    storage_bytes: float
    """Sound, not compressed."""
    frames: float
    state_bytes: float
    """Sums of one worker as they travel: the upper triangle of G, and Q."""
    sums_sent_bytes: float
    """By all machines together, added in a tree."""
    features_hours: float
    """Machine-hours from sound files to features."""
    learning_hours: float
    """Machine-hours from features to sums, the prior's network included."""
    days: float
    """On all machines at once."""
    read_rate: float
    """Bytes per second that all machines together want to read."""
    network_days: float
    """That reading takes at least, however many machines there are."""
    most_machines: float
    """That the network can feed."""
    compute_dollars: float
    storage_dollars_month: float


def constants(measured: Mapping[str, Any]) -> dict[str, float]:
    """From the JSON of `tyto speed`: sound files in times real time, and frames per second learned."""
    rows = {(row["task"], row["name"]): row["value"] for row in measured["rows"]}
    features = next(
        v for (task, name), v in rows.items() if task.startswith("sound files") and "a prior" in name
    )
    learning = next(v for (task, _), v in rows.items() if task == "learning from features")
    return {"features": features, "learning": learning}


def scale(constants: Mapping[str, float], assumed: Assumed | None = None) -> Scale:
    """Hours, bytes and money of learning from so many hours of sound.

    constants: `features`, how many times faster than it lasts sound becomes features, and `learning`, frames
    per second from there to sums, of one machine.

    >>> found = scale({"features": 500.0, "learning": 1000.0}, Assumed(hours=500.0, machines=1))
    >>> found.features_hours, round(found.storage_bytes / 1e9, 1), round(found.learning_hours, 2)
    (1.0, 230.4, 5.86)
    """
    a = assumed or Assumed()
    frames = a.hours * 3600 / HOP_SECONDS
    features_hours = a.hours / constants["features"]
    learning_hours = frames / constants["learning"] / 3600
    work = features_hours + learning_hours
    storage = a.hours * BYTES_PER_HOUR
    D = a.n_features
    state = 8.0 * (D * (D + 1) / 2 + D * a.n_outputs)
    rate = storage / (work * 3600)  # of one machine
    return Scale(
        storage_bytes=storage,
        frames=frames,
        state_bytes=state,
        sums_sent_bytes=state * (a.machines - 1),
        features_hours=features_hours,
        learning_hours=learning_hours,
        days=max(work / a.machines / 24, storage / a.network / 86400),
        read_rate=rate * a.machines,
        network_days=storage / a.network / 86400,
        most_machines=a.network / rate,
        compute_dollars=work * a.per_machine_hour,
        storage_dollars_month=storage / 1e12 * a.per_terabyte_month,
    )
