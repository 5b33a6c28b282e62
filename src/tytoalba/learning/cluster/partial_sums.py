"""Sums over some shards, with the names of these: added in any order, each shard counts once.

Sums are whole numbers, of matrices only the upper triangle, and travel in four bytes where these suffice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import ClusterError
from tytoalba.learning.cluster.answers import answer, read_answer
from tytoalba.learning.triangles import narrow
from tytoalba.storage.tensors import Arrays

KIND = "sums"
NAME = 32
"""Bytes of the name of a shard."""
LESSON = 16
"""Bytes of the digest of a lesson."""
SLACK = 2**16
"""Bytes of an answer beside its arrays."""

Sums = dict[str, NDArray[np.int64]]
Shapes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class PartialSums:
    """What shards add up to.

    recipe: digest of what they were computed with. shards: their names. lessons: (name, frames) of each
    lesson in them, in any order; one that is there twice was taught twice. sums: by name, int64.
    """

    recipe: str
    shards: frozenset[bytes]
    lessons: tuple[tuple[bytes, int], ...]
    sums: Sums

    def plus(self, other: PartialSums) -> PartialSums:
        """Both together; shards that are in both count once. The sums of this one are added to in place."""
        if self.recipe != other.recipe:
            raise ClusterError("sums of different recipes do not add up: are all workers of one version?")
        if other.shards <= self.shards:
            return self
        if self.shards <= other.shards:
            return other
        if self.shards & other.shards:
            raise ClusterError("sums share some of their shards, and nobody can take these out again")
        for name, values in self.sums.items():
            values += other.sums[name]
        return PartialSums(self.recipe, self.shards | other.shards, self.lessons + other.lessons, self.sums)

    def to_bytes(self) -> bytes:
        """To be sent: the same for the same content."""
        lessons = sorted(self.lessons)
        arrays: Arrays = {f"sum.{name}": narrow(values) for name, values in self.sums.items()}
        arrays["shards"] = _rows(sorted(self.shards), NAME)
        arrays["lessons"] = _rows([name for name, _ in lessons], LESSON)
        arrays["frames"] = np.array([n for _, n in lessons], np.int64)
        return answer(KIND, {"recipe": self.recipe}, arrays)

    @classmethod
    def from_bytes(cls, data: object, wanted: Shapes, recipe: str, most: int) -> PartialSums:
        """What was sent; anything else than sums of these shapes, for this recipe, is refused.

        most: shards that it may have.
        """
        n_values = sum(int(np.prod(shape)) for shape in wanted.values())
        header, arrays = read_answer(data, KIND, 8 * n_values + (NAME + LESSON + 8) * most + SLACK)
        found = {key.removeprefix("sum."): values for key, values in arrays.items() if key.startswith("sum.")}
        names = [arrays.get(key, np.empty(0)) for key in ("shards", "lessons", "frames")]
        shards, lessons, frames = names
        right = header.get("recipe") == recipe and found.keys() == wanted.keys()
        right = right and len(arrays) == len(found) + len(names)
        right = right and all(
            values.shape == tuple(wanted[name]) and values.dtype in (np.int32, np.int64)
            for name, values in found.items()
        )
        right = right and _are_rows(shards, NAME) and _are_rows(lessons, LESSON)
        right = right and frames.shape == (len(lessons),) and frames.dtype == np.int64
        if not right or (frames < 1).any() or len(_names(shards)) != len(shards):
            raise ClusterError("a worker answered with sums of another kind: are all of one version?")
        told = tuple(zip((row.tobytes() for row in lessons), frames.tolist(), strict=True))
        sums = {name: values.astype(np.int64) for name, values in found.items()}
        return cls(recipe, _names(shards), told, sums)


def _rows(names: Sequence[bytes], width: int) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(names), np.uint8).reshape(-1, width)


def _are_rows(values: NDArray[np.generic], width: int) -> bool:
    return values.dtype == np.uint8 and values.ndim == 2 and values.shape[1] == width


def _names(rows: NDArray[np.uint8]) -> frozenset[bytes]:
    return frozenset(row.tobytes() for row in rows)
