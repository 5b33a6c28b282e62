"""Sound in rooms, simulated: image sources early, an isotropic tail late, diffuse noise.

A response is image sources up to order 6 (a directive talker, directional microphones) that fade, after
the mixing time, into noise with the level and decay that room acoustics gives the late field and with the
coherence between microphones of sound from everywhere. It costs about 10 ms instead of the seconds of a
full image-source model. Units: metres, seconds, Hz; a talker's direct sound has gain 1 at 1 m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len
from scipy.signal import oaconvolve

from tytoalba.signal.angles import Float
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray, unit_vector
from tytoalba.signal.audio import rms

Vector = NDArray[np.float64]
Sound = NDArray[np.float32]
ORDER = 6
MIXING_TIME = (0.030, 0.045)
"""Seconds over which image sources hand over to the tail."""
HALF_TAPS = 16
"""Half length of the windowed sinc that delays by fractions of a sample."""
TREBLE = 1500.0
"""Hz above which a room's tail may ring for another time."""
DECAY = 13.8
"""ln(10^6): a sound decays by exp(-DECAY t / rt60) in energy."""


@dataclass(frozen=True)
class Room:
    """A shoebox room: length, width, height in metres, and its reverberation time in seconds.

    walls: absorption of each wall (x = 0, x = length, y = 0, ... ceiling), if they differ; see `with_walls`.
    treble: how long the tail above TREBLE rings, as a share of rt60 (carpets and curtains take it away).
    """

    size: tuple[float, float, float]
    rt60: float
    walls: tuple[float, ...] = ()
    treble: float = 1.0

    def __post_init__(self) -> None:
        if min(self.size) <= 0 or self.rt60 <= 0 or self.treble <= 0:
            raise ValueError(f"a room needs positive sizes and reverberation time, got {self}")
        if self.absorption >= 1:
            raise ValueError(f"no absorption is enough for rt60 = {self.rt60} s in a room of {self.size} m")
        if self.walls and (len(self.walls) != 6 or not all(0 < a < 1 for a in self.walls)):
            raise ValueError(f"a room has six walls that absorb between 0 and 1, got {self.walls}")

    @classmethod
    def with_walls(
        cls, size: tuple[float, float, float], walls: Sequence[float], treble: float = 1.0
    ) -> Room:
        """A room whose reverberation time follows from what its walls absorb (Sabine)."""
        x, y, z = size
        area = np.repeat([y * z, x * z, x * y], 2) @ np.asarray(walls)
        return cls(size, float(0.161 * x * y * z / area), tuple(float(a) for a in walls), treble)

    @property
    def absorption(self) -> float:
        """Mean absorption coefficient of its walls (Sabine)."""
        return self.absorption_area / self._surface

    @property
    def absorption_area(self) -> float:
        """Equivalent absorption area in square metres (Sabine)."""
        x, y, z = self.size
        return 0.161 * x * y * z / self.rt60

    @property
    def _surface(self) -> float:
        x, y, z = self.size
        return 2 * (x * y + x * z + y * z)

    def contains(self, point: Vector, margin: float) -> bool:
        """Whether a point is inside, at least `margin` metres from every wall."""
        return bool((point >= margin).all() and (point <= np.asarray(self.size) - margin).all())


@dataclass(frozen=True)
class Placement:
    """Where the array stands in a room: centre in metres, and where its front points (degrees)."""

    centre: tuple[float, float, float]
    heading: float = 0.0

    def to_room(self, vectors: Vector) -> Vector:
        """Directions or offsets of the array's frame, (..., 3), in the room's."""
        turn = np.deg2rad(self.heading)
        c, s = np.cos(turn), np.sin(turn)
        return np.asarray(vectors @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))


def room_response(
    room: Room,
    array: MicArray,
    placement: Placement,
    source: Vector,
    rng: np.random.Generator,
    *,
    facing: Vector | None = None,
    talker_pattern: float = 0.7,
    scatter: float = 0.0,
    late_array: MicArray | None = None,
) -> Sound:
    """Impulse responses from a talker to each microphone, (n_mics, n_samples), rt60 long.

    source: metres from the array's centre in the array's frame (x front, y left, z up).
    facing: direction the talker faces in that frame; towards the array if not given.
    talker_pattern: 1 = omnidirectional, 0.5 = cardioid.
    scatter: metres by which each image source is off its place: walls are not mirrors.
    late_array: whose coherence the late field has, if not the array's: one for many that hardly differ.
    """
    talker = np.asarray(placement.centre) + placement.to_room(source)
    look = placement.to_room(-source if facing is None else facing)
    look = look / np.linalg.norm(look)
    n = int((room.rt60 + 0.02) * array.sample_rate)
    astray = rng.normal(0.0, scatter, (len(_images(ORDER)[2]), 3)) if scatter else None
    early = _image_sources(room, array, placement, talker, look, talker_pattern, n, astray)
    late = _tail(room, late_array or array, talker_pattern, float(np.linalg.norm(source)), n, rng)
    return (early + late).astype(np.float32)


def diffuse_noise(array: MicArray, n_samples: int, rng: np.random.Generator, tilt: float = 0.0) -> Sound:
    """Noise from everywhere, (n_mics, n_samples), of power 1 in an omnidirectional microphone.

    tilt: spectral slope; power falls with frequency as f^-tilt (0 white, 1 pink) above 50 Hz.
    """
    n_fft = next_fast_len(n_samples, real=True)
    spectrum = _coherent_spectrum(array, n_fft, rng)  # (M, K)
    hertz = np.fft.rfftfreq(n_fft, 1 / array.sample_rate)
    shape = np.maximum(hertz, 50.0) ** (-tilt / 2)
    shape[0] = 0.0
    spectrum *= (shape * np.sqrt(len(shape) / (shape**2).sum())).astype(np.float32)
    return irfft(spectrum, n_fft, axis=-1)[:, :n_samples]


def convolved(dry: Sound, response: Sound, n_samples: int | None = None) -> Sound:
    """A dry sound at each microphone, (n_mics, n_samples); n_samples: those of the dry sound if not given."""
    n_samples = len(dry) if n_samples is None else n_samples
    return np.asarray(oaconvolve(dry[None], response, axes=1)[:, :n_samples], np.float32)


def loudness(x: Float) -> float:
    """Root of the mean square over all channels and samples, never 0."""
    return float(rms(x, axis=None)) + 1e-12


def _image_sources(
    room: Room,
    array: MicArray,
    placement: Placement,
    talker: Vector,
    look: Vector,
    pattern: float,
    n: int,
    astray: Vector | None = None,
) -> NDArray[np.float64]:
    mirrored, cells, bounces = _images(ORDER)
    size = np.asarray(room.size)
    position = (1 - 2 * mirrored) * talker + 2 * cells * size  # (I, 3)
    if astray is not None:
        position = position + astray * (bounces > 0)[:, None]
    if room.walls:
        against = np.stack([np.abs(cells - mirrored), np.abs(cells)], axis=-1).reshape(-1, 6)  # (I, 6)
        strength = np.exp(0.5 * against @ np.log1p(-np.asarray(room.walls)))
    else:
        strength = (1 - room.absorption) ** (bounces / 2)
    return wavefronts(
        array, placement, position, strength, n, (1 - 2 * mirrored) * look, pattern, fade=MIXING_TIME
    )


def wavefronts(
    array: MicArray,
    placement: Placement,
    position: Vector,
    strength: Vector,
    n: int,
    look: Vector,
    pattern: float = 1.0,
    *,
    fade: tuple[float, float] | None = None,
) -> NDArray[np.float64]:
    """Impulses of point sources at each microphone, (n_mics, n): delayed, weaker with distance.

    position, look: where sources are and where they face (room's frame, metres), (n_sources, 3), the direct
    one first. strength: (n_sources,). fade: seconds after the first arrival over which they fade out.
    """
    mics = np.asarray(placement.centre) + placement.to_room(array.coordinates)  # (M, 3)
    towards = position[None] - mics[:, None]  # (M, I, 3)
    far = np.linalg.norm(towards, axis=-1)
    arrival = far / SPEED_OF_SOUND
    towards /= far[..., None]
    facing = placement.to_room(unit_vector(np.broadcast_to(array.facing, array.n_mics) + array.yaw))
    heard = array.pattern + (1 - array.pattern) * np.einsum("mid,md->mi", towards, facing)
    sent = pattern - (1 - pattern) * np.einsum("mid,id->mi", towards, look)
    gain = strength * heard * sent
    if fade:
        since = arrival - arrival[:, :1]
        gain = gain * np.cos(np.pi / 2 * np.clip((since - fade[0]) / (fade[1] - fade[0]), 0.0, 1.0))
    return _delayed_impulses(arrival * array.sample_rate, gain / np.maximum(far, 0.05), n)


def _delayed_impulses(delay: Vector, gain: Vector, n: int) -> NDArray[np.float64]:
    """Sum of impulses at fractional samples: (n_mics, n_impulses) -> (n_mics, n)."""
    whole = np.floor(delay).astype(np.intp)
    taps = np.arange(-HALF_TAPS + 1, HALF_TAPS + 1)
    off = taps - (delay - whole)[..., None]  # (M, I, T)
    kernel = np.sinc(off) * (0.5 + 0.5 * np.cos(np.pi * off / (HALF_TAPS + 1)))
    index = whole[..., None] + taps
    rows = np.arange(len(delay))[:, None, None] * n
    used = (gain != 0)[..., None] & (index >= 0) & (index < n)
    weights = (gain[..., None] * kernel)[used]
    summed = np.bincount((rows + index)[used], weights, minlength=len(delay) * n)
    return summed.astype(np.float64, copy=False).reshape(len(delay), n)


def _tail(
    room: Room, array: MicArray, pattern: float, distance: float, n: int, rng: np.random.Generator
) -> NDArray[np.floating[Any]]:
    """The late field: energy (16 pi / A)(DECAY / rt60) exp(-DECAY t / rt60) per second, from everywhere."""
    t = np.arange(n) / array.sample_rate
    radiated = pattern**2 + (1 - pattern) ** 2 / 3
    level = 16 * np.pi / room.absorption_area * radiated * DECAY / room.rt60 / array.sample_rate
    since = t - distance / SPEED_OF_SOUND
    start, end = MIXING_TIME
    fade = np.sin(np.pi / 2 * np.clip((since - start) / (end - start), 0.0, 1.0))
    envelope = np.sqrt(level) * np.exp(-DECAY / 2 * t / room.rt60) * fade
    n_fft = next_fast_len(n, real=True)
    spectrum = _coherent_spectrum(array, n_fft, rng)
    noise = irfft(spectrum, n_fft, axis=-1)[:, :n]
    if room.treble == 1:
        return np.asarray(noise * envelope)
    hertz = np.fft.rfftfreq(n_fft, 1 / array.sample_rate)
    low = irfft(spectrum * (1 / (1 + (hertz / TREBLE) ** 4)).astype(np.float32), n_fft, axis=-1)[:, :n]
    duller = np.exp(-DECAY / 2 * t / room.rt60 * (1 / room.treble - 1))
    return np.asarray((low + (noise - low) * duller) * envelope)


def _coherent_spectrum(array: MicArray, n_fft: int, rng: np.random.Generator) -> NDArray[np.complex64]:
    """Spectrum (n_mics, n_bins) of white diffuse noise: independent noise mixed to the field's coherence."""
    n_bins = n_fft // 2 + 1
    raw = rng.standard_normal((array.n_mics, n_bins, 2), dtype=np.float32)
    independent = raw.view(np.complex64)[..., 0] * np.float32(np.sqrt(n_fft / 2))
    factor = _coherence_factor(array, n_fft)  # (M, M, K), lower triangular
    mixed = np.zeros_like(independent)
    for i in range(array.n_mics):
        for j in range(i + 1):
            mixed[i] += factor[i, j] * independent[j]
    return mixed


@lru_cache(maxsize=8)
def _coherence_factor(array: MicArray, n_fft: int) -> NDArray[np.complex64]:
    """Cholesky factor of the microphones' coherence in an isotropic field, at each FFT bin: (M, M, K)."""
    hertz, factor = _coarse_coherence(array)
    bins = np.linspace(0.0, array.sample_rate / 2, n_fft // 2 + 1)
    fine = np.empty((array.n_mics, array.n_mics, len(bins)), np.complex64)
    for i, j in product(range(array.n_mics), repeat=2):
        fine[i, j].real = np.interp(bins, hertz, factor[i, j].real)
        fine[i, j].imag = np.interp(bins, hertz, factor[i, j].imag)
    return fine


@lru_cache(maxsize=64)
def _coarse_coherence(array: MicArray) -> tuple[Vector, NDArray[np.complex128]]:
    """The same at 513 frequencies, and these (Hz)."""
    hertz = np.linspace(0.0, array.sample_rate / 2, 513)
    golden = np.pi * (3 - np.sqrt(5))  # directions spread evenly over the sphere
    k = np.arange(1500)
    elevation = np.rad2deg(np.arcsin(1 - 2 * (k + 0.5) / len(k)))
    azimuth = np.rad2deg(golden * k)
    gain, arrival = array.gains(azimuth, elevation), array.arrival_times(azimuth, elevation)  # (D, M)
    factor = np.empty((array.n_mics, array.n_mics, len(hertz)), np.complex128)
    for b, f in enumerate(hertz):
        wave = gain * np.exp(-2j * np.pi * f * arrival)  # (D, M)
        field = wave.T @ wave.conj() / len(k)
        field += 1e-4 * np.trace(field).real / array.n_mics * np.eye(array.n_mics)
        factor[..., b] = np.linalg.cholesky(field)
    return hertz, factor


@lru_cache(maxsize=2)
def _images(order: int) -> tuple[Vector, Vector, NDArray[np.intp]]:
    """Image sources up to a number of bounces: mirrored? (I, 3), cell (I, 3), bounces (I,); direct first."""
    axis = [(p, n, abs(n - p) + abs(n)) for n in range(-order, order + 1) for p in (0, 1)]
    axis = [entry for entry in axis if entry[2] <= order]
    combined = [c for c in product(axis, repeat=3) if sum(bounce for _, _, bounce in c) <= order]
    combined.sort(key=lambda c: sum(bounce for _, _, bounce in c))
    table = np.array(combined)  # (I, 3, 3)
    return table[..., 0].astype(float), table[..., 1].astype(float), table[..., 2].sum(axis=1)
