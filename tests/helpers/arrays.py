"""Arrays changed in ways that leave their microphones what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tytoalba.signal.array import MicArray


def moved(array: MicArray, order: Sequence[int], turn: float = 0.0, shift: ArrayLike = 0.0) -> MicArray:
    """The same microphones in another order, turned by `turn` degrees and shifted (metres)."""
    places = array.rotated(turn).coordinates[list(order)] + np.asarray(shift)
    return replace(array, name="mine", positions=tuple(map(tuple, places)), channels=(), yaw=0.0)
