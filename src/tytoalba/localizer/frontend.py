"""How sound becomes what a localizer learns from: frames, features, directions as the array was built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Recording
from tytoalba.errors import AudioError, TytoError
from tytoalba.learning.prior.registry import same_ears
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import BLOCK, SILENCE_DB, frames, refuse_damaged, rms, spoken, stream_frames
from tytoalba.signal.gcc import GccPhat
from tytoalba.storage.soundfiles import Source, read_audio, stream_audio

Audio = Source | NDArray[Any]
"""A file (or one a channel, or a stream), or samples (n_mics, n_samples) at the array's rate."""
Maps = NDArray[np.float32]


class Heard(NamedTuple):
    """One frame: scores (360,) of the learner and of SRP-PHAT, and whether there was a sound at all."""

    maps: Maps
    fallback: Maps
    loud: bool


@dataclass(frozen=True)
class Ear:
    """The ear of an array. array: as it is mounted; gcc: features of the array as it was built."""

    array: MicArray
    gcc: GccPhat

    def blocks(self, audio: Audio) -> Iterator[NDArray[Any]]:
        """Sound in blocks (n_mics, any length)."""
        if not isinstance(audio, np.ndarray):
            return stream_audio(audio, self.array)
        samples = self._samples(audio)
        return (samples[:, start : start + BLOCK] for start in range(0, samples.shape[1], BLOCK))

    def batches(
        self, blocks: Iterable[NDArray[Any]], silence_db: float
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.bool_]]]:
        """Batches of consecutive frames: features of those with sound, and which these are."""
        length = self.array.frame_length
        for batch in stream_frames(blocks, length, length // 2):
            if batch.shape[1] != self.array.n_mics:
                raise AudioError(
                    f"blocks must be ({self.array.n_mics}, any length) for {self.array.name}, "
                    f"got {batch.shape[1]} channels; `audio.select_channels` picks the microphones"
                )
            refuse_damaged(batch.reshape(-1, batch.shape[-1]), "sound")
            loud = 20 * np.log10(rms(batch, axis=(1, 2)) + 1e-12) >= silence_db
            yield self.features(batch[loud]), loud

    def lesson(self, audio: Audio) -> NDArray[np.float32]:
        """Features of the frames that have something to learn from; refused where none has."""
        if isinstance(audio, np.ndarray):
            samples = self._samples(audio)
        else:
            samples = read_audio(audio, self.array).samples
        length = self.array.frame_length
        cut = frames(samples, length, length // 2)
        voiced = cut[spoken(cut)]
        if not len(voiced):
            raise AudioError(
                f"there is nothing to learn from: all {len(cut)} frames are silent (below {SILENCE_DB:g} dB)"
            )
        return self.features(voiced)

    def labelled(self, recording: Recording) -> tuple[NDArray[np.float32], Float]:
        """Features and directions, as the array was built, of the frames that have a source."""
        if not same_ears(recording.array, self.array):
            raise TytoError(
                f"{recording.name} was recorded by another array than {self.array.name}, or mounted otherwise"
            )
        there = recording.n_sources > 0
        return self.features(recording.frames()[there]), wrap(recording.azimuth[there] - self.array.yaw)

    def features(self, cut: NDArray[Any]) -> NDArray[np.float32]:
        """GCC-PHAT of frames, (n_frames, n_features)."""
        if not len(cut):
            return np.empty((0, self.gcc.n_features), np.float32)
        made = self.gcc(np.asarray(cut, np.float32))
        return np.asarray(made, np.float32).reshape(len(cut), self.gcc.n_features)

    def places(self, azimuth: float | Sequence[float]) -> Float:
        """Directions of one or two sources as the array was built, (n_sources,)."""
        try:
            places = np.atleast_1d(np.asarray(azimuth, np.float64))
        except (TypeError, ValueError):
            raise TytoError(f"azimuth must be degrees, got {azimuth!r}") from None
        if places.ndim != 1 or not 1 <= len(places) <= 2 or not np.isfinite(places).all():
            raise TytoError(f"azimuth must be degrees of one or two sources, got {azimuth!r}")
        return np.asarray(wrap(places - self.array.yaw))

    def _samples(self, audio: NDArray[Any]) -> NDArray[np.float32]:
        if audio.ndim != 2 or len(audio) != self.array.n_mics:
            raise AudioError(
                f"samples must be ({self.array.n_mics}, n_samples) at {self.array.sample_rate} Hz for "
                f"{self.array.name}, got shape {audio.shape}"
            )
        refuse_damaged(audio, "sound")
        return np.asarray(audio, np.float32)


def with_neighbours(heard: Iterable[Heard], context: int) -> Iterator[Heard]:
    """Scores averaged over the frames with sound at most `context` before or after; so many frames late."""
    held: list[Heard] = []
    done = 0  # frames of `held` that were answered
    for frame in heard:
        held.append(frame)
        if len(held) > done + context:
            yield _averaged(held, done, context)
            done += 1
            if done > context:
                held, done = held[1:], context
    for number in range(done, len(held)):
        yield _averaged(held, number, context)


def _averaged(held: list[Heard], number: int, context: int) -> Heard:
    around = [frame for frame in held[max(0, number - context) : number + context + 1] if frame.loud]
    if not held[number].loud or len(around) == 1:
        return held[number]
    maps = np.mean([frame.maps for frame in around], axis=0, dtype=np.float32)
    fallback = np.mean([frame.fallback for frame in around], axis=0, dtype=np.float32)
    return Heard(np.asarray(maps), np.asarray(fallback), True)
