"""Private models: their promise, that all else in them is public, and what they are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.localizers import ARRAY, closed, features, opened, phase, prior, small_state
from tests.helpers.releases import off_by, simulate_nothing
from tytoalba.errors import FileError, TytoError
from tytoalba.localizer import worth
from tytoalba.localizer.budget import needed_noise
from tytoalba.localizer.localizer import Localizer
from tytoalba.localizer.model import Model
from tytoalba.localizer.noise import Source
from tytoalba.localizer.offsets import BOUND, MEAN, STEPS, Offsets, moved, offset_curve
from tytoalba.localizer.release import LESSONS_OF_A_PERSON, UNITS, private_model, sums_of
from tytoalba.localizer.state import Kept, State
from tytoalba.signal.angles import decode

pytest.importorskip("dp_accounting")

OFF = np.array([-2.9, -0.3, 2.5])
"""A device that is 8 % wider than drawn and turned by three degrees."""


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate_nothing(monkeypatch)


def seeded(seed: int) -> Source:
    return np.random.default_rng(seed).bytes


def device(n_lessons: int, coefficients: NDArray[np.floating] = OFF) -> Localizer:
    return Localizer(replace(small_state(), release=off_by(coefficients, n_lessons)))


def offset_of(localizer: Localizer, epsilon: float = 3.0, **how: Any) -> NDArray[np.float32]:
    offset = private_model(localizer, epsilon, **how).model.offset
    assert offset is not None
    return offset


# ---- the promise ----


def test_the_noise_is_on_the_sums_and_of_that_size(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[NDArray[np.int64], int]] = []
    real = worth.estimate

    def noted(sums: NDArray[np.int64], sigma: int, unit: str) -> worth.Estimate:
        seen.append((sums, sigma))
        return real(sums, sigma, unit)

    monkeypatch.setattr(worth, "estimate", noted)
    monkeypatch.setattr(worth, "judged", lambda _found, _prior: (np.zeros(3), None))
    localizer = device(20)
    assert localizer.state.release
    for _ in range(40):
        private_model(localizer, 2.0)
    noise = np.array([sums - localizer.state.release.lessons for sums, _ in seen])
    (sigma,) = {sigma for _, sigma in seen}
    assert needed_noise(2.0, 1e-6) * BOUND <= sigma < needed_noise(2.0, 1e-6) * BOUND + 1
    assert noise.std() == pytest.approx(sigma, rel=0.15)
    assert len(np.unique(noise)) > 300  # none is used twice


def test_each_unit_is_bounded_when_one_more_is_taught() -> None:
    state = small_state(n_features=2)
    for k in range(4):
        state.teach(phase(k, 3), Kept(["ann", "bob"][k % 2], (1.0,), 0) if k != 3 else None)
    for unit in UNITS:
        (before, bound), more = sums_of(state, unit), state.copy()
        if unit == "frame":
            more.teach(phase(9, 1))
        elif unit == "lesson":
            more.teach(phase(9, 12))
        else:
            for k in (9, 10, 11, 12, 13):
                more.teach(phase(k, 1), Kept("carol", (1.0,), 0))
        after, same = sums_of(more, unit)
        assert same == bound
        assert np.linalg.norm((after - before).astype(float)) <= bound


def test_a_person_counts_no_more_than_a_few_lessons_and_the_unnamed_are_one_person() -> None:
    many = off_by(np.array([12.0, 0.0, 0.0]), 40)
    state = replace(small_state(), release=many)
    sums, bound = sums_of(state, "person")
    assert bound == LESSONS_OF_A_PERSON * BOUND
    assert 0.99 * bound < np.linalg.norm(sums.astype(float)) <= bound
    assert np.linalg.norm(many.lessons.astype(float)) > 5 * bound
    named = {f"k{k}": Kept(f"p{k}", (1.0,), 0, release=off_by(OFF, 2)) for k in range(20)}
    total = Offsets.none()
    for kept in named.values():
        assert kept.release
        total = total.plus(kept.release)
    spelt = ("Zo\u00eb", "Zoe\u0308", " zo\u00eb", "ZO\u00cb")  # one person, who would count as four
    one = {f"k{k}": Kept(spelt[k % 4], (1.0,), 0, release=off_by(OFF, 2)) for k in range(20)}
    assert (
        np.linalg.norm(sums_of(replace(state, release=total, kept=one), "person")[0].astype(float)) <= bound
    )
    sums, _ = sums_of(replace(state, release=total, kept=named), "person")
    assert np.array_equal(sums, total.lessons)  # twenty people of two lessons each: nothing is cut


# ---- all else is public ----


def test_files_of_states_that_differ_by_a_lesson_differ_by_the_noisy_offset_alone() -> None:
    one, two = device(60), device(60)
    two.state.teach(phase(1, 7), Kept("ann", (38.0,), 5))
    files = [private_model(one).model.to_bytes(), private_model(two).model.to_bytes()]
    (header, arrays), (other_header, other_arrays) = (opened(data) for data in files)
    assert {k: v for k, v in header.items() if k != "digest"} == {
        k: v for k, v in other_header.items() if k != "digest"
    }
    differ = {name for name in arrays if not np.array_equal(arrays[name], other_arrays[name])}
    assert differ == {"offset"}


def test_nothing_in_the_file_depends_on_the_secret_seed_or_on_how_much_was_taught() -> None:
    plain = private_model(Localizer(small_state()), source=seeded(3)).model
    state = small_state(seed=77)
    state.teach(phase(2, 9))
    state.release = Offsets.none()
    assert private_model(Localizer(state), source=seeded(3)).model.to_bytes() == plain.to_bytes()
    assert (plain.n_frames, plain.options["seed"], np.abs(plain.W).max()) == (0, 0, 0)


def test_the_offset_follows_from_three_numbers() -> None:
    offset = private_model(device(300)).model.offset
    assert offset is not None
    basis = np.stack([offset_curve(row) for row in np.eye(3)], axis=1)
    rest = offset - basis @ np.linalg.lstsq(basis, offset, rcond=None)[0]
    assert np.abs(rest).max() < 1e-5


# ---- worth ----


def test_a_device_that_is_off_is_put_right_from_enough_lessons_on() -> None:
    release = private_model(device(300), source=seeded(1))
    offset = release.model.offset
    assert offset is not None
    assert np.abs(offset - offset_curve(OFF)).max() < 1.5
    assert release.worth.is_better
    assert release.worth.low > 0
    assert release.worth.prior < release.worth.release <= release.worth.without_noise + 0.5


def test_few_lessons_give_the_prior_and_say_so() -> None:
    for n in (0, 3):
        release = private_model(device(n), source=seeded(2))
        assert not release.worth.is_better
        assert release.worth.release == release.worth.prior
        assert not np.any(release.model.offset)


def test_a_device_as_drawn_loses_little() -> None:
    """Of many releases of a device that is exactly as drawn, hardly any is half a point below the prior."""
    maps, azimuth = worth.simulated(prior())
    before = worth._acc(ARRAY, decode(maps), azimuth)
    cost = []
    for n in (20, 100):
        localizer = device(n, np.zeros(3))
        for seed in range(6):
            offset = offset_of(localizer, source=seeded(100 * n + seed))
            after = decode(moved(maps, offset))
            cost.append(before - worth._acc(ARRAY, after, azimuth))
    assert np.mean(np.array(cost) > 0.5) <= 0.15


def test_smaller_epsilon_tells_less() -> None:
    error = []
    for epsilon in (0.3, 10.0):
        found = [offset_of(device(200), epsilon, source=seeded(k)) for k in range(3)]
        error.append(np.mean([np.abs(f - offset_curve(OFF)).mean() for f in found]))
    assert error[1] < 0.5 * error[0]


# ---- models ----


def test_a_private_model_locates_with_directions_put_right() -> None:
    state = small_state()
    model = private_model(Localizer(replace(state, release=off_by(np.array([5.0, 0, 0]), 400)))).model
    again = Model.from_bytes(model.to_bytes())
    assert again.private == model.private
    X = features(4)
    untaught = Localizer(small_state(views=1)).model
    raw = Model.from_bytes(untaught.to_bytes())
    assert raw.offset is None
    assert raw.private is None
    plain = replace(again, offset=None)
    assert again.offset is not None
    assert np.array_equal(again.scores(X), moved(plain.scores(X), again.offset))
    scores = plain.scores(X)
    assert np.array_equal(again.lone_waves(X, scores), moved(plain.lone_waves(X, scores), again.offset))
    assert Localizer(again).n_frames == 0


def test_older_programs_stop_at_a_model_with_an_offset_and_read_one_without() -> None:
    model = private_model(device(50)).model
    assert opened(model.to_bytes())[0]["version"] == 2
    assert opened(small_state().model().to_bytes())[0]["version"] == 1


@pytest.mark.parametrize(
    ("entries", "arrays"),
    [
        ({"private": {"unit": "lesson"}}, {}),
        ({"private": "yes"}, {}),
        ({"private": {**dict.fromkeys(("unit", "epsilon", "delta", "noise", "features"), 1), "x": [1]}}, {}),
        ({}, {"offset": np.zeros(3, np.float32)}),
        ({}, {"offset": np.zeros(360, np.float64)}),
        ({}, {"offset": np.full(360, np.nan, np.float32)}),
        ({}, {"offset": np.full(360, 90, np.float32)}),
    ],
)
def test_altered_private_models_are_refused(entries: dict[str, Any], arrays: dict[str, Any]) -> None:
    header, own = opened(private_model(device(5)).model.to_bytes())
    with pytest.raises(FileError, match="damaged"):
        Model.from_bytes(closed(header | entries, own | arrays))


def test_states_of_before_have_no_sums_for_it() -> None:
    header, arrays = opened(small_state().to_bytes())
    del header["release"]
    old = State.from_bytes(closed(header, {k: v for k, v in arrays.items() if not k.startswith("release")}))
    assert old.release is None
    for unit in ("lesson", "person"):
        with pytest.raises(TytoError, match=r"made before.*--unit frame can be released"):
            private_model(Localizer(old), unit=unit)
    model = private_model(Localizer(old), unit="frame").model
    assert model.private
    assert model.private["unit"] == "frame"


def test_a_release_of_such_a_state_does_not_tell_its_seed() -> None:
    """The attack: how much noise there is was written down, and how much is needed depends on the seed."""
    states = [replace(small_state(seed=seed, n_features=60), release=None) for seed in (1, 2)]
    headers = [opened(private_model(Localizer(s), unit="frame").model.to_bytes())[0] for s in states]
    assert headers[0]["private"] == headers[1]["private"]
    assert headers[0]["private"]["noise"] == needed_noise(3.0, 1e-6)


def test_other_units_are_refused() -> None:
    with pytest.raises(TytoError, match="unit must be one of frame, lesson, person"):
        private_model(device(1), unit="house")  # type: ignore[arg-type]


def test_noise_beyond_what_can_be_drawn_is_refused_in_words() -> None:
    with pytest.raises(TytoError, match=r"more noise than can be drawn for the unit person.*larger epsilon"):
        private_model(device(1), 0.01, unit="person")
    assert private_model(device(1), 0.01).model.offset is not None


# ---- sums for releases in states ----


def test_lessons_are_forgotten_in_them_exactly() -> None:
    state = small_state()
    state.teach(phase(0, 3))
    before = state.to_bytes()
    state.teach(phase(1, 12), Kept("ann", (38.0,), 5))
    state.teach(phase(2, 6))
    state = State.from_bytes(state.to_bytes())
    state.forget(phase(2, 6))
    state.forget_kept(lambda kept: kept.who == "ann")
    assert state.to_bytes() == before


def test_merged_ones_add_up_in_any_order_and_are_unknown_beside_unknown_ones() -> None:
    one, two = small_state(), small_state()
    one.teach(phase(0, 3))
    two.teach(phase(1, 4), Kept("ann", (38.0,), 5))
    both, other = one.copy(), two.copy()
    both.merge(two)
    other.merge(one)
    assert both.to_bytes() == other.to_bytes()
    old = replace(two.copy(), release=None, kept={})
    both = one.copy()
    both.merge(old)
    assert both.release is None
    assert State.from_bytes(both.to_bytes()).release is None


@pytest.mark.parametrize(
    "arrays",
    [
        {"release.lessons": np.full(8, 10**7)},
        {"release.frames": np.full(8, 10**9)},
        {"release.lessons": np.zeros(7, np.int64)},
        {"release.lessons": np.zeros(8, np.int32)},
    ],
)
def test_altered_sums_are_refused(arrays: dict[str, Any]) -> None:
    state = small_state()
    state.teach(phase(0, 3), Kept("ann", (1.0,), 5))
    header, own = opened(state.to_bytes())
    with pytest.raises(FileError, match="damaged"):
        State.from_bytes(closed(header, own | arrays))
    with pytest.raises(FileError, match="damaged"):
        State.from_bytes(closed(header | {"release": 2}, own))
    (kept,) = (name for name in own if name.endswith(".release"))
    with pytest.raises(FileError, match="damaged"):
        State.from_bytes(closed(header, {name: v for name, v in own.items() if name != kept}))


def test_what_is_heard_from_the_mirrored_side_does_not_count() -> None:
    """A turned device would seem turned the other way there, and the two would cancel."""
    state = small_state()
    assert state.learner.n_views == 2
    lesson = state.learner.lesson(phase(0, 5))
    plain = state.learner.plain_rows(5)
    assert plain.tolist() == [True] * 5 + [False] * 5
    assert np.array_equal(lesson.Y[plain][:, 0], np.full(5, 127))
    assert len(state.learner.plain_rows(0)) == 0


def test_scales_are_those_of_the_module() -> None:
    one = off_by(np.array([4.0, 0, 0]), 1).lessons
    assert one[0] / (MEAN * STEPS) == pytest.approx(4.0, abs=1.5)
