"""Lessons are the same however their frames come in blocks, and no larger than their sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tests.helpers.localizers import phase, small_state
from tytoalba.errors import TytoError
from tytoalba.learning.phases import Phase
from tytoalba.learning.tyto import Lesson, Sums
from tytoalba.localizer import lessons
from tytoalba.localizer.lessons import gather, lesson_name


def cut(whole: Phase, *sizes: int) -> Iterator[Phase]:
    """A phase in blocks."""
    bounds = np.cumsum([0, *sizes])
    assert bounds[-1] == len(whole)
    for first, last in pairwise(bounds):
        yield replace(whole, X=whole.X[first:last], azimuth=whole.azimuth[first:last])


@pytest.mark.parametrize("frontend", [1, 2])
@pytest.mark.parametrize("n_features", [2, 40])
def test_a_lesson_does_not_depend_on_its_blocks(frontend: int, n_features: int) -> None:
    state, whole = small_state(n_features, frontend=frontend), phase(1, 10)
    expected = small_state(n_features, frontend=frontend)
    name = expected.teach(whole)
    for sizes, at_once in (((1, 9), 512), ((3, 3, 3, 1), 2)):
        with patch.object(lessons, "AT_ONCE", at_once):
            taught = state.copy()
            assert taught.teach(cut(whole, *sizes)) == name
            assert taught.to_bytes() == expected.to_bytes()
            assert taught.forget(cut(whole, *sizes[::-1])) == name
            assert taught.to_bytes() == state.to_bytes()


def test_what_is_kept_is_the_smaller_of_rows_and_sums() -> None:
    few, many = phase(0, 3), phase(1, 10)
    for n_features, (expected, other) in ((2, (Lesson, Sums)), (40, (Lesson, Lesson))):
        state = small_state(n_features)
        assert isinstance(gather(state.learner, few, 5, 2).part, expected)
        found = gather(state.learner, many, 5, 2)
        assert isinstance(found.part, other)
        assert found.n_frames == 10
    rows = small_state(40).learner.lesson(many, by_frame=True)
    assert found.name == lesson_name(rows, 5, 2) != lesson_name(rows, 5, 1)


def test_rows_of_a_frame_stand_together() -> None:
    learner = small_state(8).learner
    one, other = (learner.lesson(phase(1, 6), by_frame=by_frame) for by_frame in (False, True))
    assert learner.n_views == 2
    assert np.array_equal(one.H.reshape(2, 6, -1).swapaxes(0, 1).reshape(12, -1), other.H)
    assert np.array_equal(one.Y.reshape(2, 6, -1).swapaxes(0, 1).reshape(12, -1), other.Y)


@pytest.mark.parametrize("frontend", [1, 2])
def test_blocks_without_frames_or_sources_are_refused(frontend: int) -> None:
    state, whole = small_state(frontend=frontend), phase(1, 6)
    silent = replace(whole, azimuth=np.where(np.arange(6)[:, None] == 4, np.nan, whole.azimuth))
    all_wrong: list[Any] = [[], cut(silent, 3, 3), phase(1, 0)]
    for wrong in all_wrong:
        with pytest.raises(TytoError, match="needs frames, and each of them a source"):
            state.teach(wrong)
    assert state.to_bytes() == small_state(frontend=frontend).to_bytes()
