"""A client of ODAS: waits on a port and prints where tracked sources are, `python examples/odas_client.py`.

It reads what `odaslive` and `tyto listen --odas 127.0.0.1:9000` alike send: JSON objects one after another,
each with the sources of a frame as unit vectors (x to the front, y to the left). An empty place has id 0.
"""

from __future__ import annotations

import argparse
import json
import math
import socket
from collections.abc import Iterator, Sequence
from typing import Any

LONGEST = 2**16
"""Characters without a whole object, after which the peer is no ODAS."""


def objects(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """The objects of a stream, however it is cut into packets."""
    decoder, text = json.JSONDecoder(), ""
    while data := connection.recv(65536):
        text = (text + data.decode("ascii")).lstrip()
        while text:
            try:
                found, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break  # the rest is still on its way
            yield found
            text = text[end:].lstrip()
        if len(text) > LONGEST:
            raise ValueError("this is not what ODAS sends")


def azimuth(source: dict[str, Any]) -> float:
    """Degrees in [0, 360): 0 is the front, 90 the left.

    >>> azimuth({"x": 0.0, "y": -1.0, "z": 0.0})
    270.0
    """
    return math.degrees(math.atan2(source["y"], source["x"])) % 360


def line(frame: dict[str, Any]) -> str:
    """One frame for people: its number, then id, azimuth and activity of each source."""
    sources = [
        f"{one['id']:d}: {azimuth(one):.0f} degrees ({one['activity']:.2f})"
        for one in frame["src"]
        if one["id"]
    ]
    return f"{frame['timeStamp']:6d}  {', '.join(sources) or '-'}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve one sender after another."""
    parser = argparse.ArgumentParser(description="Print what odaslive or tyto listen sends.")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 takes senders from the network, too")
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args(arguments)
    with socket.create_server((options.host, options.port)) as server:
        while True:
            connection, address = server.accept()
            print(f"{address[0]} sends", flush=True)
            try:
                with connection:
                    for frame in objects(connection):
                        print(line(frame), flush=True)
            except Exception as error:  # whatever it was, the next sender is served
                print(f"{address[0]}: {type(error).__name__}: {error}")
            print(f"{address[0]} is gone", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
