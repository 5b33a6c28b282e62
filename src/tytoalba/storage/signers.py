"""Who signs: Ed25519 keys in files for their owner only, and the list of those whom one trusts."""

from __future__ import annotations

import base64
import binascii
import os
import stat
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tytoalba.errors import KeyFileError, MissingExtraError, TytoError, UntrustedSignerError
from tytoalba.storage.files import written_whole
from tytoalba.storage.locks import locked

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX = "tyto-ed25519:"
LARGEST = 64 * 1024  # bytes of a key or signature file


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
    def load(cls, path: str | Path, passphrase: str | None = None) -> SigningKey:
        """The key in a PKCS8 PEM file; one that group or others may read or write is refused."""
        _need_cryptography()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = read_at_most(Path(path), LARGEST, KeyFileError, forbidden=0o077)
        try:
            private = load_pem_private_key(pem, None if passphrase is None else _secret(passphrase))
        except TypeError as error:
            remedy = "give its passphrase" if passphrase is None else "leave out the passphrase"
            raise KeyFileError(f"{path} is {'' if passphrase is None else 'not '}locked; {remedy}") from error
        except (ValueError, UnsupportedAlgorithm) as error:
            cause = "" if passphrase is None else "the passphrase is wrong, or "
            raise KeyFileError(
                f"{path}: {cause}this is no private key in PKCS8 PEM; name another file in TYTO_SIGNING_KEY"
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyFileError(f"{path} holds a key of another sort; only Ed25519 keys sign here")
        return cls(private)

    def save(self, path: str | Path, passphrase: str | None = None) -> None:
        """Write the key to a new file for its owner only, locked with a passphrase if one is given."""
        from cryptography.hazmat.primitives import serialization as to

        lock: to.KeySerializationEncryption = to.NoEncryption()
        if passphrase is not None:
            lock = to.BestAvailableEncryption(_secret(passphrase))
        pem = self._private.private_bytes(to.Encoding.PEM, to.PrivateFormat.PKCS8, lock)
        path = Path(path)
        with locked(path, wait=10):
            if os.path.lexists(path):
                raise KeyFileError(f"{path} exists and a key is never overwritten; choose another name")
            with written_whole(path, private=True) as temporary:
                temporary.write_bytes(pem)

    @property
    def fingerprint(self) -> str:
        """The public key as text, to be told to others: tyto-ed25519: and 43 letters of base64."""
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
    told = os.environ.get("TYTO_SIGNING_KEY")
    return Path(told) if told else _user_folder() / "signing.pem"


def find_signing_key(create: bool = True, passphrase: str | None = None) -> SigningKey:
    """The user's signing key; the first time it is made, and put among the keys that the user trusts."""
    path = signing_key_path()
    if not os.path.lexists(path):
        if not create:
            raise KeyFileError(
                f"there is no signing key at {path}; set TYTO_SIGNING_KEY, or sign something first"
            )
        key = SigningKey.generate()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            key.save(path, passphrase)
        except KeyFileError:
            if not path.exists():
                raise
            # another tyto was first: its key is the one
        else:
            TrustStore().add(key.fingerprint, "my own key")
    return SigningKey.load(path, passphrase)


class TrustStore(Collection[str]):
    """The keys that the user trusts: a file with a fingerprint and a comment a line, for its owner only.

    Nobody gets in here unasked. The file is TYTO_TRUSTED, or `trusted` in the user's data folder.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        told = os.environ.get("TYTO_TRUSTED")
        self.path = Path(path or told or _user_folder() / "trusted")

    def list(self) -> dict[str, str]:
        """Comments by fingerprint, in the order of the file."""
        keys = {}
        for number, line in enumerate(self._lines(), start=1):
            fingerprint, _, comment = line.strip().partition(" ")
            if not fingerprint or fingerprint.startswith("#"):
                continue
            if not is_fingerprint(fingerprint):
                raise KeyFileError(
                    f"{self.path}, line {number}: {fingerprint[:60]!r} is no key; "
                    f"a line is {PREFIX}... and a comment: correct or remove it"
                )
            keys[fingerprint] = comment.strip()
        return keys

    def add(self, fingerprint: str, comment: str = "") -> None:
        """Trust a key from now on; a comment says whose it is."""
        if not is_fingerprint(fingerprint):
            raise KeyFileError(f"{fingerprint[:60]!r} is no key; expected {PREFIX} and 43 letters")
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
        content = read_at_most(self.path, 2**20, KeyFileError, forbidden=0o022)
        text = content.decode("utf-8", "replace").rstrip()
        return text.split("\n") if text else []

    def _replace(self, fingerprint: str, *line: str) -> None:
        """Write another line for a key, or none; the rest stays, with the user's own remarks."""
        self.list()  # a file that cannot be understood is not written to
        kept = [other for other in self._lines() if other.strip().partition(" ")[0] != fingerprint]
        with written_whole(self.path, private=True) as temporary:
            temporary.write_bytes("".join(f"{each}\n" for each in [*kept, *line]).encode())

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self.list()

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self.list())


def is_fingerprint(text: str) -> bool:
    """Whether a text is a public key as `SigningKey.fingerprint` writes it."""
    try:
        return text.startswith(PREFIX) and len(_from_text(text.removeprefix(PREFIX), 32)) == 32
    except ValueError:
        return False


def require_trusted(signer: str, trusted: Collection[str] | None, what: str) -> None:
    """Refuse a signer who is not among the trusted (None: the user's TrustStore), and say how to trust."""
    if isinstance(trusted, str):
        trusted = [trusted]  # or a part of a key would do
    if trusted is None:
        trusted = TrustStore()
    if signer in trusted:
        return
    remedy = "it is not among the keys that were given; if you know whose it is, give it too"
    if isinstance(trusted, TrustStore):
        remedy = (
            "a key that you do not trust; ask its owner to read their key to you, and if it is the same: "
            f"tyto trust {signer} --name THEIR_NAME"
        )
    raise UntrustedSignerError(f"{what} is signed by {signer}: {remedy}")


def read_at_most(path: Path, largest: int, error: type[TytoError], forbidden: int = 0) -> bytes:
    """Content of a regular file of up to `largest` bytes; refused if its mode has a forbidden bit."""
    try:
        if not path.is_file():
            raise error(f"{path} is not a file; check the path")
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & forbidden and sys.platform != "win32":
                raise error(
                    f"{path} is open to others (mode {mode:o}); `chmod 600 {path}` closes it. "
                    "If somebody else may have used it, make a new one"
                )
            content = file.read(largest + 1)
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from problem
    if len(content) > largest:
        raise error(f"{path} is larger than {largest} bytes: this is not what it should be; check the path")
    return content


def is_plain(text: object, longest: int) -> bool:
    """Whether a value is a text that can be shown: no control, direction, surrogate or line characters."""
    return (
        isinstance(text, str)
        and len(text) <= longest
        and all(
            unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for letter in text
        )
    )


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tytoalba"


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("signatures", "privacy") from error


def _secret(passphrase: str) -> bytes:
    secret = passphrase.encode("utf-8", "surrogatepass")
    if not 0 < len(secret) < 1024:
        raise KeyFileError("a passphrase has 1 to 1023 bytes; leave it out to keep the key unlocked")
    return secret


def _separated(message: bytes, purpose: str) -> bytes:
    return f"tytoalba {purpose} v1".encode("ascii") + b"\0" + message


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _from_text(text: str, n_bytes: int) -> bytes:
    """So many bytes from the text that `_to_text` makes of them, and from no other spelling."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if len(data) != n_bytes or _to_text(data) != text:
        raise ValueError(f"not {n_bytes} bytes in base64")
    return data
