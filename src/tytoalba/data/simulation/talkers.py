"""Talkers in a room of a preset: where they stand or walk, and their sound at the microphones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tytoalba.data.simulation.presets import Part, Preset
from tytoalba.data.simulation.room import Placement, Room, Sound, Vector, convolved, room_response
from tytoalba.data.simulation.voice import Speech
from tytoalba.errors import DataError
from tytoalba.signal.angles import distance
from tytoalba.signal.array import MicArray

FADE = 0.01
"""Seconds in which somebody falls silent or begins."""


def place_talkers(
    room: Room, part: Part, preset: Preset, n_sources: int, rng: np.random.Generator
) -> tuple[Placement, Vector]:
    """Talkers at uniform azimuths (metres, array's frame), and a place for the array where they fit in.

    Where the room has no such place, as for two far talkers on opposite sides of a small room, the distances
    are drawn again.
    """
    azimuth = rng.uniform(*part.azimuths, n_sources)
    while n_sources == 2 and distance(*azimuth) < preset.separation:
        azimuth = rng.uniform(*part.azimuths, 2)
    far = rng.uniform(*part.distances, n_sources)
    up = rng.uniform(*preset.heights, n_sources)
    angle = np.deg2rad(azimuth)
    for _ in range(20):
        talkers = np.stack([far * np.cos(angle), far * np.sin(angle), up], axis=1)
        if placement := _place_array(room, talkers, rng):
            return placement, talkers
        far = rng.uniform(*part.distances, n_sources)
    raise DataError(f"talkers {part.distances[0]} m away and more do not fit into a room of {room.size} m")


def _place_array(room: Room, talkers: Vector, rng: np.random.Generator) -> Placement | None:
    """A place for the array with all talkers (n_sources, 3) inside the room; None if none is found."""
    size = np.asarray(room.size)
    for _ in range(1000):
        spot = rng.uniform([0.5, 0.5, 0.9], [size[0] - 0.5, size[1] - 0.5, 1.4])
        placement = Placement((float(spot[0]), float(spot[1]), float(spot[2])), float(rng.uniform(0, 360)))
        if all(room.contains(spot + placement.to_room(talker), 0.25) for talker in talkers):
            return placement
    return None


def somewhere(room: Room, placement: Placement, rng: np.random.Generator) -> Vector:
    """A point of the room at least half a metre from the array, as the array sees it."""
    while True:
        spot = rng.uniform(0.2, np.asarray(room.size) - 0.2) - np.asarray(placement.centre)
        if np.linalg.norm(spot) > 0.5:
            return replace(placement, heading=-placement.heading).to_room(spot)


def interrupted(dry: Speech, preset: Preset, sample_rate: int, rng: np.random.Generator) -> Speech:
    """Speech (n_samples,) of somebody who begins later and falls silent now and then, as a preset says.

    Nothing is drawn where the preset has neither: its recordings stay the same to the bit.
    """
    if not (preset.begins[1] or preset.pauses[1]):
        return dry
    time = np.arange(len(dry)) / sample_rate
    start, heard = float(rng.uniform(*preset.begins)), np.zeros(len(dry), np.float32)
    while start < preset.seconds:
        end = start + float(rng.uniform(*preset.talks)) if preset.pauses[1] else preset.seconds
        edges = np.minimum(time - start, end - time) / FADE
        heard += np.clip(edges, 0.0, 1.0).astype(np.float32)
        start = end + float(rng.uniform(*preset.pauses))
    return np.asarray(dry * heard, np.float32)


def walk(
    start: Vector,
    room: Room,
    placement: Placement,
    preset: Preset,
    n_samples: int,
    array: MicArray,
    rng: np.random.Generator,
) -> Vector:
    """Where a talker is at every half hop (metres), turning back at walls; one row for a standing one."""
    speed = rng.uniform(-preset.speed, preset.speed) if preset.speed else 0.0
    if speed == 0.0:
        return start[None]
    n = n_samples // (array.frame_length // 4) + 2
    turn = speed * np.arange(n) * (array.frame_length // 4) / array.sample_rate
    spots = np.asarray(placement.centre) + placement.to_room(_turned(start, np.arange(360.0)))
    walls = np.flatnonzero([not room.contains(spot, 0.2) for spot in spots])
    if len(walls):  # walk to and fro between the last degrees that are inside
        ahead, behind = walls[0] - 1, 359 - walls[-1]
        span = max(ahead + behind, 1)
        turn = span - np.abs((turn + behind) % (2 * span) - span) - behind
    return _turned(start, turn)


def _turned(point: Vector, azimuth: Vector) -> Vector:
    """A point (3,) walked around the array by each of some degrees: (n, 3)."""
    x, y, z = point
    c, s = np.cos(np.deg2rad(azimuth)), np.sin(np.deg2rad(azimuth))
    return np.stack([x * c - y * s, x * s + y * c, np.full(len(c), z)], axis=1)


def propagate(
    room: Room,
    array: MicArray,
    placement: Placement,
    dry: Speech,
    path: Vector,
    pattern: float,
    rng: np.random.Generator,
) -> Sound:
    """Sound of a talker at the microphones, (n_mics, n_samples); that of a walking one is cross-faded."""
    tail_seed = int(rng.integers(2**63))

    def received(source: Vector, sound: Speech, n_samples: int) -> Sound:
        same_tail = np.random.default_rng(tail_seed)  # a step to the side does not change the whole room
        response = room_response(room, array, placement, source, same_tail, talker_pattern=pattern)
        return convolved(sound, response, n_samples)

    if len(path) == 1:
        return received(path[0], dry, len(dry))
    step = array.frame_length // 4
    ramp = np.bartlett(2 * step + 1)[:-1].astype(np.float32)
    result = np.zeros((array.n_mics, len(dry)), np.float32)
    for k, place in enumerate(path):
        first, last = max(0, (k - 1) * step), min(len(dry), (k + 1) * step)
        if first >= last:
            continue
        piece = dry[first:last] * ramp[first - (k - 1) * step : last - (k - 1) * step]
        if piece.any():
            wet = received(place, piece, len(dry) - first)
            result[:, first : first + wet.shape[1]] += wet
    return result
