"""The localizer: it finds, learns, forgets and merges, and every error leaves it as it was."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.localizers import ARRAY, closed, opened, prior
from tests.helpers.waves import plane_wave
from tytoalba import Localizer
from tytoalba.bench.plots import plot_evidence
from tytoalba.data.recording import Recording
from tytoalba.errors import FileError, TytoError, UnknownLessonError
from tytoalba.learning.prior.confidence import usual_confidence
from tytoalba.learning.prior.decisions import Decision, decide
from tytoalba.learning.tyto import Lesson
from tytoalba.localizer.state import DEFAULTS, State
from tytoalba.localizer.stream import Located
from tytoalba.signal.angles import distance, refine
from tytoalba.signal.array import load_array
from tytoalba.signal.audio import frames

LENGTH = ARRAY.frame_length
A, B, C = (plane_wave(ARRAY, azimuth, 0.35, seed) for seed, azimuth in enumerate((40.0, 130.0, 250.0)))
"""Short sounds from three directions: three frames each."""


def new(n_features: int = 30, array: Any = ARRAY, **options: Any) -> Localizer:
    return Localizer.new(array, **{"n_features": n_features, "seed": 0, "prior": prior(), **options})


def chances(found: Located) -> tuple[float, ...]:
    assert found.probability is not None
    return found.probability


def without(*left_out: str) -> bytes:
    """Bytes of one that was taught, as if some lessons had never been.

    A at its place, B kept as ann's, C kept as bob's and later.
    """
    localizer = new()
    if "A" not in left_out:
        localizer.teach(A, 40.0)
    if "B" not in left_out:
        localizer.teach(B, 130.0, who="ann", keep=True, when=1000)
    if "C" not in left_out:
        localizer.teach(C, 250.0, who="bob", keep=True, when=2000)
    return localizer.to_bytes()


@pytest.fixture(scope="module")
def taught_bytes() -> bytes:
    return without()


@pytest.fixture
def localizer(taught_bytes: bytes) -> Localizer:
    return Localizer.from_bytes(taught_bytes)


@pytest.fixture(scope="module")
def fresh() -> Localizer:
    """One that nobody teaches."""
    return new()


def test_it_says_in_a_line_what_it_is(localizer: Localizer) -> None:
    words = f"{localizer.array.name} ({localizer.array.n_mics} microphones, {localizer.array.sample_rate} Hz)"
    assert repr(localizer) == f"<Localizer of {words}, {localizer.n_frames} frames taught>"
    model = Localizer.from_bytes(localizer.model.to_bytes())
    assert repr(model) == f"<Localizer, a model, of {words}, {model.n_frames} frames taught>"


# ---- locating


@pytest.mark.parametrize("name", ["pepper", "respeaker-usb-4", "respeaker-6mic"])
def test_plane_waves_are_found_all_around(name: str) -> None:
    localizer = Localizer.new(name, n_features=30, seed=0)
    for azimuth in range(4, 360, 51):
        found = localizer.locate(plane_wave(localizer.array, azimuth, 0.26))
        assert [f.n_sources for f in found] == [1, 1]
        assert max(distance(f.azimuth[0], azimuth) for f in found) < 3, azimuth
        assert min(chances(f)[0] for f in found) > 0.5


@pytest.mark.parametrize("places", [(0.0, 180.0), (60.0,)])
def test_one_two_or_as_many_as_there_are(fresh: Localizer, places: tuple[float, ...]) -> None:
    sound = plane_wave(ARRAY, places, 0.5)
    assert {f.n_sources for f in fresh.locate(sound, n_sources=1)} == {1}
    both = fresh.locate(sound, n_sources=2)
    assert {f.n_sources for f in both} == {2}
    counted = fresh.locate(sound, n_sources="auto", context=2)
    assert {f.n_sources for f in counted} == {len(places)}
    for f in [*(both if len(places) == 2 else ()), *counted]:
        assert len(chances(f)) == f.n_sources
        for place in places:
            assert min(distance(a, place) for a in f.azimuth) < 6


def test_somebody_whose_direction_is_unsure_is_not_nobody(fresh: Localizer) -> None:
    noise = 0.1 * np.random.default_rng(3).standard_normal((ARRAY.n_mics, 8 * LENGTH)).astype(np.float32)
    noise[:, 6 * LENGTH :] = 0.0
    for options in ({"n_sources": "auto"}, {"at_least": 0.999}, {"taught_only": True}):
        found = fresh.locate(noise, **options)
        assert all(f.unsure == (not f.azimuth) for f in found[:9])
        assert all(f.unsure for f in found[:9]) or options == {"n_sources": "auto"}
        assert not any(f.unsure or f.azimuth for f in found[-2:])
    assert not any(f.unsure for f in fresh.locate(plane_wave(ARRAY, 80.0, 0.6)))


def test_silence_has_no_direction(fresh: Localizer) -> None:
    sound = plane_wave(ARRAY, 80.0, 1.0)
    sound[:, 3 * LENGTH :] *= 1e-5
    for context in (0, 3):
        found = fresh.locate(sound, context=context)
        assert {f.n_sources for f in found[:5]} == {1}
        assert {f.n_sources for f in found[6:]} == {0}
        assert all(distance(f.azimuth[0], 80.0) < 3 for f in found[:5])
    assert [f.azimuth for f in fresh.locate(sound, silence_db=0.0)] == [()] * len(found)
    assert {f.n_sources for f in fresh.locate(np.zeros_like(sound), n_sources="auto")} == {0}


@pytest.mark.parametrize("yaw", [0.0, 77.0])
@pytest.mark.parametrize("name", ["respeaker-usb-4", "linear-4"])
def test_what_was_never_taught_can_be_left_out(name: str, yaw: float) -> None:
    mics = load_array(name).rotated(yaw)
    localizer = Localizer.new(mics, n_features=20, seed=0)
    here, far = yaw + 40.0, yaw - 30.0
    sound, elsewhere = plane_wave(mics, here), plane_wave(mics, far)
    assert {f.n_sources for f in localizer.locate(sound, taught_only=True)} == {0}  # nothing was
    image = 180.0 - 40.0 + yaw if mics.mirror_axis is not None else here
    localizer.teach(plane_wave(mics, here, seed=1), image)  # a line hears the same from there
    for n_sources in (1, "auto"):
        found = localizer.locate(sound, n_sources=n_sources, taught_only=True)
        assert {f.n_sources for f in found} == {1}
        assert max(float(distance(f.azimuth[0], here)) for f in found) < 6
        assert {f.n_sources for f in localizer.locate(elsewhere, n_sources=n_sources, taught_only=True)} == {
            0
        }
    assert {f.n_sources for f in localizer.locate(elsewhere)} == {1}


def test_taught_means_within_ten_degrees(fresh: Localizer, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = np.array([[100.0], [110.0], [110.6], [89.4], [90.0]])
    monkeypatch.setattr(Localizer, "evidence", property(lambda _: np.eye(360, dtype=np.int64)[100]))
    decided = Decision(answers, np.full((5, 1), 0.5))
    monkeypatch.setattr(Localizer, "_decision", lambda *_: decided)
    found = fresh.locate(plane_wave(ARRAY, 0.0, 0.52), taught_only=True)
    assert [f.n_sources for f in found] == [1, 1, 0, 0, 1]


def test_context_is_the_average_over_neighbours(fresh: Localizer) -> None:
    sound = plane_wave(ARRAY, 300.0, 0.9, noise=3.0)
    model = fresh.model
    X = fresh._frontend.features(frames(sound, LENGTH, LENGTH // 2))
    scores = model.scores(X)
    lone = model.lone_waves(X, scores)
    near = [np.abs(np.arange(len(X)) - t) <= 2 for t in range(len(X))]
    averaged = [np.maximum(scores[n].mean(axis=0), lone[n].mean(axis=0)) for n in near]
    expected = [decide(m[None], prior().confidence, 1, n.sum()) for m, n in zip(averaged, near, strict=True)]
    found = fresh.locate(sound, context=2)
    for f, decision, m in zip(found, expected, averaged, strict=True):
        assert distance(f.azimuth[0], refine(m[None], decision.azimuth)[0, 0]) < 0.02  # between the degrees
        assert chances(f)[0] == pytest.approx(decision.probability[0, 0], abs=1e-4)
    assert found != fresh.locate(sound)
    assert fresh.locate(sound, context=100) == fresh.locate(sound, context=len(X) - 1)


def test_a_direction_is_never_360(fresh: Localizer) -> None:
    """The top of the parabola can lie just below it, and is rounded."""
    maps = np.zeros(360, np.float32)
    maps[[359, 0, 1]] = 0.9001, 1.0, 0.9
    assert fresh._mounted(maps[None], np.array([[0.0]])).tolist() == [[0.0]]
    maps[[9, 10, 11]] = 1.5, 2.0, 1.4
    assert fresh._mounted(maps[None], np.array([[10.0]])).tolist() == [[9.95]]
    assert Located(0.0, (), ()).n_sources == 0


# ---- learning


def test_teaching_moves_answers_where_the_device_is_wrong() -> None:
    """Built in 40 degrees askew, and nobody told: taught there, it is right there, and wrong elsewhere."""
    askew = ARRAY.rotated(40.0)
    localizer = new(200, prior_frames=1.0)
    sound = plane_wave(askew, 100.0, 3.0, seed=3)
    before = localizer.locate(sound[:, :8000], context=2)
    assert all(distance(f.azimuth[0], 60.0) < 3 for f in before)
    localizer.teach(sound, 100.0)
    test = plane_wave(askew, 100.0, 0.5, seed=4)
    assert all(distance(f.azimuth[0], 100.0) < 5 for f in localizer.locate(test, context=2))
    elsewhere = plane_wave(askew, 270.0, 0.5, seed=5)
    assert all(distance(f.azimuth[0], 230.0) < 5 for f in localizer.locate(elsewhere, context=2))


def test_how_it_is_mounted_turns_what_is_taught_and_answered() -> None:
    """What an array mounted at 30 degrees learns at 90 is what it would learn at 60 unturned."""
    turned, plain = ARRAY.rotated(30.0), new()
    localizer = new(array=turned)
    sound = plane_wave(turned, 90.0, 0.35)
    localizer.teach(sound, 90.0)
    plain.teach(sound, 60.0)
    assert np.array_equal(localizer.state.learner.memory()["Q"], plain.state.learner.memory()["Q"])
    assert np.flatnonzero(localizer.evidence).tolist() == [90]
    assert np.flatnonzero(plain.evidence).tolist() == [60]
    for turned_one, plain_one in zip(localizer.locate(sound), plain.locate(sound), strict=True):
        assert distance(turned_one.azimuth[0], plain_one.azimuth[0] + 30) < 0.011
        assert distance(turned_one.azimuth[0], 90.0) < 3
    kept = new(array=turned)
    kept.teach(sound, 90.0, keep=True)
    assert kept.forget(azimuth=90.0).n_frames == 3
    with pytest.raises(TytoError, match="differ in their array or how it is mounted"):
        plain.merge(localizer)
    askew = new(array=ARRAY.rotated(12.5))
    assert distance(askew.locate(plane_wave(askew.array, 5.0, 0.3))[0].azimuth[0], 5.0) < 3


def test_microphones_in_another_order_turned_and_shifted_are_the_same_localizer() -> None:
    """All of it in the array's own frame: what it learns, answers, shows and forgets, also from its file."""
    pepper, order, turn = load_array("pepper"), [2, 0, 3, 1], 50.0
    places = pepper.rotated(turn).coordinates[order] + [0.3, -0.2, 1.0]
    mine = replace(pepper, name="mine", positions=tuple(map(tuple, places)))
    plain, other = (Localizer.new(array, n_features=20, seed=0) for array in (pepper, mine))
    sound = plane_wave(pepper, 90.0, 0.35)
    plain.teach(sound, 90.0, keep=True, when=1)
    other.teach(sound[order], 140.0, keep=True, when=1)
    assert np.array_equal(other.state.learner.memory()["Q"], plain.state.learner.memory()["Q"])
    for one in (other, Localizer.from_bytes(other.to_bytes()), Localizer(other.model)):
        for mine_found, found in zip(one.locate(sound[order]), plain.locate(sound), strict=True):
            assert distance(mine_found.azimuth[0], found.azimuth[0] + turn) < 0.011
            assert mine_found.probability == found.probability
    assert np.flatnonzero(other.evidence).tolist() == [140]
    assert {f.n_sources for f in other.locate(sound[order], taught_only=True)} == {1}
    assert other.forget(azimuth=140.0).n_frames == 3
    assert other.to_bytes() == Localizer.new(mine, n_features=20, seed=0).to_bytes()


def test_two_at_once_are_taught_as_two() -> None:
    localizer = new()
    change = localizer.teach(plane_wave(ARRAY, (40.0, 170.0), 0.35), (40.0, 170.0))
    assert change.n_frames == localizer.n_frames == 3
    assert np.flatnonzero(localizer.evidence).tolist() == [40, 170]
    assert Localizer(localizer.model).n_frames == 3


def labelled(sound: Any, azimuth: float, n: int = 3) -> Recording:
    return Recording(
        "r", "s", ARRAY, np.arange(n), np.full((n, 1), azimuth), lambda: sound, LENGTH, LENGTH // 2
    )


def test_recordings_are_learned_as_one_by_one() -> None:
    recordings = [labelled(A, 40.0), labelled(B, 130.0), labelled(C, np.nan)]
    one_by_one, together, backwards, seen = new(), new(), new(), list[tuple[int, int]]()
    for sound, azimuth in ((A, 40.0), (B, 130.0)):
        one_by_one.teach(sound, azimuth)
    change = together.learn(recordings, lambda *at: seen.append(at))
    assert change.n_frames == together.n_frames == 6
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert set(change.lessons) == set(one_by_one.state.lessons)
    backwards.learn(recordings[::-1])
    assert one_by_one.to_bytes() == together.to_bytes() == backwards.to_bytes()
    assert together.forget_recordings(recordings).n_frames == 6
    assert together.to_bytes() == new().to_bytes()


# ---- forgetting


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        ({"audio": A, "azimuth": 40.0}, "A"),
        ({"audio": A.astype(np.float64), "azimuth": 400.0}, "A"),
        ({"audio": B, "azimuth": 130.0}, "B"),
        ({"who": "ann"}, "B"),
        ({"azimuth": 250.4}, "C"),
        ({"azimuth": -110.0}, "C"),
        ({"since": 1500}, "C"),
        ({"since": 2000, "who": "bob", "azimuth": [250.0]}, "C"),
        ({"since": 1000}, "BC"),
    ],
)
def test_forgotten_is_as_never_taught(localizer: Localizer, what: dict[str, Any], gone: str) -> None:
    change = localizer.forget(**what)
    assert (change.n_frames, len(change.lessons)) == (3 * len(gone), len(gone))
    assert localizer.to_bytes() == without(*gone)


@pytest.mark.parametrize("n_features", [1, 30])
def test_what_was_kept_as_sums_is_forgotten_as_well(n_features: int) -> None:
    localizer, sound = new(n_features, views=2), plane_wave(ARRAY, 77.0, 0.6)
    never = localizer.to_bytes()
    localizer.teach(sound, 77.0, who="Zo\u00eb", keep=True)
    (kept,) = localizer.state.kept.values()
    assert isinstance(kept.part, Lesson) == (n_features == 30)
    again = Localizer.from_bytes(localizer.to_bytes())
    for one in (localizer, again):
        one.forget(who="Zoe\u0308")  # as another system spells it
        assert one.to_bytes() == never


def test_what_was_forgotten_does_not_answer(localizer: Localizer) -> None:
    test = plane_wave(ARRAY, 130.0, 0.35, seed=9)
    before = localizer.model.scores(localizer._frontend.lesson(test))
    localizer.forget(who="ann")
    never = Localizer.from_bytes(without("B"))
    assert not np.array_equal(localizer.model.scores(localizer._frontend.lesson(test)), before)
    assert localizer.locate(test) == never.locate(test)


def test_merged_and_forgotten(localizer: Localizer) -> None:
    mine, theirs = Localizer.like(localizer), Localizer.like(localizer)
    mine.teach(A, 40.0)
    theirs.teach(C, 250.0, who="bob", keep=True, when=2000)
    theirs.teach(B, 130.0, who="ann", keep=True, when=1000)
    only_mine = mine.to_bytes()
    change = mine.merge(theirs)
    assert change.n_frames == theirs.n_frames == 6
    assert mine.to_bytes() == localizer.to_bytes()
    mine.forget(since=0)
    assert mine.to_bytes() == only_mine


# ---- errors leave it as it was

LIKE: dict[str, Callable[[], Localizer]] = {
    "same": lambda: Localizer.from_bytes(without("A", "C")),
    "seed": lambda: new(seed=1),
    "options": lambda: new(alpha=0.1),
    "array": lambda: new(array=ARRAY.rotated(5.0)),
    "prior": lambda: new(prior=prior(39)),
    "model": lambda: Localizer(new().model),
}


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        (lambda o: o.teach(A * np.nan, 40.0), "NaN"),
        (lambda o: o.teach(A, 40.0), "taught already"),
        (lambda o: o.teach(B, 130.0), "taught already"),
        (lambda o: o.teach(A, (1.0, 2.0, 3.0)), "one or two sources"),
        (lambda o: o.teach(A, 41.0, who="x" * 201, keep=True), "a name is one line"),
        (lambda o: o.teach(A, 41.0, who="two\nlines", keep=True), "a name is one line"),
        (lambda o: o.teach(A, 41.0, who="\x1b[2J", keep=True), "a name is one line"),
        (lambda o: o.teach(A, 41.0, who="ann"), "a name is written down only with what is kept"),
        (lambda o: o.teach(Path("nowhere.wav"), 40.0), "nowhere.wav"),
        (lambda o: o.learn([labelled(B, 10.0), labelled(A, 40.0)]), "taught already"),
        (lambda o: o.learn([labelled(B, 10.0), labelled(A, 41.0, n=30)]), "cut short"),
        (lambda o: o.learn([labelled(B, 10.0), labelled(B, 10.0)]), "taught already"),
        (lambda o: o.learn([labelled(B, np.nan)]), "nothing to learn: no frame has a source"),
        (lambda o: o.learn([]), "nothing to learn"),
        (lambda o: o.forget(A, 41.0), "not taught here, or not at this direction"),
        (lambda o: o.forget(plane_wave(ARRAY, 1.0, 0.35), 40.0), "not taught here"),
        (lambda o: o.forget(A[:, :-2000], 40.0), "another piece of it"),
        (lambda o: o.forget(A), "say at which azimuth"),
        (lambda o: o.forget(A, 40.0, who="ann"), "nothing else"),
        (lambda o: o.forget(A, 40.0, since=3), "nothing else"),
        (lambda o: o.forget(), "say what to forget"),
        (lambda o: o.forget(who="eve"), r"none of the kept lessons \(2\) is meant"),
        (lambda o: o.forget(who="ann", since=1500), r"none of the kept lessons \(2\)"),
        (lambda o: o.forget(azimuth=40.0), "3 frames were taught there without keeping.*with its recording"),
        (lambda o: o.forget(azimuth=131.0), "; 0 frames"),
        (lambda o: o.forget(azimuth="left"), "azimuth must be degrees"),
        (lambda o: o.forget_recordings([labelled(A, 40.0), labelled(B, 131.0)]), "not taught here"),
        (lambda o: o.merge(LIKE["same"]()), r"both states have the same lessons \(1\)"),
        (lambda o: o.merge(o), r"both states have the same lessons \(3\)"),
        (lambda o: o.merge(LIKE["seed"]()), "differ in their options or seed"),
        (lambda o: o.merge(LIKE["options"]()), "differ in their options or seed"),
        (lambda o: o.merge(LIKE["array"]()), "differ in their array or how it is mounted"),
        (lambda o: o.merge(LIKE["prior"]()), "differ in their prior"),
        (lambda o: o.merge(LIKE["model"]()), "this is a model"),
        (lambda o: o.locate(A, n_sources=4), "n_sources must be 1, 2, 3 or 'auto', got 4"),
        (lambda o: o.locate(A, n_sources="two"), "n_sources must be"),
        (lambda o: Localizer(o.model).locate(A, taught_only=True), "ask the state that it was made from"),
    ],
)
def test_refused_and_unchanged(
    localizer: Localizer, attempt: Callable[[Localizer], Any], complaint: str
) -> None:
    before = localizer.to_bytes()
    with pytest.raises(TytoError, match=complaint):
        attempt(localizer)
    assert localizer.to_bytes() == before
    assert localizer.n_frames == 9


@pytest.mark.parametrize("n_sources", [1, 2, "auto"])
def test_a_line_of_microphones_answers_on_the_side_that_it_faces(n_sources: Any) -> None:
    line = load_array("linear-4").rotated(40.0)
    found = list(Localizer.new(line, n_features=20).locate(plane_wave(line, 160.0, 0.5), n_sources=n_sources))
    assert found
    for frame in found:
        assert distance(frame.azimuth[0], 100.0) <= 5  # the image of 160 at the line from 130 to 310
        assert max(distance(azimuth, 40.0) for azimuth in frame.azimuth) <= 90


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(TytoError, match="no array called 'ear'"):
        Localizer.new("ear")
    with pytest.raises(TytoError, match="whose microphones are not pepper's"):
        new(array=load_array("pepper"))


def test_seeds_are_secret_unless_they_are_told() -> None:
    a, b = (Localizer.new(ARRAY, n_features=2, prior=prior()) for _ in "ab")
    assert a.state.options["seed"] != b.state.options["seed"]
    assert a.state.options == DEFAULTS | {"n_features": 2, "seed": a.state.options["seed"]}
    assert Localizer.like(a).to_bytes() == a.to_bytes()


# ---- models


def test_a_model_answers_as_its_state_and_cannot_learn(localizer: Localizer) -> None:
    model = Localizer.from_bytes(localizer.model.to_bytes())
    assert (localizer.can_learn, model.can_learn) == (True, False)
    sound = plane_wave(ARRAY, (130.0, 300.0), 0.5)
    for n_sources in (1, 2, "auto"):
        assert model.locate(sound, n_sources=n_sources, context=1) == localizer.locate(
            sound, n_sources=n_sources, context=1
        )
    before = model.to_bytes()
    attempts: list[Callable[[], Any]] = [
        lambda: model.teach(A, 40.0),
        lambda: model.learn([labelled(A, 40.0)]),
        lambda: model.forget(who="ann"),
        lambda: model.forget(B, 130.0),
        lambda: model.forget_recordings([labelled(A, 40.0)]),
        lambda: model.merge(localizer),
        lambda: Localizer.like(model),
        lambda: model.owned_by("me"),
    ]
    for attempt in attempts:
        with pytest.raises(TytoError, match="this is a model: it locates and cannot learn"):
            attempt()
    assert model.to_bytes() == before == localizer.model.to_bytes()
    assert (model.n_frames, model.owner) == (9, "")
    assert not model.evidence.any()
    assert model.array == ARRAY
    assert {name for name, *_ in model.inventory() if "." not in name} == {"W", "weight"}


def test_owners_are_written_down(localizer: Localizer, tmp_path: Path) -> None:
    mine = localizer.owned_by("f" * 64)
    assert (localizer.owner, mine.owner) == ("", "f" * 64)
    assert Localizer.from_bytes(mine.to_bytes()).owner == "f" * 64
    mine.forget(who="ann")
    assert mine.owner == "f" * 64
    assert localizer.n_frames == 9
    with pytest.raises(TytoError, match=r"has a ledger.*open_store\(path\)\.edit\(\)"):
        mine.save(tmp_path / "mine")
    mine.owned_by("").save(tmp_path / "mine")
    assert Localizer.load(tmp_path / "mine").owner == ""


def test_what_was_taught_can_be_seen(localizer: Localizer) -> None:
    counts = localizer.evidence
    assert {k: int(counts[k]) for k in np.flatnonzero(counts)} == {40: 3, 130: 3, 250: 3}
    pytest.importorskip("matplotlib")
    figure = plot_evidence(counts, "taught")
    (axes,) = figure.axes
    bars: Any = axes.patches
    assert len(bars) == 72
    heights = np.array([bar.get_height() for bar in bars])
    assert np.flatnonzero(heights).tolist() == [8, 26, 50]
    # the sector of 40 holds the directions 40 to 44: its middle is 42
    assert np.rad2deg(bars[8].get_x() + bars[8].get_width() / 2) == pytest.approx(42.0)
    assert axes.get_title() == "taught"


# ---- files


def test_saved_and_loaded_it_goes_on_the_same(localizer: Localizer, tmp_path: Path) -> None:
    path = tmp_path / "localizer.state"
    localizer.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = Localizer.load(path)
    assert again.to_bytes() == localizer.to_bytes() == path.read_bytes()
    more = plane_wave(ARRAY, 10.0, 0.35, seed=8)
    for one in (localizer, again):
        one.teach(more, 10.0)
        one.forget(A, 40.0)
    assert again.to_bytes() == localizer.to_bytes()
    assert again.locate(B) == localizer.locate(B)
    Localizer(localizer.model).save(tmp_path / "localizer.model")
    assert Localizer.load(tmp_path / "localizer.model").locate(B) == localizer.locate(B)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["localizer.model", "localizer.state"]
    with pytest.raises(TytoError, match="folder"):
        localizer.save(tmp_path / "nowhere" / "localizer.state")


class Trap:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_foreign_files_are_refused_and_never_run(tmp_path: Path, taught_bytes: bytes) -> None:
    sprung = tmp_path / "sprung"
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists()  # the trap works
    sprung.unlink()
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("model", taught_bytes)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / f"pickle{protocol}").write_bytes(pickle.dumps(Trap(sprung), protocol))
    (tmp_path / "empty").touch()
    (tmp_path / "json").write_text(json.dumps({"format": "tytoalba-state"}))
    np.savez(tmp_path / "arrays.npz", G=np.eye(3))
    (tmp_path / "lengthy").write_bytes((2**63).to_bytes(8, "little") + taught_bytes[8:])
    (tmp_path / "double").write_bytes(taught_bytes * 2)
    told, arrays = opened(taught_bytes)
    (tmp_path / "other").write_bytes(closed(told | {"format": "tytoalba-ledger"}, arrays))
    prior().save(tmp_path / "prior")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 14
    for path in [*files, Path("/dev/null")]:
        with pytest.raises(
            FileError, match=f"^{path} (is neither a state nor a model|is damaged|is a device)"
        ):
            Localizer.load(path)
    with pytest.raises(FileError, match="but ledger; `tyto new` makes one"):
        Localizer.load(tmp_path / "other")
    for path, complaint in ((tmp_path, "is a folder"), (tmp_path / "nowhere", "no such file")):
        with pytest.raises(TytoError, match=complaint):
            Localizer.load(path)
    assert not sprung.exists()


def test_a_file_that_lacks_a_calibration_has_the_usual_one() -> None:
    bare = replace(prior(), constants={})
    localizer = new(prior=bare)
    again = Localizer.from_bytes(localizer.to_bytes())
    assert again.model.prior.confidence == usual_confidence()
    for found in again.locate(A, n_sources="auto"):
        assert len(chances(found)) == found.n_sources


def test_it_works_without_torch_and_without_the_extra_for_privacy(tmp_path: Path) -> None:
    code = """
import sys
for name in ("torch", "pyrage", "cryptography", "matplotlib", "sklearn", "h5py", "pyroomacoustics"):
    sys.modules[name] = None
import numpy as np
from tytoalba import Localizer
from tytoalba.localizer.store import has_extra
localizer = Localizer.new("respeaker-usb-4", n_features=20, seed=0)
never = localizer.to_bytes()
noise = np.random.default_rng(0).standard_normal((4, 6000)) * 0.1
localizer.teach(noise, 90.0, who="ann", keep=True)
path = sys.argv[1] + "/localizer"
localizer.save(path)
localizer = Localizer.load(path)
print(len(localizer.locate(noise, n_sources="auto")), localizer.n_frames, has_extra())
Localizer(localizer.model).save(path + ".model")
print(Localizer.load(path + ".model").locate(noise) == localizer.locate(noise))
localizer.forget(who="ann")
print(localizer.to_bytes() == never)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=alone)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "3", "False", "True", "True"]


# ---- states of before


def test_an_old_state_hears_as_it_did_and_says_why_it_may_not_know_a_recording() -> None:
    state = State.new(ARRAY, prior(), 1, n_features=30, frontend=1)
    old, empty = Localizer(state), state.to_bytes()
    assert not old._frontend.gcc.exact
    assert Localizer(State.new(ARRAY, prior(), 1, n_features=30))._frontend.gcc.exact
    old.teach(A, 40.0)
    old.learn([labelled(B, 130.0)])
    assert old.locate(A)[0].n_sources == 1
    assert Localizer.from_bytes(old.to_bytes()).state.frontend == Localizer.like(old).state.frontend == 1
    complaint = (
        "front end 1.*depend on the type of CPU.*forget it there, or teach the lessons that shall stay"
    )
    with pytest.raises(UnknownLessonError, match=complaint):
        old.forget(A, 41.0)
    old.forget_recordings([labelled(B, 130.0)])
    old.forget(A, 40.0)
    assert old.to_bytes() == empty


def test_one_of_several_lessons_is_forgotten_by_its_digest() -> None:
    localizer = Localizer(State.new(ARRAY, prior(), seed=5, n_features=20))
    empty, taught = localizer.to_bytes(), []
    for seed in range(2):
        sound = plane_wave(ARRAY, 40.0, 1.0, seed, 0.03)
        taught.append(localizer.teach(sound, 40.0, who="anna", keep=True).lessons[0])
    assert localizer.forget(lesson=taught[0]).lessons == (taught[0],)
    assert [*localizer.state.lessons] == [taught[1]]
    for lesson in (taught[0], "00", ""):
        with pytest.raises(TytoError, match="none of the kept lessons"):
            localizer.forget(lesson=lesson)
    with pytest.raises(TytoError, match="nothing else"):
        localizer.forget(np.zeros((4, 16000)), 40.0, lesson=taught[1])
    localizer.forget(lesson=taught[1], who="anna")
    assert localizer.to_bytes() == empty
