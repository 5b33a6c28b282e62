"""From blocks to updates: latency, gaps, rates, faults, outputs that fail, and memory that does not grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.inputs import GONE, Clock, FakeInput, blocks_of, no_sound
from tests.helpers.waves import plane_wave
from tytoalba.errors import AudioError
from tytoalba.live.inputs.input import Block
from tytoalba.live.listening import Listener
from tytoalba.live.segments import Moment
from tytoalba.live.tracking import Following, follow
from tytoalba.live.update import Fault, Update
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import resample

ARRAY = load_array("respeaker-usb-4")
RATE = ARRAY.sample_rate
HOP = ARRAY.frame_length // 2 / RATE


def wave(azimuth: float = 40.0, seconds: float = 1.0, seed: int = 0) -> NDArray[np.float32]:
    return plane_wave(ARRAY, azimuth, seconds, seed)


def following() -> Following:
    return Following(ARRAY, "srp")


def heard(
    blocks: Sequence[Block], *, clock: Clock | None = None, rate: int = RATE, **options: object
) -> list[Update]:
    clock = clock or Clock()
    n_channels = blocks[0].samples.shape[0]
    fake = FakeInput(blocks, rate, clock, n_channels=n_channels)
    with Listener(fake, following(), clock=clock, **options) as listener:  # type: ignore[arg-type]
        found = [update for update, _ in listener]
    assert fake.closed
    return found


class Kept:
    """An output, a recording, and a watch of health, that keep what they get."""

    def __init__(self, faults: tuple[Fault, ...] = ()) -> None:
        self.updates: list[Update] = []
        self.samples: list[NDArray[np.float32]] = []
        self.lost: list[int] = []
        self.faults, self.closed = faults, 0

    def send(self, update: Update, moment: Moment) -> None:
        assert moment.time == update.time
        self.updates.append(update)

    def close(self) -> None:
        self.closed += 1

    def add(self, samples: NDArray[np.float32], lost: int = 0) -> None:
        self.samples.append(samples)
        self.lost.append(lost)

    def feed(self, samples: NDArray[np.float32]) -> None:
        self.samples.append(samples)


class Failing(Kept):
    """An output that is broken."""

    def send(self, update: Update, moment: Moment) -> None:
        super().send(update, moment)
        raise RuntimeError("broken")

    def close(self) -> None:
        super().close()
        raise RuntimeError("broken")


def test_tracks_are_those_of_the_same_sound_as_a_recording() -> None:
    sound = wave()
    for size in (1, 341, 5000, sound.shape[1]):
        blocks = blocks_of(sound[:, : 4000 if size == 1 else None], RATE, size=size)
        given = np.concatenate([block.samples for block in blocks], axis=1)
        wanted = [Update.of(moment) for moment in follow(given, ARRAY, "srp")]
        assert heard(blocks) == wanted


def test_channels_of_a_device_are_picked_and_all_are_watched() -> None:
    rng = np.random.default_rng(0)
    six = np.concatenate([rng.standard_normal((1, RATE)), wave(), rng.standard_normal((1, RATE))])
    muted = Fault("muted", (0,), "channel 0 is silent")
    watch, keep = Kept((muted,)), Kept()
    blocks = blocks_of(np.asarray(six, np.float32), RATE)
    found = heard(blocks, watch=watch, keep=keep)
    assert round(found[-1].tracks[0].azimuth) == 40
    assert found[-1].faults == (muted,)
    assert np.array_equal(np.concatenate(watch.samples, axis=1), np.asarray(six, np.float32))
    assert np.array_equal(np.concatenate(keep.samples, axis=1), wave())


def test_another_rate_is_resampled_as_a_recording_is() -> None:
    fast = np.asarray(resample(wave(), RATE, 48000), np.float32)
    wanted = list(follow(resample(fast, 48000, RATE), ARRAY, "srp"))
    found = heard(blocks_of(fast, 48000, began=100.0, size=1024), rate=48000)
    assert len(found) in (len(wanted), len(wanted) - 1)  # its last samples come with the next block
    assert [update.tracks for update in found] == [one.tracks for one in wanted][: len(found)]
    # a block of 21 ms, and what the filter needs to see
    assert 0 < max(update.latency or 0 for update in found) < 0.05


def test_latency_is_counted_from_the_last_sample_of_the_frame() -> None:
    clock = Clock()
    blocks = blocks_of(wave(), RATE, began=100.0)

    class Slow(Kept):
        def feed(self, samples: NDArray[np.float32]) -> None:  # noqa: ARG002
            clock.now += 0.010

    found = heard(blocks, clock=clock, watch=Slow())
    for update in found:
        last_sample = update.time + ARRAY.frame_length / 2 / RATE  # a frame's end
        end_of_block = np.ceil(round(last_sample * RATE) / 341) * 341 / RATE
        assert update.latency == pytest.approx(end_of_block - last_sample + 0.010, abs=1e-3)
    assert heard(blocks_of(wave(), RATE))[0].latency is None


def test_lost_samples_are_counted_and_nothing_is_glued_together() -> None:
    first, second = wave(40.0), wave(200.0, seed=1)
    blocks = blocks_of(first, RATE, began=100.0)
    lost = RATE // 2
    after = blocks_of(second, RATE, began=100.0 + 1.5)
    keep = Kept()
    found = heard([*blocks, replace(after[0], lost=lost), *after[1:]], keep=keep)
    before = [one for one in found if one.time < 1.0]
    rest = [one for one in found if one.time >= 1.0]
    assert [one.dropped for one in before] == [0] * len(before)
    assert {one.dropped for one in rest} == {lost}
    assert rest[0].time == pytest.approx(1.5 + ARRAY.frame_length / 2 / RATE, abs=1e-3)
    assert all(later.time > one.time for one, later in pairwise(found))
    assert sum(keep.lost) == lost
    # frames after the gap are those of the second sound alone
    scores = [moment.scores for moment in follow(second, ARRAY, "srp")]
    fake = FakeInput([*blocks, replace(after[0], lost=lost), *after[1:]], RATE)
    moments = [moment for _, moment in Listener(fake, following())]
    for moment, wanted in zip(moments[-len(scores) :], scores, strict=True):
        assert moment.scores is not None
        assert wanted is not None
        assert np.array_equal(moment.scores, wanted)


def test_an_input_that_is_gone_is_told_and_time_goes_on() -> None:
    blocks = blocks_of(wave(), RATE, began=100.0)
    gone = [no_sound(4, 101.0 + 0.25 * number) for number in range(1, 41)]
    back = blocks_of(wave(200.0), RATE, began=111.5)
    found = heard([*blocks, *gone, *back])
    told = [one for one in found if one.faults]
    assert [one.time for one in told] == [pytest.approx(1 + 0.25 * number) for number in range(1, 41)]
    assert {one.faults for one in told} == {(GONE,)}
    assert {one.latency for one in told} == {None}
    assert {one.level for one in told} == {-240.0}
    assert told[0].tracks
    assert not told[-1].tracks  # who is not heard is forgotten
    after = [one for one in found if one.time > 11.1]
    assert after[0].time == pytest.approx(11.5 + ARRAY.frame_length / 2 / RATE, abs=2e-3)
    assert not after[0].faults
    assert {one.dropped for one in found} == {0}  # this machine was not too slow
    assert round(after[-1].tracks[0].azimuth) == 200


def test_an_input_that_comes_back_too_early_does_not_turn_time_back() -> None:
    blocks = blocks_of(wave(), RATE, began=100.0)
    early = [replace(block, arrived=None) for block in blocks]
    found = heard([*blocks, no_sound(4, 103.0), *early])
    assert all(later.time > one.time for one, later in pairwise(found))
    assert heard([no_sound(4, 100.0), no_sound(4, 100.5), no_sound(4, 100.5)])[-1].time == 0.5


def test_an_output_that_fails_is_said_once_and_listening_goes_on() -> None:
    said: list[str] = []
    broken, sound = Failing(), Kept()
    found = heard(blocks_of(wave(), RATE), outputs=(broken, sound), say=said.append)
    assert sound.updates == broken.updates == found
    assert (broken.closed, sound.closed) == (1, 1)
    (line,) = said
    assert "Failing: broken" in line


def test_a_wrong_rate_is_told_within_a_second_and_a_half() -> None:
    sound = wave(seconds=2.0)
    right = heard(blocks_of(sound, RATE, began=100.0))
    assert not any(one.faults for one in right)
    tripled = [replace(b, arrived=100 + n * 341 / 48000) for n, b in enumerate(blocks_of(sound, RATE))]
    assert not heard(tripled)[0].faults
    assert not heard(tripled[: len(tripled) // 2])[-1].faults
    long = blocks_of(wave(seconds=5.0), RATE)
    tripled = [replace(block, arrived=100 + n * 341 / 48000) for n, block in enumerate(long)]
    (fault,) = heard(tripled)[-1].faults
    assert fault.kind == "rate"
    assert "48000" in fault.text


def test_what_is_no_number_counts_as_silence() -> None:
    sound = wave()
    sound[1, 8000:8005] = np.nan
    sound[2, 8000] = np.inf
    keep = Kept()
    found = heard(blocks_of(sound, RATE, size=RATE // 20), keep=keep)
    (fault,) = {fault for one in found for fault in one.faults}
    assert (fault.kind, fault.channels) == ("damaged", (1, 2))
    assert all(np.isfinite(one.level) for one in found)
    assert np.array_equal(np.concatenate(keep.samples, axis=1), np.nan_to_num(sound, posinf=0))


def test_stop_ends_it_between_two_frames() -> None:
    fake = FakeInput(blocks_of(wave(), RATE), RATE)
    listener = Listener(fake, following())
    for number, _ in enumerate(listener):
        if number == 3:
            listener.stop()
        assert number <= 3
    assert fake.closed


def test_too_few_channels_are_refused_before_any_work() -> None:
    with pytest.raises(AudioError, match="a fake input: channels that came: 2"):
        Listener(FakeInput([], RATE, n_channels=2), following())


def test_memory_does_not_grow_with_time() -> None:
    block = Block(wave(seconds=0.5))

    class Blind(Kept):
        def feed(self, samples: NDArray[np.float32]) -> None:
            """Health is measured in tests/live/test_health.py; it is slow while memory is traced."""

    listener = iter(Listener(FakeInput([block] * 90, RATE), following(), watch=Blind()))
    tracemalloc.start()
    held = []
    for _ in range(6):
        for _ in range(60):
            next(listener)
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[3] < 100_000, held  # a second of sound has 256 kB


def test_a_muted_channel_is_noticed_within_a_second() -> None:
    sound = wave(seconds=2.0)
    sound[2, RATE:] = 0
    found = heard(blocks_of(sound, RATE))
    muted = [one.time for one in found if ("muted", (2,)) in {(f.kind, f.channels) for f in one.faults}]
    assert 1.0 < muted[0] < 2.0
