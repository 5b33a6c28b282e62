"""The methods that learn by gradient: what each adds to fine-tuning does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.helpers.waves import plane_waves
from tytoalba.errors import TytoError
from tytoalba.learning.method import Method, Task
from tytoalba.learning.methods import METHODS
from tytoalba.learning.methods.contract import CHECKS, check_learning
from tytoalba.learning.methods.ewc import Ewc
from tytoalba.learning.methods.finetune import FineTune
from tytoalba.learning.methods.icarl import ICarl
from tytoalba.learning.methods.joint import Joint
from tytoalba.learning.methods.lfl import LfL
from tytoalba.learning.methods.lwf import LwF
from tytoalba.learning.methods.replay import (
    Exemplars,
    Replay,
    direction_of,
    equal_quota,
    herd,
    normalised,
)
from tytoalba.learning.methods.ssil import SsIl, log_softmax_within
from tytoalba.learning.phases import Phase, groups, split
from tytoalba.signal.angles import decode, distance, encode
from tytoalba.signal.array import load_array
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.symmetry import symmetries

GRADIENT = ("mlp-gcc", "joint", "fine-tune", "lwf", "ss-il", "icarl", "ewc", "lfl", "replay")
REPLAY = ("ss-il", "icarl", "replay")
N_INPUTS, N_DIRECTIONS = 16, 360
TASK = Task(N_INPUTS, seed=3)
QUICK: dict[str, Any] = {"width": 16, "epochs": 2, "batch": 32}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def quick(name: str, task: Task = TASK, **options: Any) -> Method:
    budget = {"budget": 80} if name in REPLAY else {}
    return METHODS[name](task, **{**QUICK, **budget, **options})


def frames(n: int, seed: int = 0, two: float = 0.2) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Waves of the azimuth, some frames with two sources."""
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(0, 360, (n, 2))
    azimuth[rng.random(n) >= two, 1] = np.nan
    angle_rad = np.deg2rad(azimuth)[..., None] * np.arange(1, N_INPUTS // 2 + 1)
    clean = np.nansum(np.concatenate([np.cos(angle_rad), np.sin(angle_rad)], axis=2), axis=1)
    return (clean + 0.1 * rng.standard_normal((n, N_INPUTS))).astype(np.float32), azimuth


def phases(n: int = 240, n_phases: int = 3, seed: int = 0, two: float = 0.2) -> list[Phase]:
    return split(*frames(n, seed, two), groups(n_phases))


def taught(method: Any, stream: list[Phase]) -> Any:
    for phase in stream:
        method.learn(phase)
    return method


def network_of(method: FineTune) -> Any:
    assert method.network_ is not None
    return method.network_


# ---- all of them ----


@pytest.mark.parametrize("name", GRADIENT)
def test_global_random_state_is_untouched(name: str) -> None:
    before = torch.get_rng_state()
    taught(quick(name), phases()[:2]).posterior(frames(5)[0])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", GRADIENT)
def test_odd_phases(name: str) -> None:
    """One frame, none at all, one without source, a direction that comes back, one source and then two."""
    stream = phases()
    one = replace(stream[0], X=stream[0].X[:1], azimuth=stream[0].azimuth[:1, :1])
    empty = replace(stream[1], X=stream[1].X[:0], azimuth=stream[1].azimuth[:0])
    silent = replace(stream[1], X=stream[1].X[:3], azimuth=np.full((3, 2), np.nan))
    method = taught(quick(name), [empty, one, silent, stream[2], stream[0]])
    assert np.isfinite(method.posterior(frames(9)[0])).all()


@pytest.mark.parametrize("name", [name for name in GRADIENT if name != "ss-il"])  # it has another loss
def test_phase_zero_is_the_same_for_all_that_do_the_same(name: str) -> None:
    first, X = phases()[0], frames(9)[0]
    scores = list(taught(quick(name), [first]).posteriors(X).values())[-1]
    np.testing.assert_array_equal(scores, taught(quick("fine-tune"), [first]).posterior(X))


@pytest.mark.parametrize("name", GRADIENT)
def test_asking_before_learning_is_refused(name: str) -> None:
    method = quick(name)
    with pytest.raises(ValueError, match="learned nothing"):
        method.posterior(frames(1)[0])
    fresh = quick(name)
    fresh.restore(method.memory())  # nothing, restored
    with pytest.raises(TypeError):
        quick(name, epoch=3)


def test_joint_memory_is_all_frames() -> None:
    stream = phases()
    kept = taught(quick("joint", epochs=1), stream).memory()
    np.testing.assert_array_equal(kept["X"], np.concatenate([p.X for p in stream]))
    np.testing.assert_array_equal(kept["azimuth"], np.concatenate([p.azimuth for p in stream]))


def test_joint_in_phases_ends_like_all_at_once_would_start() -> None:
    """At each phase joint is a new network on everything: the earlier training leaves no trace."""
    stream = phases()
    method = taught(quick("joint"), stream)
    other = quick("joint", epochs=0)
    taught(other, stream[:2])
    other.recipe = method.recipe  # type: ignore[attr-defined]
    other.learn(stream[2])
    X = frames(9)[0]
    np.testing.assert_array_equal(method.posterior(X), other.posterior(X))


def test_fine_tune_forgets_joint_does_not_and_replay_lies_between() -> None:
    stream = phases(900, two=0.0)
    X, azimuth = frames(300, seed=1, two=0.0)
    first = azimuth[:, 0] < 119
    options: dict[str, Any] = {"width": 48, "epochs": 10, "lr": 1e-2, "dropout": 0.0}

    def accuracy(name: str, **extra: Any) -> tuple[float, float]:
        method = taught(quick(name, **options, **extra), stream)
        right = distance(decode(method.posterior(X)), azimuth[:, 0]) <= 10
        return float(right[first].mean()), float(right.mean())

    fine_tune, joint, replay = accuracy("fine-tune"), accuracy("joint"), accuracy("replay", budget=360)
    assert fine_tune[0] < 0.2
    assert joint[0] > 0.8
    assert fine_tune[1] + 0.1 < replay[1] <= joint[1] + 0.02
    assert fine_tune[0] + 0.2 < replay[0]


# ---- exemplars ----


def slow_herd(Z: NDArray[np.float64], n: int) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < min(n, len(Z)):
        rest = [i for i in range(len(Z)) if i not in chosen]
        far = [np.linalg.norm(Z[[*chosen, i]].mean(axis=0) - Z.mean(axis=0)) for i in rest]
        chosen.append(rest[int(np.argmin(far))])
    return chosen


@pytest.mark.parametrize(("n_frames", "n"), [(1, 1), (7, 3), (30, 30), (5, 10), (12, 0)])
def test_herding_is_the_greedy_choice(n_frames: int, n: int) -> None:
    for seed in range(5):
        Z = np.random.default_rng(seed).random((n_frames, 4))
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        order = herd(Z, n).tolist()
        assert order == slow_herd(Z, n)
        assert herd(Z, n // 2).tolist() == order[: n // 2]


def some_exemplars(n: int, directions: list[int], seed: int = 0) -> Exemplars:
    rng = np.random.default_rng(seed)
    direction = np.array(rng.choice(directions, n), np.intp)
    return Exemplars(rng.random((n, 3), np.float32), direction[:, None].astype(float), direction)


def test_shrinking_is_cutting_off_the_end() -> None:
    seen = np.zeros(N_DIRECTIONS, np.bool_)
    seen[:4] = True
    frames_ = some_exemplars(200, [0, 1, 2, 3])
    empty = Exemplars.none(3)
    large = empty.updated(frames_, lambda X: X, equal_quota(80, seen))
    small = empty.updated(frames_, lambda X: X, equal_quota(20, seen))
    rank = np.arange(len(large)) - np.searchsorted(large.direction, large.direction)  # in its direction
    shrunk = large.take(np.flatnonzero(rank < equal_quota(20, seen)[large.direction]))
    np.testing.assert_array_equal(small.X, shrunk.X)
    assert np.bincount(shrunk.direction).tolist() == [5] * 4
    again = large.updated(some_exemplars(0, [9]), lambda X: X, equal_quota(20, seen))
    np.testing.assert_array_equal(again.X, shrunk.X)


def test_directions_with_few_frames_and_directions_that_come_back() -> None:
    quota = np.full(N_DIRECTIONS, 5, np.intp)
    few = some_exemplars(3, [7])
    kept = Exemplars.none(3).updated(few, lambda X: X, quota)
    assert sorted(kept.X.tolist()) == sorted(few.X.tolist())
    more = some_exemplars(20, [7, 8], seed=1)
    both = kept.updated(more, lambda X: X, quota)
    pool = np.concatenate([kept.X, more.X[more.direction == 7]])
    best = herd(normalised(pool), 5)
    np.testing.assert_array_equal(both.X[both.direction == 7], pool[best])
    assert len(both) == 10


@pytest.mark.parametrize("name", REPLAY)
@pytest.mark.parametrize("budget", [0, 100, 361])
def test_the_budget_is_never_exceeded(name: str, budget: int) -> None:
    method = quick(name, budget=budget, epochs=1)
    stream = phases(900)
    seen = np.zeros(N_DIRECTIONS, np.bool_)
    for phase in stream:
        method.learn(phase)
        kept = method.memory()
        seen[phase.directions] = True
        assert len(kept["exemplars.X"]) <= budget
        counts = np.bincount(kept["exemplars.direction"], minlength=N_DIRECTIONS)
        assert counts.max() <= budget // seen.sum()
        known = {tuple(x) for p in stream for x in p.X.tolist()}
        assert all(tuple(x) in known for x in kept["exemplars.X"].tolist())
        assert not counts[~seen].any()


def test_replay_splits_the_memory() -> None:
    method = Replay(TASK, budget=720, new_share=0.25, **QUICK)
    stream = phases()
    method.learn(stream[0])
    assert method.quota(stream[1])[[0, 119, 120, 239, 240]].tolist() == [4, 4, 1, 1, 0]
    method.learn(stream[1])
    assert method.quota(stream[2]).sum() <= 720


def test_a_frame_counts_for_the_last_direction_of_its_phase() -> None:
    azimuth = np.array([[10.0, 50.0], [50.0, 10.0], [5.0, np.nan], [np.nan, np.nan], [60.0, 70.0]])
    ours = direction_of(azimuth, np.arange(36), N_DIRECTIONS)
    assert ours.tolist() == [10, 10, 5, -1, 70]
    assert direction_of(azimuth, np.arange(360), N_DIRECTIONS).tolist() == [50, 50, 5, -1, 70]


# ---- each its own ----


def test_lwf_pulls_old_columns_towards_old_outputs() -> None:
    stream = phases(600)
    X = stream[1].X
    moved = []
    for distillation in (0.0, 1.0, 30.0):
        method = LwF(TASK, distillation=distillation, width=32, epochs=10, batch=32, lr=1e-2)
        method.learn(stream[0])
        before = method.posterior(X)[:, :120]
        method.learn(stream[1])
        moved.append(float(np.abs(method.posterior(X)[:, :120] - before).mean()))
    assert moved[0] > moved[1] > moved[2]


@pytest.mark.parametrize("old_labels", [True, False])
def test_lwf_takes_labels_of_old_directions_where_they_are_higher(old_labels: bool) -> None:
    stream = phases(two=1.0)
    method = LwF(TASK, distillation=2.0, old_labels=old_labels, **QUICK)
    method.learn(stream[0])
    network, rows = network_of(method).copy().eval(), torch.arange(20)
    X, Y = method.frames(stream[1].X, stream[1].azimuth)
    said = network.predict(X)
    wanted = Y.clone()
    wanted[:, :120] = torch.maximum(said, Y)[:, :120] if old_labels else said[:, :120]
    assert bool((said < Y)[:20, :120].any())  # old sources that the teacher does not hear
    weight = torch.ones(N_DIRECTIONS)
    weight[:120] = 2.0
    expected = float((weight * (said - wanted)[:20] ** 2).mean())
    with torch.no_grad():
        assert float(method.training_set(network, stream[1]).loss(network, rows)) == pytest.approx(expected)


def test_lwf_without_old_directions_is_fine_tune() -> None:
    stream, X = phases(), frames(9)[0]
    back = [stream[0], stream[0]]  # visited again: nothing is old
    np.testing.assert_array_equal(
        taught(quick("lwf"), back).posterior(X), taught(quick("fine-tune"), back).posterior(X)
    )


def test_ewc_penalty_is_zero_at_the_old_solution_and_grows_away_from_it() -> None:
    stream = phases()
    method = Ewc(TASK, strength=50.0, **QUICK)
    method.learn(stream[0])
    network, rows = network_of(method).copy().eval(), torch.arange(20)
    penalised = method.training_set(network, stream[1]).loss
    plain = FineTune.training_set(method, network, stream[1]).loss
    with torch.no_grad():
        assert float(penalised(network, rows)) == float(plain(network, rows))
        step = 0.01
        network.output.bias += step
        penalty = float(penalised(network, rows) - plain(network, rows))
    expected = 50.0 / N_DIRECTIONS * method.importance_["output.bias"].sum() * step**2
    assert penalty == pytest.approx(expected, rel=1e-2)


def test_ewc_importance_is_the_diagonal_of_the_gauss_newton_matrix() -> None:
    """For the output layer it is known: J'J of bias c is s'(c)^2, of weight (c, u) s'(c)^2 z(u)^2."""
    method = Ewc(TASK, **QUICK)
    method.learn(phases()[0])
    network = network_of(method)
    X = method.inputs(frames(40)[0])
    estimates = [method.estimate(network, X) for _ in range(300)]
    s, Z = network.predict(X), network.predict(X, "features")
    slope2 = (s * (1 - s)) ** 2
    bias = np.mean([e["output.bias"] for e in estimates], axis=0)
    np.testing.assert_allclose(bias, slope2.mean(0), rtol=0.45)
    assert bias.sum() == pytest.approx(float(slope2.mean(0).sum()), rel=0.03)
    weight = sum(e["output.weight"].sum() for e in estimates) / len(estimates)
    assert weight == pytest.approx(float((slope2.T @ Z**2).sum() / len(X)), rel=0.03)


def test_ewc_holds_the_weights() -> None:
    stream = phases(600)
    moved = []
    for strength in (0.0, 10.0, 1e4):
        method = Ewc(TASK, strength=strength, width=32, epochs=6, batch=32)
        method.learn(stream[0])
        importance = {n: v.copy() for n, v in method.importance_.items()}
        before = method.memory()
        method.learn(stream[1])
        after = method.memory()
        moved.append(
            sum(
                (v * (after[f"network.{n}"] - before[f"network.{n}"]) ** 2).sum()
                for n, v in importance.items()
            )
        )
    assert moved[0] > moved[1] > moved[2]


def test_lfl_keeps_features_close_and_old_columns_still() -> None:
    stream = phases(600)
    moved = []
    for strength in (0.0, 0.01, 10.0):
        method = LfL(TASK, strength=strength, width=32, epochs=10, batch=32, lr=1e-2)
        method.learn(stream[0])
        before, Z = method.memory(), method.layer(stream[1].X, "features")
        method.learn(stream[1])
        after = method.memory()
        moved.append(float(((method.layer(stream[1].X, "features") - Z) ** 2).mean()))
        for name in ("network.output.weight", "network.output.bias"):
            np.testing.assert_array_equal(after[name][:120], before[name][:120])
            assert not np.array_equal(after[name][120:240], before[name][120:240])
    assert moved[0] > moved[1] > moved[2]


def test_icarl_scores_are_the_nearest_mean() -> None:
    method = taught(ICarl(TASK, budget=360, **QUICK), phases(600)[:2])
    X, _ = frames(12, seed=5)
    scores, kept = method.posterior(X), method.exemplars_
    Z = method.layer(X, "features")
    means = np.full((N_DIRECTIONS, 16), np.nan)
    for c in np.unique(kept.direction):
        own = method.layer(kept.X[kept.direction == c], "features")
        mean = np.mean(own / np.linalg.norm(own, axis=1, keepdims=True), axis=0)
        means[c] = mean / np.linalg.norm(mean)
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    far = np.linalg.norm(Z[:, None] - means, axis=2)  # (F, C)
    assert scores.argmax(axis=1).tolist() == np.nanargmin(far, axis=1).tolist()
    known = np.isfinite(means[:, 0])
    np.testing.assert_allclose(scores[:, known], 1 - far[:, known] ** 2 / 2, atol=1e-5)
    assert (scores[:, ~known] == -1).all()
    rules = method.posteriors(X)
    assert list(rules) == ["", "output"]
    np.testing.assert_array_equal(rules["output"], method.layer(X, "scores"))


def test_softmax_within_groups() -> None:
    group = np.array([0, 0, 2, -1, 2, 0])
    logits = torch.randn(3, 6, generator=torch.Generator().manual_seed(0), requires_grad=True)
    ours = log_softmax_within(group, logits.device)(logits)
    for g in (0, 2):
        columns = np.flatnonzero(group == g)
        torch.testing.assert_close(ours[:, columns], torch.log_softmax(logits[:, columns], dim=1))
    ours[:, :3].sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_ssil_posterior_and_loss() -> None:
    stream = phases()
    method = SsIl(TASK, budget=240, labels="cut", comparison=0.0, **QUICK)
    method.learn(stream[0])
    scores = method.posterior(frames(9)[0])
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-5)
    assert not scores[:, 120:].any()
    # before a step the new network is the old one: no distillation, only the cross-entropies
    network = network_of(method).copy().eval()
    phase, kept = stream[1], method.exemplars_
    lesson = method.training_set(network, phase)
    assert (lesson.n_frames, lesson.n_replay) == (len(phase), len(kept))
    new, old = 3, 2
    rows = torch.tensor([*range(new), len(phase), len(phase) + 1])
    loss = float(lesson.loss(network, rows).detach())
    X, Y = method.frames(*method.with_exemplars(phase))
    logits = network.predict(X, "logits")
    expected = 0.0
    for row, columns in zip(rows.tolist(), [slice(120, 240)] * new + [slice(0, 120)] * old, strict=True):
        target = Y[row, columns] / Y[row, columns].sum()
        expected -= float((target * torch.log_softmax(logits[row, columns], dim=0)).sum()) / len(rows)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_ssil_distils_each_phase_by_itself() -> None:
    stream = phases()
    method = SsIl(TASK, budget=240, temperature=2.0, **QUICK)
    taught(method, stream[:2])
    network = network_of(method).copy().eval()
    with_, without = (method.training_set(network, stream[2]) for _ in range(2))
    method.distillation = 0.0
    rows = torch.arange(10)
    with torch.no_grad():
        network.output.bias[5] += 3.0  # within phase 0
        plain = float(without.loss(network, rows))
        method.distillation = 1.0
        distilled = float(with_.loss(network, rows)) - plain
        X = method.inputs(stream[2].X[:10])
        was = torch.log_softmax(network_of(method).predict(X, "logits")[:, :120] / 2, dim=1)
        now = torch.log_softmax(network.predict(X, "logits")[:, :120] / 2, dim=1)
        assert distilled == pytest.approx(4 * float((was.exp() * (was - now)).sum(1).mean()), rel=1e-3)
        network.output.bias[120:240] += 1.0  # the same for a whole phase: nothing to distil
        again = float(with_.loss(network, rows))
        method.distillation = 0.0
        assert again - float(without.loss(network, rows)) == pytest.approx(distilled, rel=1e-3)


def test_ssil_learns_of_each_label_what_it_is_told() -> None:
    directions = np.arange(120, 240)
    phase = Phase(frames(3)[0], np.array([[121.0, np.nan], [200.0, 40.0], [300.0, np.nan]]), directions)
    wanted = encode(phase.azimuth)
    old, new = np.arange(360) < 120, (np.arange(360) >= 120) & (np.arange(360) < 240)
    for labels in ("whole", "cut", "one-hot"):
        method = SsIl(TASK, budget=0, labels=labels, **QUICK)
        method.seen_[:120] = True
        group = method._group(phase)
        assert (group == 0).tolist() == old.tolist()
        assert (group == 1).tolist() == new.tolist()
        target = method._targets(method.frames(phase.X, phase.azimuth)[1], phase, group).numpy()
        mine = old | new if labels == "whole" else new
        expected: NDArray[Any] = np.eye(360)[[121, 200, 300]] if labels == "one-hot" else wanted * mine
        for row in (0, 1):
            np.testing.assert_allclose(target[row], expected[row] / expected[row].sum(), atol=1e-6)
        assert target[2, mine].sum() < 1e-6  # neither old nor new


def test_ssil_compares_new_with_old_as_often_as_there_are_directions() -> None:
    stream = phases(two=0.0)
    with_, without = (SsIl(TASK, budget=240, comparison=c, **QUICK) for c in (1.0, 0.0))
    values = []
    for method in (with_, without):
        method.learn(stream[0])
        network = network_of(method).copy().eval()
        lesson = method.training_set(network, stream[1])
        rows = torch.tensor([0, 1, len(stream[1])])
        values.append(float(lesson.loss(network, rows).detach()))
    X, Y = with_.frames(*with_.with_exemplars(stream[1]))
    logits = network.predict(X, "logits")[rows].double().numpy()
    p = np.exp(logits[:, 120:240]).sum(axis=1) / np.exp(logits[:, :240]).sum(axis=1)
    share = (Y[rows, 120:240].sum(dim=1) / Y[rows, :240].sum(dim=1)).numpy()
    n_new = len(stream[1]) / np.ceil(len(stream[1]) / 32)  # frames of the phase in a step; 8 exemplars
    weight = (n_new + 8) * np.array([0.5 / n_new, 0.5 / n_new, 0.5 / 8])
    expected = np.mean(-weight * (share * np.log(p) + (1 - share) * np.log(1 - p)))
    assert values[0] - values[1] == pytest.approx(expected, rel=1e-4)


def test_ssil_shifts_new_columns_until_exemplars_are_divided_rightly() -> None:
    method = SsIl(TASK, budget=240, comparison=0.0, aligned=True, **QUICK)
    taught(method, phases(two=0.0)[:2])
    kept = method.exemplars_
    _, Y = method.frames(kept.X, kept.azimuth)
    share = Y[:, 120:240].sum(dim=1) / Y[:, :240].sum(dim=1)
    assert method.posterior(kept.X)[:, 120:240].sum() == pytest.approx(float(share.sum()), rel=1e-3)
    assert np.unique(method.shift_).size == 2
    assert not method.shift_[:120].any()


def test_ssil_starts_new_columns_at_zero_if_told() -> None:
    method = SsIl(TASK, budget=240, zero_start=True, **QUICK)
    stream = phases()
    assert not method.start().output.weight.any()
    method.learn(stream[0])
    weight = method.start().output.weight
    assert weight[:120].any(dim=1).all()
    assert not weight[120:].any()


@pytest.mark.parametrize(
    ("cls", "option"),
    [
        (LwF, "distillation"),
        (Ewc, "strength"),
        (LfL, "strength"),
        (ICarl, "budget"),
        (Replay, "new_share"),
        (SsIl, "comparison"),
        (SsIl, "labels"),
    ],
)
def test_options_that_make_no_sense_are_refused(cls: Any, option: str) -> None:
    with pytest.raises(ValueError, match=option):
        cls(TASK, **{option: -1})


def heard(gcc: GccPhat, azimuth: NDArray[np.float64], seed: int = 0) -> NDArray[np.float32]:
    """GCC-PHAT of noise that Pepper hears from azimuths (n_frames, 1), without a room."""
    sound = plane_waves(load_array("pepper"), azimuth, gcc.n_samples, seed=seed)
    return gcc(sound).reshape(len(azimuth), -1).astype(np.float32)


def test_joint_knows_the_mirrored_place_where_it_looks_from_both_sides() -> None:
    array = load_array("pepper")
    gcc = GccPhat.for_array(array, 512)
    azimuth = np.random.default_rng(0).uniform(20, 160, (200, 1))
    X = heard(gcc, azimuth)
    task = Task(gcc.n_features, array=array, gcc=gcc)
    mirror = symmetries(array)[1]
    lesson = Phase(X, azimuth, np.arange(360))
    errors = []
    for views in (1, 2):
        joint = Joint(task, views=views, width=64, epochs=60, batch=32, dropout=0.0, lr=3e-3)
        joint.learn(lesson)
        found = decode(joint.posterior(X[:, mirror.order(gcc)]))
        errors.append(float(np.median(distance(found, mirror.azimuth(azimuth[:, 0])))))
    assert errors[1] < 10 < errors[0]
    for views, blocks in ((0, 4), (1, 0)):
        with pytest.raises(TytoError, match="views and blocks must be at least 1"):
            Joint(task, views=views, blocks=blocks)


def test_joint_takes_labels_as_narrow_as_told() -> None:
    phase = Phase(np.zeros((1, TASK.n_inputs), np.float32), np.array([[90.0]]), np.arange(360))
    for sigma in (None, 5.0):
        _, Y = Joint(TASK, sigma=sigma).frames(phase.X, phase.azimuth)
        assert Y.numpy() == pytest.approx(encode(phase.azimuth, sigma or TASK.sigma), abs=1e-6)
    for wrong in (0.0, -1.0, np.inf):
        with pytest.raises(TytoError, match="sigma must be positive degrees"):
            Joint(TASK, sigma=wrong)


# ---- the steered network ----


def pepper_task(parts: int = 1, **changes: Any) -> Task:
    array = load_array("pepper")
    gcc = GccPhat.for_array(array, 512, parts=parts)
    return replace(Task(gcc.n_features, seed=3, array=array, gcc=gcc), **changes)


@pytest.mark.parametrize("parts", [1, 2])
def test_the_steered_network_learns_and_can_be_restored(parts: int) -> None:
    task = pepper_task(parts)
    assert task.gcc is not None
    azimuth = np.random.default_rng(1).uniform(0, 360, (120, 1))
    X = heard(task.gcc, azimuth)
    stream = split(X, azimuth, groups(2))
    options: dict[str, Any] = {
        "network": "steered",
        "width": 8,
        "blocks": 3,
        "epochs": 10,
        "batch": 16,
        "lr": 1e-2,
    }
    joint = taught(Joint(task, **options), stream)
    unseen = np.arange(5.0, 360.0, 10.0)[:, None]
    questions = heard(task.gcc, unseen, seed=2)
    found = joint.posterior(questions)
    assert np.median(distance(decode(found), unseen[:, 0])) < 5
    memory = joint.memory()
    assert not [name for name in memory if "matrix" in name]  # the array says what these are
    assert (len(memory["X"]), int(memory["n_phases"])) == (120, 2)
    again = Joint(task, **{**options, "epochs": 0})
    again.restore(memory)
    np.testing.assert_array_equal(again.posterior(questions), found)
    assert not np.array_equal(
        taught(Joint(task, **{**options, "epochs": 0}), stream).posterior(questions), found
    )


@pytest.mark.parametrize(
    "check",
    [check for check in CHECKS if check is not check_learning],  # toy frames are no sound of its array: above
    ids=lambda check: check.__name__,
)
def test_contract_of_the_steered_network(check: Any) -> None:
    from tytoalba.learning.methods.contract import toy_task

    check(lambda task: Joint(task, network="steered", views=2, width=4, epochs=1, batch=64), toy_task())


def test_the_steered_network_takes_features_as_they_are() -> None:
    task = pepper_task()
    assert task.gcc is not None
    X = heard(task.gcc, np.linspace(0, 350, 8)[:, None])
    np.testing.assert_array_equal(Joint(task, network="steered").inputs(X).numpy(), X)
    np.testing.assert_array_equal(Joint(task).inputs(X).numpy(), task.scale(X))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"array": None}, "needs to know the array"),
        ({"gcc": None}, "needs to know the array and its GCC-PHAT.*'mlp'"),
        ({"n_inputs": 40}, "306 values a frame, the task 40"),
        ({"n_directions": 72}, "scores 360 directions, the task has 72"),
    ],
)
def test_tasks_that_the_steered_network_cannot_do(changes: dict[str, Any], message: str) -> None:
    task = pepper_task(**changes)
    with pytest.raises(TytoError, match=message):
        Joint(task, network="steered")
    Joint(task)
    with pytest.raises(TytoError, match="network must be one of mlp, steered, got 'deep'"):
        Joint(task, network="deep")  # type: ignore[arg-type]
