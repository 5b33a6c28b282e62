"""Turn a robot's head to who speaks: `python examples/robot_head.py http://127.0.0.1:8010`.

It asks `tyto serve`, or the daemon of a Reachy Mini, for the direction: both answer GET /api/state/doa with
an angle in radians (0 left, pi/2 front, pi right) and whether somebody speaks. Put your robot's own call
into `turn`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

FASTEST = math.radians(60.0)
"""Radians per second."""
FARTHEST = math.radians(80.0)
"""Radians to either side that the neck allows."""
STEP = 0.1
"""Seconds between two requests."""


def yaw_of(angle: float) -> float:
    """Where the head should look, in radians to the left of the front, as far as the neck goes.

    >>> yaw_of(math.pi / 2), math.degrees(yaw_of(math.pi / 4)), math.degrees(yaw_of(math.pi))
    (0.0, 45.0, -80.0)
    """
    return max(-FARTHEST, min(FARTHEST, math.pi / 2 - angle))


def next_yaw(yaw: float, wanted: float, seconds: float) -> float:
    """Where the head is after so many seconds, if it turns no faster than FASTEST."""
    most = FASTEST * seconds
    return yaw + max(-most, min(most, wanted - yaw))


def direction(url: str, token: str | None) -> tuple[float, bool] | None:
    """The angle, and whether somebody speaks; None before anybody has spoken."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{url.rstrip('/')}/api/state/doa", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return None
        raise
    return float(found["angle"]), bool(found["speech_detected"])


def turn(yaw: float) -> None:
    """Turn the head; here it is only printed."""
    print(f"head at {math.degrees(yaw):+.0f} degrees", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Follow whoever speaks."""
    parser = argparse.ArgumentParser(description="Turn a robot's head to who speaks.")
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8010")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    options = parser.parse_args(arguments)
    token = os.environ.get("TYTO_TOKEN")

    yaw, end = 0.0, time.monotonic() + options.seconds
    while time.monotonic() < end:
        found = direction(options.url, token)
        if found is not None and found[1]:  # in pauses the head stays
            before, yaw = yaw, next_yaw(yaw, yaw_of(found[0]), STEP)
            if yaw != before:
                turn(yaw)
        time.sleep(STEP)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
