"""The speed that is claimed, as ratios measured side by side."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tytoalba.bench.speed import sound
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
from tytoalba.bench.speed.rows import busy
from tytoalba.bench.speed.sound import measure_sound
with busy(True):
    print(json.dumps({row.name: row.ratio for row in measure_sound()}))
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


def test_measurement_says_what_it_compared() -> None:
    pytest.importorskip("pyroomacoustics")
    rows = sound.measure_sound(n_frames=4, repeats=1)
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
            assert row.ratio == pytest.approx(row.value / rows[peer].value)


def test_measurement_without_pyroomacoustics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyroomacoustics.doa", None)
    assert sound.pyroomacoustics_srp() is None
    rows = sound.measure_sound(n_frames=2, repeats=1)
    assert "pyroomacoustics" not in [row.name for row in rows]
    assert [row.ratio is None for row in rows] == [False] * 7 + [True] * 2  # nothing to compare SRP-PHAT with
    assert all(row.value > 0 for row in rows)


def test_plain_gcc_is_what_tytoalba_computes() -> None:
    frames = np.random.default_rng(0).standard_normal((2, 4, 8192))
    ours = GccPhat.for_array(load_array("pepper"), bands=FULL_BAND)(frames)
    np.testing.assert_allclose(ours, sound.plain_gcc(frames), rtol=0, atol=1e-12)


def test_files_are_streamed_many_times_faster_than_they_last() -> None:
    rows = sound.measure_files(seconds=20.0, repeats=1)
    assert [row.name for row in rows] == [
        "features of a prior, the same on every machine",
        "GCC-PHAT, the same on every machine",
        "GCC-PHAT in floats",
    ]
    assert all(row.value > 1 for row in rows)  # 500 where the machine does nothing else


def test_pairs_are_what_grows_with_microphones() -> None:
    found = sound.measure_microphones(numbers=(2, 4), n_frames=2)
    assert (found.task, found.sizes) == ("GCC-PHAT of all pairs", (2, 4))
    assert found.exponent == pytest.approx(np.log2(found.seconds[1] / found.seconds[0]), abs=1e-3)


def test_no_features_are_faster_than_their_transforms() -> None:
    found = sound.fft_ceiling(n_frames=4, repeats=3)
    assert 0 < found.share < 1.5  # the same work and more: rounded up for a busy machine
