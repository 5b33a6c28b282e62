"""The hook as `tyto bench peers` runs it: a process of its own that finds a wave."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from examples import peer_pyroomacoustics
from tests.helpers.waves import plane_wave
from tytoalba.bench.peers import Peer
from tytoalba.data.recording import Recording
from tytoalba.signal.angles import distance
from tytoalba.signal.array import load_array


@pytest.mark.parametrize("azimuths", [(130.0,), (20.0, 250.0)])
def test_it_finds_waves(azimuths: tuple[float, ...]) -> None:
    array = load_array("respeaker-usb-4")
    samples = plane_wave(array, azimuths, 1.0)
    frames = np.arange(8)
    recording = Recording(
        "wave", "test", array, frames, np.tile(azimuths, (8, 1)), lambda: samples, frame_length=2730, hop=1365
    )
    path = Path(peer_pyroomacoustics.__file__)
    found = Peer.of(f"{sys.executable} {path} {{wav}} {{array}} {{sources}}")(recording)[:, : len(azimuths)]
    assert distance(np.sort(found, axis=1), np.array(azimuths)).max() < 5
