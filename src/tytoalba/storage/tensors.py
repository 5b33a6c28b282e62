"""Arrays and a header in one piece: safetensors bytes that say what they are and notice damage.

The same content gives the same bytes, so that files can be compared. Nothing is ever unpickled. The digest
finds accidents, not attackers: what is exchanged is signed (`signing`), what is secret is sealed (`sealing`).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import FileError

LARGEST_HEADER = 16 * 2**20
"""Bytes of JSON that a file may have; ours are some kilobytes, and 50 a lesson, or 600 if it is kept."""
Arrays = dict[str, NDArray[Any]]


def pack(kind: str, version: int, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Bytes of a file. header: what JSON can say; version: of the kind, raised when old readers must stop."""
    from safetensors.numpy import save

    tidy = {name: np.asarray(values, order="C") for name, values in sorted(arrays.items())}
    told = {**header, "format": f"tytoalba-{kind}", "version": version}
    told["digest"] = _digest(told, tidy)
    data = bytes(save(tidy, {"tytoalba": _text(told)}))
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
        told = json.loads(text)
        if not isinstance(told, dict) or told.get("format") != f"tytoalba-{kind}":
            other = told.get("format") if isinstance(told, dict) else None
            raise FileError(f"{what} is no {kind} of tytoalba but {str(other or 'something else')[:40]}")
        found = told.get("version")
        if type(found) is not int or not 1 <= found <= version:
            newer = type(found) is int and found > version
            raise FileError(
                f"{what} has version {str(found)[:20]} and this program reads 1 to {version}; "
                + ("it was made by a newer tytoalba: upgrade" if newer else "it was altered or is damaged")
            )
        arrays: Arrays = load(data)
        same = _text(told) == text  # there is one way to write it, or the digest would not see all of it
        if told.pop("digest", None) != _digest(told, arrays) or not same:
            raise FileError(f"{what} was altered or is damaged: its digest is another")
        return told, arrays
    except FileError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise FileError(f"{what} is damaged or no file of tytoalba: {str(error)[:200]}") from error


def kind_of(data: bytes) -> str:
    """What a file says it is ("state", "model", ...), or "" if it is none of ours; no more is checked."""
    try:
        told = json.loads(header_of(data))
        return str(told["format"]).removeprefix("tytoalba-")[:40] if isinstance(told, dict) else ""
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def header_of(data: bytes) -> str:
    """What the file says about itself, as JSON, read before anything else is."""
    if len(data) < 8:
        raise ValueError("it is empty or cut short")
    (length,) = struct.unpack("<Q", data[:8])
    if not 2 <= length <= min(LARGEST_HEADER, len(data) - 8):
        raise ValueError("it does not begin as safetensors do")
    table = json.loads(data[8 : 8 + length], object_pairs_hook=_once)
    text = table["__metadata__"]["tytoalba"]
    if not isinstance(text, str):
        raise TypeError("its header is no text")
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; one that says a thing twice means another to each reader."""
    told = dict(pairs)
    if len(told) != len(pairs):
        raise ValueError("it says a thing twice")
    return told


def _digest(told: Mapping[str, Any], arrays: Arrays) -> str:
    found = hashlib.sha256(_text({k: v for k, v in told.items() if k != "digest"}).encode())
    for name, values in sorted(arrays.items()):
        found.update(f"{name} {values.dtype.str} {values.shape}".encode())
        found.update(np.asarray(values, order="C").tobytes())
    return found.hexdigest()


def _text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, sort_keys=True, allow_nan=False)
