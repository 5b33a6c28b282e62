"""What a Dask worker imports at its start: `dask worker tls://... --preload tytoalba.cli.worker`.

It gives the worker the keys of its own machine, if there are any: those of TYTO_IDENTITY, of the user's
folder, or of the keyring, as commands find them. Recordings that are sealed go to such workers alone.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tytoalba.cli.keys import keys_at_hand
from tytoalba.errors import SealError
from tytoalba.learning.cluster.given_keys import RESOURCE, give
from tytoalba.storage.age import Passphrase


def dask_setup(worker: Any) -> None:
    """Dask calls this in every worker before it takes work."""
    keys = [key for key in keys_at_hand(prompt=_refuse) if not isinstance(key, Passphrase)]
    give(keys or None)
    if keys:
        for resources in (worker.state.total_resources, worker.state.available_resources):
            resources[RESOURCE] = worker.state.nthreads


def _refuse(_: str) -> NoReturn:
    raise SealError("a worker cannot ask for a passphrase: give it an identity file without one")
