"""Hostile TOML and JSON are refused in words and in time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tytoalba.texts.parsing import LARGEST_TOML, parse_json, parse_toml

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
