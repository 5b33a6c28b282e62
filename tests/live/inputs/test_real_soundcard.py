"""A sound card by way of a real PulseAudio: what is played is heard, and what is wrong is told."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.capturing import listening
from tests.helpers.pulse import SURROUND, needs_pulse, pulse
from tytoalba.data.simulation.scenes import Scenes
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array

pytestmark = [pytest.mark.end_to_end, needs_pulse]

ARRAY = "respeaker-usb-4"
RATE = 16000
AUX = "aux0,aux1,aux2,aux3,aux4,aux5"
SOON = 1.6
"""Seconds of sound within which a fault is to be told."""


@cache
def scene(seconds: float = 8.0) -> tuple[NDArray[np.float32], float]:
    """What the six channels of a ReSpeaker record of one talker, and where that is, in degrees."""
    array = load_array(ARRAY)
    made = Scenes(array, [SyntheticVoices()], seconds=seconds, two_sources=0.0, calm=1.0, seed=1).recording(0)
    device = np.zeros((6, made.samples.shape[1]), np.float32)
    device[0] = made.samples.mean(axis=0)  # what the device makes of them
    device[list(array.channels)] = made.samples
    device[5] = np.random.default_rng(0).standard_normal(device.shape[1]) * 0.01  # what it plays
    return device, float(np.nanmean(made.azimuth[:, 0]))


def test_what_is_played_is_found_where_it_is_labelled() -> None:
    sound, azimuth = scene()
    with pulse("six") as server:
        server.plug_in("six", 6, RATE)
        with listening(server, "six", ARRAY) as told:
            server.play("six", sound, RATE)
            told.until(lambda line: line.get("heard", 0) > 7)
            lines = [line for line in told.lines if line.get("heard")]
    found = [one for line in lines for one in line["azimuth"]]
    assert len(found) > 50
    assert np.mean(distance(np.array(found), azimuth) <= 5) > 0.9
    assert [line for line in lines if line["device"] or line["watch"]] == []
    assert sum(line["lost"] for line in lines) == 0


@pytest.mark.parametrize(
    ("channel_map", "array"),
    [("", ARRAY), (SURROUND, "respeaker-4mic-hat"), (AUX, ARRAY)],
    ids=["the default map", "4 of 6 channels", "aux channels"],
)
def test_a_sound_server_that_mixes_is_named_before_there_is_sound(channel_map: str, array: str) -> None:
    with pulse("six") as server:
        server.plug_in("six", 6, RATE, channel_map)
        with listening(server, "six", array) as told:
            line = told.until(lambda line: line.get("device"))
    assert line["device"] == ["mixed"]
    assert line["heard"] == 0


def test_the_default_map_is_heard_too() -> None:
    sound, _ = scene()
    with pulse("six") as server:
        server.plug_in("six", 6, RATE, "")
        with listening(server, "six", ARRAY) as told:
            server.play("six", sound, RATE, "")
            line = told.until(lambda line: "mixed" in line.get("watch", ()))
    assert line["heard"] < SOON


def test_channels_that_a_sound_server_leaves_out_are_muted() -> None:
    sound, _ = scene()
    with pulse("six") as server:
        server.plug_in("six", 6, RATE, AUX)
        with listening(server, "six", ARRAY) as told:
            server.play("six", sound, RATE, AUX)
            line = told.until(lambda line: line.get("watch"))
    assert line["watch"] == {"muted": [1, 2, 3, 4]}


def copied(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    made = sound.copy()
    made[3] = -0.5 * sound[2]
    return made


def mixed(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    made = sound.copy()
    made[2] = 0.75 * sound[1] + 0.25 * sound[2]
    return made


def zeroed(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    made = sound.copy()
    made[4] = 0.0
    return made


@pytest.mark.parametrize(
    ("spoilt", "fault"),
    [(copied, {"copied": [2, 3]}), (mixed, {"mixed": [1, 2]}), (zeroed, {"muted": [4]})],
)
def test_spoilt_channels_are_named_within_a_second_of_sound(
    spoilt: Callable[[NDArray[np.float32]], NDArray[np.float32]], fault: dict[str, list[int]]
) -> None:
    sound, _ = scene()
    with pulse("six") as server:
        server.plug_in("six", 6, RATE)
        with listening(server, "six", ARRAY) as told:
            server.play("six", spoilt(sound), RATE)
            line = told.until(lambda line: line.get("watch"))
    assert line["watch"] == fault
    assert line["heard"] < SOON


def test_a_device_that_is_plugged_out_and_in_again_goes_on() -> None:
    sound, azimuth = scene()

    def is_right(line: dict[str, list[float]]) -> bool:
        return any(distance(one, azimuth) <= 5 for one in line["azimuth"]) and not line["device"]

    with pulse("six") as server:
        server.plug_in("six", 6, RATE)
        with listening(server, "six", ARRAY) as told:
            server.play("six", sound, RATE)
            told.until(is_right)
            server.plug_out("six")
            gone = told.until(lambda line: line["device"], 2.0)
            assert gone["device"] == ["unplugged"]
            told.until(lambda line: line["device"] == ["unplugged"], 2.0)  # and goes on to say so
            server.plug_in("six", 6, RATE)
            server.play("six", sound, RATE)
            heard = gone["heard"]
            told.until(lambda line: line["heard"] > heard + 0.5 and is_right(line))


def test_a_sound_server_that_hangs_or_ends_is_told_and_awaited() -> None:
    sound, _ = scene()
    with pulse("six") as server:
        server.plug_in("six", 6, RATE)
        with listening(server, "six", ARRAY) as told:
            server.play("six", sound, RATE)
            told.until(lambda line: line.get("heard", 0) > 0.5)
            server.signal(signal.SIGSTOP)
            told.until(lambda line: line["device"] == ["unplugged"])
            server.signal(signal.SIGCONT)
            told.until(lambda line: not line["device"])
            server.stop()
            heard = told.until(lambda line: line["device"] == ["unplugged"])["heard"]
            server.start()
            server.plug_in("six", 6, RATE)
            server.play("six", sound, RATE)
            told.until(lambda line: line["heard"] > heard + 0.5 and not line["device"])
