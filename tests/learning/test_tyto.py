"""Our learner behind a prior: exact whatever the order, the prior until it is taught, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.waves import plane_waves
from tytoalba.errors import PriorError, TytoError
from tytoalba.learning.inputs import fitting_prior, own_side, views_of
from tytoalba.learning.method import Memory, Task
from tytoalba.learning.methods.contract import check_method
from tytoalba.learning.phases import Phase, groups, split
from tytoalba.learning.prior.features import prior_gcc, scores, steering_matrices
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.sums import SCALE
from tytoalba.learning.tyto import REACH, Tyto, answerable
from tytoalba.signal.angles import decode, distance, wrap
from tytoalba.signal.array import load_array
from tytoalba.signal.symmetry import symmetries

torch = pytest.importorskip("torch")
MINE = replace(load_array("respeaker-usb-4"), name="mine", yaw=7.0, sample_rate=8000)
"""Mounted as no array that a prior is shipped for, and slow: three bands and few lags take less time."""
GCC = prior_gcc(MINE)
TASK = Task(GCC.n_features, seed=4, array=MINE, gcc=GCC)
SMALL: dict[str, Any] = {"views": 1, "n_features": 60}


def features(azimuth: NDArray[np.float64], seed: int = 0) -> NDArray[np.float32]:
    """GCC-PHAT of plane waves from one or two azimuths a frame, with noise."""
    heard = plane_waves(MINE, azimuth, seed=seed, noise=0.7)
    return np.asarray(GCC(heard.astype(np.float32)), np.float32).reshape(len(azimuth), -1)


@pytest.fixture(scope="module")
def azimuth() -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    degrees = rng.uniform(0, 360, (150, 2))
    degrees[np.arange(150) % 3 > 0, 1] = np.nan
    return degrees


@pytest.fixture(scope="module", name="X")
def heard(azimuth: NDArray[np.float64]) -> NDArray[np.float32]:
    return features(azimuth)


@pytest.fixture(scope="module")
def prior(X: NDArray[np.float32]) -> Prior:
    """Of a network that was never trained: a learner must not care."""
    from tytoalba.learning.prior.network import PriorNetwork

    made = Prior.quantised(MINE, GCC, PriorNetwork(steering_matrices(MINE, GCC), width=5, seed=2).folded())
    logits = made.logits(X)
    told = {"logit_mean": logits.mean(axis=0).tolist(), "logit_spread": (0.1 + logits.std(axis=0)).tolist()}
    return replace(made.with_frames(X[:40]), constants=told)


@pytest.fixture(autouse=True)
def found(prior: Prior, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prior lies where it is looked for."""
    folder = tmp_path_factory.getbasetemp() / "priors-of-tyto"
    path = folder / "mine.safetensors"
    if not path.exists():
        folder.mkdir()
        prior.save(path)
    monkeypatch.setenv("TYTO_PRIORS", str(folder))
    return path


@pytest.fixture(scope="module")
def everything(X: NDArray[np.float32], azimuth: NDArray[np.float64]) -> Phase:
    return Phase(X, azimuth, np.arange(360))


def rows_of(phase: Phase, rows: Any) -> Phase:
    return replace(phase, X=phase.X[rows], azimuth=phase.azimuth[rows])


def taught(phases: Sequence[Phase], task: Task = TASK, **options: Any) -> Tyto:
    method = Tyto(task, **(SMALL | options))
    for phase in phases:
        method.learn(phase)
    return method


def assert_same(a: Memory, b: Memory) -> None:
    assert a.keys() == b.keys()
    for name, array in a.items():
        assert array.dtype == b[name].dtype, name
        assert np.array_equal(array, b[name]), name


# ---- exactness


def test_it_starts_from_the_prior_of_its_array() -> None:
    method = Tyto(TASK, **SMALL)
    assert method.prior is not None
    assert method.prior.array == MINE
    assert Tyto(replace(TASK, array=replace(MINE, yaw=90.0)), **SMALL).prior is None
    assert Tyto(replace(TASK, gcc=replace(GCC, max_lag=2)), **SMALL).prior is None
    assert Tyto(replace(TASK, array=None), **SMALL).prior is None
    assert method.memory()["Q"].shape == (60, 720)  # labels and the prior's scores, apart


@given(order=st.permutations(range(150)), cuts=st.lists(st.integers(0, 150), max_size=5))
@settings(max_examples=8, deadline=None)
def test_what_is_learned_does_not_depend_on_order_or_phases(
    everything: Phase, order: list[int], cuts: list[int]
) -> None:
    pieces = [rows_of(everything, rows) for rows in np.split(np.array(order, np.intp), sorted(cuts))]
    together, apart = taught([everything]), taught(pieces)
    assert_same(together.memory(), apart.memory())
    assert np.array_equal(together.posterior(everything.X[:20]), apart.posterior(everything.X[:20]))


@pytest.mark.parametrize("order", ["contiguous", "shuffled", "interleaved"])
def test_sectors_in_any_order_are_the_same(everything: Phase, order: Any) -> None:
    phases = split(everything.X, everything.azimuth, groups(5, order, seed=3))
    reference = taught([everything]).memory()
    assert_same(reference, taught(phases).memory())
    assert_same(reference, taught(phases[::-1]).memory())
    assert reference["n"] == len(everything)


@pytest.mark.parametrize(("sides", "n_rows"), [("all", 4), ("one", 1)])
def test_looking_from_several_sides_is_as_exact(everything: Phase, sides: str, n_rows: int) -> None:
    phases = split(everything.X, everything.azimuth, groups(4))
    reference = taught([everything], views=4, sides=sides)
    assert reference.memory()["n"] == n_rows * len(everything)
    assert reference.n_frames == len(everything)
    elsewhere = replace(TASK, device="cpu:0")
    for other in (
        taught(phases[::-1], views=4, sides=sides),
        taught(phases, elsewhere, views=4, sides=sides),
    ):
        assert_same(reference.memory(), other.memory())
        assert np.allclose(reference.posterior(everything.X), other.posterior(everything.X), atol=1e-5)


@pytest.mark.parametrize("prior_name", ["auto", "none"])
def test_numpy_and_torch_learn_the_same_to_the_bit(everything: Phase, prior_name: str) -> None:
    here, there = (taught([everything], replace(TASK, device=d), prior=prior_name) for d in ("cpu", "cpu:0"))
    assert_same(here.memory(), there.memory())
    assert np.allclose(here.posterior(everything.X), there.posterior(everything.X), atol=1e-5)


def test_the_contract_holds_behind_a_prior() -> None:
    check_method(lambda task: Tyto(task, n_features=20), TASK)


def test_a_restored_learner_answers_and_learns_on(everything: Phase) -> None:
    first, second = rows_of(everything, slice(100)), rows_of(everything, slice(100, None))
    method, again = taught([first]), Tyto(replace(TASK, seed=99), **SMALL)
    again.posterior(everything.X[:2])  # what it has solved must not linger
    again.restore(method.memory())
    assert_same(method.memory(), again.memory())
    assert np.array_equal(method.posterior(everything.X), again.posterior(everything.X))
    for one in (method, again):
        one.learn(second)
    assert_same(method.memory(), again.memory())
    assert np.array_equal(method.posterior(everything.X), again.posterior(everything.X))


def test_memories_that_do_not_fit_are_refused(everything: Phase) -> None:
    method = taught([everything])
    before = method.memory()
    wrong: list[Memory] = [
        before | {"counts": before["counts"][1:]},
        before | {"counts": before["counts"].astype(np.float64)},
        before | {"counts": before["counts"] - 1000},
    ]
    for memory in wrong:
        with pytest.raises(TytoError, match="'counts' must be 360 whole numbers"):
            method.restore(memory)
    with pytest.raises(TytoError, match="behind another prior, or behind none"):
        method.restore(taught([everything], prior="none").memory())
    assert_same(method.memory(), before)


def test_a_memory_learned_behind_another_prior_is_refused(
    everything: Phase, prior: Prior, tmp_path: Path
) -> None:
    weights = prior.weights | {"enter": np.ascontiguousarray(prior.weights["enter"][::-1])}
    replace(prior, weights=weights).save(tmp_path / "next.safetensors")
    with pytest.raises(TytoError, match="prior"):
        Tyto(TASK, **SMALL, prior=str(tmp_path / "next.safetensors")).restore(taught([everything]).memory())


# ---- the prior's word


def test_before_anything_is_taught_it_answers_as_the_prior(prior: Prior, X: NDArray[np.float32]) -> None:
    expected = scores(prior.logits(X))
    for options in ({}, {"simulated": 0}, {"simulated": 5}, {"prior_frames": np.inf}):
        for answers in ("anywhere", "taught"):  # nothing is taught yet: nothing is ruled out
            method = Tyto(TASK, **SMALL | options, answers=answers)
            assert np.abs(method.posterior(X) - expected).max() < 1e-6


def test_without_learning_nothing_is_kept_and_the_prior_speaks(prior: Prior, everything: Phase) -> None:
    method, fresh = taught([everything], learns=False), Tyto(TASK, **SMALL)
    assert_same(method.memory(), fresh.memory())
    assert not method.memory()["counts"].any()
    assert np.array_equal(method.posterior(everything.X), scores(prior.logits(everything.X)))


def test_how_long_the_prior_is_believed(prior: Prior, everything: Phase) -> None:
    said = scores(prior.logits(everything.X))

    def answers(prior_frames: float) -> Any:
        method = taught(
            [everything], prior_frames=prior_frames, answers="anywhere", simulated=0, n_features=200
        )
        return method, method.posterior(everything.X)

    _, never = answers(0.0)
    method, for_ever = answers(np.inf)
    half, usual = answers(200.0)
    few, barely = answers(1e-9)
    assert (method._prior_weight() == 1).all()
    weight = few._prior_weight()
    told = np.round(everything.azimuth[np.isfinite(everything.azimuth)])
    reached = distance(np.arange(360)[:, None], told).min(axis=1) <= REACH
    assert np.array_equal(weight < 0.5, reached)
    # all that is left of the prior is nothing: the labels alone, as if it had never spoken
    assert np.abs(barely - never)[:, reached].max() < 1e-5
    for weaker, stronger in ((never, usual), (usual, for_ever)):
        assert np.abs(weaker - stronger).max() > 1e-4
    # what the features do not tell of the prior's scores is added: all of it for ever, in part for a while
    part = half._prior_weight()
    assert (part < 1).any()
    np.testing.assert_allclose(usual - never, part * (for_ever - never), atol=1e-5)
    W, _ = method.solution()
    H, B = method.inputs.codes(everything.X)
    assert np.array_equal(B, said)
    untold = said - H.astype(np.float64) @ W[:, 360:] / SCALE
    np.testing.assert_allclose(for_ever - never, untold, atol=1e-5)


def test_the_weight_of_the_prior_falls_with_the_frames_taught_nearby(X: NDArray[np.float32]) -> None:
    lesson = Phase(X[:30], np.full((30, 1), 358.0), np.array([358]))
    weight = taught([lesson], prior_frames=30.0)._prior_weight()
    around = distance(np.arange(360), 358.0) <= REACH
    assert weight[around] == pytest.approx(0.5)
    assert weight[~around] == pytest.approx(1.0)


@given(st.sets(st.integers(0, 359), max_size=30), st.integers(0, 20))
def test_one_may_answer_at_and_between_taught_directions(taught_at: set[int], reach: int) -> None:
    counts = np.zeros(360, np.int64)
    counts[list(taught_at)] = 1
    expected = set(taught_at)
    for start in taught_at:
        for gap in range(1, 2 * reach + 2):  # surroundings of `reach` whole degrees meet
            if (start + gap) % 360 in taught_at:
                expected |= {(start + k) % 360 for k in range(gap)}
    assert set(np.flatnonzero(answerable(counts, float(reach))).tolist()) == expected


def test_only_what_was_taught_is_found(everything: Phase) -> None:
    phases = split(everything.X, everything.azimuth, groups(6))
    method = taught(phases[:1], answers="taught")
    told = phases[0].azimuth[np.isfinite(phases[0].azimuth)]
    assert method.memory()["counts"].sum() == len(told)
    answers = decode(method.posterior(everything.X))
    known = answerable(method.counts, REACH)
    assert known[answers.astype(np.intp)].all()
    assert not known[90:330].any()
    free = taught(phases[:1], answers="anywhere")
    scored = free.posterior(everything.X)
    assert (method.posterior(everything.X)[:, ~known] < -1).all()
    assert np.array_equal(method.posterior(everything.X)[:, known], scored[:, known])


def test_simulated_frames_keep_the_other_directions(prior: Prior, X: NDArray[np.float32]) -> None:
    """What the prior says of its own frames changes less by a lesson where they count."""
    lesson = Phase(X[100:140], np.full((40, 1), 90.0), np.array([90]))
    expected = scores(prior.logits(X[:40]))

    def changed(simulated: int) -> float:
        method = taught([lesson], simulated=simulated, answers="anywhere", n_features=300)
        away = distance(np.arange(360), 90.0) > 30
        return float(np.abs(method.posterior(X[:40]) - expected)[:, away].mean())

    assert changed(20) < changed(1) < changed(0)
    with_them, without = (taught([lesson], simulated=n).memory() for n in (1, 0))
    assert_same(with_them, without)  # nobody's data: not part of the memory


def test_it_learns(everything: Phase) -> None:
    options: dict[str, Any] = {"n_features": 400, "answers": "anywhere", "ridge": 0.05, "prior_frames": 0.0}
    one = np.isnan(everything.azimuth[:, 1])
    elsewhere = replace(everything, azimuth=wrap(everything.azimuth + 90.0))  # where nothing tells it yet
    before, after = (
        distance(decode(taught(phases, **options).posterior(everything.X[one])), elsewhere.azimuth[one, 0])
        for phases in ([], [elsewhere])
    )
    assert (before <= 5).mean() < 0.1
    assert (after <= 5).mean() > 0.9


# ---- without a prior


def test_without_a_prior_the_scaled_features_are_all(everything: Phase) -> None:
    method = taught([everything], prior="none")
    assert method.prior is None
    assert method.prior_frames == 0
    H = method.inputs.features.codes(TASK.scale(everything.X)).astype(np.int64)
    assert np.array_equal(method.memory()["G"], H.T @ H)
    assert method.memory()["Q"].shape == (60, 360)
    unknown = replace(TASK, array=None, gcc=None)
    assert_same(method.memory(), taught([everything], unknown).memory())  # nobody knows the array
    scaled = taught([everything], replace(TASK, scaling="min-max"), prior="none")
    assert not np.array_equal(scaled.memory()["G"], method.memory()["G"])
    behind = [taught([everything], replace(TASK, scaling=s)).memory() for s in ("frame", "min-max")]
    assert_same(*behind)  # a prior scales by itself


def test_a_prior_from_a_file(everything: Phase, found: Path, prior: Prior, tmp_path: Path) -> None:
    assert_same(taught([everything], prior=str(found)).memory(), taught([everything]).memory())
    with pytest.raises(TytoError, match=r"mine\.safetensors does not fit .* of mine in the bands"):
        Tyto(replace(TASK, gcc=replace(GCC, max_lag=2)), **SMALL, prior=str(found))
    with pytest.raises(TytoError, match="does not fit these features"):
        Tyto(replace(TASK, gcc=None), **SMALL, prior=str(found))
    with pytest.raises(TytoError, match="does not fit these features"):
        Tyto(replace(TASK, n_directions=72), **SMALL, prior=str(found))
    with pytest.raises(PriorError, match="no such file"):
        Tyto(TASK, **SMALL, prior=str(tmp_path / "nowhere"))
    bare = tmp_path / "bare.safetensors"
    replace(prior, frames={}).save(bare)
    without = taught([everything], prior=str(bare))
    assert np.isfinite(without.posterior(everything.X)).all()
    same = taught([everything], simulated=0)
    assert np.array_equal(without.posterior(everything.X), same.posterior(everything.X))


# ---- options


def test_options_change_what_they_say(everything: Phase) -> None:
    usual = taught([everything])
    inputs = usual.inputs.features.n_inputs
    assert inputs == 360 + len(GCC.pairs) * GCC.n_lags
    assert taught([everything], sound=0.0).inputs.features.n_inputs == 360
    changes: list[dict[str, Any]] = [{"sound": 2.0}, {"sound": 0.0}, {"bandwidth": 3.0}]
    for options in changes:
        assert not np.array_equal(taught([everything], **options).memory()["G"], usual.memory()["G"]), options
    wide = taught([everything], sigma=30.0).memory()
    assert np.array_equal(wide["G"], usual.memory()["G"])
    assert wide["y2"][:360].sum() > 2 * usual.memory()["y2"][:360].sum()
    assert np.array_equal(wide["y2"][360:], usual.memory()["y2"][360:])  # the prior says what it says


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"answers": "nowhere"}, "'taught' or 'anywhere'.*'nowhere'"),
        ({"ridge": -1.0}, "ridge must be a number from 0 up"),
        ({"prior_frames": -1.0}, "at least 0.*got -1.0"),
        ({"prior_frames": float("nan")}, "at least 0.*got nan"),
        ({"sound": -0.5}, "at least 0"),
        ({"simulated": -1}, "at least 0"),
        ({"views": 0}, "views .*at least 1"),
        ({"sides": "some"}, "sides must be 'all' or 'one', got 'some'"),
        ({"n_features": 0}, "at least 1"),
        ({"bandwidth": 0.0}, "bandwidth"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TytoError, match=complaint):
        Tyto(TASK, **SMALL | options)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(TypeError, match="prior_frame"):
        Tyto(TASK, prior_frame=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("hole", [np.nan, np.inf])
@pytest.mark.parametrize("learns", [True, False])
def test_frames_with_holes_are_refused_and_change_nothing(
    everything: Phase, learns: bool, hole: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tytoalba.learning.method.BLOCK", 64)  # the hole is in the last of several blocks
    method = taught([everything], learns=learns)
    before = {name: values.copy() for name, values in method.memory().items()}
    X = everything.X.copy()
    X[-1, 7] = hole
    damaged = replace(everything, X=X)
    for asked in (lambda: method.learn(damaged), lambda: method.lesson(damaged), lambda: method.posterior(X)):
        with pytest.raises(TytoError, match="hold NaN or infinity"):
            asked()
    assert_same(method.memory(), before)


@pytest.mark.parametrize("sigma", [0.0, -8.0, float("nan")])
def test_a_width_of_labels_that_makes_no_sense_is_refused(everything: Phase, sigma: float) -> None:
    with pytest.raises(ValueError, match="sigma"):
        taught([everything], sigma=sigma)


# ---- seen from every side


def test_what_is_learned_here_is_known_in_the_mirror(everything: Phase) -> None:
    (_, mirror, *_) = symmetries(TASK.array) if TASK.array else ()
    assert TASK.gcc is not None
    order = mirror.order(TASK.gcc)
    assert mirror.mirrored  # what comes second undoes itself: both sides are equal
    method = taught([everything], views=2, sides="all", answers="anywhere", prior_frames=0)
    plain = method.posterior(everything.X)
    mirrored = method.posterior(everything.X[:, order])
    assert np.allclose(mirror.back(mirrored), plain, atol=1e-5)
    assert method.memory()["n"] == 2 * len(everything)


@pytest.mark.parametrize("array", ["linear-4", "even"])
def test_a_line_is_taught_at_a_direction_and_its_image_alike(array: str) -> None:
    """Told each in turn, it would believe in half of each: less in what it was taught than in the rest."""
    mics = load_array("linear-4")
    if array == "even":  # symmetric beside that: left and right can be told apart, and mirrored
        mics = replace(
            mics, name="even", positions=tuple((0.0, 0.05 * k, 0.0) for k in (1.5, 0.5, -0.5, -1.5))
        )
    gcc = prior_gcc(mics)
    task = Task(gcc.n_features, seed=4, array=mics, gcc=gcc)
    X = np.random.default_rng(2).uniform(-1, 1, (20, gcc.n_features)).astype(np.float32)
    front = np.random.default_rng(3).uniform(-80, 80, (20, 2)).round()
    front[::3, 1] = np.nan
    options = {"views": 2, "sides": "all", "prior": "none"}
    one, other = (taught([Phase(X, a, np.arange(360))], task, **options) for a in (front, 180.0 - front))
    assert_same(one.memory(), other.memory())
    assert np.array_equal(one.counts, np.roll(one.counts[::-1], 181))  # 30 is 150
    assert one.counts.sum() == 2 * np.isfinite(front).sum()
    answers = one.posterior(X)
    np.testing.assert_allclose(answers, np.roll(answers[:, ::-1], 181, axis=1), atol=1e-6)
    assert one.n_views == (1 if array == "linear-4" else 2)
    lesson = one.lesson(Phase(X, front, np.arange(360)))
    assert set(lesson.Y.max(axis=1)) == {SCALE}  # all of it, at both


def test_more_views_than_there_are_do_no_harm(everything: Phase) -> None:
    assert_same(taught([everything], views=99).memory(), taught([everything], views=99).memory())
    with pytest.raises(TytoError, match="views"):
        Tyto(TASK, views=0)


def test_a_frame_is_learned_from_the_side_that_it_draws(everything: Phase) -> None:
    views = views_of(TASK)[:2]
    side = own_side(everything.X, 2)
    assert 0.3 < side.mean() < 0.7
    assert np.array_equal(own_side(everything.X[::-1].copy(), 2), side[::-1])
    parts = [
        Phase(
            everything.X[side == k][:, order],
            view.azimuth(everything.azimuth[side == k]),
            everything.directions,
        )
        for k, (view, order) in enumerate(views)
    ]
    method = taught([everything], views=2, sides="one")
    one = method.memory()
    expected = taught(parts).memory()
    assert np.array_equal(method.turned(everything.X)[side == 1], parts[1].X)
    assert np.array_equal(method.turned(everything.X)[side == 0], parts[0].X)
    assert np.array_equal(taught(parts, sides="all").turned(everything.X), everything.X)
    for name in ("G", "Q", "n"):
        assert np.array_equal(one[name], expected[name]), name
    sides = own_side(np.random.default_rng(0).standard_normal((3000, 9)).astype(np.float32), 3)
    assert np.bincount(sides).min() > 900


# ---- lessons: what can be taken away without its frames


@pytest.mark.parametrize(
    "options",
    [{}, {"views": 3}, {"views": 3, "sides": "all"}, {"prior": "none"}, {"prior_frames": 0.0, "sound": 0.0}],
)
def test_a_lesson_is_what_its_phase_teaches(everything: Phase, options: dict[str, Any]) -> None:
    whole, method = taught([everything], **options), Tyto(TASK, **SMALL | options)
    lesson = method.lesson(everything)
    assert len(lesson.H) == len(lesson.Y) == method.n_views * len(everything)
    assert [str(values.dtype) for values in lesson] == ["int8", "int8", "int64"]
    fresh = method.memory()
    method.add(lesson)
    assert_same(method.memory(), whole.memory())
    assert np.array_equal(method.counts, whole.counts)
    assert method.n_frames == whole.n_frames == len(everything)
    assert np.array_equal(method.posterior(everything.X[:5]), whole.posterior(everything.X[:5]))
    method.remove(lesson)
    assert_same(method.memory(), fresh)


@given(cuts=st.lists(st.integers(0, 60), max_size=3), order=st.permutations(range(4)), data=st.data())
@settings(max_examples=6, deadline=None)
def test_lessons_come_and_go_in_any_order(
    everything: Phase, cuts: list[int], order: list[int], data: st.DataObject
) -> None:
    """As rows or as sums: those that stay are all that is left."""
    ends = sorted([*cuts, *[60] * (4 - len(cuts))])
    phases = [rows_of(everything, slice(a, b)) for a, b in zip([0, *ends], ends, strict=False)]
    method, left = Tyto(TASK, **SMALL | {"n_features": 20}), Tyto(TASK, **SMALL | {"n_features": 20})
    lessons = [method.lesson(phase) for phase in phases]
    for k in order:
        method.add(lessons[k])
    gone = data.draw(st.sets(st.integers(0, 3)))
    for k in gone:
        method.remove(lessons[k] if data.draw(st.booleans()) else method.sums(lessons[k]))
    for k in {0, 1, 2, 3} - gone:
        left.add(lessons[k])
    assert_same(method.memory(), left.memory())


def test_merged_is_as_learned_together(everything: Phase) -> None:
    a, b = (taught([rows_of(everything, rows)]) for rows in (slice(70), slice(70, None)))
    before = b.memory()
    a.merge(b)
    assert_same(a.memory(), taught([everything]).memory())
    assert_same(b.memory(), before)
    a.check()


def test_lessons_that_do_not_fit_are_refused(everything: Phase) -> None:
    few = rows_of(everything, slice(20))
    method = taught([few])
    before = method.memory()
    lesson, sums = method.lesson(few), method.sums(method.lesson(few))
    elsewhere = method.lesson(replace(few, azimuth=(few.azimuth + 90) % 360))
    for wrong in (elsewhere, method.sums(elsewhere)):
        with pytest.raises(TytoError, match="not taught so often"):
            method.remove(wrong)
    moved = lesson._replace(H=lesson.H[::-1].copy())  # the same frames at each other's places
    for more in (lesson._replace(H=np.tile(lesson.H, (2, 1)), Y=np.tile(lesson.Y, (2, 1))), moved):
        with pytest.raises(TytoError, match="learned here"):
            method.remove(more)
    with pytest.raises(TytoError, match="differ in their seed"):
        method.merge(Tyto(replace(TASK, seed=5), **SMALL))
    with pytest.raises(TytoError, match="differ in their prior"):
        method.merge(Tyto(TASK, **SMALL, prior="none"))
    with pytest.raises(TytoError, match="differ in"):
        method.merge(Tyto(TASK, **SMALL | {"n_features": 50}))
    assert_same(method.memory(), before)
    method.remove(sums)
    assert not method.memory()["G"].any()


def test_kept_lessons_are_read_back(everything: Phase) -> None:
    method = Tyto(TASK, **SMALL)
    lesson = method.lesson(rows_of(everything, slice(20)))
    again = method.read_lesson(lesson._asdict())
    assert_same(again._asdict(), lesson._asdict())
    sums = method.sums(lesson)
    memory = sums.head.memory() | {"counts": sums.counts}
    assert_same(method.read_sums(memory).head.memory(), sums.head.memory())
    low, negative = lesson.H.copy(), lesson.Y.copy()
    low[-1, -1], negative[-1, -1] = -128, -1
    wrong: list[dict[str, Any]] = [
        {"H": low},
        {"Y": negative},
        {"H": lesson.H[:-1]},
        {"H": lesson.H[:, :-1]},
        {"H": lesson.H.astype(np.int16)},
        {"Y": lesson.Y.view(np.uint8)},
        {"Y": lesson.Y[:, 1:]},
        {"counts": lesson.counts[:-1]},
        {"counts": lesson.counts - 1},
    ]
    for change in wrong:
        with pytest.raises(TytoError):
            method.read_lesson(lesson._asdict() | change)
    for change in ({"G": -memory["G"]}, {"n": -memory["n"]}, {"Q": memory["Q"][1:]}, {"counts": memory["n"]}):
        with pytest.raises(TytoError):
            method.read_sums(memory | change)


def test_sums_are_checked(everything: Phase) -> None:
    method = taught([everything], views=2, sides="all")
    method.check()
    memory = method.memory()
    for name, value, complaint in (
        ("n", memory["n"] + 1, "no whole number of frames of 2 views"),
        ("n", memory["n"] * 0, "belong to no data"),
        ("G", memory["G"] * 2**30, "belong to no data"),
    ):
        method.restore(memory | {name: value})
        with pytest.raises(TytoError, match=complaint):
            method.check()


def test_the_solution_is_all_that_answers_need(prior: Prior, everything: Phase) -> None:
    method = taught([everything], answers="anywhere")
    W, weight = method.solution()
    H, B = method.inputs.codes(everything.X)
    found = H / 127 @ W
    expected = found[:, :360] + weight * (B - found[:, 360:])
    assert method.posterior(everything.X) == pytest.approx(expected, abs=1e-5)
    assert np.array_equal(B, scores(prior.logits(everything.X)))


# ---- what the random features look at


@pytest.mark.parametrize("options", [{}, {"sound": 0.0}, {"sound": 2.5}, {"prior": "none"}])
def test_inputs_are_the_same_in_numpy_and_torch(X: NDArray[np.float32], options: dict[str, Any]) -> None:
    inputs = Tyto(TASK, **SMALL | options).inputs
    H, B = inputs.codes(X[:9])
    assert (H.shape, H.dtype) == ((9, 60), np.dtype(np.int8))
    there, said = inputs.codes(torch.tensor(X[:9]))
    assert np.array_equal(there.numpy(), H)
    assert (B is None) == (said is None) == (inputs.prior is None)
    assert B is None or np.array_equal(said.numpy(), B)
    rows = [inputs.codes(X[k : k + 1])[0] for k in range(9)]
    assert np.array_equal(np.concatenate(rows), H)


def test_a_prior_that_is_given_must_fit(prior: Prior) -> None:
    assert fitting_prior(TASK, prior) is prior
    assert fitting_prior(TASK, "none") is None
    assert fitting_prior(replace(TASK, array=None), "auto") is None
    assert fitting_prior(replace(TASK, array=None), prior) is prior  # its features are what counts
    with pytest.raises(TytoError, match="the prior does not fit these features: it takes GCC-PHAT of mine"):
        fitting_prior(replace(TASK, gcc=replace(GCC, max_lag=2)), prior)
