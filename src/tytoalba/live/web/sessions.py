"""Who has shown the token: a header, or a cookie that was given for it.

A cookie says until when it holds, and that the token was shown, signed with the token itself. Nothing is kept
here, so a session outlives a restart; another token ends all of them.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256

from tytoalba.live.outputs.access import bearer_token, checked_token, same_token

COOKIE = "tyto_session"
SECONDS = 30 * 24 * 3600
"""How long a session lasts."""


class Sessions:
    """Whether clients may come in. token: None lets everybody in. secure: served with TLS.

    >>> sessions = Sessions("an-owl-in-the-barn")
    >>> sessions.is_open(cookie=sessions.new()), sessions.is_open(cookie="9999999999.x")
    (True, False)
    """

    def __init__(self, token: str | None, *, secure: bool = False) -> None:
        self._token = None if token is None else checked_token(token)
        self._secure = secure

    @property
    def needs_token(self) -> bool:
        """Whether there is a token at all."""
        return self._token is not None

    def is_open(self, authorization: str = "", cookie: str = "") -> bool:
        """Whether a header, or the value of a cookie, lets its client in."""
        if self._token is None:
            return True
        return self.is_token(bearer_token(authorization)) or self._is_session(cookie)

    def is_token(self, given: str) -> bool:
        """Whether this is the token."""
        return self._token is not None and same_token(given, self._token)

    def new(self, now: float | None = None) -> str:
        """The value of a cookie for a client that has shown the token."""
        until = str(int((time.time() if now is None else now) + SECONDS))
        return f"{until}.{self._signature(until)}"

    def cookie(self, value: str = "") -> str:
        """The header that sets the cookie; without a value it takes it away."""
        parts = [
            f"{COOKIE}={value}",
            "Path=/",
            f"Max-Age={SECONDS if value else 0}",
            "HttpOnly",
            "SameSite=Strict",
        ]
        return "; ".join(parts + ["Secure"] * self._secure)

    def _is_session(self, cookie: str) -> bool:
        until, _, signature = cookie.partition(".")
        right = hmac.compare_digest(
            signature.encode("utf-8", "surrogatepass"), self._signature(until).encode()
        )
        return right and until.isdecimal() and int(until) > time.time()

    def _signature(self, until: str) -> str:
        assert self._token is not None
        text = f"tytoalba session {until}".encode("utf-8", "surrogatepass")
        return hmac.new(self._token.encode(), text, sha256).hexdigest()
