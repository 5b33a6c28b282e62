"""How often one address may ask: a token bucket each, in memory that does not grow."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

SAID_PER_SECOND, SAID_AT_ONCE = 2**12, 2**16
"""Bytes that a client may say which has nothing to say: some pings, and a goodbye."""
MOST_ADDRESSES = 4096
"""Addresses that are remembered; those not seen for longest are forgotten first."""


class Rates:
    """So many requests per second from one address, and so many at once.

    >>> now = 0.0
    >>> rates = Rates(per_second=2.0, burst=3, clock=lambda: now)
    >>> [rates.allow("192.0.2.7") for _ in range(4)], rates.allow("192.0.2.8")
    ([True, True, True, False], True)
    >>> now = 0.5
    >>> [rates.allow("192.0.2.7") for _ in range(2)]
    [True, False]
    """

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second, self.burst, self._clock = per_second, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how many, and when

    def allow(self, address: str, cost: int = 1) -> bool:
        """Count a request, or something that counts as so many; False: it is too much."""
        left, name = self.left(address), network_of(address)
        allowed = left >= cost
        self._left[name] = (left - cost * allowed, self._clock())
        self._left.move_to_end(name)
        if len(self._left) > MOST_ADDRESSES:
            self._left.popitem(last=False)
        return allowed

    def left(self, address: str) -> float:
        """How many are allowed now; counts nothing."""
        now = self._clock()
        left, before = self._left.get(network_of(address), (float(self.burst), now))
        return min(left + self.per_second * (now - before), float(self.burst))

    @property
    def pause(self) -> int:
        """Whole seconds after which to ask again."""
        return max(1, round(1 / self.per_second))


def network_of(address: str) -> str:
    """Who counts as one: an IPv4 address, or a network of IPv6 (/64), of which one client has many.

    >>> network_of("192.0.2.7"), network_of("2001:db8::1"), network_of("testclient")
    ('192.0.2.7', '2001:db8::/64', 'testclient')
    """
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if number.version == 4:
        return address
    if number.ipv4_mapped is not None:
        return str(number.ipv4_mapped)
    return str(ipaddress.ip_network((number, 64), strict=False))
