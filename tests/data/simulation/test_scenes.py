"""Scenes: the same to the bit from a seed and a number, labelled rightly, as varied as they claim."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import welch

from tests.helpers.simulated import Monotone, assert_16_bits, same
from tytoalba.data.simulation import scenes as module
from tytoalba.data.simulation.acoustics import FAMILIES, PointSource, crowd_noise
from tytoalba.data.simulation.microphones import CALM, OWN_PATTERN, recorded, varied
from tytoalba.data.simulation.recordings import SimulatedRecording, as_recording
from tytoalba.data.simulation.room import loudness
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.voice import SyntheticVoices, split_speakers
from tytoalba.errors import DataError
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import SPEED_OF_SOUND, builtin_arrays, load_array, unit_vector
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.srp import SrpPhat

pytest.importorskip("pyroomacoustics")
PEPPER, RESPEAKER = load_array("pepper"), load_array("respeaker-usb-4")
VOICES = SyntheticVoices()
SHORT = Scenes(RESPEAKER, (VOICES,), seconds=0.8, seed=2)
DRY = replace(SHORT, families=("anechoic", "hybrid"))


@pytest.fixture(scope="module")
def made() -> list[SimulatedRecording]:
    """The first scenes, of all families in turn."""
    return [SHORT.recording(number) for number in range(12)]


def test_a_scene_is_its_seed_and_its_number(made: list[SimulatedRecording]) -> None:
    again = Scenes(RESPEAKER, (SyntheticVoices(),), seconds=0.8, seed=2)
    for number in (10, 8, 7, 4, 1, 0):  # in another order; 10, 7, 4 and 1 are pyroomacoustics'
        assert same(again.recording(number), made[number])
    other = replace(DRY, seed=3).recording(0)
    assert not np.array_equal(other.samples, DRY.recording(0).samples)
    sounds = {recording.samples.tobytes() for recording in made}
    places = {recording.positions[0, 0].tobytes() for recording in made if len(recording.positions)}
    assert len(sounds) == 12
    assert len(places) >= 11


def test_families_take_turns(made: list[SimulatedRecording]) -> None:
    assert [recording.name.split("_")[0] for recording in made] == list(FAMILIES) * 4
    assert [DRY.recording(k).name for k in (0, 1, 4)] == [
        "anechoic_000000",
        "hybrid_000001",
        "anechoic_000004",
    ]


def test_features_do_not_depend_on_the_number_of_processes() -> None:
    gcc = GccPhat.for_array(RESPEAKER, RESPEAKER.frame_length)
    progress: list[tuple[int, int]] = []
    alone = scene_features(SHORT, range(4), gcc, on_progress=lambda k, n: progress.append((k, n)))
    together = scene_features(SHORT, range(4), gcc, processes=2)
    np.testing.assert_array_equal(alone.X, together.X)
    np.testing.assert_array_equal(alone.azimuth, together.azimuth)
    np.testing.assert_array_equal(alone.recording, together.recording)
    np.testing.assert_array_equal(alone.frame, together.frame)
    assert progress == [(k, 4) for k in range(1, 5)]
    assert alone.names == tuple(f"scene_{k:06d}" for k in range(4))
    assert len(alone.X) == len(alone.azimuth) > 10
    assert alone.X.shape[1:] == (6, gcc.n_lags)
    assert np.isfinite(alone.azimuth[:, 0]).all()  # frames in which somebody talks
    some = scene_features(SHORT, [2], gcc)
    np.testing.assert_array_equal(some.X, alone.X[alone.recording == 2])


def test_sound_is_what_a_recorder_gives(made: list[SimulatedRecording]) -> None:
    for recording in made:
        assert_16_bits(recording, (4, 12800))
        assert recording.samples.min() >= -1
        assert recording.samples.max() < 1
        assert (recording.samples.std(axis=1) > 1e-4).all()


def test_labels(made: list[SimulatedRecording]) -> None:
    possible = len(range(0, 12800 - RESPEAKER.frame_length, RESPEAKER.frame_length // 2))
    for recording in made:
        azimuth = recording.azimuth
        assert azimuth.shape == (len(recording.frame_ids), 2)
        heard = azimuth[np.isfinite(azimuth)]
        assert ((heard >= 0) & (heard < 360)).all()
        assert 1 <= recording.positions.shape[1] == recording.talking.shape[1] == len(recording.speakers) <= 2
        assert (recording.positions == recording.positions[:1]).all()  # talkers stand
        assert (np.diff(recording.frame_ids) > 0).all()
        assert (recording.frame_ids < possible).all()
        as_recording(recording, "", RESPEAKER).frames()
    assert sum(np.isfinite(recording.azimuth[:, 0]).sum() for recording in made) > 30


def test_talkers_are_everywhere_and_apart() -> None:
    wide = replace(SHORT, separation=40.0)
    drawn = [wide._talkers(np.random.default_rng(seed)) for seed in range(600)]
    two = [talkers for talkers in drawn if len(talkers) == 2]
    assert {len(talkers) for talkers in drawn} == {1, 2}
    assert len(two) / len(drawn) == pytest.approx(0.4, abs=0.06)
    place = np.array([[talker.position for talker in talkers] for talkers in two])  # (N, 2, 3)
    azimuth = np.rad2deg(np.arctan2(place[..., 1], place[..., 0]))
    assert np.asarray(distance(azimuth[:, 0], azimuth[:, 1])).min() >= 40.0 - 1e-9
    far = np.linalg.norm(place, axis=-1)
    assert far.min() >= 0.3 - 1e-9
    assert far.max() <= 4.0 + 1e-9
    assert np.median(far) == pytest.approx(np.sqrt(0.3 * 4.0), rel=0.2)
    elevation = np.rad2deg(np.arcsin(place[..., 2] / far))
    assert elevation.min() >= -25.0 - 1e-9
    assert elevation.max() <= 60.0 + 1e-9
    assert (np.histogram(azimuth % 360, 8, (0, 360))[0] > 0.6 * azimuth.size / 8).all()
    patterns = [talker.pattern for talkers in drawn for talker in talkers]
    assert 0.5 <= min(patterns) < 0.55 < 0.95 < max(patterns) <= 1.0
    facing_us = [
        -talker.facing @ talker.position / np.linalg.norm(talker.position) > 0.999
        for talkers in drawn
        for talker in talkers
    ]
    assert np.mean(facing_us) == pytest.approx(0.75, abs=0.05)


def test_calm_scenes() -> None:
    """As often as asked for; among people at the device's height, with devices as planned."""
    assert all(SHORT.conditions(np.random.default_rng(seed)) is not CALM for seed in range(20))
    half = replace(SHORT, calm=0.5)
    share = np.mean([half.conditions(np.random.default_rng(seed)) is CALM for seed in range(400)])
    assert share == pytest.approx(0.5, abs=0.08)
    people = [talker for seed in range(200) for talker in half._talkers(np.random.default_rng(seed), CALM)]
    place = np.array([talker.position for talker in people])
    far = np.linalg.norm(place, axis=1)
    assert far.min() >= 0.4 - 1e-9
    assert far.max() <= 3.0 + 1e-9
    assert np.rad2deg(np.arcsin(place[:, 2] / far)).std() == pytest.approx(8.0, rel=0.15)
    for seed in range(50):
        device, _ = varied(PEPPER, np.random.default_rng(seed), CALM)
        place, nominal = np.asarray(device.positions), np.asarray(PEPPER.positions)
        assert np.abs(place / place.std() - nominal / nominal.std()).max() * nominal.std() < 0.002
        assert abs(device.pattern - PEPPER.pattern) >= OWN_PATTERN  # never the one of the file
    calm = replace(half, calm=1.0, families=("anechoic",))
    assert not same(calm.recording(0), replace(calm, calm=0.0).recording(0))
    assert same(calm.recording(0), replace(calm, seconds=0.8).recording(0))


def test_who_talks_is_of_the_part_that_was_asked_for() -> None:
    for part in ("train", "valid", "test"):
        allowed = set(split_speakers(VOICES.n_speakers, part))
        scenes = replace(DRY, speakers=part, families=("anechoic",), seconds=0.4)
        heard = {who for number in range(8) for who in scenes.recording(number).speakers}
        assert heard <= allowed
        assert len(heard) > 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_label_of_an_easy_scene_is_where_the_sound_comes_from(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near, at the array's height, without noise: what is left are rooms, devices and reflectors."""

    def near(azimuth: float, *_: Any) -> PointSource:
        return PointSource(0.5 * unit_vector(azimuth), -unit_vector(azimuth), 0.8)

    def noiseless(_: Scenes, speech: NDArray[np.float32], *__: Any) -> NDArray[np.float32]:
        return speech

    monkeypatch.setattr(module, "talker", near)
    monkeypatch.setattr(Scenes, "_noisy", noiseless)
    scenes = replace(SHORT, families=(family,), two_sources=0.0, seconds=0.6)
    srp = SrpPhat(RESPEAKER, RESPEAKER.frame_length)
    errors, azimuths = [], []
    for number in range(10):
        recording = as_recording(scenes.recording(number), "", RESPEAKER)
        talking = recording.n_sources > 0
        label = recording.azimuth[talking, 0]
        errors.append(distance(decode(srp(recording.frames()))[talking], label))
        azimuths.append(label[0])
    error = np.concatenate(errors)
    assert np.median(error) < 4
    assert (error <= 12).mean() > 0.85
    assert len(set((np.array(azimuths) // 90).tolist())) == 4  # every quadrant was tried


@pytest.mark.parametrize("name", builtin_arrays())
def test_every_array_hears_scenes(name: str) -> None:
    array = load_array(name)
    for number in range(2):
        recording = Scenes(array, (VOICES, Monotone()), DRY.families, seconds=0.4).recording(number)
        assert recording.samples.shape == (array.n_mics, int(0.4 * array.sample_rate))
        assert np.isfinite(recording.samples).all()
        assert (recording.samples.std(axis=1) > 1e-5).all()


# ---------------------------------------------------------------------------------------------- devices


@pytest.mark.parametrize("name", builtin_arrays())
def test_devices_vary_within_what_is_built(name: str) -> None:
    array = load_array(name)
    nominal = np.asarray(array.positions)
    scales, off, patterns = [], [], []
    for seed in range(200):
        device, late = varied(array, np.random.default_rng(seed))
        place = np.asarray(device.positions)
        scales.append(float((place * nominal).sum() / (nominal**2).sum()))
        off.append(np.abs(place - scales[-1] * nominal).max())
        patterns.append(device.pattern)
        assert (device.sample_rate, device.yaw, device.n_mics) == (
            array.sample_rate,
            array.yaw,
            array.n_mics,
        )
        assert len(device.facing) == array.n_mics
        assert late == replace(array, pattern=round(device.pattern, 1))
    assert max(off) < 0.01  # metres
    assert np.median(off) > 0.0005
    speed = SPEED_OF_SOUND / np.array(scales)
    slack = 343 * 0.01 / np.sqrt((nominal**2).sum())  # the shifts change the fit a little
    assert speed.min() > 331 - slack
    assert speed.max() < 355 + slack
    assert np.ptp(speed) > 15
    assert 0.6 <= min(patterns) < 0.63
    assert 0.97 < max(patterns) <= 1.0


def test_the_files_own_pattern_is_never_drawn() -> None:
    directional = [PEPPER, replace(RESPEAKER, pattern=0.8)]
    for array in directional:
        patterns = np.array([varied(array, np.random.default_rng(seed))[0].pattern for seed in range(600)])
        apart = np.abs(patterns - array.pattern)
        assert apart.min() >= OWN_PATTERN
        assert apart.min() < 1.2 * OWN_PATTERN  # and nothing more is left out
    around = [varied(RESPEAKER, np.random.default_rng(seed))[0].pattern for seed in range(500)]
    assert max(around) > 1 - OWN_PATTERN  # omnidirectional ones may be drawn as they are


def test_cases_shade_what_is_behind_a_microphone() -> None:
    outward = np.rad2deg(np.arctan2(*np.asarray(RESPEAKER.positions)[:, 1::-1].T))
    turned = 0
    for seed in range(200):
        device, _ = varied(RESPEAKER, np.random.default_rng(seed))
        turned += bool(np.median(distance(np.array(device.facing), outward)) < 30)
        pepper, _ = varied(PEPPER, np.random.default_rng(seed))
        assert np.abs(pepper.facing).max() < 60  # directional ones stay as the file says, about
    assert 60 < turned < 140


def test_recorders_differ_in_level_and_between_microphones() -> None:
    noise = np.tile(np.random.default_rng(0).standard_normal(8000).astype(np.float32), (4, 1))
    levels, between, cut = [], [], []
    for seed in range(150):
        heard = recorded(RESPEAKER, noise, np.random.default_rng(seed))
        level = np.array([loudness(row) for row in heard])
        levels.append(loudness(heard))
        between.append(20 * np.log10(level.max() / level.min()))
        cut.append(np.abs(heard).max() > 0.985)
    kept = np.array(levels)[~np.array(cut)]
    assert 0.0028 < kept.min() < 0.006
    assert 0.12 < kept.max() < 0.25
    assert 0.02 < np.mean(cut) < 0.16
    assert 2 < np.median(between) < 6
    assert max(between) < 10  # dB: 6 of gain, the rest of slopes


# ------------------------------------------------------------------------------------------------ noise


@pytest.mark.parametrize("tilt", [-0.3, 0.0, 1.2, 2.0])
def test_coloured_noise_has_its_slope_and_power_one(tilt: float) -> None:
    white = np.random.default_rng(0).standard_normal((2, 2**15))
    noise = module._coloured(white, 16000, tilt)
    assert loudness(noise) == pytest.approx(1.0, abs=1e-4)
    hertz, power = welch(noise, 16000, nperseg=1024)
    level = [power[:, (hertz > f / 1.2) & (hertz < f * 1.2)].mean() for f in (500.0, 4000.0)]
    assert np.log2(level[0] / level[1]) == pytest.approx(3 * tilt, abs=0.4)


@pytest.mark.parametrize("rate", [16000, 44100, 48000])
def test_disturbances_are_of_every_kind_and_long_enough(rate: int) -> None:
    crest = []
    for seed in range(12):
        sound = module.disturbance(6000, rate, VOICES, "train", np.random.default_rng(seed))
        assert sound.shape == (6000,)
        assert sound.dtype == np.float32
        assert np.isfinite(sound).all()
        assert loudness(sound) > 0.05
        crest.append(float(np.abs(sound).max()) / loudness(sound))
    assert np.ptp(crest) > 1


@pytest.mark.parametrize("crowds", [0.0, 1.0])
def test_noise_is_as_loud_as_was_drawn(crowds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """SNR: a quarter of the scenes from -12 to 10 dB, the others from 10 to 42."""
    monkeypatch.setattr(module, "CROWDS", crowds)
    speech = np.random.default_rng(0).standard_normal((4, 8000)).astype(np.float32)
    scenes = replace(SHORT, seconds=0.5, voices=(Monotone(),))
    decibel = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        noise = scenes._noisy(speech, "anechoic", RESPEAKER, RESPEAKER, None, rng) - speech
        decibel.append(-20 * np.log10(loudness(noise) / loudness(speech)))
    snr = np.array(decibel)
    assert snr.min() > -12.5
    assert snr.max() < 42.5
    assert (snr < 10).mean() == pytest.approx(0.25, abs=0.1)
    assert (snr > 30).mean() > 0.15


@pytest.mark.parametrize("crowds", [0.0, 1.0])
def test_a_stretch_of_silence_is_a_scene_of_noise(crowds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CROWDS", crowds)  # of people who say nothing
    for number in range(2):
        recording = replace(DRY, voices=(Monotone(level=0.0),), seconds=0.5).recording(number)
        assert np.isnan(recording.azimuth).all()
        assert len(recording.frame_ids) == len(range(0, 8000 - 2730, 1365))
        assert np.isfinite(recording.samples).all()
        assert recording.samples.std() > 1e-4


# ---------------------------------------------------------------------------------------------- crowds


def crowded(monkeypatch: pytest.MonkeyPatch) -> list[list[NDArray[np.float32]]]:
    """Where the voices of every crowd from now on are kept."""
    crowds: list[list[NDArray[np.float32]]] = []

    def noted(array: Any, voices: list[NDArray[np.float32]], rng: np.random.Generator) -> Any:
        crowds.append(voices)
        return crowd_noise(array, voices, rng)

    monkeypatch.setattr(module, "crowd_noise", noted)
    return crowds


def test_some_scenes_have_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    crowds = crowded(monkeypatch)
    speech = np.zeros((4, 3200), np.float32)
    scenes = replace(SHORT, seconds=0.2, voices=(Monotone(),))
    for seed in range(200):
        scenes._noisy(speech, "anechoic", RESPEAKER, RESPEAKER, None, np.random.default_rng(seed))
    assert len(crowds) / 200 == pytest.approx(module.CROWDS, abs=0.07)
    assert {len(voices) for voices in crowds} <= set(range(3, 17))
    assert len({len(voices) for voices in crowds}) > 8
    for voices in crowds:
        assert {voice.shape for voice in voices} == {(3200,)}
        assert [loudness(voice) for voice in voices] == pytest.approx([1.0] * len(voices), rel=1e-5)


@pytest.mark.parametrize("family", DRY.families)
def test_a_scene_with_a_crowd_is_its_seed_and_its_number(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CROWDS", 1.0)
    crowds = crowded(monkeypatch)
    scenes = replace(SHORT, families=(family,), seconds=0.4)
    made = [scenes.recording(number) for number in range(3)]
    assert len(crowds) == 3
    for number in (2, 0, 1):
        assert same(replace(scenes, voices=(SyntheticVoices(),)).recording(number), made[number])
    for recording in made:
        assert np.isfinite(recording.samples).all()
        assert (recording.samples.std(axis=1) > 1e-4).all()
    monkeypatch.setattr(module, "CROWDS", 0.0)
    alone = scenes.recording(1)
    assert len(crowds) == 6
    assert not np.array_equal(alone.samples, made[1].samples)
    assert np.array_equal(alone.positions, made[1].positions)  # who talks and where is drawn before
    assert alone.speakers == made[1].speakers
    assert np.array_equal(alone.talking, made[1].talking)


def test_whether_a_scene_has_a_crowd_is_its_seed_and_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CROWDS", 0.5)
    crowds = crowded(monkeypatch)
    scenes = replace(SHORT, voices=(Monotone(),), families=("anechoic",), seconds=0.3)
    made = [scenes.recording(number) for number in range(8)]
    assert 1 <= len(crowds) <= 7
    assert all(same(scenes.recording(number), made[number]) for number in range(8))


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_bystanders_are_of_the_part_that_was_asked_for(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CROWDS", 1.0)
    asked: list[int] = []

    @dataclass(frozen=True)
    class Roll(Monotone):
        """Voices that note who was asked to speak."""

        def speak(self, speaker: int, n_samples: int, rng: np.random.Generator) -> NDArray[np.float32]:
            asked.append(speaker)
            return super().speak(speaker, n_samples, rng)

    voices = Roll(n_speakers=40)
    scenes = replace(SHORT, speakers=part, voices=(voices,), families=("anechoic",), seconds=0.3)
    talkers = [scenes.recording(number).speakers for number in range(6)]
    assert len(asked) > sum(map(len, talkers)) + 12
    assert set(asked) <= set(split_speakers(40, part))
    assert len(set(asked)) > 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"families": ("hybrid", "cathedral")}, "no acoustics called 'cathedral'; known: hybrid, pyroom, an"),
        ({"families": ()}, "at least one family"),
        ({"voices": ()}, "one voice"),
        ({"speakers": "everybody"}, "no part of the speakers called 'everybody'; known: train, valid, test"),
        ({"voices": (VOICES, SyntheticVoices(2))}, "2 speakers are too few"),
        ({"separation": 180.0}, "cannot be 180 degrees apart"),
        ({"separation": float("nan")}, "cannot be nan degrees apart"),
        ({"calm": 1.5}, "share of calm scenes must be from 0 to 1, got 1.5"),
        ({"calm": float("nan")}, "from 0 to 1, got nan"),
        ({"seconds": 0.17}, "scenes of 0.17 s hold no frame of respeaker-usb-4"),
    ],
)
def test_impossible_scenes_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        replace(SHORT, **change)
    replace(SHORT, two_sources=0.0, separation=400.0)  # nobody to keep apart


def test_three_talkers_are_apart_and_the_other_scenes_stay_as_they_were() -> None:
    talkative = replace(DRY, families=("anechoic",), two_sources=0.3, three_sources=0.3, seconds=1.0)
    made = [talkative.recording(number) for number in range(12)]
    n_talkers = [recording.positions.shape[1] for recording in made]
    assert set(n_talkers) == {1, 2, 3}
    for recording in made:
        places = recording.positions[0]
        angles = np.rad2deg(np.arctan2(places[:, 1], places[:, 0]))
        apart = distance(angles[:, None], angles[None]) + 360 * np.eye(len(angles))
        assert apart.min() >= talkative.separation
        assert recording.azimuth.shape[1] == max(2, len(places))
    fewer = replace(talkative, three_sources=0.0)
    assert all(same(fewer.recording(k), made[k]) for k, n in enumerate(n_talkers) if n < 3)


def test_three_talkers_need_room() -> None:
    with pytest.raises(DataError, match="up to 90 degrees apart"):
        replace(DRY, three_sources=0.1, separation=100.0)
