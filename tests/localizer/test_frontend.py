"""The ear: what of a sound is learned from, which frames are heard together, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.localizers import ARRAY, plane_wave, prior
from tytoalba.data.recording import Recording
from tytoalba.errors import AudioError, TytoError
from tytoalba.localizer.frontend import Ear, Heard, with_neighbours
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import BLOCK, frames, spoken

EAR = Ear(ARRAY, prior().gcc)
LENGTH = ARRAY.frame_length
LOUD = plane_wave(ARRAY, 50.0, 0.7)


# ---- frames heard together


@given(st.lists(st.booleans(), max_size=14), st.integers(0, 5), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_neighbours_are_averaged_as_by_brute_force(loud: list[bool], context: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    maps, fallback = rng.random((2, len(loud), 7)).astype(np.float32)
    heard = [Heard(*row) for row in zip(maps, fallback, loud, strict=True)]
    found = list(with_neighbours(iter(heard), context))
    assert [frame.loud for frame in found] == loud
    sounding = np.array(loud, bool)
    for t, frame in enumerate(found):
        around = sounding & (np.abs(np.arange(len(loud)) - t) <= context)
        if not loud[t]:
            around = np.arange(len(loud)) == t  # silence has nothing to average, and says nothing
        assert np.allclose(frame.maps, maps[around].mean(axis=0), atol=1e-6)
        assert np.allclose(frame.fallback, fallback[around].mean(axis=0), atol=1e-6)
        assert frame.maps.dtype == np.float32


def test_answers_come_as_late_as_the_context_and_no_later() -> None:
    given_out = 0

    def heard() -> Iterator[Heard]:
        nonlocal given_out
        for _ in range(10):
            given_out += 1
            yield Heard(np.ones(3, np.float32), np.ones(3, np.float32), True)

    for context in (0, 1, 4):
        given_out = 0
        ahead = [given_out for _ in with_neighbours(heard(), context)]
        assert ahead == [min(10, t + 1 + context) for t in range(10)]


# ---- what there is to learn from


def test_pauses_and_silence_are_not_learned_from() -> None:
    level = np.array([1.0, 0.5, 0.2, 0.26, 1.0, 1e-5])
    cut = level[:, None, None] * np.ones((6, 4, 10))
    assert spoken(cut).tolist() == [True, True, False, True, True, False]
    assert spoken(1e-4 * cut).tolist() == [False] * 6  # -80 dB
    assert spoken(1e-4 * cut, silence_db=-100.0).tolist() == [True, True, False, True, True, False]
    assert spoken(np.zeros((3, 4, 10))).tolist() == [False] * 3
    assert spoken(np.empty((0, 4, 10))).shape == (0,)


def test_a_lesson_is_the_features_of_the_frames_with_sound() -> None:
    quiet = LOUD.copy()
    quiet[:, 4000:] *= 0.01
    cut = frames(quiet, LENGTH, LENGTH // 2)
    voiced = spoken(cut)
    assert 0 < voiced.sum() < len(cut)
    assert np.array_equal(EAR.lesson(quiet), EAR.features(cut[voiced]))
    assert np.array_equal(EAR.lesson(quiet.astype(np.float64)), EAR.lesson(quiet))
    with pytest.raises(AudioError, match=r"nothing to learn from: all 7 frames are silent \(below -60 dB\)"):
        EAR.lesson(np.zeros((4, 4 * LENGTH), np.float32))


def test_a_file_is_heard_as_its_samples(tmp_path: Path) -> None:
    six = np.zeros((6, LOUD.shape[1]), np.float32)
    six[list(ARRAY.channels)] = LOUD
    six[0], six[5] = 0.5 * LOUD[0], 0.25 * LOUD[0]  # what the array also sends
    path = tmp_path / "loud.wav"
    soundfile.write(path, six.T, ARRAY.sample_rate, subtype="FLOAT")
    assert np.array_equal(EAR.lesson(path), EAR.lesson(LOUD))
    assert np.array_equal(np.concatenate(list(EAR.blocks(path)), axis=1), LOUD)


def test_long_sound_is_heard_in_blocks() -> None:
    long = np.tile(LOUD, (1, 7))
    blocks = list(EAR.blocks(long))
    assert max(block.shape[1] for block in blocks) == BLOCK < long.shape[1]
    assert np.array_equal(np.concatenate(blocks, axis=1), long)


def test_batches_say_which_frames_have_sound() -> None:
    sound = LOUD.copy()
    sound[:, : 2 * LENGTH] = 0
    (X, loud), *others = EAR.batches([sound], -60.0)
    assert not others
    assert loud.tolist() == [False] * 3 + [True] * (len(loud) - 3)
    assert np.array_equal(X, EAR.features(frames(sound, LENGTH, LENGTH // 2)[loud]))
    ((X, loud),) = EAR.batches([sound], 0.0)
    assert X.shape == (0, EAR.gcc.n_features)
    assert not loud.any()


@pytest.mark.parametrize(
    ("sound", "complaint"),
    [
        (LOUD[:3], r"samples must be \(4, n_samples\) at 16000 Hz for respeaker-usb-4, got shape \(3, "),
        (np.concatenate([LOUD, LOUD]), r"got shape \(8, "),
        (LOUD.T, "samples must be"),
        (LOUD[0], "samples must be"),
        (LOUD[:, : LENGTH - 1], "too short for one frame"),
        (LOUD[:, :0], "is empty"),
        (np.where(np.arange(LOUD.shape[1]) == 5000, np.nan, LOUD), "NaN or infinite, the first at 5000"),
        (np.where(np.arange(LOUD.shape[1]) == 5000, np.inf, LOUD), "NaN or infinite"),
        ((LOUD * 32768).astype(np.int16), "divide int16 by 32768"),
        (LOUD.astype(np.complex64), "floats in"),
    ],
)
def test_sound_that_cannot_be_used_is_refused(sound: Any, complaint: str) -> None:
    with pytest.raises(AudioError, match=complaint):
        EAR.lesson(sound)
    with pytest.raises(AudioError, match=complaint):
        list(EAR.batches(EAR.blocks(sound), -60.0))


def test_blocks_that_cannot_be_used_are_refused() -> None:
    six = np.concatenate([LOUD, LOUD[:2]])
    with pytest.raises(
        AudioError, match=r"blocks must be \(4, any length\) .* got 6 channels; .*select_channels"
    ):
        list(EAR.batches([six], -60.0))
    with pytest.raises(AudioError, match="got 3 channels"):
        list(EAR.batches([LOUD[:3]], -60.0))
    with pytest.raises(AudioError, match="a block has 3 channels"):
        list(EAR.batches([LOUD[:, :100], LOUD[:3]], -60.0))
    with pytest.raises(AudioError, match="NaN"):
        list(EAR.batches([LOUD, LOUD * np.nan], -60.0))
    with pytest.raises(AudioError, match="too short"):
        list(EAR.batches([LOUD[:, :9]] * 3, -60.0))


# ---- directions


def test_places_are_those_of_the_array_as_built() -> None:
    assert EAR.places(-30).tolist() == [330.0]
    assert EAR.places([400.0, 10]).tolist() == [40.0, 10.0]
    assert EAR.places(np.float64(7)).tolist() == [7.0]
    turned = Ear(ARRAY.rotated(30.0), EAR.gcc)
    assert turned.places([10.0, 90.0]).tolist() == [340.0, 60.0]


@pytest.mark.parametrize(
    "azimuth", [None, "left", float("nan"), float("inf"), [], [1.0, 2.0, 3.0], [[1.0]], [1.0, None], object()]
)
def test_places_that_are_none_are_refused(azimuth: Any) -> None:
    with pytest.raises(TytoError, match="azimuth must be degrees"):
        EAR.places(azimuth)


def recording(azimuth: Any, **changes: Any) -> Recording:
    places = np.asarray(azimuth, np.float64)
    made = Recording(
        "r", "s", ARRAY, np.arange(len(places)), places, lambda: LOUD, frame_length=LENGTH, hop=LENGTH // 2
    )
    return replace(made, **changes)


def test_labelled_frames_without_a_source_are_left_out() -> None:
    X, azimuth = EAR.labelled(recording([[50.0, np.nan], [np.nan, np.nan], [50.0, 90.0]]))
    cut = frames(LOUD, LENGTH, LENGTH // 2)
    assert np.array_equal(X, EAR.features(cut[[0, 2]]))
    assert np.array_equal(azimuth, [[50.0, np.nan], [50.0, 90.0]], equal_nan=True)
    turned = ARRAY.rotated(20.0)
    _, azimuth = Ear(turned, EAR.gcc).labelled(recording([[10.0]], array=turned))
    assert azimuth.tolist() == [[350.0]]


@pytest.mark.parametrize(
    "array",
    [
        load_array("pepper"),
        load_array("respeaker-6mic"),
        ARRAY.rotated(30.0),
        replace(ARRAY, sample_rate=48000),
    ],
)
def test_recordings_of_other_arrays_are_refused(array: Any) -> None:
    with pytest.raises(TytoError, match="r was recorded by another array than respeaker-usb-4, or mounted"):
        EAR.labelled(recording([[50.0]], array=array))


def test_frames_of_another_length_are_refused() -> None:
    with pytest.raises(AudioError, match="samples"):
        EAR.labelled(recording([[50.0]], frame_length=LENGTH // 2))
