"""Speed of sums and learning: what is compared is the same work, and what is claimed holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tytoalba.bench.speed import learning, localizers
from tytoalba.bench.speed.rows import Exponent, Row, busy, now
from tytoalba.learning.head import AnalyticHead
from tytoalba.learning.recursive import RecursiveHead

torch = pytest.importorskip("torch")

CLAIMED = {"numpy, float64 (syrk)": 5.0, "numpy, float32 (syrk)": 2.5}
"""How many times slower numpy's own products are than a head, where a CPU has fast int8 products."""

MEASURE = """
import json
from tytoalba.bench.speed.learning import measure_sums
rows, _ = measure_sums(5000, {n}, {threads}, repeats=1)
print(json.dumps({{row.name: row.value for row in rows}}))
"""


@pytest.mark.slow
def test_sums_are_as_many_times_faster_as_claimed() -> None:
    """In a process of its own; several times, as the machine may be busy with something else."""
    threads = len(os.sched_getaffinity(0))
    best: dict[str, float] = {}
    for _ in range(4):
        program = MEASURE.format(n=16_000, threads=threads)
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        rates: dict[str, float] = json.loads(ran.stdout)
        if "tytoalba, exact, int8" not in rates:
            assert rates["tytoalba, exact, float32"] > rates["numpy, float64 (syrk)"]
            return
        ours = rates["tytoalba, a head that learns them"]
        best = {name: max(best.get(name, 0.0), ours / rates[name]) for name in CLAIMED}
        if all(best[name] >= times for name, times in CLAIMED.items()):
            return
    pytest.fail(f"slower than claimed in each of four measurements: {best}")


def test_sums_are_compared_with_numpy_and_the_ceiling() -> None:
    rows, ceilings = learning.measure_sums(200, 400, threads=1, repeats=1)
    names = [row.name for row in rows]
    assert names[:2] == ["numpy, float64 (syrk)", "numpy, float32 (syrk)"]
    assert {"tytoalba, exact, float32", "tytoalba, a head that learns them"} <= set(names)
    assert rows[0].ratio == 1.0
    assert rows[1].ratio == pytest.approx(rows[1].value / rows[0].value)
    assert {ceiling.ceiling for ceiling in ceilings} <= {"GEMM, float32", "GEMM, int8"}
    assert all(ceiling.reached > 0 for ceiling in ceilings)


def test_the_published_form_is_the_recursion() -> None:
    """Left to right or bracketed, what is timed is the same function."""
    H, Y = learning.random_rows(90, 30)
    bracketed = RecursiveHead(30, 360, ridge=2.0).learn(H / 127.0, Y / 127.0, batch_size=45)
    published = learning.LeftToRight(30, 360, 2.0)
    for rows in (slice(0, 45), slice(45, 90)):
        published.learn(H[rows] / 127.0, Y[rows] / 127.0)
    assert pytest.approx(bracketed.W, abs=1e-9) == published.W
    assert pytest.approx(bracketed.R, abs=1e-9) == published.R
    sums = AnalyticHead(30, 360, 2.0, exact=True).learn(H, Y)
    assert sums.weights() == pytest.approx(published.W, abs=1e-8)


def test_learning_says_what_was_extrapolated() -> None:
    recursive, published, ours = learning.measure_learning(40, 1000, threads=1, batches=3, slow_batches=1)
    assert recursive.note == "3 batches of 256 timed, extrapolated"
    assert published.note == "1 batches of 256 timed, extrapolated"
    assert recursive.ratio == 1.0
    assert ours.ratio == pytest.approx(recursive.value / ours.value)


def test_a_lesson_is_answered_faster_with_the_last_solution() -> None:
    with busy(True):
        anew, updated = learning.measure_lesson(1200, 5, threads=1, repeats=4)
    assert updated.ratio is not None
    assert updated.ratio > 1.2
    assert anew.value / updated.value == pytest.approx(updated.ratio)


def test_growth_is_fitted() -> None:
    found = learning.measure_growth(1, (64, 128), (16, 32), (1, 2), repeats=1)
    assert [(f.task, f.against, f.sizes) for f in found] == [
        ("sums", "frames N", (64, 128)),
        ("sums", "features D", (16, 32)),
        ("the next phase", "phases before", (1, 2)),
    ]
    assert Exponent.fitted("", "", {10: 5.0, 20: 5.0, 40: 5.0}).exponent == 0.0


def test_a_gpus_way_from_z_on() -> None:
    """On the CPU: the same calls as on a GPU."""
    (row,) = learning.measure_gpu(64, 512, device="cpu", block=256)
    assert (row.unit, row.ratio) == ("TOP/s", None)
    assert row.value > 0


def test_memory_of_a_process_that_learns_from_z() -> None:
    """The sums, what they are solved in and blocks in between: H (160 MB) is never whole."""
    small, large = (learning.measure_memory(1600, n) for n in (100, 100_000 // 4))
    assert large.unit == "GB"
    assert large.value - small.value < 0.12
    head = learning.learn_from_z(50, 100, block=30)
    assert head.n == 100


def test_locating_is_timed_frame_by_frame() -> None:
    assert len(localizers.locating_times("srp", 3)) == 3
    assert len(localizers.locating_times("localizer", 2, n_features=50)) == 2
    rows = localizers.measure_locating(2, n_features=50)
    assert len(rows) == 9
    assert all(row.value > 0 for row in rows)
    median = {row.name: row.value for row in rows}
    assert median["prior: p50 of a frame"] <= median["prior: p99 of a frame"]


def test_teaching_is_timed_from_features_on() -> None:
    row = localizers.measure_teaching(40, 8, threads=1)
    assert isinstance(row, Row)
    assert row.value > 0


def test_ceilings_of_memory_and_random_features() -> None:
    for ceiling in (learning.memory_ceiling(300, repeats=1), learning.expansion_ceiling(100, 50, 1, 1)):
        assert 0 < ceiling.share < 10
    assert np.isfinite(ceiling.reached)


def test_on_a_busy_machine_only_what_was_computed_counts() -> None:
    with busy(True):
        start = now()
        time.sleep(0.2)
        computed = now() - start
    start = now()
    time.sleep(0.05)
    assert computed < 0.1
    assert now() - start >= 0.05
