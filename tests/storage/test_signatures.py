"""Signatures notice every change, swap and downgrade, trust nobody unasked, and survive hostile files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.seals import mode, posix
from tytoalba.errors import (
    KeyFileError,
    MissingExtraError,
    SignatureError,
    TytoError,
    UntrustedSignerError,
)
from tytoalba.storage.signatures import (
    KINDS,
    LARGEST,
    Manifest,
    SigningKey,
    TrustStore,
    canonical,
    find_signing_key,
    holds,
    is_fingerprint,
    read_manifest,
    sign_file,
    signature_path,
    signing_key_path,
    verify_bytes,
)

pytest.importorskip("cryptography")
pytestmark = pytest.mark.usefixtures("home")
OURS, THEIRS = SigningKey.generate(), SigningKey.generate()
TRUSTED = [OURS.fingerprint]
CONTENT = b"what was learned"


def sign_bytes(
    content: bytes, name: str, kind: str, sequence: int = 0, about: dict[str, Any] | None = None
) -> bytes:
    """The signature file of our key beside a file of this name."""
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        return sign_file(Path(folder) / name, OURS, kind, sequence, about).read_bytes()


def verify_file(path: Path, kind: str, trusted: Any = None, at_least: int = 0) -> Manifest:
    return verify_bytes(
        path.read_bytes(), signature_path(path).read_bytes(), path.name, kind, trusted, at_least
    )


SIGNATURE = sign_bytes(CONTENT, "den.model", "model", 3, {"array": "pepper", "n_frames": 12})


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    path = tmp_path / "den.model"
    path.write_bytes(CONTENT)
    sign_file(path, OURS, "model", 3, {"array": "pepper"})
    return path


# ---- keys


def test_key_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    OURS.save(path)
    again = SigningKey.load(path)
    assert again.fingerprint == OURS.fingerprint
    assert holds(again.sign(b"m", "test"), b"m", "test", OURS.fingerprint)
    if sys.platform != "win32":
        assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text("precious")
    with pytest.raises(KeyFileError, match="never overwritten"):
        OURS.save(path)
    assert path.read_text() == "precious"


@posix
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o601])
def test_key_file_that_others_may_open_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "key.pem"
    OURS.save(path)
    path.chmod(bits)
    with pytest.raises(KeyFileError, match=rf"open to others \(mode {bits:o}\): chmod 600 "):
        SigningKey.load(path)
    path.chmod(0o600)
    assert SigningKey.load(path).fingerprint == OURS.fingerprint


def test_files_that_are_no_keys(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as to
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    private, form = generate_private_key(SECP256R1()), (to.Encoding.PEM, to.PrivateFormat.PKCS8)
    other = private.private_bytes(*form, to.NoEncryption())
    locked = private.private_bytes(*form, to.BestAvailableEncryption(b"words"))
    path = tmp_path / "key.pem"
    for content, why in [
        (b"", "not a private key"),
        (b"\xff\x00 junk", "not a private key"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "not a private key"),
        (other, "only Ed25519"),
        (locked, "is locked with a passphrase; name a key without one"),
        (b"x" * (LARGEST + 1), "larger than"),
    ]:
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(KeyFileError, match=why):
            SigningKey.load(path)
    for missing in (tmp_path / "none.pem", tmp_path):
        with pytest.raises(KeyFileError, match="not a file"):
            SigningKey.load(missing)


def test_key_does_not_show_itself() -> None:
    assert repr(OURS) == f"SigningKey({OURS.fingerprint})"


def test_fingerprint_is_the_public_key_in_one_spelling() -> None:
    assert is_fingerprint(OURS.fingerprint)
    assert len(OURS.fingerprint) == len("tyto-ed25519:") + 43
    assert OURS.fingerprint != THEIRS.fingerprint
    wrong = ["", "tyto-ed25519:", OURS.fingerprint[:-1], OURS.fingerprint + "=", OURS.fingerprint.upper()]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = letters.index(OURS.fingerprint[-1])
    wrong += [OURS.fingerprint[:-1] + letters[last ^ 1], OURS.fingerprint[:20] + "é" + OURS.fingerprint[21:]]
    assert not any(is_fingerprint(text) for text in wrong)


def test_signature_is_for_one_message_purpose_and_signer() -> None:
    signature = OURS.sign(b"message", "manifest")
    assert holds(signature, b"message", "manifest", OURS.fingerprint)
    assert not holds(signature, b"massage", "manifest", OURS.fingerprint)
    assert not holds(signature, b"message", "ledger entry", OURS.fingerprint)
    assert not holds(signature, b"message", "manifest", THEIRS.fingerprint)
    assert not holds(signature, b"message", "manifest", OURS.fingerprint.removeprefix("tyto-ed25519:"))
    assert not holds(signature + "=", b"message", "manifest", OURS.fingerprint)
    assert not holds("é", b"message", "manifest", OURS.fingerprint)


def test_derived_secrets_differ_by_purpose_and_key() -> None:
    assert OURS.derived("a") == OURS.derived("a")
    assert len({OURS.derived("a"), OURS.derived("b"), THEIRS.derived("a")}) == 3


def test_first_use_makes_a_key_and_trusts_it(home: Path) -> None:
    assert not home.exists()
    key = find_signing_key()
    assert signing_key_path() == home / "signing.pem"
    again = SigningKey.load(signing_key_path())
    assert find_signing_key().fingerprint == again.fingerprint == key.fingerprint
    assert TrustStore().list() == {key.fingerprint: "my own key"}
    if sys.platform != "win32":
        assert [mode(home), mode(home / "signing.pem"), mode(home / "trusted")] == [0o700, 0o600, 0o600]


def test_key_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TYTO_SIGNING_KEY", str(tmp_path / "mine.pem"))
    OURS.save(tmp_path / "mine.pem")
    assert find_signing_key().fingerprint == OURS.fingerprint


def test_processes_that_start_together_agree_on_one_key(home: Path) -> None:
    code = "from tytoalba.storage.signatures import find_signing_key as find; print(find().fingerprint)"
    others = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert {other.communicate()[0].strip() for other in others} == {find_signing_key().fingerprint}
    assert [*TrustStore().list()] == [find_signing_key().fingerprint]
    assert sorted(path.name for path in home.iterdir()) == ["signing.pem", "trusted"]


# ---- trust


def test_trust_store_adds_lists_and_removes(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "folder" / "trusted")
    assert store.list() == {}
    assert OURS.fingerprint not in store
    store.add(OURS.fingerprint, "the den")
    store.add(THEIRS.fingerprint)
    store.add(OURS.fingerprint, "the kitchen")
    assert TrustStore(store.path).list() == {OURS.fingerprint: "the kitchen", THEIRS.fingerprint: ""}
    assert OURS.fingerprint in store
    store.remove(OURS.fingerprint)
    assert [*store.list()] == [THEIRS.fingerprint]
    with pytest.raises(KeyFileError, match="nothing to remove"):
        store.remove(OURS.fingerprint)
    if sys.platform != "win32":
        assert mode(store.path) == 0o600


def test_trust_store_keeps_the_users_remarks(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trusted")
    store.path.write_text(f"# the house\n\n{OURS.fingerprint} den\n", "utf-8")
    store.path.chmod(0o600)
    store.add(THEIRS.fingerprint, "Käuzchen")
    store.remove(OURS.fingerprint)
    assert store.path.read_text("utf-8") == f"# the house\n\n{THEIRS.fingerprint} Käuzchen\n"
    TrustStore(tmp_path / "other").add(OURS.fingerprint)
    TrustStore(tmp_path / "other").remove(OURS.fingerprint)
    assert (tmp_path / "other").read_bytes() == b""
    TrustStore(tmp_path / "other").add(OURS.fingerprint)
    assert (tmp_path / "other").read_text() == f"{OURS.fingerprint}\n"
    store.path.write_text("nonsense\n")
    with pytest.raises(KeyFileError, match="line 1"):
        store.add(OURS.fingerprint)
    assert store.path.read_text() == "nonsense\n"


def test_trust_store_refuses_what_is_no_key(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trusted")
    for bad in ("", "friend", OURS.fingerprint[:-1], OURS.fingerprint + "\n" + THEIRS.fingerprint):
        with pytest.raises(KeyFileError, match="is not a key"):
            store.add(bad)
    for comment in (f"x\n{THEIRS.fingerprint}", "x\u2028y", "x" * 201, "\u202eevil"):
        with pytest.raises(KeyFileError, match="a comment is one line"):
            store.add(OURS.fingerprint, comment)
    assert not store.path.exists()
    store.path.touch(0o600)
    store.path.write_text(f"# my friends\n\n{OURS.fingerprint} den\nnonsense here\n")
    with pytest.raises(KeyFileError, match="line 4: 'nonsense' is not a key"):
        store.list()
    store.path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(KeyFileError, match="line 1"):
        store.list()


@posix
def test_trust_store_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trusted")
    store.add(OURS.fingerprint)
    store.path.chmod(0o620)
    with pytest.raises(KeyFileError, match="chmod 600"):
        store.list()


def test_nobody_is_trusted_unasked(signed: Path) -> None:
    store = TrustStore()
    for _ in range(2):  # the first look does not make it trusted
        with pytest.raises(UntrustedSignerError) as caught:
            verify_file(signed, "model")
        assert f"`tyto trust {OURS.fingerprint}`" in str(caught.value)
    store.add(OURS.fingerprint)
    assert verify_file(signed, "model").signer == OURS.fingerprint
    for trusted in ([], [THEIRS.fingerprint], THEIRS.fingerprint, OURS.fingerprint + "x"):
        with pytest.raises(UntrustedSignerError, match="not among the keys that were given"):
            verify_file(signed, "model", trusted)


# ---- manifests


def test_what_was_signed_is_what_is_read(signed: Path) -> None:
    manifest = verify_file(signed, "model", TRUSTED, at_least=3)
    assert (manifest.kind, manifest.name, manifest.size) == ("model", "den.model", len(CONTENT))
    assert (manifest.sequence, manifest.about) == (3, {"array": "pepper"})
    assert sorted(path.name for path in signed.parent.iterdir()) == ["den.model", "den.model.sig"]


@posix
def test_signature_is_as_private_as_its_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(CONTENT)
    for bits, expected in [(0o644, 0o644), (0o600, 0o600)]:
        path.chmod(bits)
        before = os.umask(0o022)
        try:
            assert mode(sign_file(path, OURS, "state")) == expected
        finally:
            os.umask(before)


def test_altered_truncated_and_grown_content(signed: Path) -> None:
    for content, why in [
        (CONTENT[:-1], r"cut short: 15 of 16 bytes"),
        (b"", "cut short: 0 of"),
        (CONTENT + b"\n", "altered"),
        (CONTENT.replace(b"what", b"That"), "altered"),
    ]:
        signed.write_bytes(content)
        with pytest.raises(SignatureError, match=why):
            verify_file(signed, "model", TRUSTED)


def test_swapped_and_downgraded(signed: Path) -> None:
    other = signed.with_name("kitchen.model")
    other.write_bytes(CONTENT)
    signature_path(other).write_bytes(signature_path(signed).read_bytes())
    with pytest.raises(SignatureError, match=r"has the signature of den\.model"):
        verify_file(other, "model", TRUSTED)
    with pytest.raises(SignatureError, match="signed as a model, not as a state"):
        verify_file(signed, "state", TRUSTED)
    with pytest.raises(SignatureError, match="version 3, but version 4 was seen before"):
        verify_file(signed, "model", TRUSTED, at_least=4)
    signed.unlink()
    with pytest.raises(SignatureError, match="not a file"):
        sign_file(signed, OURS, "model")


@given(st.data())
def test_every_changed_byte_of_a_signature_is_noticed(data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(SIGNATURE) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != SIGNATURE[position]))
    changed = SIGNATURE[:position] + bytes([byte]) + SIGNATURE[position + 1 :]
    with pytest.raises(SignatureError):
        verify_bytes(CONTENT, changed, "den.model", "model", TRUSTED)


def test_every_cut_or_lengthened_signature_is_noticed() -> None:
    for changed in [*(SIGNATURE[:end] for end in range(len(SIGNATURE))), SIGNATURE + b"\n", b" " + SIGNATURE]:
        with pytest.raises(SignatureError):
            read_manifest(changed)


def forged(**changes: Any) -> bytes:
    """A signature file with other fields, properly signed by us whatever they are."""
    fields = {**json.loads(SIGNATURE), **changes}
    del fields["signature"]
    return json_of({**fields, "signature": OURS.sign(json_of(fields)[:-1], "manifest")})


def json_of(fields: dict[str, Any]) -> bytes:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return text.encode() + b"\n"


def test_forged_fixture_is_valid_when_nothing_changes() -> None:
    assert read_manifest(forged()) == read_manifest(SIGNATURE)


WRONG: dict[str, list[Any]] = {
    "name": [
        *("", ".", "..", "../den", "a/b", "a\\b", "C:\\x", "a\0b", "a\nb", "\u202egpj.exe", "a\u200bb"),
        *("\udc80", "e\u0301", "x" * 256, 3, None),
    ],
    "size": [-1, 2**53 + 1, 1.0, True, "1", None],
    "sequence": [-1, 2**53 + 1, 1.0, True, "1", None],
    "time": [-1, 2**53 + 1, 1.0, True, "1", None],
    "sha256": ["", "0" * 63, "G" * 64, "A" * 64, 7, None],
    "kind": ["", "Model", [], {}, None, 1],
    "signer": ["", "me", [], 1, None, OURS.fingerprint + "="],
    "about": [
        *([], "x", None, {"a": []}, {"a": None}, {"a": True}, {"a": 2**60}, {"a": "x" * 1001}, {"x" * 65: 1}),
        *({"a": "\x1b[2J"}, {"a": float("inf")}, {"a": float("nan")}, {str(n): n for n in range(33)}),
    ],
    "format": ["another", None, 1],
    "version": ["1", 1.0, True, -1, None],
    "extra": [1],
}


@pytest.mark.parametrize("changes", [{name: bad} for name, bads in WRONG.items() for bad in bads])
def test_wrong_fields_are_refused_even_when_signed(changes: dict[str, Any]) -> None:
    with pytest.raises(SignatureError) as caught:
        read_manifest(forged(**changes))
    assert "was altered" not in str(caught.value)  # the signature itself holds


def test_newer_and_foreign_formats_say_so() -> None:
    with pytest.raises(SignatureError, match=r"has format 2.*update tytoalba"):
        read_manifest(forged(version=2))
    with pytest.raises(SignatureError, match="another program"):
        read_manifest(forged(format="minisign"))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n",
        b"null\n",
        b"[" * 50_000 + b"\n",
        b'{"a":' * 10_000 + b"\n",
        b"1" * 60_000 + b"\n",
        b"\xff\xfe\n",
        b'"\\ud800"\n',
        SIGNATURE.replace(b'{"about"', b'{"kind":"model","about"'),
        SIGNATURE[:-2] + b',"kind":"state"}\n',
        SIGNATURE.replace(b":3,", b": 3,"),
        SIGNATURE.replace(b":3,", b":NaN,"),
        SIGNATURE.replace(b":3,", b":3e0,"),
        SIGNATURE.replace(b"pepper", b"\\u0070epper"),
        SIGNATURE.replace(b"\n", b"\r\n"),
        b" " * LARGEST + SIGNATURE,
    ],
    ids=range(16),
)
def test_hostile_json_is_refused(raw: bytes) -> None:
    with pytest.raises(SignatureError):
        read_manifest(raw)


def test_size_is_looked_at_before_anything_is_parsed() -> None:
    with pytest.raises(SignatureError, match="too large"):
        read_manifest(b'{"a":"' + b"x" * LARGEST + b'"}\n')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode() + b"\n"))
def test_anything_at_all_is_refused_without_a_crash(raw: bytes) -> None:
    with pytest.raises(SignatureError):
        read_manifest(raw)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(SIGNATURE))), json_values, min_size=1, max_size=3))
def test_any_field_may_be_anything_without_a_crash(changes: dict[str, Any]) -> None:
    try:
        manifest = read_manifest(forged(**changes))
    except SignatureError:
        return
    assert isinstance(manifest, Manifest)
    assert manifest.signer == OURS.fingerprint


@given(
    st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=20),
    st.sampled_from(KINDS),
    st.binary(max_size=50),
    st.integers(0, 2**53),
)
def test_what_can_be_signed_verifies(name: str, kind: str, content: bytes, sequence: int) -> None:
    try:
        signature = sign_bytes(content, name, kind, sequence, {name: name, "x": 1e-300})
    except SignatureError as error:
        assert "cannot be in a manifest" in str(error)  # noqa: PT017
        return
    manifest = verify_bytes(content, signature, name, kind, TRUSTED, at_least=sequence)
    assert manifest.name == unicodedata.normalize("NFC", name)
    assert manifest.about["x"] == 1e-300


def test_accents_may_be_spelt_as_the_file_system_likes() -> None:
    signature = sign_bytes(CONTENT, "cafe\u0301.model", "model")
    assert verify_bytes(CONTENT, signature, "caf\u00e9.model", "model", TRUSTED).name == "caf\u00e9.model"


def test_what_cannot_be_signed_is_refused_and_the_old_signature_stays(signed: Path) -> None:
    before = signature_path(signed).read_bytes()
    bad_abouts: list[dict[str, Any]] = [
        {"a": float("nan")},
        {"a": [1]},
        {str(n): "\U0001f989" * 900 for n in range(32)},
    ]
    for about in bad_abouts:
        with pytest.raises(SignatureError):
            sign_file(signed, OURS, "model", 4, about)
    for kind, sequence in [("thing", 4), ("model", -1), ("model", 2**53 + 1)]:
        with pytest.raises(SignatureError):
            sign_file(signed, OURS, kind, sequence)
    assert signature_path(signed).read_bytes() == before


def test_canonical_has_no_nan() -> None:
    assert canonical({"b": 1, "a": "é"}) == b'{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical({"a": float("nan")})


def test_without_cryptography_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    OURS.save(tmp_path / "key.pem")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for call in (SigningKey.generate, find_signing_key, lambda: SigningKey.load(tmp_path / "key.pem")):
        with pytest.raises(MissingExtraError, match=r"pip install 'tytoalba\[privacy\]'"):
            call()
    with pytest.raises(TytoError, match="privacy"):
        read_manifest(SIGNATURE)
