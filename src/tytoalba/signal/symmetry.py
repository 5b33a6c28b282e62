"""Arrays that look the same mirrored or turned: each frame of theirs is several, for nothing.

Mirror the world at the plane of Pepper's nose, and left microphones hear what right ones heard: the same
features in another order, with the azimuth mirrored. What was recorded is a lesson for the mirrored place
too, and a question can be asked from every side and the answers averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tytoalba.signal.angles import N_DIRECTIONS, Float, distance, wrap
from tytoalba.signal.array import MicArray
from tytoalba.signal.gcc import GccPhat

TOLERANCE = 0.00025
"""Metres by which a microphone may miss the place of another."""


@dataclass(frozen=True)
class Symmetry:
    """A turn, or a mirroring and a turn, that brings every microphone to the place of one.

    partner: which microphone's place each comes to. mirrored: azimuth a becomes turn - a, else turn + a.
    turn: degrees, whole ones.
    """

    partner: tuple[int, ...]
    mirrored: bool
    turn: int

    def azimuth(self, azimuth: Float) -> Float:
        """Where a source comes to, degrees; NaN stays."""
        return wrap(self.turn + (-azimuth if self.mirrored else azimuth))

    def order(self, gcc: GccPhat) -> NDArray[np.intp]:
        """Which value of a frame's GCC-PHAT (n_features,) comes to each place."""
        came_from = np.argsort(self.partner)  # the microphone whose sound is now at each place
        index = np.arange(gcc.n_features).reshape(gcc.n_looks, len(gcc.pairs), gcc.n_lags)
        number = {pair: p for p, pair in enumerate(gcc.pairs)}
        result = np.empty_like(index)
        for p, (i, j) in enumerate(gcc.pairs):
            a, b = int(came_from[i]), int(came_from[j])
            same_way = (a, b) in number
            source = index[:, number[a, b]] if same_way else index[:, number[b, a], ::-1]
            result[:, p] = source
        return result.ravel()

    def back(self, scores: Float) -> Float:
        """Scores (n_frames, 360) of the turned world as those of the world that was asked about."""
        if not self.mirrored and not self.turn:
            return scores
        return scores[:, self._comes_to]

    @property
    def columns(self) -> NDArray[np.intp]:
        """Which label of a frame (360,) comes to each direction of the turned world."""
        return np.argsort(self._comes_to)

    @property
    def _comes_to(self) -> NDArray[np.intp]:
        theta = np.arange(N_DIRECTIONS)
        return (self.turn + (-theta if self.mirrored else theta)) % N_DIRECTIONS


@lru_cache(maxsize=32)
def symmetries(array: MicArray) -> tuple[Symmetry, ...]:
    """All symmetries of an array whose turn is whole degrees: nothing changed, then mirrored, then turned.

    Directional microphones must come to face where their partners do.

    >>> from tytoalba.signal.array import load_array
    >>> [(s.mirrored, s.turn) for s in symmetries(load_array("pepper"))]
    [(False, 0), (True, 0)]
    >>> len(symmetries(load_array("respeaker-6mic")))
    12
    """
    place = array.coordinates
    facing = np.broadcast_to(array.facing, array.n_mics) + array.yaw
    best: dict[tuple[bool, tuple[int, ...]], tuple[float, Symmetry]] = {}
    for mirrored in (False, True):
        for turn in range(360):
            missed, symmetry = _moved(place, mirrored, turn)
            partner = np.array(symmetry.partner)
            turned_away = distance(symmetry.azimuth(facing), facing[partner]).max() > 1.0
            if missed > TOLERANCE or len(set(symmetry.partner)) < len(place):
                continue
            if array.pattern < 1 and turned_away:
                continue
            key = mirrored, symmetry.partner
            best[key] = min(best.get(key, (np.inf, symmetry)), (missed, symmetry), key=lambda pair: pair[0])
    found = [symmetry for _, symmetry in best.values()]
    return (found[0], *(s for s in found if s.mirrored), *(s for s in found[1:] if not s.mirrored))


def _moved(place: Float, mirrored: bool, turn: int) -> tuple[float, Symmetry]:
    """How far (metres) a microphone at worst misses the place it comes nearest to, and these places."""
    angle = np.deg2rad(turn)
    x, y = place[:, 0], -place[:, 1] if mirrored else place[:, 1]
    c, s = np.cos(angle), np.sin(angle)
    moved = np.stack([c * x - s * y, s * x + c * y, place[:, 2]], axis=1)
    apart = np.linalg.norm(moved[:, None] - place[None], axis=2)  # (M, M)
    return float(apart.min(axis=1).max()), Symmetry(tuple(apart.argmin(axis=1).tolist()), mirrored, turn)
