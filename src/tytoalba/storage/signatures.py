"""Who made a file, and is it still as it was made: Ed25519 keys, whom one trusts, and FILE.sig beside a file.

A signature speaks about a manifest: kind, name, size, SHA-256, a sequence number that grows with every
version of the file, and the time. It is taken over canonical JSON with a prefix of its own, so that a
signature of one sort can never stand for another. What is read back must be, byte for byte, what would be
written: there is one spelling of a manifest, and no changed byte goes unnoticed.

A signature says who, not that they are right. An old file with its old signature verifies; only a reader who
remembers the last sequence number (`at_least`) notices.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
import stat
import time
import unicodedata
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tytoalba.errors import KeyFileError, MissingExtraError, SignatureError, UntrustedSignerError
from tytoalba.storage.files import locked, read_bytes, user_folder
from tytoalba.storage.writing import write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX = "tyto-ed25519:"
LARGEST = 64 * 1024  # bytes of a key or signature file
FORMAT, VERSION = "tytoalba signature", 1
KINDS = ("model", "state", "contribution", "ledger")
LARGEST_WHOLE = 2**53  # whole numbers up to here are the same in every JSON reader


# ---- who signs, and who is trusted ----


@dataclass(frozen=True, repr=False, eq=False)
class SigningKey:
    """An Ed25519 private key: `generate`, `load`, `save`, `sign`."""

    _private: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key from the system's source of randomness."""
        _need_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> SigningKey:
        """The key in a PKCS8 PEM file; one that group or others may read or write is refused."""
        _need_cryptography()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = read_bytes(path, LARGEST, forbidden=0o077, error=KeyFileError)
        try:
            private = load_pem_private_key(pem, None)
        except TypeError as error:
            raise KeyFileError(f"{path} is locked with a passphrase; name a key without one") from error
        except (ValueError, UnsupportedAlgorithm) as error:
            raise KeyFileError(
                f"{path}: this is not a private key in PKCS8 PEM; name another file in TYTO_SIGNING_KEY"
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyFileError(f"{path} holds a key of another sort; only Ed25519 keys sign here")
        return cls(private)

    def save(self, path: str | Path) -> None:
        """Write the key to a new file for its owner only."""
        from cryptography.hazmat.primitives import serialization as to

        pem = self._private.private_bytes(to.Encoding.PEM, to.PrivateFormat.PKCS8, to.NoEncryption())
        path = Path(path)
        with locked(path, wait=10):
            if os.path.lexists(path):
                raise KeyFileError(f"{path} exists and a key is never overwritten; choose another name")
            write_whole(path, pem, private=True, replace=False)

    @property
    def fingerprint(self) -> str:
        """The public key as text, for others to trust: tyto-ed25519: and 43 letters of base64."""
        return PREFIX + _to_text(self._private.public_key().public_bytes_raw())

    def sign(self, message: bytes, purpose: str) -> str:
        """Signature of a message for one purpose, as text; it does not hold for any other purpose."""
        return _to_text(self._private.sign(_separated(message, purpose)))

    def derived(self, purpose: str) -> bytes:
        """32 secret bytes for another use, which say nothing about the key (HKDF-SHA256)."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derive = HKDF(SHA256(), 32, salt=None, info=_separated(b"", purpose))
        return derive.derive(self._private.private_bytes_raw())

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint})"


def holds(signature: str, message: bytes, purpose: str, signer: str) -> bool:
    """Whether a signature (text) of a message is by the signer (fingerprint) and for this purpose."""
    _need_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(_from_text(signer.removeprefix(PREFIX), 32))
        public.verify(_from_text(signature, 64), _separated(message, purpose))
    except (InvalidSignature, ValueError):
        return False
    return signer.startswith(PREFIX)


def signing_key_path() -> Path:
    """Where the signing key lies: TYTO_SIGNING_KEY, or signing.pem in the user's data folder."""
    named = os.environ.get("TYTO_SIGNING_KEY")
    return Path(named) if named else user_folder() / "signing.pem"


def find_signing_key() -> SigningKey:
    """The user's signing key; the first time it is made, and put among the keys that the user trusts."""
    path, trusted = signing_key_path(), TrustStore()
    is_new = not os.path.lexists(path)
    if is_new:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            SigningKey.generate().save(path)
        except KeyFileError:
            if not path.exists():
                raise
            is_new = False  # another tyto was first: its key is the one
    key = SigningKey.load(path)
    if is_new or (path == user_folder() / "signing.pem" and not os.path.lexists(trusted.path)):
        trusted.add(key.fingerprint, "my own key")  # or whoever made the key was killed before this
    return key


class TrustStore(Container[str]):
    """The keys that the user trusts: a file with a fingerprint and a comment per line, for its owner only.

    Nobody gets in here unasked. The file is TYTO_TRUSTED, or `trusted` in the user's data folder.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        named = os.environ.get("TYTO_TRUSTED")
        self.path = Path(path or named or user_folder() / "trusted")

    def list(self) -> dict[str, str]:
        """Comments by fingerprint, in the order of the file."""
        keys = {}
        for number, line in enumerate(self._lines(), start=1):
            fingerprint, _, comment = line.strip().partition(" ")
            if not fingerprint or fingerprint.startswith("#"):
                continue
            if not is_fingerprint(fingerprint):
                raise KeyFileError(
                    f"{self.path}, line {number}: {fingerprint[:60]!r} is not a key; "
                    f"a line is {PREFIX}... and a comment: correct or remove it"
                )
            keys[fingerprint] = comment.strip()
        return keys

    def add(self, fingerprint: str, comment: str = "") -> None:
        """Trust a key from now on; a comment says whose it is."""
        if not is_fingerprint(fingerprint):
            raise KeyFileError(f"{fingerprint[:60]!r} is not a key; expected {PREFIX} and 43 letters")
        if not is_plain(comment, 200):
            raise KeyFileError("a comment is one line of up to 200 printable characters")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.path, wait=10):
            self._replace(fingerprint, f"{fingerprint} {comment}".strip())

    def remove(self, fingerprint: str) -> None:
        """Trust a key no more."""
        with locked(self.path, wait=10):
            if fingerprint not in self.list():
                raise KeyFileError(f"{fingerprint[:60]} is not in {self.path}: nothing to remove")
            self._replace(fingerprint)

    def _lines(self) -> Sequence[str]:
        if not self.path.exists():
            return []
        content = read_bytes(self.path, 2**20, forbidden=0o022, error=KeyFileError, pipes=False)
        text = content.decode("utf-8", "replace").rstrip()
        return text.split("\n") if text else []

    def _replace(self, fingerprint: str, *line: str) -> None:
        """Write another line for a key, or none; the rest stays, with the user's own remarks."""
        self.list()  # a file that cannot be understood is not written to
        kept = [other for other in self._lines() if other.strip().partition(" ")[0] != fingerprint]
        write_whole(self.path, "".join(f"{each}\n" for each in [*kept, *line]).encode(), private=True)

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self.list()


def is_fingerprint(text: str) -> bool:
    """Whether a text is a public key as `SigningKey.fingerprint` writes it."""
    try:
        _from_text(text.removeprefix(PREFIX), 32)
    except ValueError:
        return False
    return text.startswith(PREFIX)


def require_trusted(signer: str, trusted: Collection[str] | None, what: str) -> None:
    """Refuse a signer who is not among the trusted, and say how to trust.

    trusted: fingerprints; None: the user's own key and TrustStore.
    """
    if isinstance(trusted, str):
        trusted = [trusted]  # or a part of a key would do
    if signer in (TrustStore() if trusted is None else trusted):
        return
    remedy = "it is not among the keys that were given; if you know whose it is, give it too"
    if trusted is None:
        if os.path.lexists(signing_key_path()) and signer == SigningKey.load(signing_key_path()).fingerprint:
            return
        remedy = (
            "a key that you do not trust; ask its owner to read it to you, and if it is the same: "
            f"`tyto trust {signer}`"
        )
    raise UntrustedSignerError(f"{what} is signed by {signer}: {remedy}")


# ---- what is signed ----


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
            (not is_about(self.about), "about is not up to 32 short names with texts or finite numbers"),
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


def sign_file(
    path: str | Path,
    key: SigningKey,
    kind: str,
    sequence: int = 0,
    about: Mapping[str, str | int | float] | None = None,
) -> Path:
    """Write FILE.sig beside a file; as private as the file itself. Returns its path."""
    path = Path(path)
    if not path.is_file():
        raise SignatureError(f"{path} is not a file; check the path")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size, mode = file.tell(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise SignatureError(f"cannot read {path}: {error.strerror}") from error
    name = unicodedata.normalize("NFC", path.name)  # file systems differ in how they spell an accent
    manifest = Manifest(
        kind, name, size, digest, sequence, int(time.time()), key.fingerprint, dict(about or {})
    )
    signature = key.sign(manifest.canonical(), "manifest")
    content = canonical({**json.loads(manifest.canonical()), "signature": signature}) + b"\n"
    if len(content) > LARGEST:
        raise SignatureError(f"a signature has up to {LARGEST} bytes; say less in `about`")
    write_whole(signature_path(path), content, private=not mode & 0o077)
    return signature_path(path)


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


def verify_bytes(
    content: bytes,
    signature: bytes,
    name: str,
    kind: str,
    trusted: Collection[str] | None = None,
    at_least: int = 0,
) -> Manifest:
    """The manifest of content that is as it was signed, by a trusted signer, and not older than `at_least`.

    signature: the content of FILE.sig. trusted: fingerprints; None: the user's own key and TrustStore.
    """
    manifest = read_manifest(signature)
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
    if len(content) < manifest.size:
        raise SignatureError(
            f"{manifest.name} was cut short: {len(content)} of {manifest.size} bytes; fetch it again"
        )
    if hashlib.sha256(content).hexdigest() != manifest.sha256:
        raise SignatureError(f"{manifest.name} is not what was signed: it was altered; fetch it again")
    return manifest


def is_whole(value: object) -> bool:
    """Whether a value is a whole number from 0 to 2^53 (and no truth value)."""
    return type(value) is int and 0 <= value <= LARGEST_WHOLE


def is_hex(value: object, length: int) -> bool:
    """Whether a value is a text of `length` hex digits, in small letters."""
    return isinstance(value, str) and len(value) == length and set(value) <= set("0123456789abcdef")


def is_plain(text: object, longest: int) -> bool:
    """Whether a value is a text that can be shown: no control, direction, surrogate or line characters."""
    return (
        isinstance(text, str)
        and len(text) <= longest
        and all(
            unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for letter in text
        )
    )


def _is_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and is_plain(name, 255)
        and name not in {"", ".", ".."}
        and not set(name) & set("/\\")
        and unicodedata.is_normalized("NFC", name)
    )


def is_about(about: object) -> bool:
    """Whether a value is what a manifest or a step may say beside the rest: up to 32 short facts."""

    def is_fact(value: object) -> bool:
        if type(value) is float:
            return math.isfinite(value)
        return is_plain(value, 1000) or (type(value) is int and abs(value) <= LARGEST_WHOLE)

    return (
        isinstance(about, dict)
        and len(about) <= 32
        and all(is_plain(name, 64) and is_fact(value) for name, value in about.items())
    )


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("signatures", "privacy") from error


def _separated(message: bytes, purpose: str) -> bytes:
    return f"tytoalba {purpose} v1".encode("ascii") + b"\0" + message


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _from_text(text: str, n_bytes: int) -> bytes:
    """`n_bytes` bytes from the text that `_to_text` makes of them, and from no other spelling."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if len(data) != n_bytes or _to_text(data) != text:
        raise ValueError(f"not {n_bytes} bytes in base64")
    return data
