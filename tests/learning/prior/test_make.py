"""What a prior is made from: scenes of a seed, as frames and as stems. The command makes whole priors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.priors import (
    FAMILIES,
    RESPEAKER,
    VOICES,
    ShortScenes,
    same,
)
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation import stems as stems_module
from tytoalba.data.simulation.stems import gather_stems
from tytoalba.errors import TytoError
from tytoalba.learning import training as training
from tytoalba.learning.prior import make as make
from tytoalba.learning.prior import train as train
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.learning.prior.make import PriorSettings, make_prior, scenes_of, simulate

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """Scenes of 1.2 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "Scenes", ShortScenes)
        yield


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


# ---- refused before any work


@pytest.mark.parametrize(
    ("missing", "how", "complaint"),
    [
        ("pyroomacoustics", {}, "rooms of pyroomacoustics need the extra 'sim'"),
        ("nothing", {"device": "nowhere"}, "no device 'nowhere' here; try cpu"),
        ("nothing", {"settings": PriorSettings(epochs=0)}, "needs a prior to start from"),
    ],
)
def test_refusals_come_before_simulations(
    missing: str, how: dict[str, Any], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulated(*_: Any, **__: Any) -> None:
        pytest.fail("a room was simulated before the refusal")

    monkeypatch.setattr(make, "gather_stems", simulated)
    monkeypatch.setattr(make, "find_spec", lambda name: None if name == missing else True)
    with pytest.raises((TytoError, ImportError), match=complaint):
        make_prior("respeaker-usb-4", output=tmp_path / "x", **how)
    assert not list(tmp_path.iterdir())


def test_an_array_without_a_name_for_a_file_needs_one() -> None:
    with pytest.raises(TytoError, match="gives no name for a file"):
        make_prior(replace(RESPEAKER, name="my/array"))
