"""For music and stage programs: Open Sound Control over UDP.

Each frame sends `/tyto/track` for everybody who is there, with id, azimuth in degrees, probability and
speaking (1 or 0); `/tyto/gone` with the id of who is there no more; and `/tyto/frame` with time in seconds,
level in dB of full scale and the number of tracks. UDP arrives or is lost: nobody is waited for.
"""

from __future__ import annotations

import importlib
import socket
from typing import Any

from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.output import Say
from tytoalba.live.segments import Moment
from tytoalba.live.update import Update


class Osc:
    """Updates as messages of Open Sound Control."""

    def __init__(self, address: Address, say: Say) -> None:
        self._builder = _load_builder()
        try:
            family, kind, protocol, _, target = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise TytoError(f"no host {address.host} for OSC: {error.strerror or error}") from error
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)  # to all of a stage at once
        self._socket.setblocking(False)
        self._target, self._say, self._name = target, say, f"the network to {address} (OSC)"
        self._gone = False
        self._there: set[int] = set()

    def send(self, update: Update, moment: Moment) -> None:  # noqa: ARG002, the scores are not sent
        """Hand over a frame."""
        now = {track.id for track in update.tracks}
        messages = [self._message("/tyto/gone", name) for name in sorted(self._there - now)]
        self._there = now
        messages += [
            self._message("/tyto/track", one.id, one.azimuth, one.probability, int(one.speaking))
            for one in update.tracks
        ]
        messages.append(self._message("/tyto/frame", update.time, update.level, len(update.tracks)))
        try:
            for message in messages:
                self._socket.sendto(message, self._target)
        except BlockingIOError:  # the system's buffer is full: lost, as UDP may be
            return
        except OSError as error:
            if not self._gone:
                self._say(
                    f"{self._name} is gone ({error.strerror or error}); nothing is sent until it is back"
                )
            self._gone = True
            return
        if self._gone:
            self._gone = False
            self._say(f"{self._name} is back")

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()

    def _message(self, address: str, *values: float) -> bytes:
        builder = self._builder.OscMessageBuilder(address)
        for value in values:
            builder.add_arg(value, "f" if isinstance(value, float) else "i")
        data: bytes = builder.build().dgram
        return data


def _load_builder() -> Any:
    try:
        return importlib.import_module("pythonosc.osc_message_builder")
    except ImportError as error:
        raise MissingExtraError("messages of OSC", "osc") from error
