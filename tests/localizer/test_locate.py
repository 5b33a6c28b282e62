"""From a file to directions: right, in time, in bounded memory, with an answer to silence."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.waves import plane_wave
from tytoalba import Localizer
from tytoalba.data.simulation.room import diffuse_noise
from tytoalba.errors import AudioError, TytoError, TytoWarning
from tytoalba.localizer.locate import METHODS, locate
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import resample
from tytoalba.storage.soundfiles import read_audio, write_audio

PEPPER, RESPEAKER, LINEAR = load_array("pepper"), load_array("respeaker-usb-4"), load_array("linear-4")
Sound = NDArray[np.float32]

CLASSICAL = [name for name in METHODS if name != "prior"]


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
        assert len(frame.azimuth) == len(frame.score) == 1
        assert distance(frame.azimuth[0], azimuth) <= 1
        assert 0.8 < frame.score[0] <= 1.001


def test_the_time_is_the_middle_of_the_frame() -> None:
    found = list(locate(plane_wave(PEPPER, 10.0, 0.6), PEPPER))
    assert [frame.time for frame in found] == pytest.approx([(4096 * t + 4096) / 48000 for t in range(6)])
    found = list(locate(plane_wave(RESPEAKER, 10.0, 0.6), RESPEAKER))
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
            assert frame == Located(frame.time, (), (), None)
    write_audio(tmp_path / "nothing.wav", np.zeros((4, 16000)), 16000)
    with pytest.warns(TytoWarning, match="digital silence"):
        assert all(not frame.azimuth for frame in locate(tmp_path / "nothing.wav", RESPEAKER))


def test_the_level_of_silence_is_a_choice() -> None:
    soft = plane_wave(RESPEAKER, 120.0, 0.4) * np.float32(0.01)  # -60 dB of full scale
    for threshold, heard in ((-70.0, True), (-61.0, True), (-59.0, False), (-20.0, False)):
        found = list(locate(soft, RESPEAKER, silence_db=threshold))
        assert [bool(frame.azimuth) for frame in found] == [heard] * len(found)


def test_confidence_tells_a_wave_from_noise() -> None:
    noise = 0.05 * diffuse_noise(RESPEAKER, 16000, np.random.default_rng(0))
    vague = [frame.score[0] for frame in locate(noise, RESPEAKER)]
    clear = plane_wave(RESPEAKER, 10.0)
    sure = [frame.score[0] for frame in locate(clear, RESPEAKER)]
    assert max(vague) < 0.6
    assert min(sure) > 0.9
    assert all(value == round(value, 4) for value in sure)  # as one would print it


@pytest.mark.parametrize("method", CLASSICAL)
def test_two_waves(method: str) -> None:
    equally_loud = replace(PEPPER, pattern=1.0)
    both = plane_wave(equally_loud, (60.0, 200.0), 1.0)
    for n_sources in (2, "auto"):
        found = list(locate(both, PEPPER, method, n_sources=n_sources))
        close = [
            len(frame.azimuth) == 2 and distance(sorted(frame.azimuth), [60.0, 200.0]).max() <= 4
            for frame in found
        ]
        assert np.mean(close) > (0.9 if n_sources == 2 else 0.5)
        for frame in found:
            assert list(frame.score) == sorted(frame.score, reverse=True)


def test_auto_reports_one_wave_once_and_never_more_than_it_can_tell() -> None:
    one = list(locate(plane_wave(PEPPER, 60.0), PEPPER, n_sources="auto"))
    assert all(frame.azimuth == (60.0,) for frame in one)
    noise = 0.05 * diffuse_noise(RESPEAKER, 16000, np.random.default_rng(0))
    many = list(locate(noise, RESPEAKER, n_sources="auto"))
    assert all(1 <= len(frame.azimuth) <= 3 for frame in many)


@pytest.mark.parametrize("method", CLASSICAL)
@pytest.mark.parametrize(
    ("azimuth", "reported"), [(30.0, 30.0), (150.0, 30.0), (200.0, 340.0), (300.0, 300.0)]
)
def test_an_array_on_a_line_answers_with_its_front(azimuth: float, reported: float, method: str) -> None:
    sound = plane_wave(LINEAR, azimuth, 0.5)
    for frame in locate(sound, LINEAR, method):
        assert distance(frame.azimuth[0], reported) <= 1
    for frame in locate(sound, LINEAR, method, n_sources="auto"):
        assert distance(frame.azimuth[0], reported) <= 1
        assert len(set(frame.azimuth)) == len(frame.azimuth)
    left = LINEAR.rotated(90.0)  # its front looks to the left
    for frame in locate(sound, left, method):
        assert distance(frame.azimuth[0], reported + 90) <= 1


def test_the_image_of_a_source_is_not_a_second_source() -> None:
    both = plane_wave(LINEAR, 30.0) + plane_wave(LINEAR, 300.0, seed=1)
    for n_sources in (2, "auto"):
        found = list(locate(both, LINEAR, n_sources=n_sources))
        right = [
            len(frame.azimuth) == 2 and distance(sorted(frame.azimuth), [30.0, 300.0]).max() <= 3
            for frame in found
        ]
        assert np.mean(right) > 0.8
    one = plane_wave(LINEAR, 30.0, 0.4)
    for frame in locate(one, LINEAR, n_sources=2):
        assert np.isfinite(frame.score).all()
        assert frame.score[1] < 0.5 * frame.score[0]
        assert (distance(frame.azimuth, 0.0) <= 90).all()


def test_a_pair_of_microphones_has_one_answer() -> None:
    pair = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), 16000)
    sound = plane_wave(pair, 130.0, 0.4)
    for n_sources in (1, "auto"):
        for frame in locate(sound, pair, n_sources=n_sources):
            assert len(frame.azimuth) == 1
            assert distance(frame.azimuth[0], 50.0) <= 1


def test_the_band_is_what_is_listened_to() -> None:
    low = plane_wave(RESPEAKER, 80.0, band=(0.0, 2500.0))
    high = plane_wave(RESPEAKER, 220.0, seed=1, band=(3500.0, 8000.0))
    sound = low + high
    for band, azimuth in (((100.0, 2500.0), 80.0), ((3500.0, 8000.0), 220.0)):
        for frame in locate(sound, RESPEAKER, band=band):
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
    at_once = list(locate(whole, RESPEAKER))
    assert [frame.time for frame in streamed] == [frame.time for frame in at_once]
    assert [frame.azimuth for frame in streamed] == [frame.azimuth for frame in at_once]
    np.testing.assert_allclose(
        [frame.score[0] for frame in streamed], [frame.score[0] for frame in at_once], atol=2e-4
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


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match="no such file"):
        next(locate(tmp_path / "none.wav", RESPEAKER))


@pytest.mark.parametrize("yaw", [0.0, 50.0, 122.5])
def test_the_prior_finds_a_wave_however_the_array_is_mounted(yaw: float) -> None:
    array = PEPPER.rotated(yaw)
    for azimuth in (37.0, 181.0, 300.0):
        for frame in locate(plane_wave(array, azimuth, 0.5), array, "prior"):
            assert distance(frame.azimuth[0], azimuth) <= 5
            assert 0 < frame.score[0] <= 1


@pytest.mark.parametrize("method", ["prior", "localizer"])
@pytest.mark.parametrize("n_sources", [1, 2, "auto"])
def test_directions_have_chances_and_those_not_sure_enough_are_left_out(n_sources: Any, method: str) -> None:
    faint = 0.3 * diffuse_noise(RESPEAKER, 16000, np.random.default_rng(0)) + plane_wave(
        RESPEAKER, 200.0, 1.0
    )
    two = [plane_wave(RESPEAKER, (60.0, 200.0), noise=noise) for noise in (0.02, 3.0)]
    sound = np.concatenate([plane_wave(RESPEAKER, 50.0), faint.astype(np.float32), *two], axis=1)
    if method == "prior":
        ask = partial(locate, sound, RESPEAKER, "prior", n_sources=n_sources)
    else:
        ask = partial(locate, sound, Localizer.new(RESPEAKER, n_features=30, seed=0), n_sources=n_sources)
    every = list(ask())
    chances = [p for frame in every for p in frame.probability or ()]
    assert len(chances) == sum(frame.n_sources for frame in every)
    assert 0 < min(chances) < max(chances) < 1
    assert max(chances) - min(chances) > 0.1
    for least in (0.0, (min(chances) + max(chances)) / 2, 1.0):
        for frame, left in zip(every, ask(at_least=least), strict=True):
            rows = zip(frame.azimuth, frame.score, frame.probability or (), strict=True)
            expected = [row for row in rows if row[2] >= least]
            assert list(zip(left.azimuth, left.score, left.probability or (), strict=True)) == expected
            assert left.time == frame.time


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_help_every_method(method: str) -> None:
    noise = 0.4 * diffuse_noise(RESPEAKER, 3 * 16000, np.random.default_rng(0))
    sound = np.asarray(plane_wave(RESPEAKER, 100.0, 3.0) + noise, np.float32)
    found = [list(locate(sound, RESPEAKER, method, context=n)) for n in (0, 4)]
    alone, together = (np.mean([distance(f.azimuth[0], 100.0) <= 5 for f in each]) for each in found)
    assert alone < together


def test_a_localizer_is_asked_as_an_array_is(tmp_path: Path) -> None:
    localizer = Localizer.new(RESPEAKER, n_features=30, seed=0)
    sound = plane_wave(RESPEAKER, 250.0, 0.5)
    write_audio(tmp_path / "a.wav", sound, 16000, "FLOAT")
    expected = localizer.locate(sound, n_sources=2, context=1)
    for source in (sound, tmp_path / "a.wav", str(tmp_path / "a.wav")):
        assert list(locate(source, localizer, n_sources=2, context=1)) == expected
    for wrong in ({"method": "srp"}, {"band": (100.0, 4000.0)}):
        with pytest.raises(TytoError, match="has its own method and bands"):
            locate(sound, localizer, **wrong)


def test_an_array_may_be_named_and_sound_come_at_any_rate(tmp_path: Path) -> None:
    sound = plane_wave(RESPEAKER, 250.0)
    (tmp_path / "mine.toml").write_text(RESPEAKER.to_toml())
    expected = list(locate(sound, RESPEAKER))
    for array in ("respeaker-usb-4", tmp_path / "mine.toml", str(tmp_path / "mine.toml")):
        assert list(locate(sound, array)) == expected
    assert list(locate(sound.astype(np.float64), RESPEAKER)) == expected
    faster = resample(sound, 16000, 48000)
    found = list(locate(faster, RESPEAKER, sample_rate=48000))
    assert [frame.azimuth for frame in found] == [frame.azimuth for frame in expected]
    with pytest.raises(TytoError, match="a file says its own"):
        locate("a.wav", RESPEAKER, sample_rate=48000)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "ears"}, "no method called 'ears'; known: srp, music, prior"),
        ({"n_sources": 0}, "n_sources must be at least 1 or 'auto', got 0"),
        ({"context": -1}, "context must be 0 or more frames"),
        ({"at_least": 0.5}, "at_least needs a method that knows its chance"),
        ({"at_least": 1.01, "method": "prior"}, "at_least must be a chance from 0 to 1, got 1.01"),
        ({"at_least": -0.1, "method": "prior"}, "at_least must be a chance"),
        ({"at_least": float("nan"), "method": "prior"}, "at_least must be a chance"),
        ({"taught_only": True}, "taught_only needs a Localizer"),
        ({"method": "prior", "band": (100.0, 4000.0)}, "a prior has its own bands"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_read(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(TytoError, match=complaint):
        locate("none.wav", RESPEAKER, **options)


@pytest.mark.parametrize(
    "change",
    [
        {"positions": tuple((2 * x, 3 * y, z) for x, y, z in RESPEAKER.positions)},
        {"sample_rate": 48000},
        {"sample_rate": 8000, "yaw": 30.0},
        {"positions": RESPEAKER.positions[:3], "channels": ()},
    ],
)
def test_an_array_without_a_prior_of_its_own_gets_the_one_of_every_array(change: dict[str, Any]) -> None:
    mine = replace(RESPEAKER, **{"name": "mine", "channels": (), **change})
    for azimuth in (20.0, 130.0, 250.0):
        found = [one for one in locate(plane_wave(mine, azimuth, 0.5), mine, "prior") if one.azimuth]
        assert found
        assert all(distance(one.azimuth[0], azimuth) <= 6 for one in found)
        assert all(0 < p <= 1 for one in found for p in one.probability or ())


def test_an_array_far_from_all_that_priors_know_is_told_what_is_left() -> None:
    wide = replace(LINEAR, name="mine", positions=tuple((9 * x, 9 * y, z) for x, y, z in LINEAR.positions))
    with pytest.raises(TytoError, match=r"mine has 4 microphones, .* srp and music .*`tyto prior MINE\.toml"):
        locate(plane_wave(wide, 30.0, 0.5), wide, "prior")
