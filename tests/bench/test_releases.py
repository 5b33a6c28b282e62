"""The table of releases: devices off their drawing, and when a release is worth it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tytoalba.bench.releases import (
    DEVICES,
    UNITS,
    _people,
    _Pool,
    _times,
    markdown,
    measure_releases,
    off_drawing,
)
from tytoalba.errors import TytoError
from tytoalba.localizer.offsets import Offsets
from tytoalba.signal.array import load_array

pytest.importorskip("dp_accounting")


def test_a_device_off_its_drawing_is_wider_and_turned() -> None:
    array = load_array("pepper")
    assert np.allclose(off_drawing(array, 0.0, 0.0).positions, array.positions)
    before, after = np.array(array.positions), np.array(off_drawing(array, 0.08, 90.0).positions)
    assert np.allclose(after[:, 0], -1.08 * before[:, 1], atol=2e-5)
    assert np.allclose(after[:, 1], before[:, 0], atol=2e-5)


def test_lessons_are_drawn_once_while_there_are_enough() -> None:
    rng = np.random.default_rng(0)
    assert sorted(_times(5, 3, rng)) == [0, 0, 1, 1, 1]
    assert _times(5, 50, rng).sum() == 50


def test_lessons_are_dealt_out_to_people() -> None:
    """Four for each name, all of them and none twice: what they added is what all lessons added."""
    offsets = [Offsets(np.full(8, 10**k), np.zeros(8, np.int64)) for k in range(6)]
    people = _people(_Pool([], offsets, [1] * 6), np.array([1, 1, 2, 0, 1, 1]), np.random.default_rng(0))
    own = [kept.release.lessons[0] for kept in people.values() if kept.release]
    assert sum(own) == 110_211
    assert [sum(map(int, str(n))) for n in own] == [4, 2]
    assert len({kept.who for kept in people.values()}) == 2


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(TytoError, match="no device called 'bent'"):
        measure_releases(devices=["bent"])
    with pytest.raises(TytoError, match="at least one"):
        measure_releases(n_lessons=(0,))


@pytest.mark.slow
def test_a_release_of_many_frames_puts_a_device_right() -> None:
    found = measure_releases(
        "respeaker-usb-4", n_pool=20, n_test=8, n_releases=2, n_lessons=(100,), devices=[list(DEVICES)[-1]]
    )
    again = measure_releases(
        "respeaker-usb-4", n_pool=20, n_test=8, n_releases=2, n_lessons=(100,), devices=[list(DEVICES)[-1]]
    )
    assert found == again
    rows = {(row["unit"], row["epsilon"]): row for row in found["rows"]}
    assert rows["frame", 10.0]["gain"] > 5
    assert rows["frame", 10.0]["release"] > rows["frame", 10.0]["prior"]


def test_the_table_is_made_of_the_rows() -> None:
    rows = [
        {
            "device": "d",
            "lessons": 10,
            "prior": 80.0,
            "exact": 82.5,
            "unit": unit,
            "epsilon": e,
            "gain": e / 2,
        }
        for unit in UNITS
        for e in (1.0, 3.0, 10.0)
    ]
    assert markdown({"rows": rows})[0].startswith("| device | lessons | prior | exact | lesson, 1 |")
    assert markdown({"rows": rows})[2] == "| d | 10 | 80.0 | +2.5 | +0.5 | +1.5 | +5.0 | +1.5 | +1.5 |"


def test_the_page_shows_the_results() -> None:
    root = Path(__file__).parents[2]
    measured = json.loads((root / "results/privacy/releases.json").read_text(encoding="utf-8"))
    assert "\n".join(markdown(measured)) in (root / "docs/privacy.md").read_text(encoding="utf-8")
