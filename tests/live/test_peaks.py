"""Peaks of a frame: calibrated where that is known, by contrast where it is not, refused where damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tytoalba.errors import TytoError
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.live.peaks import UNKNOWN, contrast, peaks
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import encode

FIRST = Calibration((0.0, 2.0), (0.1, 0.9), 50)
SECOND = Calibration((0.0, 2.0), (0.05, 0.5), 50)


def test_the_first_peak_has_one_calibration_and_the_others_another() -> None:
    scores = encode([[30.0, 200.0]])[0]
    scores[150:] *= 0.8
    one, two = peaks(scores, (FIRST, SECOND))
    assert (one.azimuth, two.azimuth) == (30.0, 200.0)
    assert one.probability > 0.85
    assert 0.2 < two.probability <= 0.5


def test_the_contrast_has_no_scale_and_falls_with_the_noise() -> None:
    clear = encode([80.0])[0].astype(float)
    assert contrast(clear, np.array([80.0])) == pytest.approx(contrast(7 * clear + 3, np.array([80.0])))
    rng = np.random.default_rng(0)
    chances = [peaks(clear + noise * rng.random(360))[0].probability for noise in (0.0, 2.0, 20.0)]
    assert chances[0] > chances[1] > chances[2]
    assert chances[0] > 0.99


def test_silence_and_a_flat_map_have_no_peak() -> None:
    assert peaks(None) == []
    assert peaks(np.zeros(360)) == []
    assert peaks(Located(0.1, (), (), ())) == []


def test_what_was_located_is_taken_as_it_is() -> None:
    known, unknown = Located(0.1, (40.0, 300.0), (1.0, 0.5), (0.9, 0.4)), Located(0.1, (40.0,), (1.0,))
    assert [(p.azimuth, p.probability) for p in peaks(known)] == [(40.0, 0.9), (300.0, 0.4)]
    assert peaks(known)[1].scores.argmax() == 300
    assert peaks(unknown)[0].probability == UNKNOWN


@pytest.mark.parametrize(
    "frame",
    [np.zeros(180), np.zeros((2, 360)), np.full(360, np.nan), np.full(360, np.inf), np.full(360, -np.inf)],
)
def test_scores_that_cannot_be_right_are_refused(frame: Any) -> None:
    with pytest.raises(TytoError, match="frame"):
        peaks(frame)
