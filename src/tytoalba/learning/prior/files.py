"""Priors in files and inside other files, of either kind: of one array, or of every array told of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tytoalba.errors import PriorError
from tytoalba.learning.prior.prior import Prior, read_prior_file
from tytoalba.learning.prior.shared.prior import SHARED, SharedPrior
from tytoalba.storage.tensors import read_tensors


def load_prior(path: str | Path) -> Prior:
    """Read a prior; a file that is damaged, foreign or of another version is refused."""
    header, arrays = read_prior_file(path, read_tensors)
    return prior_of_parts(header, arrays, str(path))


def prior_of_parts(header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: str) -> Prior:
    """What `Prior.parts` gave; path: how errors call it."""
    if not isinstance(header, dict):
        raise PriorError(f"{path} is damaged or no prior")
    kind = SharedPrior if header.get("network") == SHARED else Prior
    return kind.from_parts(header, arrays, path)
