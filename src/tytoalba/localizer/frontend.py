"""How sound becomes what a localizer learns from: frames, features, directions in the frame of its prior."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tytoalba.data.recording import Recording, SoundFile
from tytoalba.errors import AudioError, TytoError
from tytoalba.learning.prior.prior import Prior
from tytoalba.localizer.stream import Sound, given_samples, refuse_rate
from tytoalba.signal.alignment import Fit, fit, same_places
from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import BLOCK, SILENCE_DB, Framer, frames, levels, spoken, voiced
from tytoalba.signal.gcc import GccPhat
from tytoalba.signal.steady import SteadyNoise, Weighed
from tytoalba.storage.age import Keys
from tytoalba.storage.soundfiles import Source, read_audio, resampled_text, stream_audio

VERSIONS = (1, 2, 3)
USUAL, STEADY = 2, 3
"""1: features in float32, whose last bits depend on the CPU. 2: exact ones, the same on every machine. 3:
exact ones, too, beside the floor of a recording: steady noise from one place counts less (`SteadyNoise`)."""
AT_ONCE = 512
"""Frames whose features are in memory together."""


@dataclass(frozen=True)
class FrontEnd:
    """What lies between the sound of an array and its prior. array: as it is mounted.

    version: states keep the one that they were made with, or they would not know their lessons again.
    """

    array: MicArray
    prior: Prior
    version: int = USUAL

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
        return np.concatenate(list(self.lesson_blocks(source, sample_rate, keys)))

    def lesson_blocks(
        self,
        source: Sound,
        sample_rate: int | None = None,
        keys: Keys = None,
        varies: list[str] | None = None,
    ) -> Iterator[NDArray[np.float32]]:
        """`lesson` in blocks of about AT_ONCE frames, in memory that does not grow with the recording.

        A file is read twice: first to find the frames, then for their features. What can be read only once (a
        pipe), and samples that are given, are in memory as a whole. varies: as for `stream_audio`.
        """
        if self.version == 1:
            yield self._whole_lesson(source, sample_rate, keys)
            return
        heard = _Heard(self.array, source, sample_rate, keys, varies)
        level = np.concatenate([levels(batch) for batch in heard.batches()])
        chosen = voiced(level, self.array.n_mics * self.array.frame_length)
        if not chosen.any():
            raise AudioError(_silent(len(chosen)))
        waiting: list[NDArray[np.float32]] = []
        done, steady, found = 0, self.steady_noise(), False
        for batch in heard.batches():
            own, done = chosen[done : done + len(batch)], done + len(batch)
            if len(own) < len(batch):
                break
            waiting.append(self._heard(batch, own, steady))
            found = found or len(waiting[-1]) > 0
            if sum(map(len, waiting)) >= AT_ONCE:
                yield np.concatenate(waiting)
                waiting = []
        if done != len(chosen):
            raise AudioError("the recording changed while it was read: try again when nobody writes it")
        if not found:
            raise AudioError(
                "there is nothing to learn from: all of it is steady noise from one place, such as a fan"
            )
        if waiting:
            yield np.concatenate(waiting)

    def steady_noise(self) -> SteadyNoise | None:
        """What weighs the features of a recording, in the order of microphones of the prior."""
        return SteadyNoise(self.gcc, self.fit.order) if self.version == STEADY else None

    def _heard(
        self, batch: NDArray[Any], own: NDArray[np.bool_], steady: SteadyNoise | None
    ) -> NDArray[np.float32]:
        """Features of some of the frames of a batch, and of these only what is more than steady noise."""
        if steady is None:
            return self.features(batch[own])
        weighed = steady.add(batch)
        return self.flat(weighed.only(own & weighed.speech))

    def flat(self, weighed: Weighed) -> NDArray[np.float32]:
        """Features as `features` gives them, (n_frames, n_features)."""
        return weighed.features.reshape(-1, self.gcc.n_features)

    def _whole_lesson(self, source: Sound, sample_rate: int | None, keys: Keys) -> NDArray[np.float32]:
        """As version 1 did it: levels and features in floats, all at once."""
        if isinstance(source, np.ndarray):
            samples = given_samples(source, self.array, sample_rate)
        else:
            refuse_rate(sample_rate)
            samples = read_audio(source, self.array, keys=keys).samples
        length = self.array.frame_length
        cut = frames(samples, length, length // 2)
        chosen = cut[spoken(cut)]
        if not len(chosen):
            raise AudioError(_silent(len(cut)))
        return self.features(chosen)

    def labelled(self, recording: Recording) -> tuple[NDArray[np.float32], Float]:
        """Features and directions, in the frame of the prior, of the frames that have a source."""
        self.refuse_others(recording)
        if self.version == STEADY:
            X, azimuth = zip(*self._labelled_running(recording), strict=True)
            return np.concatenate(X), np.concatenate(azimuth)
        there = recording.n_sources > 0
        return self.features(recording.frames()[there]), wrap(recording.azimuth[there] - self.fit.turn)

    def refuse_others(self, recording: Recording) -> None:
        """Refuse recordings of other arrays."""
        if not same_places(recording.array, self.array):
            raise TytoError(
                f"{recording.name} was recorded by another array than {self.array.name}, or mounted otherwise"
            )

    def labelled_blocks(self, recording: Recording) -> Iterator[tuple[NDArray[np.float32], Float]]:
        """`labelled` in blocks of AT_ONCE frames: of a long file, little is in memory."""
        self.refuse_others(recording)
        if self.version == STEADY:
            yield from self._labelled_running(recording)
            return
        for part, cut in recording.parts(AT_ONCE):
            there = part.n_sources > 0
            yield self.features(cut[there]), wrap(part.azimuth[there] - self.fit.turn)

    def _labelled_running(self, recording: Recording) -> Iterator[tuple[NDArray[np.float32], Float]]:
        """The same beside the floor, for which all frames are heard in order."""
        steady = SteadyNoise(self.gcc, self.fit.order)
        framer, load, n_samples, n_cut = Framer(recording.frame_length, recording.hop), recording.load, 0, 0
        for block in load.blocks() if isinstance(load, SoundFile) else [load()]:
            n_samples += block.shape[1]
            for first in range(0, block.shape[1], BLOCK):
                X = self.flat(steady.add(framer.add(block[:, first : first + BLOCK])))
                ids = recording.frame_ids - n_cut
                now = np.flatnonzero((ids >= 0) & (ids < len(X)) & (recording.n_sources > 0))
                n_cut += len(X)
                yield X[ids[now]], wrap(recording.azimuth[now] - self.fit.turn)
        if n_cut <= recording.frame_ids.max(initial=-1):
            raise recording.too_short(n_samples)

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


class _Heard:
    """A recording that is gone through twice; samples, and what comes from a pipe, are kept for that."""

    def __init__(
        self,
        array: MicArray,
        source: Sound,
        sample_rate: int | None,
        keys: Keys,
        varies: list[str] | None,
    ) -> None:
        self.array, self.source, self.keys, self.varies = array, source, keys, varies
        self.again = False
        self.kept: list[NDArray[Any]] | None = None
        if isinstance(source, np.ndarray):
            self.kept = [given_samples(source, array, sample_rate)]
            own = array.sample_rate
            if varies is not None and sample_rate is not None and sample_rate != own:
                varies.append(resampled_text(sample_rate, own))
        else:
            refuse_rate(sample_rate)

    def batches(self) -> Iterator[NDArray[Any]]:
        """Its frames in batches (n, n_mics, n_samples), at least one."""
        framer = Framer(self.array.frame_length, self.array.frame_length // 2)
        for block in self._blocks():
            for first in range(0, block.shape[1], BLOCK):
                batch = framer.add(block[:, first : first + BLOCK])
                if len(batch):
                    yield batch
        framer.refuse_short()

    def _blocks(self) -> Iterable[NDArray[Any]]:
        if self.kept is not None:
            return self.kept
        varies, again = None if self.again else self.varies, self.again
        source = cast("Source", self.source)
        blocks = stream_audio(source, self.array, keys=self.keys, again=again, varies=varies)
        self.again = True
        if _readable_again(source):
            return blocks
        self.kept = list(blocks)
        return self.kept


def _readable_again(source: Any) -> bool:
    """Whether a source can be read a second time: files, and file objects that seek."""
    if isinstance(source, str | os.PathLike):
        return source != "-" and not Path(source).is_fifo()
    if isinstance(source, Sequence):
        return all(map(_readable_again, source))
    seekable = getattr(source, "seekable", None)
    return bool(seekable and seekable())


def _silent(n_frames: int) -> str:
    who = "the only frame is" if n_frames == 1 else f"all {n_frames} frames are"
    return f"there is nothing to learn from: {who} silent (below {SILENCE_DB:g} dB)"
