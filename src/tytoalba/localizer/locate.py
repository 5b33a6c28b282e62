"""From a recording to directions, with any method or with a localizer of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tytoalba.errors import TytoError
from tytoalba.learning.prior.calibration import Calibration, evidence
from tytoalba.learning.prior.confidence import MOST
from tytoalba.learning.prior.decisions import count_sources
from tytoalba.learning.prior.registry import PriorMaps
from tytoalba.localizer.stream import Blocks, Found, Sound, Sources, Stream, sound_blocks
from tytoalba.signal.angles import Float, decode_peaks, decode_threshold, to_class
from tytoalba.signal.array import MicArray, load_array
from tytoalba.signal.audio import SILENCE_DB
from tytoalba.signal.gcc import SPEECH_BAND, Band
from tytoalba.signal.music import Music
from tytoalba.signal.srp import SrpPhat
from tytoalba.signal.steady import SteadyNoise, Weighed
from tytoalba.storage.age import Keys

if TYPE_CHECKING:
    from tytoalba.localizer.localizer import Localizer
    from tytoalba.localizer.stream import Located

Mapper = Callable[[Float], Float]
"""Frames (n_frames, n_mics, n_samples) to maps (n_frames, n_directions)."""
RELATIVE_HEIGHT = 0.7
"""With an unknown number of sources, a peak counts from this share of the frame's highest."""

METHODS: dict[str, Callable[[MicArray, int, Band, int], Mapper]] = {
    "srp": lambda array, n_samples, band, _: SrpPhat(array, n_samples, band),
    "music": lambda array, n_samples, band, n_sources: Music(array, n_samples, band, n_sources),
    "prior": lambda array, n_samples, *_: PriorMaps(array, n_samples),  # has own bands
}
"""Methods by name: (array, samples per frame, band, sources expected) -> map of frames."""


def locate(
    source: Sound | Blocks,
    array: MicArray | Localizer | str | Path,
    method: str | None = None,
    *,
    n_sources: Sources = 1,
    context: int = 0,
    at_least: float = 0.0,
    taught_only: bool = False,
    band: Band | None = None,
    silence_db: float = SILENCE_DB,
    ignore_steady: bool = False,
    sample_rate: int | None = None,
    keys: Keys = None,
) -> Iterator[Located]:
    """Tell where the sound of a recording comes from, frame by frame.

    A frame is 171 ms long and they follow each other every 85 ms. Memory does not grow with the recording;
    from a pipe each frame is answered as soon as its last sample has arrived. An array on a line cannot tell
    front from back and reports the direction at its front.

    Parameters
    ----------
    source : path, list of paths, binary file object or array
        A recording with all channels; or one mono file per microphone, in order; or "-" for standard input;
        or samples (n_mics, n_samples), floats in [-1, 1]; or an iterator of such blocks, as they come.
    array : MicArray, str, Path or Localizer
        The array that recorded it: an array, the name of a built-in one, its TOML file, or a localizer.
    method : {"srp", "music", "prior"}, optional
        "srp" if not given. "prior" was trained on simulations of the array. None with a `Localizer`.
    n_sources : int or "auto"
        How many sources to report per frame. "prior" and a `Localizer` find up to three with "auto", and say
        `Located.unsure` where there is sound and no direction is likely. A `Localizer` reports 3 at most.
    context : int
        Frames on each side whose maps are averaged with a frame's own: surer for what stands still, worse
        for what moves. Answers come that many frames later.
    at_least : float
        Leave out directions whose probability is smaller, 0 to 1. Needs probabilities: "prior" or a
        `Localizer`.
    taught_only : bool
        Leave out directions more than 10 degrees from all that a `Localizer` was taught.
    band : tuple of float, optional
        Lowest and highest frequency in Hz, for "srp" and "music"; 100 to 8000 if not given.
    silence_db : float
        Frames below this level, in dB of full scale, have no direction.
    ignore_steady : bool
        For "srp", "music" and "prior": steady noise from one place, such as a fan, is taken for silence, from
        one second on; frequencies in which it is as loud as speech count less. A `Localizer` knows for
        itself: see `Localizer.new`.
    sample_rate : int, optional
        Hz, of samples in memory that are not at the array's rate; they are resampled.
    keys : sequence of identities, optional
        What opens a sealed recording.

    Returns
    -------
    iterator of Located
        One for each frame.

    Raises
    ------
    AudioError
        The recording cannot be used: missing, damaged, too short, the wrong channels.
    TytoError
        Options that do not fit each other; an array without a prior.

    Examples
    --------
    >>> from tytoalba import load_array, locate
    >>> array = load_array("respeaker-usb-4")
    >>> noise = np.random.default_rng(0).standard_normal(16000)
    >>> spectrum, hertz = np.fft.rfft(noise), np.fft.rfftfreq(16000, 1 / 16000)
    >>> shift = np.exp(-2j * np.pi * hertz * array.arrival_times(130.0)[:, None])
    >>> wave = 0.1 * np.fft.irfft(spectrum * shift)  # one second from 130 degrees, (4, 16000)
    >>> found = list(locate(wave, "respeaker-usb-4"))
    >>> len(found), found[0].azimuth, found[0].probability
    (10, (130.0,), None)
    >>> next(locate(wave, array, "prior", at_least=0.5)).n_sources
    1
    """
    stream = new_stream(
        array,
        method,
        n_sources=n_sources,
        context=context,
        at_least=at_least,
        taught_only=taught_only,
        band=band,
        silence_db=silence_db,
        ignore_steady=ignore_steady,
    )
    return stream.run(sound_blocks(source, stream.finder.array, sample_rate, keys))


def new_stream(
    array: MicArray | Localizer | str | Path,
    method: str | None = None,
    *,
    n_sources: Sources = 1,
    context: int = 0,
    at_least: float = 0.0,
    taught_only: bool = False,
    band: Band | None = None,
    silence_db: float = SILENCE_DB,
    ignore_steady: bool = False,
) -> Stream:
    """What `locate` runs on, with its options."""
    if isinstance(array, MicArray | str | Path):
        mics = load_array(array)
        if taught_only:
            raise TytoError("taught_only needs a Localizer: a method was never taught")
        finder = MapFinder(mics, method or "srp", n_sources, band, ignore_steady)
        return Stream(finder, context=context, at_least=at_least, silence_db=silence_db)
    if method is not None or band is not None:
        raise TytoError("a Localizer has its own method and bands: leave out method and band")
    if ignore_steady:
        raise TytoError(
            "whether a Localizer ignores steady noise is settled when it is made (`Localizer.new`, "
            "`tyto new --ignore-steady`): leave out ignore_steady"
        )
    return array.new_stream(
        n_sources=n_sources,
        context=context,
        at_least=at_least,
        taught_only=taught_only,
        silence_db=silence_db,
    )


@dataclass(frozen=True)
class MapFinder:
    """Peaks in the map of a method. band: Hz, None for the usual one. ignore_steady: see `locate`."""

    array: MicArray
    method: str = "srp"
    n_sources: Sources = 1
    band: Band | None = None
    ignore_steady: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise TytoError(f"no method called {self.method!r}; known: {', '.join(METHODS)}")
        if self.n_sources != "auto" and self.n_sources < 1:
            raise TytoError(f"n_sources must be at least 1 or 'auto', got {self.n_sources}")
        if self.method == "prior" and self.band is not None:
            raise TytoError("a prior has its own bands: leave out the band")
        _ = self._mapper  # says now what is wrong

    @cached_property
    def _mapper(self) -> Mapper:
        expected = min(2 if self.n_sources == "auto" else self.n_sources, self.array.n_mics - 1)
        return METHODS[self.method](self.array, self.array.frame_length, self.band or SPEECH_BAND, expected)

    @property
    def calibrated(self) -> bool:
        """Whether it gives probabilities."""
        return isinstance(self._mapper, PriorMaps)

    def maps(self, frames: NDArray[np.float32], weighed: Weighed | None = None) -> Float:
        """Maps of frames, (n_frames, 1, 360); of a prior those of the network and lone waves, two of each."""
        mapper = self._mapper
        if isinstance(mapper, PriorMaps):
            return mapper.both(frames) if weighed is None else mapper.both_of(weighed.features)
        if weighed is None:
            return mapper(frames)[:, None]
        if isinstance(mapper, Music):
            return mapper(frames, weighed.weights)[:, None]
        assert isinstance(mapper, SrpPhat)
        return mapper.of_gcc(weighed.features)[:, None]

    def steady_noise(self) -> SteadyNoise | None:
        """What tells steady noise from the rest, where it is ignored."""
        if not self.ignore_steady:
            return None
        mapper = self._mapper
        if isinstance(mapper, PriorMaps):
            return mapper.steady_noise()
        gcc = SrpPhat(self.array, self.array.frame_length, self.band or SPEECH_BAND).gcc
        return SteadyNoise(replace(gcc, exact=True))

    def decide(self, maps: Float, n_averaged: NDArray[np.intp] | int = 1) -> Found:
        """The highest peaks of each map, with the prior's chance of each to be right."""
        mapper = self._mapper
        if not isinstance(mapper, PriorMaps):
            return Found(*self._peaks(maps[:, 0]), None)
        once, sure = self.array.without_images(mapper.mounted(maps.max(axis=1))), mapper.prior.confidence
        if self.n_sources == "auto":
            found = count_sources(once, sure, n_averaged)
            return Found(found.azimuth, self._heights(once, found.azimuth), found.probability)
        azimuth, score = self._peaks(once)
        law = sure.asked[min(self.n_sources, MOST) - 1]
        return Found(azimuth, score, law.probability(evidence(once, azimuth), n_averaged))

    def scores(self, maps: Float) -> Float:
        """The map of the method, (n_frames, 360); of a prior that of the network, which knows speech."""
        mapper = self._mapper
        one = mapper.mounted(maps[:, 0]) if isinstance(mapper, PriorMaps) else maps[:, 0]
        return self.array.without_images(one)

    @property
    def counting(self) -> Sequence[Calibration]:
        """How far peaks of a prior's scores are sources; nothing for other methods."""
        mapper = self._mapper
        return mapper.counting if isinstance(mapper, PriorMaps) else ()

    def _peaks(self, maps: Float) -> tuple[Float, Float]:
        """Degrees and heights (n_frames, n) of peaks in maps (n_frames, 360), NaN for none."""
        maps = self.array.without_images(maps)
        if self.n_sources == "auto":
            height = np.maximum(maps.max(axis=1, keepdims=True), 1e-9)
            most = self.array.n_mics - 1
            found = decode_threshold(maps / height, RELATIVE_HEIGHT, neighbourhood=15.0, max_sources=most)
        else:
            found = decode_peaks(maps, self.n_sources)
        there = np.isfinite(found)
        height = self._heights(maps, found)
        peak = np.isfinite(height)  # a mirror image is none: the best peak is repeated
        azimuth, height = np.where(peak, found, found[:, :1]), np.where(peak, height, height[:, :1])
        return azimuth, np.where(there, height, np.nan)

    def _heights(self, maps: Float, azimuth: Float) -> Float:
        """Heights of maps at directions (n_frames, n)."""
        index = to_class(np.where(np.isfinite(azimuth), azimuth, 0.0), maps.shape[1])
        return np.take_along_axis(maps, index, axis=1)
