"""What a sound server does to a recording of this process: asked of PulseAudio or PipeWire, where they are.

They fit any recording to any number of channels, by mixing, and say so to nobody who does not ask.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from tytoalba.live.health import HARDWARE
from tytoalba.live.update import Fault
from tytoalba.texts.parsing import parse_json
from tytoalba.texts.printing import shown

PATIENCE = 3.0
"""Seconds for an answer."""
LONGEST = 2**20
"""Letters of an answer."""


def ask_server(n_channels: int, process: int | None = None) -> tuple[Fault, ...] | None:
    """What is wrong between the source and this process; None where no server says anything of it.

    n_channels: that are recorded. process: whose recording, if not this one's.
    """
    recordings, sources = _listed("source-outputs"), _listed("sources")
    process = os.getpid() if process is None else process
    for one in recordings:
        whose = one.get("properties", {}).get("application.process.id")
        channels = _channel_map(one)
        if str(whose) == str(process) and len(channels) == n_channels:
            source = next((s for s in sources if s.get("index") == one.get("source")), None)
            return None if source is None else _faults(one, source)
    return None


def _faults(recording: dict[str, Any], source: dict[str, Any]) -> tuple[Fault, ...]:
    got, there = _channel_map(recording), _channel_map(source)
    found = []
    if recording.get("mute") or source.get("mute"):
        text = f"the sound server has muted {shown(source.get('name'))[:80]}; unmute it, as in pavucontrol"
        found.append(Fault("muted", (), text))
    if got != there:
        how = "mixes them or leaves some out"
        if sorted(got) == sorted(there):
            how = "gives them in another order"
        text = (
            f"the source has {len(there)} channels ({_named(there)}), the sound server gives {len(got)} "
            f"({_named(got)}) and {how}, so directions are wrong; {HARDWARE}"
        )
        found.append(Fault("mixed", (), text))
    return tuple(found)


def _listed(what: str) -> list[dict[str, Any]]:
    try:
        answer = subprocess.run(
            ["pactl", "-f", "json", "list", what],
            env=os.environ | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        ).stdout
        listed = parse_json(answer) if len(answer) <= LONGEST else []
    except (OSError, subprocess.SubprocessError, ValueError):
        return []  # no such program, no server, or one too old for JSON
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _channel_map(entry: dict[str, Any]) -> list[str]:
    return [name for name in str(entry.get("channel_map", "")).split(",") if name]


def _named(channels: list[str]) -> str:
    return shown(", ".join(channels))[:200]
