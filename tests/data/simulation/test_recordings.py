"""Simulated recordings: the same to the bit, labelled rightly, as hard as they should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.simulated import Monotone, assert_16_bits, same
from tytoalba.bench.score import score_recordings
from tytoalba.data.simulation import talkers
from tytoalba.data.simulation.presets import HARD, PRESETS, QUICK, TWIN, Part, Preset
from tytoalba.data.simulation.recordings import (
    SimulatedRecording,
    Simulation,
    activity,
    as_recording,
    simulate,
)
from tytoalba.data.simulation.room import Placement, Room
from tytoalba.data.simulation.voice import SyntheticVoices, split_speakers
from tytoalba.errors import DataError
from tytoalba.signal.angles import decode, distance, signed_difference
from tytoalba.signal.array import builtin_arrays, load_array
from tytoalba.signal.audio import rms
from tytoalba.signal.metrics import accuracy
from tytoalba.signal.srp import SrpPhat

PEPPER, RESPEAKER = load_array("pepper"), load_array("respeaker-usb-4")
VOICES = SyntheticVoices()
DRY = Room((5.0, 4.6, 2.7), 0.2)
CLEAR = replace(
    QUICK,
    parts=(Part("test", "test", (DRY,), 12, distances=(0.6, 1.2)),),
    seconds=1.2,
    two_sources=0.0,
    snr=(50.0, 50.0),
    heights=(0.0, 0.0),
)
"""Easy to locate in: a dry room, almost no noise."""


@dataclass(frozen=True)
class Call:
    """What a response was asked for."""

    room: Room
    placement: Placement
    source: NDArray[np.float64]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What responses are asked for; they are of one sample, so that a test takes no time."""
    asked: list[Call] = []

    def respond(room: Room, array: Any, placement: Placement, source: Any, *_: Any, **__: Any) -> Any:
        asked.append(Call(room, placement, source))
        return np.ones((array.n_mics, 1), np.float32)

    monkeypatch.setattr(talkers, "room_response", respond)
    return asked


@pytest.fixture(scope="module")
def made() -> list[SimulatedRecording]:
    """The first test recordings of the twin, shortened."""
    simulation = Simulation(replace(TWIN, seconds=1.5), PEPPER, VOICES, seed=3)
    return [simulation.recording((2, i)) for i in range(12)]


def located(recording: SimulatedRecording, array_name: str = "pepper") -> NDArray[np.float64]:
    """What SRP-PHAT finds in each labelled frame, degrees."""
    array = load_array(array_name)
    frames = as_recording(recording, "", array).frames()
    return np.asarray(decode(SrpPhat(array, array.frame_length)(frames)), np.float64)


def test_a_recording_is_its_seed_its_part_and_its_number(made: list[SimulatedRecording]) -> None:
    twin = replace(TWIN, seconds=1.5)
    again = Simulation(twin, PEPPER, SyntheticVoices(), seed=3)
    assert same(again.recording((2, 4)), made[4])  # without making those before it
    assert same(again.recording((2, 1)), made[1])
    other_seed = Simulation(twin, PEPPER, VOICES, seed=4).recording((2, 4))
    assert not np.array_equal(other_seed.samples, made[4].samples)
    assert not np.array_equal(other_seed.positions[0], made[4].positions[0])
    assert not np.array_equal(made[0].positions[0, 0], made[3].positions[0, 0])  # the same room
    other_part = again.recording((0, 4))
    assert not np.array_equal(other_part.samples, made[4].samples)
    assert not np.array_equal(other_part.positions[0, 0], made[4].positions[0, 0])


def test_sound_is_what_a_recorder_gives(made: list[SimulatedRecording]) -> None:
    for recording in made:
        assert_16_bits(recording, (4, 72000))
        assert np.abs(recording.samples).max() < 0.99
        assert (recording.samples.std(axis=1) > 1e-3).all()


def test_frames_with_speech_have_a_plausible_level(made: list[SimulatedRecording]) -> None:
    levels = []
    for recording in made:
        entry = as_recording(recording, "", PEPPER)
        levels.append(rms(entry.frames()[entry.n_sources > 0], axis=(1, 2)))
    level = np.concatenate(levels)
    assert ((level > 0.05) & (level < 0.2)).mean() > 0.6
    assert ((level > 0.01) & (level < 0.4)).mean() > 0.97
    means = [float(np.sqrt(np.mean(each**2))) for each in levels]
    assert min(means) > 0.05
    assert max(means) < 0.19
    assert max(means) / min(means) > 1.3  # recordings differ in level


def test_frames_are_numbered_as_in_sslr(made: list[SimulatedRecording]) -> None:
    possible = len(range(0, 72000 - 8192, 4096))
    for recording in made:
        assert (np.diff(recording.frame_ids) > 0).all()
        assert recording.frame_ids.min() >= 0
        assert recording.frame_ids.max() < possible
        assert len(recording.frame_ids) == len(recording.positions) == len(recording.talking)
    kept = sum(len(recording.frame_ids) for recording in made)
    assert 0.5 * 12 * possible < kept < 12 * possible  # some are left out: nobody can say who talks


def frame_powers(preset: Preset, numbers: range) -> tuple[list[float], list[float]]:
    """Power of the frames in which nobody talks, and in which somebody does, each over its recording's."""
    quiet, loud = [], []
    for i in numbers:
        recording = Simulation(preset, PEPPER, VOICES, seed=1).recording((0, i))
        entry = as_recording(recording, "", PEPPER)
        power = rms(entry.frames(), axis=(1, 2)) ** 2 / np.mean(recording.samples**2)
        quiet += power[entry.n_sources == 0].tolist()
        loud += power[entry.n_sources > 0].tolist()
    return quiet, loud


def test_silent_frames_exist_and_are_silent() -> None:
    quiet, loud = frame_powers(CLEAR, range(8))
    assert len(quiet) > 3
    assert len(loud) > 5 * len(quiet)
    assert np.median(quiet) < 0.01 * np.median(loud)


@pytest.mark.parametrize("snr", [5.0, 20.0])
def test_noise_is_as_loud_as_the_snr_says(snr: float) -> None:
    quiet, loud = frame_powers(replace(CLEAR, snr=(snr, snr)), range(8))
    ratio = (np.mean(loud) - np.mean(quiet)) / np.mean(quiet)
    assert 10 * np.log10(ratio) == pytest.approx(snr, abs=2.5)


def test_the_label_is_where_the_sound_comes_from() -> None:
    simulation = Simulation(CLEAR, PEPPER, VOICES, seed=1)
    errors, azimuths = [], []
    for i in range(12):
        recording = simulation.recording((0, i))
        talking = np.isfinite(recording.azimuth[:, 0])
        errors.append(distance(located(recording)[talking], recording.azimuth[talking, 0]))
        azimuths.append(recording.azimuth[talking, 0][0])
    error = np.concatenate(errors)
    assert np.median(error) < 1.0
    assert (error <= 5).mean() > 0.95
    assert len(set((np.array(azimuths) // 90).tolist())) == 4  # every quadrant was tried


def test_azimuth_is_taken_from_the_positions() -> None:
    positions = np.array([[[1.0, 1.0, 0.3], [0.0, -2.0, 0.0]]]).repeat(3, axis=0)
    talking = np.array([[True, True], [False, True], [False, False]])
    recording = SimulatedRecording(
        "r", np.zeros((4, 9), np.float32), np.arange(3), positions, talking, (1, 2)
    )
    nan = np.nan
    np.testing.assert_allclose(recording.azimuth, [[45.0, 270.0], [270.0, nan], [nan, nan]])
    alone = replace(recording, positions=positions[:, :1], talking=talking[:, :1])
    np.testing.assert_allclose(alone.azimuth, [[45.0, nan], [nan, nan], [nan, nan]])


def test_two_talkers_stand_apart_and_both_are_heard() -> None:
    pair = replace(CLEAR, two_sources=1.0, separation=40.0)
    simulation = Simulation(pair, PEPPER, VOICES, seed=2)
    heard = []
    for i in range(8):
        recording = simulation.recording((0, i))
        assert recording.positions.shape[1] == len(recording.speakers) == 2
        x, y, _ = recording.positions[0].T
        true = np.rad2deg(np.arctan2(y, x))
        assert distance(true[0], true[1]) >= 40.0
        both = recording.talking.all(axis=1)
        assert both.any()
        first_azimuth, second_azimuth = recording.azimuth[both][0].tolist()
        assert distance(first_azimuth, second_azimuth) >= 40.0
        found = located(recording)[both]
        near = np.asarray(distance(found[:, None], true[None]) <= 5)  # (F, 2)
        heard.append([near.any(axis=1).mean(), near[:, 0].any(), near[:, 1].any()])
    share, first, second = np.mean(heard, axis=0)
    assert share > 0.8
    assert first > 0.6  # each of the two wins some frames
    assert second > 0.6


def test_a_third_of_the_recordings_has_two_talkers(calls: list[Call]) -> None:
    simulation = Simulation(replace(TWIN, seconds=0.3), RESPEAKER, Monotone())
    counts = [len(simulation.recording((0, i)).speakers) for i in range(120)]
    assert set(counts) == {1, 2}
    assert np.mean(np.array(counts) == 2) == pytest.approx(1 / 3, abs=0.1)
    assert len(calls) == sum(counts)


def test_a_walking_talker_is_labelled_where_it_is() -> None:
    walking = replace(CLEAR, speed=70.0, seconds=1.5)
    simulation = Simulation(walking, RESPEAKER, VOICES, seed=5)
    travelled, slopes, errors = [], [], []
    for i in range(4):
        recording = simulation.recording((0, i))
        talking = recording.talking[:, 0]
        label = recording.azimuth[talking, 0]
        found = located(recording, "respeaker-usb-4")[talking]
        turn = signed_difference(label, label[0])
        if np.ptp(turn) < 25:
            continue
        travelled.append(float(np.ptp(turn)))
        errors.append(signed_difference(found, label))
        good = np.abs(errors[-1]) < 20
        slopes.append(np.polyfit(turn[good], signed_difference(found, label[0])[good], 1)[0])
    assert len(travelled) >= 2
    assert max(travelled) > 40
    error = np.concatenate(errors)
    assert np.median(np.abs(error)) < 2.5
    assert (np.abs(error) < 10).mean() > 0.9
    assert abs(np.median(error)) < 1.5  # neither ahead nor behind
    np.testing.assert_allclose(slopes, 1.0, atol=0.15)


def test_who_walks_stays_in_the_room_and_at_the_same_distance(calls: list[Call]) -> None:
    simulation = Simulation(replace(QUICK, speed=90.0, two_sources=0.0), RESPEAKER, Monotone())
    far_walks = 0
    for i in range(16):
        calls.clear()
        recording = simulation.recording((0, i))
        assert len(calls) > 80  # every 43 ms of 4 s
        spots = [np.asarray(call.placement.centre) + call.placement.to_room(call.source) for call in calls]
        assert all(call.room.contains(spot, 0.15) for call, spot in zip(calls, spots, strict=True))
        away = [np.hypot(call.source[0], call.source[1]) for call in calls]
        np.testing.assert_allclose(away, away[0])
        assert np.linalg.norm(np.diff(spots, axis=0), axis=1).max() < 0.16  # 90 degrees a second at 2.2 m
        x, y, _ = recording.positions[:, 0].T
        far_walks += bool(np.ptp(np.unwrap(np.arctan2(y, x))) > np.pi / 2)
    assert far_walks >= 4


def test_who_walks_on_the_spot_sounds_like_who_stands() -> None:
    speech = np.random.default_rng(0).standard_normal(8000).astype(np.float32)
    place, spot = Placement((2.0, 2.0, 1.2), 20.0), np.array([[0.8, 0.6, 0.1]])
    standing, walking = (
        talkers.propagate(DRY, RESPEAKER, place, speech, path, 0.6, np.random.default_rng(1))
        for path in (spot, spot.repeat(8000 // (2730 // 4) + 2, axis=0))
    )
    assert standing.shape == walking.shape == (4, 8000)
    np.testing.assert_allclose(walking, standing, atol=1e-4 * np.abs(standing).max())


def test_sound_needs_time_to_arrive() -> None:
    speech = np.zeros(16000, np.float32)
    speech[:2730] = 1.0
    here, there = (activity(speech, far, RESPEAKER, 9)[0] for far in (0.0, 343.0 * 2730 / 16000))
    assert here.tolist() == [True, True] + [False] * 7
    assert there.tolist() == [False, True, True, True] + [False] * 5


def test_standing_talkers_stand(made: list[SimulatedRecording]) -> None:
    for recording in made:
        assert (recording.positions == recording.positions[:1]).all()


@pytest.mark.usefixtures("calls")
def test_places_are_as_the_part_says(made: list[SimulatedRecording]) -> None:
    places = np.concatenate([recording.positions[0] for recording in made])
    far = np.hypot(places[:, 0], places[:, 1])
    assert (far >= 0.6).all()
    assert (far <= 2.2).all()
    assert (np.abs(places[:, 2]) <= 0.4).all()
    human = Simulation(replace(TWIN, seconds=0.3), RESPEAKER, Monotone())
    for i in range(20):
        x, y, _ = human.recording((3, i)).positions[0].T
        assert (np.abs(np.rad2deg(np.arctan2(y, x))) <= 24).all()


@pytest.mark.parametrize("name", builtin_arrays())
def test_every_array_hears_the_hard_rooms(name: str) -> None:
    array = load_array(name)
    simulation = Simulation(replace(HARD, seconds=0.44, interferer=1.0), array, VOICES)
    recording = simulation.recording((0, 0))
    assert recording.samples.shape == (array.n_mics, int(0.44 * array.sample_rate))
    assert np.isfinite(recording.samples).all()
    assert (recording.samples.std(axis=1) > 1e-3).all()
    assert np.abs(recording.samples).max() < 1
    assert np.isfinite(recording.positions).all()


def test_the_fan_is_heard() -> None:
    levels = []
    for chance in (0.0, 1.0):
        preset = replace(CLEAR, interferer_snr=(-10.0, -10.0), interferer=chance)
        quiet, loud = frame_powers(preset, range(1, 2))
        levels.append(np.mean(quiet) / np.mean(loud))
    assert levels[0] < 0.01
    assert levels[1] > 0.5


def test_the_presets() -> None:
    assert list(PRESETS) == ["quick", "twin", "hard"]
    assert [(part.name, part.speakers, part.n_recordings) for part in QUICK.parts] == [
        ("train", "train", 72),
        ("valid", "valid", 12),
        ("test", "test", 36),
    ]
    assert QUICK.n_recordings == 120
    assert [part.n_recordings for part in QUICK.scaled(0.02).parts] == [1, 1, 1]
    assert [part.n_recordings for part in QUICK.scaled(2.0).parts] == [144, 24, 72]


@pytest.mark.parametrize("preset", [TWIN, HARD])
def test_the_twin_tests_in_other_rooms_with_other_speakers(preset: Preset) -> None:
    train, valid, test, human = preset.parts
    assert [part.name for part in preset.parts] == ["train", "valid", "test", "human"]
    assert len(set(train.rooms)) == 5
    assert len(set(test.rooms)) == 3
    assert len({*train.rooms, *valid.rooms, *test.rooms}) == 5 + len(valid.rooms) + 3
    assert human.rooms == test.rooms
    sizes = [room.size for room in (*train.rooms, *valid.rooms, *test.rooms)]
    assert len(set(sizes)) == len(sizes)
    assert [part.speakers for part in preset.parts] == ["train", "valid", "test", "test"]


@pytest.mark.usefixtures("calls")
def test_each_part_has_its_own_speakers() -> None:
    simulation = Simulation(replace(QUICK, seconds=0.3), RESPEAKER, VOICES)
    for number, part in enumerate(QUICK.parts):
        allowed = set(split_speakers(VOICES.n_speakers, part.speakers))
        heard = {who for i in range(5) for who in simulation.recording((number, i)).speakers}
        assert heard <= allowed
        assert len(heard) > 1


def test_rooms_take_turns(calls: list[Call]) -> None:
    simulation = Simulation(replace(TWIN, seconds=0.3, two_sources=0.0), RESPEAKER, Monotone())
    for i in range(4):
        simulation.recording((2, i))
    assert [call.room for call in calls] == [*TWIN.parts[2].rooms, TWIN.parts[2].rooms[0]]


def test_a_stretch_of_silence_is_a_recording_of_noise() -> None:
    recording = Simulation(replace(CLEAR, interferer=1.0), RESPEAKER, Monotone(level=0.0)).recording((0, 0))
    assert np.isnan(recording.azimuth).all()
    assert len(recording.frame_ids) == len(range(0, 19200 - 2730, 1365))
    assert np.isfinite(recording.samples).all()
    assert 0.01 < recording.samples.std() < 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: replace(p, seconds=0.17), "recordings of 0.17 s hold no frame of pepper"),
        (
            lambda p: replace(p, two_sources=0.5, parts=(replace(p.parts[0], azimuths=(0.0, 10.0)),)),
            "two talkers 15 degrees apart do not fit between azimuths 0 and 10 of part 'test'",
        ),
        (lambda p: replace(p, two_sources=0.5, separation=181.0), "181 degrees apart do not fit"),
    ],
)
def test_impossible_presets_are_refused(change: Callable[[Preset], Preset], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Simulation(change(CLEAR), PEPPER, VOICES)


def test_too_few_speakers_are_refused() -> None:
    with pytest.raises(DataError, match="2 speakers are too few"):
        Simulation(QUICK, PEPPER, SyntheticVoices(2))
    Simulation(QUICK, PEPPER, SyntheticVoices(3))


def test_talkers_who_do_not_fit_into_the_room_are_refused() -> None:
    far = replace(CLEAR, parts=(replace(CLEAR.parts[0], distances=(6.0, 7.0)),))
    with pytest.raises(DataError, match=r"talkers 6\.0 m away and more do not fit into a room"):
        Simulation(far, PEPPER, VOICES).recording((0, 0))


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_talkers_of_every_preset_fit_into_its_rooms(preset: Preset) -> None:
    """Two far ones on opposite sides of a small room come nearer: a data set never stops halfway."""
    simulation = Simulation(replace(preset, seconds=0.18, two_sources=1.0), RESPEAKER, Monotone())
    for number, part in enumerate(preset.parts):
        for i in range(min(part.n_recordings, 150)):
            far = np.linalg.norm(simulation.recording((number, i)).positions[:1, :, :2], axis=2)
            assert ((far >= part.distances[0] - 1e-9) & (far <= part.distances[1])).all()


def twin_accuracy(n_recordings: int, seconds: float) -> float:
    """ACC (%) of SRP-PHAT, 100-8000 Hz, on one-source frames of the twin's test part."""
    simulation = Simulation(replace(TWIN, seconds=seconds), PEPPER, VOICES)
    recordings = [as_recording(simulation.recording((2, i)), "", PEPPER) for i in range(n_recordings)]
    outcome = score_recordings(recordings)["srp"][1]
    return 100 * accuracy(outcome.reference, outcome.estimate)


def test_the_twin_is_about_as_hard_as_sslr() -> None:
    """SRP-PHAT finds 82 % on SSLR; fewer and shorter recordings than the slow test below."""
    assert 72 <= twin_accuracy(48, seconds=1.0) <= 90


@pytest.mark.slow
def test_the_twin_is_as_hard_as_sslr() -> None:
    assert 76 <= twin_accuracy(150, seconds=4.0) <= 86


# ---- the public function


def test_simulate_makes_labelled_recordings_when_they_are_asked_for() -> None:
    seen: list[tuple[int, int]] = []
    made = simulate(size=0.03, seed=5, on_progress=lambda *step: seen.append(step))
    assert not seen
    recordings = list(made)
    assert [r.subset for r in recordings] == ["train", "train", "valid", "test"]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    expected = Simulation(QUICK, PEPPER, SyntheticVoices(), 5).recording((0, 1))
    assert recordings[1].name == expected.name
    np.testing.assert_array_equal(recordings[1].load(), expected.samples)
    np.testing.assert_array_equal(recordings[1].azimuth, expected.azimuth)
    (alone,) = simulate("quick", RESPEAKER, part="valid", size=0.03)
    assert (alone.array, alone.subset) == (RESPEAKER, "valid")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "slow"}, "no preset called 'slow'; known: quick, twin, hard"),
        ({"part": "attic"}, "preset 'quick' has no part 'attic'; it has: train, valid, test"),
        ({"size": 0.0}, "size must be positive"),
        ({"size": np.inf}, "size must be positive"),
        ({"moving": -1.0}, "moving and seed cannot be negative"),
        ({"moving": np.nan}, "moving and seed cannot be negative"),
        ({"seed": -1}, "moving and seed cannot be negative"),
        ({"speech": "nowhere"}, "nowhere is not a folder"),
    ],
)
def test_simulate_refuses_before_it_makes_anything(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        simulate(**options)


def test_talkers_begin_later_and_pause_as_the_preset_says() -> None:
    preset = replace(CLEAR, seconds=9.0, begins=(2.0, 2.5), talks=(1.0, 1.5), pauses=(1.0, 2.0))
    rate = RESPEAKER.sample_rate
    dry = np.ones(9 * rate, np.float32)
    heard = talkers.interrupted(dry, preset, rate, np.random.default_rng(0)) > 0.5
    edges = np.flatnonzero(np.diff(heard, prepend=False, append=False)) / rate
    talking, silent = edges[1::2] - edges[::2], edges[2::2] - edges[1:-1:2]
    assert 2.0 <= edges[0] <= 2.6
    assert len(talking) >= 2
    assert (talking[:-1] > 0.98).all()
    assert (talking < 1.5).all()
    assert ((silent >= 1.0) & (silent < 2.02)).all()
    made = Simulation(preset, RESPEAKER, VOICES).recording((0, 0))
    time = made.frame_ids * (RESPEAKER.frame_length // 2) / rate
    assert not made.talking[time < 1.7].any()
    assert made.talking.any()


def test_a_preset_without_pauses_draws_nothing_for_them() -> None:
    rng = np.random.default_rng(3)
    dry = np.ones(100, np.float32)
    assert talkers.interrupted(dry, CLEAR, 16000, rng) is dry
    assert rng.random() == np.random.default_rng(3).random()
