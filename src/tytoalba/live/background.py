"""What sounds all the time from one place, a fan or a television: learned from a few seconds, then left out.

The background is the mean score of each direction. What is left of a frame is what its scores exceed that by:
a talker in the same direction is still heard where the scores are clearly higher.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tytoalba.errors import TytoError
from tytoalba.signal.angles import N_DIRECTIONS, Float


@dataclass(frozen=True, eq=False)
class Background:
    """Mean score of each direction while nobody talks, (360,), over n_frames frames.

    >>> fan = np.zeros(360)
    >>> fan[80] = 0.6
    >>> background = Background.learned([fan, fan, None])  # None: a silent frame
    >>> background.n_frames, background.left(fan)[80:82].tolist(), background.left(2 * fan)[80:82].tolist()
    (2, [0.0, 0.0], [0.6, 0.0])
    """

    mean: Float
    n_frames: int

    @classmethod
    def learned(cls, frames: Iterable[Float | None]) -> Background:
        """The background of some frames, each scores (360,), or None where it was silent."""
        n_frames, total = 0, np.zeros(N_DIRECTIONS)
        for scores in frames:
            if scores is None:
                continue
            if np.shape(scores) != (N_DIRECTIONS,) or np.isnan(scores).any():
                raise TytoError(
                    f"a background is learned from frames of {N_DIRECTIONS} scores, got shape "
                    f"{np.shape(scores)} or NaN"
                )
            n_frames, total = n_frames + 1, total + np.where(np.isfinite(scores), scores, 0.0)
        return cls(total / max(n_frames, 1), n_frames)

    def left(self, scores: Float) -> Float:
        """What scores (360,) exceed the background by; -inf (a mirror image) stays."""
        return np.where(np.isfinite(scores), np.maximum(scores - self.mean, 0.0), -np.inf)
