"""Files written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


@contextmanager
def written_whole(path: str | Path, private: bool = False) -> Iterator[Path]:
    """Give a temporary file beside `path` to write to; it takes its name only when all went well.

    On any error the temporary file is removed and what was at `path` stays as it was. A file that is
    replaced keeps its permissions; a new one gets those that the umask leaves. A private file is readable by
    its owner only, even if the one that it replaces was not.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    temporary = Path(name)
    try:
        os.close(handle)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o600 if private else _permissions(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_tensors(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], told: Mapping[str, Any], private: bool = False
) -> None:
    """Write arrays as safetensors, whole or not at all. told: what JSON can say of them, under "tytoalba"."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        with written_whole(path, private) as temporary:
            save_file(dict(arrays), temporary, {"tytoalba": json.dumps(told)})
    except SafetensorError as error:  # a full disk is none of its own
        raise OSError(f"{path} could not be written: {error}") from error


def read_tensors(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `write_tensors` told, and the arrays; ValueError where the file is damaged or another."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            told = json.loads((file.metadata() or {}).get("tytoalba", "{}"))
            return told, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _permissions(path: Path) -> int:
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
