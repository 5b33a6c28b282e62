"""Families of simulated acoustics, written independently of each other, drawn at random and widely.

A learner that has seen one simulator only learns that simulator. Each family here answers the same question,
how does a sound at a place reach each microphone, by other physics:

- `hybrid`: image sources with unequal, scattering walls, then an isotropic tail (`rooms`);
- `pyroom`: pyroomacoustics, image sources and ray tracing, materials that absorb each octave differently;
- `anechoic`: the free field with a few strong single reflections and a sparse echo, noise from a few
  directions instead of everywhere.

Train on some, judge on the one left out. None uses the rooms or the noise of the presets in `simulated`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from tytoalba.data.simulation.room import (
    Placement,
    Room,
    Sound,
    Vector,
    diffuse_noise,
    room_response,
    wavefronts,
)
from tytoalba.errors import MissingExtraError
from tytoalba.signal.array import SPEED_OF_SOUND, MicArray, unit_vector

OCTAVES = (125, 250, 500, 1000, 2000, 4000, 8000)
RAYS, TRACED = 300, 0.2
"""Rays of a room, and the share of pyroomacoustics' rooms in which they are traced: it is six times the work,
and late sound comes out less alike at neighbouring microphones than it ever is."""
WALLS = ("west", "east", "south", "north", "floor", "ceiling")
HERE = Placement((0.0, 0.0, 0.0))


@dataclass(frozen=True)
class PointSource:
    """Something that sounds: metres from the array's centre, where it faces, 1 = omnidirectional."""

    position: Vector
    facing: Vector
    pattern: float = 1.0


Responses = list[Sound]
"""Impulse responses (n_mics, n_samples), one array per source; the direct sound has gain 1 at 1 m."""
Family = Callable[[MicArray, MicArray, list[PointSource], np.random.Generator], Responses]
"""Draws surroundings in which the sources have room, and gives the responses. The second array is the one
whose coherence diffuse sound has: the same for many devices that differ by millimetres, so it is kept."""


def hybrid(
    array: MicArray, late: MicArray, sources: list[PointSource], rng: np.random.Generator
) -> Responses:
    """Image sources with unequal, scattering walls; then a tail that rings shorter in the treble."""
    size, placement = _room_around(sources, rng)
    mean = np.exp(rng.uniform(np.log(0.1), np.log(0.6)))
    walls = np.clip(mean * np.exp(rng.normal(0.0, 0.6, 6)), 0.02, 0.95)
    room = Room.with_walls(size, walls, treble=rng.uniform(0.4, 1.1))
    if not 0.1 <= room.rt60 <= 1.0:  # neither a studio nor a cathedral
        room = Room(size, float(np.clip(room.rt60, 0.1, 1.0)), room.walls, room.treble)
    scatter = rng.uniform(0.0, 0.2)
    responses = []
    for source in sources:
        seen = room_response(
            room,
            array,
            placement,
            source.position,
            rng,
            facing=source.facing,
            talker_pattern=source.pattern,
            scatter=scatter,
            late_array=late,
        )
        responses.append(seen)
    return responses


def pyroom(array: MicArray, _: MicArray, sources: list[PointSource], rng: np.random.Generator) -> Responses:
    """pyroomacoustics: some by ray tracing (omnidirectional), most by image sources with directivity."""
    try:
        import pyroomacoustics as pra
        from pyroomacoustics.directivities import CardioidFamily, DirectionVector
        from pyroomacoustics.random import seed
    except ImportError as error:
        raise MissingExtraError("rooms of pyroomacoustics", "sim") from error

    # Its rays fall as a generator of its own says, and its threads add up in another order on each machine:
    # a spawned generator seeds the first and takes no draw from ours, one thread settles the second.
    seed(rng.spawn(1)[0])
    pra.constants.set("num_threads", 1)
    size, placement = _room_around(sources, rng)
    rays = bool(rng.random() < TRACED)
    mean = np.exp(rng.uniform(np.log(0.1), np.log(0.6)))

    def material() -> Any:
        level = mean * np.exp(rng.normal(0.0, 0.5))
        slope = np.linspace(-1, 1, len(OCTAVES)) * rng.uniform(-0.2, 0.7)
        absorbed = np.clip(level * np.exp(slope + rng.normal(0.0, 0.2, len(OCTAVES))), 0.02, 0.95)
        octaves = {"coeffs": absorbed.tolist(), "center_freqs": list(OCTAVES)}
        return pra.Material(octaves, float(rng.uniform(0.05, 0.5)))

    materials = {wall: material() for wall in WALLS}
    order = int(rng.integers(2, 5)) if rays else int(rng.integers(4, 9))
    room = pra.ShoeBox(
        size,
        fs=array.sample_rate,
        materials=materials,
        max_order=order,
        ray_tracing=rays,
        air_absorption=True,
    )
    if rays:
        room.set_ray_tracing(n_rays=RAYS, receiver_radius=0.4)

    def directivity(pattern: float, look: Vector) -> Any:
        if rays:
            return None
        azimuth = np.rad2deg(np.arctan2(look[1], look[0]))
        colatitude = np.rad2deg(np.arccos(np.clip(look[2] / np.linalg.norm(look), -1, 1)))
        return CardioidFamily(DirectionVector(azimuth, colatitude, degrees=True), p=pattern)

    centre = np.asarray(placement.centre)
    for source in sources:
        facing = placement.to_room(source.facing)
        room.add_source(
            centre + placement.to_room(source.position), directivity=directivity(source.pattern, facing)
        )
    mics = (centre + placement.to_room(array.coordinates)).T
    looks = placement.to_room(unit_vector(np.broadcast_to(array.facing, array.n_mics) + array.yaw))
    room.add_microphone_array(
        mics, directivity=None if rays else [directivity(array.pattern, k) for k in looks]
    )
    room.compute_rir()
    ahead = pra.constants.get("frac_delay_length") // 2  # samples by which all of it comes too late
    return [_stacked([room.rir[m][s][ahead:] for m in range(array.n_mics)]) for s in range(len(sources))]


def anechoic(array: MicArray, _: MicArray, sources: list[PointSource], rng: np.random.Generator) -> Responses:
    """The free field, up to three strong single reflections, and perhaps a sparse, decaying echo."""
    n_strong, n_sparse = int(rng.integers(0, 4)), int(rng.integers(0, 60) * (rng.random() < 0.6))
    spread = rng.uniform(0.01, 0.06)  # seconds in which the sparse echo falls by 8.7 dB
    level = 10 ** (rng.uniform(-20, -6) / 20)
    responses = []
    for source in sources:
        far = float(np.linalg.norm(source.position))
        detour = np.concatenate(
            [rng.uniform(0.1, 4.0, n_strong), SPEED_OF_SOUND * rng.uniform(0.002, 0.15, n_sparse)]
        )
        strong = 10 ** (rng.uniform(-14, -1, n_strong) / 20)
        sparse = (
            level * np.exp(-detour[n_strong:] / SPEED_OF_SOUND / spread) * rng.choice([-1.0, 1.0], n_sparse)
        )
        towards = rng.standard_normal((n_strong + n_sparse, 3))
        towards *= ((far + detour) / np.linalg.norm(towards, axis=1))[:, None]
        position = np.concatenate([source.position[None], towards])
        # relative to the direct sound: what distance takes from the longer way is given back
        strength = np.concatenate([[1.0], np.concatenate([strong, sparse]) * (far + detour) / far])
        look = source.facing / np.linalg.norm(source.facing)
        looks = np.concatenate([look[None], -towards / np.linalg.norm(towards, axis=1, keepdims=True)])
        n = int((far / SPEED_OF_SOUND + 0.17) * array.sample_rate)
        response = wavefronts(array, HERE, position, strength, n, looks, source.pattern)
        responses.append(response.astype(np.float32))
    return responses


FAMILIES: dict[str, Family] = {"hybrid": hybrid, "pyroom": pyroom, "anechoic": anechoic}


def ambient_noise(
    family: str, array: MicArray, late: MicArray, n_samples: int, tilt: float, rng: np.random.Generator
) -> Sound:
    """Background noise, (n_mics, n_samples): from everywhere, or for `anechoic` from a few directions."""
    if family == "anechoic" or (family == "pyroom" and rng.random() < 0.5):
        return _few_waves(array, n_samples, tilt, rng)
    return diffuse_noise(late, n_samples, rng, tilt)


def reflector(array: MicArray, source: PointSource, rng: np.random.Generator) -> Sound:
    """What a table, a wall close by or the device's own body adds to a source: (n_mics, n_samples)."""
    away = float(rng.uniform(0.03, 0.6))
    normal = np.array([0.0, 0.0, -1.0])
    if rng.random() < 0.5:  # a wall or a body beside it, not a table below
        normal = unit_vector(rng.uniform(0, 360), rng.uniform(-30, 30))
    behind = float(source.position @ normal)
    if behind >= away:  # the source is on the other side: nothing to mirror
        return np.zeros((array.n_mics, 1), np.float32)
    mirrored = source.position + 2 * (away - behind) * normal
    look = -mirrored / np.linalg.norm(mirrored)
    n = int((np.linalg.norm(mirrored) / SPEED_OF_SOUND + 0.01) * array.sample_rate)
    strength = np.array([rng.uniform(0.2, 0.8)])
    echo = wavefronts(array, HERE, mirrored[None], strength, n, look[None], source.pattern)
    return echo.astype(np.float32)


def _room_around(
    sources: list[PointSource], rng: np.random.Generator
) -> tuple[tuple[float, float, float], Placement]:
    """A room's size and a place for the array in it so that every source is inside."""
    heading = float(rng.uniform(0, 360))
    turned = Placement((0.0, 0.0, 0.0), heading).to_room(np.stack([s.position for s in sources]))
    low, high = np.minimum(turned.min(axis=0), 0.0), np.maximum(turned.max(axis=0), 0.0)
    margin = rng.uniform(0.25, 0.5, (2, 3))
    free = np.array([rng.uniform(2.6, 10.0), rng.uniform(2.4, 8.0), rng.uniform(2.2, 4.0)])
    least = high - low + margin.sum(axis=0)
    size = np.maximum(free, least)
    spare = size - least
    corner = spare * rng.uniform(0, 1, 3)
    if spare[2] > 0.6:  # arrays stand on tables and robots, seldom under the ceiling
        corner[2] = min(spare[2], rng.uniform(0.2, 1.2))
    centre = corner + margin[0] - low
    x, y, z = (float(v) for v in size)
    return (x, y, z), Placement((float(centre[0]), float(centre[1]), float(centre[2])), heading)


def crowd_noise(array: MicArray, voices: list[Sound], rng: np.random.Generator) -> Sound:
    """People who talk all around, none of whom is meant, (n_mics, n_samples).

    voices: what they say, of one length and loudness. Each comes from somewhere and, later and weaker, from
    somewhere else.
    """
    n_samples = len(voices[0])
    n_fft = next_fast_len(n_samples + array.sample_rate // 10, real=True)  # room for what comes later
    total = np.zeros((array.n_mics, n_fft // 2 + 1), np.complex64)
    for voice in voices:
        said = rfft(voice, n_fft) * np.exp(rng.normal(0.0, 0.5))
        for later, weaker in ((0.0, 1.0), (rng.uniform(0.002, 0.06), rng.uniform(0.2, 0.8))):
            late = _shifts(np.array([later * array.sample_rate / n_fft]), len(said))[0]
            total += _wave(array, np.asarray(said * late * weaker, np.complex64), n_fft, rng)
    return np.asarray(irfft(total, n_fft, axis=-1)[:, :n_samples], np.float32)


def _few_waves(array: MicArray, n_samples: int, tilt: float, rng: np.random.Generator) -> Sound:
    n_fft = next_fast_len(n_samples, real=True)
    hertz = np.fft.rfftfreq(n_fft, 1 / array.sample_rate)
    shape = (np.maximum(hertz, 50.0) ** (-tilt / 2) * (hertz > 0)).astype(np.float32)
    total = np.zeros((array.n_mics, len(hertz)), np.complex64)
    for _ in range(int(rng.integers(3, 16))):
        noise = rng.standard_normal((len(hertz), 2), dtype=np.float32).view(np.complex64)[:, 0] * shape
        total += _wave(array, noise * np.float32(np.exp(rng.normal(0.0, 0.7))), n_fft, rng)
    return np.asarray(irfft(total, n_fft, axis=-1)[:, :n_samples], np.float32)


def _wave(
    array: MicArray, spectrum: NDArray[np.complex64], n_fft: int, rng: np.random.Generator
) -> NDArray[np.complex64]:
    """A plane wave from a direction drawn at random, at each microphone: (n_mics, n_bins)."""
    azimuth, elevation = rng.uniform(0, 360), np.rad2deg(np.arcsin(rng.uniform(-0.7, 0.9)))
    turns = array.arrival_times(azimuth, elevation) * array.sample_rate / n_fft
    wave = _shifts(turns, len(spectrum))
    wave *= array.gains(azimuth, elevation)[:, None].astype(np.float32)
    wave *= spectrum
    return wave


def _shifts(turns: Vector, n_bins: int) -> NDArray[np.complex64]:
    """exp(-2 pi i k turns) for bins k: (n_mics, n_bins); coarse steps times fine ones, few exponentials."""
    step = 512
    coarse = np.exp(-2j * np.pi * turns[:, None] * np.arange(0, n_bins, step)).astype(np.complex64)
    fine = np.exp(-2j * np.pi * turns[:, None] * np.arange(step)).astype(np.complex64)
    return np.asarray((coarse[:, :, None] * fine[:, None, :]).reshape(len(turns), -1)[:, :n_bins])


def _stacked(responses: list[Any]) -> Sound:
    n = max(map(len, responses))
    return np.stack([np.pad(np.asarray(r, np.float32), (0, n - len(r))) for r in responses])
