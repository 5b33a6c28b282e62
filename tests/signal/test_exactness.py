"""That features are the same on every machine: what was measured of FFTs, and how likely a failure is."""

from __future__ import annotations

import importlib.util
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.fft
from numpy.typing import NDArray

from tytoalba.learning.prior.features import prior_gcc
from tytoalba.signal import phases as module
from tytoalba.signal.array import builtin_arrays, load_array
from tytoalba.signal.phases import GUARD, phases

ROOT = Path(__file__).parents[2]
ONE_IN_A_MILLION = 1e-6
OF_CUDA, ALLOWED = 0.014, 0.12
"""Errors over the guard: the largest that the docs tell of CUDA's FFT, and what they allow."""


def tool() -> Any:
    """tools/measure_exactness.py, which is no module of the package."""
    spec = importlib.util.spec_from_file_location(
        "measure_exactness", ROOT / "tools" / "measure_exactness.py"
    )
    assert spec
    assert spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def measured(array: str) -> dict[str, Any]:
    """What the tool found of an array on a CPU."""
    path = ROOT / "results" / "exactness" / f"fft-{array}.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def n_values(name: str) -> float:
    """Phase values of a minute."""
    array = load_array(name)
    gcc = prior_gcc(array)
    parts = ((gcc.whole, 1), (gcc.window, gcc.n_windows))
    per_frame = sum(n * (part.span[1] - part.span[0]) for part, n in parts) * 2 * array.n_mics
    return per_frame * 60 * array.sample_rate / (array.frame_length / 2)


def drawn(error: float, seed: int, y: NDArray[np.float64], **_: Any) -> NDArray[np.complex128]:
    """An FFT whose errors are normal, `error` guards in root mean square."""
    X = scipy.fft.rfft(y, axis=-1)
    peak = np.abs(X.view(np.float64)).max(axis=-1, keepdims=True)
    wrong = np.random.default_rng(seed).standard_normal((2, *X.shape)) * error * module.GUARD * peak
    return np.asarray(X + wrong[0] + 1j * wrong[1])


def test_a_lesson_of_a_minute_changes_less_often_than_once_in_a_million() -> None:
    chance = tool().chance_of_change
    for name in builtin_arrays():
        assert chance(ALLOWED, n_values(name)) < ONE_IN_A_MILLION
        assert chance(OF_CUDA, n_values(name)) < ONE_IN_A_MILLION
        assert chance(0.13, n_values(name)) > ONE_IN_A_MILLION  # as far as the formula goes
    for name in ("respeaker-usb-4", "pepper"):
        for found in measured(name)["kinds"].values():
            assert found["values"] / found["minutes"] == pytest.approx(n_values(name), rel=0.02)
            assert max(found["errors"].values()) < 1 / 2500
            assert found["chance_of_change"] < ONE_IN_A_MILLION
            assert found["largest_over_guard"] < OF_CUDA
            assert not any(found["differ"].values())


def test_the_chance_is_not_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a guard so wide that errors of its size do change something."""
    monkeypatch.setattr(module, "GUARD", 1e6 * GUARD)
    y = np.random.default_rng(0).standard_normal((200, 512))
    right = np.stack(phases(y, 0, 257, scipy.fft.rfft))
    chance = tool().chance_of_change
    for error, some in ((ALLOWED, False), (0.4, True)):
        changed = sum(
            np.count_nonzero(np.stack(phases(y, 0, 257, partial(drawn, error, seed))) != right)
            for seed in range(5)
        )
        assert bool(changed) == some
        assert changed <= chance(error, 1) * 5 * right.size


def test_accuracies_are_those_of_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few recordings, and with one kind of features where two are compared."""
    measuring = tool()
    few = measuring.Simulation.of_preset("quick", load_array("respeaker-usb-4"), size=0.1, seed=0)
    monkeypatch.setattr(measuring.Simulation, "of_preset", lambda *_, **__: few)
    found = measuring.accuracies(few.array, 0)
    assert set(found) == {"frames", "exact", "floats"}
    for name in ("exact", "floats"):
        assert 50 < found[name]["all talkers"] <= 100
        assert found[name].keys() - {"all talkers"} == found["frames"].keys() <= {1, 2}


def test_the_page_shows_what_was_measured() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    usb, pepper = measured("respeaker-usb-4"), measured("pepper")
    for kind, name in zip(
        tool().KINDS,
        ("simulated speech", "steady tones of 16 bits", "digital silence", "copied channels"),
        strict=True,
    ):
        cells = []
        for found in (usb["kinds"][kind], pepper["kinds"][kind]):
            cells += [f"{found['decided_per_minute']:.0f}", f"{found['largest_over_guard']:.5f}"]
            cells += [f"{max(found['errors'].values()):.5f}"]
        n = sum(sum(found["kinds"][kind]["differ"].values()) for found in (usb, pepper))
        assert f"| {name} | {' | '.join(cells)} | {n} |" in page
    for about in (usb, pepper):
        assert all(f"{library} {version}"[:11] in page for library, version in about["versions"].items())
