"""A queue between two threads that loses nothing silently."""

from __future__ import annotations

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tytoalba.live.inputs.waiting import Piece, Waiting


def piece(n_samples: int, arrived: float = 0.0) -> Piece:
    return Piece(np.zeros((2, n_samples), np.float32), arrived)


@given(
    st.lists(
        st.tuples(st.integers(1, 400), st.booleans(), st.booleans()),
        max_size=40,
    )
)
def test_what_is_put_is_taken_or_counted(steps: list[tuple[int, bool, bool]]) -> None:
    waiting, given_, taken, lost, overflown = Waiting(1000, 0.5), 0, 0, 0, 0

    def take() -> None:
        nonlocal taken, lost
        pieces, before = waiting.take(0.0)
        taken += sum(one.samples.shape[1] for one in pieces)
        lost += before

    for k, (n_samples, overflow, takes) in enumerate(steps):
        waiting.put(piece(n_samples, arrived=k * 1e-9), overflow)
        given_ += n_samples
        overflown += n_samples * overflow
        assert waiting._n <= max(500, n_samples)
        if takes:
            take()
    for _ in range(len(steps) + 1):
        take()
    assert taken + lost == given_ + overflown


def test_a_gap_is_as_long_as_the_time_that_passed() -> None:
    waiting = Waiting(1000, 2.0)
    waiting.put(piece(10, arrived=1.0), overflow=False)
    waiting.put(piece(10, arrived=1.3), overflow=True)
    assert waiting.take(0.0)[1] == 0
    pieces, lost = waiting.take(0.0)
    assert (len(pieces), lost) == (1, 290)


def test_one_who_waits_gets_it_at_once() -> None:
    waiting = Waiting(1000, 2.0)
    putting = threading.Timer(0.02, waiting.put, (piece(10), False))
    putting.start()
    pieces, _ = waiting.take(10.0)
    assert len(pieces) == 1
    waking = threading.Timer(0.02, waiting.wake)
    waking.start()
    assert waiting.take(10.0) == ([], 0)
    putting.join()
    waking.join()
