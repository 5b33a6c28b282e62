r"""Text from elsewhere: TOML and JSON parsed within limits, and any text made fit for a terminal or a log.

Who writes a file or names one may be hostile: nesting that exhausts the stack, numbers of ten thousand
digits, letters that steer a terminal, a secret key in the wrong place.

>>> shown("talk\x1b[31m.wav"), shown("AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L: no such file")
('talk\\x1b[31m.wav', '(secret key): no such file')
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
_SECRET = re.compile(
    r"AGE-(?:SECRET-KEY|PLUGIN)-[0-9A-Z-]+"
    r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|(?:MC4CAQAwBQYDK2VwBCIEI|b3BlbnNzaC1rZXktdjE)[0-9A-Za-z+/=]+",  # PKCS8 Ed25519 and OpenSSH, base64
    re.IGNORECASE | re.DOTALL,
)
_BRACKET = re.compile(r"[][{}]")
_DIGITS = re.compile(rf"[0-9A-Fa-f_]{{{LONGEST_NUMBER + 1}}}")


def shown(text: object, lines: bool = False) -> str:
    r"""A text as it may be printed: what steers a terminal is spelled out, secret keys are not shown.

    text: anything, as `str` has it. lines: whether it may have several; otherwise their ends are spelled
    out, too, so that nobody can add a line to a log.

    >>> shown("a\nb \u202e c\ud800"), shown("a\nb", lines=True)
    ('a\\nb \\u202e c\\ud800', 'a\nb')
    """
    text = without_secrets(str(text))
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in ("\n\xa0" if lines else "\xa0") else _spelled(c) for c in text
    )


def without_secrets(text: str) -> str:
    """A text in which secret keys are not shown: those of age, OpenSSH and PEM."""
    return _SECRET.sub("(secret key)", text)


def _spelled(letter: str) -> str:
    """A letter as Python's strings have it."""
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")


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
