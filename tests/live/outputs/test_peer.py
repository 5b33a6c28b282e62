from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.helpers.updates import wait_until
from tytoalba.live.outputs import peer
from tytoalba.live.outputs.peer import Peer


class Connected:
    """Takes messages until it is told not to; may be slow."""

    def __init__(self, taken: list[int], broken: threading.Event, gate: threading.Event) -> None:
        self.taken, self.broken, self.gate = taken, broken, gate

    def send(self, message: int) -> None:
        self.gate.wait(5)
        if self.broken.is_set():
            raise BrokenPipeError("broken pipe")
        self.taken.append(message)

    def close(self) -> None:
        pass


def send_until(happened: Callable[[], bool], one: Peer[int], message: int) -> None:
    def happened_now() -> bool:
        one.send(message)
        return happened()

    wait_until(happened_now)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("FIRST_PAUSE", 0.01), ("LONGEST_PAUSE", 0.04), ("STEADY", 0.05)):
        monkeypatch.setattr(peer, name, seconds)


@pytest.fixture
def events() -> tuple[threading.Event, threading.Event]:
    broken, gate = threading.Event(), threading.Event()
    gate.set()
    return broken, gate


def test_messages_arrive_in_order_and_closing_hands_over_the_rest(
    events: tuple[threading.Event, threading.Event],
) -> None:
    taken: list[int] = []
    said: list[str] = []
    one = Peer("the radio", lambda: Connected(taken, *events), said.append, longest=100)
    for number in range(100):
        one.send(number)
    one.close()
    assert (taken, said, one.dropped) == (list(range(100)), [], 0)


def test_a_slow_peer_loses_the_oldest_and_nobody_waits(
    events: tuple[threading.Event, threading.Event],
) -> None:
    broken, gate = events
    gate.clear()
    taken: list[int] = []
    one = Peer("the radio", lambda: Connected(taken, broken, gate), print, longest=4)
    one.send(0)
    wait_until(lambda: not one._waiting)  # it is in the peer's hands
    began = time.monotonic()
    for number in range(1, 1001):
        one.send(number)
    assert time.monotonic() - began < 0.5
    gate.set()
    one.close()
    assert (taken, one.dropped) == ([0, 997, 998, 999, 1000], 996)


def test_that_a_peer_is_gone_and_back_is_said_once(events: tuple[threading.Event, threading.Event]) -> None:
    broken, _ = events
    broken.set()
    taken: list[int] = []
    said: list[str] = []
    attempts = 0

    def connect() -> Connected:
        nonlocal attempts
        attempts += 1
        if attempts % 2:
            raise ConnectionRefusedError(111, "Connection refused")
        return Connected(taken, *events)

    one = Peer("the radio", connect, said.append)
    send_until(lambda: attempts >= 6, one, 0)
    assert said == ["the radio is gone (Connection refused); it gets nothing until it is back"]
    broken.clear()
    send_until(lambda: len(said) > 1, one, 1)
    one.close()
    assert said[1:] == ["the radio is back"]
    assert 0 not in taken[-5:]
    assert one.dropped > 0


def test_closing_does_not_wait_for_a_peer_that_is_gone() -> None:
    def refuse() -> Connected:
        raise OSError("no network")

    one = Peer("the radio", refuse, lambda _: None)
    one.send(1)
    began = time.monotonic()
    one.close()
    assert time.monotonic() - began < 0.5
    assert not one._thread.is_alive()


def test_closing_does_not_wait_for_a_peer_that_is_stuck(
    events: tuple[threading.Event, threading.Event],
) -> None:
    broken, gate = events
    gate.clear()
    one = Peer("the radio", lambda: Connected([], broken, gate), print)
    one.send(1)
    began = time.monotonic()
    one.close(0.1)
    assert time.monotonic() - began < 0.6
    gate.set()
