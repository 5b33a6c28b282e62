"""Keys are refused where others can read them, and are never shown; recipients are read from files."""

from __future__ import annotations

import os
import pickle
import resource
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyrage")

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.helpers.kills import in_child, kill_points
from tests.helpers.seals import mode, names, new_key, posix, public, sealed_with_passphrase
from tytoalba.errors import SealError, WrongKeyError
from tytoalba.storage.age import Identity, Passphrase, open_bytes, seal_bytes
from tytoalba.storage.keys import (
    add_default_recipients,
    default_recipients,
    identity_path,
    listed_recipients,
    make_identity,
    parse_recipients,
    read_identities,
    recipients_path,
)

pytestmark = pytest.mark.usefixtures("home")


def publics(keys: list[Any]) -> list[str | None]:
    return [key.public for key in keys if isinstance(key, Identity)]


# Identity files


@posix
def test_a_new_identity_is_private_and_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "key.txt"
    made = make_identity(path)
    assert mode(path) == 0o600
    assert publics([*read_identities(path)]) == [made]
    before = path.read_bytes()
    with pytest.raises(SealError, match="is there already and stays"):
        make_identity(path)
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(SealError, match="is there already"):
        make_identity(tmp_path / "link")
    with pytest.raises(SealError, match="does its folder exist"):
        make_identity(tmp_path / "none" / "key.txt")
    assert path.read_bytes() == before
    assert names(tmp_path) == ["key.txt", "link"]


@posix
@pytest.mark.parametrize("limit", [0, 1, 100])
def test_an_identity_that_cannot_be_written_leaves_nothing(tmp_path: Path, limit: int) -> None:
    """Out of disk at any byte; it used to leave an empty file that was in the way for good."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(OSError, match="too large"):
            make_identity(tmp_path / "key.txt")

    assert not in_child(limited)
    assert names(tmp_path) == []


@posix
def test_killed_anywhere_a_key_is_whole_or_not_there(tmp_path: Path) -> None:
    path, n_kills = tmp_path / "key.txt", 0
    for n_kills in kill_points(partial(make_identity, path)):  # noqa: B007
        assert set(names(tmp_path)) <= {"key.txt", ".key.txt.lock"}  # and no secret in any other file
        if path.exists():
            assert read_identities(path)
            path.unlink()
    assert n_kills > 5
    assert read_identities(path)
    assert names(tmp_path) == ["key.txt"]


def test_what_an_older_version_left_is_cleared_away(tmp_path: Path) -> None:
    path, key = tmp_path / "key.txt", new_key(tmp_path, "other")
    whole = (tmp_path / "other").read_text()
    mine = {".key.notes.txt": "mine", ".key.abcdefgh.txt": "my own words", "key.txt.abcdefgh": whole}
    for name, content in mine.items():
        (tmp_path / name).write_text(content)
    for cut in (0, 5, 12, 40, 60, 120, len(whole) - 2):
        path.write_text(whole[:cut])
        (tmp_path / ".key.x7_abcde.txt").write_text(whole)
        (tmp_path / ".key.12345678.txt").write_text("")
        made = make_identity(path)
        assert publics([*read_identities(path)]) == [made] != [key.public]
        assert names(tmp_path) == sorted([*mine, "key.txt", "other"])
        path.unlink()
    for kept in (whole, whole[:-1], "# created: by me\n\n", "# my notes", f"{key.secret}", "text"):
        path.write_text(kept)
        with pytest.raises(SealError, match="is there already and stays"):
            make_identity(path)
        assert path.read_text() == kept


@posix
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o644, 0o660, 0o620])
def test_identities_that_others_can_read_are_refused(tmp_path: Path, bits: int) -> None:
    new_key(tmp_path)
    (tmp_path / "link").symlink_to("key.txt")
    (tmp_path / "key.txt").chmod(bits)
    for name in ("key.txt", "link"):
        with pytest.raises(SealError, match=rf"mode {bits:o}.*chmod 600 .*{name}"):
            read_identities(tmp_path / name)
    (tmp_path / "key.txt").chmod(0o400)
    assert read_identities(tmp_path / "link")


def write_private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_several_keys_comments_and_foreign_line_ends(tmp_path: Path) -> None:
    a, b = new_key(tmp_path, "a"), new_key(tmp_path, "b")
    text = f"\ufeff# two keys\r\n\r\n  {a.secret}\r\n# the old one\r\n{b.secret}"
    keys = read_identities(write_private(tmp_path / "both", text.encode()))
    assert publics([*keys]) == [public(a), public(b)]
    assert open_bytes(seal_bytes(b"x", [public(b)]), keys) == b"x"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "holds no key"),
        (b"# only words\n", "holds no key"),
        (b"\xff\xfe\x00", "is not text"),
        (b"# fine\nAGE-SECRET-KEY-1SECRETSECRET\n", "line 2 is not a secret key"),
        (b"AGE-PLUGIN-YUBIKEY-1SECRETSECRET\n", "line 1 is not a secret key"),
        (b"age1publicSECRETSECRET\n", "line 1 is not a secret key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nSECRETSECRET\n", "this ssh key cannot be used"),
        (b"#" * (2**20 + 1), "is larger than"),
        (b"age-encryption.org/v1\n-> X25519 SECRETSECRET\n", "sealed for another key"),
    ],
)
def test_odd_identity_files(tmp_path: Path, content: bytes, why: str) -> None:
    path = write_private(tmp_path / "key.txt", content)
    with pytest.raises(SealError, match=why) as caught:
        read_identities(path)
    assert "key.txt" in str(caught.value)
    assert "SECRETSECRET" not in str(caught.value)


def test_folders_devices_and_missing_files_are_no_identities(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path(os.devnull), Path("\0")):
        with pytest.raises(SealError):
            read_identities(path)


@pytest.mark.parametrize("armored", [False, True])
def test_identity_file_sealed_with_a_passphrase(tmp_path: Path, armored: bool) -> None:
    key = new_key(tmp_path)
    sealed = sealed_with_passphrase((tmp_path / "key.txt").read_bytes(), "words", armored)
    path = write_private(tmp_path / "sealed.txt", sealed)
    answers = iter(["wrong", "words"])
    questions = []

    def prompt(question: str) -> str:
        questions.append(question)
        return next(answers)

    with pytest.raises(SealError, match="no terminal"):
        read_identities(path)
    with pytest.raises(WrongKeyError, match="passphrase does not open"):
        read_identities(path, prompt)
    for _ in range(3):
        assert publics([*read_identities(path, prompt)]) == [public(key)]
    assert questions == [f"Passphrase of {path}: "] * 2


def test_made_with_a_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrage.passphrase.encrypt", sealed_with_passphrase)  # in less than a second
    made = make_identity(tmp_path / "key.txt", Passphrase("words"))
    content = (tmp_path / "key.txt").read_bytes()
    assert content.startswith(b"-----BEGIN AGE ENCRYPTED FILE-----")
    assert b"SECRET" not in content
    assert publics([*read_identities(tmp_path / "key.txt", lambda _: "words")]) == [made]


def test_the_folder_is_in_the_home_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert identity_path() == tmp_path / ".local" / "share" / "tytoalba" / "keys" / "identity.txt"


def test_identities_go_to_other_processes(tmp_path: Path) -> None:
    key = new_key(tmp_path)
    again = pickle.loads(pickle.dumps(key))
    assert open_bytes(seal_bytes(b"x", [public(key)]), [again]) == b"x"
    assert str(key.secret) not in repr(again)


# Recipients


def test_recipients_from_words_and_files(tmp_path: Path) -> None:
    a, b = public(new_key(tmp_path, "a")), public(new_key(tmp_path, "b"))
    made = Ed25519PrivateKey.generate().public_key()
    ssh = made.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() + " me@here"
    (tmp_path / "friends").write_text(f"# friends\n\n{b}\n{ssh}\n")
    assert parse_recipients([a, tmp_path / "friends", str(tmp_path / "friends"), f" {a} "]) == [a, b, ssh]


def test_bad_recipients(tmp_path: Path) -> None:
    key = new_key(tmp_path)
    (tmp_path / "empty").write_text("# nobody\n")
    (tmp_path / "odd").write_text(f"# one\n{public(key)}\nfriend\n")
    secret = str(key.secret)
    for word, why in {
        "nobody": "no recipient or file of recipients 'nobody'",
        public(key)[:-1]: "not a valid recipient",
        secret: "that is a secret key",
        str(tmp_path / "key.txt"): "line 3: that is a secret key",
        str(tmp_path / "empty"): "names no recipient",
        str(tmp_path / "odd"): "line 3: 'friend' is not a recipient",
        str(tmp_path): "is not a file",
    }.items():
        with pytest.raises(SealError, match=why) as caught:
            parse_recipients([word])
        assert secret[20:40] not in str(caught.value)


@posix
def test_default_recipients(tmp_path: Path) -> None:
    a, b = public(new_key(tmp_path, "a")), public(new_key(tmp_path, "b"))
    assert default_recipients() == []
    add_default_recipients([a])
    assert default_recipients() == [a]
    recipients_path().write_text(recipients_path().read_text() + "# by hand, no line end")
    add_default_recipients([a, b, b])
    assert default_recipients() == [a, b]
    assert "# by hand" in recipients_path().read_text()
    assert mode(recipients_path().parent) == 0o700
    recipients_path().write_text("")
    with pytest.raises(SealError, match="names no recipient"):  # rather than seal for nobody, or not at all
        default_recipients()


def test_a_list_that_was_left_empty_takes_new_recipients(tmp_path: Path) -> None:
    a = public(new_key(tmp_path, "a"))
    recipients_path().parent.mkdir(parents=True)
    recipients_path().write_text("")
    assert listed_recipients() == []
    add_default_recipients([a])
    assert default_recipients() == listed_recipients() == [a]
