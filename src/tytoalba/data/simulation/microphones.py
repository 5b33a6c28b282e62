"""A device as it might have been built, and what its recorder makes of the sound at its microphones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from tytoalba.data.simulation.room import Sound, loudness
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray

CEILING = 0.98
"""Largest sample after the level is set."""
OWN_PATTERN = 0.03
"""Microphone patterns closer than this to the array file's are not drawn: a prior that is tested on
simulations with the file's own pattern was not trained with exactly that."""
CORNER, TOP = (20.0, 100.0), (3400.0, 8000.0)
"""Hz: corners of the microphones' high-pass, and of recorders with a low-pass."""
LEVEL = (0.003, 0.2)
"""RMS of a recording."""
TOO_LOUD = (1.5, 6.0)
"""Factor by which clipped recordings are too loud."""

Limits = tuple[float, float]


@dataclass(frozen=True)
class Conditions:
    """How far a scene may be from a device as planned in a quiet room, with talkers at its height.

    shift: mm, standard deviation of where microphones are; facing: degrees, of where they point.
    speed: of sound, m/s. far: metres to a talker. rise: degrees, standard deviation of its elevation.
    steep: share of talkers that are anywhere up to 60 degrees instead.
    close, hard, local: shares of scenes with a reflector close by, with much noise, with noise from a place.
    snr: dB of scenes without much noise. sensors: share of the noise that sensors make.
    gain: dB at most; tilt, turn: dB and degrees per octave, standard deviations; corner: share by which the
    high-pass differs from one microphone to the next.
    muffled, clipped: shares of recorders with a low-pass, and of recordings that clip.
    """

    shift: Limits = (0.5, 2.0)
    facing: float = 10.0
    speed: Limits = (331.0, 355.0)
    far: Limits = (0.3, 4.0)
    rise: float = 12.0
    steep: float = 0.15
    close: float = 0.3
    hard: float = 0.25
    local: float = 0.3
    snr: Limits = (10.0, 42.0)
    sensors: Limits = (0.01, 1.0)
    gain: float = 3.0
    tilt: float = 0.5
    turn: float = 2.0
    corner: float = 0.15
    muffled: float = 0.25
    clipped: float = 0.08


ANY = Conditions()
CALM = Conditions(
    shift=(0.0, 0.4),
    facing=3.0,
    speed=(339.0, 349.0),
    far=(0.4, 3.0),
    rise=8.0,
    steep=0.0,
    close=0.1,
    hard=0.15,
    local=0.1,
    snr=(15.0, 42.0),
    sensors=(0.01, 0.3),
    gain=0.7,
    tilt=0.1,
    turn=0.5,
    corner=0.03,
    muffled=0.1,
    clipped=0.02,
)
"""A device well built, in a room that is not loud, among people about as high as it is."""


def varied(
    array: MicArray, rng: np.random.Generator, conditions: Conditions = ANY
) -> tuple[MicArray, MicArray]:
    """An array as it might have been built, and one with its pattern for sound from everywhere."""
    shift = rng.normal(0.0, rng.uniform(*conditions.shift) / 1000.0, (array.n_mics, 3))
    speed = rng.uniform(*conditions.speed)
    position = (np.asarray(array.positions) + shift) * (SPEED_OF_SOUND / speed)
    pattern = float(rng.uniform(0.6, 1.0))
    while abs(pattern - array.pattern) < OWN_PATTERN and array.pattern < 1:
        pattern = float(rng.uniform(0.6, 1.0))
    facing = np.broadcast_to(array.facing, array.n_mics) + rng.normal(0.0, conditions.facing, array.n_mics)
    if array.pattern == 1 and rng.random() < 0.5:  # boards and cases shade sound from behind a microphone
        outward = np.rad2deg(np.arctan2(position[:, 1], position[:, 0]))
        facing = outward + rng.normal(0.0, 20.0, array.n_mics)
    built = replace(
        array, positions=tuple(map(tuple, position)), pattern=pattern, facing=tuple(facing.tolist())
    )
    return built, replace(array, pattern=round(pattern, 1))


def recorded(array: MicArray, sound: Sound, rng: np.random.Generator, conditions: Conditions = ANY) -> Sound:
    """What a recorder makes of sound: each microphone's gain, spectrum, phase; bandwidth, level, 16 bits."""
    n = sound.shape[1]
    n_fft = next_fast_len(n, real=True)
    hertz = np.fft.rfftfreq(n_fft, 1 / array.sample_rate)
    octave = np.log2(np.maximum(hertz, 60.0) / 1000.0)
    shape = (array.n_mics, 1)
    gain = rng.uniform(-conditions.gain, conditions.gain, shape)  # dB
    gain = gain + rng.normal(0.0, conditions.tilt, shape) * octave
    # Hz: a high-pass turns phase low down, in each microphone a little differently
    corner = np.exp(rng.uniform(*np.log(CORNER)) + rng.normal(0.0, conditions.corner, shape))
    turn = np.arctan2(corner, np.maximum(hertz, 1.0))
    turn = turn + rng.normal(0.0, np.deg2rad(conditions.turn), shape) * octave
    size = 10 ** (gain / 20) / np.sqrt(1 + (corner / np.maximum(hertz, 1.0)) ** 2)
    response = (size * np.exp(1j * turn)).astype(np.complex64)
    if rng.random() < conditions.muffled:
        top = rng.uniform(*TOP)
        response /= np.sqrt(1 + (hertz / top) ** 12).astype(np.float32)
    x = irfft(rfft(sound, n_fft, axis=-1) * response, n_fft, axis=-1)[:, :n]
    level = np.exp(rng.uniform(*np.log(LEVEL)))
    x *= min(level / loudness(x), CEILING / float(np.abs(x).max()))
    if rng.random() < conditions.clipped:
        x *= rng.uniform(*TOO_LOUD) * CEILING / float(np.abs(x).max())
    return np.asarray(np.clip(np.round(x * 32768.0), -32768, 32767) / 32768.0, np.float32)
