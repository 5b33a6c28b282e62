"""The keys that this worker was given when it was started, to open sealed recordings with; else none.

They are never sent: a worker has them from its own disk or environment (`tytoalba.cli.worker`).
"""

from __future__ import annotations

from tytoalba.storage.age import Keys

RESOURCE = "tyto-key"
"""What dask calls it that a worker has keys."""

_given: list[Keys] = [None]


def give(keys: Keys) -> None:
    """Keys for everything that this process works on from now on."""
    _given[0] = keys


def given() -> Keys:
    """The keys of this process."""
    return _given[0]
