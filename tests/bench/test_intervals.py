"""Intervals by recording: those of the bootstrap, of whole recordings, and of differences in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bench import test_results as sample
from tytoalba.bench import intervals as intervals
from tytoalba.bench import paper as paper
from tytoalba.bench import results as results
from tytoalba.bench import summary as summary
from tytoalba.bench.intervals import MEASURES, ByRecording, by_recording
from tytoalba.signal.metrics import bootstrap


def rows_of(folder: Path, *rows: dict[str, Any], n_phases: int = 1) -> list[results.Row]:
    phases = [[k] for k in range(n_phases)]
    content = sample.document(1) | {"rows": list(rows), "phases": phases}
    return results.load_results(sample.saved(folder, content)).rows


def simple(hits: list[int], frames: list[int], **other: Any) -> dict[str, Any]:
    """A row of one phase: so many hits of so many frames of each recording."""
    counts, n = [sum(frames)], other.get("n_sources", 1)
    return sample.row("icarl", other.pop("seed", 0)) | {
        "counts": counts, "acc": [[round(sum(hits) / (n * counts[0]), 4)]], "mae": [[1.0]], "sectors": None,
        "recordings": {
            "number": list(range(len(hits))), "phase": [0] * len(hits), "frames": frames,
            "hits": [[hit] for hit in hits],
        },
    } | other  # fmt: skip


def known(rows: list[results.Row]) -> ByRecording:
    found = by_recording(rows)
    assert found is not None
    return found


CASES = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 9)).map(lambda c: (min(c), c[0])), min_size=2, max_size=8
)
HERE = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@HERE
@given(CASES)
def test_one_phase_is_the_bootstrap_of_frames_by_recording(
    tmp_path: Path, cases: list[tuple[int, int]]
) -> None:
    hits, frames = map(list, zip(*cases, strict=True))
    found = known(rows_of(tmp_path, simple(hits, frames))).interval("overall")
    assert found is not None
    each = [100.0 * (i < hit) for hit, n in cases for i in range(n)]
    group = [g for g, (_, n) in enumerate(cases) for _ in range(n)]
    rng = np.random.default_rng([intervals.SEED, *b"test"])
    wanted = bootstrap(each, group, n_resamples=intervals.N_RESAMPLES, rng=rng)
    assert (found.value, found.low, found.high) == pytest.approx((wanted.value, wanted.low, wanted.high))


def test_measures_are_those_of_the_summary(tmp_path: Path) -> None:
    for s in summary.summarise(results.load(sample.saved(tmp_path, sample.fair()))):
        for name in MEASURES:
            found = s.interval(name)
            assert found is not None
            assert found.value == pytest.approx(s.measures[name].acc.mean, abs=6e-3)
            assert found.low <= found.value <= found.high


def test_seeds_are_averaged_before_recordings_are_drawn(tmp_path: Path) -> None:
    """Two seeds of which one finds what the other does not: the mean of both is known for certain."""
    rows = rows_of(tmp_path, simple([10, 0, 10], [10] * 3), simple([0, 10, 0], [10] * 3, seed=1))
    found = known(rows).interval("overall")
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((50, 50, 50))
    alone = known(rows[:1]).interval("overall")
    assert alone is not None
    assert alone.low < 50 < alone.high


def test_a_difference_is_of_the_same_recordings(tmp_path: Path) -> None:
    """Recordings differ widely, and one row is two frames in a hundred better in each of them."""
    few, many = [2, 30, 50, 70, 90, 98], [4, 32, 52, 72, 92, 100]
    rows = rows_of(
        tmp_path, simple(few, [100] * 6), simple(many, [100] * 6, method="mine"),
        simple([30, 2, 70, 50, 98, 90], [100] * 6, method="other"), simple(few, [101] * 6, method="longer"),
    )  # fmt: skip
    a, b, c, d = (known([row]) for row in rows)
    found = b.minus(a, "overall")
    assert found is not None
    assert (found.points.value, found.points.low, found.points.high) == pytest.approx((2, 2, 2))
    assert found.clear
    assert found.p == pytest.approx(2 / 2**6, abs=0.02)
    own = a.interval("overall")
    assert own is not None
    assert own.high - own.low > 30
    same = c.minus(a, "overall")
    assert same is not None
    assert same.points.value == pytest.approx(0)
    assert not same.clear
    assert same.p > 0.9
    assert d.minus(a, "overall") is None  # other frames


@HERE
@given(CASES, st.integers(0, 99))
def test_as_large_differences_by_chance_are_all_patterns_of_signs(
    tmp_path: Path, cases: list[tuple[int, int]], seed: int
) -> None:
    hits, frames = map(list, zip(*cases, strict=True))
    others = [int(x) for x in np.random.default_rng(seed).integers(0, np.array(frames) + 1)]
    rows = rows_of(tmp_path, simple(hits, frames), simple(others, frames, method="mine"))
    found = known(rows[:1]).minus(known(rows[1:]), "overall")
    assert found is not None
    difference = np.subtract(hits, others)
    patterns = 2 * ((np.arange(2 ** len(hits))[:, None] >> np.arange(len(hits))) & 1) - 1
    exact = np.mean(np.abs(patterns @ difference) >= abs(difference.sum()))
    assert found.p == pytest.approx(exact, abs=0.06)


def test_where_nothing_can_be_said(tmp_path: Path) -> None:
    alone, without = rows_of(tmp_path, simple([5], [10]), sample.row("joint", 0) | {
        "counts": [4], "acc": [[0.5]], "mae": [[1.0]], "sectors": None,
    })  # fmt: skip
    assert known([alone]).interval("overall") is None
    assert known([alone]).minus(known([alone]), "overall") is None
    assert by_recording([alone, without]) is None
    assert by_recording([]) is None
    assert known([alone]).interval("overall_86_14") is None  # no frame with two sources


def test_parts_are_drawn_by_themselves_and_weigh_as_said(tmp_path: Path) -> None:
    """A part of which every recording is the same adds no doubt."""
    sure = simple([10] * 5, [10] * 5, part="human")
    sure_two = simple([20] * 5, [10] * 5, part="human", n_sources=2)
    doubtful = simple([0, 10, 0, 10], [10] * 4)
    doubtful_two = simple([0, 20, 0, 20], [10] * 4, n_sources=2)
    found = known(rows_of(tmp_path, sure, sure_two, doubtful, doubtful_two))
    ours, theirs = found.interval("overall"), found.interval("overall_86_14")
    assert ours is not None
    assert theirs is not None
    assert ours.value == pytest.approx(100 * 140 / 180)
    assert ours.low >= 100 * 100 / 180
    human = sum(n for (part, _), n in paper.FRAMES.items() if part == "human")
    test = sum(paper.FRAMES.values()) - human
    assert theirs.value == pytest.approx((100 * human + 50 * test) / (human + test))
    assert theirs.high - theirs.low > ours.high - ours.low


def test_the_same_results_give_the_same_intervals(tmp_path: Path) -> None:
    path = sample.saved(tmp_path, sample.fair())
    first, second = (summary.summarise(results.load(path)) for _ in range(2))
    intervals._drawn.cache_clear()
    third = summary.summarise(results.load(path))
    for a, b, c in zip(first, second, third, strict=True):
        assert a.interval("overall") == b.interval("overall") == c.interval("overall")
