from __future__ import annotations

import time

import pytest

from tytoalba.live.web.sessions import SECONDS, Sessions

TOKEN = "a-long-token-of-a-test"


def test_a_token_or_its_cookie_opens() -> None:
    sessions = Sessions(TOKEN)
    assert sessions.is_open(f"Bearer {TOKEN}")
    assert sessions.is_open("", sessions.new())
    assert Sessions(TOKEN).is_open("", sessions.new()), "a session outlives a restart"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"]
)
def test_other_headers_do_not(header: str) -> None:
    assert not Sessions(TOKEN).is_open(header)


def test_other_cookies_do_not() -> None:
    sessions = Sessions(TOKEN)
    until, signature = sessions.new().split(".")
    forged = [
        "",
        ".",
        until,
        f"{until}.",
        f"{int(until) + 1}.{signature}",
        f"{until}.{signature[:-1]}x",
        f"{until}.\u00fc",
        f"\u0661{until[1:]}.{signature}",
        Sessions(f"{TOKEN}x").new(),
        sessions.new(now=time.time() - SECONDS - 1),
    ]
    assert not [cookie for cookie in forged if sessions.is_open("", cookie)]


def test_the_cookie_is_for_this_site_alone() -> None:
    cookie = Sessions(TOKEN, secure=True).cookie("value")
    assert set(cookie.split("; ")[2:]) == {f"Max-Age={SECONDS}", "HttpOnly", "SameSite=Strict", "Secure"}
    assert "Secure" not in Sessions(TOKEN).cookie("value")
    assert "Max-Age=0" in Sessions(TOKEN).cookie()
    assert TOKEN not in Sessions(TOKEN).new()


def test_without_a_token_all_is_open() -> None:
    sessions = Sessions(None)
    assert sessions.is_open()
    assert not sessions.needs_token
    assert not sessions.is_token("")
