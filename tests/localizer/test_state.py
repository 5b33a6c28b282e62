"""States: any history of lessons leaves the bytes of the lessons that are left, and files cannot lie.

`python tests/test_state.py` prints the golden values.
"""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.localizers import (
    ARRAY,
    changed,
    closed,
    features,
    opened,
    phase,
    prior,
    small_state,
    with_options,
    written,
)
from tytoalba.errors import FileError, TytoError
from tytoalba.learning.triangles import narrow, packed, unpacked
from tytoalba.learning.tyto import Lesson, Sums
from tytoalba.localizer.model import OPTIONS, Model
from tytoalba.localizer.state import DEFAULTS, Kept, State
from tytoalba.privacy.attacks import leverage, membership
from tytoalba.signal.array import load_array

SIZES = [3, 2, 4, 10, 3]
"""Frames of each lesson; the fourth has more rows than its sums are large."""
KEEP = {2: Kept("ann", (74.0,), 100), 3: Kept("", (111.0, 211.0), 200), 4: Kept("bob", (148.0,), 300)}
GOLDEN = {
    "state": "89ea7964afcf92287a90a6ab97f01f317e8bd5eb0ae965a5b137ba0656041791",
    "state of front end 1": "4c2f91a2272cae53832a9cf014299c71b7bb912f215bb562480f35255b9f1e72",
    "model": "ef18de5a493e5387d4be3c1611501890e4f0af08243e05fc3e85390f87f95804",
}
few = settings(max_examples=7, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def teach(state: State, *numbers: int) -> State:
    for k in numbers:
        state.teach(phase(k, SIZES[k]), KEEP.get(k))
    return state


@cache
def left_by(numbers: frozenset[int]) -> bytes:
    """The bytes of a state that was taught these lessons and no others, in order."""
    return teach(small_state(), *sorted(numbers)).to_bytes()


@pytest.fixture(scope="module")
def data() -> bytes:
    """A state with five lessons, of which three are kept: two as rows, one as sums."""
    return left_by(frozenset(range(5)))


# ---- equalities


def test_lessons_are_not_mirrored_unless_asked_for() -> None:
    """A device that stands a little turned is no mirror image of itself."""
    assert State.new(ARRAY, prior(), seed=1, n_features=8).learner.n_views == 1
    assert State.new(ARRAY, prior(), seed=1, n_features=8, views=2).learner.n_views == 2


def test_what_is_kept_of_a_lesson_is_the_smaller() -> None:
    kept = {k: kept.part for k, kept in zip(KEEP, teach(small_state(), *KEEP).kept.values(), strict=True)}
    assert [type(kept[k]) for k in (2, 3, 4)] == [Lesson, Sums, Lesson]


@given(st.permutations(range(5)))
@few
def test_the_order_of_lessons_does_not_matter(order: list[int]) -> None:
    assert teach(small_state(), *order).to_bytes() == left_by(frozenset(range(5)))


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["recording", "kept", "again"])), max_size=9))
@few
def test_any_history_leaves_what_it_left(steps: list[tuple[int, str]]) -> None:
    """Each step teaches a lesson, or forgets one that is known, by its recording or as it was kept."""
    state, known = small_state(), set[int]()
    for k, how in steps:
        if how == "again":  # written and read in between
            state = State.from_bytes(state.to_bytes())
        if k not in known:
            teach(state, k)
            known.add(k)
            continue
        if how == "kept" and k in KEEP:
            assert len(state.forget_kept(lambda kept, k=k: kept.time == KEEP[k].time)) == 1  # type: ignore[misc]
        else:
            state.forget(phase(k, SIZES[k]))
        known.remove(k)
    assert state.to_bytes() == left_by(frozenset(known))
    assert state.n_frames == sum(SIZES[k] for k in known)


@given(st.lists(st.integers(0, 2), min_size=5, max_size=5), st.permutations(range(3)), st.booleans())
@few
def test_merging_in_any_order_and_grouping(whose: list[int], order: list[int], right: bool) -> None:
    parts = [teach(small_state(), *(k for k in range(5) if whose[k] == p)) for p in order]
    before = [part.to_bytes() for part in parts]
    a, b, c = (part.copy() for part in parts)
    if right:  # a + (b + c)
        b.merge(c)
        a.merge(b)
    else:
        a.merge(b)
        a.merge(c)
    assert a.to_bytes() == left_by(frozenset(range(5)))
    for k in range(5):  # what only one of them knew can be forgotten by the sum
        if whose[k] == order[0]:
            a.forget(phase(k, SIZES[k]))
    assert a.to_bytes() == left_by(frozenset(k for k in range(5) if whose[k] != order[0]))
    assert [part.to_bytes() for part in parts] == before


def test_nothing_merged_with_nothing_is_nothing() -> None:
    state = small_state()
    state.merge(state)
    state.merge(small_state())
    assert state.to_bytes() == left_by(frozenset())
    assert state.forget_kept(lambda _: True) == []


def test_a_file_is_the_state(data: bytes) -> None:
    state = State.from_bytes(data)
    assert state.to_bytes() == data
    assert state.n_frames == sum(SIZES)
    assert {(k.who, k.azimuth, k.time) for k in state.kept.values()} == {
        (k.who, k.azimuth, k.time) for k in KEEP.values()
    }
    state.forget(phase(1, SIZES[1]))
    state.teach(phase(1, SIZES[1]))
    assert state.to_bytes() == data
    names = [name for name, _, purpose in state.inventory() if purpose]
    assert {"G", "Q", "y2", "n", "counts"} <= set(names)
    assert sum(name.startswith("kept.") for name in names) == 4 + 6 + 4
    assert names == sorted(opened(data)[1])


def test_a_copy_is_independent() -> None:
    state = teach(small_state(), 0)
    before, other = state.to_bytes(), state.copy()
    teach(other, 1, 2)
    other.forget(phase(0, SIZES[0]))
    assert state.to_bytes() == before
    assert teach(small_state(), 1, 2).to_bytes() == other.to_bytes()


def test_a_lesson_is_known_by_frames_place_and_seed() -> None:
    first, second = (state.learner.lesson(phase(0)) for state in (small_state(), small_state()))
    state = small_state()
    assert state.name(first) == state.name(second)
    elsewhere = state.learner.lesson(replace(phase(0), azimuth=phase(0).azimuth + 1))
    assert len({state.name(first), state.name(elsewhere), small_state(seed=6).name(first)}) == 3
    # labels are rounded: just beside the middle of two directions they are the same, the counts are not
    sides = [replace(phase(0), azimuth=np.full((3, 1), a)) for a in (90.4999, 90.5001)]
    lessons = [state.learner.lesson(side) for side in sides]
    assert np.array_equal(lessons[0].Y, lessons[1].Y)
    assert not np.array_equal(lessons[0].counts, lessons[1].counts)
    assert state.name(lessons[0]) != state.name(lessons[1])


# ---- refusals


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        (lambda s: s.teach(phase(0, SIZES[0])), "taught already"),
        (lambda s: s.teach(phase(1, 0)), "needs frames, and each of them a source"),
        (lambda s: s.teach(replace(phase(1), azimuth=np.array([[5.0], [np.nan], [5.0]]))), "each of them"),
        (lambda s: s.teach(replace(phase(1), azimuth=np.full((3, 1), np.inf))), "infinite"),
        (lambda s: s.teach(replace(phase(1), X=phase(1).X * np.nan)), "NaN"),
        (lambda s: s.teach(replace(phase(1), X=phase(1).X[:, 1:])), "features must be"),
        (lambda s: s.teach(replace(phase(1), azimuth=phase(1).azimuth[:2])), "needs azimuths"),
        (lambda s: s.forget(phase(1)), "not taught here, or not at this direction"),
        (lambda s: s.forget(phase(0, SIZES[0] - 1)), "another piece of it"),
        (lambda s: s.forget(replace(phase(0), azimuth=phase(0).azimuth + 2)), "not at this direction"),
        (lambda s: s.merge(s), r"both states have the same lessons \(2\)"),
        (lambda s: s.merge(teach(small_state(), 0)), r"both states have the same lessons \(1\)"),
        (lambda s: s.merge(teach(small_state(seed=6), 1)), "differ in their options or seed.*--like"),
        (lambda s: s.merge(teach(small_state(sigma=9.0), 1)), "differ in their options"),
        (lambda s: s.merge(teach(small_state(3), 1)), "differ in their options"),
        (lambda s: s.merge(replace(teach(small_state(), 1), array=ARRAY.rotated(30.0))), "how it is mounted"),
    ],
)
def test_refused_and_unchanged(attempt: Callable[[State], Any], complaint: str) -> None:
    state = teach(small_state(), 0, 2)
    before = state.to_bytes()
    with pytest.raises(TytoError, match=complaint):
        attempt(state)
    assert state.to_bytes() == before


def test_states_behind_other_priors_do_not_merge() -> None:
    """Also where the network is the same and only what stands beside it is another."""
    mean = np.array(prior().constants["logit_mean"])
    others = [
        replace(prior(), constants=prior().constants | {"logit_mean": (mean + 0.5).tolist()}),
        prior(39),
        replace(prior(), weights=prior().weights | {"level": prior().weights["level"] + np.int16(1)}),
    ]
    for other in others:
        state, theirs = teach(small_state(), 0), State.new(ARRAY, other, 5, n_features=2, views=2)
        theirs.teach(phase(1))
        before = state.to_bytes()
        with pytest.raises(TytoError, match="differ in their prior"):
            state.merge(theirs)
        assert state.to_bytes() == before


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"n_feature": 3}, "no option called 'n_feature'; known: n_features"),
        ({"n_features": 0}, "n_features must be from 1 to 50000, got 0"),
        ({"n_features": 10**9}, "n_features must be from 1 to 50000"),
        ({"n_features": 2.0}, "n_features"),
        ({"n_features": True}, "n_features"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"bandwidth": float("nan")}, "bandwidth"),
        ({"alpha": "gcv"}, "alpha"),
        ({"alpha": 0.0}, "alpha"),
        ({"prior_frames": float("inf")}, "prior_frames"),
        ({"views": 0}, "views"),
        ({"sigma": None}, "sigma"),
        ({"expansion": "polynomial"}, "expansion, which must be 'random'"),
        ({"expansion": []}, "expansion"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TytoError, match=complaint):
        small_state(**options)


def test_more_random_features_than_memory_are_refused(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a small file asks for them: an array can be made to have many lags."""
    state = small_state()
    n_inputs = state.learner.inputs.features.n_inputs
    model = state.model().to_bytes()
    monkeypatch.setattr("tytoalba.localizer.model.LARGEST_EXPANSION", 2 * n_inputs)
    assert State.from_bytes(data).to_bytes() == data
    assert Model.from_bytes(model).to_bytes() == model
    with pytest.raises(TytoError, match="n_features must be at most 2 for respeaker-usb-4, got 3"):
        small_state(3)
    monkeypatch.setattr("tytoalba.localizer.model.LARGEST_EXPANSION", 2 * n_inputs - 1)
    for read, content in ((State.from_bytes, data), (Model.from_bytes, model)):
        with pytest.raises(FileError, match="n_features must be at most 1 for respeaker-usb-4, got 2"):
            read(content)


def test_numbers_of_numpy_are_options_like_others() -> None:
    plain = small_state(seed=5, n_features=2, sigma=9.0, bandwidth=2.0)
    numpys: dict[str, Any] = {"n_features": np.int64(2), "sigma": np.float64(9.0)}
    assert small_state(seed=np.int32(5), bandwidth=np.float32(2), **numpys).to_bytes() == plain.to_bytes()
    with pytest.raises(TytoError, match="views must be"):
        small_state(views=np.bool_(True))


def test_every_option_is_in_files_and_has_bounds() -> None:
    assert {*DEFAULTS, "seed"} == {*OPTIONS, "expansion"}
    assert small_state().options == DEFAULTS | {"seed": 5, "n_features": 2, "views": 2}


def test_a_prior_of_other_microphones_is_refused() -> None:
    for array in (load_array("pepper"), replace(ARRAY, sample_rate=48000)):
        with pytest.raises(TytoError, match="the prior is one of respeaker-usb-4, whose microphones"):
            State.new(array, prior(), 5)
    assert State.new(ARRAY.rotated(77.0), prior(), 5, n_features=2).array.yaw == 77


# ---- files


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_flipped_bits_are_noticed(data: bytes, draw: st.DataObject) -> None:
    table = 8 + int.from_bytes(data[:8], "little")
    middle = draw.draw(st.sampled_from([range(16), range(table), range(table, len(data))]))
    position = draw.draw(st.integers(middle.start, middle.stop - 1))
    flipped = bytearray(data)
    flipped[position] ^= 1 << draw.draw(st.integers(0, 7))
    with pytest.raises(FileError, match=r"^this file "):
        State.from_bytes(bytes(flipped))


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_cut_files_are_noticed(data: bytes, draw: st.DataObject) -> None:
    with pytest.raises(FileError):
        State.from_bytes(data[: draw.draw(st.integers(0, len(data) - 1))])
    with pytest.raises(FileError):
        State.from_bytes(data + draw.draw(st.binary(min_size=1, max_size=9)))


def places(header: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in a header; of long lists, the first two."""
    yield path
    if isinstance(header, dict):
        for key in header:
            yield from places(header[key], (*path, key))
    elif isinstance(header, list):
        for k in range(min(2, len(header))):
            yield from places(header[k], (*path, k))


def harmless(state: State) -> None:
    """A state that was read can be used, or says what is wrong."""
    again = State.from_bytes(state.to_bytes())
    assert again.to_bytes() == state.to_bytes()
    try:
        assert np.isfinite(state.model().scores(features(2))).all()
        state.forget_kept(lambda _: True)
    except TytoError as error:
        assert str(error)  # noqa: PT017 - either will do


NUMBERS: list[Any] = [None, True, -1, 0, 3, 2**70, 2.5, -1e300, 1e300]
WRONG = [*NUMBERS, "", "x", "[" * 2000, [], [[1]], {}, {"a": 1}]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_altered_headers_are_refused_or_harmless(data: bytes, draw: st.DataObject) -> None:
    """With a digest that fits: what somebody could send."""
    header, arrays = opened(data)
    path = draw.draw(st.sampled_from([p for p in places(header) if p and p[0] not in ("digest", "format")]))
    inside = header
    for key in path[:-1]:
        inside = inside[key]
    if draw.draw(st.booleans()) or not isinstance(inside, dict):
        inside[path[-1]] = draw.draw(st.sampled_from(WRONG))
    else:
        del inside[path[-1]]
    try:
        state = State.from_bytes(closed({"version": 1} | header, arrays))
    except FileError as error:
        assert str(error).startswith("this file ")  # noqa: PT017 - either will do
    else:
        harmless(state)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_altered_arrays_are_refused_or_harmless(data: bytes, draw: st.DataObject) -> None:
    header, arrays = opened(data)
    name = draw.draw(st.sampled_from(sorted(arrays)))
    values = arrays[name]
    how = draw.draw(st.sampled_from(["value", "type", "shape", "gone", "more"]))
    if how == "value":
        ends = np.iinfo(values.dtype)
        value = draw.draw(st.integers(ends.min, ends.max) | st.sampled_from([ends.min, ends.max, -1, 0, 1]))
        values.reshape(-1)[draw.draw(st.integers(0, values.size - 1))] = value
    elif how == "type":
        arrays[name] = values.astype(draw.draw(st.sampled_from([np.float64, np.int32, np.uint8, np.bool_])))
    elif how == "shape":
        arrays[name] = draw.draw(
            st.sampled_from([values[None], values.reshape(-1)[:-1], values.reshape(-1)[:0]])
        )
    elif how == "gone":
        del arrays[name]
    else:
        arrays["prior.more" if name.startswith("prior") else f"{name}.more"] = values
    try:
        state = State.from_bytes(closed(header, arrays))
    except FileError as error:
        assert str(error).startswith("this file ")  # noqa: PT017 - either will do
    else:
        harmless(state)


def altered(data: bytes, **changes: Any) -> bytes:
    """A state with other arrays (G as functions of the old ones), its digest made to fit."""
    header, arrays = opened(data)
    for name, change in changes.items():
        kind = arrays[name].dtype
        values = change(arrays[name].astype(np.int64) if kind == np.int32 else arrays[name])
        arrays[name] = narrow(values) if kind == np.int32 else values.astype(kind)
    return closed(header, arrays)


def at(position: Any, value: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def change(values: NDArray[Any]) -> NDArray[Any]:
        values[position] = value
        return values

    return change


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n": np.negative}, "belong to no data"),
        ({"n": lambda n: n + 1}, "rows are no whole number of frames of 2 views"),
        ({"n": lambda n: n + 2}, "lessons contradict"),
        ({"n": lambda n: n * 0}, "belong to no data"),
        ({"G": at(0, -1)}, "belong to no data"),  # a negative square
        ({"G": at(0, 127**2 * 1000)}, "belong to no data"),  # larger than so many rows can make it
        ({"G": at(1, 2**40)}, "belong to no data"),  # G_01 above |h_0| |h_1|
        ({"G": at(1, -(2**63))}, "belong to no data"),
        ({"Q": at((0, 0), 2**40)}, "belong to no data"),
        ({"y2": at(5, -3)}, "belong to no data"),
        ({"y2": at(5, 2**50)}, "belong to no data"),
        ({"counts": at(5, -1)}, "'counts' must be 360 whole numbers"),
        ({"counts": lambda c: c * 0}, "lessons contradict"),
        ({"counts": at(5, 2**62)}, "lessons contradict"),
    ],
)
def test_sums_that_no_lessons_can_have_are_refused(
    data: bytes, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(FileError, match=f"^this file is damaged: .*{complaint}"):
        State.from_bytes(altered(data, **changes))


def test_sums_are_written_in_one_way_only(data: bytes) -> None:
    G = opened(data)[1]["G"]
    assert G.dtype == np.int32
    with pytest.raises(FileError, match="written in another way"):
        State.from_bytes(changed(data, {"G": G.astype(np.int64)}))


def test_sums_that_need_eight_bytes_get_them() -> None:
    sums = {"G": np.array([[2**31, 1], [1, 5]]), "Q": np.array([[3]]), "y2": np.array([4]), "n": np.array(9)}
    small = packed(sums)
    assert [small[name].dtype.itemsize for name in ("G", "Q")] == [8, 4]
    assert all(np.array_equal(unpacked(small, 2)[name], values) for name, values in sums.items())


def test_counts_without_lessons_are_refused() -> None:
    with pytest.raises(FileError, match="lessons contradict"):
        State.from_bytes(altered(small_state().to_bytes(), counts=at(7, 1)))


def test_kept_lessons_are_what_they_say(data: bytes) -> None:
    names = {kept.time: name for name, kept in State.from_bytes(data).kept.items()}
    rows, sums = f"kept.{names[100]}", f"kept.{names[200]}"
    for name, change in (
        (f"{rows}.H", at((0, 0), 5)),  # another lesson than its name says
        (f"{rows}.H", at((0, 0), -128)),
        (f"{rows}.H", lambda H: H[:-2]),
        (f"{rows}.Y", at((0, 0), -1)),
        (f"{rows}.counts", lambda c: np.roll(c, 1)),
        (f"{sums}.n", lambda n: n - 2),
        (f"{sums}.counts", lambda c: c + 100),
        (f"{sums}.G", at(0, -1)),
        (f"{sums}.G", lambda G: G[:-1]),
    ):
        with pytest.raises(FileError, match=r"^this file is damaged"):
            State.from_bytes(altered(data, **{name: change}))
    for key, value in (("who", 3), ("time", 2.5), ("time", True), ("azimuth", []), ("azimuth", ["left"])):
        kept = opened(data)[0]["kept"]
        kept[names[100]][key] = value
        with pytest.raises(FileError, match=r"^this file is damaged"):
            State.from_bytes(changed(data, kept=kept))
    with pytest.raises(FileError, match="contradict"):
        State.from_bytes(changed(data, owner=3))
    lessons = opened(data)[0]["lessons"]
    del lessons[names[100]]
    with pytest.raises(FileError, match="lessons contradict"):
        State.from_bytes(changed(data, lessons=lessons | {"0" * 32: SIZES[2]}))


@pytest.mark.parametrize(
    "lessons",
    [{}, {"a": 3.0}, {"a": True, "b": 2}, {"a": -1, "b": 4}, {"a": "3"}, [["a", 3]], {"a": 0, "b": 3}],
)
def test_lessons_that_contradict_the_sums_are_refused(lessons: Any) -> None:
    one = left_by(frozenset({0}))
    assert list(opened(one)[0]["lessons"].values()) == [3]
    with pytest.raises(FileError, match=r"^this file is damaged"):
        State.from_bytes(changed(one, lessons=lessons))


@pytest.mark.parametrize("n_features", [1, 3, 50_000, 10**9, -2, 2.0, True, "2", None])
def test_sizes_that_lie_take_no_memory(data: bytes, n_features: Any) -> None:
    tampered = with_options(data, n_features=n_features)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"^this file is damaged: (n_features must be|its sums are of)"):
            State.from_bytes(tampered)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


def test_newer_files_of_the_same_version_are_read(data: bytes) -> None:
    later = changed(with_options(data, later=2), {"later": np.zeros(3)}, later=[1])
    assert State.from_bytes(later).to_bytes() == data
    with pytest.raises(FileError, match=r"has version 2 .* upgrade"):
        State.from_bytes(changed(data, version=2))
    with pytest.raises(FileError, match="is not a state of tytoalba but tytoalba-model"):
        State.from_bytes(small_state().model().to_bytes())


def test_a_file_for_another_array_is_refused(data: bytes) -> None:
    with pytest.raises(FileError, match="whose microphones are not pepper's"):
        State.from_bytes(changed(data, array=load_array("pepper").to_toml()))
    with pytest.raises(FileError, match="not valid TOML"):
        State.from_bytes(changed(data, array="a = " + "[" * 5000))
    header, arrays = opened(data)
    with pytest.raises(FileError, match=r"^this file is damaged or no file"):
        State.from_bytes(written(json.dumps(header | {"n": float("nan")}), arrays))


# ---- who was there


def test_after_forgetting_nobody_can_tell_who_was_there() -> None:
    """By the leverage under G: members score higher before they are forgotten, and as others do after."""
    learner = small_state(150, views=1).learner
    rng = np.random.default_rng(0)
    H = learner.inputs.features.codes(rng.standard_normal((4000, learner.inputs.features.n_inputs)))
    Y = rng.integers(0, 128, (4000, 720), dtype=np.int8)

    def lesson(rows: slice) -> Lesson:
        counts = np.bincount(rng.integers(0, 360, rows.stop - rows.start), minlength=360)
        return Lesson(H[rows], Y[rows], counts)

    def auc() -> float:
        near = -leverage(learner.memory()["G"], 1.0, H)
        return membership(near[500:1500], near[1500:], n_bootstrap=0).auc

    first, second = lesson(slice(0, 500)), lesson(slice(500, 1500))
    learner.add(first)
    never = learner.memory()
    assert abs(auc() - 0.5) < 0.03
    learner.add(second)
    assert auc() > 0.6
    learner.remove(second)
    assert abs(auc() - 0.5) < 0.03
    for name, values in learner.memory().items():
        assert np.array_equal(values, never[name]), name


# ---- golden values


def golden() -> dict[str, str]:
    """Digests of a small taught state, and of the weights of its model to four decimals."""
    state, old = (teach(small_state(20, frontend=version), *range(5)) for version in (2, 1))
    model = state.model()
    rounded = [np.round(values.astype(np.float64), 4) + 0.0 for values in (model.W, model.weight)]
    weights = b"".join(values.tobytes() for values in rounded)
    found = {"state": state.to_bytes(), "state of front end 1": old.to_bytes(), "model": weights}
    return {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}


def test_golden_values() -> None:
    """The same everywhere and in every version that reads these files."""
    assert golden() == GOLDEN


if __name__ == "__main__":
    for name, digest in golden().items():
        print(f'    "{name}": "{digest}",')
