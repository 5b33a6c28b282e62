"""Where a peer is: HOST:PORT as people write it."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from tytoalba.errors import TytoError

_ADDRESS = re.compile(r"(?:\[(?P<six>[^]]*)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,9}))?")
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")


class Address(NamedTuple):
    """A host, as a name or number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nobody outside this machine can reach it; a name other than localhost is not known to be.

        >>> [Address(host, 9000).is_loopback for host in ("localhost", "::1", "0.0.0.0")]
        [True, True, False]
        """
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def parse_address(text: str, option: str, port: int | None = None) -> Address:
    """Read HOST:PORT, or [HOST]:PORT for IPv6. option: what errors call it. port: if none is given.

    >>> parse_address("127.0.0.1:9000", "--odas"), parse_address("[::1]:9000", "--odas").host
    (Address(host='127.0.0.1', port=9000), '::1')
    """
    found = _ADDRESS.fullmatch(text.strip())
    expected = f"{option} is HOST:PORT, such as 127.0.0.1:{port or 9000}"
    if found is None:
        raise TytoError(f"{expected}; got {text!r}. Is it IPv6? Then in brackets: [::1]:{port or 9000}")
    host = found["host"] or found["six"]
    if found["six"] is not None:
        try:
            ipaddress.IPv6Address(host)
        except ValueError as error:
            raise TytoError(f"{expected}; {host!r} in brackets is no IPv6 address") from error
    elif not _NAME.fullmatch(host) or len(host) > 253:
        raise TytoError(f"{expected}; {host!r} is not a host name or address")
    number = int(found["port"]) if found["port"] else port
    if number is None:
        raise TytoError(f"{expected}; got {text!r}, without a port")
    if not 1 <= number <= 65535:
        raise TytoError(f"{expected}; a port is from 1 to 65535, got {number}")
    return Address(host, number)
