"""Which microphone is on which channel, and how the array is mounted: hypotheses, and what they predict.

A hypothesis says for each channel which microphone it carries, whether the array hangs upside down
(azimuth a sounds like -a), and by how many degrees it is turned. Some predict the same delays, for all
directions or for those at hand: nobody can tell them apart from sound. `search` scores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.angles import Float, wrap
from tytoalba.signal.array import MicArray

Orders = NDArray[np.intp]
ELEVATIONS = (0.0, 35.0)
"""Degrees above the plane at which a talker may be; the best of them counts."""
MOST_ORDERED = 8
"""Microphones of which every order is tried (40320); of more only swaps and shifts are."""
STEP = 10.0
"""Degrees between the turns that are tried; the best is refined."""
SAME_PLACE = 0.0005
"""Metres within which two places are the same."""
NEARLY_SAME = 0.2
"""Share of a distance between microphones that free speech cannot tell: talkers may be above the array."""
ALMOST = 0.1
"""Share of its size by which an array may differ from its file: less cannot be told with confidence."""
SLIGHT_TURN = 20.0
"""Degrees: hypotheses turned less than this against each other are one, its turn is estimated."""


@dataclass(frozen=True)
class Wiring:
    """order: the microphone that each channel carries. mirrored: upside down. turn: degrees to the left."""

    order: tuple[int, ...]
    mirrored: bool = False
    turn: float = 0.0

    def applied(self, array: MicArray) -> MicArray:
        """The array as it is wired and mounted: its microphones in the order of its channels.

        >>> pair = MicArray("pair", ((0.0, 0.1, 0.0), (0.0, -0.1, 0.0)), 16000)
        >>> Wiring((1, 0)).applied(pair).positions
        ((0.0, -0.1, 0.0), (0.0, 0.1, 0.0))
        """
        sign = np.array([1.0, -1.0, -1.0]) if self.mirrored else np.ones(3)
        places = np.asarray(array.positions)[list(self.order)] * sign + 0.0  # no -0.0
        facing = np.broadcast_to(array.facing, array.n_mics)[list(self.order)] * sign[1] + 0.0
        if len(array.facing) == 1:
            facing = facing[:1]
        return replace(
            array,
            positions=tuple(map(tuple, places.tolist())),
            facing=tuple(facing.tolist()),
            yaw=float(wrap(array.yaw + self.turn)) if self.turn else array.yaw,
        )


@lru_cache(maxsize=16)
def all_orders(n: int) -> Orders:
    """Orders of n microphones to try, (n_orders, n), the plain one first; not to be written to.

    Every one up to MOST_ORDERED; beyond, swaps of two and shifts of all, also backwards.
    """
    if n <= MOST_ORDERED:
        return np.array(list(permutations(range(n))), np.intp)
    plain = list(range(n))
    found = {tuple(plain): None}
    for shift in range(n):
        found[tuple(plain[shift:] + plain[:shift])] = None
        found[tuple((plain[shift:] + plain[:shift])[::-1])] = None
    for i in range(n):
        for j in range(i):
            swapped = plain.copy()
            swapped[i], swapped[j] = j, i
            found[tuple(swapped)] = None
    return np.array(list(found), np.intp)


@lru_cache(maxsize=32)
def congruences(array: MicArray) -> Orders:
    """Orders that leave horizontal distances between microphones nearly as they are, (n, n_mics).

    Sound from an unknown direction cannot tell an order from one of these after it: the array is turned or
    mirrored. Unlike `symmetry.symmetries`, any angle counts, and what differs by less than NEARLY_SAME.

    >>> from tytoalba.signal.array import load_array
    >>> [len(congruences(load_array(name))) for name in ("respeaker-usb-4", "matrix-voice", "linear-4")]
    [8, 14, 1]
    """
    places = array.coordinates
    apart = np.linalg.norm(places[:, None, :2] - places[None, :, :2], axis=2)
    orders = all_orders(array.n_mics)
    same = np.ones(len(orders), bool)
    for i, j in array.pairs:
        same &= np.abs(apart[orders[:, i], orders[:, j]] - apart[i, j]) <= NEARLY_SAME * apart[i, j]
    for i in range(array.n_mics):
        same &= np.abs(places[orders[:, i], 2] - places[i, 2]) <= 2 * SAME_PLACE
    return orders[same]


def representatives(array: MicArray) -> Orders:
    """One order of each set that only differ by a congruence, the plain one first."""
    orders, group = all_orders(array.n_mics), congruences(array)
    base = array.n_mics ** np.arange(array.n_mics)[::-1]
    least = orders @ base
    for symmetry in group:
        least = np.minimum(least, symmetry[orders] @ base)
    chosen: Orders = orders[least == orders @ base]
    return chosen


def predicted(
    array: MicArray, mirrored: bool, turn: float, azimuth: Float, pointing: Sequence[float] = (0.0,)
) -> Float:
    """Samples by which each direction reaches microphone j later than i: (A, M, M, E x pointing).

    azimuth: degrees, (A,). pointing: degrees by which each may be off. The last axis starts with the
    horizontal plane and the first of `pointing`.
    """
    side = -1.0 if mirrored else 1.0  # a mounting is another direction of sound in the array's own frame
    local = side * (np.asarray(azimuth)[:, None, None] + np.asarray(pointing) - array.yaw - turn) + array.yaw
    arrival = array.arrival_times(local, side * np.asarray(ELEVATIONS)[:, None])  # (A, E, O, M)
    arrival = arrival.reshape(len(local), -1, array.n_mics)
    delay = arrival[..., None, :] - arrival[..., :, None]  # (A, E O, i, j)
    return np.moveaxis(delay, 1, -1) * array.sample_rate


def same_set(array: MicArray, mirrored: Wiring) -> bool:
    """Whether the mirrored array has microphones where the array has some."""
    places = _places(array, Wiring(tuple(range(array.n_mics))))
    mirror = _places(array, mirrored)
    places, mirror = places - places.mean(axis=0), mirror - mirror.mean(axis=0)
    apart = np.linalg.norm(places[:, None] - mirror[None], axis=2)
    return bool((apart.min(axis=1) < SAME_PLACE).all())


def same_file(array: MicArray, one: Wiring, other: Wiring, used: Sequence[int]) -> bool:
    """Whether two wirings put every used channel at the same place: two names of one thing.

    But for a shift of all: directions do not depend on where the centre is.
    """
    off = (_places(array, one) - _places(array, other))[list(used)]
    return bool(np.linalg.norm(off - off.mean(axis=0), axis=1).max() < 2 * SAME_PLACE)


def renamed(array: MicArray, wiring: Wiring) -> list[Wiring]:
    """All names of one thing: orders, mirrored or not, that some turn brings to the same places.

    >>> from tytoalba.signal.array import load_array
    >>> len(renamed(load_array("respeaker-usb-4"), Wiring((1, 0, 2, 3))))
    8
    """
    target = _outline(array, wiring)
    found = [wiring]
    for symmetry in congruences(array):
        for mirrored in (False, True):
            other = Wiring(tuple(symmetry[list(wiring.order)].tolist()), mirrored)
            outline = _outline(array, other)
            turn = np.angle(np.vdot(outline, target))
            if np.abs(target - outline * np.exp(1j * turn)).max() < 2 * SAME_PLACE:
                found.append(replace(other, turn=round(float(np.rad2deg(turn)), 1) % 360.0))
    return list(dict.fromkeys(found))


def slightly_turned(array: MicArray, one: Wiring, other: Wiring, nearly: bool = False) -> bool:
    """Whether a small turn makes two wirings the same; nearly: but for ALMOST of the array's size."""
    a, b = _outline(array, one), _outline(array, other)
    turn = np.angle(np.vdot(a, b))
    missed = np.abs(b - a * np.exp(1j * turn)).max()
    limit = ALMOST * array.aperture if nearly else 2 * SAME_PLACE
    return bool(abs(turn) <= np.deg2rad(SLIGHT_TURN) + 1e-6 and missed < limit)


def _outline(array: MicArray, wiring: Wiring) -> NDArray[np.complex128]:
    """Where each channel's microphone is, seen from above and from their centre, x + iy: (n_mics,)."""
    places = _places(array, wiring)[:, :2] @ np.array([1.0, 1j])
    return np.asarray(places - places.mean())


def _places(array: MicArray, wiring: Wiring) -> Float:
    """Metres where each channel's microphone is, (n_mics, 3); `applied` without making an array of it."""
    x, y, z = np.asarray(array.positions)[list(wiring.order)].T
    side = -1.0 if wiring.mirrored else 1.0
    turned = (x + 1j * side * y) * np.exp(1j * np.deg2rad(array.yaw + wiring.turn))
    return np.stack([turned.real, turned.imag, side * z], axis=1)


def plainness(wiring: Wiring) -> tuple[int, bool, float, int, tuple[int, ...]]:
    """How much has to have gone wrong: nothing, then the mounting, then the order of few channels."""
    moved = sum(k != mic for k, mic in enumerate(wiring.order))
    mounted = wiring.mirrored + (wiring.turn != 0)
    return (moved > 0) + (mounted > 0), moved > 0, mounted, moved, wiring.order


def hypotheses(array: MicArray, turned: bool) -> list[tuple[tuple[bool, float], Orders]]:
    """What is tried for known directions: orders at each mounting (mirrored, turn); see `search.judge`."""
    every = all_orders(array.n_mics)
    plain = every[:1]
    mirror_is_an_order = same_set(array, Wiring(tuple(plain[0].tolist()), True))
    some = representatives(array) if turned else plain
    found = [((False, 0.0), every), ((True, 0.0), plain if mirror_is_an_order else every)]
    turns = np.arange(STEP, 360.0, STEP)
    return found + [((mirrored, float(turn)), some) for turn in turns for mirrored in (False, True)]
