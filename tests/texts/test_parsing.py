"""Hostile TOML and JSON are refused in words and in time, and nothing that is shown steers a terminal."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tytoalba.texts import LARGEST_TOML, parse_json, parse_toml, shown

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


HOSTILE_TOML = {
    "a = " + "[" * 5000: "nested more than 25 deep",
    "a = " + "{b=" * 5000: "nested more than 25 deep",
    ".".join("a" * 100_000) + " = 1": "a key has more than 10 parts",
    "x = {" + ".".join("a" * 50_000) + " = 1}": "a key has more than 10 parts",
    "[" + ".".join("a" * 50_000) + "]": "a key has more than 10 parts",
    "a = " + "1" * 5000: "a number has more than 1000 digits",
    "a = 0x" + "f" * 5000: "a number has more than 1000 digits",
    "a = 1" + "_1" * 3000: "a number has more than 1000 digits",
    "#" * (LARGEST_TOML + 1): "letters, and no such file has more than",
    "a = '" + "x" * 100_000: "at end of document",
    'a = """' + '"' * 100_000: "at line 1",
    '"\\"' * 50_000: "at line 1",
    "a = '''" + "'" * 100_000: "at line 1",
}


@pytest.mark.parametrize("text", HOSTILE_TOML, ids=lambda text: text[:8])
def test_hostile_toml(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match=HOSTILE_TOML[text]):
        parse_toml(text)
    assert time.process_time() - started < 1


def test_honest_toml() -> None:
    text = '[a.\'b.c\']\nx = [[1.5, 2], [3e-7, -4]]  # [[[[\ny = \'[[[[\'\nz = """a.b.c "quoted" {{{"""\n'
    assert parse_toml(text)["a"]["b.c"]["z"] == 'a.b.c "quoted" {{{'
    assert parse_toml("") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested more than 50 deep"),
        ('{"a":' * 100_000, "nested more than 50 deep"),
        ("[" * 51 + "]" * 51, "nested more than 50 deep"),
        ("1" * 5000, "a number has too many digits"),
        (b"\xff\xfe", "utf-8"),
        ('"\\"' * 100_000, "line 1"),
        ("[1", "line 1"),
    ],
)
def test_hostile_json(text: str | bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text)


@given(
    st.recursive(
        st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists, max_leaves=5
    )
)
def test_honest_json(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps({"[[": value}).encode(), parse_constant=str) == {"[[": value}
