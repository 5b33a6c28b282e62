"""Frames and a small prior for the tests of how priors are made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.priors import N_KEPT, trained, training_frames
from tytoalba.data.features import FeatureSet
from tytoalba.learning.prior import train
from tytoalba.learning.prior.prior import Prior


@pytest.fixture(scope="module")
def few_kept() -> Iterator[None]:
    """Priors keep few frames."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "N_KEPT", N_KEPT)
        yield


@pytest.fixture(scope="module")
def frames() -> FeatureSet:
    return training_frames()


@pytest.fixture(scope="module")
def prior(few_kept: None, frames: FeatureSet) -> Prior:  # noqa: ARG001 - it is kept small
    return trained(frames)
