"""What of a sound is learned from, where that is for the prior, and what is refused."""

from __future__ import annotations

import io
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import soundfile

from tests.helpers.localizers import ARRAY, prior, small_state
from tests.helpers.waves import plane_wave
from tytoalba.data.recording import Recording, SoundFile
from tytoalba.errors import AudioError, TytoError
from tytoalba.localizer import frontend
from tytoalba.localizer.frontend import FrontEnd
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.stream import sound_blocks
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import frames, levels, spoken, voiced
from tytoalba.storage.soundfiles import read_audio

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
    chosen = spoken(cut)
    assert 0 < chosen.sum() < len(cut)
    assert np.array_equal(voiced(levels(cut), 4 * LENGTH), chosen)
    assert np.array_equal(FRONT.lesson(quiet), FRONT.features(cut[chosen]))
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


@pytest.fixture
def loud_file(tmp_path: Path) -> Path:
    """A file with pauses, so that frames have to be chosen."""
    path = tmp_path / "loud.wav"
    sound = np.concatenate([LOUD, 0.01 * LOUD, LOUD], axis=1)
    soundfile.write(path, sound.T, ARRAY.sample_rate, subtype="PCM_16")
    return path


@pytest.mark.parametrize("version", [1, 2])
def test_blocks_are_the_lesson_however_it_is_read(loud_file: Path, version: int) -> None:
    front = FrontEnd(ARRAY, prior(), version)
    samples = read_audio(loud_file, ARRAY).samples
    expected = front.lesson(samples)
    sources: list[Any] = [loud_file, str(loud_file), io.BytesIO(loud_file.read_bytes()), samples]
    for source in [*sources, Once(loud_file.read_bytes())]:
        with patch.object(frontend, "AT_ONCE", 3), patch.object(frontend, "BLOCK", 9000):
            blocks = list(front.lesson_blocks(source))
        assert np.array_equal(np.concatenate(blocks), expected)
        assert len(blocks) > 1 or version == 1


class Once(io.RawIOBase):
    """Bytes that come as from a pipe: they cannot be read again."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = len(self._rest) if size < 0 else size
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


@pytest.mark.parametrize("what", ["lesson", "labelled"])
def test_memory_does_not_grow_with_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Two minutes are 31 MB of samples and 13 MB of features; a part is 1.4."""
    monkeypatch.setattr(frontend, "AT_ONCE", 32)
    path, rng = tmp_path / "long.wav", np.random.default_rng(0)
    with soundfile.SoundFile(path, "w", 16000, 4, "PCM_16") as file:
        for _ in range(12):
            file.write(0.1 * rng.standard_normal((160000, 4)))
    list(FRONT.lesson_blocks(LOUD))  # tables
    labels = np.full((1400, 1), 50.0)
    load = SoundFile(path, ARRAY.plain_channels())
    labelled = recording(labels, load=load, array=ARRAY.plain_channels())
    tracemalloc.start()
    if what == "lesson":
        n_frames = sum(len(block) for block in FRONT.lesson_blocks(path))
    else:
        n_frames = sum(len(block) for block, _ in FRONT.labelled_blocks(labelled))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_frames > 1300
    assert peak < 24e6


def test_what_another_program_may_read_otherwise_is_told(tmp_path: Path, loud_file: Path) -> None:
    def told(source: Any, **options: Any) -> list[str]:
        varies: list[str] = []
        list(FRONT.lesson_blocks(source, varies=varies, **options))
        return varies

    samples = read_audio(loud_file, ARRAY).samples
    assert told(loud_file) == told(samples) == told(samples, sample_rate=16000) == []
    assert told(np.repeat(samples, 3, axis=1), sample_rate=48000) == ["resampled from 48000 to 16000 Hz"]
    for name, subtype, rate, expected in (
        ("a.ogg", "VORBIS", 16000, ["decoded from Vorbis, a lossy format"]),
        ("b.wav", "PCM_16", 32000, ["resampled from 32000 to 16000 Hz"]),
        (
            "c.mp3",
            "MPEG_LAYER_III",
            32000,
            ["decoded from MP3, a lossy format", "resampled from 32000 to 16000 Hz"],
        ),
        ("d.flac", "PCM_24", 16000, []),
    ):
        if name == "c.mp3":  # which has two channels at most
            one = [tmp_path / f"{k}{name}" for k in range(4)]
            for path, channel in zip(one, samples, strict=True):
                soundfile.write(path, np.repeat(channel, 2), rate, subtype=subtype)
            assert told(one) == expected
        else:
            soundfile.write(tmp_path / name, np.repeat(samples, 2, axis=1).T, rate, subtype=subtype)
            assert told(tmp_path / name) == expected


def test_a_recording_that_changes_between_two_readings_is_refused(loud_file: Path) -> None:
    blocks = FRONT.lesson_blocks(loud_file)
    longer = patch.object(frontend, "voiced", lambda level, _: np.ones(len(level) + 1, np.bool_))
    with longer, pytest.raises(AudioError, match="changed while it was read"):
        list(blocks)


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


def test_a_labelled_file_is_heard_as_its_samples(loud_file: Path) -> None:
    """To the bit, also where frames do not fit into parts; a localizer learns and forgets it as the same."""
    ids = np.array([0, 1, 3, 4, 6])
    in_memory = recording([[50.0], [np.nan], [50.0], [90.0], [60.0]], frame_ids=ids)
    in_file = replace(in_memory, load=SoundFile(loud_file, ARRAY))
    in_memory = replace(in_memory, load=lambda: in_file.load())
    with patch.object(frontend, "AT_ONCE", 2):
        for one, other in zip(FRONT.labelled_blocks(in_file), FRONT.labelled_blocks(in_memory), strict=True):
            assert np.array_equal(one[0], other[0])
            assert np.array_equal(one[1], other[1])
    localizer = Localizer(small_state())
    before = localizer.to_bytes()
    assert localizer.learn([in_file]).n_frames == 4
    taught = localizer.to_bytes()
    assert localizer.forget_recordings([in_memory]).n_frames == 4
    assert localizer.to_bytes() == before
    localizer.learn([in_memory])
    assert localizer.to_bytes() == taught


def test_recordings_of_other_arrays_and_frames_of_another_length_are_refused() -> None:
    others = [load_array("pepper"), load_array("respeaker-6mic"), ARRAY.rotated(30.0)]
    complaint = "r was recorded by another array than respeaker-usb-4, or mounted"
    for array in [*others, replace(ARRAY, sample_rate=48000)]:
        with pytest.raises(TytoError, match=complaint):
            FRONT.labelled(recording([[50.0]], array=array))
    with pytest.raises(AudioError, match="samples"):
        FRONT.labelled(recording([[50.0]], frame_length=LENGTH // 2))
