from __future__ import annotations

import re

import numpy as np

from tytoalba.bench.odas.configuration import RATE, configuration
from tytoalba.bench.odas.settings import SHIPPED, OdasSettings
from tytoalba.signal.array import load_array
from tytoalba.signal.odas import find_settings

ARRAY = load_array("respeaker-usb-4")


def test_the_array_comes_back_out_of_the_text() -> None:
    turned = ARRAY.rotated(90.0)
    found = find_settings(configuration(turned, SHIPPED, "in.raw", "out.json"))
    assert np.allclose(np.array(found.positions, float), turned.coordinates)
    assert found.rate == str(RATE)
    assert found.channels == ["1", "2", "3", "4"]


def test_settings_are_in_the_text_and_nothing_else_changes() -> None:
    shipped = configuration(ARRAY, SHIPPED, "in.raw", "out.json")
    other = configuration(
        ARRAY, OdasSettings(mode="particle", n_inactive=12, n_tracks=2, p_new=0.03), "in.raw", "out.json"
    )
    assert 'mode = "kalman"' in shipped
    assert 'mode = "particle"' in other
    assert "N_inactive = ( 12, 12 )" in other
    assert "Pnew = 0.03" in other
    assert len(re.findall(r"\w+ = ", shipped)) == len(re.findall(r"\w+ = ", other))


def test_every_float_has_a_point_or_an_exponent() -> None:
    """To libconfig, 1 is another type than 1.0, and one that is not turned into a float."""
    text = configuration(ARRAY, OdasSettings(sigma_q=1, p_new=1), "in.raw", "out.json")
    assert "sigmaQ = 1.0" in text
    assert "Pnew = 1.0" in text
    assert "mu = 343.0" in text
