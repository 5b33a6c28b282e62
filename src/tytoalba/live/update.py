"""What is told of one frame, in the same words everywhere: files, terminal, sockets, brokers, the page.

>>> from tytoalba.live.tracker import Track
>>> there = Track(id=1, azimuth=40.0, probability=0.97, since=0.21, speaking=True)
>>> print(Update(2.47, (there,), -33.9, latency=0.012).json)  # doctest: +NORMALIZE_WHITESPACE
{"time": 2.47, "tracks": [{"id": 1, "azimuth": 40.0, "probability": 0.97, "since": 0.21, "speaking": true}],
 "level": -33.9, "dropped": 0, "latency": 0.012, "faults": []}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from tytoalba.live.segments import Moment
from tytoalba.live.tracker import Track


@dataclass(frozen=True)
class Fault:
    """Something wrong with the sound that comes in.

    Parameters
    ----------
    kind : str
        One word for programs, such as "unplugged", "muted", "copied", "mixed", "clipping", "rate".
    channels : tuple of int
        Channels of the device, from 0; empty where it is the whole device.
    text : str
        One sentence for people: what is wrong and what to do.
    """

    kind: str
    channels: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Update:
    """What is told of one frame.

    Parameters
    ----------
    time : float
        Middle of the frame: seconds since the sound began.
    tracks : tuple of Track
        Who is there, talking or not.
    level : float
        dB of full scale.
    dropped : int
        Samples per channel that were lost since the start, because this machine was too slow.
    latency : float or None
        Seconds from the last sample of the frame to this update; None where the sound is no live one.
    faults : tuple of Fault
        What is wrong with the sound now.
    """

    time: float
    tracks: tuple[Track, ...]
    level: float
    dropped: int = 0
    latency: float | None = None
    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(
        cls, moment: Moment, dropped: int = 0, latency: float | None = None, faults: tuple[Fault, ...] = ()
    ) -> Update:
        """The update of a frame that was followed."""
        return cls(moment.time, moment.tracks, moment.level, dropped, latency, faults)

    @property
    def plain(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @property
    def json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.plain, allow_nan=False)
