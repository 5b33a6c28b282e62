"""Homes: the same from the same generator, talkers inside the room, sound from where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tytoalba.data.simulation.home import Home
from tytoalba.data.simulation.microphones import CALM
from tytoalba.data.simulation.room import convolved
from tytoalba.data.simulation.voice import SyntheticVoices, say
from tytoalba.signal.angles import decode, distance
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import frames, spoken
from tytoalba.signal.srp import SrpPhat

ARRAY = load_array("respeaker-usb-4")


def drawn(seed: int, **options: Any) -> tuple[Home, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return Home.draw(ARRAY, 5, rng, smallest=(4.0, 3.5), rt60=lambda _: 0.2, **options), rng


@pytest.mark.parametrize("seed", range(5))
def test_talkers_stand_inside_the_room(seed: int) -> None:
    home, rng = drawn(seed)
    assert np.allclose(np.diff(home.azimuth) % 360.0, 72.0)
    for azimuth in home.azimuth:
        talker = home.talker(azimuth, rng, nearest=0.6, heights=(-0.1, 0.5))
        assert distance(np.rad2deg(np.arctan2(talker[1], talker[0])), azimuth) < 1e-9
        assert np.hypot(*talker[:2]) >= 0.6
        assert home.room.contains(np.asarray(home.placement.centre) + home.placement.to_room(talker), 0.1)


def test_sound_comes_from_the_talker_and_is_the_same_again() -> None:
    made = []
    for _ in range(2):
        home, rng = drawn(3, conditions=CALM)
        response = home.response(home.talker(home.azimuth[0], rng, nearest=0.8, heights=(0.0, 0.2)), rng)
        dry = say(SyntheticVoices(), 2, 1.5, ARRAY.sample_rate, rng)
        made.append(home.recording(convolved(dry, response), (30.0, 30.0), rng))
    np.testing.assert_array_equal(made[0], made[1])
    cut = frames(made[0], ARRAY.frame_length, ARRAY.frame_length // 2)
    found = decode(SrpPhat(ARRAY, ARRAY.frame_length)(cut[spoken(cut)]))
    assert np.median(distance(found, home.azimuth[0])) < 5.0


def test_another_array_may_give_diffuse_sound_its_coherence() -> None:
    home, _ = drawn(0, late=ARRAY)
    assert home.late is ARRAY
    assert drawn(0)[0].late is not ARRAY
