"""Laws of confidence from simulated scenes: what is gathered, and what is learned of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError
from tytoalba.learning.prior.calibration import expected_calibration_error
from tytoalba.learning.prior.confidence_fit import (
    SceneMaps,
    counted_right,
    fitted_confidence,
    gathered,
    n_counted,
    right_directions,
    scene_maps,
    sources_found,
    talkative,
)
from tytoalba.learning.prior.decisions import count_sources, decide
from tytoalba.signal.angles import distance, encode
from tytoalba.signal.array import load_array

ARRAY = load_array("respeaker-usb-4")
NAN = math.nan


def made_up(rng: np.random.Generator, n_talkers: int, n: int = 40) -> SceneMaps:
    """Maps in which each talker is heard in some frames, beside false peaks that jump."""
    azimuth = (rng.uniform(0, 360) + np.array([0.0, 110.0, 230.0])) % 360
    azimuth[n_talkers:] = NAN
    heard = np.where(rng.random((n, 3)) < 0.6, azimuth, NAN)
    false = np.where(rng.random((n, 1)) < 0.4, rng.uniform(0, 360, (n, 1)), NAN)
    maps = 0.8 * encode(heard) + 0.3 * encode(false) + 0.02 * rng.random((n, 360))
    truth = np.sort(np.broadcast_to(azimuth, (n, 3)), axis=1)
    return SceneMaps(maps.astype(np.float32), rng.random(n) < 0.95, truth, rng.random(n) < 0.9)


@pytest.fixture(scope="module")
def scenes() -> list[SceneMaps]:
    rng = np.random.default_rng(4)
    return [made_up(rng, 1 + k % 3) for k in range(120)]


def test_frames_are_averaged_over_loud_neighbours(scenes: list[SceneMaps]) -> None:
    one = scenes[0]
    maps, n, azimuth = one.averaged(2)
    rows = np.flatnonzero(one.loud & one.known)
    assert len(maps) == len(n) == len(azimuth) == len(rows)
    for row, mean, frames in zip(rows, maps, n, strict=True):
        around = one.loud & (np.abs(np.arange(len(one.maps)) - row) <= 2)
        assert frames == around.sum()
        np.testing.assert_allclose(mean, one.maps[around].mean(axis=0), atol=1e-6)
    silent = replace(one, loud=np.zeros_like(one.loud))
    assert [len(part) for part in silent.averaged(2)] == [0, 0, 0]


def test_laws_hold_on_other_scenes_with_any_context(scenes: list[SceneMaps]) -> None:
    sure, others = fitted_confidence(scenes[:60]), scenes[60:]
    for context in (0, 2, 8):
        maps, n, true = gathered(others, [context])
        talking = np.isfinite(true).sum(axis=1)
        for k in (1, 2, 3):
            found = decide(maps[talking == k], sure, k, n[talking == k])
            there = np.isfinite(found.azimuth)
            right = right_directions(found.azimuth, true[talking == k])[there]
            assert expected_calibration_error(found.probability[there], right) < 0.08, (context, k)
    maps, n, true = gathered(others, [8])
    counted = np.isfinite(count_sources(maps, sure, n).azimuth).sum(axis=1)
    assert counted_right(counted, np.isfinite(true).sum(axis=1)).min() > 0.9


def test_too_few_frames_are_refused(scenes: list[SceneMaps]) -> None:
    with pytest.raises(DataError, match="only 0 frames with one, two or three talkers"):
        fitted_confidence(scenes[:2])


def test_what_is_right_and_what_is_found() -> None:
    found = np.array([[10.0, 200.0], [10.0, NAN]])
    true = np.array([[203.0, 300.0, NAN], [12.0, 100.0, NAN]])
    assert right_directions(found, true).tolist() == [[False, True], [True, False]]
    peaks = np.array([[10.0, 14.0, 200.0]])
    assert sources_found(peaks, np.array([[12.0, 201.0, NAN]])).tolist() == [[True, False, True]]
    chance = np.array([[0.9, 0.2, 0.9], [0.1, 0.9, 0.9], [0.9, 0.9, 0.9]])
    assert n_counted(chance, (0.25, 0.5, 0.5)).tolist() == [1, 0, 3]
    shares = counted_right(np.array([1, 0, 3]), np.array([1, 1, 3]))
    assert shares[0] == 0.5
    assert np.isnan(shares[1])
    assert shares[2] == 1.0


def test_scenes_have_one_two_and_three_talkers_and_their_maps() -> None:
    scenes = replace(
        talkative(ARRAY, [SyntheticVoices()], "valid", seed=3, families=("anechoic",)), seconds=1.0
    )
    made = [scene_maps(scenes, [lambda cut: np.ones((len(cut), 360), np.float32)], k)[0] for k in range(9)]
    n_talkers = [int(np.isfinite(one.azimuth).sum(axis=1).max()) for one in made]
    assert set(n_talkers) == {1, 2, 3}
    for k, one in enumerate(made):
        assert len(one.maps) == len(one.loud) == len(one.azimuth) == len(one.known)
        recording = scenes.recording(k)
        there = one.azimuth[recording.frame_ids]
        wanted = np.pad(recording.azimuth, ((0, 0), (0, 3 - recording.azimuth.shape[1])), constant_values=NAN)
        assert np.nanmax(distance(there, wanted), initial=0.0) < 1e-6
        assert one.known.sum() == len(recording.frame_ids)
