"""Sound at another sample rate, block by block, as it comes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Resampler:
    """Blocks (n_channels, any length) at `to_rate` Hz; the first sample stays the first, without a delay.

    Where the rates are the same, blocks pass as they are. What comes out of a block is a few milliseconds
    short: the rest comes with the next one.
    """

    def __init__(self, from_rate: int, to_rate: int, n_channels: int) -> None:
        self._from, self._to, self._n_channels = from_rate, to_rate, n_channels
        self._stream: Any = None
        self.clear()

    def clear(self) -> None:
        """What comes next does not continue what came before."""
        if self._from != self._to:
            import soxr  # type: ignore[import-untyped]

            self._stream = soxr.ResampleStream(self._from, self._to, self._n_channels, dtype=np.float32)

    def add(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take a block; give what is complete, perhaps nothing."""
        if self._from == self._to:
            return block
        piece = self._stream.resample_chunk(np.ascontiguousarray(block.T, np.float32))
        return np.ascontiguousarray(piece.T)
