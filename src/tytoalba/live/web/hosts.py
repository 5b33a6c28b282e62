"""Which names this server answers to, and the pages of which sites may ask it.

A page of another site can make a name of its own point to this machine (DNS rebinding), and its browser then
takes both for one site. So the name in `Host` must be one that belongs here. Numbers need no trust: no name
stands behind them.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from tytoalba.live.outputs.access import listed_origins
from tytoalba.live.outputs.addresses import Address

LOCAL = frozenset({"localhost", "localhost."})


class Hosts:
    """What is served: at an address, with or without TLS, also for pages of the origins.

    >>> hosts = Hosts(Address("127.0.0.1", 8010))
    >>> hosts.knows("localhost:8010"), hosts.knows("rebound.evil.test:8010")
    (True, False)
    >>> hosts.welcomes("http://localhost:8010", "localhost:8010")
    True
    >>> hosts.welcomes("http://localhost:9000", "localhost:8010")
    False
    """

    def __init__(self, address: Address, origins: Sequence[str] = (), *, secure: bool = False) -> None:
        self._is_local = address.is_loopback
        self._scheme = "https" if secure else "http"
        self.origins = listed_origins(origins)
        names = {_host(urlsplit(origin).netloc) for origin in self.origins} | {address.host.lower()}
        if not self._is_local:
            own = socket.gethostname().lower()
            names |= {own, f"{own.partition('.')[0]}.local"}
        self._names = frozenset(names | LOCAL)

    def knows(self, host: str) -> bool:
        """Whether a header Host names this server."""
        name = _host(host)
        try:
            number = ipaddress.ip_address(name.partition("%")[0])
        except ValueError:
            return name in self._names
        return number.is_loopback or not self._is_local or name in self._names

    def welcomes(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may ask: its own pages, and those of the listed sites."""
        return origin.lower() in self.origins or origin.lower() == f"{self._scheme}://{host.lower()}"


def _host(text: str) -> str:
    """The name or number in HOST:PORT, in small letters; "" where there is none."""
    try:
        return (urlsplit(f"//{text}").hostname or "").lower()
    except ValueError:
        return ""
