"""From sound to tracks: every method, any blocks, the demo from beginning to end, a fan left out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.localizers import ARRAY, prior
from tests.helpers.waves import delayed, plane_wave
from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.data.simulation.voice import SyntheticVoices, say
from tytoalba.errors import AudioError, TytoError
from tytoalba.live.background import Background
from tytoalba.live.segments import Moment, segments
from tytoalba.live.tracking import Following, follow, learn_background, track, tracking_stream
from tytoalba.localizer.localizer import Localizer
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import read_audio, write_audio

PATH, TRUTH = demo_recording()


@cache
def demo() -> tuple[Moment, ...]:
    return tuple(follow(PATH, DEMO_ARRAY))


def test_the_demo_is_followed_as_it_was_made() -> None:
    found = sorted(segments(demo()), key=lambda one: one.start)  # what `track` gives
    assert [(one.id, round(one.azimuth, -1)) for one in found] == [(1, 40), (2, 250), (1, 40)]
    for one in found:
        mine = [truth for truth in TRUTH if distance(truth.azimuth, one.azimuth) < 5]
        assert min(abs(one.start - truth.start) for truth in mine) < 0.3
        assert min(abs(one.end - truth.end) for truth in mine) < 0.5


def test_a_moment_has_time_level_and_tracks() -> None:
    found = demo()
    assert found[1].time - found[0].time == pytest.approx(0.08533, abs=1e-4)
    quiet, loud = found[0], max(found, key=lambda one: one.level)
    assert quiet.tracks == ()
    assert quiet.level < loud.level < 0
    assert loud.tracks


def test_any_blocks_give_the_same_tracks() -> None:
    sound = read_audio(PATH, ARRAY).samples[:, : 3 * ARRAY.sample_rate // 2]
    whole = list(follow(sound, ARRAY))
    following = Following(ARRAY)
    blocks = np.split(sound, [1, 777, 11000, 11000, 21111], axis=1)
    assert [moment for block in blocks for moment in following.feed(block)] == whole
    assert whole == list(demo()[: len(whole)])  # and nothing depends on what comes later


@pytest.mark.parametrize("method", ["srp", "music", "prior", "localizer"])
def test_every_method_follows_a_plane_wave(method: str) -> None:
    wave = _spoken(200.0)
    by: Any = Localizer.new(ARRAY, n_features=30, seed=0, prior=prior()) if method == "localizer" else ARRAY
    found = track(wave, by, None if method == "localizer" else method)
    assert found
    assert all(distance(one.azimuth, 200.0) < 6 for one in found)


def test_a_mounted_array_and_a_line_say_what_they_should() -> None:
    turned = ARRAY.rotated(30.0)
    assert distance(track(_spoken(200.0), turned)[0].azimuth, 230.0) < 6
    line = load_array("linear-4")
    behind = plane_wave(line, 160.0, 2.0)
    assert track(behind, line, "srp")
    assert all(distance(one.azimuth, 20.0) < 8 for one in track(behind, line, "srp"))


def test_a_steady_source_is_left_out_if_it_is_known(tmp_path: Path) -> None:
    fan = plane_wave(ARRAY, 80.0, 2.5, seed=3)
    both = fan.copy()
    both[:, 24000:] += 2 * plane_wave(ARRAY, 250.0, 1.0, seed=4)
    without, within = track(both, ARRAY, "srp"), track(both, ARRAY, "srp", background=1.2)
    assert any(distance(one.azimuth, 80.0) < 10 for one in without)
    assert [round(one.azimuth, -1) for one in within] == [250]
    write_audio(tmp_path / "fan.wav", fan, ARRAY.sample_rate)
    by_file = track(both, ARRAY, "srp", background=tmp_path / "fan.wav")
    assert [round(one.azimuth, -1) for one in by_file] == [250]


def test_a_steady_source_is_left_out_by_itself() -> None:
    both = plane_wave(ARRAY, 80.0, 3.0, seed=3)
    both[:, 32000:] += 3 * plane_wave(ARRAY, 250.0, 1.0, seed=4)
    found = list(follow(both, ARRAY, "srp", background="auto"))
    talk = [[one.azimuth for one in moment.tracks if one.speaking] for moment in found]
    assert not any(talk[12:22])
    assert [round(one, -1) for one in talk[-1]] == [250]


def test_a_background_is_learned_from_a_recording() -> None:
    stream = tracking_stream(ARRAY, "srp")
    learned = learn_background(plane_wave(ARRAY, 80.0, 0.6), stream)
    assert isinstance(learned, Background)
    assert learned.mean.argmax() == pytest.approx(80, abs=2)
    with pytest.raises(TytoError, match="silent"):
        learn_background(np.zeros((4, 16000), np.float32), stream)


def test_an_array_without_a_prior_is_followed_by_srp() -> None:
    wide = replace(ARRAY, name="wide", positions=tuple((20 * x, 20 * y, z) for x, y, z in ARRAY.positions))
    assert not tracking_stream(wide).finder.counting
    assert tracking_stream(ARRAY).finder.counting


def test_bad_sound_is_refused() -> None:
    with pytest.raises(AudioError, match="too short"):
        track(np.ones((4, 100), np.float32) * 0.1, ARRAY)
    with pytest.raises(AudioError, match="channels come first"):
        Following(ARRAY, "srp").feed(np.zeros((100, 4), np.float32))
    with pytest.raises(TytoError, match="leave out method"):
        track(PATH, Localizer.new(ARRAY, n_features=30, seed=0, prior=prior()), "srp")


def _spoken(azimuth: float) -> NDArray[np.float32]:
    """Two seconds of a synthetic voice from a direction, without a room."""
    dry = say(SyntheticVoices(), 3, 2.0, ARRAY.sample_rate, np.random.default_rng(0))
    noise = np.random.default_rng(1).standard_normal((ARRAY.n_mics, len(dry)))
    return np.asarray(0.1 * delayed(ARRAY, dry, azimuth) + 0.001 * noise, np.float32)


def test_after_a_gap_frames_begin_anew_where_the_sound_goes_on() -> None:
    array = load_array("respeaker-usb-4")
    following, rate = Following(array, "srp"), array.sample_rate
    sound = plane_wave(array, 40.0, 1.0)
    before = following.feed(sound)
    following.restart(5 * rate)
    after = following.feed(sound)
    assert [one.time for one in after] == [pytest.approx(one.time + 5, abs=1e-4) for one in before]
    for one, again in zip(before, after, strict=True):
        assert one.scores is not None
        assert again.scores is not None
        assert np.array_equal(one.scores, again.scores)
    with pytest.raises(TytoError, match="start must be"):
        following.restart(-1)


def test_time_without_sound_lets_tracks_age() -> None:
    array = load_array("respeaker-usb-4")
    following = Following(array, "srp")
    last = following.feed(plane_wave(array, 40.0, 1.0))[-1]
    first, *_, late = [following.absent(1.0 + number) for number in range(30)]
    assert [one.id for one in first.tracks] == [one.id for one in last.tracks] == [1]
    assert not first.tracks[0].speaking or first.tracks[0].probability < last.tracks[0].probability
    assert not late.tracks
    assert (late.time, late.level, late.scores) == (30.0, -240.0, None)


def test_another_localizer_takes_over_while_sound_runs() -> None:
    localizer = Localizer.new("respeaker-usb-4", n_features=50, seed=0)
    taught = Localizer(localizer.state.copy())
    sound = np.random.default_rng(0).standard_normal((4, 16000)).astype(np.float32) * 0.1
    taught.teach(sound, 200.0)
    following, after = Following(localizer), Following(taught)
    first = following.feed(sound[:, :8000])
    after.feed(sound[:, :8000])
    following.use(taught)
    found, expected = following.feed(sound[:, 8000:]), after.feed(sound[:, 8000:])
    assert [one.time for one in [*first, *found]] == [round(0.0853125 * n, 4) for n in range(1, 11)]
    for one, other in zip(found, expected, strict=True):  # nothing was lost, and what was taught counts
        np.testing.assert_array_equal(one.scores, other.scores)
    with pytest.raises(TytoError, match="same array"):
        following.use(Localizer.new("respeaker-4mic-hat", n_features=50, seed=0))
