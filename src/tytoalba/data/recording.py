"""A labelled recording, as every data set yields it: which frames are labelled, where the sources are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import DataError
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray

FRAME_LENGTH = 8192
HOP = 4096


@dataclass(frozen=True)
class Recording:
    """One recording; its sound is read only when asked for.

    subset: the part of the data set it belongs to, e.g. "lsp_test_106".
    frame_ids: which frames are labelled; frame t covers samples [hop * t, hop * t + frame_length).
    azimuth: degrees, (n_frames, n_sources), NaN where there is no further source; a silent frame is all NaN.
    load: reads the sound, (n_mics, n_samples) float32 in [-1, 1], at the array's sample rate.
    """

    name: str
    subset: str
    array: MicArray
    frame_ids: NDArray[np.intp]
    azimuth: Float
    load: Callable[[], NDArray[np.float32]]
    frame_length: int = FRAME_LENGTH
    hop: int = HOP

    @property
    def n_sources(self) -> NDArray[np.intp]:
        """Number of sources of each labelled frame, (n_frames,)."""
        count: NDArray[np.intp] = np.isfinite(self.azimuth).sum(axis=1)
        return count

    def frames(self, samples: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """The labelled frames, (n_frames, n_mics, frame_length), of this sound (read if not given)."""
        if not len(self.frame_ids):
            return np.empty((0, self.array.n_mics, self.frame_length), np.float32)
        samples = self.load() if samples is None else samples
        starts = self.frame_ids * self.hop
        if starts.max() + self.frame_length > samples.shape[1]:
            raise DataError(
                f"recording {self.name!r} has {samples.shape[1]} samples, but frame {self.frame_ids.max()} "
                f"is labelled; the sound is cut short or the labels belong to another file"
            )
        windows = np.lib.stride_tricks.sliding_window_view(samples, self.frame_length, axis=1)
        return np.ascontiguousarray(windows[:, starts].swapaxes(0, 1))
