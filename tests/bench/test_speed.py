"""The speed that is claimed, as ratios measured side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.commands import Tyto
from tytoalba.bench import speed as speed
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import FULL_BAND, GccPhat

CLAIMED = {
    "tytoalba, full band": 1.8,
    "tytoalba, 100-8000 Hz": 3.5,
    "tytoalba, exact": 80.0,
    "tytoalba, fast": 80.0,
    "pepper, the same on every machine": 0.5,
    "respeaker-usb-4, the same on every machine": 0.5,
}


MEASURE = """
import json
from tytoalba.bench import speed as speed
print(json.dumps({row.name: row.ratio for row in speed.measure()}))
"""


def test_tytoalba_is_as_many_times_faster_as_it_claims() -> None:
    """In a process of its own, as `tyto` measures.

    In one that has freed large arrays before, malloc keeps their memory: plain scipy, which allocates the
    most, then gains a fifth and the ratio of 100-8000 Hz falls from about 4.2 to about 3.3.
    """
    pytest.importorskip("pyroomacoustics")
    best = dict.fromkeys(CLAIMED, 0.0)
    for _ in range(6):  # the machine may be busy with something else
        run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
        measured: dict[str, float] = json.loads(run.stdout)
        best = {name: max(ratio, measured[name]) for name, ratio in best.items()}
        short = {name: best[name] for name, ratio in CLAIMED.items() if best[name] < ratio}
        if not short:
            return
    pytest.fail(f"slower than claimed in each of six measurements: {short}")


def test_the_pages_show_what_was_measured() -> None:
    root = Path(__file__).parents[2]
    page, other = (
        " ".join((root / "docs" / f"{n}.md").read_text("utf-8").split()) for n in ("speed", "how-it-works")
    )
    rows = [speed.Speed(**row) for row in json.loads((root / "results" / "speed.json").read_text("utf-8"))]
    for row in rows:
        if not row.task.startswith("features"):
            ratio = f"{row.ratio:.{1 if row.ratio < 100 else 0}f}" if row.ratio else ""
            assert f"| {row.task} | {row.name} | {row.frames_per_second:.0f} | {ratio} |" in page
    rate = {row.name: row.frames_per_second for row in rows}
    costs = [
        f"{rate[f'{name}, in floats'] / rate[f'{name}, the same on every machine']:.1f}"
        for name in ("pepper", "respeaker-usb-4")
    ]
    pepper, usb = costs
    assert (
        f"in the same run {pepper} times that of the same features in floats for Pepper, and {usb} times"
        in page
    )
    assert f"It takes {usb} to {pepper} times as long as GCC-PHAT in floats" in other


def test_measurement_says_what_it_compared() -> None:
    pytest.importorskip("pyroomacoustics")
    rows = speed.measure(n_frames=4, repeats=1)
    assert [(row.task, row.name) for row in rows] == [
        ("GCC-PHAT", "plain scipy, float64"),
        ("GCC-PHAT", "tytoalba, full band"),
        ("GCC-PHAT", "tytoalba, 100-8000 Hz"),
        ("features of pepper", "pepper, in floats"),
        ("features of pepper", "pepper, the same on every machine"),
        ("features of respeaker-usb-4", "respeaker-usb-4, in floats"),
        ("features of respeaker-usb-4", "respeaker-usb-4, the same on every machine"),
        ("SRP-PHAT 500-4000 Hz", "pyroomacoustics"),
        ("SRP-PHAT 500-4000 Hz", "tytoalba, exact"),
        ("SRP-PHAT 500-4000 Hz", "tytoalba, fast"),
    ]
    for peer, task in ((0, rows[:3]), (3, rows[3:5]), (5, rows[5:7]), (7, rows[7:])):
        assert rows[peer].ratio == 1.0
        for row in task:
            assert row.ratio == pytest.approx(row.frames_per_second / rows[peer].frames_per_second)


def test_measurement_without_pyroomacoustics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyroomacoustics.doa", None)
    assert speed.pyroomacoustics_srp() is None
    rows = speed.measure(n_frames=2, repeats=1)
    assert "pyroomacoustics" not in [row.name for row in rows]
    assert [row.ratio is None for row in rows] == [False] * 7 + [True] * 2  # nothing to compare SRP-PHAT with
    assert all(row.frames_per_second > 0 for row in rows)


def test_plain_gcc_is_what_tytoalba_computes() -> None:
    frames = np.random.default_rng(0).standard_normal((2, 4, 8192))
    ours = GccPhat.for_array(load_array("pepper"), bands=FULL_BAND)(frames)
    np.testing.assert_allclose(ours, speed.plain_gcc(frames), rtol=0, atol=1e-12)


def test_without_its_peer_nothing_is_claimed(tyto: Tyto, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        speed.Speed("GCC-PHAT", "plain scipy", 100.0, 1.0),
        speed.Speed("SRP-PHAT", "tytoalba", 50.0, None),
    ]
    monkeypatch.setattr(speed, "measure", lambda: rows)
    ran = tyto("speed")
    assert ran.code == 0
    (line,) = [line for line in ran.out.splitlines() if "tytoalba" in line]
    assert line.split()[-1] == "50"
    assert "pip install 'tytoalba[sim]'" in ran.err
    assert json.loads(tyto("speed", "--json").out)[1]["ratio"] is None
