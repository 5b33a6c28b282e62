"""Comparisons of ONNX files with tytoalba; the many frames of docs/onnx.md are for patient machines."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from tests.helpers.snippets import ROOT
from tytoalba.bench import onnx as compare
from tytoalba.bench.onnx import compared, open_session, phases_moved, random_frames, score_table, timed
from tytoalba.errors import TytoError
from tytoalba.learning.prior.features import prior_gcc
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.onnx.builder import PRECISIONS
from tytoalba.localizer.onnx.graph import Known
from tytoalba.signal.array import load_array
from tytoalba.signal.phases import phases

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

USB = load_array("respeaker-usb-4")
FINDER = MapFinder(USB, "prior")


def test_frames_are_drawn_again_and_in_any_number() -> None:
    first = np.concatenate(list(random_frames(USB, 18, seed=1)))
    assert first.shape == (18, 4, 2730)
    assert np.array_equal(first[:5], next(random_frames(USB, 5, seed=1)))
    assert not np.array_equal(first[:5], next(random_frames(USB, 5, seed=2)))
    assert np.isfinite(first).all()
    assert 0 < np.abs(first).max() <= 1
    assert np.array_equal(np.round(first[1] * 2**15), first[1] * 2**15)


def test_same_is_the_same_and_fast_is_near() -> None:
    same = compared(Known.of_array(USB), FINDER, "same", 20)
    assert same == {"precision": "same", "frames": 20, "different": 0, "largest": 0.0, "mean": 0.0,
                    "moved": 0, "moved_away": 0}  # fmt: skip
    fast = compared(Known.of_array(USB), FINDER, "fast", 20)
    assert fast["different"] == 20
    assert 0 < fast["mean"] < fast["largest"] < 0.02


def test_differences_are_counted() -> None:
    """Scores of the array as it is, beside those of the same array turned by some degrees."""
    found = compared(Known.of_array(USB.rotated(20.0)), FINDER, "same", 6)
    assert (found["different"], found["moved"], found["moved_away"]) == (6, 6, 6)
    assert found["largest"] > 0.1


def test_phases_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = prior_gcc(USB)
    found = phases_moved(USB, gcc, 4)
    assert found == {"frames": 4, "phases": 4 * 4 * 2 * (gcc.span[1] - gcc.span[0]), "moved": 0}

    def other(*arguments: Any) -> Any:
        re, im = phases(*arguments)
        re[0, 0, :3] += 1
        return re, im

    monkeypatch.setattr(compare, "rounded_phases", other)
    assert phases_moved(USB, gcc, 4)["moved"] == 3


def test_both_are_timed() -> None:
    assert all(0 < value < 1e4 for value in timed(Known.of_array(USB), FINDER, seconds=0.0).values())


def test_without_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(TytoError, match="pip install onnxruntime"):
        open_session(b"")


def test_the_page_has_what_was_measured() -> None:
    page = (ROOT / "docs" / "onnx.md").read_text("utf-8")
    scores, time = (
        json.loads((ROOT / "results" / "onnx" / f"{name}.json").read_text("utf-8"))
        for name in ("scores", "time")
    )
    assert score_table(scores["same"], scores["fast"]) in page
    assert (
        f"Of {scores['phases']['phases'] / 1e6:.0f} million rounded phases, {scores['phases']['moved']} "
        in page
    )
    spent = time["milliseconds"]
    for precision in PRECISIONS:
        assert f"`{precision}` takes {spent[precision] / spent['tytoalba']:.2f} times as long" in page
    sizes = [of["same"] for of in time["megabytes"].values()]
    assert f"has {min(sizes):.1f} to {max(sizes):.1f} MB" in page
    exact = {name: of["same"] for name, of in time["exact_megabytes"].items()}
    usb, pepper = exact["respeaker-usb-4"], exact["pepper"]
    assert f"{usb:.1f} MB with a ReSpeaker USB array, {pepper:.1f} MB with Pepper" in page


@pytest.mark.slow
def test_a_hundred_thousand_frames_have_the_same_scores() -> None:
    """Exceptions are phases so near the edge of a step that two transforms round them differently."""
    found = compared(Known.of_array(USB), FINDER, "same", 100_000)
    assert found["different"] <= 10
    assert found["moved_away"] == 0
