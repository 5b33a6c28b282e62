"""Who may come in: tokens compared in constant time, and pages told by their origin."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from tytoalba.errors import TytoError
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.rates import Rates, network_of

SHORTEST_TOKEN = 16
"""Characters of a token."""
WRONG_TOKENS = (0.1, 10)
"""Different wrong tokens by one address: per second, and at once."""
MOST_GUESSES = 4096
"""Wrong tokens that are known again."""
TOO_MANY_WRONG = "too many wrong tokens from one address: try again in a minute"


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


class Guesses:
    """Wrong tokens of each address: after a few different ones not even the right one is looked at.

    The same one again is no new guess, so a program with an old token locks nobody out.

    >>> guesses = Guesses(clock=lambda: 0.0)
    >>> for number in range(9):
    ...     guesses.count("192.0.2.7", f"a-guess-{number}")
    >>> for _ in range(100):
    ...     guesses.count("192.0.2.7", "an-old-token")
    ...
    >>> guesses.too_many("192.0.2.7"), guesses.too_many("192.0.2.8")
    (True, False)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = Rates(*WRONG_TOKENS, clock=clock)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._key = secrets.token_bytes(32)  # a wrong token may be nearly right, or right elsewhere

    def too_many(self, address: str) -> bool:
        """Whether an address has guessed so often that it must wait."""
        return self._rates.left(address) < 1

    def count(self, address: str, token: str) -> None:
        """This token of an address was wrong."""
        text = f"{network_of(address)} {token}".encode("utf-8", "surrogatepass")
        guess = hmac.digest(self._key, text, "sha256")
        if guess not in self._known:
            self._rates.allow(address)
        self._known[guess] = None
        if len(self._known) > MOST_GUESSES:
            self._known.popitem(last=False)


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
