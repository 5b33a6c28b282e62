"""From a recording to directions: frame by frame, in bounded memory, with any method that gives a map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tytoalba.learning.prior.registry import PriorMaps
from tytoalba.signal.angles import Float, decode_peaks, decode_threshold
from tytoalba.signal.array import MicArray
from tytoalba.signal.audio import SILENCE_DB, rms, stream_frames
from tytoalba.signal.gcc import SPEECH_BAND, Band
from tytoalba.signal.music import Music
from tytoalba.signal.srp import SrpPhat
from tytoalba.storage.soundfiles import Source, stream_audio

Mapper = Callable[[Float], Float]
"""Frames (n_frames, n_mics, n_samples) to maps (n_frames, n_directions)."""
Sources = int | Literal["auto"]
RELATIVE_HEIGHT = 0.7
"""With an unknown number of sources, a peak counts from this share of the frame's highest."""

METHODS: dict[str, Callable[[MicArray, int, Band, int], Mapper]] = {
    "srp": lambda array, n_samples, band, _: SrpPhat(array, n_samples, band),
    "music": lambda array, n_samples, band, n_sources: Music(array, n_samples, band, n_sources),
    "prior": lambda array, n_samples, _, n_sources: PriorMaps(array, n_samples, n_sources),  # has own bands
}
"""Localizers by name: (array, samples of a frame, band, sources expected) -> map of frames."""


@dataclass(frozen=True)
class Located:
    """Where a frame's sound comes from.

    time: seconds, middle of the frame. azimuth: degrees, strongest first, none in silence.
    confidence: height of the map there, 1 for a lone plane wave, about 0 for diffuse noise.
    """

    time: float
    azimuth: tuple[float, ...]
    confidence: tuple[float, ...]

    @property
    def n_sources(self) -> int:
        """How many were found."""
        return len(self.azimuth)


def locate(
    source: Source,
    array: MicArray,
    method: str = "srp",
    *,
    n_sources: Sources = 1,
    band: Band = SPEECH_BAND,
    silence_db: float = SILENCE_DB,
) -> Iterator[Located]:
    """Directions in a recording (a file, one file a channel, or a stream), a frame at a time.

    n_sources: how many to report, or "auto". band: Hz. silence_db: dB of full scale below which a frame
    is silent. An array that cannot tell front from back reports the direction at its front.
    """
    frames = stream_frames(stream_audio(source, array), array.frame_length, array.frame_length // 2)
    yield from locate_frames(frames, array, method, n_sources=n_sources, band=band, silence_db=silence_db)


def locate_frames(
    batches: Iterable[NDArray[np.float32]],
    array: MicArray,
    method: str = "srp",
    *,
    n_sources: Sources = 1,
    band: Band = SPEECH_BAND,
    silence_db: float = SILENCE_DB,
) -> Iterator[Located]:
    """Directions in consecutive frames, given as batches (n_frames, n_mics, array.frame_length)."""
    if method not in METHODS:
        raise ValueError(f"no method called {method!r}; known: {', '.join(METHODS)}")
    if n_sources != "auto" and n_sources < 1:
        raise ValueError(f"n_sources must be at least 1 or 'auto', got {n_sources}")
    most = array.n_mics - 1 if n_sources == "auto" else n_sources
    expected = 2 if n_sources == "auto" else n_sources
    expected = min(expected, array.n_mics - 1)
    mapper = METHODS[method](array, array.frame_length, band, expected)
    hop, number = array.frame_length // 2, 0
    for batch in batches:
        loud = 20 * np.log10(rms(batch, axis=(1, 2)) + 1e-12) >= silence_db
        for is_loud, (azimuth, confidence) in zip(
            loud, _directions(array.heard_once(mapper(batch)), n_sources, most), strict=True
        ):
            time = (number * hop + array.frame_length / 2) / array.sample_rate
            number += 1
            if not is_loud:
                yield Located(time, (), ())
                continue
            height = np.round(confidence.astype(np.float64), 4)
            yield Located(time, tuple(azimuth.tolist()), tuple(height.tolist()))


def _directions(maps: Float, n_sources: Sources, most: int) -> Iterator[tuple[Float, Float]]:
    if n_sources == "auto":
        height = np.maximum(maps.max(axis=1, keepdims=True), 1e-9)
        found = decode_threshold(maps / height, RELATIVE_HEIGHT, neighbourhood=15.0, max_sources=most)
    else:
        found = decode_peaks(maps, n_sources)
    step = 360.0 / maps.shape[1]
    for row, azimuth in zip(maps, found, strict=True):
        azimuth = azimuth[np.isfinite(azimuth)]
        height = row[np.rint(azimuth / step).astype(np.intp) % len(row)]
        peak = np.isfinite(height)  # a mirror image is none: the best peak is repeated
        yield np.where(peak, azimuth, azimuth[:1]), np.where(peak, height, height[:1])
