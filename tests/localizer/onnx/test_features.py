"""The front end in a graph: the same phases, and the same features to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.fft import rfft

from tests.helpers.onnx_graphs import noise, ran
from tytoalba.learning.prior.exact import INPUT_GRID
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.localizer.onnx import features
from tytoalba.localizer.onnx.builder import Builder, Name
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.phases import hamming
from tytoalba.signal.phases import phases as rounded_phases

pytest.importorskip("onnx")


@pytest.mark.parametrize(
    ("n", "rows"), [(2730, 42), (682, 22), (8192, 64), (2048, 32), (13, 1), (36, 6), (2, 1)]
)
def test_frames_are_cut_into_rows_and_columns(n: int, rows: int) -> None:
    assert features.factors_of(n) == (rows, n // rows)


@pytest.mark.parametrize("n", [64, 97, 682, 2730])
def test_the_spectrum_is_the_fourier_transform(n: int) -> None:
    x, start, stop = noise((2, 1, 2, n)), 3, n // 2 + 1

    def build(g: Builder, x: Name) -> Name:
        return g.join(features._spectrum(g, g.cast(x, g.real), n, start, stop), axis=3)

    found, wanted = ran(build, x), rfft(x.astype(np.float64))[..., start:stop]
    assert np.abs(found - np.concatenate([wanted.real, wanted.imag], axis=-1)).max() < 1e-13


@pytest.mark.parametrize("scale", [1.0, 1e-30, 2.0**-140, 1e30])
def test_phases_are_on_the_steps_of_tytoalba(scale: float) -> None:
    """At every level, also where float32 has no room left; silence and weak bins are 0."""
    gcc = prior_gcc(load_array("respeaker-usb-4")).window
    x = (noise((3, 1, 4, gcc.n_samples)) * np.float32(scale)).astype(np.float32)
    x[0, 0, 1] = 0.0
    x[1, 0, 2] = np.float32(scale) * np.cos(2 * np.pi * 40 / gcc.n_samples * np.arange(gcc.n_samples))

    def build(g: Builder, x: Name) -> Name:
        return g.join(features.phases(g, g.cast(x, g.real), gcc), axis=3)

    wanted = np.concatenate(rounded_phases(x * hamming(gcc.n_samples), *gcc.span, rfft), axis=-1)
    assert not wanted[0, 0, 1].any()
    if scale > 2.0**-126:  # below, rounding of the samples is no little noise
        assert (wanted[1, 0, 2] == 0).mean() > 0.8  # a tone, and nothing beside it
    assert np.array_equal(ran(build, x), wanted)


@pytest.mark.parametrize("name", ["respeaker-usb-4", "linear-4"])
def test_codes_are_the_features_in_steps(name: str) -> None:
    array = load_array(name)
    gcc, x = prior_gcc(array), noise((3, array.n_mics, array.frame_length))
    x[1] = 0.0
    found = ran(lambda g, x: features.codes(g, x, gcc), x)
    wanted = np.rint(np.asarray(gcc(x), np.float64) * INPUT_GRID).reshape(found.shape)
    assert np.array_equal(found, wanted)
    fast = ran(lambda g, x: features.codes(g, x, gcc), x, "fast")
    assert 0 < np.abs(fast - wanted).max() < 4.0


def test_features_without_windows() -> None:
    array = load_array("respeaker-usb-4")
    gcc: GccPhat = replace(prior_gcc(array), parts=1)
    found = ran(lambda g, x: features.codes(g, x, gcc), x := noise((2, 4, array.frame_length)))
    wanted = np.rint(np.asarray(gcc(x), np.float64) * INPUT_GRID)
    assert np.array_equal(found, wanted.reshape(found.shape))
