"""Recipes for simulated data sets: their rooms, speakers, noise, and how many recordings each part has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tytoalba.data.simulation.room import Room

Range = tuple[float, float]


@dataclass(frozen=True)
class Part:
    """One part of a data set: its rooms, which speakers, how many recordings, where the talkers stand."""

    name: str
    speakers: Literal["train", "valid", "test"]
    rooms: tuple[Room, ...]
    n_recordings: int
    azimuths: Range = (0.0, 360.0)
    distances: Range = (0.6, 2.2)


@dataclass(frozen=True)
class Preset:
    """A recipe for a data set. Ranges are drawn from uniformly, once per recording.

    seconds: length of a recording. two_sources: share of recordings with two talkers.
    snr: dB, talkers against all noise. sensor: share of the noise that is each microphone's own.
    tilt: slope of the ambient noise. heights: metres, talker above the array.
    level: RMS of frames with speech (full scale 1). interferer: chance of a fan, at an SNR of its own.
    speed: degrees per second at most that a talker walks around the array; 0: talkers stand still.
    talker: how directive talkers are; 1 = omnidirectional, 0.5 = cardioid.
    begins: seconds before a talker's first word. talks, pauses: seconds that a talker talks, and is then
    silent, in turn; pauses of 0: nobody falls silent for longer than between words.
    array: the built-in array to simulate, if no other is given.
    """

    name: str
    about: str
    parts: tuple[Part, ...]
    seconds: float = 4.0
    two_sources: float = 1 / 3
    separation: float = 15.0
    snr: Range = (22.0, 42.0)
    sensor: Range = (0.02, 0.1)
    tilt: Range = (0.3, 1.3)
    heights: Range = (-0.3, 0.4)
    level: Range = (0.06, 0.18)
    interferer: float = 0.0
    interferer_snr: Range = (5.0, 20.0)
    speed: float = 0.0
    talker: Range = (0.45, 0.7)
    begins: Range = (0.0, 0.0)
    talks: Range = (2.0, 4.0)
    pauses: Range = (0.0, 0.0)
    array: str = "pepper"

    def scaled(self, factor: float) -> Preset:
        """The same preset with more or fewer recordings in every part (at least one)."""
        sized = [replace(part, n_recordings=max(1, round(part.n_recordings * factor))) for part in self.parts]
        return replace(self, parts=tuple(sized))

    @property
    def n_recordings(self) -> int:
        """Recordings of all parts."""
        return sum(part.n_recordings for part in self.parts)


def _rooms(*rows: tuple[float, float, float, float]) -> tuple[Room, ...]:
    return tuple(Room((x, y, z), rt60) for x, y, z, rt60 in rows)


_TRAIN = _rooms((5.2, 4.5, 2.7, 0.42), (6.4, 5.1, 2.9, 0.55), (4.7, 4.4, 2.5, 0.33), (7.8, 5.6, 3.1, 0.65),
                (5.8, 4.6, 2.8, 0.48))  # fmt: skip
_VALID = _rooms((6.0, 4.7, 2.6, 0.40), (7.0, 4.9, 3.0, 0.58))
_TEST = _rooms((5.5, 4.9, 2.75, 0.45), (8.6, 6.2, 3.2, 0.68), (4.9, 4.6, 2.6, 0.36))

QUICK = Preset(
    "quick",
    "a small set for a first look: seconds to make, four rooms",
    (
        Part("train", "train", _TRAIN[:2], 72),
        Part("valid", "valid", _VALID[:1], 12),
        Part("test", "test", _TEST[:1], 36),
    ),
)
TWIN = Preset(
    "twin",
    "the SSLR twin: five training rooms, three unseen test rooms, other speakers in each part",
    (
        Part("train", "train", _TRAIN, 3600),
        Part("valid", "valid", _VALID, 360),
        Part("test", "test", _TEST, 1200),
        Part("human", "test", _TEST, 48, azimuths=(-24.0, 24.0), distances=(0.8, 1.8)),
    ),
)
HARD = replace(
    TWIN,
    name="hard",
    about="the twin's rooms with more noise, a fan somewhere in half of the recordings, talkers farther away",
    parts=tuple(replace(part, distances=(1.0, 3.0)) for part in TWIN.parts),
    snr=(5.0, 25.0),
    interferer=0.5,
)
PRESETS = {preset.name: preset for preset in (QUICK, TWIN, HARD)}

_TRACKING = replace(
    TWIN,
    name="tracking",
    about="talkers who come after a while, stand or walk, talk or pause: to follow them",
    seconds=12.0,
    two_sources=0.0,
    begins=(1.5, 4.0),
)
TRACKING = {
    "one": _TRACKING,
    "one walks": replace(_TRACKING, speed=40.0),
    "two": replace(_TRACKING, two_sources=1.0),
    "two walk": replace(_TRACKING, two_sources=1.0, speed=40.0),
    "two pause": replace(_TRACKING, two_sources=1.0, talks=(1.5, 3.0), pauses=(1.0, 3.0)),
    "one, fan": replace(_TRACKING, interferer=1.0, interferer_snr=(5.0, 15.0), pauses=(1.0, 3.0)),
}
"""Kinds of scenes in which talkers are to be followed, by name. Degrees per second: at most 40. The first 1.5
seconds are without a talker."""
