"""Checks: every array mixed up and found out, every fault of a channel, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.waves import delayed
from tytoalba.diagnose.channels import Take
from tytoalba.diagnose.check import CheckResult, check_array, describe, take
from tytoalba.diagnose.search import gather
from tytoalba.diagnose.trials import Trial, evaluate, summary
from tytoalba.diagnose.wiring import Wiring
from tytoalba.errors import AudioError, TytoError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, builtin_arrays, load_array
from tytoalba.signal.audio import frames
from tytoalba.signal.srp import SrpPhat

Sound = NDArray[np.float32]
SQUARE = load_array("respeaker-usb-4")
AROUND = (10.0, 100.0, 190.0, 280.0)


def recorded(array: MicArray, azimuth: float, seed: int = 0, seconds: float = 1.5) -> Sound:
    """Noise from a direction, weaker from another a little later, and each microphone's own."""
    rng = np.random.default_rng([seed, round(azimuth)])
    sound = rng.standard_normal(int(seconds * array.sample_rate))
    direct = delayed(array, sound, azimuth, band=(0.0, 7999.0))
    clean = direct + 0.4 * delayed(array, sound, azimuth + 140, band=(0.0, 7999.0), later=0.004)
    return np.asarray(0.05 * (clean + 0.15 * rng.standard_normal(clean.shape)), np.float32)


def takes(
    array: MicArray, wiring: Wiring | None = None, at: tuple[float, ...] = AROUND, free: bool = False
) -> list[Take]:
    """Recordings of an array that is wired and mounted otherwise than its file says."""
    built = wiring.applied(array) if wiring else array
    return [take(f"{a:g}", recorded(built, a), array, None if free else a) for a in at]


def changed(change: Any, array: MicArray = SQUARE) -> CheckResult:
    """The checkup of recordings whose samples were changed."""
    return check_array([replace(t, samples=change(t.samples.copy())) for t in takes(array)], array)


def faults(found: CheckResult) -> list[str]:
    return [finding.what for finding in found.findings if finding.kind == "fault"]


def kinds(found: CheckResult) -> dict[str, str]:
    return {finding.what: finding.kind for finding in found.findings}


# ---- order and mounting


@pytest.mark.parametrize("name", builtin_arrays())
def test_any_order_of_any_array_is_found(name: str) -> None:
    array = load_array(name)
    rng = np.random.default_rng(len(name))
    order = rng.permutation(array.n_mics)
    truth = Wiring(tuple(order.tolist()))
    found = check_array(takes(array, truth), array)
    assert found.verdict is not None
    assert found.verdict.sure
    assert truth in found.verdict.alternatives
    assert found.corrected is not None
    assert same_places(found.corrected, truth.applied(array))


def same_places(one: MicArray, other: MicArray) -> bool:
    """Whether microphones are at the same places, but for a shift of all and a degree of turn."""
    a, b = (array.coordinates - array.coordinates.mean(axis=0) for array in (one, other))
    return bool(np.linalg.norm(a - b, axis=1).max() < 0.0025) and one.channels == other.channels


@pytest.mark.parametrize("name", ["linear-4", "pepper", "respeaker-6mic"])
def test_an_array_as_its_file_says_is_fine(name: str) -> None:
    array = load_array(name)
    found = check_array(takes(array), array)
    assert not found.faulty
    assert found.corrected is None
    assert kinds(found)["order and mounting as in the array file"] == "fine"


@pytest.mark.parametrize(("mirrored", "turn"), [(False, 130.0), (True, 0.0), (True, 237.0), (False, 30.0)])
def test_the_corrected_array_locates_where_it_was(mirrored: bool, turn: float) -> None:
    array = replace(load_array("pepper"), yaw=15.0)
    built = Wiring((0, 1, 2, 3), mirrored, turn)
    found = check_array(takes(array, built), array)
    assert found.faulty
    assert found.corrected is not None
    locator = SrpPhat(found.corrected, array.frame_length)
    for azimuth in (33.0, 205.0):
        maps = locator(frames(recorded(built.applied(array), azimuth, seed=1), array.frame_length, 4096))
        assert distance(float(maps.mean(axis=0).argmax()), azimuth) <= 4


def test_a_slight_turn_is_measured_and_pointing_errors_are_not() -> None:
    plain = (0, 1, 2, 3)
    found = check_array(takes(SQUARE, Wiring(plain, turn=16.0)), SQUARE)
    assert found.corrected is not None
    assert found.corrected.yaw == pytest.approx(16.0, abs=2.0)
    assert not check_array(takes(SQUARE, Wiring(plain, turn=5.0)), SQUARE).faulty


def test_an_order_and_a_turn_together_need_the_longer_search() -> None:
    truth = Wiring((1, 0, 2, 3), turn=45.0)
    recordings = takes(SQUARE, truth)
    found = check_array(recordings, SQUARE, turned=True)
    assert found.corrected is not None
    assert same_places(found.corrected, truth.applied(SQUARE))
    short = check_array(recordings, SQUARE)
    assert short.corrected is None
    assert "four known directions" in short.findings[-1].remedy


def test_a_rectangle_that_is_nearly_square_is_taken_to_be_mounted_as_filed() -> None:
    pepper = load_array("pepper")
    truth = Wiring((1, 3, 0, 2))  # nearly what turning it by 90 degrees gives
    found = check_array(takes(pepper, truth), pepper)
    assert found.corrected is not None
    assert same_places(found.corrected, truth.applied(pepper))
    note = next(f for f in found.findings if f.what == "other wirings")
    assert "turned by" in note.evidence
    assert "mounted as the array file says" in note.evidence
    assert check_array(takes(pepper, truth), pepper, turned=True).corrected is None


def test_one_direction_leaves_alternatives_which_are_named() -> None:
    found = check_array(takes(SQUARE, at=(0.0, 0.0, 0.0)), SQUARE)
    assert not found.faulty
    assert kinds(found)["other wirings"] == "cannot tell"
    text = next(f.evidence for f in found.findings if f.what == "other wirings")
    assert "channel 1 has the microphone of channel 2" not in text  # front left and front right
    assert "upside down" in text
    wrong = check_array(takes(SQUARE, Wiring((2, 1, 0, 3)), at=(0.0, 0.0, 0.0)), SQUARE)
    assert wrong.corrected is None


def test_a_roughly_given_direction_does_not_swap_microphones() -> None:
    """Seen from 30 degrees, microphones 4 and 5 of the hexagon are level: from 27 or 33 one is nearer."""
    hexagon = load_array("respeaker-6mic")
    found = check_array(
        [take("x", recorded(hexagon, 33.0, seed), hexagon, 27.0) for seed in range(3)], hexagon
    )
    assert found.verdict is not None
    assert not found.verdict.sure
    assert not found.faulty


def test_sound_from_nowhere_tells_nothing() -> None:
    rng = np.random.default_rng(0)
    noise = [np.asarray(0.1 * rng.standard_normal((4, 32000)), np.float32) for _ in AROUND]
    found = check_array([take("noise", x, SQUARE, a) for x, a in zip(noise, AROUND, strict=True)], SQUARE)
    assert found.verdict is not None
    assert not found.verdict.sure
    assert found.corrected is None
    assert kinds(found)["order and mounting"] == "cannot tell"


def test_directions_that_contradict_each_other_tell_nothing() -> None:
    shuffled = [
        replace(t, azimuth=a) for t, a in zip(takes(SQUARE), (10.0, 280.0, 100.0, 190.0), strict=True)
    ]
    found = check_array(shuffled, SQUARE)
    assert found.verdict is not None
    assert not found.verdict.sure


# ---- free speech


def test_free_speech_finds_the_order_but_for_congruent_ones() -> None:
    truth = Wiring((1, 0, 2, 3))
    found = check_array(takes(SQUARE, truth, at=(20.0, 75.0, 200.0, 310.0), free=True), SQUARE)
    assert found.faulty
    assert found.corrected is None
    assert found.verdict is not None
    assert truth in found.verdict.alternatives
    assert len(found.verdict.alternatives) == 8
    (finding,) = [f for f in found.findings if f.kind == "fault"]
    assert "one of 8" in finding.evidence
    assert "known directions" in finding.remedy


def test_free_speech_in_order_names_what_it_cannot_tell() -> None:
    found = check_array(takes(SQUARE, at=(20.0, 75.0, 200.0, 310.0), free=True), SQUARE)
    assert not found.faulty
    assert kinds(found)["order as in the array file"] == "fine"
    assert kinds(found)["other wirings"] == kinds(found)["mounting"] == "cannot tell"


def test_free_speech_suffices_for_a_crooked_array() -> None:
    line, truth = load_array("linear-4"), Wiring((3, 1, 2, 0))
    found = check_array(takes(line, truth, at=(20.0, 60.0, 300.0, 330.0), free=True), line)
    assert found.corrected is not None
    assert same_places(found.corrected, truth.applied(line))


# ---- channels


def test_a_dead_channel_is_left_out_and_the_others_are_put_in_order() -> None:
    def kill(x: Sound) -> Sound:
        x[2] = 0
        return x[[1, 0, 2, 3]]

    found = changed(kill)
    assert "channel 3 is dead" in faults(found)
    assert found.corrected is not None
    assert found.corrected.channels == (1, 2, 4)
    assert found.corrected.positions == tuple(SQUARE.positions[k] for k in (1, 0, 3))


def test_a_channel_far_below_the_others_is_dead() -> None:
    assert faults(changed(lambda x: x * np.array([[1], [1], [1], [1e-3]], np.float32))) == [
        "channel 4 is dead"
    ]


@pytest.mark.parametrize("gain", [1.0, 0.3, -0.5])
def test_a_copied_channel_is_found_whatever_its_gain(gain: float) -> None:
    def copy(x: Sound) -> Sound:
        x[3] = gain * x[1]
        return x

    assert "channels 2 and 4 carry the same signal" in faults(changed(copy))


def test_clipping_uneven_gain_hum_and_dc() -> None:
    assert faults(
        changed(lambda x: np.clip(x * [[1.0], [20.0], [1.0], [1.0]], -1, 1).astype(np.float32))
    ) == [
        "channel 2 clips",
        "channel 2 is much louder than the others",
    ]
    quiet = changed(lambda x: x * np.array([[0.15], [1], [1], [1]], np.float32))
    assert faults(quiet) == ["channel 1 is much quieter than the others"]
    t = np.arange(24000) / 16000
    assert faults(
        changed(lambda x: x + np.outer([0, 0, 1, 0], 0.5 * np.sin(314 * t)).astype(np.float32))
    ) == ["channel 3 is mostly DC or hum"]
    offset = np.array([[0], [0], [0], [0.4]], np.float32)
    assert faults(changed(lambda x: x + offset)) == ["channel 4 is mostly DC or hum"]


@pytest.mark.parametrize("name", ["respeaker-usb-4", "respeaker-6mic"])
def test_an_inverted_channel_is_found_and_does_not_disturb_the_order(name: str) -> None:
    array = load_array(name)
    signs = np.ones((array.n_mics, 1), np.float32)
    signs[1] = -1
    found = changed(lambda x: signs * x, array)
    (fault,) = faults(found)
    assert fault == f"polarity of channel {array.channels[1]} is inverted"
    assert kinds(found)["order and mounting as in the array file"] == "fine"


def test_half_of_the_channels_inverted_is_one_or_the_other_half() -> None:
    (fault,) = faults(changed(lambda x: x * np.array([[1], [-1], [1], [-1]], np.float32)))
    assert fault == "polarity of channels 2, 4 is inverted, or that of all others"


def test_fewer_than_two_channels_left_tell_nothing() -> None:
    found = changed(lambda x: x * np.array([[1], [0], [0], [0]], np.float32))
    assert len(faults(found)) == 3
    assert found.corrected is None
    assert kinds(found)["order"] == "cannot tell"


# ---- sample rates


def test_a_header_that_differs_from_the_array_is_said() -> None:
    recordings = [replace(t, file_rate=48000) for t in takes(SQUARE)]
    assert faults(check_array(recordings, SQUARE)) == ["sample rate of the recordings"]


def test_lags_beyond_the_geometry_tell_a_wrong_rate() -> None:
    fast = replace(SQUARE, sample_rate=48000)
    recordings = [take("x", recorded(fast, a), SQUARE, a) for a in AROUND]
    found = check_array(recordings, SQUARE)
    assert faults(found) == ["sound was recorded at about 48000 Hz, not 16000"]


def test_lags_too_short_may_be_talkers_above() -> None:
    slow = replace(load_array("pepper"), sample_rate=16000)
    array = replace(slow, sample_rate=48000)
    found = check_array([take("x", recorded(slow, a, seconds=4.5), array, a) for a in AROUND], array)
    assert not found.faulty
    assert "talkers far above" in next(f.evidence for f in found.findings if f.what == "sample rate")


# ---- refusals and words


def test_recordings_that_cannot_be_checked_are_refused() -> None:
    good = recorded(SQUARE, 0.0)
    broken = good.copy()
    broken[1, 7] = np.nan
    for samples, message in (
        (broken, "NaN"),
        (good[:3], "3 channels"),
        (good[:, :5000], "too short"),
        (np.zeros_like(good), "silent"),
        (good[:, :0], "empty"),
    ):
        with pytest.raises(AudioError, match=message):
            take("x", samples, SQUARE, 0.0)
    with pytest.raises(TytoError, match="degrees"):
        take("x", good, SQUARE, float("nan"))
    with pytest.raises(TytoError, match="no recordings"):
        check_array([], SQUARE)


def test_few_blocks_are_never_sure() -> None:
    short = [take("x", recorded(SQUARE, a, seconds=0.5), SQUARE, a) for a in AROUND]
    found = check_array(short, SQUARE)
    assert found.verdict is not None
    assert not found.verdict.sure
    (finding,) = [f for f in found.findings if f.what == "order and mounting"]
    assert finding.confidence == "too little speech"


@pytest.mark.parametrize("name", builtin_arrays())
def test_takes_of_one_second_suffice(name: str) -> None:
    array = load_array(name)
    order = np.random.default_rng(len(name)).permutation(array.n_mics)
    built = Wiring(tuple(order.tolist())).applied(array)
    found = check_array([take("", recorded(built, a, seconds=1.0), array, a) for a in AROUND], array)
    assert found.verdict is not None
    assert found.verdict.sure
    assert found.corrected is not None
    assert same_places(found.corrected, built)


@given(data=st.data())
@settings(max_examples=25)
def test_nothing_is_sure_from_too_little_speech(data: Any) -> None:
    """However clear the sound: some voiced frames in few takes, at known directions or not."""
    array = load_array(data.draw(st.sampled_from(["linear-4", "respeaker-usb-4", "respeaker-4mic-hat"])))
    wiring = Wiring(tuple(data.draw(st.permutations(range(array.n_mics)))))
    signs = np.array([[data.draw(st.sampled_from([1.0, -1.0]))], [1.0], [1.0], [1.0]], np.float32)
    free = data.draw(st.booleans())
    talks = []
    for seed, azimuth in enumerate(data.draw(st.lists(st.sampled_from(AROUND), min_size=1, max_size=4))):
        sound = signs * recorded(wiring.applied(array), azimuth, seed, seconds=1.0)
        voiced = data.draw(st.sampled_from([0.15, 0.3, 0.5, 0.7, 1.0]))
        sound[:, round(voiced * array.sample_rate) :] *= 1e-3
        talks.append(take("", sound, array, None if free else azimuth))
    n_blocks = [len(gather(t.samples, array).gcc) for t in talks]
    found = check_array(talks, array)
    assert found.verdict is not None
    assert found.verdict.enough_speech == (sum(n_blocks) - (1 if free else len(talks)) >= 6)
    if not found.verdict.enough_speech:
        assert not found.verdict.sure
        assert found.verdict.margin is None
        assert found.corrected is None
        assert kinds(found)["order and mounting"] == "cannot tell"
        said = [f"{f.confidence} {f.evidence}" for f in found.findings]
        assert not any("standard errors" in text for text in said)
    if sum(n_blocks) < 6:
        assert not any(f.confidence.startswith("sure") for f in found.findings)


def test_blocks_are_smaller_in_short_takes_only() -> None:
    def blocks(seconds: float) -> int:
        return len(gather(recorded(SQUARE, 0.0, seconds=seconds), SQUARE).gcc)

    n_frames = [len(frames(recorded(SQUARE, 0.0, seconds=s), 2730, 1365)) for s in (0.5, 1.0, 1.5, 3.0)]
    assert n_frames == [4, 10, 16, 34]
    assert [blocks(s) for s in (0.5, 1.0, 1.5, 3.0)] == [2, 4, 4, 8]


def test_all_is_named_by_the_channels_of_the_recording() -> None:
    """Channels 1 to 4 in the array file; a recording of just the four has channels 0 to 3."""
    swapped = Wiring((1, 0, 2, 3)).applied(SQUARE)
    for channels, words in (
        ((1, 2, 3, 4), "channel 1 has the microphone of channel 2 (number 1)"),
        ((0, 1, 2, 3), "channel 0 has the microphone of channel 1, channel 1 has"),
    ):
        talks = [take("", recorded(swapped, a), SQUARE, a, channels=channels) for a in AROUND]
        found = check_array(talks, SQUARE)
        assert found.channels == channels
        assert any(words in finding.evidence for finding in found.findings)
        mixed = check_array([*talks, replace(talks[0], channels=(7, 8, 9, 10))], SQUARE)
        assert mixed.channels == SQUARE.channels


def test_wirings_in_words() -> None:
    assert describe(Wiring((0, 1)), (0, 1)) == "the array file as it is"
    assert describe(Wiring((0, 1), True, 45.0), (0, 1)) == "upside down, turned by 45 degrees"
    assert describe(Wiring((1, 0)), (4, 5)) == (
        "channel 4 has the microphone of channel 5 (number 1), "
        "channel 5 has the microphone of channel 4 (number 0)"
    )


# ---- simulated rooms


def test_mixed_up_in_a_simulated_room() -> None:
    (trial,) = evaluate(load_array("linear-4"), 1, seed=3)
    assert trial.outcome == "right"
    assert trial.alarms == ()


def test_trials_are_counted() -> None:
    plain = Wiring((0, 1))
    trials = [
        Trial(plain, "right", True, True, 9.0, 1.0, ()),
        Trial(plain, "wrong", False, False, 5.0, 0.9, ("channel 0 is dead",)),
        Trial(plain, "cannot tell", False, True, 1.0, 0.4, ()),
        Trial(plain, "right", False, True, 7.0, 1.0, ()),
    ]
    found = summary(trials)
    assert (found["right"], found["wrong"], found["cannot_tell"], found["undecided"]) == (2, 1, 1, 1)
    assert (found["right_percent"], found["wrong_percent"]) == (50.0, 25.0)
    assert (found["best_guess_right"], found["false_alarms"]) == (3, 1)
    assert (found["least_margin"], found["median_margin"], found["least_fit"]) == (1.0, 6.0, 0.4)


def test_an_evaluation_says_what_it_needs() -> None:
    with pytest.raises(TytoError, match="at least 1 trial"):
        evaluate(SQUARE, 0)
    with pytest.raises(TytoError, match="nothing called"):
        evaluate(SQUARE, 1, mixup="cables")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_arrays())
def test_the_bar_of_every_array(name: str) -> None:
    """The claim in full: at least 99 % right, below 1 % wrong, with four recordings of 2.5 s."""
    found = summary(evaluate(load_array(name), 100))
    assert found["right_percent"] >= 99.0
    assert found["wrong"] == 0
    assert found["false_alarms"] == 0
