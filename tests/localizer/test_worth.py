"""What a release is worth: estimates with honest errors, and simulated frames of the array as drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.localizers import ARRAY, prior
from tests.helpers.releases import off_by
from tytoalba.localizer import worth
from tytoalba.localizer.offsets import BOUND, offset_curve
from tytoalba.localizer.worth import USUAL, _heard_from, estimate, simulated
from tytoalba.signal.angles import decode, distance

OFF = np.array([-2.9, -0.3, 2.5])


def test_frames_are_simulated_once_of_one_source_and_without_what_was_taught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worth, "N_RECORDINGS", 2)
    monkeypatch.setattr(worth, "_made", {})
    maps, azimuth = simulated(prior())
    assert maps.shape == (len(azimuth), 360)
    assert len(maps) >= 15
    assert np.isfinite(azimuth).all()
    assert np.median(distance(decode(maps), azimuth)) < 5
    assert simulated(prior())[0] is maps


def test_estimates_find_the_offset_and_know_how_far_they_are_off() -> None:
    rng = np.random.default_rng(0)
    sums, sigma = off_by(OFF, 300).lessons, round(1.64 * BOUND)
    apart = []
    for _ in range(60):
        found = estimate(sums + np.rint(rng.normal(0, sigma, 8)).astype(np.int64), sigma, "lesson")
        apart.append(np.linalg.solve(np.linalg.cholesky(found.covariance), found.coefficients - OFF))
    assert np.sqrt(np.mean(np.square(apart))) < 1.2  # of the errors that they tell


def test_noise_alone_tells_nothing() -> None:
    rng, sigma = np.random.default_rng(1), round(1.64 * BOUND)
    for _ in range(40):
        found = estimate(np.rint(rng.normal(0, sigma, 8)).astype(np.int64), sigma, "lesson")
        assert np.abs(found.coefficients).max() < 3
        assert (np.sqrt(np.diag(found.covariance)) <= USUAL + 1e-9).all()


def test_sound_is_heard_where_the_offset_has_it() -> None:
    azimuth = np.arange(0.0, 360.0, 7.0)
    true = _heard_from(azimuth, OFF[None])[0]
    curve = offset_curve(OFF)
    assert distance(true + curve[np.rint(true).astype(int) % 360], azimuth).max() < 0.1


def test_a_device_as_drawn_is_judged_as_the_prior_is() -> None:
    assert worth._acc(ARRAY, np.array([0.0, 90.0, 180.0]), np.array([4.0, 96.0, 180.0])) == pytest.approx(
        200 / 3
    )
