"""A Dask cluster to work on: one that is there, over mutual TLS, or one of this machine's own processes."""

from __future__ import annotations

import ipaddress
import logging
import queue
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tytoalba.errors import ClusterError, ClusterLostError, MissingExtraError
from tytoalba.learning.cluster.answers import perform
from tytoalba.learning.cluster.given_keys import RESOURCE
from tytoalba.learning.cluster.workers import Task
from tytoalba.storage.parallel import available_cores

LOCAL = "local"
PATIENCE = 30.0
"""Seconds to wait for a scheduler that does not answer."""
LONGEST_ANSWER = 600
"""Seconds that an answer may take to arrive."""
WAIT_FOR_KEYS = 15.0
"""Seconds to wait for a worker with a key, while there are others."""
LOOK = 1.0
"""Seconds between two looks whether the cluster is still there."""


@dataclass(frozen=True)
class Address:
    """Where a cluster is, and how this machine says who it is.

    address: tls://HOST:PORT, tcp://HOST:PORT, or "local". ca, cert, key: files in PEM; what is missing comes
    from Dask's own configuration. insecure: tcp:// also to other machines. processes: of a local cluster; 0:
    one per core. preload: a module that workers of a local cluster import at their start.
    """

    address: str
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
    processes: int = 0
    preload: str = ""
    environment: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        files = {"--tls-ca": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        if self.address == LOCAL:
            if any(files.values()) or self.insecure:
                raise ClusterError(
                    "a local cluster makes its own certificates: leave out --tls-... and --insecure"
                )
            return
        parts = urlsplit(self.address)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme not in ("tls", "tcp") or not host or not port or parts.path or parts.username:
            raise ClusterError(
                f"a cluster is tls://HOST:PORT, tcp://HOST:PORT or local, got {self.address!r}; the "
                "scheduler prints its address when it starts"
            )
        for option, file in files.items():
            if file is not None and not file.is_file():
                raise ClusterError(f"{option}: no such file: {file}")
        if parts.scheme == "tcp" and not self.insecure and not _is_loopback(host):
            raise ClusterError(
                f"{self.address} is not encrypted, and everybody on the way could read the sums and run code "
                "on your machines: start scheduler and workers with certificates and say tls://, or "
                "--insecure if the network is yours alone"
            )
        if parts.scheme == "tcp" and any(files.values()):
            raise ClusterError("certificates are for tls://; tcp:// uses none")


@contextmanager
def connected(where: Address) -> Iterator[DaskWorkers]:
    """Connect to a cluster, or start a local one, until the block ends; what is in work is then dropped."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("clusters", "cluster") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said in our own words
    with ExitStack() as stack:
        target: Any = where.address
        security = _security(where)
        if where.address == LOCAL:
            target = stack.enter_context(_local(where, security))
        try:
            client = distributed.Client(
                target, timeout=PATIENCE, security=security, set_as_default=False, name="tyto"
            )
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise ClusterLostError(
                f"no scheduler answers at {where.address} ({str(error)[:300]}): does it run, is the address "
                "right, and are the certificates of one authority?"
            ) from error
        workers = DaskWorkers(client)
        stack.callback(_closed, client)  # which drops what was handed in
        yield workers


@contextmanager
def _local(where: Address, security: Any) -> Iterator[Any]:
    """Processes of this machine, with certificates that exist in their memory alone."""
    import dask
    import distributed

    # no pages about the work, which Dask serves to everybody on this machine, also without a dashboard
    pages: dict[str, list[str]] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    own = {"DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]", **(where.environment or {})}
    with warnings.catch_warnings(), dask.config.set(pages):
        warnings.simplefilter("ignore")  # of ports that are in use, and of this machine's network
        cluster = distributed.LocalCluster(
            n_workers=where.processes or available_cores(),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
            preload=[where.preload] if where.preload else [],
            env=own,
        )
    try:
        yield cluster
    finally:
        with suppress(Exception):
            cluster.close(timeout=10)


def _security(where: Address) -> Any:
    from distributed.security import Security

    if where.address == LOCAL:
        try:
            return Security.temporary()
        except ImportError as error:
            raise MissingExtraError("local clusters", "cluster") from error
    if where.address.startswith("tcp:"):
        return Security(require_encryption=False)
    given = {"tls_ca_file": where.ca, "tls_client_cert": where.cert, "tls_client_key": where.key}
    files = {name: str(file) for name, file in given.items() if file is not None}
    security = Security(require_encryption=True, **files)
    if missing := [name for name in given if getattr(security, name) is None]:
        option = {"tls_ca_file": "--tls-ca", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}
        raise ClusterError(
            f"tls:// needs {' and '.join(option[name] for name in missing)} (files in PEM), or Dask's own "
            "configuration of them (distributed.comm.tls)"
        )
    try:
        security.get_connection_args("client")
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"these certificates cannot be used: {error}; are they PEM, and of one pair?"
        ) from error
    return security


def _closed(client: Any) -> None:
    with suppress(Exception):
        client.close(timeout=5)


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its number, and by all numbers that its name has."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


class DaskWorkers:
    """The workers of a Dask cluster (`workers.Workers`)."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._finished: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._known: tuple[float, dict[str, Any]] = (-LOOK, {})

    def submit(
        self,
        function: Callable[..., bytes],
        *arguments: Any,
        name: str,
        sealed: bool = False,
        urgent: int = 0,
    ) -> Task:
        """Hand in a task: the name of our function, and plain arguments."""
        if sealed:
            self._require_keys()
        needs = {RESOURCE: 1} if sealed else None
        try:
            future = self.client.submit(
                perform, function, *arguments, key=name, priority=urgent, resources=needs
            )
            future.add_done_callback(self._finished.put)
        except Exception as error:
            raise _lost(error) from error
        task: Task = future
        return task

    def finished(self) -> Task:
        """Wait for a task that is finished."""
        while True:
            with suppress(queue.Empty):
                return self._finished.get(timeout=LOOK)
            if self.client.status not in ("running", "connecting"):
                raise _lost("the scheduler does not answer")

    def answer(self, task: Any) -> object:
        """What a task gave."""
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        try:
            return task.result(timeout=LONGEST_ANSWER)
        except KilledWorker as error:
            raise ClusterError(
                "workers died again and again over the same work: do they have enough memory? "
                f"({str(error)[:200]})"
            ) from error
        except (FutureCancelledError, OSError, TimeoutError) as error:
            raise _lost(error) from error
        except Exception as error:  # of Dask's own: ours are answers
            raise ClusterError(
                f"a worker could not begin its work ({type(error).__name__}: {str(error)[:300]}): has it "
                "tytoalba with the extra 'cluster', in the same version as here?"
            ) from error

    @property
    def n_threads(self) -> int:
        """Threads of all workers that are there now."""
        return max(1, sum(int(worker["nthreads"]) for worker in self._workers().values()))

    def any_there(self) -> bool:
        """Whether there are workers already."""
        return bool(self._workers())

    def _workers(self) -> dict[str, Any]:
        """All workers, as they were a moment ago."""
        when, found = self._known
        if time.monotonic() - when > LOOK:
            try:
                before, found = found, dict(self.client.scheduler_info(n_workers=-1)["workers"])
                if found.keys() - before.keys():
                    self._require_same_version()
            except ClusterError:
                raise
            except Exception as error:
                raise _lost(error) from error
            self._known = time.monotonic(), found
        return found

    def _require_same_version(self) -> None:
        """Refuse a scheduler or workers with another version of this program, or none: they would hang."""
        told = self.client.get_versions(packages=["tytoalba"])
        here = told["client"]["packages"].get("tytoalba")
        for who, one in [("the scheduler", told["scheduler"]), *told["workers"].items()]:
            version = one["packages"].get("tytoalba") if one else here
            if version != here:
                has = f"has tytoalba {version}" if version else "has no tytoalba"
                raise ClusterError(f"{who} {has}, and here is {here}: install one version on every machine")

    def _require_keys(self) -> None:
        """Wait a while for a worker that was given a key, after the first worker is there."""
        deadline = None
        while True:
            found = self._workers().values()
            if any(RESOURCE in worker.get("resources", {}) for worker in found):
                return
            now = time.monotonic()
            deadline = now + WAIT_FOR_KEYS if found and deadline is None else deadline
            if deadline is not None and now > deadline:
                raise ClusterError(
                    f"there are sealed recordings, and none of the {len(found)} workers was given a key: "
                    "start workers with --preload tytoalba.cli.worker and TYTO_IDENTITY"
                )
            time.sleep(LOOK / 4)


def _lost(why: object) -> ClusterLostError:
    return ClusterLostError(
        f"the cluster is gone ({str(why)[:300]}); what was done is remembered: the same command goes on"
    )
