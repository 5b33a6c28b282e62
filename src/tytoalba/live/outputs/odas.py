"""For programs that read ODAS: what `odaslive` sends of tracked and potential sources, as the same text.

ODAS (github.com/introlab/odas) connects out, to a port on which its clients wait, and sends one JSON object
after another: of tracked sources (SST, port 9000 in its own configurations) and of potential ones (SSL, port
9001). Always four sources; an empty place has id 0.

A direction is a unit vector (x, y, z) in the axes of the microphones' positions. Ours are x to the front, y
to the left and z up, so azimuth 0 is (1, 0, 0), 90 is (0, 1, 0), and z is 0: elevation is not estimated. An
array that was imported from an ODAS configuration (`tyto array import`) has the axes of that file. timeStamp
counts frames from 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tytoalba.learning.prior.decisions import candidates
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.output import Say
from tytoalba.live.outputs.peer import Peer, TcpConnection
from tytoalba.live.segments import Moment
from tytoalba.live.tracker import Track
from tytoalba.live.update import Update
from tytoalba.signal.angles import N_DIRECTIONS, Float
from tytoalba.signal.array import unit_vector

N_SOURCES = 4
"""Sources of each message, as in the configurations that ODAS ships."""


class Odas:
    """Updates to clients of ODAS.

    tracked, potential: where they wait for tracks (SST) and for what one frame says (SSL); None: nowhere.
    """

    def __init__(self, tracked: Address | None, potential: Address | None, say: Say) -> None:
        self._tracked = self._peer(tracked, "tracks", say) if tracked else None
        self._potential = self._peer(potential, "potential sources", say) if potential else None
        self._slots = Slots()
        self._n_frames = 0

    @staticmethod
    def _peer(address: Address, what: str, say: Say) -> Peer[bytes]:
        name = f"the reader of ODAS's {what} at {address}"
        return Peer(name, lambda: TcpConnection(address), say)

    def send(self, update: Update, moment: Moment) -> None:
        """Hand over a frame."""
        self._n_frames += 1
        if self._tracked is not None:
            self._tracked.send(tracked_text(self._n_frames, self._slots.placed(update.tracks)).encode())
        if self._potential is not None:
            self._potential.send(potential_text(self._n_frames, moment.scores).encode())

    def close(self) -> None:
        """Send what waits, and disconnect."""
        for peer in (self._tracked, self._potential):
            if peer is not None:
                peer.close()


class Slots:
    """Tracks in four places, each in the same place for as long as it lasts; a fifth waits for a free one.

    >>> first, second = Track(7, 10.0, 0.9, 0.0, True), Track(8, 50.0, 0.9, 0.0, True)
    >>> slots = Slots()
    >>> [track and track.id for track in slots.placed((first, second))]
    [7, 8, None, None]
    >>> [track and track.id for track in slots.placed((second,))]
    [None, 8, None, None]
    """

    def __init__(self) -> None:
        self._ids: list[int | None] = [None] * N_SOURCES

    def placed(self, tracks: Sequence[Track]) -> list[Track | None]:
        """The track in each place."""
        now = {track.id: track for track in tracks}
        self._ids = [name if name in now else None for name in self._ids]
        new = [name for name in now if name not in self._ids]
        free = [place for place, name in enumerate(self._ids) if name is None]
        for place, name in zip(free, new, strict=False):
            self._ids[place] = name
        return [None if name is None else now[name] for name in self._ids]


def tracked_text(time_stamp: int, placed: Sequence[Track | None]) -> str:
    """Tracked sources (SST). activity: the track's probability while it speaks, else 0.

    >>> print(tracked_text(12, [Track(7, 90.0, 0.97, 0.0, True), None]), end="")
    {
        "timeStamp": 12,
        "src": [
            { "id": 7, "tag": "dynamic", "x": 0.000, "y": 1.000, "z": 0.000, "activity": 0.970 },
            { "id": 0, "tag": "", "x": 0.000, "y": 0.000, "z": 0.000, "activity": 0.000 }
        ]
    }
    """
    sources = []
    for track in placed:
        name, tag, place, activity = 0, "", _NOWHERE, 0.0
        if track is not None:
            name, tag, place = track.id, "dynamic", _numbers(track.azimuth)
            activity = track.probability if track.speaking else 0.0
        sources.append(f'"id": {name}, "tag": "{tag}", {place}, "activity": {activity:.3f}')
    return _text(time_stamp, sources)


def potential_text(time_stamp: int, scores: Float | None) -> str:
    """Potential sources (SSL): the highest peaks of the scores (360,). E: the score there, from 0 to 1."""
    sources = []
    if scores is not None:
        found = candidates(scores[None], N_SOURCES)[0]
        for azimuth in found[np.isfinite(found)].tolist():
            energy = min(round(float(scores[round(azimuth) % N_DIRECTIONS]), 3), 1.0)
            if energy > 0:
                sources.append(f'{_numbers(azimuth)}, "E": {energy:.3f}')
    sources += [f'{_NOWHERE}, "E": 0.000'] * (N_SOURCES - len(sources))
    return _text(time_stamp, sources)


_NOWHERE = '"x": 0.000, "y": 0.000, "z": 0.000'


def _numbers(azimuth: float) -> str:
    x, y, z = unit_vector(azimuth).round(3) + 0.0  # no negative zero
    return f'"x": {x:.3f}, "y": {y:.3f}, "z": {z:.3f}'


def _text(time_stamp: int, sources: Sequence[str]) -> str:
    """One object. Readers split a stream of them where a line } is followed by a line {."""
    lines = ",\n".join(f"        {{ {source} }}" for source in sources)
    return f'{{\n    "timeStamp": {time_stamp},\n    "src": [\n{lines}\n    ]\n}}\n'
