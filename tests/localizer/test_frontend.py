"""What of a sound is learned from, where that is for the prior, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.helpers.localizers import ARRAY, prior
from tests.helpers.waves import plane_wave
from tytoalba.data.recording import Recording
from tytoalba.errors import AudioError, TytoError
from tytoalba.localizer.frontend import FrontEnd
from tytoalba.localizer.stream import sound_blocks
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import frames, spoken

FRONT = FrontEnd(ARRAY, prior())
LENGTH = ARRAY.frame_length
LOUD = plane_wave(ARRAY, 50.0, 0.7)


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
    assert np.array_equal(FRONT.lesson(quiet), FRONT.features(cut[voiced]))
    assert np.array_equal(FRONT.lesson(quiet.astype(np.float64)), FRONT.lesson(quiet))
    with pytest.raises(AudioError, match=r"nothing to learn from: all 7 frames are silent \(below -60 dB\)"):
        FRONT.lesson(np.zeros((4, 4 * LENGTH), np.float32))


def test_a_file_is_heard_as_its_samples(tmp_path: Path) -> None:
    six = np.zeros((6, LOUD.shape[1]), np.float32)
    six[list(ARRAY.channels)] = LOUD
    six[0], six[5] = 0.5 * LOUD[0], 0.25 * LOUD[0]  # what the array also sends
    path = tmp_path / "loud.wav"
    soundfile.write(path, six.T, ARRAY.sample_rate, subtype="FLOAT")
    assert np.array_equal(FRONT.lesson(path), FRONT.lesson(LOUD))
    assert np.array_equal(np.concatenate(list(sound_blocks(path, ARRAY)), axis=1), LOUD)


@pytest.mark.parametrize(
    ("sound", "complaint"),
    [
        (LOUD.T, r"sound must be \(4, n_samples\) at 16000 Hz for respeaker-usb-4, .* transpose it"),
        (LOUD[:, : LENGTH - 1], "too short for one frame"),
        (LOUD[:, :0], "is empty"),
        (np.where(np.arange(LOUD.shape[1]) == 5000, np.inf, LOUD), "NaN or infinite, the first at 5000"),
        (LOUD.astype(np.complex64), "floats in"),
    ],
)
def test_sound_that_cannot_be_used_is_refused(sound: Any, complaint: str) -> None:
    with pytest.raises(AudioError, match=complaint):
        FRONT.lesson(sound)


# ---- directions


def test_places_are_those_of_the_array_as_built() -> None:
    assert FRONT.places(-30).tolist() == [330.0]
    assert FRONT.places([400.0, 10]).tolist() == [40.0, 10.0]
    assert FRONT.places(np.float64(7)).tolist() == [7.0]
    turned = FrontEnd(ARRAY.rotated(30.0), prior())
    assert turned.places([10.0, 90.0]).tolist() == [340.0, 60.0]


@pytest.mark.parametrize(
    "azimuth", [None, "left", float("nan"), float("inf"), [], [1.0, 2.0, 3.0], [[1.0]], [1.0, None], object()]
)
def test_places_that_are_none_are_refused(azimuth: Any) -> None:
    with pytest.raises(TytoError, match="azimuth must be degrees"):
        FRONT.places(azimuth)


def recording(azimuth: Any, **changes: Any) -> Recording:
    places = np.asarray(azimuth, np.float64)
    made = Recording(
        "r", "s", ARRAY, np.arange(len(places)), places, lambda: LOUD, frame_length=LENGTH, hop=LENGTH // 2
    )
    return replace(made, **changes)


def test_labelled_frames_without_a_source_are_left_out() -> None:
    X, azimuth = FRONT.labelled(recording([[50.0, np.nan], [np.nan, np.nan], [50.0, 90.0]]))
    cut = frames(LOUD, LENGTH, LENGTH // 2)
    assert np.array_equal(X, FRONT.features(cut[[0, 2]]))
    assert np.array_equal(azimuth, [[50.0, np.nan], [50.0, 90.0]], equal_nan=True)
    turned = ARRAY.rotated(20.0)
    _, azimuth = FrontEnd(turned, prior()).labelled(recording([[10.0]], array=turned))
    assert azimuth.tolist() == [[350.0]]


def test_recordings_of_other_arrays_and_frames_of_another_length_are_refused() -> None:
    others = [load_array("pepper"), load_array("respeaker-6mic"), ARRAY.rotated(30.0)]
    complaint = "r was recorded by another array than respeaker-usb-4, or mounted"
    for array in [*others, replace(ARRAY, sample_rate=48000)]:
        with pytest.raises(TytoError, match=complaint):
            FRONT.labelled(recording([[50.0]], array=array))
    with pytest.raises(AudioError, match="samples"):
        FRONT.labelled(recording([[50.0]], frame_length=LENGTH // 2))
