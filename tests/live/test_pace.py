"""A wrong sample rate is noticed by the clock; what is slow or fast for another reason is no fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tytoalba.live.pace import Pace


def fed(said: int, real: float, *, jitter: float = 0.0, seconds: float = 3.0, block: float = 0.02) -> Pace:
    pace, rng, n = Pace(said), np.random.default_rng(0), 0
    for number in range(round(seconds / block)):
        total = round(real * block * (number + 1))
        pace.feed(total - n, 100 + block * (number + 1) + rng.uniform(0, jitter))
        n = total
    return pace


@pytest.mark.parametrize(
    ("said", "real"), [(16000, 48000), (48000, 16000), (48000, 44100), (44100, 48000), (16000, 8000)]
)
def test_another_rate_is_told(said: int, real: int) -> None:
    ways: list[dict[str, Any]] = [{}, {"jitter": 0.008}, {"block": 0.125}]
    for how in ways:
        (fault,) = fed(said, real, **how).faults
        assert fault.kind == "rate"
        assert str(real) in fault.text
    far = abs(real / said - 1) > 0.45
    for block in (0.02, 0.125):  # so large are those of arecord
        assert fed(said, real, jitter=0.003, block=block, seconds=1.0 if far else 1.4).faults


@pytest.mark.parametrize("block", [0.02, 0.064])
def test_a_busy_machine_is_no_fault(block: float) -> None:
    """Blocks that are taken late, a few times in every second, and then all at once."""
    for seed in range(10):
        pace, rng, n, free = Pace(16000), np.random.default_rng(seed), 0, 0.0
        for number in range(round(30 / block)):
            due = block * (number + 1)
            if rng.random() < 3 * block:
                free = max(free, due) + rng.exponential(0.08)
            total = round(16000 * due)
            pace.feed(total - n, 100 + max(due, free))
            n = total
            assert not pace.faults


@pytest.mark.parametrize("real", [16000, 16300, 15700, 20000, 60000, 500_000, 3000])
def test_the_right_rate_and_none_at_all_are_no_fault(real: int) -> None:
    assert not fed(16000, real, jitter=0.005).faults


def test_a_pause_is_no_fault_and_a_fault_that_ends_is_over() -> None:
    pace = fed(16000, 16000)
    pace.feed(320, 200.0)  # nothing came for 97 seconds
    assert not pace.faults
    pace = fed(16000, 48000)
    pace.restart()
    assert pace.faults
    for number in range(100):
        pace.feed(320, 300 + 0.02 * number)
    assert not pace.faults
    pace.feed(320, None)
    assert not pace.faults
