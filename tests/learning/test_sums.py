"""Labels as integers: those that a network learns, rounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.learning.sums import gaussian_labels, quantize_labels
from tytoalba.signal.angles import encode

torch = pytest.importorskip("torch")
quick = settings(max_examples=25, deadline=None)


@given(
    st.lists(
        st.lists(st.one_of(st.floats(-720, 1080), st.just(float("nan"))), min_size=3, max_size=3), min_size=1
    ),
    st.floats(0.5, 60),
    st.sampled_from([4, 72, 360]),
)
@quick
def test_gaussian_labels_are_the_encoded_ones_rounded(
    azimuth: list[list[float]], sigma: float, n_directions: int
) -> None:
    degrees = np.array(azimuth)
    found = gaussian_labels(degrees, sigma, n_directions)
    assert found.dtype == np.int8
    real = 127 * encode(degrees, sigma, n_directions).astype(np.float64)
    away = np.abs(found - quantize_labels(encode(degrees, sigma, n_directions)).astype(int))
    # encode rounds to float32 first: a label that lies on the edge of two steps may fall to either side
    assert away.max() <= 1
    assert not away[np.abs(real % 1 - 0.5) > 1e-4].any()
    assert np.array_equal(gaussian_labels(torch.tensor(degrees), sigma, n_directions).numpy(), found)


def test_labels_of_whole_degrees_are_the_encoded_ones_exactly() -> None:
    degrees = np.stack([np.arange(360.0), np.roll(np.arange(360.0), 13)], axis=1)
    degrees[::3, 1] = np.nan
    degrees[5] = np.nan
    degrees = np.concatenate([degrees, degrees + 360.0, degrees - 720.0, degrees + 0.25])
    for sigma in (3.0, 8.0, 20.0):
        expected = quantize_labels(encode(degrees, sigma))
        assert np.array_equal(gaussian_labels(degrees, sigma, 360), expected)
        assert np.array_equal(gaussian_labels(torch.tensor(degrees), sigma, 360).numpy(), expected)
    assert not gaussian_labels(degrees[5:6], 8.0, 360).any()
