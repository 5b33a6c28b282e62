"""`tyto restore`: accept an older state, or one that lost its ledger, on purpose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tytoalba.cli.console import print_json, say
from tytoalba.cli.keys import keys_at_hand
from tytoalba.cli.options import AsJson, IdentityFile
from tytoalba.errors import TytoError


def restore(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A state or model that is refused.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    identity: IdentityFile = None,
    as_json: AsJson = False,
) -> None:
    """Accept a state that was put back, or a file that lost its ledger or signature, as it is now.

    A state from before something was forgotten is refused, and so is one whose ledger was put back with it or
    is missing. If you want it all the same, from a backup for instance, this command explains what it means,
    asks, and adds a line to the ledger, where what was undone stays visible.

    Example:

      tyto restore kitchen.tyto
    """
    from tytoalba.localizer.store import restore as accepted

    def agrees(words: str) -> bool:
        say(words)
        if yes:
            return True
        if not sys.stdin.isatty():
            raise TytoError("nobody is there to ask: --yes accepts it; nothing was changed")
        return typer.confirm("Accept it?", err=True)

    done = accepted(state, agrees, keys_at_hand(identity))
    if as_json:
        print_json(done)
    else:
        say(f"{state}: accepted" + (f", step {done['sequence']} of its ledger" if "sequence" in done else ""))
