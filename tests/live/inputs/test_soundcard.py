"""A sound card: nothing is lost in silence, and what is plugged out and in again goes on."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.soundcards import LAPTOP, PULSE, RESPEAKER, Card, FakeSounddevice, pretend
from tests.helpers.updates import wait_until
from tytoalba.errors import TytoError
from tytoalba.live.inputs import soundcard, stream
from tytoalba.live.inputs.devices import choose_device
from tytoalba.live.inputs.input import Block
from tytoalba.live.inputs.soundcard import SoundCard
from tytoalba.live.update import Fault
from tytoalba.signal.array import load_array

USB = load_array("respeaker-usb-4")
PEPPER = load_array("pepper")


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundcard, "TELL", 0.02)
    monkeypatch.setattr(soundcard, "AGAIN", 0.01)
    monkeypatch.setattr(soundcard, "CLOSING", 0.1)
    monkeypatch.setattr(stream, "SILENT", 0.1)
    monkeypatch.setattr(soundcard, "ask_server", lambda _: None)


def opened(fake: FakeSounddevice, text: str | None = None) -> SoundCard:
    del fake
    return SoundCard(choose_device(text, USB), USB)


def noise(n_samples: int, n_channels: int = 6, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((n_channels, n_samples)).astype(np.float32)


def until(blocks: Iterator[Block], happened: Callable[[Block], object]) -> Block:
    """The first block of which something is true."""
    give_up = time.monotonic() + 10
    for block in blocks:
        if happened(block):
            return block
        assert time.monotonic() < give_up, "it did not happen in time"
    pytest.fail("the blocks ended")


def kinds(block: Block) -> list[str]:
    return [fault.kind for fault in block.faults]


def test_all_channels_come_as_they_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, LAPTOP, RESPEAKER)
    card = opened(fake)
    assert (card.name, card.sample_rate, card.n_channels) == (RESPEAKER.name, 16000, 6)
    sound = noise(1000)
    before = time.monotonic()
    for part in np.split(sound, [10, 500], axis=1):
        fake.streams[0].give(part)
    block = next(card.blocks())
    np.testing.assert_array_equal(block.samples, sound)
    assert block.arrived is not None
    assert before <= block.arrived <= time.monotonic()
    assert (block.lost, block.faults) == (0, ())
    card.close()
    assert fake.streams[0].closed


def test_what_nobody_takes_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, RESPEAKER)
    card = opened(fake)
    sound = noise(5 * 16000)
    for part in np.split(sound, 50, axis=1):
        fake.streams[0].give(part)
    block = next(card.blocks())
    assert block.lost == 3 * 16000
    np.testing.assert_array_equal(block.samples, sound[:, 3 * 16000 :])
    card.close()


def test_an_overflow_of_the_driver_is_counted_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, RESPEAKER)
    card = opened(fake)
    first, second, third = np.split(noise(480), 3, axis=1)
    fake.streams[0].give(first)
    fake.streams[0].give(second, overflow=True)
    fake.streams[0].give(third)
    blocks = card.blocks()
    one, other = next(blocks), next(blocks)
    assert (one.lost, one.samples.shape[1]) == (0, 160)
    assert (other.lost >= 160, other.samples.shape[1]) == (True, 320)
    card.close()


def test_a_device_that_is_gone_is_told_and_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, LAPTOP, RESPEAKER)
    card = opened(fake)
    blocks = card.blocks()
    fake.streams[0].give(noise(160))
    next(blocks)
    fake.cards.remove(RESPEAKER)
    fake.streams[0].vanish()
    told = until(blocks, lambda block: not block.samples.size)
    assert kinds(told) == ["unplugged"]
    assert "is gone: unplugged" in told.faults[0].text
    wait_until(lambda: fake.n_initialised > 3)  # it is looked for, again and again
    assert kinds(next(blocks)) == ["unplugged"]
    fake.cards.insert(0, replace(RESPEAKER, name=RESPEAKER.name.replace("hw:1", "hw:3")))
    wait_until(lambda: len(fake.streams) == 2)
    fake.streams[1].give(noise(160, seed=1))
    back = until(blocks, lambda block: block.samples.size)
    np.testing.assert_array_equal(back.samples, noise(160, seed=1))
    assert kinds(back) == []
    assert card.name.endswith("(hw:3,0)")
    card.close()
    assert [one.closed for one in fake.streams] == [True, True]


def test_a_device_that_falls_silent_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, RESPEAKER)
    card = opened(fake)
    blocks = card.blocks()
    fake.streams[0].give(noise(160))
    next(blocks)
    assert kinds(next(blocks)) == ["unplugged"]  # no callback comes any more
    card.close()


def test_only_zeros_after_sound_are_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "ZEROS", 0.3)
    fake = pretend(monkeypatch, RESPEAKER)
    card = opened(fake)
    blocks = card.blocks()
    stop = threading.Event()

    def give() -> None:
        while not stop.wait(0.01):
            one = fake.streams[-1]
            if one.active:
                one.give(noise(160) * (len(fake.streams) > 2 or not first.is_set()))

    first = threading.Event()
    thread = threading.Thread(target=give)
    thread.start()
    assert kinds(next(blocks)) == []
    first.set()
    told = until(blocks, lambda block: block.faults)
    assert kinds(told) == ["unplugged"]
    assert told.faults[0].text.startswith("only zeros come from sound card 0")
    until(blocks, lambda block: len(fake.streams) == 2 and block.samples.size)
    again = until(blocks, lambda block: block.faults and len(fake.streams) == 2)
    assert kinds(again) == ["unplugged"]
    until(blocks, lambda block: len(fake.streams) == 3 and block.samples.any() and not block.faults)
    stop.set()
    thread.join()
    card.close()


def test_a_sound_server_that_is_frozen_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: list[object] = []
    monkeypatch.setattr(atexit, "unregister", handlers.append)
    frozen = replace(PULSE, frozen=True)
    fake = pretend(monkeypatch, frozen)
    card = opened(fake, "pulse")
    blocks = card.blocks()
    fake.streams[0].give(noise(160))
    told = until(blocks, lambda block: "does not answer" in "".join(fault.text for fault in block.faults))
    assert kinds(told) == ["unplugged"]
    frozen.frozen = False
    fake.streams[0].released.set()
    wait_until(lambda: len(fake.streams) == 2)
    card.close()
    assert handlers == []  # it came round: PortAudio may end as always


def test_a_stream_that_never_closes_lets_python_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handlers: list[object] = []
    monkeypatch.setattr(atexit, "unregister", handlers.append)
    fake = pretend(monkeypatch, replace(RESPEAKER, frozen=True))
    card = opened(fake)
    card.close()
    assert handlers == [fake._exit_handler]
    fake.streams[0].released.set()


def test_what_a_sound_server_does_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = Fault("mixed", (), "it mixes")
    monkeypatch.setattr(soundcard, "ask_server", lambda n_channels: (mixed,) if n_channels == 6 else None)
    monkeypatch.setattr(soundcard, "ASK", 0.01)
    fake = pretend(monkeypatch, PULSE)
    card = opened(fake, "pulse")
    block = until(card.blocks(), lambda block: block.faults)
    assert block.faults == (mixed,)
    assert not block.samples.size  # before there is any sound
    card.close()


def test_a_higher_rate_is_resampled(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, Card("USB (hw:2,0)", 6, (44100, 48000)))
    card = opened(fake)
    assert (card.sample_rate, card.recorded_at) == (16000, 48000)
    tone = np.sin(2 * np.pi * 1000 * np.arange(48000) / 48000).astype(np.float32)
    fake.streams[0].give(np.tile(tone, (6, 1)))
    block = next(card.blocks())
    assert block.samples.shape[0] == 6
    assert 15000 < block.samples.shape[1] <= 16000
    spectrum = np.abs(np.fft.rfft(block.samples[3, -8000:] * np.hanning(8000)))
    assert np.argmax(spectrum) == 500  # 1000 Hz
    card.close()


def test_a_rate_that_is_not_what_the_device_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = stream.Meter(16000)
    for k in range(600):
        meter.add(176, 0, 10 + 0.01 * k)  # 17600 samples per second
    assert meter.off() == pytest.approx(17600, rel=1e-3)
    for k in range(600):
        meter.add(160, 0, 20 + 0.01 * k)
    assert meter.off() is None

    fake = pretend(monkeypatch, RESPEAKER)
    monkeypatch.setattr(stream, "RATE_WINDOW", 0.0)
    card = opened(fake)
    blocks = card.blocks()
    fake.streams[0].give(noise(160))
    next(blocks)
    fake.streams[0].give(noise(16000))  # a second of sound within no time
    assert kinds(next(blocks)) == ["rate"]
    card.close()


def test_close_ends_the_blocks_from_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, RESPEAKER)
    card = opened(fake)
    closing = threading.Timer(0.05, card.close)
    closing.start()
    assert [block for block in card.blocks() if block.samples.size] == []
    closing.join()
    card.close()
    assert fake.streams[0].closed


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (
            Card("webcam (hw:2,0)", 2),
            "has 2 channels; array 'pepper' has its microphones on channels 0, 1",
        ),
        (
            Card("slow (hw:2,0)", 4, (16000,)),
            "records 4 channels at 16000 Hz at most, and 48000",
        ),
        (Card("busy (hw:2,0)", 4, ()), "cannot be opened .*does no other program record from it"),
    ],
)
def test_what_cannot_work_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, card: Card, said: str
) -> None:
    fake = pretend(monkeypatch, card)
    with pytest.raises(TytoError, match=said):
        SoundCard(choose_device("0", PEPPER), PEPPER)
    assert fake.streams == []
