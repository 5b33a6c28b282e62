"""The best of many settings, one at a time: for those of our tracker, and for those of others beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tytoalba.errors import TytoError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Chosen = TypeVar("Chosen", bound=DataclassInstance)

Value = float | str
OnStep = Callable[[str, Value, float, bool], None]


def descend(
    start: Chosen,
    grid: Mapping[str, Sequence[Value]],
    loss: Callable[[Chosen], float],
    rounds: int = 2,
    on_step: OnStep | None = None,
) -> tuple[Chosen, float]:
    """The settings of least loss: each value of the grid is tried in its turn, the best is kept.

    Values that do not go with the others are passed over. Ends after `rounds`, or after one that changed
    nothing. on_step is called with the name, its value, the loss and whether it was kept.
    """
    best, least = start, loss(start)
    for _ in range(rounds):
        before = best
        for name, values in grid.items():
            for value in values:
                if value == getattr(best, name):
                    continue
                try:
                    trial = replace(best, **{name: value})
                except TytoError:
                    continue
                found = loss(trial)
                if on_step:
                    on_step(name, value, found, found < least)
                if found < least:
                    best, least = trial, found
        if best == before:
            break
    return best, least
