"""The server at a real port: what is taken, who dawdles, TLS, ends and restarts."""

from __future__ import annotations

import importlib
import socket
import ssl
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.helpers.certificates import make_certificates
from tests.helpers.serving import Played, new_state, running, station_of
from tests.helpers.updates import HOST, free_port, wait_until
from tytoalba.data.demo import demo_recording
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.web import guard, protocols, server
from tytoalba.live.web.pages import report_file
from tytoalba.live.web.server import Tls, open_port

TOKEN = "a-long-token-of-a-test"


def ask(port: int, path: str, data: bytes | None = None, **headers: str) -> bytes:
    request = urllib.request.Request(f"http://{HOST}:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def read_on(client: ClientConnection) -> None:
    while True:
        client.recv(5)


def read_all(raw: socket.socket) -> bytes:
    read = b""
    with suppress(ConnectionError):
        while data := raw.recv(65536):
            read += data
    return read


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TytoError, match=rf"at {HOST}:{port}: .*another program.*--port {port + 1}"):
            open_port(Address(HOST, port))


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"tytoalba\[web\]"):
        server.load_uvicorn()


def test_files_that_are_no_certificate_are_refused_at_once(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    Tls(files.certificate, files.key).check()
    with pytest.raises(TytoError, match="no file"):
        Tls(files.certificate, tmp_path / "none.pem").check()
    for certificate, key in ((files.key, files.certificate), (files.authority, files.key)):
        with pytest.raises(TytoError, match="are not a certificate and its key"):
            Tls(certificate, key).check()


def test_who_dawdles_over_the_head_of_a_request_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "HEAD_SECONDS", 0.3)
    with running(station_of()) as one:
        idle = socket.create_connection((HOST, one.port), timeout=10)
        slow = socket.create_connection((HOST, one.port), timeout=10)
        again = socket.create_connection((HOST, one.port), timeout=10)
        again.sendall(f"GET /api/state HTTP/1.1\r\nHost: {HOST}:{one.port}\r\n\r\n".encode())
        began = time.monotonic()
        for letter in b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1":
            with suppress(ConnectionError):
                slow.sendall(bytes([letter]))
            time.sleep(0.01)  # slower than a limit on silence would see
        assert read_all(idle) == read_all(slow) == b""
        assert b"200 OK" in again.recv(65536)
        again.sendall(b"GET /")
        read_all(again)
        assert time.monotonic() - began < 5
        assert ask(one.port, "/api/state")  # the others are served
        for raw in (idle, slow, again):
            raw.close()


def test_who_dawdles_over_a_body_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tytoalba.live.web.bodies.PIECE_SECONDS", 0.2)
    body = b'{"az'
    with running(station_of(state=new_state(tmp_path / "k.tyto"))) as one, socket.socket() as raw:
        raw.settimeout(10)
        raw.connect((HOST, one.port))
        raw.sendall(
            f"POST /api/lessons HTTP/1.1\r\nHost: {HOST}:{one.port}\r\nContent-Type: application/json\r\n"
            "Content-Length: 100\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        read = read_all(raw)
    assert b"408 Request Timeout" in read
    assert b"too slowly" in read


def test_heads_that_are_too_long_and_nonsense_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "HEAD_SECONDS", 0.3)
    with running(station_of()) as one:
        for text in (b"GET / HTTP/1.1\r\nX: " + b"x" * 70000, b"\x16\x03\x01\x02\x00" * 10, b"GET\r\n\r\n"):
            with socket.create_connection((HOST, one.port), timeout=10) as raw:
                with suppress(ConnectionError):
                    raw.sendall(text)
                assert b"200" not in read_all(raw)[:20]
        assert ask(one.port, "/")


def test_so_many_connections_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "MOST_CONNECTIONS", 3)
    with running(station_of()) as one:
        held = [socket.create_connection((HOST, one.port), timeout=10) for _ in range(3)]
        wait_until(lambda: len(one._server.server_state.connections) == 3)
        with socket.create_connection((HOST, one.port), timeout=10) as raw:
            assert read_all(raw) == b""
        for raw in held:
            raw.close()
        wait_until(lambda: not one._server.server_state.connections)
        assert ask(one.port, "/")


LIVE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def deaf(port: int, request: str, headers: dict[str, str] | None = None) -> socket.socket:
    """A client that asks, and never reads the answer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(10)
    raw.connect((HOST, port))
    lines = [f"{name}: {value}" for name, value in ({"Host": f"{HOST}:{port}"} | (headers or {})).items()]
    raw.sendall("\r\n".join([f"{request} HTTP/1.1", *lines, "", ""]).encode())
    return raw


def send_often(raw: socket.socket, data: bytes, pause: float) -> None:
    """Two hundred times, a little later each."""
    for _ in range(200):
        raw.sendall(data)
        time.sleep(pause)


def test_answers_wait_in_pieces_for_who_never_reads_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(guard, "TAKING", 1.0)
    monkeypatch.setattr(protocols, "LINGER", 0.2)
    page = tmp_path / "report.html"
    page.write_bytes(b"<!doctype html>" + bytes(32 * 2**20))
    with running(station_of(report=report_file(page))) as one, ExitStack() as stack:
        connections = one._server.server_state.connections
        for _ in range(5):
            stack.enter_context(deaf(one.port, "GET /report"))
        wait_until(lambda: len(connections) == 5)
        wait_until(lambda: all(c.cycle is not None and c.cycle.response_started for c in connections))
        assert max(c.transport.get_write_buffer_size() for c in list(connections)) <= 3 * guard.PIECE
        wait_until(lambda: not connections)
        assert ask(one.port, "/report") == page.read_bytes()


def test_who_goes_on_sending_what_was_refused_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "LINGER", 0.3)
    with running(station_of()) as one:
        with deaf(one.port, "POST /nothing", {"Content-Length": "30000"}) as raw:
            assert b"404 Not Found" in raw.recv(65536)
            with pytest.raises(ConnectionError):
                send_often(raw, b" ", 0.02)  # each is a sign of life
        # the end of a body that was refused may come in time, and then the next request
        with deaf(one.port, "POST /nothing", {"Content-Length": "3"}) as raw:
            assert b"404 Not Found" in raw.recv(65536)
            raw.sendall(f"abcGET / HTTP/1.1\r\nHost: {HOST}:{one.port}\r\n\r\n".encode())
            time.sleep(2 * protocols.LINGER)
            assert b"200 OK" in raw.recv(65536)


@pytest.mark.parametrize(
    ("first", "flood"),
    [
        (b"", 500 * (b"\x89\xfdmask" + bytes(125))),  # pings, whose answers wait for who never reads
        (b"\x01\x80mask", b"\x00\x80mask"),  # empty pieces of a message that never ends
    ],
    ids=["pings", "pieces"],
)
def test_who_says_much_on_the_live_channel_is_let_go(first: bytes, flood: bytes) -> None:
    station = station_of(Played())
    with running(station) as one:
        with deaf(one.port, "GET /api/live", LIVE) as raw:
            wait_until(lambda: len(station.fanout) == 1)
            raw.sendall(first)
            with pytest.raises(ConnectionError):
                send_often(raw, flood, 0.01)
            wait_until(lambda: len(station.fanout) == 0)
        with connect(f"ws://{HOST}:{one.port}/api/live", proxy=None) as client:
            assert '"type": "state"' in str(client.recv(5))


def test_who_never_reads_the_live_channel_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNANSWERED", 0.3)
    monkeypatch.setattr(protocols, "LINGER", 0.2)
    station = station_of(Played(speed=100.0))
    with running(station) as one, deaf(one.port, "GET /api/live", LIVE):
        wait_until(lambda: len(station.fanout) == 1)
        wait_until(lambda: len(station.fanout) == 0)
        assert not one._server.server_state.connections


def test_who_dawdles_over_the_handshake_of_tls_is_let_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(protocols, "HEAD_SECONDS", 0.3)
    files = make_certificates(tmp_path)
    tls = Tls(files.certificate, files.key)
    with running(station_of(), tls=tls) as one, socket.create_connection((HOST, one.port), 5) as raw:
        assert read_all(raw) == b""


def test_with_tls_the_cookie_is_secure(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    context = ssl.create_default_context(cafile=str(files.authority))
    tls = Tls(files.certificate, files.key)
    with running(station_of(token=TOKEN), tls=tls, token=TOKEN) as one:
        url = f"https://{HOST}:{one.port}"
        body = b'{"token": "' + TOKEN.encode() + b'"}'
        headers = {"Content-Type": "application/json", "Origin": url}
        request = urllib.request.Request(f"{url}/api/session", body, headers)
        with urllib.request.urlopen(request, context=context) as answer:
            cookie = answer.headers["Set-Cookie"]
        assert cookie.endswith("; Secure")
        more: dict[str, Any] = {"Cookie": cookie.partition(";")[0]}
        with connect(
            f"wss://{HOST}:{one.port}/api/live", ssl=context, additional_headers=more, proxy=None
        ) as client:
            assert '"needs_token": true' in str(client.recv(5))
        with pytest.raises(InvalidStatus) as refused:
            connect(f"wss://{HOST}:{one.port}/api/live", ssl=context, proxy=None)
        assert refused.value.response.status_code == 401


def test_clients_come_back_after_a_restart(tmp_path: Path) -> None:
    state, port = new_state(tmp_path / "k.tyto"), free_port()
    for _ in range(2):
        with ExitStack() as stack:
            with running(station_of(Played(), state), port):
                client = stack.enter_context(connect(f"ws://{HOST}:{port}/api/live", proxy=None))
                assert '"type": "state"' in str(client.recv(5))
            with pytest.raises(ConnectionClosed, match="1012"):  # service restart
                read_on(client)


@pytest.mark.end_to_end
def test_a_recording_is_located_while_the_live_sound_goes_on(tmp_path: Path) -> None:
    sound = demo_recording()[0].read_bytes()
    octets = {"Content-Type": "application/octet-stream"}
    with running(station_of(Played(), new_state(tmp_path / "k.tyto"))) as one:
        found = ask(one.port, "/api/locate", sound, **octets)
        assert b'"summary": "two people: 40 degrees' in found
        taught = ask(one.port, "/api/lessons/upload?azimuth=40&who=anna", sound, **octets)
        assert b'"frames":64' in taught
        # one at a time, and a client that goes away takes its work along
        with socket.create_connection((HOST, one.port), timeout=60) as raw:
            raw.sendall(
                f"POST /api/locate HTTP/1.1\r\nHost: {HOST}:{one.port}\r\nContent-Length: {len(sound)}\r\n"
                "Content-Type: application/octet-stream\r\nExpect: 100-continue\r\n\r\n".encode()
            )
            assert b"100 Continue" in raw.recv(1000)
            with pytest.raises(urllib.error.HTTPError, match="409"):
                ask(one.port, "/api/locate", b"x", **octets)
            raw.sendall(sound)
        wait_until(lambda: is_free(one.port), 30)


def is_free(port: int) -> bool:
    try:
        ask(port, "/api/locate", b"no sound", **{"Content-Type": "application/octet-stream"})
    except urllib.error.HTTPError as refused:
        return refused.code == 400
    return False
