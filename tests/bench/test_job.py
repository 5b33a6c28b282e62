"""One job of a benchmark: what is measured, and what a method gets to see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tests.helpers.benches import SMALL, TASK, WHITE, frames, one_job, row_of, toy_config, toy_data
from tytoalba.bench import job as job_module
from tytoalba.bench.config import Config, Job
from tytoalba.bench.data import CLEAN, BenchData, Frames
from tytoalba.bench.job import run_job
from tytoalba.bench.judge import averaged
from tytoalba.bench.results import load_results
from tytoalba.bench.run import run
from tytoalba.errors import TytoError
from tytoalba.learning.method import Memory, Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.sslcil import SslCil
from tytoalba.learning.phases import Phase, groups, phase_of, split
from tytoalba.signal.angles import distance, to_class


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """So small sums are slower on several, above all beside other processes."""
    import torch  # noqa: F401 - only what is loaded can be limited

    with threadpool_limits(1):
        yield


# ---- what is measured ----


class Compass(Method):
    """Reads the answer from the frame, and errs by as many degrees as it has learned phases."""

    def __init__(self, task: Task, *, drift: float = 2.0) -> None:
        super().__init__(task)
        self.n_phases, self.drift = 0, drift

    def learn(self, phase: Phase) -> None:
        assert phase.X.shape[1] == self.task.n_inputs
        self.n_phases += 1

    def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        scores = np.zeros((len(X), 360), np.float32)
        for column, height in ((1, 0.9), (0, 1.0)):
            turned = X[:, column] + self.drift * self.n_phases
            scores[np.arange(len(X)), to_class(turned)] = height
        return scores

    def memory(self) -> Memory:
        return {"n_phases": np.array(self.n_phases)}

    def restore(self, memory: Memory) -> None:
        self.n_phases = int(memory["n_phases"])


class Almanac(Compass):
    """The same, but it is given all phases at once."""

    sees_everything: ClassVar[bool] = True


def compass_frames(n: int, seed: int) -> Frames:
    """Azimuths, beside them what the compass reads: whole degrees, sometimes wrong; two sources are apart."""
    rng = np.random.default_rng(seed)
    first = rng.integers(360, size=n).astype(float)
    azimuth = np.stack([first, (first + rng.integers(60, 300, n)) % 360], axis=1)
    read = azimuth + rng.integers(-4, 5, azimuth.shape)
    azimuth[::2, 1] = np.nan
    azimuth[::7] = np.nan  # nobody talks
    azimuth[1::8] = azimuth[1::8, ::-1]  # the order of sources means nothing
    return Frames(np.asarray(read, np.float32), azimuth)


def slowly(test: Frames, n_phases: int, n_sources: int, drift: float) -> dict[str, Any]:
    """The matrices of the compass, frame by frame."""
    phase = phase_of(test.azimuth, groups(n_phases))
    cells: dict[tuple[int, int], list[tuple[float, float]]] = {}
    sectors: dict[int, list[tuple[float, float]]] = {}
    for i in range(n_phases):
        for x, row, j in zip(test.X, test.azimuth, phase, strict=True):
            true = [float(a) for a in row if np.isfinite(a)]
            if len(true) != n_sources or j > i:
                continue
            said = [(float(v) + drift * (i + 1)) % 360 for v in x[:n_sources]]
            error = min(
                ([float(distance(t, s)) for t, s in zip(true, order, strict=True)]
                 for order in permutations(said)),
                key=sum,
            )  # fmt: skip
            hits = [float(e <= 5) for e in error]
            cells.setdefault((i, int(j)), []).append((float(np.mean(hits)), float(np.mean(error))))
            if i == n_phases - 1:
                for t, hit, e in zip(true, hits, error, strict=True):
                    sectors.setdefault(int(t // 15), []).append((hit, e))

    def mean(found: list[tuple[float, float]] | None, which: int) -> float | None:
        return round(float(np.mean([pair[which] for pair in found])), 4) if found else None

    def matrix(which: int) -> list[list[float | None]]:
        return [[mean(cells.get((i, j)), which) for j in range(n_phases)] for i in range(n_phases)]

    return {
        "acc": matrix(0),
        "mae": matrix(1),
        "counts": [len(cells.get((n_phases - 1, j), [])) for j in range(n_phases)],
        "sectors": {"frames": [len(sectors.get(s, [])) for s in range(24)]}
        | {name: [mean(sectors.get(s), k) for s in range(24)] for k, name in enumerate(("acc", "mae"))},
    }


def approximately(value: Any) -> Any:
    """Numbers that may differ in the last digit kept."""
    if isinstance(value, dict):
        return {key: approximately(item) for key, item in value.items()}
    if isinstance(value, list):
        return [approximately(item) for item in value]
    return value if value is None else pytest.approx(value, abs=1.01e-4)


@pytest.fixture
def compass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "compass", Compass)
    monkeypatch.setitem(METHODS, "almanac", Almanac)


def compass_data(**changes: Any) -> BenchData:
    tests = {(CLEAN, "test"): compass_frames(400, 2)}
    data = BenchData("toy", compass_frames(50, 0), compass_frames(40, 1), tests, None, None)
    return replace(data, **changes)


@pytest.mark.usefixtures("compass")
@pytest.mark.parametrize("n_sources", [1, 2])
@pytest.mark.parametrize("n_phases", [1, 4])
def test_the_matrices_are_what_they_say(n_sources: int, n_phases: int) -> None:
    config = Config("toy", methods=("compass",), n_phases=n_phases)
    data = compass_data()
    row = row_of(one_job(config, data), n_sources=n_sources)
    expected = slowly(data.tests[CLEAN, "test"], n_phases, n_sources, drift=2.0)
    assert {key: row[key] for key in expected} == approximately(expected)
    assert all(row["acc"][i][j] is None for i in range(n_phases) for j in range(i + 1, n_phases))


@pytest.mark.usefixtures("compass")
def test_a_method_that_sees_everything_learns_once() -> None:
    config = Config("toy", methods=("almanac",), n_phases=4, options={"almanac": {"drift": 3.0}})
    row = row_of(one_job(config, compass_data()), n_sources=1)
    assert len(row["learn_seconds"]) == 1
    for j in range(4):
        column = [row["mae"][i][j] for i in range(j, 4)]
        assert len(set(column)) == 1


def test_what_a_method_that_sees_everything_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[Phase] = []

    class Pupil(Almanac):
        def learn(self, phase: Phase) -> None:
            lessons.append(phase)

    monkeypatch.setitem(METHODS, "pupil", Pupil)
    data = compass_data()
    one_job(Config("toy", methods=("pupil",), n_phases=4), data)
    (lesson,) = lessons
    assert sorted(lesson.directions.tolist()) == list(range(360))
    np.testing.assert_array_equal(lesson.X, data.train.X)


def test_what_a_method_is_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[Phase] = []

    class Pupil(Compass):
        def learn(self, phase: Phase) -> None:
            assert self.task.scaling == "min-max"
            lessons.append(phase)

    monkeypatch.setitem(METHODS, "pupil", Pupil)
    data = compass_data()
    config = Config(
        "toy", methods=("pupil",), n_phases=4, orders=("shuffled",), seeds=(5,), scaling="min-max"
    )
    one_job(config, data)
    expected = split(data.train.X, data.train.azimuth, groups(4, "shuffled", 5))
    assert sum(map(len, lessons)) == np.isfinite(data.train.azimuth).any(axis=1).sum()
    for lesson, phase in zip(lessons, expected, strict=True):
        np.testing.assert_array_equal(lesson.X, phase.X)
        np.testing.assert_array_equal(lesson.directions, phase.directions)
    lessons.clear()
    one_job(replace(config, overlap=0.5, imbalance=4.0), data)
    untidy = [len(lesson) for lesson in lessons]
    assert 0 < sum(untidy) < sum(map(len, expected))
    lessons.clear()
    one_job(replace(config, max_sources=1), data)
    taught = np.concatenate([np.isfinite(lesson.azimuth).sum(axis=1) for lesson in lessons])
    assert (taught == 1).all()
    assert len(taught) == (np.isfinite(data.train.azimuth).sum(axis=1) == 1).sum()


def windowed_data() -> BenchData:
    """The toy's frames, each with three windows that hold nothing good."""
    assert TASK.gcc is not None
    data, rng = toy_data(), np.random.default_rng(0)

    def cut(known: Frames) -> Frames:
        return replace(known, X=np.hstack([known.X, rng.standard_normal((len(known), 90), np.float32)]))

    tests = {key: cut(known) for key, known in data.tests.items()}
    gcc = replace(TASK.gcc, parts=2)
    return replace(data, train=cut(data.train), valid=cut(data.valid), tests=tests, gcc=gcc)  # type: ignore[arg-type]


@pytest.mark.parametrize("windows", [True, False])
def test_windows_are_shown_unless_they_shall_not(monkeypatch: pytest.MonkeyPatch, windows: bool) -> None:
    lessons: list[Phase] = []
    asked: list[NDArray[np.float32]] = []

    class Pupil(Compass):
        def learn(self, phase: Phase) -> None:
            assert self.task.gcc == (data.gcc if windows else TASK.gcc)
            super().learn(phase)
            assert phase.X.flags.c_contiguous
            lessons.append(phase)

        def posterior(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
            asked.append(X)
            return super().posterior(X)

    class Reader(Pupil):
        sees_everything: ClassVar[bool] = True

    monkeypatch.setitem(METHODS, "pupil", Pupil)
    monkeypatch.setitem(METHODS, "reader", Reader)
    data = windowed_data()
    n = data.n_inputs if windows else TASK.n_inputs
    config = Config("toy", methods=("pupil", "reader"), n_phases=3, parts=2)
    config = replace(config, variants={name: [{"windows": windows, "drift": 1.0}] for name in config.methods})
    for row in one_job(config, data):
        assert row["variant"] == f"windows={windows}, drift=1.0"
        assert row["options"] == {"windows": windows, "drift": 1.0}
        assert row["had"] == (["windows"] if windows else [])
    expected = split(data.train.X[:, :n], data.train.azimuth, groups(3))
    for lesson, phase in zip(lessons, expected, strict=True):
        np.testing.assert_array_equal(lesson.X, phase.X)
        np.testing.assert_array_equal(lesson.azimuth, phase.azimuth)
    assert {X.shape[1] for X in asked} == {n}
    lessons.clear()
    one_job(config, data, 1)
    np.testing.assert_array_equal(lessons[0].X, data.train.X[:, :n])


@pytest.mark.parametrize("shown", [{"windows": False}, {"plain": True}])
def test_whole_frames_of_frames_with_windows_are_those_without_any(shown: dict[str, bool]) -> None:
    config = toy_config(methods=("srp-phat", "icarl"), parts=2)
    blind = replace(config, options={k: SMALL.get(k, {}) | shown for k in config.methods})
    for number in (0, 1):
        got, want = (
            [row["acc"] for row in one_job(*chosen, number)]
            for chosen in ((blind, windowed_data()), (config, toy_data()))
        )
        assert got == want
    assert [row["acc"] for row in one_job(config, windowed_data(), 1)] != want


@pytest.mark.usefixtures("compass")
def test_whole_frames_of_features_that_nobody_knows() -> None:
    config = Config("toy", methods=("compass",), n_phases=2, options={"compass": {"windows": False}})
    with pytest.raises(TytoError, match=r"which features of toy .* leave out the options windows"):
        one_job(config, compass_data())


def test_the_device_is_awake_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Pupil(Compass):
        def learn(self, phase: Phase) -> None:
            super().learn(phase)
            events.append("learn")

    monkeypatch.setitem(METHODS, "pupil", Pupil)
    monkeypatch.setattr(job_module, "_awake", events.append)
    one_job(Config("toy", methods=("pupil",), n_phases=2), compass_data())
    assert events == ["cpu", "learn", "learn"]


def test_frames_for_a_gpu_lie_in_page_locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as a CPU can tell."""
    import torch

    empty, locked = torch.empty, []

    def here(shape: tuple[int, ...], *, pin_memory: bool) -> torch.Tensor:
        locked.append(pin_memory)
        return empty(shape)

    monkeypatch.setattr(torch, "empty", here)
    X = np.arange(24, dtype=np.float32).reshape(4, 6)[:, :4]
    for device in ("cpu", "cuda", "cuda:1"):
        handed = job_module._handed(X, device)
        assert np.array_equal(handed, X)
        assert handed.flags.c_contiguous
        assert not np.shares_memory(handed, X)
    assert locked == [True, True]


def test_what_wakes_a_gpu_can_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as a CPU can tell."""
    import torch

    eye, devices = torch.eye, []

    def here(n: int, *, dtype: torch.dtype, device: str) -> torch.Tensor:
        devices.append(device)
        return eye(n, dtype=dtype)

    monkeypatch.setattr(torch, "eye", here)
    monkeypatch.setattr(torch.cuda, "synchronize", devices.append)
    job_module._awake("cpu")
    assert devices == []
    job_module._awake("cuda:1")
    assert devices == ["cuda:1", "cuda:1"]


@pytest.mark.usefixtures("compass")
def test_phases_without_test_frames_have_empty_cells(tmp_path: Path) -> None:
    whole = compass_frames(400, 2)
    phase = phase_of(whole.azimuth, groups(4))
    for without in ([0], [1], [3], [0, 1], [0, 1, 3]):
        rows = ~np.isin(phase, without)
        data = compass_data(tests={(CLEAN, "test"): Frames(whole.X[rows], whole.azimuth[rows])})
        config = Config("toy", methods=("compass",), n_phases=4)
        output = tmp_path / f"{without}.json"
        run(config, data, output)
        assert {row.n_sources for row in load_results(output).rows} == {1, 2}
        for row in json.loads(output.read_text())["rows"]:
            assert [j for j in range(4) if not row["counts"][j]] == without
            for i in range(4):
                full = [j for j in range(4) if row["acc"][i][j] is not None]
                assert full == [j for j in range(i + 1) if j not in without]


@pytest.mark.usefixtures("compass")
def test_parts_that_are_missing() -> None:
    config = Config("toy", methods=("compass",), n_phases=4)
    assert {row["part"] for row in one_job(config, compass_data())} == {"test"}
    empty = Frames(np.empty((0, 2), np.float32), np.empty((0, 2)))
    tests = {(CLEAN, "test"): compass_frames(50, 2), (CLEAN, "human"): empty}
    assert {row["part"] for row in one_job(config, compass_data(tests=tests))} == {"test"}
    alone = compass_frames(50, 2)
    lone = Frames(alone.X, np.where([[True, False]], alone.azimuth, np.nan))
    rows = one_job(config, compass_data(tests={(CLEAN, "test"): lone}))
    assert {row["n_sources"] for row in rows} == {1}
    for nothing in ({}, {(CLEAN, "test"): empty}, {(WHITE, "test"): alone}):
        with pytest.raises(TytoError, match="toy has no test part to judge methods on"):
            one_job(config, compass_data(tests=nothing))


@pytest.mark.usefixtures("compass")
def test_choosing_hyper_parameters_never_sees_the_test_frames(tmp_path: Path) -> None:
    poison = Frames(np.full((9, 2), np.nan, np.float32), np.full((9, 2), np.nan))
    config = Config(
        "toy", methods=("compass",), n_phases=4, judged_on="valid", noises=("white",), snr=(-10.0,)
    )
    tests = {(CLEAN, "test"): poison, (WHITE, "test"): poison, (CLEAN, "human"): poison}
    data = compass_data(tests=tests)
    run(config, data, tmp_path / "toy.json")
    for row in load_results(tmp_path / "toy.json").rows:
        assert (row.condition, row.part) == (CLEAN, "test")
    rows = json.loads((tmp_path / "toy.json").read_text())["rows"]
    assert data.valid is not None
    expected = slowly(data.valid, 4, 1, drift=2.0)
    assert row_of(rows, n_sources=1)["acc"] == approximately(expected["acc"])
    with pytest.raises(TytoError, match="toy has no valid part"):
        one_job(config, compass_data(valid=None))
    with pytest.raises(ValueError, match=r"not finite|NaN"):  # the poison works
        one_job(replace(toy_config(), n_phases=1), toy_data(tests={(CLEAN, "test"): _poisoned()}))


def _poisoned() -> Frames:
    good = frames(30, 3)
    return Frames(np.full_like(good.X, np.nan), good.azimuth)


def test_the_two_decisions_of_icarl(tmp_path: Path) -> None:
    run(toy_config(methods=("icarl",)), toy_data(), tmp_path / "toy.json")
    rows = load_results(tmp_path / "toy.json").rows
    assert {row.decision for row in rows} == {"", "output"}
    assert len(rows) == 2 * 2 * 4
    assert {row.mask for row in rows} == {"", "taught"}
    assert {row.keeps for row in rows} == {"exemplars"}


# ---- what is claimed of SSL-CIL ----


def test_ssl_cil_equals_its_joint_solution_at_every_phase() -> None:
    config = toy_config(methods=("ssl-cil", "ssl-cil-random", "tyto"), seeds=(3, 4), verify=True)
    for number in (0, 1):
        for row in one_job(config, toy_data(), number):
            assert len(row["joint_deviation"]) == 3
            assert max(row["joint_deviation"]) < 1e-9
    assert "joint_deviation" not in one_job(config, toy_data(), 2)[0]  # tyto's sums are those of integers
    assert "joint_deviation" not in one_job(config, toy_data(), 4)[0]  # the first seed only


def test_a_solution_that_is_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = SslCil.weights
    monkeypatch.setattr(SslCil, "weights", lambda self: right(self) * (1 + 1e-5))
    config = toy_config(methods=("ssl-cil-random",), verify=True)
    with pytest.raises(TytoError, match="ssl-cil-random is 1e-05 off its joint solution at phase 0"):
        one_job(config, toy_data())
    assert "joint_deviation" not in one_job(replace(config, verify=False), toy_data())[0]
    monkeypatch.setattr(SslCil, "deviation", lambda self, phases: np.nan)  # noqa: ARG005
    with pytest.raises(TytoError, match="is nan off"):
        one_job(config, toy_data())


def test_verifying_where_the_first_phases_are_empty() -> None:
    config = toy_config(methods=("ssl-cil-random",), verify=True)
    rows = one_job(config, toy_data(train=frames(50, 1, (130.0, 350.0))))
    assert len(rows[0]["joint_deviation"]) == 2


# ---- options that no method has ----


@pytest.mark.parametrize(
    ("method", "options"), [("tyto", {"depth": 3}), ("tyto", {"n_features": -1}), ("ds-al", {"weight": 9.0})]
)
def test_options_that_a_method_refuses(method: str, options: dict[str, Any]) -> None:
    config = toy_config(methods=(method,), options={method: options})
    with pytest.raises(TytoError, match=f"{method} cannot be made with options .*{next(iter(options))}"):
        one_job(config, toy_data())


def placed(known: Frames, seed: int) -> Frames:
    """Frames in random places of three recordings, with gaps."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(3 * 200)[: len(known)]
    return replace(known, place=np.stack([numbers // 200, numbers % 200], axis=1))


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 2**31))
def test_averages_over_neighbours_of_the_same_recording(n: int, context: int, seed: int) -> None:
    place = placed(frames(n, 0), seed).place
    assert place is not None
    scores = np.random.default_rng(seed).standard_normal((n, 3)).astype(np.float32)
    near = np.abs(place[:, None, 1] - place[None, :, 1]) <= context
    beside = near & (place[:, None, 0] == place[None, :, 0])
    expected = beside @ scores.astype(np.float64) / beside.sum(axis=1, keepdims=True)
    assert averaged(scores, place, context) == pytest.approx(expected, abs=1e-5)


def test_context_is_a_condition_of_its_own() -> None:
    data = toy_data()
    tests = {key: placed(known, 7) for key, known in data.tests.items()}
    config = Config("c", methods=("srp-phat", "tyto"), n_phases=2, context=(1, 30), options=SMALL)
    rows = run_job(config.jobs()[1], config, replace(data, tests=tests))
    conditions = {(row["condition"], row["part"]) for row in rows}
    assert conditions == {(c, p) for c in (CLEAN, "context 1", "context 30") for p in ("test", "human")}
    plain = run_job(config.jobs()[1], replace(config, context=()), data)
    clean = [row for row in rows if row["condition"] == CLEAN]
    assert [row["acc"] for row in clean] == [row["acc"] for row in plain if row["condition"] == CLEAN]
    with pytest.raises(TytoError, match="neighbours"):
        run_job(config.jobs()[1], config, data)


def test_an_endless_option_is_written_as_text() -> None:
    job = Job("tyto", "", "contiguous", 0, {"n_features": 20, "prior_frames": float("inf")})
    (row, *_) = run_job(job, Config("c", n_phases=1), toy_data())
    assert row["options"]["prior_frames"] == "Infinity"
