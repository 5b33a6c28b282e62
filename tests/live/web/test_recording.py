from __future__ import annotations

import time

import numpy as np
import pytest

from tests.helpers.serving import Fed
from tests.helpers.states import wave
from tytoalba.errors import AudioError
from tytoalba.live.inputs.input import Block
from tytoalba.live.update import Fault
from tytoalba.live.web.recording import Recording, Tap, refuse_unfit
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import resample

ARRAY = load_array("respeaker-usb-4")


class Device(Fed):
    """Six channels at 48 kHz, of which the array's are 1 to 4."""

    sample_rate, n_channels = 48000, 6


def block(samples: np.ndarray, **more: object) -> Block:
    return Block(np.asarray(samples, np.float32), time.monotonic(), **more)  # type: ignore[arg-type]


def test_the_microphones_of_a_device_at_the_rate_of_the_array() -> None:
    array = load_array("respeaker-usb-4")
    sound = np.random.default_rng(0).standard_normal((6, 48000)).astype(np.float32) * 0.1
    recording = Recording(Device(), array, 0.5, lambda *_: None)
    for start in range(0, 48000, 1000):
        recording.add(block(sound[:, start : start + 1000]))
    taken = recording.done.result(0)
    channels = [1, 2, 3, 4] if array.channels == (1, 2, 3, 4) else list(array.channels)
    expected = resample(sound[channels, :24000], 48000, 16000)
    np.testing.assert_array_equal(taken.samples, expected)
    assert taken.heard == pytest.approx(0.5)


def test_seconds_with_sound_are_counted_as_they_come() -> None:
    told = list[tuple[float, float]]()
    recording = Recording(Fed(), ARRAY, 2.0, lambda *so_far: told.append(so_far))
    recording.add(block(np.zeros((4, 16000))))
    recording.add(block(wave(90.0, 0.5)))
    assert told == [(1.0, 0.0), (1.5, 0.5)]
    assert not recording.done.done()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (block(np.zeros((4, 10)), lost=5), "too slow"),
        (block(np.zeros((4, 0)), faults=(Fault("unplugged", (), "plug it in again"),)), "plug it in again"),
    ],
)
def test_what_goes_wrong_meanwhile_ends_it(given: Block, why: str) -> None:
    recording = Recording(Fed(), ARRAY, 2.0, lambda *_: None)
    recording.add(block(wave(90.0, 0.5)))
    recording.add(given)
    recording.add(block(wave(90.0, 3.0)))
    with pytest.raises(AudioError, match=why):
        recording.done.result(0)
    assert not recording._blocks


def test_an_input_that_does_not_fit_is_refused() -> None:
    class Mono(Fed):
        n_channels = 1

    with pytest.raises(AudioError, match="channel"):
        Recording(Mono(), ARRAY, 1.0, lambda *_: None)


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (np.zeros((4, 48000)), "muted"),
        (np.pad(wave(0.0, 0.5), ((0, 0), (0, 32000))), "0.5 s of sound"),
        (np.clip(8 * wave(0.0, 3.0), -1, 1), "clipped"),
        (wave(0.0, 0.1), "too short"),
    ],
)
def test_nothing_good_is_learned_from_this(samples: np.ndarray, why: str) -> None:
    with pytest.raises(AudioError, match=why):
        refuse_unfit(np.asarray(samples, np.float32), ARRAY)


def test_good_sound_is_taken() -> None:
    refuse_unfit(np.asarray(wave(0.0, 2.0), np.float32), ARRAY)


def test_a_tap_passes_everything_on() -> None:
    fed, heard = Fed(), list[Block]()
    tap = Tap(fed, heard.append)
    fed.give(wave(0.0, 0.5))
    tap.close()
    assert list(tap.blocks()) == heard
    assert (tap.name, tap.sample_rate, tap.n_channels) == (fed.name, fed.sample_rate, fed.n_channels)
