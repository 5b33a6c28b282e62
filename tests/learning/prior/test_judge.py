"""Calibrating and judging a prior, by families of acoustics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.helpers.priors import (
    FAMILIES,
    RESPEAKER,
    TINY,
    VOICES,
    ShortScenes,
    same,
)
from tytoalba.data.features import FeatureSet
from tytoalba.data.simulation import stems as stems_module
from tytoalba.data.simulation.scenes import scene_features
from tytoalba.data.simulation.stems import Stems, gather_stems
from tytoalba.errors import DataError
from tytoalba.learning import training as training
from tytoalba.learning.prior import make as make
from tytoalba.learning.prior import train as train
from tytoalba.learning.prior.calibration import Calibration, evidence
from tytoalba.learning.prior.decisions import candidates
from tytoalba.learning.prior.features import prior_gcc, scores
from tytoalba.learning.prior.judge import (
    Judgement,
    by_family,
    calibrated,
    joined,
    judge,
    leave_one_out,
)
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import shipped_priors
from tytoalba.learning.prior.train import train_prior
from tytoalba.signal.angles import decode, decode_two, distance
from tytoalba.signal.array import load_array
from tytoalba.signal.metrics import match

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("few_kept")
from tytoalba.data.simulation.mixer import Mixer  # noqa: E402 - needs torch


def test_families_are_told_apart(frames: FeatureSet) -> None:
    parts = by_family(frames, FAMILIES)
    assert list(parts) == list(FAMILIES)
    assert sum(map(len, parts.values())) == len(frames)
    scenes = ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 0)
    for family, frames in parts.items():
        numbers = {int(frames.names[k].rpartition("_")[2]) for k in frames.recording}
        assert numbers
        assert {scenes.families[k % 2] for k in numbers} == {family}
        assert all(scenes.recording(k).name.startswith(family) for k in sorted(numbers)[:2])


def test_families_that_take_several_turns(frames: FeatureSet) -> None:
    turns = ("hybrid", "anechoic", "hybrid", "pyroom")
    parts = by_family(frames, turns)
    assert list(parts) == ["hybrid", "anechoic", "pyroom"]
    assert set(parts["hybrid"].recording % 4) == {0, 2}
    assert set(parts["pyroom"].recording % 4) == {3}
    assert sum(map(len, parts.values())) == len(frames)


def test_sets_are_joined(frames: FeatureSet) -> None:
    parts = [frames.select(frames.recording == k) for k in (5, 2)]
    both = joined(parts)
    assert same(both, frames.select(np.concatenate([np.flatnonzero(frames.recording == k) for k in (5, 2)])))
    assert both.names == frames.names * 2
    renamed = joined([parts[0], replace(parts[1], names=tuple(f"other_{name}" for name in frames.names))])
    assert {renamed.names[k] for k in renamed.recording} == {"scene_000005", "other_scene_000002"}
    assert both.recording.dtype == np.int32
    assert both.n_sources.tolist() == [n for part in parts for n in part.n_sources]
    narrow = replace(parts[0], azimuth=np.full((len(parts[0]), 1), 50.0))
    mixed = joined([narrow, parts[1]])
    assert mixed.azimuth.shape == (len(both), 2)
    assert (mixed.n_sources[: len(narrow)] == 1).all()
    assert same(joined([frames]), replace(frames, azimuth=np.sort(frames.azimuth, axis=1)))


def test_families_of_joined_sets_are_still_known(frames: FeatureSet) -> None:
    parts = by_family(frames, FAMILIES)
    again = by_family(joined(list(parts.values())), FAMILIES)
    for family in FAMILIES:
        assert np.array_equal(again[family].X, parts[family].X)


def test_calibration_adds_what_counting_needs(frames: FeatureSet, prior: Prior) -> None:
    sure = calibrated(prior, frames)
    assert "counting" not in prior.constants
    assert sure.weights is prior.weights
    assert {k: v for k, v in sure.constants.items() if k != "counting"} == prior.constants


def test_peaks_are_counted_by_how_often_they_were_sources(frames: FeatureSet, prior: Prior) -> None:
    maps = scores(prior.logits(frames.flat))
    found, strength = candidates(maps, 2), evidence(maps, candidates(maps, 2))
    right = np.zeros(found.shape, bool)
    for row, (peaks, places) in enumerate(zip(found, frames.azimuth, strict=True)):
        left = [place for place in places if np.isfinite(place)]
        for column, peak in enumerate(peaks):
            near = [place for place in left if distance(peak, place) <= 5]
            right[row, column] = bool(near)
            left = [place for place in left if place not in near]
    there = np.isfinite(found)
    expected = [Calibration.fit(strength[there[:, k], k], right[there[:, k], k]) for k in (0, 1)]
    assert calibrated(prior, frames).counting() == expected
    assert right[:, 1].any()
    assert not right[frames.n_sources == 1, 1].all()


@pytest.mark.parametrize("n_sources", [1, 2])
def test_too_few_frames_do_not_calibrate(frames: FeatureSet, prior: Prior, n_sources: int) -> None:
    few = np.flatnonzero(frames.n_sources == n_sources)[:19]
    rows = np.sort(np.concatenate([few, np.flatnonzero(frames.n_sources == 3 - n_sources)]))
    with pytest.raises(DataError, match=rf"only 19 frames with {n_sources} sources.*more scenes"):
        calibrated(prior, frames.select(rows))


def test_a_line_of_microphones_is_judged_by_what_it_can_tell() -> None:
    """In front or behind sounds the same there: both count as found, and no image as a second source."""
    line = load_array("linear-4")
    scenes = ShortScenes(line, VOICES, ("anechoic",), "test", 1)
    frames = scene_features(scenes, range(18), prior_gcc(line))
    moved = Prior.load(shipped_priors()["respeaker-usb-4"]).moved(line)
    rows = {(row.who, row.n_sources): row.acc for row in judge(calibrated(moved, frames), frames)}
    one = frames.n_sources == 1
    true = np.nanmax(frames.azimuth[one], axis=1)
    strict = 100 * float((distance(decode(moved.srp_maps(frames.flat[one])), true) <= 5).mean())
    assert rows["srp", 1] > 1.3 * strict
    assert rows["prior", 1] > 1.3 * strict
    images = distance(decode_two(moved.srp_maps(frames.flat)) @ [1, 1], 180.0) <= 2  # a and 180 - a
    assert images.mean() > 0.3
    once = decode_two(line.without_images(moved.srp_maps(frames.flat)))
    assert distance(once, 0.0).max() <= 90


def test_judgements_count_what_they_judge(frames: FeatureSet, prior: Prior) -> None:
    sure = calibrated(prior, frames)
    rows = judge(sure, frames)
    assert [(row.who, row.n_sources) for row in rows] == [
        (who, n) for n in (1, 2) for who in ("srp", "prior")
    ]
    for row in rows:
        assert row.n_frames == int((frames.n_sources == row.n_sources).sum())
        assert 0 <= row.acc <= 100
        assert 0 <= row.mae <= 180
        assert 0 <= row.calibration_error <= 1
        assert (row.calibration_error == 0) or row.who == "prior"
    one = frames.n_sources == 1
    maps: dict[str, NDArray[Any]] = {
        "srp": sure.srp_maps(frames.flat[one]),
        "prior": scores(sure.logits(frames.flat[one])),
    }
    for row in rows[:2]:
        off = match(decode(maps[row.who])[:, None], np.sort(frames.azimuth[one], axis=1)[:, :1])
        assert row.acc == pytest.approx(100 * (off <= 5).mean())
        assert row.mae == pytest.approx(off.mean())
    assert judge(sure, frames.select(one)) == rows[:2]


def test_confidence_is_the_same_on_another_device(frames: FeatureSet, prior: Prior) -> None:
    here, there = (calibrated(prior, frames, device) for device in ("cpu", "cpu:0"))
    assert here.constants == there.constants
    assert judge(here, frames) == judge(there, frames, "cpu:0")


@pytest.fixture(scope="module")
def stems() -> Stems:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stems_module, "N_VOICES", (12, 12))
        return gather_stems(ShortScenes(RESPEAKER, VOICES, FAMILIES, "train", 0), 8)


def test_leaving_families_out(stems: Stems, frames: FeatureSet) -> None:
    parts = by_family(frames, FAMILIES)
    done: list[tuple[int, int]] = []
    judged = leave_one_out(
        stems, 60, parts, parts, seed=2, on_progress=lambda now, all_: done.append((now, all_)), **TINY
    )
    assert done == [(1, 2), (2, 2)]
    assert list(judged) == list(FAMILIES)
    for family, other in (FAMILIES, FAMILIES[::-1]):
        mixer = Mixer(stems.only([other]), prior_gcc(RESPEAKER), seed=2)
        made = calibrated(train_prior(mixer, 60, seed=2, **TINY), joined([parts[other]]))
        assert judged[family] == judge(made, parts[family])
        assert all(isinstance(row, Judgement) for row in judged[family])


def test_leaving_the_only_family_out_is_refused(stems: Stems, frames: FeatureSet) -> None:
    alone = {"hybrid": by_family(frames, FAMILIES)["hybrid"]}
    with pytest.raises(DataError, match="at least two"):
        leave_one_out(replace(stems.only(["hybrid"]), families=("hybrid",)), 60, alone, alone, **TINY)
