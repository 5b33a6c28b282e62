"""`tyto keygen`: keys to seal with, made whole or not at all, also when an earlier run was stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.console import note, print_json, put, say
from tytoalba.cli.keys import ask_new, keys_at_hand
from tytoalba.cli.options import AsJson
from tytoalba.errors import SealError


def keygen(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: in your folder of keys.")
    ] = None,
    recovery: Annotated[
        Path | None,
        typer.Option(help="File for a second key that opens everything too; keep it elsewhere."),
    ] = None,
    passphrase: Annotated[
        bool,
        typer.Option(
            "--passphrase", "-p", help="Seal the key file itself with a passphrase (not the recovery key)."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Make a secret key and print its public key. Everything is then sealed for it unless you say otherwise.

    A lost key cannot be replaced: make a recovery key and keep it away from this machine. With -o the key is
    only written, not used by default. An existing key is never replaced.

    Examples:

      tyto keygen --recovery /media/usb/recovery.txt

      tyto keygen -o analyst.txt --passphrase
    """
    from tytoalba.storage.keys import add_default_recipients, identity_path, make_key_folder

    path = output or identity_path()
    if output is None:
        make_key_folder()
    there = {file: _is_key(file) for file in (path, recovery) if file is not None}
    if recovery is not None and there[recovery] and not there[path]:
        raise SealError(f"{recovery} is there already and stays; a lost key cannot be replaced")
    usual = [file for file in (path, recovery) if file is not None and file != output]
    if all(there.values()) and not _lacks(usual, ask=recovery is not None):
        raise SealError(f"{recovery or path} is there already and stays; a lost key cannot be replaced")
    publics = {}
    for file, is_there in there.items():
        if is_there:
            say(f"{file} stays")
            publics[file] = _publics(file) if file in usual else []
        else:
            publics[file] = [_make_key(file, passphrase and file == path)]
    if usual:
        add_default_recipients([public for file in usual for public in publics[file]])
    if recovery is not None:
        say(f"keep {recovery} away from this machine")
    shown = {file: public for file, found in publics.items() if found for public in found[:1]}
    new = {file: public for file, public in shown.items() if not there[file]} or shown
    if json:
        print_json([{"identity": str(file), "public_key": public} for file, public in new.items()])
    else:
        for file, public in new.items():
            put(f"{'recovery' if file == recovery else 'public'} key: {public}")


def _is_key(path: Path) -> bool:
    """Whether something is there that is not to be replaced; what holds no key can be."""
    from tytoalba.storage.keys import holds_no_key

    return os.path.lexists(path) and not holds_no_key(path)


def _make_key(path: Path, passphrase: bool) -> str:
    from tytoalba.storage.keys import holds_no_key, make_identity

    if holds_no_key(path):
        note(f"{path} held no key (a run before this one did not finish) and is replaced")
    return make_identity(path, ask_new() if passphrase else None)


def _publics(path: Path) -> list[str]:
    """The public keys of an identity file."""
    from tytoalba.storage.age import Identity

    held = [key.public for key in keys_at_hand(path) if isinstance(key, Identity)]
    return [public for public in held if public is not None]


def _lacks(files: Sequence[Path], ask: bool) -> bool:
    """Whether recipients.txt lacks a key of these files: whoever wrote them was killed before that.

    ask: whether to ask for the passphrase of a sealed one where others are listed already.
    """
    from tytoalba.storage.age import is_sealed
    from tytoalba.storage.keys import listed_recipients

    known = listed_recipients()
    asked = [file for file in files if ask or not known or not is_sealed(file)]
    return any(public not in known for file in asked for public in _publics(file))
