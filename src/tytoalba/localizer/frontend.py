"""How sound becomes what a localizer learns from: frames, features, directions in the frame of its prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Recording
from tytoalba.errors import AudioError, TytoError
from tytoalba.learning.prior.prior import Prior
from tytoalba.learning.prior.registry import Fit, fit, same_places
from tytoalba.localizer.stream import Sound, given_samples, refuse_rate
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import SILENCE_DB, frames, spoken
from tytoalba.signal.gcc import GccPhat
from tytoalba.storage.age import Keys
from tytoalba.storage.soundfiles import read_audio

VERSIONS = (1, 2)
NEWEST = max(VERSIONS)
"""1: features in float32, whose last bits depend on the CPU. 2: exact ones, the same on every machine."""


@dataclass(frozen=True)
class FrontEnd:
    """What lies between the sound of an array and its prior. array: as it is mounted.

    version: states keep the one that they were made with, or they would not know their lessons again.
    """

    array: MicArray
    prior: Prior
    version: int = NEWEST

    @cached_property
    def gcc(self) -> GccPhat:
        """The features, in the order of microphones of the prior."""
        return replace(self.prior.gcc, exact=self.version != 1)

    @cached_property
    def fit(self) -> Fit:
        """Order and turn of the array's microphones beside the prior's."""
        found = fit(self.prior.array, self.array)
        assert found
        return found

    def lesson(self, source: Sound, sample_rate: int | None = None, keys: Keys = None) -> NDArray[np.float32]:
        """Features of the frames that have something to learn from; refused where none has."""
        if isinstance(source, np.ndarray):
            samples = given_samples(source, self.array, sample_rate)
        else:
            refuse_rate(sample_rate)
            samples = read_audio(source, self.array, keys=keys).samples
        length = self.array.frame_length
        cut = frames(samples, length, length // 2)
        voiced = cut[spoken(cut)]
        if not len(voiced):
            raise AudioError(
                f"there is nothing to learn from: all {len(cut)} frames are silent (below {SILENCE_DB:g} dB)"
            )
        return self.features(voiced)

    def labelled(self, recording: Recording) -> tuple[NDArray[np.float32], Float]:
        """Features and directions, in the frame of the prior, of the frames that have a source."""
        if not same_places(recording.array, self.array):
            raise TytoError(
                f"{recording.name} was recorded by another array than {self.array.name}, or mounted otherwise"
            )
        there = recording.n_sources > 0
        return self.features(recording.frames()[there]), wrap(recording.azimuth[there] - self.fit.turn)

    def features(self, cut: NDArray[Any]) -> NDArray[np.float32]:
        """GCC-PHAT of frames, (n_frames, n_features)."""
        if not len(cut):
            return np.empty((0, self.gcc.n_features), np.float32)
        made = self.gcc(np.asarray(self.fit.in_order(cut), np.float32))
        return np.asarray(made, np.float32).reshape(len(cut), self.gcc.n_features)

    def places(self, azimuth: float | Sequence[float]) -> Float:
        """Directions of one or two sources in the frame of the prior, (n_sources,)."""
        try:
            places = np.atleast_1d(np.asarray(azimuth, np.float64))
        except (TypeError, ValueError):
            raise TytoError(f"azimuth must be degrees, got {azimuth!r}") from None
        if places.ndim != 1 or not 1 <= len(places) <= 2 or not np.isfinite(places).all():
            raise TytoError(f"azimuth must be degrees of one or two sources, got {azimuth!r}")
        return np.asarray(wrap(places - self.fit.turn))
