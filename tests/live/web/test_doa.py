from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.updates import track
from tytoalba.live.update import Update
from tytoalba.live.web.doa import Doa, reachy_angle


@pytest.mark.parametrize("azimuth", range(360))
def test_every_degree_of_the_circle(azimuth: int) -> None:
    angle = reachy_angle(azimuth)
    # 0 left, pi/2 front or back, pi right: all that a half circle can say is how far to the left it is
    assert math.cos(angle) == pytest.approx(math.sin(math.radians(azimuth)), abs=1e-12)
    assert 0 <= angle <= math.pi


@given(st.floats(-720, 720))
def test_turns_and_mirror_images_sound_the_same(azimuth: float) -> None:
    assert reachy_angle(azimuth + 360) == pytest.approx(reachy_angle(azimuth), abs=1e-9)
    assert reachy_angle(180 - azimuth) == pytest.approx(reachy_angle(azimuth), abs=1e-9)


def test_the_surest_who_speaks_counts_and_stays() -> None:
    doa = Doa()
    doa.hear(Update(0.1, (), -60.0))
    assert not doa.told
    doa.hear(Update(0.2, (track(1, 90.0, probability=0.6), track(2, 270.0, probability=0.9)), -30.0))
    assert doa.told == {"angle": round(math.pi, 6), "speech_detected": True}
    doa.hear(Update(0.3, (track(1, 90.0, speaking=False, probability=1.0),), -60.0))
    assert doa.told == {"angle": round(math.pi, 6), "speech_detected": False}
