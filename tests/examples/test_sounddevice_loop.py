from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from examples import sounddevice_loop
from tests.helpers.pulse import needs_pulse, pulse
from tytoalba.data.demo import demo_recording
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array
from tytoalba.storage.soundfiles import read_audio

Samples = NDArray[np.float32]


class SoundCard:
    """A stand-in for sounddevice: it plays a sound through the callback at once, and then is silent."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.options: dict[str, Any] = {}
        self.is_open = False

    def query_devices(self, device: int | str | None, kind: str) -> dict[str, Any]:
        assert kind == "input"
        return {"name": device, "max_input_channels": len(self.samples)}

    def InputStream(self, callback: Callable[..., None], **options: Any) -> SoundCard:  # noqa: N802
        self.options, self.callback = options, callback
        return self

    def __enter__(self) -> SoundCard:
        self.is_open = True
        length = self.options["blocksize"]
        buffer = np.empty((length, len(self.samples)), np.float32)  # the same memory for each block
        for start in range(0, self.samples.shape[1] - length + 1, length):
            buffer[:] = self.samples[:, start : start + length].T
            self.callback(buffer, length, SimpleNamespace(), 0)
            buffer[:] = np.nan
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False


def six_channels() -> Samples:
    """The demo recording as the ReSpeaker gives it: microphones are 1 to 4, 0 and 5 are something else."""
    path, _ = demo_recording()
    samples = read_audio(path, load_array("respeaker-usb-4")).samples
    other = np.random.default_rng(0).standard_normal((1, samples.shape[1])).astype(np.float32)
    return np.concatenate([other, samples, other])


def test_who_speaks_where_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = SoundCard(six_channels())
    monkeypatch.setattr(sounddevice_loop, "sounddevice", card)
    monkeypatch.setattr(sounddevice_loop, "LONGEST_QUEUE", 100)
    sounddevice_loop.main(["--device", "3", "--seconds", "7"])
    assert not card.is_open
    assert card.options == {
        "device": 3, "channels": 6, "samplerate": 16000, "blocksize": 1600, "dtype": "float32",
    }  # fmt: skip

    _, truth = demo_recording()
    lines = capsys.readouterr().out.splitlines()
    spoken = [
        (float(line.split(" s:")[0]), float(azimuth))
        for line in lines
        for azimuth in re.findall(r"talker \d+ at (\d+) degrees", line)
    ]
    assert {one.azimuth for one in truth} == {
        one.azimuth for one in truth for _, azimuth in spoken if distance(azimuth, one.azimuth) < 10
    }
    for time, azimuth in spoken:
        there = [one.azimuth for one in truth if one.start <= time <= one.end + 1.0]
        assert min(distance(azimuth, one) for one in there) < 10
    assert any("nobody speaks" in line for line in lines)


def test_a_machine_that_is_too_slow_loses_blocks_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = SoundCard(np.zeros((4, 16000), np.float32))
    monkeypatch.setattr(sounddevice_loop, "sounddevice", card)
    monkeypatch.setattr(sounddevice_loop, "LONGEST_QUEUE", 4)
    given = list(sounddevice_loop.blocks(None, 16000, 0.4))
    assert [block.shape for block in given] == [(4, 1600)] * 4
    assert capsys.readouterr().out.count("6 blocks were lost") == 1


def test_a_device_that_is_silent_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    card = SoundCard(np.zeros((4, 1600), np.float32))
    monkeypatch.setattr(sounddevice_loop, "sounddevice", card)
    monkeypatch.setattr(sounddevice_loop, "PATIENCE", 0.01)
    with pytest.raises(SystemExit, match="unplugged"):
        list(sounddevice_loop.blocks(None, 16000, 0))
    assert not card.is_open


@pytest.mark.end_to_end
@needs_pulse
def test_a_real_sound_card_is_heard() -> None:
    samples = six_channels()
    with pulse("card") as server:
        server.plug_in("card", 6, 16000)
        command = [sys.executable, sounddevice_loop.__file__, "--device", "card", "--seconds", "11"]
        with subprocess.Popen(
            command, env=server.environment, stdout=subprocess.PIPE, text=True
        ) as listening:
            server.play("card", np.tile(samples, 2), 16000)
            printed, _ = listening.communicate(timeout=60)
    assert listening.returncode == 0
    heard = [float(azimuth) for azimuth in re.findall(r"talker \d+ at (\d+) degrees", printed)]
    _, truth = demo_recording()
    places = {one.azimuth for one in truth}
    assert places == {place for place in places if any(distance(one, place) < 10 for one in heard)}, printed
    assert all(min(distance(one, place) for place in places) < 10 for one in heard), printed
    assert "lost" not in printed
