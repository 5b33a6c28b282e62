"""Arrays and a header in one file: safetensors, and beside the arrays what JSON can say ("tytoalba").

`write_tensors` and `read_tensors` do that and no more. `pack` and `unpack` are for what is taught and shared:
bytes that say what they are and notice damage. The same content gives the same bytes, so that files can be
compared. Nothing is ever unpickled. The digest finds accidents, not attackers: what is exchanged is signed
(`signatures`), what is secret is sealed (`sealed`).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import FileError, TytoError
from tytoalba.storage.age import Keys, Recipient, is_sealed
from tytoalba.storage.sealed import read_secret, write_secret
from tytoalba.storage.writing import written_whole
from tytoalba.texts.parsing import parse_json

LARGEST_HEADER = 16 * 2**20
"""Bytes of JSON that a file may have; ours are some kilobytes, and 50 per lesson, or 600 if it is kept."""
Arrays = dict[str, NDArray[Any]]


def write_tensors(
    path: str | Path,
    arrays: Mapping[str, NDArray[Any]],
    header: Mapping[str, Any],
    recipients: Sequence[Recipient] | None = None,
) -> None:
    """Write arrays and what JSON can say of them, whole or not at all; sealed if there are recipients."""
    from safetensors import SafetensorError
    from safetensors.numpy import save, save_file

    metadata = {"tytoalba": json.dumps(header)}
    arrays = {name: np.asarray(values, order="C") for name, values in arrays.items()}  # as bytes lie
    if recipients is not None:
        write_secret(path, save(arrays, metadata), recipients)
        return
    try:
        with written_whole(path) as temporary:
            save_file(arrays, temporary, metadata)
    except SafetensorError as error:  # a full disk is none of its own
        raise OSError(f"{path} could not be written: {error}") from error


def read_tensors(path: str | Path, keys: Keys = None) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of what `write_tensors` wrote; a sealed file is opened in memory, with these keys."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load

    try:
        if is_sealed(path):
            data = read_secret(path, keys)
            return _object(header_of(data)), load(data)
        with safe_open(str(path), framework="numpy") as file:
            header = _object((file.metadata() or {}).get("tytoalba", "{}"))
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
    except TytoError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileError(f"{path} is damaged or something else: {str(error)[:200]}") from error


def read_header(path: str | Path) -> dict[str, Any]:
    """What `write_tensors` wrote beside the arrays, which are not read; of a plain file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            return _object((file.metadata() or {}).get("tytoalba", "{}"))
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged or something else: {str(error)[:200]}") from error


def pack(kind: str, version: int, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Bytes of a file. header: what JSON can say; version: of the kind, raised when old readers must stop."""
    from safetensors.numpy import save

    tidy = {name: np.asarray(values, order="C") for name, values in sorted(arrays.items())}
    full = {**header, "format": f"tytoalba-{kind}", "version": version}
    full["digest"] = _digest(full, tidy)
    data = bytes(save(tidy, {"tytoalba": _text(full)}))
    if struct.unpack("<Q", data[:8])[0] > LARGEST_HEADER:
        raise FileError(
            f"a {kind} holds at most {LARGEST_HEADER >> 20} MiB of names, and these are more: keep fewer "
            "lessons, or teach longer ones"
        )
    return data


def unpack(data: bytes, kind: str, version: int, what: str) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of what `pack` gave; damaged, foreign and newer ones are refused.

    Header entries that this version does not know stay in the header: who reads takes what he knows.
    what: how errors call the file.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        text = header_of(data)
        header = _object(text)
        if (other := header.get("format")) != f"tytoalba-{kind}":
            raise FileError(f"{what} is not a {kind} of tytoalba but {str(other or 'something else')[:40]}")
        found = header.get("version")
        if type(found) is not int or not 1 <= found <= version:
            newer = type(found) is int and found > version
            raise FileError(
                f"{what} has version {str(found)[:20]} and this program reads 1 to {version}; "
                + ("it was made by a newer tytoalba: upgrade" if newer else "it was altered or is damaged")
            )
        arrays: Arrays = load(data)
        same = _text(header) == text  # there is one way to write it, or the digest would not see all of it
        if header.pop("digest", None) != _digest(header, arrays) or not same:
            raise FileError(f"{what} was altered or is damaged: its digest is another")
        return header, arrays
    except FileError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise FileError(f"{what} is damaged or no file of tytoalba: {str(error)[:200]}") from error


def kind_of(data: bytes) -> str:
    """What a file says it is ("state", "model", ...), or "" if it is none of ours; no more is checked."""
    try:
        return str(_object(header_of(data))["format"]).removeprefix("tytoalba-")[:40]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def header_of(data: bytes) -> str:
    """What the file says about itself, as JSON, read before anything else is."""
    if len(data) < 8:
        raise ValueError("it is empty or cut short")
    (length,) = struct.unpack("<Q", data[:8])
    if not 2 <= length <= min(LARGEST_HEADER, len(data) - 8):
        raise ValueError("it does not begin as safetensors do")
    table = parse_json(data[8 : 8 + length], object_pairs_hook=_once)
    text = table["__metadata__"]["tytoalba"]
    if not isinstance(text, str):
        raise TypeError("its header is not text")
    return text


def _object(text: str) -> dict[str, Any]:
    header = parse_json(text)
    return header if isinstance(header, dict) else {}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; one that says a thing twice means another to each reader."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("it says a thing twice")
    return table


def _digest(header: Mapping[str, Any], arrays: Arrays) -> str:
    found = hashlib.sha256(_text({k: v for k, v in header.items() if k != "digest"}).encode())
    for name, values in sorted(arrays.items()):
        found.update(f"{name} {values.dtype.str} {values.shape}".encode())
        found.update(np.asarray(values, order="C").tobytes())
    return found.hexdigest()


def _text(header: Mapping[str, Any]) -> str:
    return json.dumps(header, sort_keys=True, allow_nan=False)
