"""The one way from sound to directions: any blocks, neighbours, no delay, nothing lost to a bad block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.helpers.localizers import ARRAY, prior
from tests.helpers.waves import plane_wave
from tytoalba import Localizer
from tytoalba.errors import AudioError, TytoError
from tytoalba.localizer.frontend import FrontEnd
from tytoalba.localizer.locate import MapFinder
from tytoalba.localizer.stream import Stream
from tytoalba.signal.angles import distance
from tytoalba.signal.audio import BLOCK

LENGTH = ARRAY.frame_length
HOP = LENGTH // 2
SOUND = plane_wave(ARRAY, (0.0, 180.0), 0.56)


@pytest.fixture(scope="module")
def localizer() -> Localizer:
    return Localizer.new(ARRAY, n_features=30, seed=0, prior=prior())


# ---- before anything is decided


@pytest.mark.parametrize("context", [0, 2])
def test_what_is_heard_is_what_is_decided_on(context: int) -> None:
    loud = SOUND.copy()
    loud[:, :HOP] = 0.0
    quiet = np.concatenate([np.zeros((ARRAY.n_mics, 2 * LENGTH), np.float32), loud], axis=1)
    stream = Stream(MapFinder(ARRAY, "srp"), context=context)
    heard = list(stream.run_heard([quiet]))
    assert stream.decide(heard) == list(Stream(MapFinder(ARRAY, "srp"), context=context).run([quiet]))
    assert [one.maps is None for one in heard] == [one.level < -60 for one in heard]
    assert heard[0].level == pytest.approx(-240)
    assert heard[-1].level == pytest.approx(20 * np.log10(np.sqrt(np.mean(SOUND**2))), abs=0.5)
    fed = Stream(MapFinder(ARRAY, "srp"), context=context)
    blocks = np.split(quiet, [3, 5000, 9000], axis=1)
    again = [one for block in blocks for one in fed.hear(block)] + fed.rest()
    assert [(one.time, one.level) for one in again] == [(one.time, one.level) for one in heard]


@pytest.mark.parametrize("method", ["srp", "prior", "localizer"])
def test_scores_are_one_map_as_the_array_is_mounted(localizer: Localizer, method: str) -> None:
    finder = localizer.new_stream().finder if method == "localizer" else MapFinder(ARRAY, method)
    heard = list(Stream(finder).run_heard([plane_wave(ARRAY, 100.0, 0.4)]))
    assert heard[0].maps is not None
    assert finder.scores(heard[0].maps[None]).shape == (1, 360)
    assert bool(finder.counting) == (method != "srp")
    turned = MapFinder(ARRAY.rotated(30.5), "prior" if method == "localizer" else method)
    frames = list(Stream(turned).run_heard([plane_wave(ARRAY, 100.0, 0.4)]))
    assert frames[0].maps is not None
    assert distance(float(turned.scores(frames[0].maps[None])[0].argmax()), 130.5) < 6


# ---- blocks


@pytest.mark.parametrize("method", ["srp", "music", "prior", "localizer"])
@given(st.lists(st.integers(0, 9000), max_size=6), st.sampled_from([1, 2, "auto"]), st.integers(0, 2))
@settings(max_examples=5, deadline=None)
def test_any_blocks_are_located_as_the_whole(
    localizer: Localizer, method: str, cuts: list[int], n_sources: Any, context: int
) -> None:
    def stream() -> Stream:
        if method == "localizer":
            return localizer.new_stream(n_sources=n_sources, context=context)
        return Stream(MapFinder(ARRAY, method, n_sources), context=context)

    whole = list(stream().run([SOUND]))
    blocks = np.split(SOUND, sorted(cuts), axis=1)
    assert list(stream().run(iter(blocks))) == whole
    fed = stream()
    assert [found for block in blocks for found in fed.feed(block)] + fed.finish() == whole


def test_a_frame_is_answered_with_its_last_sample(localizer: Localizer) -> None:
    """Block by block, and `context` hops later where neighbours are asked for."""
    for context in (0, 2):
        first = LENGTH + context * HOP
        assert localizer.feed(SOUND[:, : first - 1], context=context) == []
        (found,) = localizer.feed(SOUND[:, first - 1 : first], context=context)
        assert found.time == LENGTH / 2 / ARRAY.sample_rate
        assert localizer.feed(SOUND[:, first : first + HOP - 1], context=context) == []
        assert len(localizer.feed(SOUND[:, first + HOP - 1 : first + HOP], context=context)) == 1
        assert len(localizer.finish()) == context
        assert localizer.finish() == []


def test_a_recording_fed_after_another_begins_anew(localizer: Localizer) -> None:
    expected = localizer.locate(SOUND, n_sources=2)
    assert localizer.feed(SOUND, n_sources=2) == expected
    with pytest.raises(TytoError, match=r"options of feed must stay the same; finish\(\) ends a recording"):
        localizer.feed(SOUND)
    localizer.finish()
    assert localizer.feed(SOUND, n_sources=2) == expected
    localizer.finish()


def test_what_is_taught_meanwhile_is_known_in_the_next_frame() -> None:
    localizer = Localizer.new(ARRAY, n_features=30, seed=0, prior=prior())
    assert {f.n_sources for f in localizer.feed(SOUND, taught_only=True)} == {0}
    localizer.teach(SOUND, (0.0, 180.0))
    assert {f.n_sources for f in localizer.feed(SOUND, taught_only=True)} == {1}


def test_a_long_block_is_taken_in_pieces(localizer: Localizer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, features = list[int](), FrontEnd.features

    def watched(self: FrontEnd, cut: NDArray[Any]) -> NDArray[np.float32]:
        seen.append(len(cut))
        return features(self, cut)

    monkeypatch.setattr(FrontEnd, "features", watched)
    localizer.locate(np.tile(SOUND, 20))
    assert max(seen) <= BLOCK // HOP


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        (SOUND[:, :1024].T, r"a block must be \(4, n_samples\) .* got shape \(1024, 4\); .* transpose it"),
        (np.concatenate([SOUND, SOUND[:2]]), r"got shape \(6, .* `block\[list\(array\.channels\)\]`"),
        (SOUND[:3], r"got shape \(3, "),
        (SOUND[0], "a block must be"),
        (np.where(np.arange(SOUND.shape[1]) == 700, np.nan, SOUND), "NaN or infinite, the first at 700"),
        ((SOUND * 32768).astype(np.int16), "divide int16 by 32768"),
    ],
)
def test_a_bad_block_is_refused_at_once_and_nothing_is_lost(
    localizer: Localizer, block: Any, complaint: str
) -> None:
    expected = localizer.locate(SOUND, context=1)
    found = localizer.feed(SOUND[:, :5000], context=1)
    with pytest.raises(AudioError, match=complaint):
        localizer.feed(block, context=1)
    with pytest.raises(AudioError, match=complaint):
        list(localizer.stream([block]))
    found += localizer.feed(SOUND[:, :0], context=1) + localizer.feed(SOUND[:, 5000:], context=1)
    assert found + localizer.finish() == expected


def test_what_is_too_short_for_a_frame_is_refused(localizer: Localizer) -> None:
    for blocks in ([SOUND[:, :9]] * 3, []):
        with pytest.raises(AudioError, match="too short for one frame"):
            list(localizer.stream(blocks))
