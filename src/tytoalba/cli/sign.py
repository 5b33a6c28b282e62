"""`tyto sign` and `tyto trust`: who made a file, and whose files are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.console import note, out, print_json, say
from tytoalba.cli.keys import keys_at_hand
from tytoalba.cli.options import AsJson, IdentityFile
from tytoalba.errors import TytoError


def sign(
    files: Annotated[list[Path], typer.Argument(help="States or models to send to others.")],
    identity: IdentityFile = None,
) -> None:
    """Sign files for others: FILE.sig says what FILE is and that it came from you.

    Others need your fingerprint, which is printed: read it out, and they run `tyto trust FINGERPRINT`.

    Example:

      tyto sign bedroom.tyto
    """
    from tytoalba.localizer.signed import sign as signed
    from tytoalba.storage.sealed import read_secret
    from tytoalba.storage.signatures import find_signing_key
    from tytoalba.storage.tensors import kind_of

    keys = keys_at_hand(identity)
    kinds = {file: kind_of(read_secret(file, keys)) for file in files}
    for file, kind in kinds.items():
        if kind not in ("state", "model"):
            raise TytoError(f"{file} is neither a state nor a model: nothing was signed")
    key = find_signing_key()
    for file, kind in kinds.items():
        say(f"signed: {signed(file, kind)}")
    out.print(key.fingerprint)


def trust(
    fingerprint: Annotated[
        str | None, typer.Argument(help="tyto-ed25519:..., as `tyto sign` printed it there.")
    ] = None,
    name: Annotated[str, typer.Option(help="Whose key it is.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove it from the list.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose whose files are accepted, or list them. Nobody is trusted unasked, not even the first time.

    Example:

      tyto trust
    """
    from tytoalba.storage.signatures import TrustStore

    store = TrustStore()
    if remove:
        if fingerprint is None:
            raise TytoError("say whom: `tyto trust FINGERPRINT --remove`")
        store.remove(fingerprint)
    elif fingerprint is not None:
        store.add(fingerprint, name)
    known = store.list()
    if as_json:
        print_json(known)
        return
    for key, comment in known.items():
        out.print(f"{key}  {comment}", soft_wrap=True)
    if not known:
        note("nobody is trusted yet; your own key is, once something was signed")
