"""Keys are found in a known order, are refused where others can read them, and are never shown."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyrage")

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.helpers.seals import names, new_key, public, sealed_with_passphrase
from tytoalba.errors import SealError, TytoWarning, WrongKeyError
from tytoalba.storage import keys as identities
from tytoalba.storage.age import Identity, Passphrase, open_bytes, seal_bytes
from tytoalba.storage.keys import (
    add_default_recipients,
    ask_new,
    default_recipients,
    find_identities,
    identity_path,
    make_identity,
    make_key_folder,
    parse_recipients,
    read_identities,
    recipients_path,
)

posix = pytest.mark.skipif(os.name != "posix", reason="permission bits of POSIX")


class NoKeyringError(RuntimeError):
    """As keyring calls it."""


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, no variable, no keyring, no terminal, nothing remembered."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    monkeypatch.delenv("TYTO_IDENTITY", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    identities._unlocked.cache_clear()
    identities._asking.cache_clear()
    return folder


def publics(keys: list[Any]) -> list[str | None]:
    return [key.public for key in keys if isinstance(key, Identity)]


def use_keyring(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    def get_password(service: str, user: str) -> Any:
        assert (service, user) == ("tyto", "identity")
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=get_password))


# The order


def test_the_first_source_that_has_keys_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_identities() == []
    named = {name: new_key(tmp_path, name) for name in ("keyring", "variable", "file")}
    use_keyring(monkeypatch, f"{named['keyring'].secret}\n")
    assert publics(find_identities()) == [public(named["keyring"])]
    make_key_folder()
    usual = make_identity(identity_path())
    assert publics(find_identities()) == [usual]
    monkeypatch.setenv("TYTO_IDENTITY", str(tmp_path / "variable"))
    assert publics(find_identities()) == [public(named["variable"])]
    monkeypatch.setenv("TYTO_IDENTITY", f" {named['variable'].secret}\n")
    assert publics(find_identities()) == [public(named["variable"])]
    assert publics(find_identities(tmp_path / "file")) == [public(named["file"])]
    monkeypatch.setenv("TYTO_IDENTITY", "  ")  # as if it were not set
    assert publics(find_identities()) == [usual]


def test_the_folder_is_in_the_home_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert identity_path() == tmp_path / ".local" / "share" / "tytoalba" / "keys" / "identity.txt"


def test_a_named_source_that_fails_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    use_keyring(monkeypatch, "AGE-SECRET-KEY-1")
    with pytest.raises(SealError, match="the keyring's entry tyto, line 1 is no secret key"):
        find_identities()
    make_key_folder()
    identity_path().symlink_to("nowhere")
    with pytest.raises(SealError, match="no identity file"):
        find_identities()
    monkeypatch.setenv("TYTO_IDENTITY", "/no/such/file")
    with pytest.raises(SealError, match="no identity file '/no/such/file'"):
        find_identities()
    monkeypatch.setenv("TYTO_IDENTITY", "AGE-SECRET-KEY-1QQ")
    with pytest.raises(SealError, match="TYTO_IDENTITY, line 1 is no secret key"):
        find_identities()


def test_a_keyring_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    use_keyring(monkeypatch, None)
    assert find_identities() == []
    use_keyring(monkeypatch, NoKeyringError("no backend"))
    assert find_identities() == []
    use_keyring(monkeypatch, RuntimeError("it is locked"))
    with pytest.warns(TytoWarning, match="it is locked"):
        assert find_identities() == []


def test_a_terminal_is_asked_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = sealed_with_passphrase(b"hello", "words")
    with pytest.raises(WrongKeyError, match="no terminal"):
        open_bytes(sealed, find_identities())
    questions = []

    def getpass(question: str) -> str:
        questions.append(question)
        return "words"

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", getpass)
    for _ in range(3):  # many files, one question
        assert open_bytes(sealed, find_identities(), "x.age") == b"hello"
    assert questions == ["Passphrase of x.age: "]
    monkeypatch.setattr(sys, "stdin", None)  # as for programs without a window
    assert find_identities() == []


def test_the_end_of_input_is_no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    def getpass(question: str) -> str:
        raise EOFError(question)

    monkeypatch.setattr("getpass.getpass", getpass)
    with pytest.raises(SealError, match="no passphrase given"):
        open_bytes(sealed_with_passphrase(b"", "words"), find_identities(prompt=identities.ask_terminal))


# Identity files


@posix
def test_a_new_identity_is_private_and_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "key.txt"
    made = make_identity(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
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


def test_an_identity_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path, __: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        make_identity(tmp_path / "key.txt")
    assert names(tmp_path) == []


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o620])
def test_identities_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    new_key(tmp_path)
    (tmp_path / "link").symlink_to("key.txt")
    (tmp_path / "key.txt").chmod(mode)
    for name in ("key.txt", "link"):
        with pytest.raises(SealError, match=rf"mode {mode:o}.*chmod 600 .*{name}"):
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
        (b"# fine\nAGE-SECRET-KEY-1SECRETSECRET\n", "line 2 is no secret key"),
        (b"AGE-PLUGIN-YUBIKEY-1SECRETSECRET\n", "line 1 is no secret key"),
        (b"age1publicSECRETSECRET\n", "line 1 is no secret key"),
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
        find_identities(path)
    with pytest.raises(WrongKeyError, match="passphrase does not open"):
        find_identities(path, prompt)
    for _ in range(3):
        assert publics(find_identities(path, prompt)) == [public(key)]
    assert questions == [f"Passphrase of {path}: "] * 2


def test_made_with_a_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrage.passphrase.encrypt", sealed_with_passphrase)  # in less than a second
    made = make_identity(tmp_path / "key.txt", Passphrase("words"))
    content = (tmp_path / "key.txt").read_bytes()
    assert content.startswith(b"-----BEGIN AGE ENCRYPTED FILE-----")
    assert b"SECRET" not in content
    assert publics(find_identities(tmp_path / "key.txt", lambda _: "words")) == [made]


def test_new_passphrases_are_asked_twice() -> None:
    answers = iter(["words", "words", "words", "swords", "", ""])
    assert next(ask_new(lambda _: next(answers)).tries("x")) == "words"
    with pytest.raises(SealError, match="differ"):
        ask_new(lambda _: next(answers))
    with pytest.raises(SealError, match="empty"):
        ask_new(lambda _: next(answers))


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
        public(key)[:-1]: "no valid recipient",
        secret: "that is a secret key",
        str(tmp_path / "key.txt"): "line 3: that is a secret key",
        str(tmp_path / "empty"): "names no recipient",
        str(tmp_path / "odd"): "line 3: 'friend' is no recipient",
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
    assert stat.S_IMODE(recipients_path().parent.stat().st_mode) == 0o700
    recipients_path().write_text("")
    with pytest.raises(SealError, match="names no recipient"):  # rather than seal for nobody, or not at all
        default_recipients()
