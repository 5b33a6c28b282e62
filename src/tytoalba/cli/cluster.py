"""How commands work on a cluster: where it is, who may, and what happens when it is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tytoalba.cli.console import note, say
from tytoalba.cli.keys import VARIABLE
from tytoalba.errors import ClusterError, ClusterLostError

if TYPE_CHECKING:
    from tytoalba.learning.cluster.connection import Address, DaskWorkers

Result = TypeVar("Result")

PRELOAD = "tytoalba.cli.worker"
PAUSE = 5.0
"""Seconds before the next try to reach a cluster that was lost."""
TRIES = 60

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Work on a Dask cluster: tls://HOST:PORT, or local. See the docs, Many machines."
    ),
]
TlsCa = Annotated[
    Path | None, typer.Option("--tls-ca", help="Authority of the cluster's certificates (PEM).")
]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help="Your certificate for the cluster (PEM).")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="The key of that certificate (PEM).")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow tcp:// to other machines: nothing is encrypted.")
]


def cluster_address(
    cluster: str | None,
    ca: Path | None,
    cert: Path | None,
    key: Path | None,
    insecure: bool,
    identity: Path | None = None,
    processes: int = 0,
) -> Address | None:
    """Where to work, as the options say; None: on this machine alone.

    identity: a key for the workers of a local cluster; others have their own, or none.
    """
    from tytoalba.learning.cluster.connection import Address

    if cluster is None:
        if insecure or any((ca, cert, key)):
            raise ClusterError("--tls-... and --insecure are for --cluster ADDRESS: say which cluster")
        return None
    own = {} if identity is None else {VARIABLE: str(identity.resolve())}
    paths = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return Address(cluster, ca, cert, key, insecure, processes, PRELOAD, {**paths, **own})


def on_cluster(where: Address, do: Callable[[DaskWorkers], Result]) -> Result:
    """Do something on a cluster. One that is lost on the way is tried again for minutes.

    do: goes on where it was, if it is called again.
    """
    from tytoalba.learning.cluster.connection import LOCAL, connected

    tries, was_there = 0, False
    while True:
        try:
            with connected(where) as workers:
                was_there, tries = True, 0
                if not workers.any_there():
                    say(f"waiting for workers of {where.address}")
                return do(workers)
        except ClusterLostError as error:
            tries += 1
            if not was_there or where.address == LOCAL or tries >= TRIES:
                raise
            note(f"{error}. Trying again in {PAUSE:g} s")
            time.sleep(PAUSE)
