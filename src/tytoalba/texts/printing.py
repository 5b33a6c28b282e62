r"""Any text made fit for a terminal or a log.

Who names a file may be hostile: letters that steer a terminal, a secret key in the wrong place.

>>> shown("talk\x1b[31m.wav"), shown("AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L: no such file")
('talk\\x1b[31m.wav', '(secret key): no such file')
"""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"AGE-(?:SECRET-KEY|PLUGIN)-[0-9A-Z-]+"
    r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|(?:MC4CAQAwBQYDK2VwBCIEI|b3BlbnNzaC1rZXktdjE)[0-9A-Za-z+/=]+",  # PKCS8 Ed25519 and OpenSSH, base64
    re.IGNORECASE | re.DOTALL,
)


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


def plural(n: int, noun: str, nouns: str = "") -> str:
    """A number and its noun.

    >>> plural(1, "recording"), plural(2, "recording"), plural(2, "process", "processes")
    ('1 recording', '2 recordings', '2 processes')
    """
    return f"{n} {noun if n == 1 else nouns or noun + 's'}"


def _spelled(letter: str) -> str:
    """A letter as Python's strings have it."""
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
