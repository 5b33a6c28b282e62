"""Who made a file, and is it still as it was made: Ed25519 signatures, kept beside the file as FILE.sig.

A signature speaks about a manifest: kind, name, size, SHA-256, a sequence number that grows with every
version of the file, and the time. It is taken over canonical JSON with a prefix of its own, so that a
signature of one sort can never stand for another. What is read back must be, byte for byte, what would be
written: there is one spelling of a manifest, and no changed byte goes unnoticed.

A signature says who, not that they are right. An old file with its old signature verifies; only a reader who
remembers the last sequence number (`at_least`) notices.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import time
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tytoalba.errors import KeyFileError as KeyFileError
from tytoalba.errors import MissingSignatureError
from tytoalba.errors import SignatureError as SignatureError
from tytoalba.errors import UntrustedSignerError as UntrustedSignerError
from tytoalba.storage.files import written_whole
from tytoalba.storage.signers import LARGEST, holds, is_fingerprint, is_plain, read_at_most, require_trusted
from tytoalba.storage.signers import SigningKey as SigningKey
from tytoalba.storage.signers import TrustStore as TrustStore
from tytoalba.storage.signers import find_signing_key as find_signing_key
from tytoalba.storage.signers import signing_key_path as signing_key_path

FORMAT, VERSION = "tytoalba signature", 1
KINDS = ("model", "state", "contribution", "ledger")
LARGEST_WHOLE = 2**53  # whole numbers up to here are the same in every JSON reader


@dataclass(frozen=True)
class Manifest:
    """What a signature speaks about; everything is checked, whoever it comes from."""

    kind: str
    name: str  # of the file, without its folder
    size: int  # bytes
    sha256: str
    sequence: int  # grows with every version of this file
    time: int  # seconds since 1970, UTC
    signer: str  # fingerprint
    about: Mapping[str, str | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers: list[object] = [self.size, self.sequence, self.time]
        wrong = [
            (self.kind not in KINDS, f"kind is not one of {', '.join(KINDS)}"),
            (not _is_name(self.name), "name is not the plain name of a file (NFC, printable, no folder)"),
            (not all(map(is_whole, numbers)), "size, sequence and time are not whole numbers from 0 to 2^53"),
            (not is_hex(self.sha256, 64), "sha256 is not 64 hex digits"),
            (
                not isinstance(self.signer, str) or not is_fingerprint(self.signer),
                "signer is not a public key",
            ),
            (not _is_about(self.about), "about is not up to 32 short names with texts or finite numbers"),
        ]
        for is_wrong, why in wrong:
            if is_wrong:
                raise SignatureError(f"this cannot be in a manifest: {why}")

    def canonical(self) -> bytes:
        """The bytes that are signed."""
        return canonical({"format": FORMAT, "version": VERSION, **asdict(self)})


def canonical(fields: Mapping[str, Any]) -> bytes:
    """The one spelling of a JSON object: sorted, without spaces, ASCII, no NaN."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def read_canonical(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, hostile or not; ValueError if it is not one in its canonical spelling."""
    try:
        fields = json.loads(raw.decode("ascii"))
        if not isinstance(fields, dict) or canonical(fields) != raw:
            raise ValueError("not in its canonical spelling")
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return fields


def signature_path(path: str | Path) -> Path:
    """FILE.sig, where the signature of FILE lies."""
    return Path(path).with_name(Path(path).name + ".sig")


def sign_bytes(
    content: bytes,
    name: str,
    key: SigningKey,
    kind: str,
    sequence: int = 0,
    about: Mapping[str, str | int | float] | None = None,
) -> bytes:
    """The content of the signature file for a file of this name and content."""
    return _signed(len(content), hashlib.sha256(content).hexdigest(), name, key, kind, sequence, about)


def sign_file(
    path: str | Path,
    key: SigningKey,
    kind: str,
    sequence: int = 0,
    about: Mapping[str, str | int | float] | None = None,
) -> Path:
    """Write FILE.sig beside a file; as private as the file itself. Returns its path."""
    path = Path(path)
    size, digest, mode = _content(path)
    signature = _signed(size, digest, path.name, key, kind, sequence, about)
    with written_whole(signature_path(path), private=not mode & 0o077) as temporary:
        temporary.write_bytes(signature)
    return signature_path(path)


def _signed(
    size: int,
    digest: str,
    name: str,
    key: SigningKey,
    kind: str,
    sequence: int,
    about: Mapping[str, str | int | float] | None,
) -> bytes:
    name = unicodedata.normalize("NFC", name)  # file systems differ in how they spell an accent
    manifest = Manifest(
        kind, name, size, digest, sequence, int(time.time()), key.fingerprint, dict(about or {})
    )
    signature = key.sign(manifest.canonical(), "manifest")
    content = canonical({**json.loads(manifest.canonical()), "signature": signature}) + b"\n"
    if len(content) > LARGEST:
        raise SignatureError(f"a signature has up to {LARGEST} bytes; say less in `about`")
    return content


def read_manifest(raw: bytes) -> Manifest:
    """The manifest in the content of a signature file, whose signature holds; whose it is, is not asked."""
    try:
        if len(raw) > LARGEST or not raw.endswith(b"\n"):
            raise ValueError("too large, or cut short")
        fields = read_canonical(raw[:-1])
    except ValueError as error:
        raise SignatureError(
            f"the signature is damaged or not one of ours ({error}); ask for the file and its .sig again"
        ) from error
    form, version = fields.pop("format", None), fields.pop("version", None)
    if form != FORMAT or not is_whole(version):
        raise SignatureError("the signature is not one of ours; it was made by another program")
    if version != VERSION:
        raise SignatureError(
            f"the signature has format {version}, which this tyto does not know: update tytoalba"
        )
    signature = fields.pop("signature", None)
    try:
        manifest = Manifest(**fields)
    except TypeError as error:
        raise SignatureError("the signature lacks a field or has an unknown one; ask for it again") from error
    if not isinstance(signature, str) or not holds(
        signature, manifest.canonical(), "manifest", manifest.signer
    ):
        raise SignatureError(
            f"the signature of {manifest.name} was altered; ask for the file and its .sig again"
        )
    return manifest


def verify_file(
    path: str | Path, kind: str, trusted: Collection[str] | None = None, at_least: int = 0
) -> Manifest:
    """The manifest of a file that is as it was signed, by a trusted signer, and not older than `at_least`.

    trusted: fingerprints; None: the user's TrustStore. The file may change between this and its use where
    others can write to its folder: there, read it once and use `verify_bytes`.
    """
    path, beside = Path(path), signature_path(path)
    if not os.path.lexists(beside):
        raise MissingSignatureError(
            f"{path} has no signature: {beside.name} is not beside it; ask for it where the file came from"
        )
    manifest = read_manifest(read_at_most(beside, LARGEST, SignatureError))
    _require_meant(manifest, path.name, kind, trusted, at_least)
    size, digest, _ = _content(path)
    _require_content(manifest, size, digest)
    return manifest


def verify_bytes(
    content: bytes,
    signature: bytes,
    name: str,
    kind: str,
    trusted: Collection[str] | None = None,
    at_least: int = 0,
) -> Manifest:
    """As `verify_file`, for content in memory and the content of its signature file."""
    manifest = read_manifest(signature)
    _require_meant(manifest, name, kind, trusted, at_least)
    _require_content(manifest, len(content), hashlib.sha256(content).hexdigest())
    return manifest


def _require_meant(
    manifest: Manifest, name: str, kind: str, trusted: Collection[str] | None, at_least: int
) -> None:
    """That a trusted signer spoke about this file and not about another or an older one."""
    require_trusted(manifest.signer, trusted, manifest.name)
    name = unicodedata.normalize("NFC", name)
    if manifest.kind != kind:
        raise SignatureError(
            f"{name} is signed as a {manifest.kind}, not as a {kind}: it was swapped; fetch the right file"
        )
    if manifest.name != name:
        raise SignatureError(
            f"{name} has the signature of {manifest.name}: it was swapped or renamed; give it its name back"
        )
    if manifest.sequence < at_least:
        raise SignatureError(
            f"{name} is version {manifest.sequence}, but version {at_least} was seen before: it was replaced "
            "by an older one; ask for the newest"
        )


def _require_content(manifest: Manifest, size: int, digest: str) -> None:
    if size < manifest.size:
        raise SignatureError(
            f"{manifest.name} was cut short: {size} of {manifest.size} bytes; fetch it again"
        )
    if digest != manifest.sha256:
        raise SignatureError(f"{manifest.name} is not what was signed: it was altered; fetch it again")


def is_whole(value: object) -> bool:
    """Whether a value is a whole number from 0 to 2^53 (and no truth value)."""
    return type(value) is int and 0 <= value <= LARGEST_WHOLE


def is_hex(value: object, length: int) -> bool:
    """Whether a value is a text of so many hex digits, in small letters."""
    return isinstance(value, str) and len(value) == length and set(value) <= set("0123456789abcdef")


def _content(path: Path) -> tuple[int, str, int]:
    """Size, SHA-256 and permissions of a file."""
    if not path.is_file():
        raise SignatureError(f"{path} is not a file; check the path")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest, stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise SignatureError(f"cannot read {path}: {error.strerror}") from error


def _is_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and is_plain(name, 255)
        and name not in {"", ".", ".."}
        and not set(name) & set("/\\")
        and unicodedata.is_normalized("NFC", name)
    )


def _is_about(about: object) -> bool:
    def is_fact(value: object) -> bool:
        if type(value) is float:
            return math.isfinite(value)
        return is_plain(value, 1000) or (type(value) is int and abs(value) <= LARGEST_WHOLE)

    return (
        isinstance(about, dict)
        and len(about) <= 32
        and all(is_plain(name, 64) and is_fact(value) for name, value in about.items())
    )
