from __future__ import annotations

import pytest

from tytoalba.errors import TytoError
from tytoalba.live.outputs.access import bearer_token, checked_token, is_local, same_token


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 15, "an owl in the barn", "\u00fc" * 20, "x" * 20 + "\n"]
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(TytoError, match="at least 16"):
        checked_token(token)


def test_tokens_are_compared_whole() -> None:
    token = checked_token("an-owl-in-the-barn")
    assert same_token(token, token)
    assert same_token(f" {token}\n", token)
    for other in (token[:-1], f"{token}x", token.upper(), "", "\ud800"):
        assert not same_token(other, token)


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", ""), ("", ""), ("Bearer", "")],
)
def test_token_of_a_header(header: str, token: str) -> None:
    assert bearer_token(header) == token


@pytest.mark.parametrize(
    ("origin", "local"),
    [
        ("http://localhost:8000", True),
        ("http://[::1]:3000", True),
        ("http://localhost@evil.test", False),
        ("http://127.0.0.1.evil.test", False),
        ("null", False),
        ("http://[::1", False),
    ],
)
def test_pages_of_this_machine(origin: str, local: bool) -> None:
    assert is_local(origin) == local
