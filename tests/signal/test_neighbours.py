"""The mean of a frame and its neighbours."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tytoalba.signal.neighbours import Neighbours


@given(st.lists(st.booleans(), max_size=14), st.integers(0, 5), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_neighbours_are_averaged_as_by_brute_force(loud: list[bool], context: int, seed: int) -> None:
    maps = np.random.default_rng(seed).random((len(loud), 2, 7)).astype(np.float32)
    neighbours = Neighbours(context)
    given_frames = [m if is_loud else None for m, is_loud in zip(maps, loud, strict=True)]
    found = neighbours.add(given_frames)
    assert len(found) == max(0, len(loud) - context)
    found += neighbours.rest()
    assert [frame is not None for frame, _ in found] == loud
    for t, (frame, n) in enumerate(found):
        around = np.array(loud, bool) & (np.abs(np.arange(len(loud)) - t) <= context)
        if frame is not None:
            assert n == around.sum()
            assert np.allclose(frame, maps[around].mean(axis=0), atol=1e-6)
            assert frame.dtype == np.float32
    assert neighbours.rest() == []  # as new


def test_answers_come_as_late_as_the_context_and_no_later() -> None:
    for context in (0, 1, 4):
        neighbours = Neighbours(context)
        ready = [len(neighbours.add([np.ones((1, 3))])) for _ in range(10)]
        assert ready == [0] * context + [1] * (10 - context)
        assert len(neighbours.rest()) == context
        assert neighbours.rest() == []
