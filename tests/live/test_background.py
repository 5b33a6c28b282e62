"""A background is what sounds all the time: learned as a mean, taken away, and never more than that."""

from __future__ import annotations

import numpy as np
import pytest

from tytoalba.errors import TytoError
from tytoalba.live.background import Background
from tytoalba.signal.angles import encode

FAN = 0.6 * encode([80.0])[0]


def test_the_mean_is_taken_away_and_a_talker_is_left() -> None:
    background = Background.learned([FAN, None, 0.5 * FAN])
    assert background.n_frames == 2
    left = background.left(np.maximum(FAN, encode([200.0])[0]))
    assert left[200] == pytest.approx(1.0)
    assert left[80] == pytest.approx(0.15)
    assert left.min() == 0


def test_images_stay_ruled_out_and_silence_teaches_nothing() -> None:
    line = np.where(np.arange(360) > 180, -np.inf, FAN)
    assert np.isneginf(Background.learned([line]).left(line)[181:]).all()
    nothing = Background.learned([None])
    assert nothing.n_frames == 0
    assert np.array_equal(nothing.left(FAN), FAN)


@pytest.mark.parametrize("frame", [np.zeros(10), np.full(360, np.nan)])
def test_other_frames_are_refused(frame: np.ndarray) -> None:
    with pytest.raises(TytoError, match="360 scores"):
        Background.learned([frame])
