"""Real Dask clusters over TLS, as processes of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
from distributed.security import Security

from tests.helpers.certificates import Certificates
from tytoalba.learning.cluster.connection import Address


def security(files: Certificates) -> Any:
    """Scheduler, workers and clients that show one certificate."""
    sides = ("scheduler", "worker", "client")
    shown = {f"tls_{side}_cert": str(files.certificate) for side in sides}
    shown |= {f"tls_{side}_key": str(files.key) for side in sides}
    return Security(require_encryption=True, tls_ca_file=str(files.authority), **shown)


@contextmanager
def local_cluster(files: Certificates, n_workers: int, folder: Path) -> Iterator[Any]:
    """A LocalCluster whose workers have one thread each, and nobody's keys."""
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=security(files),
        dashboard_address=None,
        silence_logs=50,
        local_directory=str(folder),
        preload=["tytoalba.cli.worker"],
        env=nobody(folder),
    ) as cluster:
        yield cluster


def nobody(folder: Path) -> dict[str, str]:
    """An environment without keys."""
    return {"XDG_DATA_HOME": str(folder / "nobody"), "TYTO_IDENTITY": "", "OMP_NUM_THREADS": "1"}


def address(place: str, files: Certificates) -> Address:
    """Where a cluster is, for who has these certificates."""
    return Address(place, files.authority, files.certificate, files.key)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Processes:
    """A scheduler and workers as the commands of Dask start them, to be killed."""

    def __init__(self, files: Certificates, folder: Path) -> None:
        self.place, self.running = (f"tls://127.0.0.1:{free_port()}", list[subprocess.Popen[bytes]]())
        self._folder = folder
        self._tls = [
            "--tls-ca-file",
            files.authority,
            "--tls-cert",
            files.certificate,
            "--tls-key",
            files.key,
        ]

    def start_scheduler(self) -> None:
        port = self.place.rpartition(":")[2]
        self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--protocol", "tls", "--no-dashboard")

    def start_worker(self, environment: Mapping[str, str]) -> None:
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "tls://127.0.0.1"]
        options += ["--local-directory", str(self._folder), "--preload", "tytoalba.cli.worker"]
        self._start("worker", self.place, *options, **environment)

    def kill(self) -> None:
        """Kill all of them with -9."""
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait(30)
        self.running.clear()

    def _start(self, what: str, *options: str, **environment: str) -> None:
        command = [sys.executable, "-m", "dask", what, *options, *map(str, self._tls)]
        output = (self._folder / f"{what}.log").open("ab")
        with output:
            process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
            )
        self.running.append(process)
