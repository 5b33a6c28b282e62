"""The one way from sound to directions: frames, maps, an average over neighbours, a decision per frame.

Every method runs through `Stream`: SRP-PHAT, MUSIC, a prior, and a `Localizer`. A method is a `Finder`. Sound
may come in blocks of any length; memory does not grow with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import AudioError, TytoError
from tytoalba.learning.prior.calibration import Calibration
from tytoalba.signal.angles import Float
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import BLOCK, SILENCE_DB, Framer, refuse_damaged, resample, rms
from tytoalba.signal.neighbours import Mean, Neighbours
from tytoalba.signal.steady import SteadyNoise, Weighed
from tytoalba.storage.age import Keys
from tytoalba.storage.soundfiles import Source, stream_audio

Sources = int | Literal["auto"]
Sound = Source | NDArray[Any]
"""A recording (a path, one mono file per channel, a binary file object) or samples (n_mics, n_samples)."""
Blocks = Iterator[NDArray[Any]]
"""Sound as it comes, (n_mics, any length)."""


@dataclass(frozen=True)
class Located:
    """Where the sound of one frame comes from.

    Parameters
    ----------
    time : float
        Middle of the frame, in seconds.
    azimuth : tuple of float
        Degrees in [0, 360), strongest first; empty in silence, and where `unsure`.
    score : tuple of float
        Height of the method's map at each azimuth. For SRP-PHAT 1 is a lone plane wave and about 0 is
        diffuse noise. Scores of different methods cannot be compared.
    probability : tuple of float or None
        Chance of each azimuth to be within 5 degrees of a source, calibrated on simulations; None for
        methods that do not know it (srp, music).
    unsure : bool
        There is sound, but no direction is likely enough to be told. (No direction and not unsure: silence.)

    Examples
    --------
    >>> found = Located(0.085, (40.0, 200.0), (0.9, 0.4), (0.95, 0.6))
    >>> found.n_sources
    2
    """

    time: float
    azimuth: tuple[float, ...]
    score: tuple[float, ...]
    probability: tuple[float, ...] | None = None
    unsure: bool = False

    @property
    def n_sources(self) -> int:
        """How many directions were found."""
        return len(self.azimuth)


class Heard(NamedTuple):
    """A frame before anything is decided: what directions, and tracks over time, are made of.

    time: its middle, in seconds. level: dB of full scale. maps: (n_maps, 360), as a `Finder` makes them,
    averaged over neighbours; None in silence. n: frames that were averaged.
    """

    time: float
    level: float
    maps: Float | None
    n: int = 1


class Found(NamedTuple):
    """Decisions on frames: degrees, heights of the map and chances, each (n_frames, n), NaN for none."""

    azimuth: Float
    score: Float
    probability: Float | None


class Finder(Protocol):
    """What finds directions in the frames of an array."""

    @property
    def array(self) -> MicArray:
        """The array, as it is mounted."""

    @property
    def calibrated(self) -> bool:
        """Whether `decide` gives probabilities."""

    def maps(self, frames: NDArray[np.float32], weighed: Weighed | None = None) -> Float:
        """What is averaged over neighbours: (n_frames, n_mics, n_samples) -> (n_frames, n_maps, 360).

        weighed: what `steady_noise` made of these frames.
        """

    def steady_noise(self) -> SteadyNoise | None:
        """What tells steady noise from the rest of sound that runs; None where it is located, too."""

    def decide(self, maps: Float, n_averaged: NDArray[np.intp] | int = 1) -> Found:
        """Directions in maps (n_frames, n_maps, 360), as the array is mounted.

        n_averaged: frames behind each map, (n_frames,), or one number.
        """

    def scores(self, maps: Float) -> Float:
        """One score per direction, as the array is mounted: (n_frames, n_maps, 360) -> (n_frames, 360).

        -inf where a direction is the mirror image of another.
        """

    @property
    def counting(self) -> Sequence[Calibration]:
        """How far the highest peak of the scores, and the next, are sources; empty where nobody knows."""


class Stream:
    """Sound in, directions out, as soon as their frames are complete.

    context: neighbouring frames on each side whose maps are averaged; answers come that many frames later.
    at_least: directions with a smaller probability are left out. silence_db: dB of full scale below which a
    frame has no direction.
    """

    def __init__(
        self, finder: Finder, *, context: int = 0, at_least: float = 0.0, silence_db: float = SILENCE_DB
    ) -> None:
        if context < 0:
            raise TytoError(f"context must be 0 or more frames, got {context}")
        if not 0 <= at_least <= 1:
            raise TytoError(f"at_least must be a chance from 0 to 1, got {at_least}")
        if at_least and not finder.calibrated:
            raise TytoError(
                "at_least needs a method that knows its chance to be right: use the method prior or a "
                "Localizer; SRP-PHAT, MUSIC and priors that were never calibrated do not know it"
            )
        self._finder, self._at_least, self._silence_db = finder, at_least, silence_db
        self._framer = Framer(finder.array.frame_length, finder.array.frame_length // 2)
        self._neighbours = Neighbours(context)
        self._steady = finder.steady_noise()
        self._levels: list[float] = []  # of the frames that wait for neighbours
        self._n_heard = self._start = 0

    @property
    def finder(self) -> Finder:
        """What makes the maps, and decides."""
        return self._finder

    def use(self, finder: Finder) -> None:
        """Go on with another finder of the same array, whose maps are of the same kind; nothing is lost."""
        if (finder.array, finder.calibrated) != (self._finder.array, self._finder.calibrated):
            raise TytoError("sound that runs goes on with a finder of the same array and kind only")
        if (finder.steady_noise() is None) != (self._steady is None):
            raise TytoError("sound that runs goes on with a finder that ignores steady noise alike")
        self._finder = finder

    def feed(self, block: NDArray[Any]) -> list[Located]:
        """Take a block (n_mics, any length); give the frames that are now complete.

        A block that cannot be right is refused at once and changes nothing.
        """
        return self.decide(self.hear(block))

    def finish(self) -> list[Located]:
        """The frames that waited for neighbours. The next block begins a new recording."""
        return self.decide(self.rest())

    def run(self, blocks: Iterable[NDArray[Any]]) -> Iterator[Located]:
        """All of a recording that comes in blocks; AudioError where it is too short for one frame."""
        for block in blocks:
            yield from self.feed(block)
        self._framer.refuse_short()
        yield from self.finish()

    def hear(self, block: NDArray[Any]) -> list[Heard]:
        """As `feed`, before anything is decided."""
        checked = checked_samples(block, self._finder.array, "a block")
        ready: list[Heard] = []
        for start in range(0, checked.shape[1], BLOCK):
            cut = self._framer.add(checked[:, start : start + BLOCK])
            ready += self._heard(self._neighbours.add(self._maps(cut)))
        return ready

    def rest(self) -> list[Heard]:
        """As `finish`, before anything is decided."""
        ready = self.restart(0)
        if self._steady is not None:
            self._steady.clear()
        return ready

    def restart(self, start: int) -> list[Heard]:
        """What comes next begins at this sample, and no frame joins it to what came before.

        For sound with a gap, beside the same steady noise. Gives the frames that waited for neighbours.
        """
        if start < 0:
            raise TytoError(f"start must be 0 samples or more, got {start}")
        ready = self._heard(self._neighbours.rest())
        self._framer.clear()
        self._n_heard, self._start = 0, start
        return ready

    def run_heard(self, blocks: Iterable[NDArray[Any]]) -> Iterator[Heard]:
        """As `run`, before anything is decided."""
        for block in blocks:
            yield from self.hear(block)
        self._framer.refuse_short()
        yield from self.rest()

    def _maps(self, frames: NDArray[np.float32]) -> list[Float | None]:
        """Maps (n_maps, 360) of each frame, None for a silent one."""
        if not len(frames):
            return []
        level = 20 * np.log10(rms(frames, axis=(1, 2)) + 1e-12)
        self._levels += level.tolist()
        loud, weighed = level >= self._silence_db, None
        if self._steady is not None:
            weighed = self._steady.add(frames)  # silent ones, too: the floor is lower there
            loud &= weighed.speech
            weighed = weighed.only(loud)
        maps = iter(self._finder.maps(frames[loud], weighed) if loud.any() else ())
        return [next(maps) if is_loud else None for is_loud in loud]

    def _heard(self, frames: Sequence[Mean]) -> list[Heard]:
        levels, self._levels = self._levels[: len(frames)], self._levels[len(frames) :]
        return [Heard(self._time(), level, *mean) for level, mean in zip(levels, frames, strict=True)]

    def decide(self, frames: Sequence[Heard]) -> list[Located]:
        """Directions in frames that were heard."""
        loud = [frame.maps for frame in frames if frame.maps is not None]
        n = np.array([frame.n for frame in frames if frame.maps is not None])
        rows = self._rows(self._finder.decide(np.stack(loud), n)) if loud else iter(())
        silent = (), (), () if self._finder.calibrated else None, False
        return [Located(frame.time, *(silent if frame.maps is None else next(rows))) for frame in frames]

    def _time(self) -> float:
        array, number = self._finder.array, self._n_heard
        self._n_heard += 1
        first = self._start + number * (array.frame_length // 2)
        return (first + array.frame_length / 2) / array.sample_rate

    def _rows(self, found: Found) -> Iterator[tuple[tuple[float, ...], tuple[float, ...], Any, bool]]:
        for i, azimuth in enumerate(found.azimuth):
            keep = np.isfinite(azimuth)
            chance = None
            if found.probability is not None:
                keep &= found.probability[i] >= self._at_least
                chance = _rounded(found.probability[i][keep])
            told = tuple(azimuth[keep].tolist())
            yield told, _rounded(found.score[i][keep]), chance, not told


def sound_blocks(
    source: Sound | Blocks, array: MicArray, sample_rate: int | None = None, keys: Keys = None
) -> Iterable[NDArray[Any]]:
    """A recording in blocks (n_mics, any length) at the array's rate. sample_rate: Hz, of given samples."""
    if isinstance(source, np.ndarray):
        return [given_samples(source, array, sample_rate)]
    refuse_rate(sample_rate)
    if isinstance(source, Iterator) and not hasattr(source, "read"):
        return source
    return stream_audio(cast("Source", source), array, keys=keys)


def given_samples(
    samples: NDArray[Any], array: MicArray, sample_rate: int | None = None
) -> NDArray[np.float32]:
    """Samples (n_mics, n_samples) at the array's rate; sample_rate: Hz that they come at, if another."""
    refuse_damaged(checked_samples(samples, array, "sound"), "sound")
    own = array.sample_rate
    return np.asarray(resample(samples, own if sample_rate is None else sample_rate, own), np.float32)


def refuse_rate(sample_rate: int | None) -> None:
    """Refuse a sample rate for what says its own."""
    if sample_rate is not None:
        raise TytoError("sample_rate is for samples in memory: a file says its own, leave it out")


def checked_samples(samples: NDArray[Any], array: MicArray, what: str) -> NDArray[np.float32]:
    """Samples (n_mics, any length) as float32; anything else is an AudioError that says what to do."""
    shape = np.shape(samples)
    if len(shape) != 2 or shape[0] != array.n_mics:
        remedy = ""
        if len(shape) == 2 and shape[1] == array.n_mics:
            remedy = "; channels come first: transpose it (`block.T`)"
        elif len(shape) == 2 and shape[0] > array.n_mics:
            remedy = "; `block[list(array.channels)]` picks the microphones"
        raise AudioError(
            f"{what} must be ({array.n_mics}, n_samples) at {array.sample_rate} Hz for {array.name}, "
            f"got shape {shape}{remedy}"
        )
    if shape[1]:
        refuse_damaged(samples, what)
    return np.asarray(samples, np.float32)


def _rounded(values: Float) -> tuple[float, ...]:
    """As one would print it."""
    return tuple(np.round(values.astype(np.float64), 4).tolist())
