"""Who is served: hosts, origins, tokens, rates, sizes; and what nobody is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.inputs import Clock
from tests.live.web.conftest import BASE, Open, Page
from tytoalba.live.outputs.access import Guesses
from tytoalba.live.outputs.rates import Rates
from tytoalba.live.web import guard
from tytoalba.live.web.guard import CSP, HEADERS
from tytoalba.live.web.sessions import COOKIE, Sessions

TOKEN = "a-long-token-of-a-test"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATHS = ["/api/state", "/api/update", "/api/localizer", "/api/openapi.json", "/report", "/nothing"]


@pytest.fixture
def quiet(open_page: Open) -> Page:
    """A page without sound and without a state."""
    return open_page(sound=False)


def test_every_answer_has_the_headers(quiet: Page) -> None:
    for path in ("/", "/live.js", "/api/state", "/nothing"):
        headers = quiet.client.get(path).headers
        assert headers["content-security-policy"] == CSP
        assert {name for name in HEADERS if name not in headers} == set()
    assert quiet.client.get("/api/state").headers["cache-control"] == "no-store"
    assert "server" not in quiet.client.get("/").headers


@pytest.mark.parametrize("host", ["evil.test", "evil.test:8010", "127.0.0.1.evil.test", "", "192.0.2.7"])
def test_names_that_were_rebound_are_refused(quiet: Page, host: str) -> None:
    for path in ("/", "/api/state"):
        assert "does not know the name" in quiet.get(path, 403, headers={"Host": host})
    assert quiet.refused_live(Host=host) == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.test", "http://127.0.0.1:9000", "https://127.0.0.1:8010", "null"]
)
def test_pages_of_other_sites_are_refused(quiet: Page, origin: str) -> None:
    headers = {"Origin": origin}
    assert "other sites" in quiet.get("/api/state", 403, headers=headers)
    assert "other sites" in quiet.post("/api/lessons", 403, json={"azimuth": 1}, headers=headers)
    assert quiet.refused_live(**headers) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_other_pages_embed_is_refused(quiet: Page, site: str) -> None:
    headers = {"Sec-Fetch-Site": site}
    assert "other sites" in quiet.get("/api/state", 403, headers=headers)
    assert quiet.client.get("/", headers=headers).status_code == 200  # a link to it


def test_its_own_page_may_ask(quiet: Page) -> None:
    headers = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    quiet.get("/api/state", headers=headers)
    with quiet.live(**headers) as socket:
        assert socket.receive_json()["type"] == "state"


def test_pages_of_a_listed_site_may_ask_and_read(open_page: Open) -> None:
    page = open_page(sound=False, token=TOKEN, origins=("https://home.example",))
    headers = {"Origin": "https://home.example", "Sec-Fetch-Site": "cross-site"}
    before = page.client.options("/api/lessons", headers=headers)
    assert before.status_code == 204
    assert before.headers["access-control-allow-origin"] == "https://home.example"
    assert "access-control-allow-credentials" not in before.headers
    assert "show the token" in page.get("/api/state", 401, headers=headers)
    page.get("/api/state", headers=headers | BEARER)
    other = page.client.get("/api/state", headers=BEARER)
    assert "access-control-allow-origin" not in other.headers


def test_a_token_is_asked_for_everywhere_but_on_the_page(open_page: Open) -> None:
    page = open_page(sound=False, token=TOKEN)
    assert page.client.get("/").status_code == 200
    for path in PATHS:
        assert "show the token" in page.get(path, 401)
        assert page.client.get(path).headers["www-authenticate"] == "Bearer"
        assert page.client.get(path, headers=BEARER).status_code != 401
    for method in ("POST", "DELETE"):
        assert page.client.request(method, "/api/lessons").status_code == 401
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{COOKIE}=1.2"}):
        assert page.refused_live(**headers) == 401
    assert page.refused_live(f"?token={TOKEN}") == 401  # what is in an address is written down by others
    with page.live(**BEARER) as socket:
        assert socket.receive_json()["needs_token"] is True


def test_signing_in_and_out(open_page: Open) -> None:
    page = open_page(sound=False, token=TOKEN)
    assert "not the token" in page.post("/api/session", 401, json={"token": "wrong"})
    page.post("/api/session", 204, json={"token": TOKEN})
    assert set(page.client.cookies) == {COOKIE}
    page.get("/api/state")
    with page.live() as socket:
        socket.receive_json()
    page.delete("/api/session", 204)
    page.client.cookies.clear()
    page.get("/api/state", 401)


def test_guessing_tokens_is_slow(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(guard, "Guesses", lambda: Guesses(clock))
    page = open_page(sound=False, token=TOKEN)
    for _ in range(20):  # a program with an old token is no guesser
        page.get("/api/state", 401, headers={"Authorization": "Bearer an-old-token-of-mine"})
    tries = [page.client.post("/api/session", json={"token": str(n)}).status_code for n in range(12)]
    assert tries == [401] * 9 + [429] * 3
    page.get("/api/state", 429, headers=BEARER)  # one more guess, which is right
    page.client.cookies.set(COOKIE, Sessions(TOKEN).new())
    page.get("/api/state")
    page.client.cookies.clear()
    clock.now += 10
    page.get("/api/state", headers=BEARER)


def test_who_asks_too_often_waits(open_page: Open) -> None:
    page = open_page(sound=False, rates=Rates(0.001, 3))
    for _ in range(3):
        page.get("/api/state")
    assert "too many requests" in page.get("/api/state", 429)
    assert page.client.get("/api/state").headers["retry-after"]
    assert page.refused_live() == 429


BAD_BODIES: list[tuple[int, str, dict[str, Any]]] = [
    (415, "Content-Type", {"content": b"{}"}),
    (415, "Content-Type", {"data": {"azimuth": "1"}}),
    (400, "not JSON", {"content": b"{", "headers": {"Content-Type": "application/json"}}),
    (400, "not JSON", {"content": b"\xff\xfe", "headers": {"Content-Type": "application/json"}}),
    (400, "nested", {"content": b"[" * 20000, "headers": {"Content-Type": "application/json"}}),
    (400, "JSON object", {"json": [1]}),
    (400, "azimuth is a number", {"json": {}}),
    (400, "azimuth is a number", {"json": {"azimuth": True}}),
    (400, "azimuth is a number", {"json": {"azimuth": 1e9}}),
    (
        400,
        "azimuth is a number",
        {"content": b'{"azimuth": NaN}', "headers": {"Content-Type": "application/json"}},
    ),
    (400, "seconds is a number", {"json": {"azimuth": 1, "seconds": 0.5}}),
    (400, "who is one line", {"json": {"azimuth": 1, "who": "a\nb"}}),
    (400, "who is one line", {"json": {"azimuth": 1, "who": "x" * 201}}),
    (400, "no key called 'path'", {"json": {"azimuth": 1, "path": "/etc/passwd"}}),
    (413, "larger than", {"json": {"azimuth": 1, "who": "x" * 40000}}),
]


def test_bodies_that_are_refused(page: Page) -> None:
    for status, why, body in BAD_BODIES:
        assert why in page.post("/api/lessons", status, **body)
    assert page.get("/api/lessons/last", 404)  # and nothing else happened


def test_a_body_without_a_length_is_measured_as_it_comes(page: Page) -> None:
    headers = {"Content-Type": "application/json"}
    assert "larger than" in page.post(
        "/api/lessons", 413, content=(b" " * 1000 for _ in range(40)), headers=headers
    )


def test_queries_that_are_refused(quiet: Page) -> None:
    for path, why in (
        ("/api/state?x=1", "there are none here"),
        ("/api/lessons?who=a&who=b", "once only"),
        ("/api/lessons", "say which"),
        ("/api/lessons?file=/etc/passwd", "no key of the query"),
    ):
        ask = quiet.get if "state" in path else quiet.delete
        assert why in ask(path, 400)


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/live.js/../x",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/state/",
        "/LIVE.JS",
        "/report",
    ],
)
def test_there_is_nothing_else(quiet: Page, path: str) -> None:
    assert "nothing here" in quiet.get(path, 404)


def test_what_nobody_expected_is_said_at_the_terminal_alone(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(sound=False)

    def fails() -> None:
        raise KeyError("/home/anna/secret")

    monkeypatch.setattr(page.station, "state", fails)
    page.client._transport.raise_server_exceptions = False
    text = page.get("/api/state", 500)
    assert "secret" not in text
    assert any("KeyError" in line for line in page.said)


def test_the_page_is_read_again_only_when_it_changed(quiet: Page) -> None:
    first = quiet.client.get("/live.css")
    assert first.headers["content-type"] == "text/css; charset=utf-8"
    again = quiet.client.get("/live.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_report_is_kept_in_a_sandbox(open_page: Open, tmp_path: Path) -> None:
    from tytoalba.errors import TytoError
    from tytoalba.live.web.pages import report_file

    path = tmp_path / "report.html"
    path.write_text("<!doctype html><script>1</script>")
    page = open_page(sound=False, report=report_file(path))
    answer = page.client.get("/report")
    assert answer.text == path.read_text()
    assert "sandbox allow-scripts" in answer.headers["content-security-policy"]
    assert page.get("/api/state")["report"] is True
    path.write_text(json.dumps({}))
    with pytest.raises(TytoError, match="not a page"):
        report_file(path)
