"""A recording played at its own speed: no drift, suspended programs, loops, sealed files."""

from __future__ import annotations

import threading
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.inputs import Clock
from tytoalba.errors import AudioError
from tytoalba.live.inputs.files import BLOCK, LATE, PlayedFile
from tytoalba.storage.soundfiles import read_audio, write_audio

RATE = 16000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    write_audio(tmp_path / "talk.flac", 0.5 * rng.uniform(-1, 1, (3, 4000)), RATE)
    return tmp_path / "talk.flac"


def test_all_channels_as_the_file_has_them(path: Path) -> None:
    played = PlayedFile(path, fast=True)
    assert (played.name, played.sample_rate, played.n_channels) == ("talk.flac", RATE, 3)
    blocks = list(played.blocks())
    assert np.array_equal(np.concatenate([one.samples for one in blocks], axis=1), read_audio(path).samples)
    assert {one.arrived for one in blocks} == {None}


class Waiting(threading.Event):
    """What waits by a clock that is set by hand."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.clock.now += timeout + 0.003  # every wait takes a little longer than it should
        return self.is_set()


def played(path: Path, clock: Clock) -> PlayedFile:
    found = PlayedFile(path, clock=clock, loop=True)
    found._closed = Waiting(clock)
    return found


def test_waits_that_take_too_long_do_not_add_up(path: Path) -> None:
    clock = Clock(50.0)
    for number, block in enumerate(played(path, clock).blocks(), 1):
        assert block.arrived is not None
        assert 0 <= clock.now - block.arrived <= 0.0031
        if number == 1000:
            break
    assert clock.now - 50.0 == pytest.approx(1000 * BLOCK * 4000 / (12 * 341), rel=0.01)


def test_after_a_suspension_it_goes_on_later_and_not_faster(path: Path) -> None:
    clock = Clock(50.0)
    blocks = played(path, clock).blocks()
    first = [block.arrived for block in islice(blocks, 10)]
    clock.now += LATE + 60
    after = [block.arrived for block in islice(blocks, 10)]
    assert after[0] == pytest.approx(clock.now - (after[-1] - after[0]), abs=0.01)  # type: ignore[operator]
    assert after[0] - first[-1] > LATE + 60  # type: ignore[operator]


def test_a_short_delay_is_caught_up(path: Path) -> None:
    clock = Clock(50.0)
    blocks = played(path, clock).blocks()
    next(blocks)
    clock.now += 0.5
    last = list(islice(blocks, 60))[-1]
    assert last.arrived == pytest.approx(50 + 61 * 4000 / 12 / RATE, rel=0.01)


def test_close_ends_a_wait_at_once(path: Path) -> None:
    found = PlayedFile(path, loop=True)
    began = time.monotonic()
    threading.Timer(0.05, found.close).start()
    list(found.blocks())
    assert time.monotonic() - began < 1


def test_a_file_that_is_no_sound_is_refused_before_it_plays(tmp_path: Path) -> None:
    (tmp_path / "notes.wav").write_text("not a sound")
    with pytest.raises(AudioError, match="is text, not sound"):
        PlayedFile(tmp_path / "notes.wav")


def test_a_sealed_file(path: Path) -> None:
    pytest.importorskip("pyrage")
    from tytoalba.storage.age import Identity, load_pyrage
    from tytoalba.storage.sealed import seal_file

    secret = load_pyrage().x25519.Identity.generate()
    key = Identity(str(secret), str(secret.to_public()))
    seal_file(path, path.with_suffix(".age"), [str(key.public)])
    found = PlayedFile(path.with_suffix(".age"), [key], fast=True)
    sound = np.concatenate([block.samples for block in found.blocks()], axis=1)
    assert np.array_equal(sound, read_audio(path).samples)
