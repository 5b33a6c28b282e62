"""Jobs of a benchmark on a cluster: a method, a variant and a seed are one task, the data a file for all.

Workers read the data from a file that all machines see, and check its digest once. Rows are the same as on
one machine of the same kind, but for the seconds that learning took.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tytoalba import __version__
from tytoalba.bench.config import Config, Job
from tytoalba.bench.job import run_job
from tytoalba.errors import ClusterError, DataError
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.cluster.mapping import Asked, in_order
from tytoalba.learning.cluster.workers import Workers

KIND = "rows"
LARGEST = 2**26
"""Bytes of the rows of a job."""


def rows_on(
    workers: Workers, config: Config, jobs: Sequence[Job], data: Path, device: str
) -> Iterator[list[dict[str, Any]]]:
    """The rows of each job, in order, worked on by a cluster. data: a file that every machine sees there."""
    told = json.dumps(
        {
            "config": vars(config),
            "data": str(data.resolve()),
            "digest": _digest(str(data.resolve())),
            "device": device,
            "program": __version__,
        }
    )
    calls = (Asked(told + repr(job.key), (told, config.jobs().index(job))) for job in jobs)
    for job, data_of in zip(jobs, in_order(workers, rows, calls), strict=True):
        header, _ = read_answer(data_of, KIND, LARGEST)
        found = header.get("rows")
        if not isinstance(found, list) or not all(_is_of(row, job) for row in found):
            raise ClusterError("a worker answered with rows of another job: are all of one version?")
        yield found


def _is_of(row: object, job: Job) -> bool:
    return isinstance(row, dict) and all(
        row.get(key) == getattr(job, key) for key in ("method", "variant", "seed")
    )


def rows(told: str, number: int) -> bytes:
    """On a worker: the rows of one job."""
    table = json.loads(told)
    if table["program"] != __version__:
        raise ClusterError(
            f"this benchmark is of tytoalba {table['program']}, and a worker has {__version__}: install one"
        )
    if not Path(table["data"]).is_file():
        raise DataError(
            f"{table['data']} is not there for a worker: give --cache FILE on a disk that all see"
        )
    if _digest(table["data"]) != table["digest"]:
        raise DataError(
            f"{table['data']} is another file for a worker: give --cache FILE on a disk that all see"
        )
    config = _config(table["config"])
    found = run_job(config.jobs()[number], config, Path(table["data"]), table["device"])
    return answer(KIND, {"rows": found}, {})


def _config(table: dict[str, Any]) -> Config:
    """A benchmark as JSON has it: lists are tuples again, but those in options."""
    frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Config(**frozen | {"bands": tuple(map(tuple, table["bands"]))})


@lru_cache(maxsize=4)
def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
