"""Features on a cluster: workers read or simulate recordings, and answer with features of some frames."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from tytoalba.data.extraction import Extraction, Span, span_features
from tytoalba.data.feature_file import Piece
from tytoalba.data.features import describe, read_description
from tytoalba.data.recording import Listed
from tytoalba.data.source import described_source
from tytoalba.errors import ClusterError, DataError
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.cluster.given_keys import given
from tytoalba.learning.cluster.mapping import Asked, in_order
from tytoalba.learning.cluster.workers import Workers
from tytoalba.signal.array import MicArray

KIND = "piece"
LARGEST = 2**31
"""Bytes of the features of one piece; recordings that are no plain files are one."""

Stamp = tuple[str, int, int]
"""A file as it was seen: its path, bytes, and when it was changed."""


def on_workers(workers: Workers, extraction: Extraction, spans: Iterator[Span]) -> Iterator[Piece]:
    """The features of spans, worked on by a cluster; `extract_to_file` takes it as `worked`."""
    told = json.dumps(
        {
            "source": extraction.source.described(),
            "array": extraction.array.to_toml(),
            "gcc": describe(extraction.gcc),
        }
    )
    source, taken = extraction.source, deque[Span]()

    def calls() -> Iterator[Asked]:
        for span in spans:
            taken.append(span)
            stamps = _stamps(source.files(span.listed))
            listed = (span.listed.subset, span.listed.file)
            what = json.dumps([span._replace(listed=listed), stamps])  # type: ignore[arg-type]
            yield Asked(told + what, (told, what), source.sealed(span.listed))

    array = extraction.array
    row = extraction.gcc(np.zeros((1, array.n_mics, extraction.gcc.n_samples), np.float32))[0].shape
    for data in in_order(workers, piece, calls()):
        span = taken.popleft()
        _, arrays = read_answer(data, KIND, LARGEST)
        most = None if span.last is None else span.last - span.first
        yield _checked(arrays.get("X"), arrays.get("azimuth"), arrays.get("frame"), row, most)


def _checked(X: object, azimuth: object, frame: object, row: Sequence[int], most: int | None) -> Piece:
    right = all(isinstance(values, np.ndarray) for values in (X, azimuth, frame))
    if right:
        found = Piece(X, azimuth, frame)  # type: ignore[arg-type]
        n = len(found.frame)
        right = (
            found.X.shape == (n, *row) and found.X.dtype == np.float32 and n <= (n if most is None else most)
        )
        right = right and found.azimuth.ndim == 2 and len(found.azimuth) == n
        right = right and found.azimuth.dtype == np.float64 and found.frame.shape == (n,)
        right = right and found.frame.dtype == np.int32 and bool(np.isfinite(found.X).all())
    if not right:
        raise ClusterError("a worker answered with features of another kind: are all of one version?")
    return found


def _stamps(files: Sequence[Path]) -> list[Stamp]:
    found = [(file, file.stat()) for file in files]
    return [(str(file), stat.st_size, stat.st_mtime_ns) for file, stat in found]


@lru_cache(maxsize=2)
def _extraction(told: str) -> Extraction:
    table = json.loads(told)
    array = MicArray.from_toml(table["array"])
    return Extraction(described_source(table["source"]), array, read_description(table["gcc"], array))


def piece(told: str, what: str) -> bytes:
    """On a worker: the features of one span, of files as they were seen when it was asked for."""
    (number, k, (subset, file), first, last, is_last), stamps = json.loads(what)
    extraction, keys = _extraction(told), given()
    listed = Listed(subset, file)
    _require_same(stamps)
    span = Span(number, k, listed, first, last, is_last)
    return answer(KIND, {}, span_features(extraction, keys, span)._asdict())


def _require_same(stamps: list[list[object]]) -> None:
    for path, n_bytes, when in stamps:
        if not Path(str(path)).is_file():
            raise DataError(
                f"{path} is not there for a worker: every machine needs the data under the same path"
            )
        found = Path(str(path)).stat()
        if [found.st_size, found.st_mtime_ns] != [n_bytes, when]:
            raise DataError(
                f"{path} is another file for a worker: is it a copy that is older, or being written?"
            )
