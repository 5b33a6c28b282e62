"""What the user has set for good: a small TOML file in the user's configuration folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tytoalba.errors import FileError
from tytoalba.storage.files import read_toml, user_folder

KNOWN = {"array": "The array of commands that are given none: a built-in name or a TOML file."}
"""Every setting, and what it is for."""


def settings_file() -> Path:
    """Where the settings are: $XDG_CONFIG_HOME/tytoalba/config.toml."""
    return user_folder("config") / "config.toml"


def read_settings() -> dict[str, str]:
    """The settings, none where there is no file."""
    path = settings_file()
    if not path.exists():
        return {}
    try:
        found = read_toml(path)
    except FileError as error:
        raise FileError(f"{error}; mend or remove it") from error
    for key, value in found.items():
        if key not in KNOWN:
            raise FileError(f"{path}: unknown key {key!r:.80}; known: {', '.join(KNOWN)}")
        if not isinstance(value, str):
            raise FileError(f"{path}: {key} must be text, got {value!r:.80}")
    return found


def write_settings(settings: Mapping[str, str]) -> None:
    """Write the settings, whole or not at all."""
    from tytoalba.storage.writing import write_whole

    path = settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in settings.items()]
    write_whole(path, "".join(lines).encode())
