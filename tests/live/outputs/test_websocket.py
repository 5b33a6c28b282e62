from __future__ import annotations

import importlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.helpers.updates import HOST, frame, free_port, hand_over, track, updates, wait_until
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs import websocket
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.mailbox import LONGEST_QUEUE
from tytoalba.live.outputs.websocket import WebSocket
from tytoalba.live.update import Update

ANY = Address(HOST, 0)
TOKEN = "a-long-token-of-a-test"
HELLO = (
    b"GET / HTTP/1.1\r\nHost: tyto\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@pytest.fixture
def output() -> Iterator[WebSocket]:
    one = WebSocket(ANY)
    yield one
    one.close()
    assert not one._thread.is_alive()


@contextmanager
def joined(output: WebSocket, path: str = "", **options: Any) -> Iterator[ClientConnection]:
    """A client that the server knows of, and has forgotten afterwards."""
    before = output.n_clients
    with connect(f"ws://{output.address}/{path}", proxy=None, **options) as client:
        wait_until(lambda: output.n_clients > before)
        yield client
    wait_until(lambda: output.n_clients == before)


def join(output: WebSocket, path: str = "", **options: Any) -> None:
    with joined(output, path, **options):
        pass


def deaf(output: WebSocket) -> socket.socket:
    """A client that never reads."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect((HOST, output.address.port))
    raw.sendall(HELLO)
    return raw


def send_often(raw: socket.socket, data: bytes) -> None:
    for _ in range(200):
        raw.sendall(data)
        time.sleep(0.01)


def test_every_client_gets_every_update_as_json(output: WebSocket) -> None:
    with joined(output) as first, joined(output) as second:
        hand_over(output, 10, track(1, 77.0))
        for client in (first, second):
            read = [json.loads(client.recv(5)) for _ in range(10)]
            assert [one["time"] for one in read] == [round(0.064 * n, 4) for n in range(10)]
            assert read[0]["tracks"][0]["azimuth"] == 77.0
            assert read[0]["latency"] == 0.01


def test_who_comes_late_gets_the_newest_at_once(output: WebSocket) -> None:
    hand_over(output, 3, track(1))
    with joined(output) as client:
        assert json.loads(client.recv(5))["time"] == 0.128


def test_who_leaves_is_forgotten(output: WebSocket) -> None:
    join(output)
    raw = deaf(output)
    wait_until(lambda: output.n_clients == 1)
    raw.close()  # without a goodbye
    wait_until(lambda: output.n_clients == 0)
    hand_over(output, 3, track(1))


def test_what_clients_say_is_not_listened_to(output: WebSocket) -> None:
    with joined(output) as client:
        for _ in range(50):
            client.send("hello")
        hand_over(output, 1, track(1))
        assert json.loads(client.recv(5))["time"] == 0.0
    with joined(output) as rude:
        assert rude.recv(5)  # the newest
        rude.send(5000 * "x")
        with pytest.raises(ConnectionClosed, match="1009"):  # too big
            rude.recv(5)


def test_who_floods_it_with_pings_is_let_go(output: WebSocket) -> None:
    """The answers wait for a client that never reads."""
    with deaf(output) as raw:
        wait_until(lambda: output.n_clients == 1)
        raw.settimeout(10)
        with pytest.raises(ConnectionError):
            send_often(raw, 500 * (b"\x89\xfdmask" + bytes(125)))
    wait_until(lambda: output.n_clients == 0)
    join(output)  # others are welcome


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[WebSocket, ClientConnection]]:
    one = WebSocket(ANY)
    with joined(one) as client:
        yield one, client
    one.close()


@settings(max_examples=25)
@given(update=updates())
def test_whatever_the_update_it_is_read_back(
    shared: tuple[WebSocket, ClientConnection], update: Update
) -> None:
    output, client = shared
    output.send(update, frame(0))
    assert json.loads(client.recv(5)) == json.loads(update.json)


@pytest.mark.end_to_end
def test_who_never_reads_slows_nobody_down(output: WebSocket) -> None:
    silent = [deaf(output) for _ in range(10)]
    wait_until(lambda: output.n_clients == 10)
    times = list[float]()

    def read(client: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                times.append(json.loads(client.recv())["time"])

    with joined(output) as client:
        reading = threading.Thread(target=read, args=(client,))
        reading.start()
        for start in range(0, 1000, 10):
            hand_over(output, 10, *(track(n) for n in range(1, 5)), first=start)
            wait_until(lambda: len(times) == start + 10)  # noqa: B023, it is called here
        waiting = [len(one) for one in output._clients]
    reading.join(5)
    assert times == [round(0.064 * n, 4) for n in range(1000)]  # who reads has lost nothing
    assert sorted(waiting) == [0, *[LONGEST_QUEUE] * 10]  # and the others are not waited for
    for raw in silent:
        raw.close()


@pytest.mark.end_to_end
def test_who_was_slow_goes_on_with_the_newest(output: WebSocket) -> None:
    handed = 0

    def full() -> bool:
        """Whether also what the system takes in for a client is full, so that its queue stays full."""
        nonlocal handed
        hand_over(output, 500, track(1), first=handed)
        handed += 500
        time.sleep(0.05)
        return len(client) == LONGEST_QUEUE

    read = b""
    with closing(deaf(output)) as raw:
        wait_until(lambda: output.n_clients == 1)
        (client,) = output._clients
        wait_until(full, seconds=30)
        full()
        raw.settimeout(0.5)
        with suppress(TimeoutError):
            while data := raw.recv(65536):
                read += data
    times = [
        json.loads(b'{"time"' + part.partition(b'"level"')[0].rpartition(b", ")[0] + b"}")["time"]
        for part in read.split(b'{"time"')[1:]
    ]
    last = [round(0.064 * n, 4) for n in range(handed - LONGEST_QUEUE, handed)]
    assert times[-LONGEST_QUEUE:] == last
    assert times == sorted(times)
    assert len(times) <= handed - 500  # at least the older ones of the last 500 and 32 were dropped


def test_who_does_not_answer_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "UNANSWERED", 0.05)
    monkeypatch.setattr(websocket, "CLOSING", 0.05)
    output = WebSocket(ANY)
    raw = deaf(output)
    wait_until(lambda: output.n_clients == 1)
    wait_until(lambda: output.n_clients == 0)
    raw.close()
    output.close()


def test_there_is_room_for_so_many_clients() -> None:
    output = WebSocket(ANY, most=2)
    with joined(output), joined(output):
        with pytest.raises(InvalidStatus) as refused:
            join(output)
        assert refused.value.response.status_code == 503
    output.close()


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        (None, True),  # no browser
        ("http://localhost:8000", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:3000", True),
        ("https://home.example", True),
        ("https://HOME.example", True),
        ("https://home.example.evil.test", False),
        ("https://evil.test", False),
        ("http://127.0.0.1.evil.test", False),
        ("http://localhost@evil.test", False),
        ("null", False),
        ("http://[::1", False),
    ],
)
def test_pages_of_other_sites_are_refused(origin: str | None, welcome: bool) -> None:
    output = WebSocket(ANY, origins=["https://home.example/"])
    try:
        if welcome:
            join(output, origin=origin)
        else:
            with pytest.raises(InvalidStatus) as refused:
                join(output, origin=origin)
            assert refused.value.response.status_code == 403
    finally:
        output.close()


def test_a_token_is_asked_for() -> None:
    output = WebSocket(ANY, token=TOKEN)
    join(output, additional_headers={"Authorization": f"Bearer {TOKEN}"})
    join(output, f"?token={TOKEN}")
    for path, headers in (
        ("", {}),
        ("?token=wrong", {}),
        (f"?token={TOKEN}x", {}),
        ("", {"Authorization": "Bearer wrong"}),
        ("", {"Authorization": f"Basic {TOKEN}"}),
    ):
        with pytest.raises(InvalidStatus) as refused:
            join(output, path, additional_headers=headers)
        assert refused.value.response.status_code == 401
    output.close()


def test_guessing_tokens_is_slow() -> None:
    output, answers = WebSocket(ANY, token=TOKEN), list[int]()
    for number in range(12):
        with pytest.raises(InvalidStatus) as refused:
            join(output, f"?token=a-guess-{number}")
        answers.append(refused.value.response.status_code)
    assert answers == [401] * 10 + [429] * 2
    with pytest.raises(InvalidStatus, match="429"):
        join(output, f"?token={TOKEN}")  # one more guess, which is right
    output.close()


def test_what_is_not_safe_or_not_possible_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TytoError, match="needs a token"):
        WebSocket(Address("0.0.0.0", free_port()))
    with pytest.raises(TytoError, match="at least 16"):
        WebSocket(ANY, token="short")
    with socket.create_server((HOST, 0)) as server, pytest.raises(TytoError, match="is the port taken"):
        WebSocket(Address(*server.getsockname()))
    with pytest.raises(TytoError, match="cannot listen at"):  # no OSError, and nobody must wait for ever
        WebSocket(Address(64 * "a", free_port()), token=TOKEN)

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match="tytoalba\\[web\\]"):
        WebSocket(ANY)


def test_other_machines_may_come_with_a_token() -> None:
    output = WebSocket(Address("0.0.0.0", 0), token=TOKEN)
    with connect(f"ws://{HOST}:{output.address.port}/?token={TOKEN}", proxy=None) as client:
        wait_until(lambda: output.n_clients == 1)
        hand_over(output, 1, track(1))
        assert json.loads(client.recv(5))["time"] == 0.0
    output.close()
