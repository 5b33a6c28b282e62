"""From scenes to a calibrated prior: frames where they belong, the same from a seed, judged rightly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation import stems as module
from tytoalba.data.simulation.scenes import Scenes, scene_features
from tytoalba.data.simulation.stems import Stems, gather_stems
from tytoalba.data.simulation.voice import SyntheticVoices
from tytoalba.errors import DataError, PriorError
from tytoalba.learning import training as training
from tytoalba.learning.prior import make as schooling
from tytoalba.learning.prior.calibration import Calibration, evidence
from tytoalba.learning.prior.decisions import Blend, candidates
from tytoalba.learning.prior.make import (
    MARGINS,
    WEIGHTS,
    Judgement,
    by_family,
    calibrated,
    joined,
    judge,
    leave_one_out,
    scenes_of,
    school,
    simulate,
)
from tytoalba.learning.prior.prior import Prior, prior_gcc, scores, steering_matrices
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.learning.training import Recipe
from tytoalba.signal.angles import decode, decode_two, distance, encode
from tytoalba.signal.array import load_array
from tytoalba.signal.metrics import match
from tytoalba.signal.symmetry import symmetries

torch = pytest.importorskip("torch")
from tytoalba.data.simulation.mixer import Mixer  # noqa: E402 - needs torch
from tytoalba.learning.prior.network import Steered  # noqa: E402 - needs torch

RESPEAKER = load_array("respeaker-usb-4")
VOICES = (SyntheticVoices(),)
FAMILIES = ("hybrid", "anechoic")
N_SCENES = 20
TINY: dict[str, Any] = {"width": 4, "recipe": Recipe(epochs=2, lr=1e-2, weight_decay=0.0, batch=32)}
ShortScenes = partial(Scenes, seconds=1.2)


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """Scenes of 1.2 s, and few frames that a prior keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schooling, "Scenes", ShortScenes)
        patch.setattr(schooling, "N_KEPT", 300)
        yield


@pytest.fixture(scope="module")
def lessons() -> FeatureSet:
    scenes = ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 0)
    return scene_features(scenes, range(N_SCENES), prior_gcc(RESPEAKER))


class Told:
    """The same frames again and again, as lessons."""

    device = torch.device("cpu")

    def __init__(self, frames: FeatureSet) -> None:
        self.array, self.gcc, self.told = frames.array, frames.gcc, frames
        self.asked: list[int] = []

    def frames(self, n: int) -> Iterator[tuple[Any, Any]]:
        """All of them in two parts, and from the first on again where more are asked for."""
        self.asked.append(n)
        rows = np.resize(np.arange(len(self.told)), n)
        for part in np.array_split(rows, 2):
            azimuth = np.sort(self.told.azimuth[part], axis=1)
            yield torch.tensor(self.told.flat[part]), torch.tensor(azimuth, dtype=torch.float32)


def taught(frames: FeatureSet, **how: Any) -> Prior:
    return school(Told(frames), len(frames), **(TINY | how))


@pytest.fixture(scope="module")
def prior(lessons: FeatureSet) -> Prior:
    return taught(lessons)


def same(a: FeatureSet, b: FeatureSet) -> bool:
    """The same frames, of recordings of the same names."""
    names = [[s.names[k] for k in s.recording] for s in (a, b)]
    return (
        names[0] == names[1]
        and np.array_equal(a.X, b.X)
        and np.array_equal(a.azimuth, b.azimuth, equal_nan=True)
        and np.array_equal(a.frame, b.frame)
    )


# ---- scenes


def test_simulated_scenes_are_those_of_their_seed(lessons: FeatureSet) -> None:
    done: list[tuple[int, int]] = []
    scenes = scenes_of(RESPEAKER, VOICES, families=FAMILIES)
    made = simulate(scenes, 4, on_progress=lambda now, all_: done.append((now, all_)))
    assert done == [(k, 4) for k in (1, 2, 3, 4)]
    assert made.names == tuple(f"scene_{k:06d}" for k in range(4))
    assert made.gcc == prior_gcc(RESPEAKER)
    assert same(made, lessons.select(lessons.recording < 4))
    for other in ({"seed": 1}, {"speakers": "valid"}, {"families": FAMILIES[::-1]}):
        different = simulate(scenes_of(RESPEAKER, VOICES, **({"families": FAMILIES} | other)), 1)
        assert not same(different, made.select(made.recording < 1)), other


def test_families_are_told_apart(lessons: FeatureSet) -> None:
    parts = by_family(lessons, FAMILIES)
    assert list(parts) == list(FAMILIES)
    assert sum(map(len, parts.values())) == len(lessons)
    scenes = ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 0)
    for family, frames in parts.items():
        numbers = {int(frames.names[k].rpartition("_")[2]) for k in frames.recording}
        assert numbers
        assert {scenes.families[k % 2] for k in numbers} == {family}
        assert all(scenes.recording(k).name.startswith(family) for k in sorted(numbers)[:2])


def test_families_that_take_several_turns(lessons: FeatureSet) -> None:
    turns = ("hybrid", "anechoic", "hybrid", "pyroom")
    parts = by_family(lessons, turns)
    assert list(parts) == ["hybrid", "anechoic", "pyroom"]
    assert set(parts["hybrid"].recording % 4) == {0, 2}
    assert set(parts["pyroom"].recording % 4) == {3}
    assert sum(map(len, parts.values())) == len(lessons)


def test_sets_are_joined(lessons: FeatureSet) -> None:
    parts = [lessons.select(lessons.recording == k) for k in (5, 2)]
    both = joined(parts)
    assert same(
        both, lessons.select(np.concatenate([np.flatnonzero(lessons.recording == k) for k in (5, 2)]))
    )
    assert both.names == lessons.names * 2
    renamed = joined([parts[0], replace(parts[1], names=tuple(f"other_{name}" for name in lessons.names))])
    assert {renamed.names[k] for k in renamed.recording} == {"scene_000005", "other_scene_000002"}
    assert both.recording.dtype == np.int32
    assert both.n_sources.tolist() == [n for part in parts for n in part.n_sources]
    narrow = replace(parts[0], azimuth=np.full((len(parts[0]), 1), 50.0))
    mixed = joined([narrow, parts[1]])
    assert mixed.azimuth.shape == (len(both), 2)
    assert (mixed.n_sources[: len(narrow)] == 1).all()
    assert same(joined([lessons]), replace(lessons, azimuth=np.sort(lessons.azimuth, axis=1)))


def test_families_of_joined_sets_are_still_known(lessons: FeatureSet) -> None:
    parts = by_family(lessons, FAMILIES)
    again = by_family(joined(list(parts.values())), FAMILIES)
    for family in FAMILIES:
        assert np.array_equal(again[family].X, parts[family].X)


# ---- learning


def test_a_seed_gives_one_prior(lessons: FeatureSet, prior: Prior) -> None:
    steps: list[tuple[int, int]] = []
    again = taught(lessons, on_progress=lambda now, all_: steps.append((now, all_)))
    assert steps == [(1, 2), (2, 2)]
    assert again.steps == prior.steps
    assert (again.about, again.constants) == (prior.about, prior.constants)
    for name, values in prior.weights.items():
        assert np.array_equal(values, again.weights[name]), name
    for name, kept in prior.frames.items():
        assert np.array_equal(kept, again.frames[name]), name
    other = taught(lessons, seed=1)
    assert not np.array_equal(other.logits(lessons.flat), prior.logits(lessons.flat))


def test_windows_are_learned_from_and_listened_to(lessons: FeatureSet, prior: Prior) -> None:
    assert prior.gcc == lessons.gcc == prior_gcc(RESPEAKER)
    assert lessons.X.shape[1:] == (prior.gcc.n_looks, RESPEAKER.n_pairs, prior.gcc.n_lags)
    untrained = taught(lessons, recipe=Recipe(epochs=0))
    for name in ("hear", "heard"):
        before, after = (of.weights[name] * of.steps[name] for of in (untrained, prior))
        assert np.abs(after - before).max() > 1e-3, name
    other = lessons.flat.copy()
    first = prior.gcc.whole.n_features
    other[:, first:] = np.roll(other[:, first:], 1, axis=0)  # the windows of another frame
    assert not np.array_equal(prior.logits(other), prior.logits(lessons.flat))
    assert np.array_equal(prior.maps(other), prior.maps(lessons.flat))


def test_it_has_learned_something(lessons: FeatureSet, prior: Prior) -> None:
    untrained = taught(lessons, recipe=Recipe(epochs=0))
    assert untrained.about["loss"] is None
    assert prior.about["loss"] > 0

    def error(of: Prior) -> float:
        return float(np.mean((scores(of.logits(lessons.flat)) - encode(lessons.azimuth, 8.0)) ** 2))

    assert error(prior) < error(untrained)


def test_the_prior_says_how_it_was_made(lessons: FeatureSet, prior: Prior) -> None:
    assert prior.about["n_frames"] == len(lessons)
    assert prior.about["recipe"]["epochs"] == 2
    assert prior.about["recipe"]["sigma"] == 5.0
    logits = prior.logits(np.resize(lessons.flat, (schooling.N_KEPT, lessons.gcc.n_features)))
    assert prior.constants["logit_mean"] == pytest.approx(logits.mean(axis=0), rel=1e-3, abs=1e-4)
    assert prior.constants["logit_spread"] == pytest.approx(np.maximum(logits.std(axis=0), 0.1), rel=1e-3)
    kept, sound = prior.simulated_frames()
    assert len(kept) == len(sound) == schooling.N_KEPT


@pytest.mark.parametrize(("epochs", "mixed"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_every_second_epoch_has_frames_of_its_own(lessons: FeatureSet, epochs: int, mixed: int) -> None:
    told = Told(lessons)
    recipe = Recipe(epochs=epochs, batch=64)
    made = school(told, 50, width=4, recipe=recipe)
    assert told.asked == [50] * mixed + [schooling.N_KEPT]
    assert made.about["n_frames"] == 50 * mixed * (epochs > 0)


def test_no_more_is_mixed_than_is_learned_from(lessons: FeatureSet) -> None:
    told = Told(lessons)
    school(told, 500, width=4, recipe=Recipe(epochs=0, batch=40))
    assert told.asked == [40, schooling.N_KEPT]


def test_large_arrays_keep_fewer_frames(lessons: FeatureSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schooling, "KEPT_BYTES", 10_000)
    kept = school(Told(lessons), 50, width=4, recipe=Recipe(epochs=0)).frames
    assert 9_000 <= sum(values.nbytes for values in kept.values()) <= 10_000
    assert len(kept["logits"]) == len(kept["sound"])


def test_a_prior_goes_on_where_another_stopped(lessons: FeatureSet, prior: Prior) -> None:
    same = taught(lessons, start=prior, width=9, recipe=Recipe(epochs=0))
    assert same.width == prior.width
    assert same.about["start"] == prior.about
    assert np.abs(same.logits(lessons.flat) - prior.logits(lessons.flat)).max() < 0.02
    few = Steered(steering_matrices(RESPEAKER, lessons.gcc), width=4, n_heard=3)  # as priors once had
    older = taught(lessons, start=Prior.quantised(RESPEAKER, lessons.gcc, few.folded()))
    assert (older.width, older.n_heard) == (4, 3)
    further = taught(lessons, start=prior, n_blocks=5)
    assert further.about["loss"] < prior.about["loss"]
    assert (prior.n_blocks, same.n_blocks, further.n_blocks) == (4, 4, 5)
    assert taught(lessons, start=further, recipe=Recipe(epochs=0)).n_blocks == 5


def test_new_frames_are_learned_from(lessons: FeatureSet) -> None:
    class Another(Told):
        """Other frames each time."""

        def frames(self, n: int) -> Iterator[tuple[Any, Any]]:
            self.told = lessons.select(np.roll(np.arange(len(lessons)), -40 * len(self.asked)))
            yield from super().frames(n)

    recipe = Recipe(epochs=4, lr=1e-2, weight_decay=0.0, batch=20)
    same_again, others = (
        school(kind(lessons), 40, width=4, recipe=recipe).logits(lessons.flat) for kind in (Told, Another)
    )
    two = Recipe(epochs=2, lr=1e-2, weight_decay=0.0, batch=20, schedule="constant")
    first = [school(kind(lessons), 40, width=4, recipe=two).logits(lessons.flat) for kind in (Told, Another)]
    assert not np.array_equal(same_again, others)
    assert np.array_equal(*first)  # two epochs are of the same frames


@pytest.mark.parametrize("works", [True, False])
def test_a_network_is_compiled_where_that_is_possible(
    lessons: FeatureSet, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    seen = []

    def compiler(function: Any, **_: Any) -> Any:
        def compiled(*given: Any, **more: Any) -> Any:
            seen.append(given)
            if not works:
                raise RuntimeError("no C compiler")
            return function(*given, **more)

        return compiled

    monkeypatch.setattr(torch, "compile", compiler)
    matrices = steering_matrices(RESPEAKER, lessons.gcc)
    plain, network = (Steered(matrices, width=4) for _ in range(2))
    X = torch.tensor(lessons.flat[:8])
    schooling._compiled(network, X)
    assert all(weight.grad is None for weight in network.parameters())
    assert torch.equal(network.train()(X), plain.train()(X))
    assert len(seen) == 1 + works


def test_stems_to_mix_are_those_of_the_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_VOICES", (3, 3))
    done: list[tuple[int, int]] = []
    scenes = scenes_of(RESPEAKER, VOICES, families=FAMILIES, seed=5)
    stems = gather_stems(scenes, 4, on_progress=lambda *now: done.append(now))
    assert done[-1][0] == done[-1][1] == len(done)
    expected = gather_stems(ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 5), 4)
    assert np.array_equal(stems.responses, expected.responses)
    assert np.array_equal(stems.voices, expected.voices)


# ---- confidence


def test_calibration_adds_what_blending_needs(lessons: FeatureSet, prior: Prior) -> None:
    with pytest.raises(PriorError, match="not calibrated"):
        judge(prior, lessons)
    sure = calibrated(prior, lessons)
    assert "blends" not in prior.constants
    assert sure.weights is prior.weights
    assert {k: v for k, v in sure.constants.items() if k not in ("blends", "counting")} == prior.constants
    for n in (1, 2):
        blend = sure.blend(n)
        assert isinstance(blend, Blend)
        assert blend.margin in MARGINS
        assert blend.weight in WEIGHTS
        assert blend.learned.n == n * int((lessons.n_sources == n).sum())
    with pytest.raises(PriorError, match="not calibrated"):
        sure.blend(3)


@pytest.mark.parametrize("little", [0.0, 0.02, 1.0])
def test_the_margin_is_the_smallest_that_costs_little(
    lessons: FeatureSet, prior: Prior, monkeypatch: pytest.MonkeyPatch, little: float
) -> None:
    monkeypatch.setattr(schooling, "LITTLE", little)
    sure, one = calibrated(prior, lessons), lessons.n_sources == 1
    learned, fallback = scores(prior.logits(lessons.flat[one])), prior.maps(lessons.flat[one])
    true = np.sort(lessons.azimuth[one], axis=1)[:, :1]

    first, mixed = np.arange(len(true)) < len(true) // 2, sure.blend(1).mixed(learned, fallback)

    def fitted(maps: NDArray[np.floating], rows: NDArray[np.bool_]) -> Calibration:
        found = decode(maps[rows])[:, None]
        return Calibration.fit(evidence(maps[rows], found), match(found, true[rows]) <= 5)

    def hits(margin: float) -> float:  # each half by calibrations of the other
        errors = []
        for half in (first, ~first):
            other = Blend(fitted(mixed, ~half), fitted(fallback, ~half), margin, sure.blend(1).weight)
            errors.append(match(other(learned[half], fallback[half], 1).azimuth, true[half]))
        return float((np.concatenate(errors) <= 5).mean())

    best, chosen = max(map(hits, MARGINS)), sure.blend(1).margin
    assert hits(chosen) >= best - little
    assert all(hits(margin) < best - little for margin in MARGINS if margin < chosen)


@pytest.mark.parametrize("n", [1, 2])
def test_the_weight_is_the_first_of_the_best(lessons: FeatureSet, prior: Prior, n: int) -> None:
    blend, rows = calibrated(prior, lessons).blend(n), lessons.n_sources == n
    learned, fallback = scores(prior.logits(lessons.flat[rows])), prior.maps(lessons.flat[rows])
    true = np.sort(lessons.azimuth[rows], axis=1)[:, :n]

    def found(weight: float) -> NDArray[np.floating]:
        maps = replace(blend, weight=weight).mixed(learned, fallback)
        return decode(maps)[:, None] if n == 1 else decode_two(maps)

    hits = [float((match(found(weight), true) <= 5).mean()) for weight in WEIGHTS]
    assert WEIGHTS[hits.index(max(hits))] == blend.weight
    there = evidence(blend.mixed(learned, fallback), found(blend.weight))
    right = match(found(blend.weight), true) <= 5
    assert blend.learned == Calibration.fit(there.ravel(), right.ravel())  # of the map that is asked


def test_what_is_told_apart_by_srp_phat_alone_is_left_to_it(
    lessons: FeatureSet, prior: Prior, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(0).uniform(0, 0.02, (len(lessons), 360)).astype(np.float32)
    monkeypatch.setattr(schooling, "_scores", lambda *_: noise)
    deaf = calibrated(prior, lessons)
    rows = {row.who: row.acc for row in judge(deaf, lessons)[:3]}
    assert rows["prior"] < 10
    assert rows["blend"] > rows["srp"] - 5 > 20
    assert deaf.blend(1).weight > 0
    assert deaf.blend(2).weight > 0


def test_a_prior_that_is_always_right_takes_nothing_from_srp_phat(
    lessons: FeatureSet, prior: Prior, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schooling, "_scores", lambda *_: encode(lessons.azimuth))
    sure = calibrated(prior, lessons)
    assert [sure.blend(n).weight for n in (1, 2)] == [0.0, 0.0]


def test_peaks_are_counted_by_how_often_they_were_sources(lessons: FeatureSet, prior: Prior) -> None:
    maps = scores(prior.logits(lessons.flat))
    found, strength = candidates(maps, 2), evidence(maps, candidates(maps, 2))
    right = np.zeros(found.shape, bool)
    for row, (peaks, places) in enumerate(zip(found, lessons.azimuth, strict=True)):
        left = [place for place in places if np.isfinite(place)]
        for column, peak in enumerate(peaks):
            near = [place for place in left if distance(peak, place) <= 5]
            right[row, column] = bool(near)
            left = [place for place in left if place not in near]
    there = np.isfinite(found)
    expected = [Calibration.fit(strength[there[:, k], k], right[there[:, k], k]) for k in (0, 1)]
    assert calibrated(prior, lessons).counting() == expected
    assert right[:, 1].any()
    assert not right[lessons.n_sources == 1, 1].all()


@pytest.mark.parametrize("n_sources", [1, 2])
def test_too_few_frames_do_not_calibrate(lessons: FeatureSet, prior: Prior, n_sources: int) -> None:
    few = np.flatnonzero(lessons.n_sources == n_sources)[:19]
    rows = np.sort(np.concatenate([few, np.flatnonzero(lessons.n_sources == 3 - n_sources)]))
    with pytest.raises(DataError, match=rf"only 19 frames with {n_sources} sources.*more scenes"):
        calibrated(prior, lessons.select(rows))


def test_a_line_of_microphones_is_judged_by_what_it_can_tell() -> None:
    """In front or behind sounds the same there: both count as found, and no image as a second source."""
    line = load_array("linear-4")
    scenes = ShortScenes(line, VOICES, ("anechoic",), "test", 1)
    frames = scene_features(scenes, range(30), prior_gcc(line))
    moved = Prior.load(shipped_priors()["respeaker-usb-4"]).moved(line)
    rows = {(row.who, row.n_sources): row.acc for row in judge(calibrated(moved, frames), frames)}
    one = frames.n_sources == 1
    true = np.nanmax(frames.azimuth[one], axis=1)
    strict = 100 * float((distance(decode(moved.maps(frames.flat[one])), true) <= 5).mean())
    assert rows["srp", 1] > 1.3 * strict
    assert rows["prior", 1] > 1.3 * strict
    images = distance(decode_two(moved.maps(frames.flat)) @ [1, 1], 180.0) <= 2  # a and 180 - a
    assert images.mean() > 0.3
    once = decode_two(line.heard_once(moved.maps(frames.flat)))
    assert distance(once, 0.0).max() <= 90


def test_judgements_count_what_they_judge(lessons: FeatureSet, prior: Prior) -> None:
    sure = calibrated(prior, lessons)
    rows = judge(sure, lessons)
    assert [(row.who, row.n_sources) for row in rows] == [
        (who, n) for n in (1, 2) for who in ("srp", "prior", "blend")
    ]
    for row in rows:
        assert row.n_frames == int((lessons.n_sources == row.n_sources).sum())
        assert 0 <= row.acc <= 100
        assert 0 <= row.mae <= 180
        assert 0 <= row.calibration_error <= 1
        assert (row.calibration_error == 0) or row.who == "blend"
    one = lessons.n_sources == 1
    maps: dict[str, NDArray[Any]] = {
        "srp": sure.maps(lessons.flat[one]),
        "prior": scores(sure.logits(lessons.flat[one])),
    }
    for row in rows[:2]:
        off = match(decode(maps[row.who])[:, None], np.sort(lessons.azimuth[one], axis=1)[:, :1])
        assert row.acc == pytest.approx(100 * (off <= 5).mean())
        assert row.mae == pytest.approx(off.mean())
    assert rows[2].acc >= max(rows[0].acc, rows[1].acc) - 10  # judged on what it was calibrated on
    assert judge(sure, lessons.select(one)) == rows[:3]


def test_confidence_is_the_same_on_another_device(lessons: FeatureSet, prior: Prior) -> None:
    here, there = (calibrated(prior, lessons, device) for device in ("cpu", "cpu:0"))
    assert here.constants == there.constants
    assert judge(here, lessons) == judge(there, lessons, "cpu:0")


@pytest.fixture(scope="module")
def stems() -> Stems:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "N_VOICES", (12, 12))
        return gather_stems(ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 0), 8)


def test_leaving_families_out(stems: Stems, lessons: FeatureSet) -> None:
    parts = by_family(lessons, FAMILIES)
    done: list[tuple[int, int]] = []
    judged = leave_one_out(
        stems, 60, parts, parts, seed=2, on_progress=lambda now, all_: done.append((now, all_)), **TINY
    )
    assert done == [(1, 2), (2, 2)]
    assert list(judged) == list(FAMILIES)
    for family, other in (FAMILIES, FAMILIES[::-1]):
        mixer = Mixer(stems.only([other]), prior_gcc(RESPEAKER), seed=2)
        made = calibrated(school(mixer, 60, seed=2, **TINY), joined([parts[other]]))
        assert judged[family] == judge(made, parts[family])
        assert all(isinstance(row, Judgement) for row in judged[family])


def test_leaving_the_only_family_out_is_refused(stems: Stems, lessons: FeatureSet) -> None:
    alone = {"hybrid": by_family(lessons, FAMILIES)["hybrid"]}
    with pytest.raises(DataError, match="at least two"):
        leave_one_out(replace(stems.only(["hybrid"]), families=("hybrid",)), 60, alone, alone, **TINY)


def test_what_was_heard_on_one_side_is_known_on_the_other(
    lessons: FeatureSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = next(s for s in symmetries(RESPEAKER) if s.mirrored)
    alone = np.flatnonzero(lessons.n_sources == 1)
    one = lessons.select(alone[:: len(alone) // 40][:40])
    turned = one.flat[:, mirror.order(one.gcc)].reshape(one.X.shape)
    mirrored = replace(one, X=turned, azimuth=mirror.azimuth(one.azimuth))

    def known_of_mirrored(epochs: int) -> float:
        recipe = Recipe(epochs=epochs, lr=1e-2, weight_decay=0.0, batch=40)
        found = decode(scores(taught(one, width=16, recipe=recipe).logits(mirrored.flat)))
        return float((match(found[:, None], np.sort(mirrored.azimuth, axis=1)[:, :1]) <= 10).mean())

    assert known_of_mirrored(100) > 0.65
    monkeypatch.setattr(schooling, "symmetries", lambda array: symmetries(array)[:1])
    assert known_of_mirrored(50) < 0.6


def test_a_line_learns_a_direction_and_its_image_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    line = load_array("linear-4")
    azimuth = np.array([[30.0, np.nan], [200.0, 290.0], [90.0, np.nan]])
    gcc = prior_gcc(line)
    X, which = np.zeros((3, gcc.n_looks, len(gcc.pairs), gcc.n_lags), np.float32), np.zeros(3, np.int32)
    told = FeatureSet(X, azimuth, which, which, ("x",), line, gcc)
    targets: list[Any] = []
    kept = training.squared_loss

    def seen(X: Any, target: Any, **how: Any) -> Any:
        targets.append(target.clone())
        return kept(X, target, **how)

    monkeypatch.setattr(training, "squared_loss", seen)
    taught(told)
    np.testing.assert_allclose(targets[0].numpy(), encode(line.alike(azimuth), 5.0), atol=1e-6)
    assert targets[0][0, [30, 150]].tolist() == [1.0, 1.0]
