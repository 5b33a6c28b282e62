"""Scores: as computed by hand, and of methods run on recordings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.waves import plane_wave
from tytoalba.bench.score import Outcome, decisions, overall, score, score_recordings
from tytoalba.data.folder import open_folder
from tytoalba.data.recording import Recording
from tytoalba.data.simulation.export import write_simulation
from tytoalba.data.simulation.presets import QUICK, Part
from tytoalba.data.simulation.recordings import Simulation
from tytoalba.data.simulation.room import Room
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError, TytoError
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, load_array

RESPEAKER, LINEAR = load_array("respeaker-usb-4"), load_array("linear-4")
EASY = replace(
    QUICK,
    parts=(Part("test", "test", (Room((5.0, 4.6, 2.7), 0.25),), 6),),
    seconds=1.0,
    two_sources=0.5,
    separation=60.0,
    snr=(40.0, 40.0),
)
NAN = np.nan


def outcome(reference: list[list[float]], estimate: list[list[float]], recording: list[int]) -> Outcome:
    return Outcome(np.array(reference), np.array(estimate), np.array(recording))


def of_method(recordings: list[Recording], method: str = "srp", **options: Any) -> dict[int, Outcome]:
    return score_recordings(recordings, [method], **options)[method]


def of_localizer(recordings: list[Recording], localizer: Localizer, **options: Any) -> dict[int, Outcome]:
    return score_recordings(recordings, [], {"mine": localizer}, **options)["mine"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """A small folder of easy recordings."""
    root = tmp_path_factory.mktemp("easy")
    write_simulation(Simulation(EASY, RESPEAKER, SyntheticVoices()), root)
    return open_folder(root)


def test_one_source_by_hand() -> None:
    row = score(
        outcome(
            [[10.0], [350.0], [100.0], [8.3], [30.0], [200.0]],
            [[12.0], [4.0], [100.0], [3.3], [150.0], [208.0]],
            [0, 0, 1, 1, 2, 2],
        )
    )
    # errors 2, 14, 0, 5, 120, 8
    assert (row.n_sources, row.n_frames) == (1, 6)
    assert row.mae.value == pytest.approx(149 / 6)
    assert row.acc.value == pytest.approx(50.0)  # 2, 0 and 5, which is within 5 whatever its last bit
    assert row.median == pytest.approx(6.5)
    assert row.acc_at == pytest.approx(
        {5.0: 50.0, 10.0: 400 / 6, 15.0: 500 / 6, 20.0: 500 / 6, 30.0: 500 / 6}
    )
    assert row.front_back == pytest.approx(20.0)  # 30 heard at 150; 100 is too near to the line to tell
    assert row.mae.low <= row.mae.value <= row.mae.high
    assert row.mae.low == pytest.approx(2.5, abs=0.1)  # the best recording three times
    assert row.mae.high == pytest.approx(64.0, abs=0.1)


def test_two_sources_by_hand() -> None:
    row = score(
        outcome([[10.0, 200.0], [90.0, 270.0]], [[203.0, 8.0], [90.0, 120.0]], [0, 1])
    )  # errors 2, 3 and 0, 150
    assert (row.n_sources, row.n_frames) == (2, 2)
    assert row.mae.value == pytest.approx(155 / 4)
    assert row.acc.value == pytest.approx(75.0)
    assert row.acc_at[5.0] == pytest.approx(75.0)
    assert row.median == pytest.approx(2.5)
    assert np.isnan(row.front_back)


def test_frames_of_one_recording_do_not_pass_for_many() -> None:
    rng = np.random.default_rng(0)
    wrong = np.repeat(rng.random(20) < 0.5, 50)[:, None]  # whole recordings right or wrong
    reference = np.full((1000, 1), 100.0)
    estimate = np.where(wrong, 200.0, 100.0)
    grouped = score(Outcome(reference, estimate, np.repeat(np.arange(20), 50)))
    as_if_apart = score(Outcome(reference, estimate, np.arange(1000)))
    assert grouped.acc.value == as_if_apart.acc.value
    assert grouped.acc.high - grouped.acc.low > 4 * (as_if_apart.acc.high - as_if_apart.acc.low)


def test_the_seed_decides_the_interval() -> None:
    rng = np.random.default_rng(0)
    some = Outcome(rng.uniform(0, 360, (60, 1)), rng.uniform(0, 360, (60, 1)), np.arange(60) // 5)
    assert score(some, seed=1) == score(some, seed=1)
    assert score(some, seed=1).mae != score(some, seed=2).mae


def test_one_recording_has_no_interval() -> None:
    row = score(outcome([[10.0], [20.0]], [[11.0], [90.0]], [3, 3]))
    assert row.mae.value == pytest.approx(35.5)
    assert row.acc.value == pytest.approx(50.0)
    for bound in (row.mae.low, row.mae.high, row.acc.low, row.acc.high):
        assert np.isnan(bound)


def test_overall_is_weighted_by_frames() -> None:
    one = score(outcome([[10.0]] * 3, [[10.0]] * 3, [0, 1, 2]))  # 0 degrees, 100 %
    two = score(outcome([[10.0, 100.0]], [[30.0, 100.0]], [0]))  # 10 degrees, 50 %
    assert overall([one, two]) == pytest.approx((10 / 4, (3 * 100 + 50) / 4))
    assert overall([two]) == pytest.approx((10.0, 50.0))


@pytest.mark.parametrize("method", ["srp", "music"])
def test_methods_find_easy_sources(recordings: list[Recording], method: str) -> None:
    seen: list[tuple[str, int, int]] = []
    outcomes = of_method(recordings, method, on_progress=lambda *news: seen.append(news))
    assert seen == [(method, i, 6) for i in range(1, 7)]
    assert set(outcomes) == {1, 2}
    for n, found in outcomes.items():
        n_frames = sum(int((r.n_sources == n).sum()) for r in recordings)
        assert found.reference.shape == found.estimate.shape == (n_frames, n)
        assert found.recording.shape == (n_frames,)
        row = score(found)
        assert row.n_frames == n_frames
        assert row.acc.value > (85 if n == 1 else 45)
    numbers = outcomes[1].recording
    for number, recording in enumerate(recordings):  # every frame counted for its own recording
        own = recording.azimuth[recording.n_sources == 1]
        np.testing.assert_array_equal(
            np.sort(outcomes[1].reference[numbers == number, 0]), np.sort(own[np.isfinite(own)])
        )


def test_the_band_matters(recordings: list[Recording]) -> None:
    wide, narrow = (score(of_method(recordings, band=band)[1]) for band in ((100.0, 8000.0), (100.0, 250.0)))
    assert wide.acc.value > narrow.acc.value + 10


def as_labelled(array: MicArray, azimuths: list[float], labels: list[list[float]]) -> Recording:
    sound = plane_wave(array, azimuths, 1.0)
    ids = np.arange(len(labels))
    half = array.frame_length // 2
    return Recording("r", "test", array, ids, np.array(labels), sound.copy, array.frame_length, half)


def test_silent_frames_and_crowds_are_left_out() -> None:
    labels = [[NAN, NAN, NAN], [80.0, NAN, NAN], [10.0, 20.0, 30.0], [80.0, NAN, NAN]]
    found = of_method([as_labelled(RESPEAKER, [80.0], labels)])
    assert set(found) == {1}
    np.testing.assert_array_equal(found[1].reference, [[80.0], [80.0]])
    np.testing.assert_array_equal(found[1].estimate, [[80.0], [80.0]])
    assert of_method([as_labelled(RESPEAKER, [80.0], labels[:1])]) == {}


def test_an_array_on_a_line_is_judged_by_what_it_can_tell() -> None:
    behind = of_method([as_labelled(LINEAR, [150.0], [[150.0, NAN]] * 5)])[1]
    np.testing.assert_allclose(behind.reference, 30.0)
    assert (distance(behind.estimate, 30.0) <= 1).all()
    both = of_method([as_labelled(LINEAR, [150.0, 300.0], [[150.0, 300.0]] * 5)])[2]
    assert score(both).acc.value >= 80  # its image is not taken for the second source


def test_a_pair_of_microphones_is_not_asked_for_two_sources() -> None:
    pair = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), 16000)
    found = of_method([as_labelled(pair, [30.0], [[30.0, NAN], [30.0, 200.0]])])
    assert set(found) == {1}


def test_what_cannot_be_scored_is_refused_before_any_work(recordings: list[Recording]) -> None:
    """A missing prior, a localizer of another array: nothing is scored and thrown away."""
    moved = np.array(RESPEAKER.positions) * 15
    unknown = replace(RESPEAKER, name="mine", positions=tuple(map(tuple, moved.tolist())))
    other = [replace(recording, array=unknown) for recording in recordings]
    seen: list[Any] = []
    with pytest.raises(TytoError, match="mine has 4 microphones, 97 cm across"):
        score_recordings(other, ["srp", "prior"], on_progress=lambda *news: seen.append(news))
    localizer = Localizer.new(LINEAR, n_features=30, seed=0)
    with pytest.raises(TytoError, match="was recorded by another array"):
        score_recordings(recordings, ["srp"], {"mine": localizer}, on_progress=lambda *n: seen.append(n))
    with pytest.raises(TytoError, match="no method called 'ears'; known: srp, music"):
        score_recordings(recordings, ["srp", "ears"], on_progress=lambda *news: seen.append(news))
    with pytest.raises(DataError, match="no recordings to evaluate on"):
        score_recordings([])
    assert not seen


# ---- localizers, which say how sure they are


def test_trust_by_hand() -> None:
    sure = np.array([[0.9, 0.2], [0.8, 0.6]])
    found = replace(
        outcome([[10.0, 200.0], [90.0, 270.0]], [[203.0, 50.0], [90.0, 300.0]], [0, 1]), probability=sure
    )
    np.testing.assert_array_equal(found.right, [[True, False], [True, False]])  # of each estimate
    row = score(found)
    assert row.surer_half == 100.0  # 0.9 and 0.8
    assert row.calibration_error == pytest.approx((0.1 + 0.2 + 0.2 + 0.6) / 4)
    probability, right = decisions({2: found, 1: outcome([[1.0]], [[1.0]], [0])})
    assert probability.tolist() == [0.9, 0.2, 0.8, 0.6]
    assert right.tolist() == [True, False, True, False]
    alone = replace(
        outcome([[10.0]] * 3, [[10.0], [10.0], [90.0]], [0, 1, 2]), probability=sure.T[:, :1][[0, 1, 1]]
    )
    assert score(alone).surer_half == 100.0  # two of three, and of equally sure ones the first


def test_methods_tell_no_confidence() -> None:
    found = outcome([[10.0]], [[10.0]], [0])
    assert np.isnan([score(found).calibration_error, score(found).surer_half]).all()
    with pytest.raises(DataError, match="nothing here says how sure it is"):
        decisions({1: found})


def test_a_localizer_is_judged_by_what_it_answers(recordings: list[Recording]) -> None:
    localizer = Localizer.new(RESPEAKER, n_features=30, seed=0)
    seen: list[tuple[str, int, int]] = []
    outcomes = of_localizer(recordings, localizer, on_progress=lambda *news: seen.append(news))
    assert seen == [("mine", i, 6) for i in range(1, 7)]
    methods = of_method(recordings)
    assert set(outcomes) == set(methods) == {1, 2}
    for n, found in outcomes.items():
        np.testing.assert_array_equal(found.reference, methods[n].reference)
        np.testing.assert_array_equal(found.recording, methods[n].recording)
        assert found.probability is not None
        assert score(found).acc.value > (90 if n == 1 else 60)
        assert score(found).surer_half >= score(found).acc.value
    number, alone = next((k, r) for k, r in enumerate(recordings) if (r.n_sources == 1).all())
    located = localizer.locate(alone.load(), silence_db=-200.0)
    expected = [located[k].azimuth + (located[k].probability or ()) for k in alone.frame_ids]
    here = outcomes[1].recording == number
    assert outcomes[1].probability is not None
    np.testing.assert_allclose(outcomes[1].estimate[here, 0], [azimuth for azimuth, _ in expected])
    np.testing.assert_allclose(outcomes[1].probability[here, 0], [sure for _, sure in expected], atol=1e-4)


def test_a_localizer_that_is_mounted_otherwise_answers_so() -> None:
    turned = RESPEAKER.rotated(50.0)
    recording = as_labelled(turned, [130.0], [[130.0, NAN]] * 4)
    found = of_localizer([recording], Localizer.new(turned, n_features=30, seed=0))[1]
    assert (distance(found.estimate, 130.0) <= 3).all()
    with pytest.raises(TytoError, match="r was recorded by another array"):
        of_localizer([recording], Localizer.new(RESPEAKER, n_features=30, seed=0))


def test_a_localizer_on_a_line_is_judged_by_what_it_can_tell() -> None:
    recording = as_labelled(LINEAR, [150.0, 290.0], [[150.0, NAN]] + [[150.0, 290.0]] * 4)
    found = of_localizer([recording], Localizer.new(LINEAR, n_features=30, seed=0))
    np.testing.assert_allclose(found[1].reference, 30.0)
    np.testing.assert_allclose(found[2].reference, [[30.0, 290.0]] * 4)
    facing = distance(np.concatenate([found[n].estimate.ravel() for n in found]), 0.0)
    assert (facing <= 90).all()
