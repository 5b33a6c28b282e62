"""`tyto keygen`, `tyto seal`, `tyto open`, `tyto rewrap`: files that only the holders of a key can read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tytoalba.cli.console import progress_bar, put, say
from tytoalba.cli.keys import ask_new, keys_at_hand
from tytoalba.cli.options import IdentityFile
from tytoalba.errors import SealError, TytoError, WrongKeyError

if TYPE_CHECKING:
    from tytoalba.storage.age import Keys, Passphrase, Recipient
    from tytoalba.storage.sealed import Advance

SUFFIX = ".age"
MEGABYTE = 10**6
LONG = 50 * MEGABYTE
"""Bytes from which a progress bar is worth it."""
MANY = 20
"""Files from which it is, too."""

To = Annotated[
    list[str] | None,
    typer.Option("--to", "-t", help="Public key (age1..., ssh-...) or a file of them; may be repeated."),
]
AskPassphrase = Annotated[bool, typer.Option("--passphrase", "-p", help="Seal with a passphrase instead.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace existing files.")]


def seal(
    files: Annotated[list[Path], typer.Argument(help="Files, or folders: all files in them.")],
    to: To = None,
    passphrase: AskPassphrase = False,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove", help="Delete each plain file after its sealed file was opened and compared."
        ),
    ] = False,
    identity: IdentityFile = None,
    force: Force = False,
) -> None:
    """Seal files with age: FILE becomes FILE.age, which `tyto` reads as it reads FILE. Prints what it wrote.

    Sealed for the default recipients (see `tyto keygen`), or for those of --to and nobody else. With --remove
    the sealed file is opened and compared first, so it needs a key. Deleting does not wipe a disk: where that
    matters, record to an encrypted disk. An existing sealed file is not replaced, unless it holds the same.

    Examples:

      tyto seal talk.wav

      tyto seal out/quick --remove

      tyto seal state.safetensors --to age1... --to colleagues.txt
    """
    from tytoalba.storage.sealed import same_content, seal_file

    plain, again = _all_of(files, sealed=False), set[Path]()
    done = [path for path in plain if remove and _is_gone(path)]
    for path in done:
        say(f"{path} was sealed and removed before")
    plain = [path for path in plain if path not in done]
    for path in plain:
        if not force and os.path.lexists(_sealed_name(path)):
            if not _is_pair(path, _sealed_name(path), keys_at_hand(identity)):
                raise SealError(f"{_sealed_name(path)} is there already; remove it, or replace it: --force")
            again.add(path)  # a run before this one was stopped: it is sealed again, for whom this one says
        if remove and path.is_symlink():
            raise SealError(f"{path} is a link, and removing it leaves the plain file; give the file itself")
    recipients = _recipients(to, passphrase)
    keys = [*_passphrases(recipients), *keys_at_hand(identity)] if remove else []
    with _progress("sealing (MB)", plain) as advance:
        for path in plain:
            target = _sealed_name(path)
            seal_file(path, target, recipients, replace=force or path in again, advance=advance)
            put(target)
            if remove:
                try:
                    same = same_content(path, target, keys)
                except WrongKeyError as error:
                    raise SealError(f"{path} is sealed, but not removed: {error}") from error
                if not same:
                    raise SealError(f"{path} changed while it was sealed and is not removed; seal it again")
                path.unlink()


def unseal(
    files: Annotated[list[Path], typer.Argument(help="Sealed files, or folders: all sealed files in them.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File to write, of one sealed file; - is standard output."),
    ] = None,
    identity: IdentityFile = None,
    force: Force = False,
) -> None:
    """Open sealed files: FILE.age becomes FILE, readable by you alone. Prints what it wrote.

    `tyto` reads sealed recordings as they are; open them for other programs.

    Examples:

      tyto open talk.wav.age

      tyto open talk.flac.age -o - | ffplay -
    """
    from tytoalba.storage.sealed import open_file

    sealed = _all_of(files, sealed=True)
    if output is not None and len(sealed) != 1:
        raise SealError(f"--output takes one file, got {len(sealed)}")
    if output == "-" and sys.stdout.isatty():
        raise SealError("standard output is a terminal: pipe it to a program, or give a file")
    if output == "-":
        open_file(sealed[0], sys.stdout.buffer, keys_at_hand(identity))
        sys.stdout.buffer.flush()
        return
    targets = [_plain_name(path) for path in sealed] if output is None else [Path(output)]
    keys, done = keys_at_hand(identity), set[Path]()
    for path, target in zip(sealed, targets, strict=True):
        if not force and os.path.lexists(target):
            if not _is_pair(target, path, keys):
                raise SealError(f"{target} is there already; remove it, or replace it: --force")
            done.add(target)  # a run before this one was stopped
    with _progress("opening (MB)", sealed) as advance:
        for path, target in zip(sealed, targets, strict=True):
            if target in done:
                target.chmod(0o600)
            else:
                open_file(path, target, keys, replace=force, advance=advance)
            put(target)


def rewrap(
    files: Annotated[list[Path], typer.Argument(help="Sealed files, or folders: all sealed files in them.")],
    to: To = None,
    passphrase: AskPassphrase = False,
    identity: IdentityFile = None,
) -> None:
    """Seal files again for other recipients, such as a new key; nothing plain is written. Prints the files.

    Without --to, for the default recipients: after `tyto keygen --recovery`, older files open with the
    recovery key, too. Copies made before still open with the old keys.

    Examples:

      tyto rewrap recordings

      tyto rewrap state.age --to age1... --identity old-key.txt
    """
    from tytoalba.storage.sealed import rewrap as rewrap_file

    sealed = _all_of(files, sealed=True)
    recipients, keys = _recipients(to, passphrase), keys_at_hand(identity)
    with _progress("sealing again (MB)", sealed) as advance:
        for path in sealed:
            rewrap_file(path, keys, recipients, advance=advance)
            put(path)


def _is_gone(path: Path) -> bool:
    """Whether a plain file is gone and its sealed file is there: a run that was stopped had done both."""
    from tytoalba.storage.age import is_sealed

    sealed = _sealed_name(path)
    return not os.path.lexists(path) and sealed.is_file() and is_sealed(sealed)


def _is_pair(plain: Path, sealed: Path, keys: Keys) -> bool:
    """Whether a sealed file holds exactly a plain one, as far as keys tell; no passphrase is asked for."""
    from tytoalba.storage.age import has_passphrase, head_of, is_sealed
    from tytoalba.storage.sealed import same_content

    if not all(path.is_file() and not path.is_symlink() for path in (plain, sealed)):
        return False
    if not is_sealed(sealed) or has_passphrase(head_of(sealed)):
        return False
    try:
        return same_content(plain, sealed, keys)
    except TytoError:
        return False


def _all_of(paths: Sequence[Path], *, sealed: bool) -> list[Path]:
    """Files, and of folders those that are sealed, or those that are not; no links, nothing hidden."""
    from tytoalba.storage.age import is_sealed

    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        for entry in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in entry.relative_to(path).parts)
            if entry.is_file() and not entry.is_symlink() and not hidden and is_sealed(entry) == sealed:
                found.append(entry)
    if not found:
        raise SealError(f"no {'sealed' if sealed else 'plain'} files in {', '.join(map(str, paths))}")
    return list(dict.fromkeys(found))


def _sealed_name(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _plain_name(path: Path) -> Path:
    if path.suffix.lower() != SUFFIX or not path.stem:
        raise SealError(f"{path} does not end in {SUFFIX}; say where to put it: --output")
    return path.with_name(path.name[: -len(SUFFIX)])


def _recipients(to: list[str] | None, passphrase: bool) -> list[Recipient]:
    from tytoalba.storage.keys import default_recipients, parse_recipients

    if to and passphrase:
        raise SealError("give --to or --passphrase, not both: a passphrase seals alone")
    if passphrase:
        return [ask_new()]
    found: list[Recipient] = [*(parse_recipients(to) if to else default_recipients())]
    if not found:
        raise SealError("nobody to seal for: give --to age1..., or make your own key first: tyto keygen")
    return found


def _passphrases(recipients: Sequence[Recipient]) -> list[Passphrase]:
    from tytoalba.storage.age import Passphrase

    return [one for one in recipients if isinstance(one, Passphrase)]


@contextmanager
def _progress(title: str, files: Sequence[Path]) -> Iterator[Advance | None]:
    """A bar on standard error for many or large files."""
    total = sum(path.stat().st_size for path in files if path.is_file())
    if total < LONG and len(files) < MANY:
        yield None
        return
    with progress_bar(title) as show:
        done = 0

        def advance(n_bytes: int) -> None:
            nonlocal done
            before, done = done, done + n_bytes
            if before // MEGABYTE != done // MEGABYTE:
                show(done // MEGABYTE, total // MEGABYTE)

        yield advance
