from __future__ import annotations

import importlib
import socket
from typing import Any

import pytest
from hypothesis import given, settings

from tests.helpers.updates import HOST, frame, hand_over, track, updates
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.osc import Osc
from tytoalba.live.update import Update

Message = tuple[str, list[Any]]


class Receiver:
    def __init__(self, host: str = HOST) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        self.socket.settimeout(5)
        self.address = Address(*self.socket.getsockname())

    def read(self, n_messages: int) -> list[Message]:
        from pythonosc.osc_message import OscMessage

        messages = [OscMessage(self.socket.recv(65536)) for _ in range(n_messages)]
        return [(one.address, list(one.params)) for one in messages]


@pytest.fixture(scope="module")
def receiver() -> Any:
    one = Receiver()
    yield one
    one.socket.close()


def test_tracks_come_over_udp_and_who_left_is_told(receiver: Receiver) -> None:
    output = Osc(receiver.address, pytest.fail)
    hand_over(output, 1, track(1, 40.5), track(2, 300.0, speaking=False, probability=0.5))
    hand_over(output, 1, track(2, 301.0), first=1)
    output.close()
    assert receiver.read(6) == [
        ("/tyto/track", [1, 40.5, pytest.approx(0.9), 1]),
        ("/tyto/track", [2, 300.0, 0.5, 0]),
        ("/tyto/frame", [0.0, -30.0, 2]),
        ("/tyto/gone", [1]),
        ("/tyto/track", [2, 301.0, pytest.approx(0.9), 1]),
        ("/tyto/frame", [pytest.approx(0.064), -30.0, 1]),
    ]


@settings(max_examples=25)
@given(update=updates())
def test_whatever_the_update_it_is_read_back(receiver: Receiver, update: Update) -> None:
    output = Osc(receiver.address, pytest.fail)
    output.send(update, frame(0))
    output.close()
    *read, (_, last) = receiver.read(len(update.tracks) + 1)
    assert [values[0] for _, values in read] == [one.id for one in update.tracks]
    assert [values[1] for _, values in read] == pytest.approx([one.azimuth for one in update.tracks])
    assert last[2] == len(update.tracks)


def test_everybody_of_a_network_may_be_told() -> None:
    receiver = Receiver("")
    output = Osc(Address("127.255.255.255", receiver.address.port), pytest.fail)
    hand_over(output, 1)
    output.close()
    assert receiver.read(1) == [("/tyto/frame", [0.0, -30.0, 0])]
    receiver.socket.close()


def test_nobody_needs_to_listen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((HOST, 0))
        address = Address(*one.getsockname())
    output = Osc(address, pytest.fail)
    hand_over(output, 50, track(1), pause=0.001)
    output.close()


def test_a_network_that_is_gone_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    output = Osc(Address(HOST, 9), said.append)

    class Unreachable:
        def sendto(self, *_: object) -> None:
            raise OSError(101, "Network is unreachable")

    works = output._socket
    monkeypatch.setattr(output, "_socket", Unreachable())
    hand_over(output, 3, track(1))
    monkeypatch.setattr(output, "_socket", works)
    hand_over(output, 3, track(1))
    output.close()
    name = "the network to 127.0.0.1:9 (OSC)"
    gone = f"{name} is gone (Network is unreachable); nothing is sent until it is back"
    assert said == [gone, f"{name} is back"]


def test_a_host_that_is_not_there_and_a_missing_extra_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(TytoError, match=r"no host nowhere\.invalid for OSC"):
        Osc(Address("nowhere.invalid", 9000), print)

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match="tytoalba\\[osc\\]"):
        Osc(Address(HOST, 9000), print)
