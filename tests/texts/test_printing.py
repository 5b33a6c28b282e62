"""Nothing that is shown steers a terminal, and no secret key is shown."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tytoalba.texts.printing import shown

SECRET = "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54KHCE6M"
PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA0SECRETSECRET\n-----END PRIVATE KEY-----\n"
SSH = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAASECRETSECRET\nMORE+SECRET\n"


@given(st.text())
def test_what_is_shown_steers_nothing(text: str) -> None:
    assert all(c.isprintable() or c == "\xa0" for c in shown(text))
    assert all(c.isprintable() or c in "\n\xa0" for c in shown(text, lines=True))
    shown(text).encode()  # no half letters
    if text.isprintable():
        assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;title\x07\x9b31m\x7f\r\b", r"\x1b]0;title\x07\x9b31m\x7f\r\x08"),
        ("name\nerror: all is lost", r"name\nerror: all is lost"),
        ("\u202egnp.exe\u2066\u200b\u2028\ue000", r"\u202egnp.exe\u2066\u200b\u2028\ue000"),
        ("Müller, 音, 😀", "Müller, 音, 😀"),
        (f"{SECRET} is no key", "(secret key) is no key"),
        (f"{SECRET.lower()!r}", "'(secret key)'"),
        (f"{SECRET[:40]}...", "(secret key)..."),
        (f"<{PEM}>", r"<(secret key)\n>"),
        (f"{PEM!r}", r"'(secret key)\n'"),
        (f"x {SSH}", "x (secret key)"),
        (PEM.splitlines()[1], "(secret key)"),
        (SSH.splitlines()[1], "(secret key)"),
    ],
)
def test_keys_and_controls(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_a_long_hostile_text_is_shown_in_time() -> None:
    started = time.process_time()
    for piece in ("-----BEGIN PRIVATE KEY-----", "AGE-SECRET-KEY-", "\x1b", "-----BEGIN ", "AGE-"):
        shown(piece * 20_000)
    assert time.process_time() - started < 2
