"""What a prior is made from: scenes of a seed, as frames and as stems. The command makes whole priors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.helpers.priors import (
    FAMILIES,
    RESPEAKER,
    VOICES,
    ShortScenes,
    training_frames,
)
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation import stems as stems_module
from tytoalba.data.simulation.stems import gather_stems
from tytoalba.learning import training as training
from tytoalba.learning.prior import make as make
from tytoalba.learning.prior import train as train
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.make import scenes_of, simulate

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """Scenes of 1.2 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "Scenes", ShortScenes)
        yield


@pytest.fixture(scope="module")
def frames() -> FeatureSet:
    return training_frames()


def same(a: FeatureSet, b: FeatureSet) -> bool:
    """The same frames, of recordings of the same names."""
    names = [[s.names[k] for k in s.recording] for s in (a, b)]
    return (
        names[0] == names[1]
        and np.array_equal(a.X, b.X)
        and np.array_equal(a.azimuth, b.azimuth, equal_nan=True)
        and np.array_equal(a.frame, b.frame)
    )


def test_simulated_scenes_are_those_of_their_seed(frames: FeatureSet) -> None:
    done: list[tuple[int, int]] = []
    scenes = scenes_of(RESPEAKER, VOICES, families=FAMILIES)
    made = simulate(scenes, 4, on_progress=lambda now, all_: done.append((now, all_)))
    assert done == [(k, 4) for k in (1, 2, 3, 4)]
    assert made.names == tuple(f"scene_{k:06d}" for k in range(4))
    assert made.gcc == prior_gcc(RESPEAKER)
    assert same(made, frames.select(frames.recording < 4))
    for other in ({"seed": 1}, {"speakers": "valid"}, {"families": FAMILIES[::-1]}):
        different = simulate(scenes_of(RESPEAKER, VOICES, **({"families": FAMILIES} | other)), 1)
        assert not same(different, made.select(made.recording < 1)), other


def test_stems_to_mix_are_those_of_the_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stems_module, "N_VOICES", (3, 3))
    done: list[tuple[int, int]] = []
    scenes = scenes_of(RESPEAKER, VOICES, families=FAMILIES, seed=5)
    stems = gather_stems(scenes, 4, on_progress=lambda *now: done.append(now))
    assert done[-1][0] == done[-1][1] == len(done)
    expected = gather_stems(ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 5), 4)
    assert np.array_equal(stems.responses, expected.responses)
    assert np.array_equal(stems.voices, expected.voices)
