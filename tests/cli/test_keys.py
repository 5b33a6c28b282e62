"""Keys are looked for in a known order, when something is sealed and not before."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyrage")

from tests.helpers.seals import new_key, public, sealed_with_passphrase
from tytoalba.cli.keys import ask_new, ask_terminal, keys_at_hand
from tytoalba.errors import SealError, TytoWarning, WrongKeyError
from tytoalba.storage.age import Identity, open_bytes
from tytoalba.storage.keys import identity_path, make_identity, make_key_folder
from tytoalba.storage.sealed import read_secret, write_secret

pytestmark = pytest.mark.usefixtures("home")


class NoKeyringError(RuntimeError):
    """As keyring calls it."""


def publics(keys: Sequence[Any]) -> list[str | None]:
    return [key.public for key in keys if isinstance(key, Identity)]


def use_keyring(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    def get_password(service: str, user: str) -> Any:
        assert (service, user) == ("tyto", "identity")
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=get_password))


def test_the_first_source_that_has_keys_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*keys_at_hand()] == []
    named = {name: new_key(tmp_path, name) for name in ("keyring", "variable", "file")}
    use_keyring(monkeypatch, f"{named['keyring'].secret}\n")
    assert publics(keys_at_hand()) == [public(named["keyring"])]
    make_key_folder()
    usual = make_identity(identity_path())
    assert publics(keys_at_hand()) == [usual]
    monkeypatch.setenv("TYTO_IDENTITY", str(tmp_path / "variable"))
    assert publics(keys_at_hand()) == [public(named["variable"])]
    monkeypatch.setenv("TYTO_IDENTITY", f" {named['variable'].secret}\n")
    assert publics(keys_at_hand()) == [public(named["variable"])]
    assert publics(keys_at_hand(tmp_path / "file")) == [public(named["file"])]
    monkeypatch.setenv("TYTO_IDENTITY", "  ")  # as if it were not set
    assert publics(keys_at_hand()) == [usual]


def test_a_named_source_that_fails_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    use_keyring(monkeypatch, "AGE-SECRET-KEY-1")
    with pytest.raises(SealError, match="the keyring's entry tyto, line 1 is not a secret key"):
        len(keys_at_hand())
    make_key_folder()
    identity_path().symlink_to("nowhere")
    with pytest.raises(SealError, match="no identity file"):
        len(keys_at_hand())
    monkeypatch.setenv("TYTO_IDENTITY", "/no/such/file")
    with pytest.raises(SealError, match="no identity file '/no/such/file'"):
        len(keys_at_hand())
    monkeypatch.setenv("TYTO_IDENTITY", "AGE-SECRET-KEY-1QQ")
    with pytest.raises(SealError, match="TYTO_IDENTITY, line 1 is not a secret key"):
        len(keys_at_hand())


def test_a_keyring_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    use_keyring(monkeypatch, None)
    assert [*keys_at_hand()] == []
    use_keyring(monkeypatch, NoKeyringError("no backend"))
    assert [*keys_at_hand()] == []
    use_keyring(monkeypatch, RuntimeError("it is locked"))
    with pytest.warns(TytoWarning, match="it is locked"):
        assert [*keys_at_hand()] == []


def test_a_terminal_is_asked_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = sealed_with_passphrase(b"hello", "words")
    with pytest.raises(WrongKeyError, match="no terminal"):
        open_bytes(sealed, keys_at_hand())
    questions = []

    def getpass(question: str) -> str:
        questions.append(question)
        return "words"

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", getpass)
    keys = keys_at_hand()
    for _ in range(3):  # many files, one question
        assert open_bytes(sealed, keys, "x.age") == b"hello"
    assert questions == ["Passphrase of x.age: "]
    monkeypatch.setattr(sys, "stdin", None)  # as for programs without a window
    assert [*keys_at_hand()] == []


def test_the_end_of_input_is_no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    def getpass(question: str) -> str:
        raise EOFError(question)

    monkeypatch.setattr("getpass.getpass", getpass)
    with pytest.raises(SealError, match="no passphrase given"):
        open_bytes(sealed_with_passphrase(b"", "words"), keys_at_hand(prompt=ask_terminal))


def test_new_passphrases_are_asked_twice() -> None:
    answers = iter(["words", "words", "words", "swords", "", ""])
    assert next(ask_new(lambda _: next(answers)).tries("x")) == "words"
    with pytest.raises(SealError, match="differ"):
        ask_new(lambda _: next(answers))
    with pytest.raises(SealError, match="empty"):
        ask_new(lambda _: next(answers))


def test_keys_are_not_looked_for_before_something_is_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key(tmp_path)
    monkeypatch.setenv("TYTO_IDENTITY", str(tmp_path / "none.txt"))
    (tmp_path / "plain").write_bytes(b"plain")
    write_secret(tmp_path / "sealed", b"secret", [public(key)])
    keys = keys_at_hand()
    assert read_secret(tmp_path / "plain", keys) == b"plain"
    with pytest.raises(SealError, match="no identity file"):
        read_secret(tmp_path / "sealed", keys)
    monkeypatch.setenv("TYTO_IDENTITY", str(tmp_path / "key.txt"))
    assert read_secret(tmp_path / "sealed", keys) == b"secret"
    monkeypatch.delenv("TYTO_IDENTITY")
    again = pickle.loads(pickle.dumps(keys))
    assert read_secret(tmp_path / "sealed", again) == b"secret"
    assert keys[:1] == [keys[0]]
    assert "TYTO_IDENTITY" not in os.environ
