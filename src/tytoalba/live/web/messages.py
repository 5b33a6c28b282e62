"""What the page is told of frames and recordings, in few bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.live.segments import Moment
from tytoalba.live.update import Update
from tytoalba.signal.angles import N_DIRECTIONS, Float

MOST_COLUMNS = 600
"""Columns of the map of a recording."""
ROW = 3
"""Degrees of a row of the map of a recording."""


def update_message(update: Update, moment: Moment) -> dict[str, Any]:
    """A frame: `Update.plain`, and the score of each degree from 0 to 1000, or null in silence."""
    scores = None if moment.scores is None else whole(moment.scores, 1000).tolist()
    return {"type": "update", **update.plain, "scores": scores}


def whole(scores: Float, most: int) -> NDArray[np.int64]:
    """Scores from 0 to 1 as whole numbers from 0 to `most`; mirror images (-inf) are 0.

    >>> whole(np.array([-np.inf, -0.1, 0.5, 1.2]), 1000).tolist()
    [0, 0, 500, 1000]
    """
    return np.rint(most * np.clip(np.nan_to_num(scores, nan=0.0, neginf=0.0), 0.0, 1.0)).astype(np.int64)


class Map:
    """Scores over time in at most `MOST_COLUMNS` columns, however long the recording is.

    Neighbouring columns become one when there are too many: the mean of their frames.
    """

    def __init__(self) -> None:
        self._sums: list[Float] = []
        self._counts: list[int] = []
        self._width = 1  # frames per column

    def add(self, scores: Float | None) -> None:
        """Take a frame, (360,); None in silence."""
        if not self._counts or self._counts[-1] == self._width:
            if len(self._counts) == MOST_COLUMNS:
                self._halve()
            self._sums.append(np.zeros(N_DIRECTIONS // ROW))
            self._counts.append(0)
        if scores is not None:
            found = np.clip(np.nan_to_num(scores, nan=0.0, neginf=0.0), 0.0, 1.0)
            self._sums[-1] = self._sums[-1] + found.reshape(-1, ROW).max(axis=1)
        self._counts[-1] += 1

    def _halve(self) -> None:
        self._sums = [a + b for a, b in zip(self._sums[::2], self._sums[1::2], strict=True)]
        self._counts = [a + b for a, b in zip(self._counts[::2], self._counts[1::2], strict=True)]
        self._width *= 2

    @property
    def told(self) -> dict[str, Any]:
        """Columns of 120 whole numbers from 0 to 100, each the highest score within 3 degrees."""
        columns = [whole(s / max(n, 1), 100).tolist() for s, n in zip(self._sums, self._counts, strict=True)]
        return {"columns": len(columns), "frames_per_column": self._width, "scores": columns}
