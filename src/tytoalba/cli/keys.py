"""Which keys a command opens sealed files with; here alone the environment and the keyring are asked."""

from __future__ import annotations

import getpass
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

from tytoalba.errors import SealError, TytoWarning
from tytoalba.storage.age import Identity, Key, Passphrase, Prompt
from tytoalba.storage.keys import SECRET, identity_path, parse_identities, read_identities
from tytoalba.texts.printing import shown

VARIABLE = "TYTO_IDENTITY"
"""Environment variable: the path of an identity file, or the text of a key."""
KEYRING = ("tyto", "identity")
"""Service and user name in the keyring of the operating system."""


def keys_at_hand(identity: Path | None = None, prompt: Prompt | None = None) -> KeysAtHand:
    """The keys to open sealed files with, looked for when something sealed is met, and then once."""
    return KeysAtHand(identity, prompt)


class KeysAtHand(Sequence[Key]):
    """The keys of the first of these that has any, and a passphrase that is asked for if it is needed.

    1. identity, an identity file (option --identity); 2. TYTO_IDENTITY, the path of one or the text of a
    key; 3. identity.txt in the user's folder; 4. the keyring of the operating system (package `keyring`,
    service tyto). prompt: how to ask; on a terminal by default, and not at all where there is none.
    """

    def __init__(self, identity: Path | None = None, prompt: Prompt | None = None) -> None:
        self.identity, self.prompt = identity, prompt

    @cached_property
    def _found(self) -> list[Key]:
        prompt = self.prompt or (ask_terminal if sys.stdin is not None and sys.stdin.isatty() else None)
        return [*self._identities(prompt), *([Passphrase(prompt)] if prompt else [])]

    def _identities(self, prompt: Prompt | None) -> list[Identity]:
        named = os.environ.get(VARIABLE, "").strip()
        if self.identity is not None:
            return read_identities(self.identity, prompt)
        if named.startswith(SECRET):
            return parse_identities(named, VARIABLE)
        if named:
            return read_identities(named, prompt)
        if os.path.lexists(identity_path()):
            return read_identities(identity_path(), prompt)
        return _from_keyring()

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Key]: ...
    def __getitem__(self, index: int | slice) -> Key | Sequence[Key]:
        return self._found[index]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def ask_terminal(question: str) -> str:
    """Ask on the terminal, without showing what is typed."""
    try:
        return getpass.getpass(shown(question))
    except EOFError:
        return ""


def ask_new(prompt: Prompt = ask_terminal) -> Passphrase:
    """Ask twice for a new passphrase."""
    phrase = prompt("New passphrase: ")
    if phrase != prompt("The same again: "):
        raise SealError("the two passphrases differ; nothing was sealed")
    return Passphrase(phrase)


def _from_keyring() -> list[Identity]:
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return []
    try:
        text = keyring.get_password(*KEYRING)
    except Exception as error:  # each backend has its own
        if type(error).__name__ != "NoKeyringError":
            warnings.warn(f"the keyring gives no key: {error}", TytoWarning, stacklevel=2)
        return []
    return parse_identities(text, "the keyring's entry tyto") if text else []
