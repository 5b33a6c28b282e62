"""From a file to directions: right, in time, in bounded memory, with an answer to silence."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tytoalba.data.simulation.room import diffuse_noise
from tytoalba.errors import AudioError, TytoError, TytoWarning
from tytoalba.localizer.locate import METHODS, Located, locate, locate_frames
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import frames
from tytoalba.storage.soundfiles import read_audio, write_audio

PEPPER, RESPEAKER, LINEAR = load_array("pepper"), load_array("respeaker-usb-4"), load_array("linear-4")
Sound = NDArray[np.float32]

CLASSICAL = [name for name in METHODS if name != "prior"]


def plane_wave(
    array: MicArray,
    azimuth: float,
    seconds: float = 1.0,
    seed: int = 0,
    band: tuple[float, float] = (0.0, np.inf),
) -> Sound:
    """Noise from afar as the array hears it, (n_mics, n_samples), RMS 0.1."""
    n = int(seconds * array.sample_rate)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(n))
    hertz = np.fft.rfftfreq(n, 1 / array.sample_rate)
    spectrum[(hertz < band[0]) | (hertz > band[1])] = 0
    delayed = spectrum * np.exp(-2j * np.pi * hertz * array.arrival_times(azimuth)[:, None])
    sound = np.fft.irfft(delayed, n)
    return np.asarray(0.1 * sound / sound.std(), np.float32)


def in_batches(sound: Sound, array: MicArray, size: int = 1000) -> Iterator[Sound]:
    every = frames(sound, array.frame_length, array.frame_length // 2)
    for first in range(0, len(every), size):
        yield every[first : first + size]


@pytest.mark.parametrize("method", CLASSICAL)
@pytest.mark.parametrize("array", [PEPPER, RESPEAKER, PEPPER.rotated(50.0)], ids=["pepper", "usb", "turned"])
@pytest.mark.parametrize("azimuth", [37.0, 181.0, 300.0])
def test_a_wave_is_found_where_it_comes_from(
    tmp_path: Path, array: MicArray, azimuth: float, method: str
) -> None:
    write_audio(tmp_path / "wave.wav", plane_wave(array, azimuth, 0.5), array.sample_rate)
    found = list(locate(tmp_path / "wave.wav", array, method))
    assert len(found) == 4
    for frame in found:
        assert len(frame.azimuth) == len(frame.confidence) == 1
        assert distance(frame.azimuth[0], azimuth) <= 1
        assert 0.8 < frame.confidence[0] <= 1.001


def test_the_time_is_the_middle_of_the_frame() -> None:
    found = list(locate_frames(in_batches(plane_wave(PEPPER, 10.0, 0.6), PEPPER, 2), PEPPER))
    assert [frame.time for frame in found] == pytest.approx([(4096 * t + 4096) / 48000 for t in range(6)])
    found = list(locate_frames(in_batches(plane_wave(RESPEAKER, 10.0, 0.6), RESPEAKER), RESPEAKER))
    assert [frame.time for frame in found] == pytest.approx([(1365 * t + 1365) / 16000 for t in range(6)])


def test_silence_has_no_direction(tmp_path: Path) -> None:
    sound = plane_wave(RESPEAKER, 120.0, 2.0)
    sound[:, 16000:] = 0.0
    write_audio(tmp_path / "half.wav", sound, 16000)
    found = list(locate(tmp_path / "half.wav", RESPEAKER))
    for frame in found:
        if frame.time < 0.9:
            assert frame.azimuth == (120.0,)
        if frame.time > 1.1:
            assert frame == Located(frame.time, (), ())
    write_audio(tmp_path / "nothing.wav", np.zeros((4, 16000)), 16000)
    with pytest.warns(TytoWarning, match="digital silence"):
        assert all(not frame.azimuth for frame in locate(tmp_path / "nothing.wav", RESPEAKER))


def test_the_level_of_silence_is_a_choice() -> None:
    soft = plane_wave(RESPEAKER, 120.0, 0.4) * np.float32(0.01)  # -60 dB of full scale
    for threshold, heard in ((-70.0, True), (-61.0, True), (-59.0, False), (-20.0, False)):
        found = list(locate_frames(in_batches(soft, RESPEAKER), RESPEAKER, silence_db=threshold))
        assert [bool(frame.azimuth) for frame in found] == [heard] * len(found)


def test_confidence_tells_a_wave_from_noise() -> None:
    noise = 0.05 * diffuse_noise(RESPEAKER, 16000, np.random.default_rng(0))
    vague = [frame.confidence[0] for frame in locate_frames(in_batches(noise, RESPEAKER), RESPEAKER)]
    clear = plane_wave(RESPEAKER, 10.0)
    sure = [frame.confidence[0] for frame in locate_frames(in_batches(clear, RESPEAKER), RESPEAKER)]
    assert max(vague) < 0.6
    assert min(sure) > 0.9
    assert all(value == round(value, 4) for value in sure)  # as one would print it


@pytest.mark.parametrize("method", CLASSICAL)
def test_two_waves(method: str) -> None:
    both = plane_wave(PEPPER, 60.0) + plane_wave(PEPPER, 200.0, seed=1)
    for n_sources in (2, "auto"):
        found = list(locate_frames(in_batches(both, PEPPER), PEPPER, method, n_sources=n_sources))
        close = [
            len(frame.azimuth) == 2 and distance(sorted(frame.azimuth), [60.0, 200.0]).max() <= 4
            for frame in found
        ]
        assert np.mean(close) > (0.9 if n_sources == 2 else 0.5)
        for frame in found:
            assert list(frame.confidence) == sorted(frame.confidence, reverse=True)


def test_auto_reports_one_wave_once_and_never_more_than_it_can_tell() -> None:
    one = list(locate_frames(in_batches(plane_wave(PEPPER, 60.0), PEPPER), PEPPER, n_sources="auto"))
    assert all(frame.azimuth == (60.0,) for frame in one)
    noise = 0.05 * diffuse_noise(RESPEAKER, 16000, np.random.default_rng(0))
    many = list(locate_frames(in_batches(noise, RESPEAKER), RESPEAKER, n_sources="auto"))
    assert all(1 <= len(frame.azimuth) <= 3 for frame in many)


@pytest.mark.parametrize("method", CLASSICAL)
@pytest.mark.parametrize(
    ("azimuth", "reported"), [(30.0, 30.0), (150.0, 30.0), (200.0, 340.0), (300.0, 300.0)]
)
def test_an_array_on_a_line_answers_with_its_front(azimuth: float, reported: float, method: str) -> None:
    batches = list(in_batches(plane_wave(LINEAR, azimuth, 0.5), LINEAR))
    for frame in locate_frames(batches, LINEAR, method):
        assert distance(frame.azimuth[0], reported) <= 1
    for frame in locate_frames(batches, LINEAR, method, n_sources="auto"):
        assert distance(frame.azimuth[0], reported) <= 1
        assert len(set(frame.azimuth)) == len(frame.azimuth)
    left = LINEAR.rotated(90.0)  # its front looks to the left
    for frame in locate_frames(batches, left, method):
        assert distance(frame.azimuth[0], reported + 90) <= 1


def test_the_image_of_a_source_is_not_a_second_source() -> None:
    both = plane_wave(LINEAR, 30.0) + plane_wave(LINEAR, 300.0, seed=1)
    for n_sources in (2, "auto"):
        found = list(locate_frames(in_batches(both, LINEAR), LINEAR, n_sources=n_sources))
        right = [
            len(frame.azimuth) == 2 and distance(sorted(frame.azimuth), [30.0, 300.0]).max() <= 3
            for frame in found
        ]
        assert np.mean(right) > 0.8
    one = plane_wave(LINEAR, 30.0, 0.4)
    for frame in locate_frames(in_batches(one, LINEAR), LINEAR, n_sources=2):
        assert np.isfinite(frame.confidence).all()
        assert frame.confidence[1] < 0.5 * frame.confidence[0]
        assert (distance(frame.azimuth, 0.0) <= 90).all()


def test_a_pair_of_microphones_has_one_answer() -> None:
    pair = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), 16000)
    batches = list(in_batches(plane_wave(pair, 130.0, 0.4), pair))
    for n_sources in (1, "auto"):
        for frame in locate_frames(batches, pair, n_sources=n_sources):
            assert len(frame.azimuth) == 1
            assert distance(frame.azimuth[0], 50.0) <= 1


def test_the_band_is_what_is_listened_to() -> None:
    low = plane_wave(RESPEAKER, 80.0, band=(0.0, 2500.0))
    high = plane_wave(RESPEAKER, 220.0, seed=1, band=(3500.0, 8000.0))
    batches = list(in_batches(low + high, RESPEAKER))
    for band, azimuth in (((100.0, 2500.0), 80.0), ((3500.0, 8000.0), 220.0)):
        for frame in locate_frames(batches, RESPEAKER, band=band):
            assert distance(frame.azimuth[0], azimuth) <= 2


def test_one_file_a_microphone_or_all_channels_of_the_device(tmp_path: Path) -> None:
    sound = plane_wave(RESPEAKER, 250.0)
    write_audio(tmp_path / "four.wav", sound, 16000)
    expected = list(locate(str(tmp_path / "four.wav"), RESPEAKER))
    assert {frame.azimuth for frame in expected} == {(250.0,)}
    paths = [tmp_path / f"mic{i}.wav" for i in range(4)]
    for path, channel in zip(paths, sound, strict=True):
        write_audio(path, channel, 16000)
    assert list(locate(paths, RESPEAKER)) == expected
    other = 0.2 * np.random.default_rng(1).standard_normal((2, sound.shape[1])).clip(-3, 3)
    write_audio(tmp_path / "six.wav", np.concatenate([other[:1], sound, other[1:]]), 16000)
    assert list(locate(tmp_path / "six.wav", RESPEAKER)) == expected  # microphones are channels 1 to 4
    with (tmp_path / "four.wav").open("rb") as file:
        assert list(locate(file, RESPEAKER)) == expected


@pytest.mark.parametrize("rate", [16000, 44100])
def test_a_stream_and_the_whole_are_the_same(tmp_path: Path, rate: int) -> None:
    sound = plane_wave(RESPEAKER, 75.0, 6.0) + plane_wave(RESPEAKER, 190.0, 6.0, seed=1)
    write_audio(tmp_path / "long.wav", sound, rate)
    whole = read_audio(tmp_path / "long.wav", RESPEAKER).samples
    streamed = list(locate(tmp_path / "long.wav", RESPEAKER))
    assert len(streamed) == (whole.shape[1] - 2730) // 1365 + 1
    at_once = list(locate_frames(in_batches(whole, RESPEAKER), RESPEAKER))
    one_by_one = list(locate_frames(in_batches(whole, RESPEAKER, 1), RESPEAKER))
    assert [frame.time for frame in streamed] == [frame.time for frame in at_once]
    assert [frame.azimuth for frame in streamed] == [frame.azimuth for frame in at_once]
    assert at_once == one_by_one
    np.testing.assert_allclose(
        [frame.confidence[0] for frame in streamed], [frame.confidence[0] for frame in at_once], atol=2e-4
    )


def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    peaks = []
    for seconds in (15, 60):
        sound = np.tile(plane_wave(RESPEAKER, 75.0, 1.0), seconds)
        write_audio(tmp_path / "long.wav", sound, 16000)
        size = sound.nbytes
        del sound
        tracemalloc.start()
        n = sum(1 for _ in locate(tmp_path / "long.wav", RESPEAKER))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n == (seconds * 16000 - 2730) // 1365 + 1
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < size


def test_directions_come_as_the_sound_does() -> None:
    """Endless sound: each batch is answered before the next one is asked for."""
    asked = itertools.count()
    batch = next(in_batches(plane_wave(RESPEAKER, 45.0, 0.4), RESPEAKER))
    endless = (batch for _ in asked)
    found = list(itertools.islice(locate_frames(endless, RESPEAKER), 3 * len(batch)))
    assert {frame.azimuth for frame in found} == {(45.0,)}
    assert next(asked) == 3
    assert found[-1].time == pytest.approx(len(found) * 1365 / 16000)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    batches = list(in_batches(plane_wave(RESPEAKER, 45.0, 0.4), RESPEAKER))
    with pytest.raises(ValueError, match="no method called 'ears'; known: srp, music"):
        next(locate_frames(batches, RESPEAKER, "ears"))
    with pytest.raises(ValueError, match="n_sources must be at least 1 or 'auto', got 0"):
        next(locate_frames(batches, RESPEAKER, n_sources=0))
    with pytest.raises(AudioError, match="no such file"):
        next(locate(tmp_path / "none.wav", RESPEAKER))
    write_audio(tmp_path / "short.wav", plane_wave(RESPEAKER, 40.0, 0.1), 16000)
    with pytest.raises(AudioError, match="too short for one frame"):
        next(locate(tmp_path / "short.wav", RESPEAKER))
    write_audio(tmp_path / "stereo.wav", plane_wave(RESPEAKER, 40.0)[:2], 16000)
    with pytest.raises(AudioError, match="channels that came: 2"):
        next(locate(tmp_path / "stereo.wav", RESPEAKER))


@pytest.mark.parametrize("yaw", [0.0, 50.0, 122.5])
def test_the_prior_finds_a_wave_however_the_array_is_mounted(yaw: float) -> None:
    array = PEPPER.rotated(yaw)
    for azimuth in (37.0, 181.0, 300.0):
        for frame in locate_frames(in_batches(plane_wave(array, azimuth, 0.5), array), array, "prior"):
            assert distance(frame.azimuth[0], azimuth) <= 5
            assert 0 < frame.confidence[0] <= 1


def test_an_array_without_a_prior_is_told_how_to_get_one() -> None:
    mine = replace(LINEAR, name="mine", sample_rate=44100)
    with pytest.raises(TytoError, match="`tyto prior mine` makes one"):
        list(locate_frames(in_batches(plane_wave(mine, 30.0, 0.5), mine), mine, "prior"))
