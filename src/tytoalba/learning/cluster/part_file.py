"""What a cluster has done so far, in a file: who is stopped goes on from there.

It holds sums, and is as secret as what they are made for: sealed for the same recipients, or for its owner
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tytoalba.errors import ClusterError, FileError
from tytoalba.learning.cluster.partial_sums import PartialSums, Shapes
from tytoalba.storage.age import Keys, Recipient
from tytoalba.storage.sealed import read_secret, write_secret


@dataclass(frozen=True)
class PartFile:
    """Where partial sums are remembered. recipients: of a sealed one; None: it is plain."""

    path: Path
    keys: Keys = None
    recipients: Sequence[Recipient] | None = None

    def read(self, shapes: Shapes, recipe: str, most: int, names: frozenset[bytes]) -> PartialSums | None:
        """What was done, if it is part of what is to be done; None: nothing yet.

        names: of all shards that are wanted.
        """
        if not self.path.is_file():
            return None
        try:
            found = PartialSums.from_bytes(read_secret(self.path, self.keys), shapes, recipe, most)
        except (ClusterError, FileError) as error:
            raise ClusterError(f"{self._foreign()} ({error})") from error
        if not found.shards <= names:
            raise ClusterError(self._foreign())
        return found

    def write(self, done: PartialSums) -> None:
        """Remember what was done, whole or not at all."""
        write_secret(self.path, done.to_bytes(), self.recipients)

    def remove(self) -> None:
        """Forget it."""
        self.path.unlink(missing_ok=True)

    def _foreign(self) -> str:
        return (
            f"{self.path} was begun with other recordings, or for another state: run that command again to "
            f"finish it, or remove {self.path.name} to begin anew"
        )
