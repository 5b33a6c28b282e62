"""What is in a world, in words that are the same for every run: chance and the clock are left out."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tytoalba.errors import TytoError
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.onnx.files import is_onnx_of_ours
from tytoalba.storage.age import is_sealed, open_bytes
from tytoalba.storage.keys import read_identities
from tytoalba.storage.ledger import Ledger
from tytoalba.storage.signatures import SigningKey, read_manifest
from tytoalba.storage.tensors import kind_of

SECRET = re.compile(rb"AGE-SECRET-KEY-1[A-Z0-9]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY-----")
KEY_FILES = ("identity.txt", "recovery.txt", "analyst.txt", "signing.pem")
Facts = dict[str, str]


class BrokenError(AssertionError):
    """A file that is neither what it was nor what it should become."""


def facts(folder: Path) -> Facts:
    """Every file that is not hidden, by its path: what it holds. Refuses files that are not whole."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not is_hidden(name):
            try:
                found[name] = _fact(folder, path)
            except (TytoError, ValueError, LookupError) as error:
                raise BrokenError(
                    f"{name} is not whole: {type(error).__name__}: {str(error)[:200]}"
                ) from error
    return found


def is_hidden(name: str) -> bool:
    """Whether a path has a part that begins with a dot, or is begun."""
    return is_begun(name) or any(part.startswith(".") for part in Path(name).parts)


def is_begun(name: str) -> bool:
    """Whether a path is in a folder (NAME.part) that is kept on purpose: the next run goes on with it."""
    return any(part.endswith(".part") for part in Path(name).parts)


def _fact(folder: Path, path: Path) -> str:
    name, data = path.name, path.read_bytes()
    if is_sealed(data):
        keys = read_identities(folder / "home" / "tytoalba" / "keys" / "identity.txt")
        recovery = folder / "recovery.txt"
        n_keys = sum(
            _opens(data, key) for key in [*keys, *(read_identities(recovery) if recovery.exists() else [])]
        )
        return f"sealed for {n_keys}: {_content(name.removesuffix('.age'), open_bytes(data, keys))}"
    if name.endswith(".txt") and SECRET.search(data):
        return f"identity of {len(read_identities(path))}"
    if name.endswith(".pem"):
        return f"signing key {SigningKey.load(path).fingerprint[:4]}"
    if name.endswith(".ledger"):
        return f"ledger {history(path)}"
    if name.endswith(".sig"):
        manifest = read_manifest(data)
        signed = path.with_name(name.removesuffix(".sig"))
        fits = signed.exists() and hashlib.sha256(signed.read_bytes()).hexdigest() == manifest.sha256
        which = "which fits" if fits else "of another version"
        return f"signature of {manifest.name}, a {manifest.kind}, {which}"
    return _content(name, data)


def _opens(data: bytes, key: Any) -> bool:
    try:
        open_bytes(data, [key])
    except TytoError:
        return False
    return True


def _content(name: str, data: bytes) -> str:
    kind = kind_of(data) if data[8:9] == b"{" else ""
    if kind in ("state", "model"):
        localizer = Localizer.from_bytes(data)
        if kind == "model":
            return f"model of {localizer.n_frames} frames"
        state = localizer.state
        sums = hashlib.sha256(b"".join(v.tobytes() for n, v, _ in state.inventory() if n in "GQ")).hexdigest()
        return f"state of {sorted(state.lessons.items())}, kept {sorted(state.kept)}, sums {sums[:12]}"
    if name in ("recipients.txt", "trusted"):
        lines = [line for line in data.decode().splitlines() if line.strip() and not line.startswith("#")]
        return f"{len(lines)} keys"
    if name.endswith(".json"):
        return f"JSON {sorted(json.loads(data)) if name != 'results.json' else len(data)}"
    if name.endswith(".onnx"):
        if not is_onnx_of_ours(data):
            raise ValueError("no ONNX file of ours")
        return "a graph"
    if name.endswith((".png", ".svg")):
        return "a picture" if data.rstrip().endswith((b"IEND\xaeB`\x82", b"</svg>")) else "half a picture"
    return hashlib.sha256(data).hexdigest()[:16]


def history(path: Path) -> str:
    """The steps of a ledger that verifies, without those that were taken back; exports in a row as one."""
    ledger = Ledger.open(path, trusted=[entry.signer for entry in Ledger.open(path).entries])
    ledger.verify()
    taken = {entry.about.get("step") for entry in ledger.entries if entry.what == "recovered"}
    kept = [e for e in ledger.entries if e.what != "recovered" and e.sequence not in taken]
    steps = [f"{entry.what} {entry.n_frames}" for entry in kept]
    # an export that was killed counts as made: somebody may have read the model
    return ", ".join(
        s for k, s in enumerate(steps) if not (s.startswith("exported") and steps[k - 1 : k] == [s])
    )


def optional(name: str) -> bool:
    """Whether a file only remembers what was met: it may be older or newer, and must be whole."""
    path = Path(name)
    return path.parts[:2] == ("home", "tytoalba") and path.suffix == ".json"


def between(found: str | None, before: str | None, after: str | None) -> bool:
    """Whether a file is as before, as after, or what lies between and is mended by the next run.

    A ledger is one or several steps of those to come ahead. A signature is of the model that was there before
    until it is written anew: the new model is then refused, not taken.
    """
    if found in (before, after):
        return True
    if found is None or after is None:
        return False
    is_ledger = found.startswith("ledger") and after.startswith(found.rstrip())
    return is_ledger or (found.startswith("signature") and found.endswith("of another version"))


def same(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether two worlds hold the same."""
    return {n: f for n, f in found.items() if not optional(n)} == {
        n: f for n, f in wanted.items() if not optional(n)
    }


def difference(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """In which files two worlds differ, in words."""
    names = [n for n in sorted({*found, *wanted}) if not optional(n) and found.get(n) != wanted.get(n)]
    return "; ".join(f"{n}: {found.get(n, 'missing')}, expected {wanted.get(n, 'none')}" for n in names)[:600]


def strays(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Hidden files: permissions and content."""
    return {
        str(path.relative_to(folder)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and is_hidden(str(path.relative_to(folder)))
    }


def secrets_in(folder: Path) -> dict[str, int]:
    """Files that hold a secret key, with their permissions."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and SECRET.search(path.read_bytes())
    }
