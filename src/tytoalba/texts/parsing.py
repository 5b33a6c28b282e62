"""TOML and JSON from elsewhere, parsed within limits of size, depth and length.

Who writes a file may be hostile: nesting that exhausts the stack, numbers of ten thousand digits.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

LARGEST_TOML = 2**18
"""Bytes of a TOML file; ours have up to 4 KB."""
DEEPEST = 50
"""Brackets in brackets; ours go 6 deep."""
MOST_PARTS = 10
"""Of a dotted key of TOML, each of which is a table in a table."""
LONGEST_NUMBER = 1000
"""Digits of a number; any float that there is has fewer."""

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_TOML_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*",
    re.DOTALL,
)
_BRACKET = re.compile(r"[][{}]")
_DIGITS = re.compile(rf"[0-9A-Fa-f_]{{{LONGEST_NUMBER + 1}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text; ValueError in words for what is not TOML, too large, deep or long."""
    if len(text) > LARGEST_TOML:
        raise ValueError(f"it has {len(text)} letters, and no such file has more than {LARGEST_TOML}")
    bare = _TOML_STRING.sub("''", text)
    _refuse_deep(bare, DEEPEST // 2)
    if max(part.count(".") for part in re.split(r"[=,{}\[\]\n]", bare)) >= MOST_PARTS:
        raise ValueError(f"a key has more than {MOST_PARTS} parts")
    if _DIGITS.search(bare):
        raise ValueError(f"a number has more than {LONGEST_NUMBER} digits")
    table: dict[str, Any] = _parsed(tomllib.loads, text)
    return table


def parse_json(text: str | bytes, **options: Any) -> Any:
    """The value of a JSON text; ValueError in words for what is not JSON, or is nested too deeply.

    options: those of `json.loads`. Its size is for the caller to limit, before it is read.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    _refuse_deep(_JSON_STRING.sub("", text))
    return _parsed(json.loads, text, **options)


def _parsed(parse: Callable[..., Any], text: str, **options: Any) -> Any:
    try:
        return parse(text, **options)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise ValueError("a number has too many digits") from error
        raise


def _refuse_deep(bare: str, deepest: int = DEEPEST) -> None:
    """Refuse a text, without its strings, whose brackets go too deep."""
    depth = 0
    for bracket in _BRACKET.findall(bare):
        depth += 1 if bracket in "[{" else -1
        if depth > deepest:
            raise ValueError(f"it is nested more than {deepest} deep")
