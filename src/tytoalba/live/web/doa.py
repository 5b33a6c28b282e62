"""The direction as Reachy Mini's daemon tells it: one angle on a half circle, and whether somebody speaks."""

from __future__ import annotations

import math
from typing import Any

from tytoalba.live.update import Update


def reachy_angle(azimuth: float) -> float:
    """Radians from an azimuth in degrees: 0 left, pi/2 front or back, pi right.

    A half circle cannot tell front from back: what is behind has the angle of its mirror image in front.

    >>> [round(reachy_angle(azimuth), 4) for azimuth in (90, 45, 0, 315, 270)]
    [0.0, 0.7854, 1.5708, 2.3562, 3.1416]
    >>> reachy_angle(180) == reachy_angle(0), round(reachy_angle(135), 4)
    (True, 0.7854)
    """
    from_front = abs((azimuth + 180.0) % 360.0 - 180.0)  # 0 front, 180 back
    ahead = azimuth if from_front <= 90 else 180.0 - azimuth
    return math.radians(90.0 - ((ahead + 180.0) % 360.0 - 180.0))


class Doa:
    """The surest talker who speaks, else the last one that spoke."""

    def __init__(self) -> None:
        self._angle: float | None = None
        self._speaks = False

    def hear(self, update: Update) -> None:
        """Take a frame."""
        speaking = [one for one in update.tracks if one.speaking]
        self._speaks = bool(speaking)
        if speaking:
            self._angle = reachy_angle(max(speaking, key=lambda one: one.probability).azimuth)

    @property
    def told(self) -> dict[str, Any] | None:
        """In Reachy Mini's shape; None before anybody spoke."""
        if self._angle is None:
            return None
        return {"angle": round(self._angle, 6), "speech_detected": self._speaks}
