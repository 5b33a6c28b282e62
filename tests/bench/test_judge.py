"""A test set: both masks from one score, hits by recording, who is mistaken for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.benches import one_job, row_of, toy_config, toy_data
from tytoalba.bench.data import CLEAN, Frames
from tytoalba.bench.job import run_job
from tytoalba.bench.judge import Judge, answers
from tytoalba.bench.results import SEPARATIONS, load_results
from tytoalba.bench.run import run
from tytoalba.learning.method import Had, Memory, Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.phases import ORDERS, Order, Phase, groups, phase_of
from tytoalba.signal.angles import distance, to_class

N_PHASES = 4


class Guess(Method):
    """Its scores are noise, another for each phase; the frame itself draws it."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.n_phases = 0

    def learn(self, phase: Phase) -> None:  # noqa: ARG002
        self.n_phases += 1

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        seeds = np.abs(X[:, 0] * 1e6).astype(int)
        return np.stack(
            [np.random.default_rng([s, self.n_phases]).random(360, np.float32) for s in seeds.tolist()]
        )

    def memory(self) -> Memory:
        return {"n_phases": np.array(self.n_phases)}

    def restore(self, memory: Memory) -> None:
        self.n_phases = int(memory["n_phases"])


class Helped(Guess):
    """It had more than the frames."""

    @property
    def had(self) -> tuple[Had, ...]:
        return "validation frames", "simulations"


def placed(n: int, seed: int, n_recordings: int = 5) -> Frames:
    """Frames of several recordings, each of which is met in several phases."""
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(0, 360, (n, 2))
    azimuth[rng.random(n) < 0.5, 1] = np.nan
    place = np.stack([rng.integers(n_recordings, size=n) + 7, np.arange(n)], axis=1)
    return Frames(rng.random((n, 1), np.float32), azimuth, place)


def judged(known: Frames, directions: Sequence[NDArray[np.intp]]) -> list[dict[str, Any]]:
    judge, method = Judge(known, directions), Guess(Task(n_inputs=1))
    for k, classes in enumerate(directions):
        method.learn(Phase(known.X[:0], known.azimuth[:0], classes))
        judge.after(k, method)
    return [row for _, row in judge.rows(in_detail=True)]


@given(st.sampled_from(ORDERS), st.integers(0, 99), st.integers(1, 150))
def test_after_the_last_phase_the_mask_changes_nothing(order: Order, seed: int, n: int) -> None:
    rows = judged(placed(n, seed), groups(N_PHASES, order, seed))
    for row in (row for row in rows if row["mask"]):
        other = row_of(rows, n_sources=row["n_sources"])
        assert row["acc"][-1] == other["acc"][-1]
        assert row["mae"][-1] == other["mae"][-1]
        for key in ("sectors", "front_back", "separation"):
            assert row.get(key) == other.get(key)
        assert [hits[-1] for hits in row["recordings"]["hits"]] == [
            hits[-1] for hits in other["recordings"]["hits"]
        ]


@pytest.mark.parametrize("order", ORDERS)
def test_the_mask_is_of_the_directions_of_the_phases_so_far(order: Order) -> None:
    """One source, frame by frame: the highest score among the classes of phases 0..k."""
    known, directions = placed(300, 1), groups(N_PHASES, order, 1)
    rows = judged(known, directions)
    one = np.isnan(known.azimuth[:, 1])
    phase = phase_of(known.azimuth, directions)
    method = Guess(Task(n_inputs=1))
    for k in range(N_PHASES):
        method.n_phases = k + 1
        classes = np.concatenate(directions[: k + 1])
        for j in range(k + 1):
            here = np.flatnonzero(one & (phase == j))
            scores = method.posterior(known.X[here])
            found = np.array([max(classes, key=lambda c: row[c]) for row in scores])
            errors = distance(found, known.azimuth[here, 0])
            cell = row_of(rows, n_sources=1, mask="taught")["mae"][k][j]
            assert cell == pytest.approx(errors.mean(), abs=1e-4)
    first = [row_of(rows, n_sources=1, mask=mask)["mae"][0][0] for mask in ("", "taught")]
    assert first[0] != first[1]


@given(st.integers(0, 99), st.integers(1, 100), st.integers(1, 360))
def test_two_answers_are_apart_and_taught_where_that_can_be(seed: int, n: int, n_taught: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((n, 360), np.float32)
    taught = np.zeros(360, np.bool_)
    taught[rng.permutation(360)[:n_taught] if seed % 2 else np.arange(n_taught)] = True
    found = answers(scores, 2, taught).astype(int)
    assert taught[found[:, 0]].all()
    assert (scores[np.arange(n), found[:, 0]] == scores[:, taught].max(axis=1)).all()
    assert ((found[:, 1] - found[:, 0] + 15) % 360 >= 30).all()
    for first, second in found:
        free = (np.arange(360) - first + 15) % 360 >= 30
        assert taught[second] == (free & taught).any()


@given(st.sampled_from(ORDERS), st.integers(0, 99), st.integers(1, 150))
def test_hits_by_recording_are_those_of_the_matrices(order: Order, seed: int, n: int) -> None:
    known, directions = placed(n, seed), groups(N_PHASES, order, seed)
    phase = phase_of(known.azimuth, directions)
    assert known.place is not None
    for row in judged(known, directions):
        kept = row["recordings"]
        own = np.isfinite(known.azimuth).sum(axis=1) == row["n_sources"]
        cells = np.unique(np.stack([known.place[own, 0], phase[own]], 1), axis=0, return_counts=True)
        assert np.array_equal(np.stack([kept["number"], kept["phase"]], 1), cells[0])
        assert kept["frames"] == cells[1].tolist()
        for i in range(N_PHASES):
            for j in range(i + 1):
                mine = [c for c, first in enumerate(kept["phase"]) if first == j]
                n_frames = sum(kept["frames"][c] for c in mine)
                hits = sum(kept["hits"][c][: i - j + 1][-1] for c in mine)  # a list goes on as it ends
                pooled = hits / (n_frames * row["n_sources"]) if n_frames else None
                assert row["acc"][i][j] == (pooled if pooled is None else pytest.approx(pooled, abs=6e-5))


def test_the_file_holds_the_same_matrices_twice(tmp_path: Path) -> None:
    tests = {
        key: replace(known, place=placed(len(known), 3).place) for key, known in toy_data().tests.items()
    }
    run(toy_config(), toy_data(tests=tests), tmp_path / "toy.json")
    rows = load_results(tmp_path / "toy.json").rows
    assert {row.mask for row in rows} == {"", "taught"}
    for row in rows:
        assert (row.recordings is not None) == (row.condition == CLEAN)
        assert (row.front_back is not None) == (row.condition == CLEAN and row.n_sources == 1)
        assert (row.separation is not None) == (row.condition == CLEAN and row.n_sources == 2)
        assert row.answer_seconds > 0
        if row.recordings:
            np.testing.assert_allclose(row.recordings.accuracy(), row.acc, atol=6e-3)


def test_two_sources_by_how_far_they_are_apart() -> None:
    known, directions = placed(400, 5), groups(N_PHASES)
    row = row_of(judged(known, directions), n_sources=2)
    two = np.isfinite(known.azimuth).all(axis=1)
    apart = distance(*known.azimuth[two].T)
    bins = [(apart >= low) & (apart < high) for low, high in pairwise(SEPARATIONS)]
    assert row["separation"]["frames"] == [int(here.sum()) for here in bins]
    weights = row["separation"]["frames"]
    pooled = np.average(row["acc"][-1], weights=row["counts"])
    assert np.average(row["separation"]["acc"], weights=weights) == pytest.approx(pooled, abs=1e-4)


class Backwards(Guess):
    """Takes front for back; the frame says where the source is."""

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        scores = np.zeros((len(X), 360), np.float32)
        scores[np.arange(len(X)), to_class(180 - X[:, 0])] = 1
        return scores


def test_front_taken_for_back() -> None:
    azimuth = np.array([0.0, 30, 88, 180, 268, 300])
    known = Frames(azimuth[:, None].astype(np.float32), azimuth[:, None])
    judge = Judge(known, groups(2))
    for k in range(2):
        judge.after(k, Backwards(Task(n_inputs=1)))
    for _, row in judge.rows(in_detail=True):
        assert row["front_back"] == {"confused": 4, "clear": 4}  # 88 and 268 are their own mirror images
        assert "recordings" not in row  # nobody knows where these frames are from


def test_what_a_method_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "helped", Helped)
    config = toy_config(methods=("helped", "srp-phat"))
    assert {tuple(row["had"]) for row in one_job(config, toy_data())} == {
        ("simulations", "validation frames")
    }
    assert {tuple(row["had"]) for row in one_job(config, toy_data(), 1)} == {()}
    data = toy_data()
    assert data.gcc is not None

    two_bands = replace(data.gcc, bands=((100.0, 1000.0), (1000.0, 8000.0)), parts=1)
    wide = replace(data, gcc=two_bands)
    n = two_bands.n_features // data.n_inputs
    assert n == 2
    wide = replace(
        wide,
        train=replace(wide.train, X=np.hstack([wide.train.X] * n)),
        tests={key: replace(known, X=np.hstack([known.X] * n)) for key, known in wide.tests.items()},
    )
    shown = {tuple(row["had"]) for row in run_job(config.jobs()[0], config, wide)}
    assert shown == {("simulations", "bands", "validation frames")}
    plain = replace(config, options={"helped": {"plain": True}})
    shown = {tuple(row["had"]) for row in run_job(plain.jobs()[0], plain, wide)}
    assert shown == {("simulations", "validation frames")}
