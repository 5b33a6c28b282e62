"""Who may come in: tokens compared in constant time, and pages told by their origin."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from tytoalba.errors import TytoError
from tytoalba.live.outputs.addresses import Address

SHORTEST_TOKEN = 16
"""Characters of a token."""


def checked_token(token: str) -> str:
    """A token that is long enough to be one, and can stand in a header."""
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable() and " " not in token):
        raise TytoError(
            f"a token needs at least {SHORTEST_TOKEN} ASCII characters and no spaces, this one has "
            f'{len(token)}; python -c "import secrets; print(secrets.token_urlsafe())" makes one'
        )
    return token


def same_token(given: str, token: str) -> bool:
    """Whether a client showed the token; takes as long whatever was given.

    >>> same_token("an owl in a barn", "an owl in a barn"), same_token("", "an owl in a barn")
    (True, False)
    """
    return hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), token.encode())


def bearer_token(header: str) -> str:
    """The token in a header `Authorization: Bearer TOKEN`; "" for none.

    >>> bearer_token("Bearer an-owl"), bearer_token("Basic an-owl")
    ('an-owl', '')
    """
    kind, _, given = header.partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def listed_origins(origins: Iterable[str]) -> frozenset[str]:
    """Origins as browsers write them: scheme, host and port, in small letters.

    >>> sorted(listed_origins(["https://Home.example/"]))
    ['https://home.example']
    """
    return frozenset(origin.rstrip("/").lower() for origin in origins)


def is_local(origin: str) -> bool:
    """Whether an origin is a page that this machine serves to itself.

    >>> is_local("http://localhost:8000"), is_local("https://evil.test"), is_local("null")
    (True, False, False)
    """
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        return False
    return bool(host) and Address(str(host), 1).is_loopback
